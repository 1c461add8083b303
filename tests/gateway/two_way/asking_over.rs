//! Servers of the handshake era that go on while their question is open at a client that is asked by requests.
//! What ends then is told at once, as is what they tell meanwhile, and what they take back is taken back from the client
//! (PROTOCOL A4, D1).

use super::{ALL, FORM, ROOTS};
use crate::harness::{
    Answer, Client, Gateway, Pairing, Play, Talk, Turn, Upstream, eventually, member, parse,
    text_result, tool,
};

const PAIR: Pairing = Pairing::LEGACY_LEGACY;

/// What a server says that no longer wants an answer.
fn withdrawal(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

/// A server that asks these, and when the client has them, goes on as `then` says with the ids of what it asked.
fn going_on<F>(
    server: Upstream,
    questions: &'static [(&'static str, &'static str)],
    then: impl Fn(Turn, Vec<u64>) -> F + Send + Sync + Clone + 'static,
) -> Upstream
where
    F: Future<Output = ()> + Send + 'static,
{
    server.tools([tool("ask")]).on("tools/call", move |_| {
        let then = then.clone();
        Play::live(move |turn: Turn| {
            let then = then.clone();
            async move {
                let mut ids = Vec::new();
                for (method, params) in questions {
                    ids.push(turn.put(method, params).await.0);
                }
                // Long enough for the client to have them.
                passes().await;
                then(turn, ids).await;
            }
        })
    })
}

/// A while, in which nothing else happens.
async fn passes() {
    let began = tokio::time::Instant::now();
    eventually("time passes", || async {
        (began.elapsed() > std::time::Duration::from_millis(300)).then_some(())
    })
    .await;
}

async fn begun(notes: &Upstream) -> (Gateway, Client, Talk) {
    let gateway = Gateway::of()
        .upstream_with("notes", notes, "isolation: session")
        .start()
        .await;
    let client = gateway.client_able(PAIR.client, ALL).await;
    let talk = client.call("notes_ask", "{}").begin().await;
    (gateway, client, talk)
}

/// The next message takes this question back.
async fn taken_back(talk: &mut Talk, question: &str) {
    let told = parse(&talk.hear().await);
    assert_eq!(told["method"], "notifications/cancelled", "{told}");
    assert_eq!(told["params"]["requestId"], parse(question)["id"]);
}

/// All that follows, where one question was open to the end.
async fn rest(mut talk: Talk) -> Answer {
    let question = talk.hear().await;
    assert_eq!(parse(&question)["method"], "elicitation/create");
    taken_back(&mut talk, &question).await;
    talk.rest().await
}

#[tokio::test]
async fn a_result_that_comes_while_the_client_is_asked_is_told_at_once() {
    for server in [Upstream::http(PAIR.upstream), Upstream::pipe(PAIR.upstream)] {
        let notes = going_on(server, &[FORM], |turn, _| async move {
            turn.result(&text_result("never mind")).await;
        });
        let (_gateway, client, talk) = begun(&notes).await;
        assert_eq!(rest(talk).await.text(), "never mind");
        // And the next call goes its own way.
        let talk = client.call("notes_ask", "{}").begin().await;
        assert_eq!(rest(talk).await.text(), "never mind");
    }
}

#[tokio::test]
async fn an_error_that_comes_while_the_client_is_asked_is_told_as_it_is() {
    let notes = going_on(PAIR.upstream(), &[FORM], |turn, _| async move {
        turn.say(r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"gave up"}}"#)
            .await;
    });
    let (_gateway, _client, talk) = begun(&notes).await;
    let answer = rest(talk).await;
    let error = parse(&member(answer.message(), "error").unwrap());
    assert_eq!(
        (&error["code"], &error["message"]),
        (&(-32603).into(), &"gave up".into())
    );
}

#[tokio::test]
async fn a_stream_that_is_lost_while_the_client_is_asked_is_told_at_once() {
    let notes = going_on(PAIR.upstream(), &[FORM], |turn, _| async move {
        drop(turn);
    });
    let (_gateway, _client, talk) = begun(&notes).await;
    assert_eq!(rest(talk).await.tool_error(), "upstream_unavailable");
}

#[tokio::test]
async fn a_question_that_the_server_takes_back_is_taken_back_from_the_client() {
    for server in [Upstream::http(PAIR.upstream), Upstream::pipe(PAIR.upstream)] {
        let notes = going_on(server, &[FORM, ROOTS], |turn, ids| async move {
            turn.say(&withdrawal(ids[0])).await;
            passes().await;
            turn.say(&withdrawal(ids[1])).await;
            passes().await;
            turn.progress(1, "without them").await;
            turn.result(&text_result("done")).await;
        });
        let (_gateway, client, mut talk) = begun(&notes).await;
        let (form, roots) = (talk.hear().await, talk.hear().await);
        taken_back(&mut talk, &form).await;
        let late = client
            .reply(&form, ("result", r#"{"action":"cancel"}"#))
            .await;
        assert_eq!(late.status, 202, "nobody waits for it, and nobody minds");
        taken_back(&mut talk, &roots).await;
        assert_eq!(talk.rest().await.text(), "done");
        assert_eq!(notes.heard("").len(), 0, "no answer was wanted");
    }
}

#[tokio::test]
async fn what_a_server_tells_while_its_question_is_open_is_told_as_it_comes() {
    for server in [Upstream::http(PAIR.upstream), Upstream::pipe(PAIR.upstream)] {
        let notes = server.telling().tools([tool("ask")]).on("tools/call", |_| {
            Play::live(|turn: Turn| async move {
                let (_, answer) = turn.put(FORM.0, FORM.1).await;
                passes().await;
                turn.progress(1, "still here").await;
                turn.log("warning", "waiting").await;
                turn.progress(2, "token ghp_16C7e42F292c6912E7710c838347Ae178B4a")
                    .await;
                answer.await.unwrap();
                turn.progress(3, "thanks").await;
                turn.result(&text_result("done")).await;
            })
        });
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, "isolation: session")
            .start()
            .await;
        let client = gateway.client_able(PAIR.client, ALL).await;
        client
            .ask("logging/setLevel", r#"{"level":"debug"}"#)
            .await
            .result();
        let ask = client.call("notes_ask", "{}");
        let mut talk = ask.meta(r#""progressToken":"p""#).begin().await;
        let question = talk.hear().await;
        assert_eq!(parse(&question)["method"], "elicitation/create");
        // On a pipe lines and progress come by two ways, and may overtake each other.
        let told = [talk.hear().await, talk.hear().await, talk.hear().await];
        let (lines, steps): (Vec<_>, Vec<_>) = told
            .iter()
            .map(|told| parse(told)["params"].clone())
            .partition(|told| told["level"] == "warning");
        assert_eq!(lines[0]["logger"], "notes", "{told:?}");
        assert_eq!(steps[0]["message"], "still here", "{told:?}");
        assert_eq!(
            (&steps[0]["progressToken"], &steps[1]["progress"]),
            (&"p".into(), &2.into())
        );
        assert!(!told.concat().contains("ghp_16C7"), "{told:?}");
        let said = ("result", r#"{"action":"accept","content":{"name":"Ann"}}"#);
        assert_eq!(client.reply(&question, said).await.status, 202);
        let told = parse(&talk.hear().await);
        assert_eq!(told["params"]["message"], "thanks", "{told}");
        assert_eq!(talk.rest().await.text(), "done");
    }
}
