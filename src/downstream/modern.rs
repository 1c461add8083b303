//! The dialect of the stateless era: every request describes itself, headers mirror the body (PROTOCOL B1 to B3).

use std::sync::Arc;

use http::{HeaderMap, HeaderName, StatusCode};

use super::{
    Door, Inbound, Named,
    exchange::{Exchange, Wording},
    extensions, listen,
    problem::{Problem, resource_not_found},
    read::{self, BadParams, Head},
};
use crate::{
    call::{Affinity, Call, CallId, Caller, InputRequired, LogLevel, Op, Page, ServerCard, State},
    json::{Edits, Fate, Json, Kind, Node},
    jsonrpc::{Request, RpcError},
    memory::{self, Work},
    protocol::{ClientCapabilities, Era, Revision, codes, meta, methods, mirror, mirror::header},
    tasks::clock,
};

/// Speaks the stateless era to clients.
pub(super) struct Modern<'a> {
    pub(super) door: &'a Door,
}

/// Words things for the stateless era.
struct Words;

impl Modern<'_> {
    /// Checks in the order of PROTOCOL B1's table: `_meta`, version header, version, mirrored headers, method.
    pub(super) fn read(
        &self,
        inbound: &Inbound,
        request: &Request,
        params: &Json,
        head: &Head<'_>,
    ) -> Result<(Exchange, Box<Call>), Problem> {
        let described = describe(head, params).map_err(|text| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                Some(request.id.clone()),
                RpcError::new(codes::INVALID_PARAMS, text),
                "invalid_meta",
            )
        })?;
        let revision = agreed_revision(inbound, request, &described.claimed)?;
        let mirrored = inbound
            .headers
            .as_ref()
            .map(|headers| mirrored(headers, request, head))
            .transpose()
            .map_err(|header| mismatch(request, &header))?;
        let capabilities = &described.capabilities;
        let op = operation(inbound, request, params, head, (revision, capabilities))?;
        let resume = read::resume(params, head).map_err(|bad| in_band(request, bad))?;

        // A listen lives for hours, and slices of its request would keep the whole buffer for as long. Addresses may be long, and
        // nothing else bounds them.
        let (id, params, described) = if matches!(op, Op::Listen(_)) {
            let params = params.detached().counted();
            (request.id.detached(), params, described.detached())
        } else {
            (request.id.clone(), params.clone(), described)
        };
        let progress_token = described.progress_token;
        let caller = Caller {
            principal: inbound.identity.principal.clone(),
            revision,
            capabilities: described.capabilities,
            log_level: described.log_level,
            // Its revision must not see the error.
            visits: false,
            // A client without sessions counts as its principal (PRODUCT 6).
            affinity: Affinity {
                key: inbound.identity.principal.shared(),
                ended: None,
            },
        };
        let trail = self.door.trail(inbound, &id, Some(head), None);
        let call = Box::new(Call {
            unasked: false,
            stake: None,
            id: CallId::new(),
            op: op.clone(),
            resume,
            wants_progress: progress_token.is_some(),
            params,
            caller: Arc::new(caller),
            identity: inbound.identity.clone(),
            address: inbound.address,
            scope: inbound.scope.clone(),
            mirrored,
            deadline: clock::now() + self.door.deadline,
            trail: trail.clone(),
        });
        let exchange = Exchange {
            wording: &Words,
            id,
            op,
            revision,
            call: call.id,
            trail,
            progress_token,
            streams: inbound.accepts.stream,
            flight: None,
            converse: None,
        };
        Ok((exchange, call))
    }
}

/// The revision that a request claims, where its header agrees and it is one of this era.
fn agreed_revision(
    inbound: &Inbound,
    request: &Request,
    claimed: &str,
) -> Result<Revision, Problem> {
    let revision = Revision::parse(claimed).filter(|revision| revision.era() == Era::Modern);
    if let Some(headers) = &inbound.headers
        // What was looked up already agrees as a rule.
        && revision.is_none_or(|revision| inbound.named != Named::Revision(revision))
    {
        agree(headers, &header::PROTOCOL_VERSION, Some(claimed))
            .map_err(|header| mismatch(request, &header))?;
    }
    revision.ok_or_else(|| unsupported(request, claimed))
}

