//! What is asked: held to what the caller declared, and kept in short until the answers come.

use super::{Bounds, FORM_BYTES, KEY_BYTES, REQUEST_BYTES, form};
use crate::{
    json::{Json, Kind, Node},
    metrics::{Bound, reached},
    protocol::{ClientCapabilities, meta, methods},
};

/// What one round asked for, by key; at most [`Bounds::inputs`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub(super) asks: Vec<(String, Ask)>,
}

/// One question, as far as its answer depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A form, by the part of its schema that binds the answer.
    Form(Json),
    /// A page to visit.
    Url,
    /// A message from the caller's model.
    Sampling,
    /// The caller's roots.
    Roots,
}

/// What an upstream may not ask, in words for logs and operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub(super) &'static str);

impl Fault {
    /// A fault in these words.
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }
}

const FOREIGN_KEY: &str = "asked for input under a key it may not use";

impl Asked {
    /// What is asked in `requests`, an `inputRequests` object, of a caller with these capabilities.
    ///
    /// # Errors
    /// [`Fault`] for whatever the caller did not declare, for shapes the protocol does not have, and for too much of
    /// anything (SECURITY STATE-3).
    pub fn of(
        requests: &Json,
        capabilities: &ClientCapabilities,
        bounds: &Bounds,
    ) -> Result<Self, Fault> {
        Self::under(requests, capabilities, bounds, |key| {
            !key.starts_with(meta::OWN_PREFIX)
        })
    }

    /// The same for questions of the gateway's own, whose keys nobody else may use (PROTOCOL D2a).
    ///
    /// # Errors
    /// As [`Asked::of`], and for a key that is not ours.
    pub fn of_own(
        requests: &Json,
        capabilities: &ClientCapabilities,
        bounds: &Bounds,
    ) -> Result<Self, Fault> {
        Self::under(requests, capabilities, bounds, |key| {
            key.starts_with(meta::OWN_PREFIX)
        })
    }

    fn under(
        requests: &Json,
        capabilities: &ClientCapabilities,
        bounds: &Bounds,
        may_use: impl Fn(&str) -> bool,
    ) -> Result<Self, Fault> {
        if requests.len() > REQUEST_BYTES {
            return Err(Fault("asked for input with too many bytes"));
        }
        if requests.root().kind() != Kind::Object {
            return Err(Fault("asked for input in a shape that is no object"));
        }
        let can = Can::new(capabilities);
        let mut asks = Vec::new();
        for member in requests.root().members() {
            if asks.len() == bounds.inputs {
                reached(Bound::Inputs);
                return Err(Fault("asked for too many inputs at once"));
            }
            if member.key.len() > KEY_BYTES || !may_use(&member.key) {
                return Err(Fault(FOREIGN_KEY));
            }
            let ask = can.ask(requests, member.value)?;
            asks.push((member.key.into_owned(), ask));
        }
        let forms = asks.iter().map(|(_, ask)| match ask {
            Ask::Form(form) => form.len(),
            Ask::Url | Ask::Sampling | Ask::Roots => 0,
        });
        if forms.sum::<usize>() > FORM_BYTES {
            return Err(Fault("asked with forms of too many bytes"));
        }
        Ok(Self { asks })
    }

    /// Whether nothing is asked: there is only state to bring back.
    pub const fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    pub(super) fn to_json(&self) -> Json {
        let members: Vec<_> = self
            .asks
            .iter()
            .map(|(key, ask)| {
                let value = match ask {
                    Ask::Form(form) => form.clone(),
                    Ask::Url => Json::literal("1"),
                    Ask::Sampling => Json::literal("2"),
                    Ask::Roots => Json::literal("3"),
                };
                (key.as_str(), value)
            })
            .collect();
        meta::object_of(&members)
    }

    pub(super) fn from_json(owner: &Json, node: Node<'_>) -> Option<Self> {
        let asks = node.members().map(|member| {
            let ask = match (member.value.kind(), member.value.as_i64()) {
                (Kind::Object, _) => Ask::Form(owner.slice(member.value)),
                (_, Some(1)) => Ask::Url,
                (_, Some(2)) => Ask::Sampling,
                (_, Some(3)) => Ask::Roots,
                _ => return None,
            };
            Some((member.key.into_owned(), ask))
        });
        Some(Self {
            asks: asks.collect::<Option<_>>()?,
        })
    }
}

/// What a caller declared, in the words of the newest revision (PROTOCOL A5).
#[expect(clippy::struct_excessive_bools, reason = "each is one capability")]
struct Can {
    form: bool,
    url: bool,
    sampling: bool,
    tools: bool,
    roots: bool,
}

