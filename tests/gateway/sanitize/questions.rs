//! C11: what people must not be asked, they are not asked.

use tokio::sync::mpsc;

use super::{GONE, RULE, SECRET};
use crate::{
    harness::{
        Answer, Gateway, Heard, Play, Revision, Says, Turn, Upstream, parse, text_result, tool,
    },
    tasks::{self, about},
};

const ALL: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;
const WITH_TASKS: &str =
    r#"{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// An address that holds what would be cut from a text.
const GOOD: &str = "https://a.example/x?state=falcon-123456";
/// Addresses that nobody is sent to.
const BAD: [&str; 3] = [
    "http://a.example/",
    "https://a.example@b.example/",
    "javascript:x",
];

fn visit(url: &str) -> String {
    format!(r#"{{"mode":"url","elicitationId":"e","message":"Go on","url":"{url}"}}"#)
}

fn requests(key: &str, params: &str) -> String {
    format!(r#"{{"{key}":{{"method":"elicitation/create","params":{params}}}}}"#)
}

/// A server whose tool asks this under this key.
fn asking(key: &str, params: &str) -> Upstream {
    let question = format!(
        r#"{{"resultType":"input_required","inputRequests":{},"requestState":"s"}}"#,
        requests(key, params)
    );
    Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", move |_: &Heard| {
            Play::Result(question.clone())
        })
}

async fn asked_as(key: &str, params: &str) -> Answer {
    let notes = asking(key, params);
    let gateway = Gateway::of()
        .setting(RULE)
        .upstream("notes", &notes)
        .start()
        .await;
    let client = gateway.client_able(Revision::V2026_07_28, ALL).await;
    client.call("notes_t", "{}").await
}

async fn asked(params: &str) -> Answer {
    asked_as("k", params).await
}

#[tokio::test]
async fn nobody_is_sent_to_an_address_that_hides_where_it_leads() {
    for bad in BAD {
        assert_eq!(
            asked(&visit(bad)).await.tool_error(),
            "content_blocked",
            "{bad}"
        );
    }
    let good = asked(&visit(GOOD)).await.value();
    let params = &good["inputRequests"]["k"]["params"];
    assert_eq!(params["url"], GOOD);
    assert_eq!(params["message"], "[notes] Go on (a.example)");
}

#[tokio::test]
async fn msg_11_an_error_of_the_older_era_sends_nobody_there_either_and_no_address_is_edited() {
    let told = async |url: &str| {
        let error = format!(
            r#"{{"code":-32042,"message":"Visit","data":{{"elicitations":[{},{}],"x":"{SECRET}"}}}}"#,
            visit("https://fine.example/"),
            visit(url)
        );
        let notes = Upstream::http(Revision::V2025_11_25)
            .tools([tool("t")])
            .on("tools/call", move |_: &Heard| Play::Error(error.clone()));
        let gateway = Gateway::of()
            .setting(RULE)
            .upstream("notes", &notes)
            .start()
            .await;
        let client = gateway.client_able(Revision::V2025_11_25, ALL).await;
        client.call("notes_t", "{}").await
    };
    for bad in BAD {
        assert_eq!(told(bad).await.tool_error(), "content_blocked", "{bad}");
    }
    let error = told(GOOD).await.error();
    assert_eq!(error["code"], -32042);
    assert_eq!(error["data"]["elicitations"][1]["url"], GOOD);
    assert_eq!(error["data"]["x"], GONE);
}

#[tokio::test]
async fn a_task_sends_people_where_a_call_may_and_its_address_is_not_edited() {
    let told = async |url: &str| {
        let requests = requests("k", &visit(url));
        let notes = tasks::modern().on("tasks/get", move |_: &Heard| {
            Play::Result(format!(
                r#"{{"taskId":"local-7","status":"input_required","statusMessage":"{SECRET}","createdAt":"c","lastUpdatedAt":"l","ttlMs":1,"inputRequests":{requests}}}"#
            ))
        });
        let gateway = Gateway::of()
            .setting(RULE)
            .upstream("notes", &notes)
            .start()
            .await;
        let client = gateway.client_able(Revision::V2026_07_28, WITH_TASKS).await;
        let made = client.call("notes_slow", "{}").await.value();
        about(&client, "tasks/get", made["taskId"].as_str().unwrap()).await
    };
    for bad in BAD {
        assert_eq!(told(bad).await.refusal().1, "content_blocked", "{bad}");
    }
    let state = told(GOOD).await.value();
    assert_eq!(state["inputRequests"]["k"]["params"]["url"], GOOD);
    assert_eq!(state["statusMessage"], GONE);
}