/// What a request asks for.
fn operation(
    inbound: &Inbound,
    request: &Request,
    params: &Json,
    head: &Head<'_>,
    (revision, capabilities): (Revision, &ClientCapabilities),
) -> Result<Op, Problem> {
    let op = match &*request.method {
        methods::DISCOVER => Some(Op::Discover),
        methods::LISTEN if !inbound.accepts.stream => {
            return Err(listen::needs_stream(request));
        }
        methods::LISTEN if !memory::process().takes(Work::Stream) => {
            return Err(Problem::no_memory(Some(request.id.clone())));
        }
        methods::LISTEN => {
            let filter = listen::read(request, params, capabilities)?;
            Some(Op::Listen(Arc::new(filter)))
        }
        method => match read::op(method, head) {
            Ok(None) => extensions::op(method, head, revision.features()),
            known => known,
        }
        .map_err(|bad| in_band(request, bad))?,
    };
    op.ok_or_else(|| {
        let error = RpcError::new(codes::METHOD_NOT_FOUND, "no such method in this revision");
        Problem::new(
            StatusCode::NOT_FOUND,
            Some(request.id.clone()),
            error,
            "method_not_found",
        )
    })
}

/// A refusal of params whose message itself was sound.
fn in_band(request: &Request, bad: BadParams) -> Problem {
    Problem {
        status: StatusCode::OK,
        ..bad.problem(Some(request.id.clone()))
    }
}

// As names are compared.
const VERSION: &[u8] = meta::PROTOCOL_VERSION.as_bytes();
const CAPABILITIES: &[u8] = meta::CLIENT_CAPABILITIES.as_bytes();
const CLIENT_INFO: &[u8] = meta::CLIENT_INFO.as_bytes();
const LOG_LEVEL: &[u8] = meta::LOG_LEVEL.as_bytes();
const PROGRESS_TOKEN: &[u8] = meta::PROGRESS_TOKEN.as_bytes();
const META: &[u8] = meta::META.as_bytes();

/// What a request says of itself.
struct Described {
    claimed: String,
    capabilities: ClientCapabilities,
    log_level: Option<LogLevel>,
    progress_token: Option<Json>,
}

impl Described {
    /// The same, apart from the buffer that the request came in.
    fn detached(self) -> Self {
        Self {
            capabilities: self.capabilities.detached(),
            progress_token: self.progress_token.as_ref().map(Json::detached),
            ..self
        }
    }
}

/// Reads the required and optional keys of `_meta` (PROTOCOL A7); the text says what is wrong.
fn describe(head: &Head<'_>, params: &Json) -> Result<Described, String> {
    let meta = head.meta.ok_or_else(|| {
        format!(
            "`params._meta` is missing; it must hold `{}`",
            meta::PROTOCOL_VERSION
        )
    })?;
    let malformed = |key: &str| format!("`_meta` member `{key}` is missing or malformed");
    let (mut claimed, mut capabilities, mut log_level, mut progress_token) =
        (None, None, None, None);
    for member in meta.fields() {
        match &*member.name() {
            // Optional members that clients write as nothing are not there.
            CLIENT_INFO | LOG_LEVEL | PROGRESS_TOKEN if member.value.kind() == Kind::Null => {}
            VERSION => claimed = member.value.as_str().map(std::borrow::Cow::into_owned),
            CAPABILITIES => capabilities = ClientCapabilities::read(params.slice(member.value)),
            CLIENT_INFO if member.value.kind() != Kind::Object => {
                return Err(malformed(meta::CLIENT_INFO));
            }
            LOG_LEVEL => {
                let level = member
                    .value
                    .as_str()
                    .and_then(|level| LogLevel::parse(&level));
                log_level = Some(level.ok_or_else(|| malformed(meta::LOG_LEVEL))?);
            }
            PROGRESS_TOKEN if !matches!(member.value.kind(), Kind::String | Kind::Number) => {
                return Err(malformed(meta::PROGRESS_TOKEN));
            }
            PROGRESS_TOKEN => progress_token = Some(params.slice(member.value)),
            _ => {}
        }
    }
    Ok(Described {
        claimed: claimed.ok_or_else(|| malformed(meta::PROTOCOL_VERSION))?,
        capabilities: capabilities.ok_or_else(|| malformed(meta::CLIENT_CAPABILITIES))?,
        log_level,
        progress_token,
    })
}

/// Compares one mirrored header with the body; names the header on disagreement.
fn agree(headers: &HeaderMap, name: &HeaderName, body: Option<&str>) -> Result<(), String> {
    let agree = match (headers.get(name), body) {
        (None, None) => true,
        (Some(value), Some(text)) => mirror::stands_for(value.as_bytes(), text).unwrap_or(false),
        (Some(_), None) | (None, Some(_)) => false,
    };
    agree.then_some(()).ok_or_else(|| name.as_str().to_owned())
}