impl Can {
    fn new(capabilities: &ClientCapabilities) -> Self {
        let root = capabilities.json().root();
        let object = |node: Option<Node<'_>>| node.is_some_and(|node| node.kind() == Kind::Object);
        let elicitation = root
            .member("elicitation")
            .filter(|node| node.kind() == Kind::Object);
        let mode = |mode: &str| object(elicitation.and_then(|node| node.member(mode)));
        let sampling = root.member("sampling");
        Self {
            // `{}` says forms and nothing else.
            form: elicitation.is_some() && (mode("form") || !mode("url")),
            url: mode("url"),
            sampling: capabilities.has("sampling"),
            tools: object(sampling.and_then(|node| node.member("tools"))),
            roots: capabilities.has("roots"),
        }
    }

    fn ask(&self, owner: &Json, request: Node<'_>) -> Result<Ask, Fault> {
        const UNDECLARED: Fault = Fault("asked for input that the client did not declare");
        let params = request
            .member("params")
            .filter(|params| params.kind() == Kind::Object);
        match request.member("method").and_then(Node::as_str).as_deref() {
            Some(methods::ELICITATION_CREATE) => {
                let params = params.ok_or(Fault("asked a question without params"))?;
                let text = |key: &str| params.member(key).and_then(Node::as_str);
                text("message").ok_or(Fault("asked a question without a message"))?;
                match text("mode").as_deref() {
                    None | Some("form") if params.member("mode").is_none_or(is_text) => {
                        if !self.form {
                            return Err(UNDECLARED);
                        }
                        let schema = params
                            .member("requestedSchema")
                            .and_then(|schema| form::reduced(&owner.slice(schema)));
                        schema
                            .map(Ask::Form)
                            .ok_or(Fault("asked with a form that is none"))
                    }
                    Some("url") => {
                        if !self.url {
                            return Err(UNDECLARED);
                        }
                        let url = text("url").filter(|url| is_web(url));
                        url.map(|_| Ask::Url)
                            .ok_or(Fault("asked to open something that is no web address"))
                    }
                    _ => Err(Fault("asked a question in an unknown mode")),
                }
            }
            Some(methods::SAMPLING_CREATE) => {
                let params = params.ok_or(Fault("asked for a message without params"))?;
                let messages = params
                    .member("messages")
                    .filter(|messages| messages.kind() == Kind::Array)
                    .ok_or(Fault("asked for a message without messages"))?;
                let uses_tools = params.member("tools").is_some()
                    || params.member("toolChoice").is_some()
                    || messages.elements().any(holds_tools);
                if self.sampling && (self.tools || !uses_tools) {
                    Ok(Ask::Sampling)
                } else {
                    Err(UNDECLARED)
                }
            }
            Some(methods::ROOTS_LIST) if self.roots => Ok(Ask::Roots),
            Some(methods::ROOTS_LIST) => Err(UNDECLARED),
            _ => Err(Fault("asked for a kind of input that does not exist")),
        }
    }
}

fn is_text(node: Node<'_>) -> bool {
    node.kind() == Kind::String
}

/// Whether a message to a model holds the use of a tool, or its result.
fn holds_tools(message: Node<'_>) -> bool {
    let is_tool = |block: Node<'_>| {
        matches!(
            block.member("type").and_then(Node::as_str).as_deref(),
            Some("tool_use" | "tool_result")
        )
    };
    message
        .member("content")
        .is_some_and(|content| is_tool(content) || content.elements().any(is_tool))
}

