//! What is answered: unasked keys go no further, values must be what the question's result may be (SECURITY STATE-3).

use super::{Ask, Asked, form};
use crate::json::{Edits, Fate, Json, Kind, Node};

/// An answer that does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer to an input does not fit")]
pub struct BadAnswer {
    /// The question's key, where it is about one.
    pub key: Option<String>,
}

impl Asked {
    /// The answers that were asked for, everything else cut out; shared and uncopied when there is nothing to cut.
    ///
    /// # Errors
    /// [`BadAnswer`] when `responses` is no object, or one of them is not a result that its question may have.
    pub fn answers(&self, responses: &Json) -> Result<Json, BadAnswer> {
        if responses.root().kind() != Kind::Object {
            return Err(BadAnswer { key: None });
        }
        let mut bad = None;
        let mut edits = Edits::new();
        edits.members(
            responses.root(),
            |key, value| {
                let Some((_, ask)) = self.asks.iter().find(|(asked, _)| asked == key) else {
                    return Fate::Remove;
                };
                match ask.fate(responses, value) {
                    Some(fate) => fate,
                    None => {
                        bad.get_or_insert_with(|| key.to_owned());
                        Fate::Keep
                    }
                }
            },
            &[],
        );
        match bad {
            Some(key) => Err(BadAnswer { key: Some(key) }),
            None => Ok(responses.splice(&edits)),
        }
    }

    /// Whether something was asked, and each question has an answer in `responses`, which [`Self::answers`] let through.
    pub fn is_answered_by(&self, responses: &Json) -> bool {
        let root = responses.root();
        !self.is_empty() && self.asks.iter().all(|(key, _)| root.member(key).is_some())
    }
}

impl Ask {
    /// What becomes of an answer; `None` when it does not fit.
    fn fate(&self, owner: &Json, answer: Node<'_>) -> Option<Fate> {
        if answer.kind() != Kind::Object {
            return None;
        }
        let text = |key: &str| answer.member(key).and_then(Node::as_str);
        match self {
            Self::Form(_) | Self::Url => {
                let content = answer.member("content");
                match (text("action").as_deref()?, self) {
                    ("accept", Self::Form(form)) => {
                        form::accepts(form, content).then_some(Fate::Keep)
                    }
                    // Content means something beside an accepted form only; what nobody checked goes no further.
                    ("accept" | "decline" | "cancel", _) if content.is_some() => {
                        Some(Fate::Replace(without_content(owner, answer)))
                    }
                    ("accept" | "decline" | "cancel", _) => Some(Fate::Keep),
                    _ => None,
                }
            }
            Self::Sampling => {
                let content = answer.member("content")?;
                let is_block = |block: Node<'_>| {
                    block
                        .member("type")
                        .is_some_and(|kind| kind.kind() == Kind::String)
                };
                let blocks = match content.kind() {
                    Kind::Object => is_block(content),
                    Kind::Array => content.elements().all(is_block),
                    Kind::String | Kind::Number | Kind::Bool | Kind::Null => false,
                };
                let spoken = matches!(text("role").as_deref(), Some("user" | "assistant"));
                (blocks && spoken && text("model").is_some()).then_some(Fate::Keep)
            }
            Self::Roots => {
                let roots = answer
                    .member("roots")
                    .filter(|roots| roots.kind() == Kind::Array)?;
                roots
                    .elements()
                    .all(|root| root.member("uri").and_then(Node::as_str).is_some())
                    .then_some(Fate::Keep)
            }
        }
    }
}