/// Checks `Mcp-Method` and `Mcp-Name`, and collects `Mcp-Param-*` decoded, for the gate that knows the tool's schema.
fn mirrored(
    headers: &HeaderMap,
    request: &Request,
    head: &Head<'_>,
) -> Result<Vec<(String, String)>, String> {
    agree(headers, &header::METHOD, Some(&request.method))?;
    if let Some(member) = methods::mirrored_member(&request.method) {
        agree(headers, &header::NAME, head.text(member).as_deref())?;
    }
    let mut params = Vec::new();
    for (name, value) in headers {
        if name.as_str().starts_with(mirror::PARAM_PREFIX) {
            let value =
                mirror::decode(value.as_bytes()).map_err(|_| mirror::PARAM_PREFIX.to_owned())?;
            params.push((name.as_str().to_owned(), value.into_owned()));
        }
    }
    Ok(params)
}

fn mismatch(request: &Request, header: &str) -> Problem {
    let text =
        format!("header `{header}` is missing, badly encoded, or does not agree with the body");
    Problem::new(
        StatusCode::BAD_REQUEST,
        Some(request.id.clone()),
        RpcError::new(codes::HEADER_MISMATCH, text),
        "header_mismatch",
    )
}

fn unsupported(request: &Request, claimed: &str) -> Problem {
    let supported: Vec<_> = Revision::modern()
        .map(|revision| Json::string(revision.as_str()))
        .collect();
    let data = meta::object_of(&[
        ("supported", Json::array(&supported)),
        ("requested", Json::string(claimed)),
    ]);
    let error = RpcError {
        code: codes::UNSUPPORTED_VERSION,
        message: "this protocol version is not served per request".into(),
        data: Some(data),
    };
    Problem::new(
        StatusCode::BAD_REQUEST,
        Some(request.id.clone()),
        error,
        "unsupported_version",
    )
}

/// What every result of ours is.
const COMPLETE: &str = "\"complete\"";
/// `_meta` with nothing but who answers.
const OWN_META: &str = concat!(
    "{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"usher\",\"title\":\"Usher\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}}"
);

/// The `_meta` that every result of ours carries: who answers (PROTOCOL D4, H8).
fn own_meta() -> [(&'static str, Json); 1] {
    [(meta::SERVER_INFO, Json::literal(super::SERVER_INFO))]
}

/// Questions without the ids that 2025-11-25 gave them: this revision has none (PROTOCOL D1).
fn without_elicitation_ids(requests: &Json) -> Json {
    let mut edits = Edits::new();
    for request in requests.root().members() {
        let Some(params) = request.value.member("params") else {
            continue;
        };
        if params.member("elicitationId").is_some() {
            let fate = |key: &str, _: Node<'_>| {
                if key == "elicitationId" {
                    Fate::Remove
                } else {
                    Fate::Keep
                }
            };
            edits.members(params, fate, &[]);
        }
    }
    requests.splice(&edits)
}

impl Wording for Words {
    fn era(&self) -> Era {
        Era::Modern
    }

