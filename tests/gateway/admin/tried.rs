//! Every operation of the document, tried by those who may not, from where it may not be, and to the events of its stream.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use usher::{
    admin::document,
    config,
    feed::{CallSeen, HELD},
};

use super::{
    AUDITOR, OPERATOR, Plane,
    contract::{ASKED, asked, filled, fits, operation, valid},
    plane, problem,
};
use crate::harness::{
    Answer, Client, EventStream, Gateway, Revision, Upstream, Watch, eventually, parse, resource,
    tool,
};

const MODERN: Revision = Revision::V2026_07_28;
/// Wrong credentials that an address may bring in a minute.
const FAILURES: usize = 10;

/// A plane on which every operation has something to be done to.
struct Scene {
    plane: Plane,
    notes: Upstream,
    document: Value,
    reloads: Arc<AtomicUsize>,
    client: Client,
    _held: (TempDir, Client, Watch),
}

impl Scene {
    async fn set() -> Self {
        let records = tempfile::tempdir().unwrap();
        let notes = Upstream::http(MODERN)
            .tools([tool("t")])
            .resources([resource("note:1")]);
        let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
        let plane = plane(Gateway::of().upstream("notes", &notes).setting(&audit)).await;
        let text = format!("{audit}\nupstreams: {{ notes: {{ {} }} }}\n", notes.place());
        let reloads = Arc::new(AtomicUsize::new(0));
        let counted = reloads.clone();
        plane.gateway.app.reloads_from(Arc::new(move || {
            counted.fetch_add(1, Relaxed);
            config::of_text(&text)
        }));
        let session = plane.gateway.client(Revision::V2025_11_25).await;
        let client = plane.gateway.client(MODERN).await;
        let watch = client.watch(&["tools"], &[]).await;
        Self {
            plane,
            notes,
            document: parse(document().as_str()),
            reloads,
            client,
            _held: (records, session, watch),
        }
    }

    /// Everything that an operation could have changed.
    async fn standing(&self) -> Value {
        let upstream = self.plane.get("/api/upstreams/notes").await;
        let sessions = self.plane.get("/api/sessions").await;
        let streams = self.plane.get("/api/streams").await;
        json!({
            "state": upstream["state"],
            "restarts": upstream["restarts"],
            "session": sessions["items"][0]["session"],
            "stream": streams["items"][0]["stream"],
            "reloads": self.reloads.load(Relaxed),
            "read": self.notes.heard("tools/list").len(),
        })
    }

    /// Identifier, verb, path and body of every operation.
    async fn operations(&self) -> Vec<(&'static str, String, String, &'static str)> {
        let mut all = Vec::new();
        for (id, path, body) in ASKED {
            let (verb, _) = operation(&self.document, id);
            all.push((*id, verb, filled(&self.plane, path).await, *body));
        }
        all
    }

    fn described(&self, id: &str) -> &Value {
        operation(&self.document, id).1
    }

    /// Whether nobody may do it without a credential.
    fn is_closed(&self, id: &str) -> bool {
        let ways = self.described(id)["security"].as_array().unwrap();
        assert!(!ways.is_empty(), "{id}");
        ways.iter().all(|way| way.get("bearer").is_some())
    }

    /// Whether it is for operators alone.
    fn is_for_operators(&self, id: &str) -> bool {
        let ways = self.described(id)["security"].as_array().unwrap();
        ways.iter().all(|way| way["bearer"] == json!(["operator"]))
    }

    /// Whether it is refused so, as the document says.
    fn refused(&self, id: &str, answer: &Answer, status: u16, reason: &str) {
        assert_eq!(problem(answer), (status, reason.to_owned()), "{id}");
        fits(&self.document, self.described(id), id, answer);
    }
}

#[tokio::test]
async fn every_operation_wants_the_credential_that_the_document_says_it_does() {
    let scene = Scene::set().await;
    let before = scene.standing().await;
    let mut closed = Vec::new();
    for (id, verb, path, body) in scene.operations().await {
        let answer = asked(&scene.plane, &verb, &path, body, None, None).await;
        if scene.is_closed(id) {
            scene.refused(id, &answer, 401, "credential_missing");
            closed.push((id, verb, path, body));
        } else {
            assert_ne!(answer.status, 401, "{id}");
            fits(&scene.document, scene.described(id), id, &answer);
        }
    }
    assert!(closed.len() > 20, "{}", closed.len());
    assert_eq!(scene.standing().await, before);
    // No more wrong ones are borne than so many: each part of the operations is tried on a plane of its own.
    for part in closed.chunks(FAILURES) {
        let scene = Scene::set().await;
        let before = scene.standing().await;
        for (id, verb, path, body) in part {
            let answer = asked(&scene.plane, verb, path, body, Some("wrong"), None).await;
            scene.refused(id, &answer, 401, "credential_invalid");
        }
        for _ in part.len()..FAILURES {
            scene.plane.seen("wrong", "/api/status").await;
        }
        for (id, verb, path, body) in part {
            let answer = asked(&scene.plane, verb, path, body, Some("wrong"), None).await;
            scene.refused(id, &answer, 429, "rate_limited");
        }
        assert_eq!(scene.standing().await, before);
    }
}

