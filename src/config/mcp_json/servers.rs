//! Server by server: the shape of other programs' entries into the shape of ours.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use http::Uri;
use percent_encoding::percent_decode_str;

use super::{
    places::{project_of, relative, workspace_of},
    translation::{Mode, Server, Translation},
};
use crate::config::{
    check::is_loopback,
    problem::{Findings, SourceSpan},
    reference::{directory_of, resolved},
    secrets::{self, holds_secret, sounds_secret},
    tree::{Entry, Node, Value},
};

/// Keys that need no note when they are left out.
const SILENT: [&str; 18] = [
    "alwaysAllow",
    "autoApprove",
    "args",
    "command",
    "cwd",
    "description",
    "disabled",
    "enabled",
    "env",
    "gallery",
    "headers",
    "httpUrl",
    "name",
    "serverUrl",
    "transport",
    "type",
    "url",
    "version",
];

/// The servers that Claude Code keeps for one directory each, with that directory.
fn projects(root: &Node) -> Vec<(&str, &Entry)> {
    let mut all = Vec::new();
    let projects = root.member("projects").map(Node::entries);
    for project in projects.unwrap_or_default() {
        let servers = project.node.member("mcpServers").map(Node::entries);
        let servers = servers.unwrap_or_default().iter();
        all.extend(servers.map(|entry| (&*project.key, entry)));
    }
    all
}

