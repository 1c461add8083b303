//! Files of variables that some programs read beside a server's own: `envFile` of VS Code and Cursor.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use super::servers::{Mode, Server, Translation};
use crate::config::tree::{Entry, Node, Value};

/// The most bytes of one that are read.
const MAX_BYTES: u64 = 1 << 20;

impl Translation<'_> {
    /// The environment of a program with the variables of its file, where it has one; those beside the file count more. Secrets or
    /// not, they become references where secrets do: whoever keeps them in a file of their own does not want them in another.
    pub(super) fn with_env_file(
        &mut self,
        env: Option<Entry>,
        node: &Node,
        server: &Server<'_>,
    ) -> Option<Entry> {
        let Some(entry) = node.entry("envFile") else {
            return env;
        };
        let written = entry.node.as_text().unwrap_or_default();
        let path = server.workspace.join(self.text(written, server));
        let set = match variables(&path) {
            Ok(set) => set,
            Err(error) => {
                self.notes.push(format!(
                    "`{}.envFile` was left out, and nobody knows which variables it sets: {}: {error}",
                    server.name,
                    path.display()
                ));
                return env;
            }
        };
        let mut members = match env.as_ref().map(|env| &env.node.value) {
            Some(Value::Map(members)) => members.clone(),
            Some(Value::Scalar(_) | Value::List(_)) | None => Vec::new(),
        };
        let mut names = Vec::new();
        for (name, value) in set {
            if members.iter().any(|member| member.key == name) {
                continue;
            }
            let value = self.text(&value, server);
            let value = self.hidden(&value, &name, "envFile", server);
            names.push(format!("`{name}`"));
            members.push(Entry {
                key: name,
                key_place: entry.key_place,
                node: Node::text(entry.node.place, value),
            });
        }
        self.not_read_again(&names, server);
        (!members.is_empty()).then(|| Entry {
            key: "env".into(),
            key_place: env.as_ref().map_or(entry.key_place, |env| env.key_place),
            node: Node::map(entry.node.place, members),
        })
    }

    /// Says what becomes of a file that is read now and not when its program starts.
    fn not_read_again(&mut self, names: &[String], server: &Server<'_>) {
        let what = match names {
            [] => "sets nothing that is not set beside it".to_owned(),
            names => format!("is not read any more: it sets {}", names.join(", ")),
        };
        if self.mode == Mode::Import {
            self.notes.push(format!("`{}.envFile` {what}", server.name));
        }
    }
}

/// The variables that the file at `path` sets, each once, with the values that count; what is no assignment is left out, as those
/// programs leave it out.
///
/// # Errors
/// When it cannot be read, or holds more than 1 MiB.
pub(super) fn variables(path: &Path) -> io::Result<Vec<(String, String)>> {
    let mut text = String::new();
    let taken = File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if taken as u64 > MAX_BYTES {
        return Err(io::Error::other("it holds more than 1 MiB"));
    }
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, value) in text.lines().filter_map(assignment) {
        all.retain(|(other, _)| *other != name);
        all.push((name, value));
    }
    Ok(all)
}

fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    is_name.then(|| (name.to_owned(), unquoted(value.trim())))
}

/// A value as it counts: without its quotes, or else without the comment behind it.
fn unquoted(value: &str) -> String {
    let within = |quote: char| {
        let (inside, _) = value.strip_prefix(quote)?.split_once(quote)?;
        Some(inside)
    };
    if let Some(inside) = within('"') {
        return inside.replace("\\n", "\n");
    }
    if let Some(inside) = within('\'') {
        return inside.to_owned();
    }
    let value = value.split_once(" #").map_or(value, |(value, _)| value);
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_read_as_other_programs_read_them() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join(".env");
        let text =
            "# c\nA=1\nexport FOO=\"b c\" # why\n\nTOKEN='x#y'\nnonsense\n=x\nA = 2 # two\nE=\n";
        std::fs::write(&file, text).unwrap();
        let all = variables(&file).unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(
            all,
            [("FOO", "b c"), ("TOKEN", "x#y"), ("A", "2"), ("E", "")]
        );
        assert!(variables(directory.path()).is_err());
    }
}
