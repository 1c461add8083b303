//! What a server may ask of a caller: said in the caller's name, and held against what the server then asks.
//! See PROTOCOL D0.2, D2.
//!
//! Guarantees: nothing is declared that the caller did not declare or that does not get through to it; a question that was
//! not offered, or is none, reaches nobody (SECURITY STATE-3); no server gets the context of another (PROTOCOL F18); nobody is
//! sent to an address by a server that takes others for them (PROTOCOL F9).
//! Deliberately absent: extensions but for apps, which a session declares once, and whether policy lets this server ask this caller.

use std::sync::OnceLock;

use super::{UpstreamError, terms::Terms};
use crate::{
    call::{Call, Caller, InputRequired, State},
    json::{Edits, Fate, Json, Kind, Node},
    metrics::{Bound, reached},
    protocol::{Revision, codes, extensions, methods},
    resume::Bounds,
};

/// What may be asked of one caller, and whether it shows apps: a set of capabilities, small enough to be part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Offer(u8);

/// Why a question is not passed on; the code is what a legacy server is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotOffered {
    /// The capability, or the method altogether.
    #[error("the client did not declare this capability")]
    Capability,
    /// The mode or a part of the capability.
    #[error("the client did not declare this mode of the capability")]
    Mode,
    /// What is asked is not a question at all.
    #[error("the params are missing or malformed")]
    Malformed,
}

impl NotOffered {
    /// The JSON-RPC code.
    pub(super) const fn code(self) -> i64 {
        match self {
            Self::Capability => codes::METHOD_NOT_FOUND,
            Self::Mode | Self::Malformed => codes::INVALID_PARAMS,
        }
    }
}

impl Offer {
    /// Nothing.
    pub(super) const NONE: Self = Self(0);
    /// Nothing may be asked; for a session that carries calls of many, of whom some show apps.
    pub(super) const SHOWING: Self = Self(Self::APPS);
    /// Everything: for a session that lists and carries no call, since some servers list only what their client could be
    /// asked for (PROTOCOL J6). What is asked on it belongs to no call and is refused at once (PROTOCOL D0.4).
    pub(super) const LISTING: Self = Self(
        Self::ELICITATION
            | Self::FORM
            | Self::URL
            | Self::SAMPLING
            | Self::TOOLS
            | Self::ROOTS
            | Self::APPS,
    );

    const ELICITATION: u8 = 1;
    const FORM: u8 = 1 << 1;
    const URL: u8 = 1 << 2;
    const SAMPLING: u8 = 1 << 3;
    const TOOLS: u8 = 1 << 4;
    const ROOTS: u8 = 1 << 5;
    /// Apps are shown: servers may list a tool with its app only to those who say so.
    const APPS: u8 = 1 << 6;
    const SETS: usize = 1 << 7;

    /// What the upstream of these terms may ask of whoever makes `call`.
    pub(super) fn to(terms: &Terms, call: &Call) -> Self {
        let declared = Self::of(&call.caller);
        if terms.is_one_for_all(&call.identity) {
            declared.without_url()
        } else {
            declared
        }
    }

    /// What `caller` declared, less what its revision has no words for (PROTOCOL A5, D2b). `sampling.context` is never among
    /// it: the context that a client could add is of all upstreams, so none is ever asked for (PROTOCOL F18).
    fn of(caller: &Caller) -> Self {
        let declared = caller.capabilities.json();
        // The empty object, which is by far the most common.
        if declared.len() == 2 {
            return Self::NONE;
        }
        let (modes, elicits) = (
            caller.revision >= Revision::V2025_11_25,
            caller.revision >= Revision::V2025_06_18,
        );
        let mut set = 0;
        for capability in declared.root().members() {
            if capability.value.kind() != Kind::Object {
                continue;
            }
            let has = |part: &str| {
                let part = capability.value.member(part);
                part.is_some_and(|part| part.kind() == Kind::Object)
            };
            match &*capability.key {
                "elicitation" if elicits => {
                    set |= Self::ELICITATION;
                    if modes && has("form") {
                        set |= Self::FORM;
                    }
                    if modes && has("url") {
                        set |= Self::URL;
                    }
                }
                "sampling" => {
                    set |= Self::SAMPLING;
                    if modes && has("tools") {
                        set |= Self::TOOLS;
                    }
                }
                "roots" => set |= Self::ROOTS,
                _ => {}
            }
        }
        Self(set)
    }

