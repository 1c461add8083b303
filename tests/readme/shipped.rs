//! What `deploy/build` sends while it counts is answered by this gateway: every request of it, in both eras.
//!
//! The rest of it needs a quarter of an hour and LLVM's BOLT, and is run where something is shipped.

use std::process::Command;

use super::top;

#[test]
fn what_is_sent_to_be_counted_is_answered() {
    let output = Command::new(top("deploy/build"))
        .args(["exercise", env!("CARGO_BIN_EXE_usher"), "5"])
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
