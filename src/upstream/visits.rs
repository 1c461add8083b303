//! URLs that a user is asked to visit: their ids across hops, and error -32042 of 2025-11-25 (PROTOCOL D1, D2d).
//!
//! Guarantees: an elicitation's id, which is unique within one server only, is told to clients with its upstream's key before
//! it, wherever it appears; a client of the newer era gets questions, and never the error, which its revision forbids; nor does
//! one of a revision that was before the error, one that never said that it shows URLs, or one that the upstream may not ask.

use super::{NoVisit, UpstreamError, asking::Offer};
use crate::{
    call::{Caller, InputRequired, Outcome, State},
    json::{Edits, Json, Node},
    jsonrpc::RpcError,
    metrics::{Bound, reached},
    protocol::{Era, Revision, UpstreamId, meta, methods},
};

const ID: &str = "elicitationId";

/// What the error means for a caller, who may be asked for at most so much at once. `rounds` is `None` where the call must not end in a question.
///
/// # Errors
/// [`UpstreamError::NeedsCapabilities`] when the caller shows no URLs, [`UpstreamError::CannotVisit`] when its revision has no
/// words for that; [`UpstreamError::Protocol`] when the error is malformed or has no place there.
pub(super) fn required(
    upstream: &UpstreamId,
    most: usize,
    error: RpcError,
    caller: Option<&Caller>,
    rounds: Option<Offer>,
) -> Result<Outcome, UpstreamError> {
    let revision = caller.map_or(Revision::LATEST_MODERN, |caller| caller.revision);
    if revision < Revision::V2025_11_25 {
        return Err(UpstreamError::CannotVisit(NoVisit::Revision));
    }
    if revision.era() == Era::Legacy {
        if !caller.is_some_and(|caller| caller.visits) {
            return Err(shows_none());
        }
        let data = error
            .data
            .as_ref()
            .map(|data| renamed(upstream, data, data.root().member("elicitations")));
        return Ok(Outcome::Failed(RpcError {
            data: data.or(error.data),
            ..error
        }));
    }
    let broken = |what: &str| UpstreamError::Protocol(format!("error -32042: {what}"));
    let offer = rounds.ok_or_else(|| broken("in answer to a method that cannot ask back"))?;
    if !offer.has_url() {
        return Err(shows_none());
    }
    let visits: Vec<_> = error
        .data
        .as_ref()
        .and_then(|data| data.root().member("elicitations"))
        .into_iter()
        .flat_map(Node::elements)
        .collect();
    if visits.len() > most {
        reached(Bound::Inputs);
    }
    if visits.is_empty() || visits.len() > most {
        return Err(broken("no elicitations, or too many"));
    }
    let mut questions = Vec::with_capacity(visits.len());
    for (n, visit) in visits.into_iter().enumerate() {
        let text = |key| {
            let text = visit.member(key).and_then(Node::as_str);
            text.map(|text| Json::string(&text))
                .ok_or_else(|| broken("an elicitation without its texts"))
        };
        let params = meta::object_of(&[
            ("mode", Json::literal("\"url\"")),
            ("message", text("message")?),
            ("url", text("url")?),
        ]);
        let request = meta::object_of(&[
            ("method", Json::string(methods::ELICITATION_CREATE)),
            ("params", params),
        ]);
        questions.push((format!("visit-{}", n + 1), request));
    }
    let questions: Vec<_> = questions
        .iter()
        .map(|(key, request)| (key.as_str(), request.clone()))
        .collect();
    Ok(Outcome::InputRequired(InputRequired {
        requests: meta::object_of(&questions),
        // Nothing is held open: the retry sends the same request again, as that revision says.
        state: State::Upstream(None),
        hold: None,
    }))
}