    /// The same without addresses. Who can be sent to those alone is asked nothing of that kind: a capability without a mode
    /// is one of forms.
    const fn without_url(self) -> Self {
        let kind = if self.has(Self::URL) && !self.has(Self::FORM) {
            Self::ELICITATION
        } else {
            0
        };
        Self(self.0 & !Self::URL & !kind)
    }

    /// The same in the words of revision 2025-06-18, which knows no modes of a capability: for servers that refuse what they do
    /// not know. Who can be sent to addresses alone is asked nothing of that kind.
    pub(super) const fn plain(self) -> Self {
        let less = self.without_url();
        Self(less.0 & !Self::FORM & !Self::TOOLS)
    }

    /// [`Offer::to`] for a whole session, which declares beside it once and for all that apps are shown, where they are.
    pub(super) fn of_session(terms: &Terms, call: &Call) -> Self {
        let shows = extensions::declares_apps(&call.caller.capabilities);
        let asked = Self::to(terms, call);
        if shows {
            Self(asked.0 | Self::APPS)
        } else {
            asked
        }
    }

    /// Whether nothing may be asked.
    pub(super) const fn is_none(self) -> bool {
        self.0 & !Self::APPS == 0
    }

    /// What is in both. A capability without a mode is one of forms, so one of which no mode is left is in neither.
    pub(super) const fn and(self, other: Self) -> Self {
        let both = Self(self.0 & other.0);
        if both.has(Self::URL) || (self.has_form() && other.has_form()) {
            return both;
        }
        Self(both.0 & !Self::ELICITATION & !Self::FORM)
    }

    /// Whether URLs may be shown.
    pub(super) const fn has_url(self) -> bool {
        self.has(Self::URL)
    }

    const fn has(self, part: u8) -> bool {
        self.0 & part != 0
    }

    const fn has_form(self) -> bool {
        self.has(Self::ELICITATION) && (self.has(Self::FORM) || !self.has(Self::URL))
    }

    /// The `ClientCapabilities` object that says so. Each of the few there are is spelled once and then shared.
    pub(super) fn json(self) -> Json {
        static SPELLED: [OnceLock<Json>; Offer::SETS] = [const { OnceLock::new() }; Offer::SETS];
        SPELLED
            .get(usize::from(self.0))
            .map_or_else(Json::empty_object, |json| {
                json.get_or_init(|| self.spell()).clone()
            })
    }

    fn spell(self) -> Json {
        let object = |parts: &[(&str, u8)]| {
            let parts: Vec<_> = parts
                .iter()
                .filter(|(_, part)| self.has(*part))
                .map(|(name, _)| (*name, Json::empty_object()))
                .collect();
            crate::protocol::meta::object_of(&parts)
        };
        let mut all = Vec::new();
        if self.has(Self::ELICITATION) {
            let modes = object(&[("form", Self::FORM), ("url", Self::URL)]);
            all.push(("elicitation", modes));
        }
        if self.has(Self::SAMPLING) {
            all.push(("sampling", object(&[("tools", Self::TOOLS)])));
        }
        if self.has(Self::ROOTS) {
            all.push(("roots", Json::empty_object()));
        }
        if self.has(Self::APPS) {
            all.push((extensions::MEMBER, extensions::shown()));
        }
        crate::protocol::meta::object_of(&all)
    }

    /// Whether a server to which this was declared may ask `method` with `params`.
    ///
    /// # Errors
    /// [`NotOffered`].
    pub(super) fn allows(self, method: &str, params: Option<Node<'_>>) -> Result<(), NotOffered> {
        let member = |key| params.and_then(|params| params.member(key));
        if params.is_some_and(|params| params.kind() != Kind::Object) {
            return Err(NotOffered::Malformed);
        }
        match method {
            methods::ELICITATION_CREATE if self.has(Self::ELICITATION) => {
                let mode = match member("mode") {
                    None => None,
                    Some(mode) => Some(mode.as_str().ok_or(NotOffered::Malformed)?),
                };
                match mode.as_deref() {
                    None | Some("form") if !self.has_form() => Err(NotOffered::Mode),
                    None | Some("form") => member("requestedSchema")
                        .filter(|schema| schema.kind() == Kind::Object)
                        .map(|_| ())
                        .ok_or(NotOffered::Malformed),
                    Some("url") if self.has_url() => member("url")
                        .and_then(Node::as_str)
                        .map(|_| ())
                        .ok_or(NotOffered::Malformed),
                    Some(_) => Err(NotOffered::Mode),
                }
            }
            methods::SAMPLING_CREATE if self.has(Self::SAMPLING) => {
                if member("messages").is_none_or(|messages| messages.kind() != Kind::Array) {
                    return Err(NotOffered::Malformed);
                }
                let tools = member("tools").is_some() || member("toolChoice").is_some();
                if tools && !self.has(Self::TOOLS) {
                    return Err(NotOffered::Mode);
                }
                Ok(())
            }
            methods::ROOTS_LIST if self.has(Self::ROOTS) => Ok(()),
            _ => Err(NotOffered::Capability),
        }
    }
}

