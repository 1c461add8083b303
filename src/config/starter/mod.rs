//! What `usher init` writes: a file that runs as it is, and policies that permit nobody but the operator (SECURITY 9).
//! Comments in the file show where to go on.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::policy::Policy;

const USHER: &str = include_str!("usher.yaml");
const CEDAR: &str = include_str!("starter.cedar");
const GROUPS: &str = include_str!("groups.yaml");
const CASES: &str = include_str!("cases.yaml");

/// The configuration to start from. Its policies are in force where there is an operator; without one they are a comment.
pub fn starter(operator: Option<&str>) -> String {
    let policy = match operator {
        Some(_) => "policy: { dir: policies }",
        None => "# policy: { dir: policies }",
    };
    USHER.replace("POLICY", policy)
}

/// The files of the policies to start from, by name: the operator, a user of this exact name, may use everything, and nobody
/// else anything.
pub fn starter_policies(operator: Option<&str>) -> [(&'static str, String); 4] {
    let quoted = operator.map(quoted);
    let permit = |user: &str| {
        format!(
            "@id(\"operator\")\npermit (\n  principal == User::{user},\n  action in Action::\"use\",\n  resource\n);"
        )
    };
    let (rule, case) = match &quoted {
        Some(user) => (
            format!(
                "// The operator may use everything, and nobody else anything. The name is that of tokens, byte for byte.\n{}",
                permit(user)
            ),
            format!(
                "  - {{ name: the operator may use everything, user: {user}, call: files_read_file, args: {{ path: /x }}, expect: allow, by: operator }}\n"
            ),
        ),
        None => {
            let example = permit("\"ana@example.com\"").replace('\n', "\n// ");
            (
                format!(
                    "// Nobody may use anything yet. Take the slashes away for a user by the name that tokens have, byte for byte; for an API\n\
                     // key write Key::\"its name\", for a group: principal in Group::\"analysts\".\n//\n// {example}"
                ),
                String::new(),
            )
        }
    };
    [
        ("usher.cedarschema", Policy::schema(None)),
        ("starter.cedar", CEDAR.replace("OPERATOR", &rule)),
        ("groups.yaml", GROUPS.to_owned()),
        ("cases.yaml", CASES.replace("OPERATOR", &case)),
    ]
}

/// A policy of one line that permits this user everything, for whoever has policies already.
pub fn permit_line(operator: &str) -> String {
    format!(
        "permit (principal == User::{}, action in Action::\"use\", resource);",
        quoted(operator)
    )
}

/// A text without control characters as Cedar and YAML both spell it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes `text` to a new file that only its owner may write to.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn policies(operator: Option<&str>) -> Policy {
        let files = starter_policies(operator);
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        Policy::of(&files).unwrap_or_else(|problems| panic!("{problems:#?}"))
    }

    // SECURITY 9
    #[test]
    fn the_starter_permits_the_operators_own_subject_and_nobody_else() {
        let odd = "a \"quoted\\\" näme: {x} #1";
        for operator in [None, Some("ana@example.com"), Some("OPERATOR"), Some(odd)] {
            let policy = policies(operator);
            assert_eq!(policy.notes(), [], "{operator:?}");
            assert_eq!(policy.count(), 1 + usize::from(operator.is_some()));
            let outcomes = policy.run_cases(&[], SystemTime::now());
            let failed: Vec<_> = outcomes.iter().filter(|it| it.failure.is_some()).collect();
            assert!(failed.is_empty(), "{operator:?}: {failed:#?}");
            assert_eq!(outcomes.len(), 2 + usize::from(operator.is_some()));
        }
    }
}
