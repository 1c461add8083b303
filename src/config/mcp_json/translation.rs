//! A translation in progress: the upstreams made so far, and what was met on the way: variables, secrets, what to tell.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

use super::{
    Export,
    text::{Met, Surroundings, translate, variable_name},
    write,
};
use crate::{
    config::{
        Vars,
        problem::SourceSpan,
        secrets::holds_secret,
        tree::{Entry, Node},
    },
    protocol::UpstreamId,
};

/// What happens to literal secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are used.
    Serve,
    /// They become references.
    Import,
}

/// A translation in progress.
pub(super) struct Translation<'v> {
    pub(super) mode: Mode,
    pub(super) vars: Vars<'v>,
    upstreams: Vec<Entry>,
    /// The keys of those that start in a project because they are of its file, and for no other reason that is known.
    placed: HashSet<String>,
    /// Which secret each new variable stands for.
    named: HashMap<String, String>,
    pub(super) exports: Vec<Export>,
    pub(super) notes: Vec<String>,
}

/// The server being translated.
pub(super) struct Server<'s> {
    /// How the file calls it.
    pub(super) name: &'s str,
    pub(super) file: &'s Path,
    pub(super) workspace: PathBuf,
    pub(super) own: BTreeMap<String, String>,
    pub(super) inputs: &'s [Node],
    /// Where it starts, unless it says so itself.
    pub(super) starts_in: Option<PathBuf>,
}

