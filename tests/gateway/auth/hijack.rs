//! Session hijacking, as PROTOCOL F10 tells of it.
//! Who has the id of somebody else's session, and a valid token of their own, can neither speak in it, nor answer in it, nor
//! listen to it, nor end it; and the session goes on as if nobody had tried.

use http::Method;

use super::before;
use crate::harness::{
    Authority, Client, EventStream, Gateway, Play, Revision, Talk, Upstream, member, parse, tool,
};

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

/// Ana, in the middle of a call that asks her something, and Eve, who has learned the id of Ana's session.
struct Scene {
    notes: Upstream,
    authority: Authority,
    gateway: Gateway,
    ana: Client,
    /// With Ana's session and Eve's token.
    thief: Client,
    talk: Talk,
    /// What Ana is asked.
    question: String,
}

impl Scene {
    async fn set(revision: Revision) -> Self {
        Self::with(revision, ("eve", "")).await
    }

    /// The thief is of this name, and their token says this of them, too.
    async fn with(revision: Revision, thief: (&str, &str)) -> Self {
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("ask"), tool("t")])
            .on("tools/call", |heard| {
                if heard.text("name").as_deref() != Some("ask") {
                    Play::Result(r#"{"content":[{"type":"text","text":"done"}]}"#.into())
                } else if member(&heard.params, "inputResponses").is_none() {
                    Play::Result(r#"{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Pay?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}},"requestState":"mine"}"#.into())
                } else {
                    Play::Result(r#"{"content":[{"type":"text","text":"paid"}]}"#.into())
                }
            });
        let authority = Authority::start().await;
        let gateway = before(&notes, &authority, |_| {}).await;
        let person = async |(name, more): (&str, &str)| {
            let token = format!("Bearer {}", authority.token(name, more));
            let headers = [("authorization", token)];
            let client =
                Client::connect_with(gateway.address, "/mcp", revision, FORMS, &headers).await;
            client.unwrap()
        };
        let (ana, eve) = (person(("ana", "")).await, person(thief).await);
        assert_ne!(ana.session, eve.session);
        let mut thief = eve;
        thief.session.clone_from(&ana.session);
        let mut talk = ana.call("notes_ask", "{}").begin().await;
        let question = talk.hear().await;
        assert!(question.contains("Pay?"), "{question}");
        Self {
            notes,
            authority,
            gateway,
            ana,
            thief,
            talk,
            question,
        }
    }

    /// An answer to what Ana is asked.
    fn answer(&self, content: &str) -> String {
        let id = member(&self.question, "id").unwrap();
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"a":"{content}"}}}}}}"#
        )
    }

    /// Ana answers; her call ends as it would have.
    async fn nothing_came_of_it(mut self) {
        let taken = self.ana.post(&self.answer("anas"), &[]).await;
        assert_eq!(taken.status, 202, "{taken:?}");
        let last = parse(&self.talk.hear().await);
        assert_eq!(last["result"]["content"][0]["text"], "paid", "{last}");
        assert!(self.talk.next().await.is_none(), "nothing was put in");
        let heard = self.notes.heard("tools/call");
        assert_eq!(heard.len(), 2, "both of Ana");
        assert_eq!(
            heard[1].value()["inputResponses"]["q"]["content"]["a"],
            "anas"
        );
    }
}

// PROTOCOL F10, SECURITY STATE-6
#[tokio::test]
async fn whoever_has_the_id_of_a_session_and_another_token_can_do_nothing_in_it() {
    let other_client = ("ana", r#","client_id":"other""#);
    for (revision, thief) in [
        (Revision::V2025_11_25, ("eve", "")),
        (Revision::V2025_06_18, ("eve", "")),
        (Revision::V2025_11_25, other_client),
    ] {
        let scene = Scene::with(revision, thief).await;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}"#;
        // Of the calls of a client of these tests none has an id beyond that.
        let cancels = (0..10).map(|id| cancel.replace("ID", &id.to_string()));
        let bodies = cancels.chain([
            scene.answer("eves"),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"notes_t","arguments":{}}}"#.into(),
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#.into(),
            r#"{"jsonrpc":"2.0","id":9,"method":"resources/subscribe","params":{"uri":"notes+note://1"}}"#.into(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#.into(),
        ]);
        for body in bodies {
            assert_eq!(scene.thief.post(&body, &[]).await.status, 404, "{body}");
        }
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(
                scene.thief.other(method.clone()).await.status,
                404,
                "{method}"
            );
        }
        scene.nothing_came_of_it().await;
    }
}

// PROTOCOL F10
#[tokio::test]
async fn the_id_of_a_session_is_no_credential() {
    let scene = Scene::set(Revision::V2025_11_25).await;
    let mut bare = scene.thief.clone();
    bare.own.clear();
    let answer = scene.answer("eves");
    assert_eq!(bare.post(&answer, &[]).await.status, 401);
    assert_eq!(bare.call("notes_t", "{}").await.status, 401);
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(bare.other(method.clone()).await.status, 401, "{method}");
    }
    // Nor is a token of the same name by somebody else's word.
    let mut other = scene.thief.clone();
    let foreign = Authority::start().await;
    other.own[0].1 = format!("Bearer {}", foreign.token("ana", ""));
    assert_eq!(other.post(&answer, &[]).await.status, 401);
    scene.nothing_came_of_it().await;
}

// PROTOCOL F10
#[tokio::test]
async fn what_waits_for_a_reader_in_a_session_is_read_by_nobody_else() {
    let scene = Scene::set(Revision::V2025_11_25).await;
    let mut stream = scene.ana.reading(None).await;
    let id = stream.next().await.unwrap().id.unwrap();
    drop(stream);
    // With Ana's session, with none, and with one of Eve's own.
    let mut none = scene.thief.clone();
    none.session = None;
    let own = scene.authority.token("eve", "");
    let own = scene.gateway.client_with(Revision::V2025_11_25, &own).await;
    for (who, status) in [(&scene.thief, 404), (&none, 405), (&own, 400)] {
        let stolen: EventStream = who.reading(Some(&id)).await;
        assert_eq!(stolen.status, status);
    }
    scene.nothing_came_of_it().await;
}
