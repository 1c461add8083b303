//! What is of a project, of several programs at once, or beside a server: taken over as those programs mean it.

use super::*;
use crate::config::tests::{Files, vars};

/// Whoever uses two programs in one project may have both in one file.
#[test]
fn servers_under_each_key_of_one_file_are_taken() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}},"servers":{"c":{"command":"z"},"a":{"command":"x"}},
           "mcp":{"servers":{"b":{"command":"w"}}}}"#,
    );
    let (plan, notes) = load_mcp_json(&path, &vars).expect("loads");
    let keys: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c", "b-2"]);
    assert_eq!(
        notes,
        [
            "`a` is there twice and was taken once",
            "`b` would be `b` like another before it; it is `b-2` here"
        ]
    );
}
