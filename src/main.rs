//! `usher`: arguments to a plan, the plan to an app, the app's end to an exit code.

use std::process::ExitCode;

#[cfg(any(feature = "mimalloc", target_env = "musl"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // One provider for every TLS connection. It can only be refused because one is installed already, which is as good.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    usher::cli::run()
}