/// Asks for no context of other servers (PROTOCOL F18): an edit of the params of a `sampling/createMessage`.
pub(super) fn without_context(edits: &mut Edits, params: Node<'_>) {
    if let Some(context) = params.member("includeContext")
        && context.as_str().as_deref() != Some("none")
    {
        edits.replace(context, Json::string("none"));
    }
}

/// Names no page: this revision has no ids of pages, and one that came all the same could be that of another server's page.
fn without_page(edits: &mut Edits, params: Node<'_>) {
    let fate = |key: &str, _: Node<'_>| match key {
        "elicitationId" => Fate::Remove,
        _ => Fate::Keep,
    };
    edits.members(params, fate, &[]);
}

/// Whether the state of a task sends its caller to an address.
pub(super) fn sends_somewhere(state: &Json) -> bool {
    let asked = state.root().member("inputRequests");
    asked.into_iter().flat_map(Node::members).any(|request| {
        let mode = request
            .value
            .member("params")
            .and_then(|it| it.member("mode"));
        mode.and_then(Node::as_str).as_deref() == Some("url")
    })
}

/// The capability that a question needs.
fn capability_for(method: &str) -> Option<&'static str> {
    match method {
        methods::ELICITATION_CREATE => Some("elicitation"),
        methods::SAMPLING_CREATE => Some("sampling"),
        methods::ROOTS_LIST => Some("roots"),
        _ => None,
    }
}