/// Whether a browser would be sent to a web page: nothing else is shown to a person as a link.
fn is_web(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
        && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{json::Limits, metrics::seen};

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
    }

    fn asked(request: &str, capabilities: &str) -> Result<Asked, Fault> {
        let capabilities = ClientCapabilities::read(json(capabilities)).unwrap();
        Asked::of(
            &json(&format!("{{\"k\":{request}}}")),
            &capabilities,
            &Bounds::default(),
        )
    }

    const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;
    const URL: &str = r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x/"}}"#;
    const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}}"#;
    const TOOLS: &str =
        r#"{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[],"tools":[]}}"#;
    const USED: &str = r#"{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[]}]}]}}"#;
    const ROOTS: &str = r#"{"method":"roots/list"}"#;

    #[test]
    fn only_what_was_declared_may_be_asked() {
        for (request, enough, short) in [
            (
                FORM,
                r#"{"elicitation":{}}"#,
                r#"{"elicitation":{"url":{}}}"#,
            ),
            (
                FORM,
                r#"{"elicitation":{"form":{}}}"#,
                r#"{"sampling":{},"roots":{}}"#,
            ),
            (
                URL,
                r#"{"elicitation":{"url":{}}}"#,
                r#"{"elicitation":{"form":{}}}"#,
            ),
            (
                URL,
                r#"{"elicitation":{"form":{},"url":{}}}"#,
                r#"{"elicitation":{}}"#,
            ),
            (
                SAMPLE,
                r#"{"sampling":{}}"#,
                r#"{"elicitation":{},"roots":{}}"#,
            ),
            (TOOLS, r#"{"sampling":{"tools":{}}}"#, r#"{"sampling":{}}"#),
            (USED, r#"{"sampling":{"tools":{}}}"#, r#"{"sampling":{}}"#),
            (
                ROOTS,
                r#"{"roots":{}}"#,
                r#"{"sampling":{"tools":{}},"elicitation":{}}"#,
            ),
        ] {
            assert!(asked(request, enough).is_ok(), "{request} {enough}");
            assert!(asked(request, short).is_err(), "{request} {short}");
            assert!(asked(request, "{}").is_err(), "{request}");
        }
    }

    #[test]
    fn shapes_that_the_protocol_does_not_have_are_refused() {
        const ALL: &str =
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
        for bad in [
            "3",
            "{}",
            r#"{"method":"ping"}"#,
            r#"{"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"method":"elicitation/create"}"#,
            r#"{"method":"elicitation/create","params":{"message":"m"}}"#,
            r#"{"method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{}}}}"#,
            r#"{"method":"elicitation/create","params":{"mode":"voice","message":"m"}}"#,
            r#"{"method":"elicitation/create","params":{"mode":3,"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#,
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"javascript:x"}}"#,
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://"}}"#,
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"m"}}"#,
            r#"{"method":"sampling/createMessage","params":{}}"#,
        ] {
            assert!(asked(bad, ALL).is_err(), "{bad}");
        }
    }

    #[test]
    fn number_names_and_sizes_are_bounded() {
        let roots = ClientCapabilities::read(json(r#"{"roots":{},"elicitation":{}}"#)).unwrap();
        let bounds = Bounds {
            inputs: 5,
            ..Bounds::default()
        };
        let many = |count: usize| {
            let list: Vec<_> = (0..count).map(|i| format!("\"k{i}\":{ROOTS}")).collect();
            let requests = json(&format!("{{{}}}", list.join(",")));
            seen::take();
            (Asked::of(&requests, &roots, &bounds).is_ok(), seen::take())
        };
        assert_eq!(many(bounds.inputs - 1), (true, vec![]));
        assert_eq!(many(bounds.inputs), (true, vec![]));
        assert_eq!(many(bounds.inputs + 1), (false, vec![Bound::Inputs]));
        let named = |key: &str| {
            let requests = json(&format!("{{\"{key}\":{ROOTS}}}"));
            Asked::of(&requests, &roots, &bounds)
        };
        assert!(named(&"k".repeat(KEY_BYTES)).is_ok());
        assert!(named(&"k".repeat(KEY_BYTES + 1)).is_err());
        assert!(named("dev.usher/consent").is_err(), "ours");
        let own = |key: &str| {
            let requests = json(&format!("{{\"{key}\":{ROOTS}}}"));
            Asked::of_own(&requests, &roots, &bounds)
        };
        assert!(own("dev.usher/consent").is_ok() && own("consent").is_err());
        let form = |length: usize| {
            let choice = "x".repeat(length);
            Asked::of(
                &json(&format!(
                    r#"{{"k":{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{{"type":"string","enum":["{choice}"]}}}}}}}}}}}}"#
                )),
                &roots,
                &bounds,
            )
        };
        assert!(form(FORM_BYTES - 100).is_ok() && form(FORM_BYTES).is_err());
    }

    #[test]
    fn what_was_asked_survives_being_written_down() {
        let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
        let capabilities = ClientCapabilities::read(json(all)).unwrap();
        let text = format!(r#"{{"a":{FORM},"b\n":{URL},"c":{SAMPLE},"d":{ROOTS}}}"#);
        let asked = Asked::of(&json(&text), &capabilities, &Bounds::default()).unwrap();
        let written = asked.to_json();
        assert_eq!(Asked::from_json(&written, written.root()), Some(asked));
        assert!(Asked::from_json(&json(r#"{"k":9}"#), json(r#"{"k":9}"#).root()).is_none());
    }
}