impl Translation<'_> {
    /// Takes the servers of one file.
    pub(super) fn file(&mut self, path: &Path, file: usize, root: &Node, findings: &mut Findings) {
        // Whoever uses two programs in one project may have both.
        let blocks = [
            root.member("mcpServers"),
            root.member("servers"),
            root.member("mcp").and_then(|mcp| mcp.member("servers")),
        ];
        let blocks = blocks.into_iter().flatten();
        let mut blocks = blocks
            .filter(|block| matches!(block.value, Value::Map(_)))
            .peekable();
        let of_projects = projects(root);
        if blocks.peek().is_none() && of_projects.is_empty() {
            findings.report(
                SourceSpan::whole(file),
                "",
                "there is neither `mcpServers` nor `servers` in it",
                "Claude Desktop, Claude Code and Cursor write the first, VS Code the second",
            );
            return;
        }
        let inputs = root.member("inputs").map(Node::items).unwrap_or_default();
        let server = |name, workspace, starts_in| Server {
            name,
            file: path,
            workspace,
            own: BTreeMap::new(),
            inputs,
            starts_in,
        };
        for entry in blocks.flat_map(Node::entries) {
            let starts_in = project_of(path, self.vars);
            let server = server(&entry.key, workspace_of(path), starts_in);
            self.server(entry, server, findings);
        }
        for (project, entry) in of_projects {
            match self.mode {
                // What is for one directory is not for everybody who comes here.
                Mode::Serve => self.notes.push(format!(
                    "`{}` is of the project {project} and was left out; `usher import` takes it",
                    entry.key
                )),
                Mode::Import if !Path::new(project).is_dir() => self.notes.push(format!(
                    "`{}` is of the project {project}, which is not there, and was left out",
                    entry.key
                )),
                Mode::Import => {
                    self.notes
                        .push(format!("`{}` is of the project {project}", entry.key));
                    let directory = PathBuf::from(project);
                    let starts_in = relative(&entry.node, &directory).then(|| directory.clone());
                    let server = server(&entry.key, directory, starts_in);
                    self.server(entry, server, findings);
                }
            }
        }
    }

    fn server(&mut self, entry: &Entry, mut server: Server<'_>, findings: &mut Findings) {
        let node = &entry.node;
        let name = entry.key.as_str();
        if !matches!(node.value, Value::Map(_)) {
            findings.report(node.place, name, "expected a mapping", "");
            return;
        }
        let off = |key: &str, word: &str| node.member(key).and_then(Node::as_text) == Some(word);
        if off("disabled", "true") || off("enabled", "false") {
            self.notes
                .push(format!("`{name}` is switched off there and was left out"));
            return;
        }
        let command = node.entry("command");
        let url = ["url", "serverUrl", "httpUrl"]
            .into_iter()
            .find_map(|key| node.entry(key));
        if command.or(url).is_none() {
            // It is another program's file: the others can be used all the same.
            self.notes.push(format!(
                "`{name}` names neither a program (`command`) nor an address (`url`) and was left out"
            ));
            return;
        }
        let mut members = Vec::new();
        let mut placed = false;
        let env = self.env(node, &mut server);
        if let Some(entry) = command {
            members.push(self.command(entry, node, &server));
            members.extend(self.with_env_file(env, node, &server));
            if let Some(cwd) = node.entry("cwd") {
                members.push(self.cwd(cwd, &server));
            } else if let Some(directory) = &server.starts_in {
                placed = !relative(node, directory);
                members.push(Entry {
                    key: "cwd".into(),
                    key_place: entry.key_place,
                    node: Node::text(node.place, directory.display().to_string()),
                });
            }
        } else if let Some(url) = url {
            self.address(url, node, &server, &mut members, findings);
        }
        let logs_in = members.iter().any(|member| member.key == "auth");
        for other in node.entries() {
            let taken = match &*other.key {
                "auth" => logs_in,
                "envFile" => command.is_some(),
                _ => false,
            };
            if !taken && !SILENT.contains(&other.key.as_str()) {
                self.without_counterpart(&other.key, &server);
            }
        }
        self.keep(entry, Node::map(node.place, members), placed);
    }

    fn command(&mut self, command: &Entry, node: &Node, server: &Server<'_>) -> Entry {
        let place = command.node.place;
        // Some files give the whole command as a list.
        let own = match &command.node.value {
            Value::List(items) => items.as_slice(),
            Value::Scalar(_) | Value::Map(_) => std::slice::from_ref(&command.node),
        };
        let args = match node.member("args") {
            Some(text) if text.as_text().is_some() => {
                self.notes.push(format!(
                    "`{}.args` is one text there, and is one argument here",
                    server.name
                ));
                std::slice::from_ref(text)
            }
            args => args.map(Node::items).unwrap_or_default(),
        };
        let mut words = Vec::new();
        let mut before = "";
        for word in own.iter().chain(args) {
            let translated = self.node(word, server);
            words.push(self.argument(before, translated, server));
            before = word.as_text().unwrap_or_default();
        }
        Entry {
            key: "command".into(),
            key_place: command.key_place,
            node: Node::list(place, words),
        }
    }

    /// A word of a command line, without the secret that it may hold.
    fn argument(&mut self, before: &str, word: Node, server: &Server<'_>) -> Node {
        let Some(text) = word.as_text() else {
            return word;
        };
        // A reference for the whole script would hide what the program is.
        if secrets::is_script(before, text) {
            if secrets::script_holds_secret(text) {
                self.left("args", server);
            }
            return word;
        }
        let Some(secret) = secrets::in_word(before, text) else {
            return word;
        };
        let (head, value) = text.split_at(secret.start);
        let about = secret.name.unwrap_or("secret");
        let value = self.hidden(value, about, "args", server);
        Node::text(word.place, format!("{head}{value}"))
    }

    /// Counted from where its program would count it from.
    fn cwd(&mut self, entry: &Entry, server: &Server<'_>) -> Entry {
        let mut node = self.node(&entry.node, server);
        if let Some(text) = node.as_text() {
            // What a variable stands for later need not be known yet.
            let known = resolved(text, &directory_of(server.file), self.vars);
            let directory = &server.workspace;
            if known.is_none() && text.starts_with("${") && self.mode == Mode::Import {
                self.notes.push(format!(
                    "`{}.cwd` counts from {} here: write `{text}` alone where that is an absolute path",
                    server.name,
                    directory.display()
                ));
            }
            let stands = known.as_ref().map_or(text, |known| known.as_str());
            if Path::new(stands).is_relative() {
                let directory = directory.join(text).display().to_string();
                node = Node::text(node.place, directory);
            }
        }
        Entry {
            node,
            ..entry.clone()
        }
    }

    fn env(&mut self, node: &Node, server: &mut Server<'_>) -> Option<Entry> {
        let env = node.entry("env")?;
        let mut members = Vec::new();
        for entry in env.node.entries() {
            let Some(text) = entry.node.as_text() else {
                continue;
            };
            let translated = self.text(text, server);
            let value = if sounds_secret(&entry.key) || holds_secret(text) {
                self.hidden(&translated, &entry.key, "env", server)
            } else {
                translated
            };
            server.own.insert(entry.key.clone(), value.clone());
            members.push(Entry {
                key: entry.key.clone(),
                key_place: entry.key_place,
                node: Node::text(entry.node.place, value),
            });
        }
        (!members.is_empty()).then(|| Entry {
            key: "env".into(),
            key_place: env.key_place,
            node: Node::map(env.node.place, members),
        })
    }

    fn address(
        &mut self,
        url: &Entry,
        node: &Node,
        server: &Server<'_>,
        members: &mut Vec<Entry>,
        findings: &mut Findings,
    ) {
        let text = self.text(url.node.as_text().unwrap_or_default(), server);
        let text = self.without_query_secrets(&text, server);
        let (text, auth) = self.credentials(&text, url, server, findings);
        let login = node.entry("auth").filter(|_| auth.is_none());
        let auth = auth.or_else(|| self.login(login?, server));
        let plain = text.parse::<Uri>().is_ok_and(|uri| {
            uri.scheme_str() == Some("http") && uri.host().is_some_and(|host| !is_loopback(host))
        });
        let place = url.node.place;
        let mut add = |key: &str, node: Node| {
            members.push(Entry {
                key: key.into(),
                key_place: url.key_place,
                node,
            });
        };
        add("url", Node::text(place, text));
        if plain {
            self.notes.push(format!(
                "`{}` is reached over http, where others can listen in: `plain_http: true` says so",
                server.name
            ));
            add("plain_http", Node::text(place, "true"));
        }
        let kind = ["type", "transport"]
            .into_iter()
            .find_map(|key| node.member(key).and_then(Node::as_text));
        if kind == Some("sse") {
            add("transport", Node::text(place, "sse"));
        }
        if let Some(auth) = auth {
            add("auth", auth);
        }
        if let Some(headers) = node.entry("headers") {
            let mut translated = Vec::new();
            for entry in headers.node.entries() {
                let Some(text) = entry.node.as_text() else {
                    continue;
                };
                let text = self.text(text, server);
                let value = if secrets::is_told_in_header(&entry.key, &text) {
                    self.hidden(&text, &entry.key, "headers", server)
                } else {
                    self.written_out(&entry.key, &text, server);
                    text
                };
                translated.push(Entry {
                    node: Node::text(entry.node.place, value),
                    ..entry.clone()
                });
            }
            members.push(Entry {
                node: Node::map(headers.node.place, translated),
                ..headers.clone()
            });
        }
    }

    /// An address without the user and password in it, and those as `auth`.
    fn credentials(
        &mut self,
        text: &str,
        url: &Entry,
        server: &Server<'_>,
        findings: &mut Findings,
    ) -> (String, Option<Node>) {
        let Some((start, info)) = secrets::userinfo(text) else {
            return (text.to_owned(), None);
        };
        let bare = format!("{}{}", &text[..start], &text[start + info.len() + 1..]);
        let both = secrets::user_and_password(info)
            .filter(|(user, password)| !user.is_empty() && !password.is_empty());
        let Some((user, password)) = both else {
            findings.report(
                url.node.place,
                format!("{}.url", server.name),
                "an address with a user or a password in it, but not both",
                "write who calls as a header: `\"headers\": {\"Authorization\": …}`",
            );
            return (bare, None);
        };
        // Not the place of the address: what is unknown about these must not silence what is wrong with that.
        let place = url.key_place;
        let mut member = |key: &str, value: &str| {
            let value = percent_decode_str(value).decode_utf8_lossy();
            Entry {
                key: key.into(),
                key_place: place,
                node: Node::text(place, self.hidden(&value, key, "url", server)),
            }
        };
        let pair = vec![member("user", user), member("password", password)];
        let basic = Entry {
            key: "basic".into(),
            key_place: place,
            node: Node::map(place, pair),
        };
        if self.mode == Mode::Import && info.contains('%') {
            self.notes.push(format!(
                "the user and password in the address of `{}` have `%XX` in them: export what that stands for",
                server.name
            ));
        }
        (bare, Some(Node::map(place, vec![basic])))
    }

    fn without_query_secrets(&mut self, url: &str, server: &Server<'_>) -> String {
        let Some((head, query)) = url.split_once('?') else {
            return url.to_owned();
        };
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if sounds_secret(name) => {
                    format!("{name}={}", self.hidden(value, name, "url", server))
                }
                _ => pair.to_owned(),
            })
            .collect();
        format!("{head}?{}", pairs.join("&"))
    }
}