impl<'v> Translation<'v> {
    pub(super) fn new(mode: Mode, vars: Vars<'v>) -> Self {
        Self {
            mode,
            vars,
            upstreams: Vec::new(),
            placed: HashSet::new(),
            named: HashMap::new(),
            exports: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The configuration so far.
    pub(super) fn tree(&self) -> Node {
        let place = SourceSpan::default();
        let upstreams = Entry {
            key: "upstreams".into(),
            key_place: place,
            node: Node::map(place, self.upstreams.clone()),
        };
        Node::map(place, vec![upstreams])
    }

    pub(super) fn without_counterpart(&mut self, key: &str, server: &Server<'_>) {
        self.notes.push(format!(
            "`{}.{key}` has no counterpart here and was left out",
            server.name
        ));
    }

    /// Adds an upstream under a key of our grammar that is still free; the very same one is not added again, nor one that only
    /// starts elsewhere since one of the two is `placed`.
    pub(super) fn keep(&mut self, entry: &Entry, node: Node, placed: bool) {
        let slug = slug(&entry.key);
        let mut key = slug.clone();
        let mut number = 2;
        while let Some(other) = self.upstreams.iter().find(|other| other.key == key) {
            let (old, new) = (write::block(&other.node), write::block(&node));
            if old == new
                || (placed && old == write::block_without(&node, "cwd"))
                || (self.placed.contains(&key) && write::block_without(&other.node, "cwd") == new)
            {
                self.notes
                    .push(format!("`{}` is there twice and was taken once", entry.key));
                return;
            }
            let tail = format!("-{number}");
            let room = UpstreamId::MAX_BYTES - tail.len();
            key = format!(
                "{}{tail}",
                slug[..slug.len().min(room)].trim_end_matches('-')
            );
            number += 1;
        }
        if number > 2 {
            self.notes.push(format!(
                "`{}` would be `{slug}` like another before it; it is `{key}` here",
                entry.key
            ));
        } else if key != entry.key {
            self.notes.push(format!("`{}` is `{key}` here", entry.key));
        }
        if placed {
            self.placed.insert(key.clone());
        }
        self.upstreams.push(Entry {
            key,
            key_place: entry.key_place,
            node,
        });
    }

    /// A secret as a reference to a variable; itself if it is a reference already, or is to be used.
    pub(super) fn hidden(
        &mut self,
        value: &str,
        about: &str,
        part: &str,
        server: &Server<'_>,
    ) -> String {
        if value.contains("${") && holds_secret(value) {
            self.left(part, server);
        }
        if self.mode == Mode::Serve || value.is_empty() || value.contains("${") {
            return value.to_owned();
        }
        let (scheme, secret) = match value.split_once(' ') {
            Some((scheme @ ("Bearer" | "Basic" | "Token" | "token" | "bearer"), secret)) => {
                (format!("{scheme} "), secret)
            }
            _ => (String::new(), value),
        };
        scheme + &self.referred(secret, about, part, server)
    }

    /// A reference to a variable that stands for this.
    pub(super) fn referred(
        &mut self,
        secret: &str,
        about: &str,
        part: &str,
        server: &Server<'_>,
    ) -> String {
        let about = if about.eq_ignore_ascii_case("authorization") {
            "token"
        } else {
            about
        };
        let short = variable_name(about);
        let long = format!("{}_{short}", variable_name(server.name));
        // A variable of a program keeps its name, if no other secret has it.
        let free = |name: &str, named: &HashMap<String, String>| {
            named.get(name).is_none_or(|other| other == secret)
        };
        let mut name = if matches!(part, "env" | "envFile") && free(&short, &self.named) {
            short
        } else {
            long
        };
        while !free(&name, &self.named) {
            name.push_str("_2");
        }
        self.named.insert(name.clone(), secret.to_owned());
        let from = format!(
            "what stands in {} under {}.{part}",
            server.file.display(),
            server.name
        );
        // What the environment has under that name may be something else.
        self.export(&name, from, false);
        format!("${{env:{name}}}")
    }

    /// Says that a header stands in the file as it is: nobody but its owner knows whether it is a secret after all.
    pub(super) fn written_out(&mut self, header: &str, value: &str, server: &Server<'_>) {
        if self.mode == Mode::Import && !value.is_empty() && !value.contains("${") {
            self.notes.push(format!(
                "`{}.headers` stands in the file as it is: {header}",
                server.name
            ));
        }
    }

    /// Says that a secret may still stand where no reference could take its place.
    pub(super) fn left(&mut self, part: &str, server: &Server<'_>) {
        let note = format!(
            "`{}.{part}` still holds what may be a secret, within other text: put `${{env:NAME}}` in its place",
            server.name
        );
        if self.mode == Mode::Import && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn node(&mut self, node: &Node, server: &Server<'_>) -> Node {
        match node.as_text() {
            Some(text) => {
                let text = self.text(text, server);
                Node::text(node.place, text)
            }
            None => node.clone(),
        }
    }

    pub(super) fn text(&mut self, text: &str, server: &Server<'_>) -> String {
        let around = Surroundings {
            workspace: &server.workspace,
            own: &server.own,
            vars: self.vars,
        };
        let mut met = Vec::new();
        let text = translate(text, &around, &mut met);
        for met in met {
            match met {
                Met::Variable(name) => {
                    let from = format!("{} refers to it", server.file.display());
                    let present = (self.vars)(&name).is_some();
                    self.export(&name, from, present);
                }
                Met::Input(id, name) => {
                    let from = server
                        .inputs
                        .iter()
                        .find(|input| input.member("id").and_then(Node::as_text) == Some(&*id))
                        .and_then(|input| input.member("description").and_then(Node::as_text))
                        .map_or_else(
                            || format!("the input `{id}`"),
                            |text| format!("the input `{id}`: {text}"),
                        );
                    self.export(&name, from, false);
                }
            }
        }
        text
    }

    fn export(&mut self, name: &str, from: String, present: bool) {
        match self.exports.iter_mut().find(|export| export.name == name) {
            Some(export) => export.present &= present,
            None => self.exports.push(Export {
                name: name.to_owned(),
                from,
                present,
            }),
        }
    }
}

/// A key of our grammar made of any name: `GitHub (work)` is `github-work`.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for char in name.chars() {
        if char.is_ascii_alphanumeric() {
            slug.push(char.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    if !slug.starts_with(|first: char| first.is_ascii_lowercase()) {
        slug.insert_str(0, if slug.is_empty() { "server" } else { "s-" });
    }
    slug.truncate(UpstreamId::MAX_BYTES);
    slug.trim_end_matches('-').to_owned()
}