/// The caller would have to declare that it shows URLs.
fn shows_none() -> UpstreamError {
    UpstreamError::NeedsCapabilities(Json::literal(r#"{"elicitation":{"url":{}}}"#))
}

/// Params with the id as clients know it.
pub(super) fn outward(upstream: &UpstreamId, params: &Json) -> Json {
    let mut edits = Edits::new();
    rename(upstream, &mut edits, params.root());
    params.splice(&edits)
}

/// The id, as clients know it, of the page that these params are about.
pub(super) fn page(upstream: &UpstreamId, params: &Json) -> Option<String> {
    let id = params.root().member(ID)?.as_str()?;
    Some(format!("{upstream}/{id}"))
}

fn renamed(upstream: &UpstreamId, data: &Json, list: Option<Node<'_>>) -> Json {
    let mut edits = Edits::new();
    for elicitation in list.into_iter().flat_map(Node::elements) {
        rename(upstream, &mut edits, elicitation);
    }
    data.splice(&edits)
}

fn rename(upstream: &UpstreamId, edits: &mut Edits, elicitation: Node<'_>) {
    if let Some(node) = elicitation.member(ID)
        && let Some(id) = node.as_str()
    {
        edits.replace(node, Json::string(&format!("{upstream}/{id}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::Call,
        json::Limits,
        protocol::{ClientCapabilities, Revision, codes},
        upstream::scripted::{a_caller, a_tool_call, an_address, terms},
    };

    const DATA: &str = r#"{"elicitations":[{"mode":"url","message":"m","url":"https://a/?\u0071=1","elicitationId":"7"},{"mode":"url","message":"n","url":"https://b","elicitationId":"8"}],"x":1.0}"#;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned().into(), &Limits::UPSTREAM).unwrap()
    }

    fn told(
        revision: Revision,
        declared: &str,
        data: &str,
        asks: bool,
    ) -> Result<Outcome, UpstreamError> {
        let capabilities = ClientCapabilities::read(json(declared)).unwrap();
        let urls = json(r#"{"elicitation":{"url":{}}}"#);
        let caller = Caller {
            revision,
            visits: revision == Revision::V2025_11_25 && capabilities.cover(&urls),
            capabilities,
            ..a_caller("k")
        };
        let error = RpcError {
            data: Some(json(data)),
            ..RpcError::new(codes::URL_ELICITATION_REQUIRED, "visit")
        };
        let call = Call {
            caller: caller.into(),
            ..a_tool_call()
        };
        let rounds = asks.then(|| Offer::to(&terms(&an_address()), &call));
        let upstream = UpstreamId::parse("u").unwrap();
        required(&upstream, 8, error, Some(&call.caller), rounds)
    }

    #[test]
    fn a_client_of_its_own_era_gets_the_error_with_outward_ids() {
        let shows = r#"{"elicitation":{"url":{}}}"#;
        let Ok(Outcome::Failed(error)) = told(Revision::V2025_11_25, shows, DATA, true) else {
            panic!()
        };
        assert_eq!(error.code, codes::URL_ELICITATION_REQUIRED);
        assert_eq!(
            error.data.unwrap().as_str(),
            DATA.replace(r#""7""#, r#""u/7""#)
                .replace(r#""8""#, r#""u/8""#)
        );
        let params = outward(
            &UpstreamId::parse("u").unwrap(),
            &json(r#"{"elicitationId":"7"}"#),
        );
        assert_eq!(params.as_str(), r#"{"elicitationId":"u/7"}"#);
    }

    #[test]
    fn a_client_that_never_said_that_it_shows_urls_is_told_what_it_lacks() {
        for declared in [
            "{}",
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"form":{}}}"#,
        ] {
            let told = told(Revision::V2025_11_25, declared, DATA, true);
            assert!(
                matches!(&told, Err(UpstreamError::NeedsCapabilities(needed)) if needed.as_str() == r#"{"elicitation":{"url":{}}}"#),
                "{declared}: {told:?}"
            );
        }
    }

    #[test]
    fn a_revision_that_was_before_the_error_never_sees_it() {
        for revision in [
            Revision::V2024_11_05,
            Revision::V2025_03_26,
            Revision::V2025_06_18,
        ] {
            let told = told(revision, r#"{"elicitation":{"url":{}}}"#, DATA, true);
            assert!(
                matches!(told, Err(UpstreamError::CannotVisit(NoVisit::Revision))),
                "{revision}"
            );
        }
    }

    #[test]
    fn a_modern_client_is_asked_to_visit_and_to_call_again() {
        let shows = r#"{"elicitation":{"url":{}}}"#;
        let Ok(Outcome::InputRequired(asked)) = told(Revision::V2026_07_28, shows, DATA, true)
        else {
            panic!()
        };
        assert_eq!(
            asked.requests.as_str(),
            r#"{"visit-1":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a/?q=1"}},"visit-2":{"method":"elicitation/create","params":{"mode":"url","message":"n","url":"https://b"}}}"#
        );
        assert_eq!(asked.state, State::Upstream(None));
    }

    #[test]
    fn a_modern_client_never_sees_the_error_itself() {
        let modern = Revision::V2026_07_28;
        let shows = r#"{"elicitation":{"url":{}}}"#;
        let needs = told(modern, r#"{"elicitation":{}}"#, DATA, true);
        assert!(
            matches!(needs, Err(UpstreamError::NeedsCapabilities(needed)) if needed.as_str() == r#"{"elicitation":{"url":{}}}"#)
        );
        for (data, asks) in [
            (DATA, false),
            ("{}", true),
            (r#"{"elicitations":[{"url":"https://a"}]}"#, true),
        ] {
            let told = told(modern, shows, data, asks);
            assert!(matches!(told, Err(UpstreamError::Protocol(_))), "{data}");
        }
    }
}