#[tokio::test]
async fn no_question_and_no_answer_goes_unread_whatever_its_key_is_called() {
    let form = format!(
        r#"{{"message":"It is {SECRET}","requestedSchema":{{"type":"object","properties":{{"n":{{"type":"string"}}}}}}}}"#
    );
    for key in ["k", "taskId", "requestState", "cursor"] {
        let asked = asked_as(key, &form).await.value();
        assert_eq!(
            asked["inputRequests"][key]["params"]["message"],
            format!("[notes] It is {GONE}"),
            "{key}"
        );
        // Who is asked by requests answers so: there are no params in which the answers stand.
        let notes = asking(key, &form.replace(SECRET, "so"));
        let gateway = Gateway::of()
            .setting(RULE)
            .upstream("notes", &notes)
            .start()
            .await;
        let client = gateway.client_able(Revision::V2025_11_25, ALL).await;
        let talk = client
            .call("notes_t", "{}")
            .answering(|_, _| {
                Says::Result(format!(
                    r#"{{"action":"accept","content":{{"n":"{SECRET}"}}}}"#
                ))
            })
            .await;
        assert_eq!(talk.answer.tool_error(), "content_blocked", "{key}");
        assert_eq!(notes.heard("tools/call").len(), 1, "{key}");
    }
}

#[tokio::test]
async fn a_client_that_answers_with_an_error_says_nothing_that_must_not_leave() {
    let sample = r#"{"messages":[],"maxTokens":1}"#;
    let told = async |error: String| {
        let (hear, mut heard) = mpsc::channel(1);
        let notes = Upstream::http(Revision::V2025_11_25).tools([tool("t")]).on(
            "tools/call",
            move |_: &Heard| {
                let hear = hear.clone();
                Play::live(move |turn: Turn| {
                    let hear = hear.clone();
                    async move {
                        let answer = turn.ask("sampling/createMessage", sample).await;
                        hear.send(answer["error"].clone()).await.unwrap();
                        turn.result(&text_result("so be it")).await;
                    }
                })
            },
        );
        let gateway = Gateway::of()
            .setting(RULE)
            .upstream("notes", &notes)
            .start()
            .await;
        let able = r#"{"sampling":{}}"#;
        let client = gateway.client_able(Revision::V2025_11_25, able).await;
        let talk = client
            .call("notes_t", "{}")
            .answering(|_, _| Says::Error(error.clone()))
            .await;
        (talk.answer, heard.recv().await.unwrap())
    };
    for error in [
        format!(r#"{{"code":-1,"message":"401 for {SECRET}"}}"#),
        format!(r#"{{"code":-1,"message":"401","data":{{"key":["{SECRET}"]}}}}"#),
        r#"{"code":-1,"message":"401 for falcon-12","data":"3456"}"#.to_owned(),
    ] {
        let (answer, heard) = told(error.clone()).await;
        assert_eq!(answer.tool_error(), "content_blocked", "{error}");
        assert_eq!(heard["message"], "nobody answered", "{error}");
    }
    let fine = r#"{"code":-1,"message":"no","data":{"why":1.50}}"#;
    let (answer, heard) = told(fine.to_owned()).await;
    assert_eq!(answer.text(), "so be it");
    assert_eq!(heard.to_string(), parse(fine).to_string());
}

#[tokio::test]
async fn no_form_asks_for_a_secret() {
    let form = |name: &str| {
        format!(
            r#"{{"message":"Fill in","requestedSchema":{{"type":"object","properties":{{"{name}":{{"type":"string"}}}}}}}}"#
        )
    };
    assert_eq!(
        asked(&form("api_key")).await.tool_error(),
        "content_blocked"
    );
    let fine = asked(&form("city")).await.value();
    assert_eq!(fine["resultType"], "input_required");
    // An address beside a form makes it no other question.
    let with_url = |form: String| form.replacen('{', r#"{"url":"https://ok.example","#, 1);
    let told = asked(&with_url(form("password"))).await;
    assert_eq!(told.tool_error(), "content_blocked");
    let fine = asked(&with_url(form("city"))).await.value();
    assert_eq!(fine["resultType"], "input_required");
}

#[tokio::test]
async fn a_form_whose_answer_would_go_back_under_other_names_is_not_asked() {
    let form = |properties: &str| {
        format!(
            r#"{{"message":"Pick","requestedSchema":{{"type":"object","properties":{properties}}}}}"#
        )
    };
    for properties in [
        format!(r#"{{"{SECRET}":{{"type":"string"}}}}"#),
        format!(r#"{{"n":{{"type":"string","enum":["{SECRET}","b"]}}}}"#),
        format!(r#"{{"n":{{"type":"string","oneOf":[{{"const":"{SECRET}","title":"A"}}]}}}}"#),
    ] {
        let told = asked(&form(&properties)).await;
        assert_eq!(told.tool_error(), "content_blocked", "{properties}");
        assert!(!told.body.contains("redacted"), "{}", told.body);
    }
    let read = format!(r#"{{"n":{{"type":"string","title":"{SECRET}","enum":["b"]}}}}"#);
    let asked = asked(&form(&read)).await.value();
    let field = &asked["inputRequests"]["k"]["params"]["requestedSchema"]["properties"]["n"];
    assert_eq!(field["title"], GONE);
}
