//! Files of variables that some programs read beside a server's own: `envFile` of VS Code and Cursor.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use zeroize::Zeroizing;

use super::translation::{Mode, Server, Translation};
use crate::config::{
    loaded::SET,
    problem::SourceSpan,
    tree::{Entry, Node, Origin, Scalar, Value},
};

/// The most bytes of one that are read, and that its values have.
const MAX_BYTES: usize = 1 << 20;

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
            let place = entry.node.place;
            let node = match self.mode {
                Mode::Serve => literal(place, value),
                Mode::Import if value.is_empty() => Node::text(place, value),
                Mode::Import => Node::text(place, self.referred(&value, &name, "envFile", server)),
            };
            names.push(format!("`{name}`"));
            members.push(Entry {
                key: name,
                key_place: entry.key_place,
                node,
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

/// A value as it is: what looks like a reference in it is none of ours.
fn literal(place: SourceSpan, text: String) -> Node {
    Node {
        place,
        value: Value::Scalar(Scalar {
            text: Zeroizing::new(text),
            plain: false,
            origin: Origin::Referenced {
                exposed: None,
                written: SET.to_owned(),
            },
        }),
    }
}

/// The variables that the file at `path` sets, each once, with the values that count; what is no assignment is left out, as those
/// programs leave it out.
///
/// # Errors
/// When it cannot be read, or holds more than 1 MiB, as it is or with its variables in the place of their names.
pub(super) fn variables(path: &Path) -> io::Result<Vec<(String, String)>> {
    let mut text = String::new();
    let taken = File::open(path)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_string(&mut text)?;
    if taken > MAX_BYTES {
        return Err(too_much());
    }
    let mut all: Vec<(String, String)> = Vec::new();
    let mut room = MAX_BYTES;
    for (name, value) in text.lines().filter_map(assignment) {
        let value = value.read(&all, room).ok_or_else(too_much)?;
        room = room.saturating_sub(value.len());
        all.retain(|(other, _)| other != name);
        all.push((name.to_owned(), value));
    }
    Ok(all)
}

fn too_much() -> io::Error {
    io::Error::other("it holds more than 1 MiB")
}

/// A value as it stands in the file, without its quotes or the comment behind it.
enum Assigned<'t> {
    /// In single quotes: every character is itself.
    Single(&'t str),
    /// In double quotes.
    Double(&'t str),
    /// In none.
    Bare(&'t str),
}

fn assignment(line: &str) -> Option<(&str, Assigned<'_>)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    is_name.then(|| (name, Assigned::of(value.trim())))
}

impl<'t> Assigned<'t> {
    fn of(value: &'t str) -> Self {
        let within = |quote: char| {
            let (inside, _) = value.strip_prefix(quote)?.split_once(quote)?;
            Some(inside)
        };
        if let Some(inside) = within('"') {
            return Self::Double(inside);
        }
        if let Some(inside) = within('\'') {
            return Self::Single(inside);
        }
        let value = value.split_once(" #").map_or(value, |(value, _)| value);
        Self::Bare(value.trim_end())
    }

    /// As it counts, with the variables before it; `None` where that has more bytes than this.
    fn read(&self, before: &[(String, String)], room: usize) -> Option<String> {
        match self {
            Self::Single(text) => Some((*text).to_owned()),
            Self::Double(text) => filled(&text.replace("\\n", "\n"), before, room),
            Self::Bare(text) => filled(text, before, room),
        }
    }
}

/// `text` with a variable before it in the place of each `${NAME}` that is one; every other `${` is text.
fn filled(text: &str, before: &[(String, String)], room: usize) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, after)) = rest.split_once("${") {
        out.push_str(head);
        let known = after.split_once('}').and_then(|(name, tail)| {
            let (_, value) = before.iter().find(|(other, _)| other == name)?;
            Some((value.as_str(), tail))
        });
        let (value, tail) = known.unwrap_or(("${", after));
        out.push_str(value);
        rest = tail;
        if out.len() > room {
            return None;
        }
    }
    out.push_str(rest);
    (out.len() <= room).then_some(out)
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

        // Each line has twice what the one before it has.
        let mut text = "A0=0123456789abcdef\n".to_owned();
        for line in 1..40 {
            let before = line - 1;
            text += &format!("A{line}=${{A{before}}}${{A{before}}}\n");
        }
        std::fs::write(&file, text).unwrap();
        let error = variables(&file).unwrap_err();
        assert_eq!(error.to_string(), "it holds more than 1 MiB");
    }
}