fn without_content(owner: &Json, answer: Node<'_>) -> Json {
    let answer = owner.slice(answer);
    let mut edits = Edits::new();
    edits.members(
        answer.root(),
        |key, _| {
            if key == "content" {
                Fate::Remove
            } else {
                Fate::Keep
            }
        },
        &[],
    );
    answer.splice(&edits)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::json::Limits;

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap()
    }

    fn asked() -> Asked {
        let form = json(r#"{"p":{"n":{"t":"string"}},"r":["n"]}"#);
        let asks = [
            ("form", Ask::Form(form)),
            ("url", Ask::Url),
            ("model", Ask::Sampling),
            ("roots", Ask::Roots),
        ];
        Asked {
            asks: asks.map(|(key, ask)| (key.to_owned(), ask)).into(),
        }
    }

    #[test]
    fn answers_nobody_asked_for_are_cut_out_and_the_rest_stays_byte_for_byte() {
        for (given, left) in [
            (
                r#"{ "form" : {"action":"decline"} , "other":{"x":1}}"#,
                r#"{ "form" : {"action":"decline"}}"#,
            ),
            (
                r#"{"other":{},"url":{"action":"accept"},"more":3}"#,
                r#"{"url":{"action":"accept"}}"#,
            ),
            (r#"{"Form":{"action":"accept"}}"#, "{}"),
            ("{}", "{}"),
        ] {
            assert_eq!(asked().answers(&json(given)).unwrap().as_str(), left);
        }
        let whole = json(
            r#"{"form":{"action":"accept","content":{"n":"x"}},"roots":{"roots":[{"uri":"file:///a"}]}}"#,
        );
        let same = asked().answers(&whole).unwrap();
        assert_eq!(same.bytes().as_ptr(), whole.bytes().as_ptr());
    }

    proptest! {
        #[test]
        fn only_asked_keys_are_left_in_any_mixture(
            keys in Just(vec!["form", "url", "a", "b", "roots"]).prop_shuffle(),
            take in 0_usize..6,
        ) {
            let value = |key: &str| match key {
                "form" => r#"{ "action":"accept","content":{"n":"x"} }"#,
                "url" => r#"{"action":"decline","content":{}}"#,
                "roots" => r#"{"roots":[]}"#,
                _ => r#"{"x":[1.0]}"#,
            };
            let members: Vec<_> = keys[..take].iter().map(|key| format!("\"{key}\":{}", value(key))).collect();
            let left = asked().answers(&json(&format!("{{{}}}", members.join(" , ")))).unwrap();
            let left = json(left.as_str());
            let found: Vec<_> = left.root().members().map(|member| member.key.into_owned()).collect();
            let want: Vec<_> = keys[..take].iter().copied().filter(|key| key.len() > 1).collect();
            prop_assert_eq!(found, want);
        }
    }

    #[test]
    fn content_beside_anything_but_an_accepted_form_is_cut_out() {
        let given = r#"{"form":{"action":"cancel","content":{"secret":{}}},"url":{"content":1,"action":"accept"}}"#;
        assert_eq!(
            asked().answers(&json(given)).unwrap().as_str(),
            r#"{"form":{"action":"cancel"},"url":{"action":"accept"}}"#
        );
    }

    #[test]
    fn answers_that_do_not_fit_name_their_key() {
        for (given, key) in [
            (r#"{"form":{"action":"accept"}}"#, "form"),
            (r#"{"form":{"action":"accept","content":{"n":1}}}"#, "form"),
            (r#"{"form":{"action":"yes"}}"#, "form"),
            (r#"{"form":{}}"#, "form"),
            (r#"{"form":"accept"}"#, "form"),
            (r#"{"url":{"action":null}}"#, "url"),
            (
                r#"{"model":{"role":"assistant","content":{"type":"text","text":"t"}}}"#,
                "model",
            ),
            (
                r#"{"model":{"role":"root","model":"m","content":{"type":"text","text":"t"}}}"#,
                "model",
            ),
            (
                r#"{"model":{"role":"user","model":"m","content":"t"}}"#,
                "model",
            ),
            (
                r#"{"model":{"role":"user","model":"m","content":[{"text":"t"}]}}"#,
                "model",
            ),
            (r#"{"roots":{}}"#, "roots"),
            (r#"{"roots":{"roots":[{}]}}"#, "roots"),
            (r#"{"roots":{"roots":{"uri":"x"}}}"#, "roots"),
        ] {
            let bad = asked().answers(&json(given)).unwrap_err();
            assert_eq!(bad.key.as_deref(), Some(key), "{given}");
        }
        assert_eq!(asked().answers(&json("[]")).unwrap_err().key, None);
        for good in [
            r#"{"model":{"role":"assistant","model":"m","content":{"type":"text","text":"t"},"stopReason":"endTurn"}}"#,
            r#"{"model":{"role":"assistant","model":"m","content":[{"type":"tool_use","id":"1","name":"n","input":{}}]}}"#,
            r#"{"roots":{"roots":[]}}"#,
        ] {
            assert!(asked().answers(&json(good)).is_ok(), "{good}");
        }
    }
}
