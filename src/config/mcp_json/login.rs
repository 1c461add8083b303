//! How people log in to a server with a client that was registered by hand: `auth` of Cursor.

use super::translation::{Server, Translation};
use crate::config::tree::{Entry, Node, Value};

impl Translation<'_> {
    /// What `auth` there is called here; `None` for what is no such mapping.
    pub(super) fn login(&mut self, auth: &Entry, server: &Server<'_>) -> Option<Node> {
        let Value::Map(entries) = &auth.node.value else {
            return None;
        };
        let place = auth.node.place;
        let mut members = Vec::new();
        for entry in entries {
            let (key, node) = match entry.key.as_str() {
                "CLIENT_ID" => ("client_id", self.node(&entry.node, server)),
                "CLIENT_SECRET" => {
                    let text = self.text(entry.node.as_text().unwrap_or_default(), server);
                    let secret = self.hidden(&text, "client_secret", "auth", server);
                    ("client_secret", Node::text(entry.node.place, secret))
                }
                "scopes" => {
                    let scopes = self.scopes(&entry.node, server);
                    ("scopes", Node::list(entry.node.place, scopes))
                }
                other => {
                    self.without_counterpart(&format!("auth.{other}"), server);
                    continue;
                }
            };
            members.push(Entry {
                key: key.into(),
                key_place: entry.key_place,
                node,
            });
        }
        let code = Entry {
            key: "authorization_code".into(),
            key_place: auth.key_place,
            node: Node::map(place, members),
        };
        Some(Node::map(place, vec![code]))
    }

    /// Scopes one by one, also of a text that holds several.
    fn scopes(&mut self, node: &Node, server: &Server<'_>) -> Vec<Node> {
        match node.as_text() {
            None => {
                let scopes = node.items().iter();
                scopes.map(|scope| self.node(scope, server)).collect()
            }
            Some(text) => {
                let text = self.text(text, server);
                let scopes = text.split_whitespace();
                scopes.map(|scope| Node::text(node.place, scope)).collect()
            }
        }
    }
}