/// Reads a result of type `input_required`.
///
/// # Errors
/// [`UpstreamError::Protocol`] when it is none, [`UpstreamError::Undeclared`] when it asks for what was not offered.
pub(super) fn input_required(
    result: &Json,
    offer: Offer,
    bounds: &Bounds,
) -> Result<InputRequired, UpstreamError> {
    let broken = |what: &str| UpstreamError::Protocol(format!("`input_required`: {what}"));
    let (mut asked, mut state) = (None, None);
    for member in result.root().members() {
        match &*member.key {
            "inputRequests" => asked = Some(member.value),
            "requestState" => state = Some(member.value),
            _ => {}
        }
    }
    if asked.is_none() && state.is_none() {
        return Err(broken("neither a question nor a state"));
    }
    let state = match state {
        None => None,
        Some(node) if node.kind() != Kind::String => return Err(broken("a state that is no text")),
        Some(node) if !bounds.hold_state(node) => {
            reached(Bound::RequestState);
            return Err(broken("a state over its limit"));
        }
        Some(node) => Some(result.slice(node)),
    };
    let requests = asked.map_or_else(Json::empty_object, |asked| result.slice(asked));
    if requests.root().kind() != Kind::Object {
        return Err(broken("questions that are no object"));
    }
    if requests.root().members().count() > bounds.inputs {
        reached(Bound::Inputs);
        return Err(broken("more questions than can be passed on at a time"));
    }
    let mut edits = Edits::new();
    for request in requests.root().members() {
        let method = request.value.member("method").and_then(Node::as_str);
        let params = request.value.member("params");
        let allowed = method
            .as_ref()
            .ok_or(NotOffered::Malformed)
            .and_then(|method| offer.allows(method, params));
        allowed.map_err(|why| {
            let capability = method.as_deref().and_then(capability_for);
            match capability.filter(|_| why == NotOffered::Capability) {
                Some(capability) => UpstreamError::Undeclared(capability),
                None => broken(&why.to_string()),
            }
        })?;
        if let Some(params) = params {
            match method.as_deref() {
                Some(methods::SAMPLING_CREATE) => without_context(&mut edits, params),
                Some(methods::ELICITATION_CREATE) => without_page(&mut edits, params),
                _ => {}
            }
        }
    }
    Ok(InputRequired {
        requests: requests.splice(&edits),
        state: State::Upstream(state),
        hold: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json::Limits,
        protocol::ClientCapabilities,
        upstream::scripted::{a_caller, a_tool_call, an_address, terms},
    };

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned().into(), &Limits::UPSTREAM).unwrap()
    }

    fn offer(declared: &str, revision: Revision) -> Offer {
        Offer::of(&Caller {
            capabilities: ClientCapabilities::read(json(declared)).unwrap(),
            revision,
            ..a_caller("k")
        })
    }

    const MODERN: Revision = Revision::V2026_07_28;

    #[test]
    fn what_is_declared_is_the_part_of_the_callers_that_gets_through() {
        let all = r#"{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{"x":1}},"elicitation":{"url":{},"form":{},"voice":{}},"extensions":{"a/b":{}},"tasks":{}}"#;
        for (declared, revision, want) in [
            ("{}", MODERN, "{}"),
            (
                all,
                MODERN,
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#,
            ),
            (
                all,
                Revision::V2025_11_25,
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#,
            ),
            (
                all,
                Revision::V2025_06_18,
                r#"{"elicitation":{},"sampling":{},"roots":{}}"#,
            ),
            (all, Revision::V2025_03_26, r#"{"sampling":{},"roots":{}}"#),
            (
                r#"{"elicitation":{}, "sampling":true}"#,
                MODERN,
                r#"{"elicitation":{}}"#,
            ),
            (r#"{"extensions":{"a/b":{}}}"#, MODERN, "{}"),
        ] {
            assert_eq!(offer(declared, revision).json().as_str(), want);
        }
        assert!(offer(r#"{"extensions":{}}"#, MODERN).is_none());
        let shows = |declared| {
            let caller = Caller {
                capabilities: ClientCapabilities::read(json(declared)).unwrap(),
                ..a_caller("k")
            };
            let call = Call {
                caller: caller.into(),
                ..a_tool_call()
            };
            let shows = Offer::of_session(&terms(&an_address()), &call);
            (shows.is_none(), shows.json().as_str().to_owned())
        };
        let apps = r#""extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;
        assert_eq!(shows(r#"{"extensions":{"a/b":{}}}"#), (true, "{}".into()));
        let declared = r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#;
        assert_eq!(shows(declared), (true, format!("{{{apps}}}")));
        let declared = r#"{"roots":{},"extensions":{"io.modelcontextprotocol/ui":{}}}"#;
        assert_eq!(
            shows(declared),
            (false, format!(r#"{{"roots":{{}},{apps}}}"#))
        );
    }

    #[test]
    fn nobody_who_can_be_sent_to_an_address_alone_is_asked_for_forms_instead() {
        for (declared, left) in [
            ("{}", "{}"),
            (r#"{"elicitation":{}}"#, r#"{"elicitation":{}}"#),
            (
                r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#,
                r#"{"elicitation":{"form":{}},"roots":{}}"#,
            ),
            (
                r#"{"elicitation":{"url":{}},"roots":{}}"#,
                r#"{"roots":{}}"#,
            ),
        ] {
            let less = offer(declared, MODERN).without_url();
            assert_eq!(less.json().as_str(), left, "{declared}");
        }
    }

    #[test]
    fn what_is_declared_to_a_server_that_balks_at_modes_has_none() {
        for (declared, left) in [
            ("{}", "{}"),
            (
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#,
                r#"{"elicitation":{},"sampling":{},"roots":{}}"#,
            ),
            (r#"{"elicitation":{"form":{}}}"#, r#"{"elicitation":{}}"#),
            (
                r#"{"elicitation":{"url":{}},"sampling":{}}"#,
                r#"{"sampling":{}}"#,
            ),
        ] {
            let plain = offer(declared, MODERN).plain();
            assert_eq!(plain.json().as_str(), left, "{declared}");
            assert_eq!(plain.plain(), plain);
        }
        let plain = Offer::LISTING.plain();
        for (able, forms) in [
            (r#"{"elicitation":{}}"#, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true),
            (r#"{"elicitation":{"url":{}}}"#, false),
        ] {
            let both = plain.and(offer(able, MODERN));
            assert_eq!((both.has_form(), both.has_url()), (forms, false), "{able}");
        }
    }

    #[test]
    fn only_what_was_offered_may_be_asked() {
        use methods::{ELICITATION_CREATE as E, ROOTS_LIST as R, SAMPLING_CREATE as S};
        const FORM: &str = r#"{"message":"m","requestedSchema":{}}"#;
        const URL: &str = r#"{"mode":"url","message":"m","url":"https://a"}"#;
        const TOOLS: &str = r#"{"messages":[],"tools":[]}"#;
        let cases = [
            ("{}", E, FORM, Err(NotOffered::Capability)),
            (r#"{"elicitation":{}}"#, E, FORM, Ok(())),
            (r#"{"elicitation":{}}"#, E, URL, Err(NotOffered::Mode)),
            (
                r#"{"elicitation":{"url":{}}}"#,
                E,
                FORM,
                Err(NotOffered::Mode),
            ),
            (r#"{"elicitation":{"url":{}}}"#, E, URL, Ok(())),
            (
                r#"{"elicitation":{"url":{}}}"#,
                E,
                r#"{"mode":"url"}"#,
                Err(NotOffered::Malformed),
            ),
            (
                r#"{"elicitation":{}}"#,
                E,
                r#"{"mode":7}"#,
                Err(NotOffered::Malformed),
            ),
            (
                r#"{"elicitation":{}}"#,
                E,
                r#"{"mode":"voice"}"#,
                Err(NotOffered::Mode),
            ),
            (
                r#"{"elicitation":{}}"#,
                S,
                "{}",
                Err(NotOffered::Capability),
            ),
            (r#"{"sampling":{}}"#, S, r#"{"messages":[]}"#, Ok(())),
            (r#"{"sampling":{}}"#, S, "{}", Err(NotOffered::Malformed)),
            (r#"{"sampling":{}}"#, S, TOOLS, Err(NotOffered::Mode)),
            (r#"{"sampling":{"tools":{}}}"#, S, TOOLS, Ok(())),
            (r#"{"roots":{}}"#, R, "{}", Ok(())),
            (r#"{"roots":{}}"#, R, "[]", Err(NotOffered::Malformed)),
            (
                r#"{"roots":{}}"#,
                "tasks/get",
                "{}",
                Err(NotOffered::Capability),
            ),
        ];
        for (declared, method, params, want) in cases {
            let allowed = offer(declared, MODERN).allows(method, Some(json(params).root()));
            assert_eq!(allowed, want, "{declared} {method} {params}");
        }
    }

    #[test]
    fn questions_and_state_are_taken_as_they_came_and_nothing_malformed_is() {
        let all = offer(r#"{"sampling":{},"roots":{}}"#, MODERN);
        let read = |text: &str| input_required(&json(text), all, &Bounds::default());
        let fine = read(
            r#"{"resultType":"input_required","requestState":"a\u0062/","inputRequests":{ "k":{"method":"roots/list"} }}"#,
        );
        let fine = fine.unwrap();
        assert_eq!(fine.requests.as_str(), r#"{ "k":{"method":"roots/list"} }"#);
        assert_eq!(fine.state, State::Upstream(Some(json(r#""a\u0062/""#))));
        let stateless = read(r#"{"inputRequests":{}}"#).unwrap();
        assert_eq!(stateless.state, State::Upstream(None));
        let bare = read(r#"{"requestState":""}"#).unwrap();
        assert_eq!(bare.requests.as_str(), "{}");
        assert_eq!(bare.state, State::Upstream(Some(json(r#""""#))));
        let context = read(
            r#"{"inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[],"includeContext":"allServers"}}}}"#,
        );
        assert!(
            context
                .unwrap()
                .requests
                .as_str()
                .contains(r#""includeContext":"none""#)
        );
        let url = offer(r#"{"elicitation":{"url":{}}}"#, MODERN);
        let page = json(
            r#"{"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"notes/7","message":"m","url":"https://a"}}}}"#,
        );
        let page = input_required(&page, url, &Bounds::default()).unwrap();
        assert_eq!(
            page.requests.as_str(),
            r#"{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a"}}}"#
        );
        let many: Vec<_> = (0..9)
            .map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#))
            .collect();
        for broken in [
            "{}".to_owned(),
            r#"{"requestState":null}"#.to_owned(),
            r#"{"inputRequests":[]}"#.to_owned(),
            r#"{"inputRequests":{"k":1}}"#.to_owned(),
            r#"{"inputRequests":{"k":{"method":"tools/call"}}}"#.to_owned(),
            r#"{"inputRequests":{"k":{"method":"elicitation/create","params":{"requestedSchema":{}}}}}"#.to_owned(),
            format!(r#"{{"requestState":"{}"}}"#, "a".repeat((16 << 10) + 1)),
            format!(r#"{{"requestState":"{}"}}"#, r"\u0061".repeat(9 << 10)),
            format!(r#"{{"inputRequests":{{{}}}}}"#, many.join(",")),
        ] {
            let read = read(&broken);
            let refused = matches!(read, Err(UpstreamError::Protocol(_) | UpstreamError::Undeclared("elicitation")));
            assert!(refused, "{broken}");
        }
        for full in ["a".repeat(16 << 10), r#"\""#.repeat(16 << 10)] {
            let read = read(&format!(r#"{{"requestState":"{full}"}}"#));
            assert!(read.is_ok(), "{read:?}");
        }
    }
}