#[tokio::test]
async fn an_auditor_does_what_the_document_does_not_keep_for_operators_and_nothing_else() {
    let scene = Scene::set().await;
    let before = scene.standing().await;
    let mut kept = Vec::new();
    for (id, verb, path, body) in scene.operations().await {
        let answer = asked(&scene.plane, &verb, &path, body, Some(AUDITOR), None).await;
        if scene.is_for_operators(id) {
            scene.refused(id, &answer, 403, "role_required");
            kept.push(id);
        } else {
            // Nobody keeps metrics here.
            let status = if id == "metrics" { 404 } else { 200 };
            assert_eq!(answer.status, status, "{id}: {}", answer.body);
            fits(&scene.document, scene.described(id), id, &answer);
        }
    }
    assert!(kept.len() > 6, "{kept:?}");
    assert_eq!(scene.standing().await, before);
    let told = eventually("each try is recorded", async || {
        let told = scene.plane.get("/api/audit?event=administration").await;
        let mut told = told["items"].as_array().unwrap().clone();
        told.retain(|item| item["record"]["detail"]["reason"] == "role_required");
        (told.len() >= kept.len()).then_some(told)
    })
    .await;
    let mut tried: Vec<_> = told
        .iter()
        .map(|item| item["record"]["detail"]["operation"].as_str().unwrap())
        .collect();
    tried.sort_unstable();
    kept.sort_unstable();
    assert_eq!(tried, kept);
}

#[tokio::test]
async fn no_operation_and_no_stream_is_there_for_a_page_of_another_site() {
    let scene = Scene::set().await;
    let before = scene.standing().await;
    let neighbour = format!("http://127.0.0.1:{}", scene.plane.gateway.address.port());
    let (mut changes, mut streams, mut told) = (0, 0, 0);
    for (id, verb, path, body) in scene.operations().await {
        for header in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", neighbour.as_str()),
        ] {
            let from = Some(header);
            let answer = asked(&scene.plane, &verb, &path, body, Some(OPERATOR), from).await;
            assert_eq!(answer.status, 403, "{id} {header:?}");
            fits(&scene.document, scene.described(id), id, &answer);
            // What is no neighbour's is refused at the door already.
            if answer.headers["content-type"] == "application/problem+json" {
                scene.refused(id, &answer, 403, "cross_site");
                told += 1;
            }
        }
        changes += usize::from(verb == "post");
        streams += usize::from(path.ends_with("/follow"));
    }
    assert!(changes > 7 && streams == 2, "{changes} {streams}");
    assert!(told >= 3 * ASKED.len(), "{told}");
    assert_eq!(scene.standing().await, before);
    assert!(!scene.plane.gateway.app.feed().is_watched());
}

#[tokio::test]
async fn every_stream_is_of_events_that_the_document_describes() {
    let scene = Scene::set().await;
    let mut streams = Vec::new();
    for (id, verb, path, _) in scene.operations().await {
        let content = &scene.described(id)["responses"]["200"]["content"];
        let Some(stream) = content.get("text/event-stream") else {
            continue;
        };
        assert_eq!(verb, "get", "{id}");
        let bearer = format!("Bearer {AUDITOR}");
        let headers = [("authorization", bearer.as_str())];
        let mut followed =
            EventStream::open(scene.plane.address, Method::GET, &path, &headers, "").await;
        assert_eq!(followed.status, 200, "{id}");
        assert_eq!(followed.headers["content-type"], "text/event-stream");
        scene.client.call("notes_t", "{}").await;
        let described = &stream["schema"]["x-events"];
        let names: Vec<_> = described.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 2, "{id}: {names:?}");
        let event = followed.message().await;
        assert!(event.name != "missed" && described[&event.name].is_object());
        valid(
            &scene.document,
            &described[&event.name],
            &parse(&event.data),
            id,
        );
        streams.push((id, followed, described["missed"].clone()));
    }
    let ids: Vec<_> = streams.iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, ["follow_audit", "follow_calls"]);
    // Nothing runs in between: whoever looks cannot keep up.
    let (id, mut calls, described) = streams.pop().unwrap();
    let feed = scene.plane.gateway.app.feed();
    for millis in 0..HELD as u64 * 2 {
        feed.note(CallSeen {
            time: std::time::SystemTime::UNIX_EPOCH,
            method: "tools/call".to_owned(),
            target: None,
            upstream: None,
            principal: "ana".to_owned(),
            outcome: "ok",
            millis,
        });
    }
    let missed = loop {
        let event = calls.message().await;
        if event.name == "missed" {
            break parse(&event.data);
        }
    };
    valid(&scene.document, &described, &missed, id);
}