    fn result(&self, op: &Op, _: Revision, result: Json) -> Json {
        let root = result.root();
        let cacheable = op.may_be_kept();
        let mut edits = Edits::new();
        let (mut typed, mut ttl, mut scoped, mut meta_value) = (false, false, false, None);
        let mut empty = true;
        for member in root.fields() {
            empty = false;
            match &*member.name() {
                b"resultType" => {
                    typed = true;
                    // An older server's word of that name means something else; ours is the one that counts.
                    if member.value.raw() != COMPLETE {
                        edits.replace(member.value, Json::literal(COMPLETE));
                    }
                }
                // What stands in it came over another hop too.
                b"result" if matches!(op, Op::Task(..)) => {
                    meta::rewrite(&mut edits, member.value, &[]);
                }
                b"ttlMs" => ttl = true,
                b"cacheScope" => scoped = true,
                META => meta_value = Some(member.value),
                _ => {}
            }
        }
        let mut more = Vec::with_capacity(4);
        if !typed {
            more.push(("resultType", Json::literal(COMPLETE)));
        }
        // What a legacy upstream does not say has no safe default but "do not keep" (PROTOCOL D5).
        if cacheable && !ttl {
            more.push(("ttlMs", Json::literal("0")));
        }
        if cacheable && !scoped {
            more.push(("cacheScope", Json::literal("\"private\"")));
        }
        let own = own_meta();
        match meta_value {
            Some(value) if value.kind() == Kind::Object => {
                edits.members(value, meta::outgoing, &own);
            }
            Some(value) => edits.replace(value, meta::object_of(&own)),
            None => more.push((meta::META, Json::literal(OWN_META))),
        }
        // Hints of being kept belong to discovery, lists and reads (PROTOCOL A1, D5); a task's `ttlMs` is another (PROTOCOL G35).
        let unkept = matches!(op, Op::CallTool(_) | Op::GetPrompt(_) | Op::Complete(_));
        if unkept && (ttl || scoped) {
            let fate = |key: &str, _: Node<'_>| match key {
                "ttlMs" | "cacheScope" => Fate::Remove,
                _ => Fate::Keep,
            };
            edits.members(root, fate, &more);
        } else {
            edits.append(root, empty, &more);
        }
        result.splice(&edits)
    }

    fn task(&self, task: Json) -> Json {
        let mut edits = Edits::new();
        let fate = |key: &str, _: Node<'_>| match key {
            "resultType" | meta::META => Fate::Remove,
            _ => Fate::Keep,
        };
        let about = match task.root().member(meta::META) {
            Some(about) if about.kind() == Kind::Object => {
                let mut edits = Edits::new();
                let json = task.slice(about);
                edits.members(json.root(), meta::outgoing, &own_meta());
                json.splice(&edits)
            }
            _ => Json::literal(OWN_META),
        };
        let more = [
            ("resultType", Json::literal("\"task\"")),
            (meta::META, about),
        ];
        edits.members(task.root(), fate, &more);
        task.splice(&edits)
    }

    fn input_required(&self, required: &InputRequired) -> Option<Json> {
        let State::Sealed(state) = &required.state else {
            return None;
        };
        let mut members = vec![("resultType", Json::literal("\"input_required\""))];
        let requests = &required.requests;
        if requests.root().members().next().is_some() {
            members.push(("inputRequests", without_elicitation_ids(requests)));
        }
        members.push(("requestState", Json::string(state)));
        members.push((meta::META, meta::object_of(&own_meta())));
        Some(meta::object_of(&members))
    }

    fn failure(&self, op: &Op, mut error: RpcError) -> RpcError {
        // A resource that is not there: whatever an older server called it (PROTOCOL D6).
        if let Op::ReadResource(uri) | Op::GetSkill(uri) | Op::ReadDirectory(uri, _) = op
            && (error.code == codes::RESOURCE_NOT_FOUND || super::is_about(&error, uri))
        {
            error.code = resource_not_found(Era::Modern);
            error.data = Some(meta::object_of(&[("uri", Json::string(uri))]));
        }
        // Whatever else an older server calls so, it is no code of this revision (PROTOCOL A6).
        if error.code == codes::RESOURCE_NOT_FOUND {
            error.code = codes::INVALID_PARAMS;
        }
        super::hop_local(op, error, Era::Modern)
    }

    fn page_head(&self, page: &Page, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"resultType\":\"complete\",");
        super::push_cursor(out, page);
        out.extend_from_slice(b"\"ttlMs\":");
        out.extend_from_slice(itoa::Buffer::new().format(page.ttl_millis).as_bytes());
        out.extend_from_slice(if page.public {
            b",\"cacheScope\":\"public\"".as_slice()
        } else {
            b",\"cacheScope\":\"private\""
        });
        out.extend_from_slice(b",\"_meta\":");
        let lacks = super::lacks(page);
        if lacks.is_empty() {
            out.extend_from_slice(OWN_META.as_bytes());
        } else {
            let all: Vec<_> = own_meta().into_iter().chain(lacks).collect();
            out.extend_from_slice(meta::object_of(&all).bytes());
        }
        out.push(b',');
    }

    fn card(&self, card: &ServerCard, _: Revision) -> Json {
        let versions: Vec<_> = Revision::modern()
            .map(|revision| Json::string(revision.as_str()))
            .collect();
        let mut members = vec![
            ("resultType", Json::literal("\"complete\"")),
            ("supportedVersions", Json::array(&versions)),
            ("capabilities", card.capabilities.clone()),
        ];
        if let Some(instructions) = &card.instructions {
            members.push(("instructions", Json::string(instructions)));
        }
        members.push(("ttlMs", Json::of(&card.ttl_millis)));
        members.push(("cacheScope", Json::literal("\"private\"")));
        members.push((meta::META, meta::object_of(&own_meta())));
        meta::object_of(&members)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        call::{CompletionRef, TaskOp},
        json::Limits,
    };

    fn worded(op: &Op, text: &str) -> String {
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap();
        let out = Words.result(op, Revision::V2026_07_28, json);
        Json::parse(out.bytes().clone(), &Limits::UPSTREAM).unwrap();
        out.as_str().to_owned()
    }

    #[test]
    fn literals_are_json() {
        for literal in [COMPLETE, OWN_META, super::super::SERVER_INFO] {
            Json::parse(Bytes::from_static(literal.as_bytes()), &Limits::CLIENT).unwrap();
        }
        assert_eq!(OWN_META, meta::object_of(&own_meta()).as_str());
    }

    #[test]
    fn what_of_meta_is_optional_may_be_null_and_what_is_required_may_not() {
        let described = |version: &str| {
            let text = format!(
                r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":{version},"io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":null,"io.modelcontextprotocol/logLevel":null,"progressToken":null}}}}"#
            );
            let params = Json::parse(text.into(), &Limits::CLIENT).unwrap();
            let head = read::head(methods::TOOLS_LIST, &params).ok().unwrap();
            describe(&head, &params)
        };
        let told = described("\"2026-07-28\"").unwrap();
        assert!(told.log_level.is_none() && told.progress_token.is_none());
        assert!(described("null").is_err());
    }

    #[test]
    fn results_get_what_the_revision_owes_and_keep_the_rest_byte_for_byte() {
        let tool = Op::CallTool("t".into());
        assert_eq!(
            worded(&tool, r#"{"content": [],"x":1.0}"#),
            format!(r#"{{"content": [],"x":1.0,"resultType":"complete","_meta":{OWN_META}}}"#)
        );
        let told = worded(
            &tool,
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"},"v":1},"resultType":"mine"}"#,
        );
        assert!(told.starts_with(
            r#"{"_meta":{"v":1,"io.modelcontextprotocol/serverInfo":{"name":"usher""#
        ));
        assert!(told.ends_with(r#""resultType":"complete"}"#));
    }

    #[test]
    fn a_question_is_a_result_of_its_own_kind_with_the_sealed_state() {
        let text = r#"{"k":{"method":"elicitation/create","params":{"elicitationId":"e","mode":"url","url":"https://x","message":"m"}},"r":{"method":"roots/list"}}"#;
        let requests = Json::parse(Bytes::from_static(text.as_bytes()), &Limits::CLIENT).unwrap();
        let told = |requests: &Json, state| {
            Words.input_required(&InputRequired {
                requests: requests.clone(),
                state,
                hold: None,
            })
        };
        let sealed = || State::Sealed("s".into());
        assert_eq!(
            told(&requests, sealed()).unwrap().as_str(),
            format!(
                r#"{{"resultType":"input_required","inputRequests":{},"requestState":"s","_meta":{OWN_META}}}"#,
                text.replace(r#""elicitationId":"e","#, "")
            )
        );
        assert_eq!(
            told(&Json::empty_object(), sealed()).unwrap().as_str(),
            format!(r#"{{"resultType":"input_required","requestState":"s","_meta":{OWN_META}}}"#)
        );
        assert!(
            told(&requests, State::Upstream(None)).is_none(),
            "never unsealed"
        );
    }

    #[test]
    fn what_is_no_read_has_no_hints_and_keeps_the_rest_byte_for_byte() {
        let hinted = r#"{"ttlMs":7,"content": [],"cacheScope" : "public","_meta":{"v":1},"x":{"ttlMs":1.0}}"#;
        let completion = CompletionRef::Prompt("p".into());
        for op in [
            Op::CallTool("t".into()),
            Op::GetPrompt("p".into()),
            Op::Complete(completion),
        ] {
            let own = &OWN_META[1..];
            assert_eq!(
                worded(&op, hinted),
                format!(
                    r#"{{"content": [],"_meta":{{"v":1,{own},"x":{{"ttlMs":1.0}},"resultType":"complete"}}"#
                )
            );
            assert_eq!(
                worded(&op, r#"{"resultType":"complete","ttlMs":7}"#),
                format!(r#"{{"resultType":"complete","_meta":{OWN_META}}}"#)
            );
        }
        // The lifetime of a task is no hint.
        let task = Op::Task(TaskOp::Get, "h".into());
        assert!(worded(&task, r#"{"taskId":"h","ttlMs":7}"#).contains(r#""ttlMs":7"#));
    }

    #[test]
    fn a_read_that_came_without_hints_must_not_be_kept() {
        let read = Op::ReadResource("a://x".into());
        assert!(
            worded(&read, r#"{"contents":[]}"#).contains(r#""ttlMs":0,"cacheScope":"private""#)
        );
        let hinted = worded(&read, r#"{"contents":[],"ttlMs":7,"cacheScope":"public"}"#);
        assert!(
            hinted.contains(r#""ttlMs":7,"cacheScope":"public""#) && !hinted.contains("private")
        );
    }
}
