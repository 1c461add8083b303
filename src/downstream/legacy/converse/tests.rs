//! Conversations at their edges: silence, refusals, time that passes, callers that go away.

use std::sync::Mutex;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    call::{Hold, Identity, Meanwhile, State, TaskOp},
    downstream::DrainDeadline,
    json::Limits,
    jsonrpc::{Frame, Message, Request, Response, RpcError, decode},
    stack::McpService,
    tasks::Tasks,
};

fn json(text: &str) -> Json {
    Json::parse(
        bytes::Bytes::copy_from_slice(text.as_bytes()),
        &Limits::CLIENT,
    )
    .unwrap()
}

fn required(requests: &str) -> InputRequired {
    InputRequired {
        requests: json(requests),
        state: State::Sealed("state".into()),
        hold: None,
    }
}

const FORM: &str = r#"{"f":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}"#;
const SAMPLE: &str =
    r#"{"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}"#;

/// A conversation over a service that notes its calls and answers with these outcomes in turn, then with `{}`.
struct Scene {
    session: Arc<Session>,
    calls: Arc<Mutex<Vec<Call>>>,
    talk: Talk,
    /// What the upstream holds open for the first question, until it is let go of.
    held: CancellationToken,
    /// Tells of what becomes of that.
    meanwhile: Option<watch::Sender<Meanwhile>>,
    /// What happens there while the client is asked.
    aside: mpsc::Sender<Event>,
}

impl Scene {
    fn of(first: InputRequired, then: Vec<Outcome>, left: Duration) -> Self {
        Self::about(Op::CallTool("t".into()), first, then, left)
    }

    fn about(op: Op, first: InputRequired, then: Vec<Outcome>, left: Duration) -> Self {
        let held = CancellationToken::new();
        let (meanwhile, told) = watch::channel(Meanwhile::default());
        let (aside, events) = mpsc::channel(8);
        let first = InputRequired {
            hold: Some(Hold::new(held.clone(), told, events)),
            ..first
        };
        let calls = Arc::<Mutex<Vec<Call>>>::default();
        let then = Arc::new(Mutex::new(then.into_iter()));
        let noted = calls.clone();
        let service = tower::service_fn(move |call: Box<Call>| {
            noted.lock().unwrap().push(*call);
            let outcome = then.lock().unwrap().next();
            std::future::ready(Ok(Reply::Done(
                outcome.unwrap_or_else(|| Outcome::Complete(Json::empty_object())),
            )))
        });
        let backing = Backing {
            service: McpService::new(|| service.clone()),
            tasks: Tasks::new(),
            drain_deadline: DrainDeadline::default(),
        };
        let backing = LaneArc::new(Arc::new(backing));
        let session = Session::for_tests();
        let call = session.call(&Identity::anonymous(), op, json(r#"{"name":"t"}"#), left);
        let kept = Kept {
            id: call.id,
            op: call.op.clone(),
            wants_progress: false,
        };
        let talk = Converse::new(PATIENCE, &session, &call).go_on(backing, kept, first);
        Self {
            session,
            calls,
            talk,
            held,
            meanwhile: Some(meanwhile),
            aside,
        }
    }

    async fn frame(&mut self) -> Frame {
        match self.talk.next().await {
            Some(Turn::Event(Event::Worded(frame))) => {
                match decode(frame, &Limits::CLIENT).unwrap() {
                    Message::One(frame) => frame,
                    Message::Batch(_) => panic!("a batch"),
                }
            }
            _ => panic!("no frame"),
        }
    }

    async fn question(&mut self) -> Request {
        match self.frame().await {
            Frame::Request(request) => request,
            other @ (Frame::Notification(_) | Frame::Response(_)) => panic!("{other:?}"),
        }
    }

    async fn withdrawn(&mut self) -> String {
        match self.frame().await {
            Frame::Notification(notification) => {
                assert_eq!(&*notification.method, methods::CANCELLED);
                notification.params.unwrap().as_str().to_owned()
            }
            other @ (Frame::Request(_) | Frame::Response(_)) => panic!("{other:?}"),
        }
    }

    /// Whether somebody waited for this answer.
    fn answer(&self, question: &Request, body: Result<Json, RpcError>) -> bool {
        let receipt = self.session.asks.answer(Response {
            id: Some(question.id.clone()),
            body,
        });
        receipt == asks::Receipt::Heard
    }

    async fn end(&mut self) -> Result<Outcome, Error> {
        match self.talk.next().await {
            Some(Turn::End(result)) => result,
            _ => panic!("no end"),
        }
    }

    /// What each call brought back.
    fn brought(&self) -> Vec<(Option<String>, State)> {
        let calls = self.calls.lock().unwrap();
        let resumed = calls.iter().map(|call| call.resume.clone().unwrap());
        resumed
            .map(|resume| {
                let responses = resume.responses.map(|json| json.as_str().to_owned());
                (responses, resume.state.unwrap())
            })
            .collect()
    }
}

/// What a person has for one round.
const PATIENCE: Duration = Duration::from_secs(590);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_form_that_nobody_answers_is_cancelled_after_ten_minutes_and_the_client_is_told() {
    let mut scene = Scene::of(required(FORM), vec![], MINUTE);
    let question = scene.question().await;
    let before = Instant::now();
    let withdrawn = scene.withdrawn().await;
    assert_eq!(before.elapsed(), PATIENCE);
    assert_eq!(
        withdrawn,
        format!(r#"{{"requestId":{}}}"#, question.id.as_str())
    );
    assert!(scene.end().await.is_ok());
    let cancelled = r#"{"f":{"action":"cancel"}}"#.to_owned();
    assert_eq!(
        scene.brought(),
        [(Some(cancelled), State::Sealed("state".into()))]
    );
    assert!(!scene.answer(&question, Ok(Json::empty_object())), "late");
}

/// PROTOCOL D3: the task goes on without whoever waited for its result.
#[tokio::test(start_paused = true)]
async fn a_form_of_a_task_that_nobody_answers_is_taken_back_and_not_answered() {
    let result = Op::Task(TaskOp::Result, "h".into());
    let mut scene = Scene::about(result, required(FORM), vec![], MINUTE);
    scene.question().await;
    let before = Instant::now();
    scene.withdrawn().await;
    assert_eq!(before.elapsed(), PATIENCE);
    assert!(matches!(scene.end().await, Err(Error::InputRefused)));
    let_go_of(&scene);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_no_model_gives_ends_the_call_and_the_upstream_is_let_go_of() {
    let mut scene = Scene::of(required(SAMPLE), vec![], MINUTE);
    scene.question().await;
    assert!(!scene.held.is_cancelled());
    scene.withdrawn().await;
    assert!(matches!(scene.end().await, Err(Error::InputRefused)));
    let_go_of(&scene);
}

/// Nothing is held open any more, and no call was made for that, which could be refused.
fn let_go_of(scene: &Scene) {
    assert!(scene.held.is_cancelled());
    assert!(scene.brought().is_empty());
}

#[tokio::test(start_paused = true)]
async fn time_that_a_person_takes_is_not_the_calls() {
    let second = Outcome::InputRequired(required(FORM));
    let mut scene = Scene::of(required(FORM), vec![second], MINUTE);
    for _ in 0..2 {
        let question = scene.question().await;
        tokio::time::advance(5 * MINUTE).await;
        assert!(scene.answer(&question, Ok(json(r#"{"action":"decline"}"#))));
    }
    assert!(scene.end().await.is_ok());
    for call in &*scene.calls.lock().unwrap() {
        let left = call.deadline.saturating_duration_since(Instant::now());
        assert!(left <= MINUTE, "{left:?}");
    }
    let last = scene.calls.lock().unwrap()[1].deadline;
    assert_eq!(last - Instant::now(), MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_dropped_or_whose_session_ends_lets_go_of_the_upstream() {
    let mut scene = Scene::of(required(FORM), vec![], MINUTE);
    let question = scene.question().await;
    scene.talk = stream::empty().boxed();
    let_go_of(&scene);
    assert!(
        !scene.answer(&question, Ok(Json::empty_object())),
        "forgotten"
    );

    let mut scene = Scene::of(required(FORM), vec![], MINUTE);
    scene.question().await;
    scene.session.ended.cancel();
    assert!(scene.end().await.is_err());
    let_go_of(&scene);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_went_on_is_not_let_go_of_beside() {
    let mut scene = Scene::of(required(FORM), vec![], MINUTE);
    let question = scene.question().await;
    assert!(scene.answer(&question, Ok(json(r#"{"action":"accept","content":{}}"#))));
    assert!(scene.end().await.is_ok());
    scene.talk = stream::empty().boxed();
    tokio::task::yield_now().await;
    assert_eq!(scene.calls.lock().unwrap().len(), 1);
    // What holds it went along, so that whoever refuses the call lets go.
    assert!(!scene.held.is_cancelled());
    scene.calls.lock().unwrap().clear();
    assert!(scene.held.is_cancelled());
}

#[tokio::test]
async fn what_happens_at_the_last_moment_is_told_before_the_outcome() {
    let asks_again = vec![Outcome::InputRequired(required(FORM))];
    for then in [vec![], asks_again] {
        let again = !then.is_empty();
        let mut scene = Scene::of(required(FORM), then, MINUTE);
        let question = scene.question().await;
        assert!(scene.answer(&question, Ok(json(r#"{"action":"accept","content":{}}"#))));
        for n in 0..8 {
            let event = Event::Progress(json(&format!(r#"{{"progress":{n}}}"#)));
            scene.aside.try_send(event).unwrap();
        }
        for n in 0..8 {
            match scene.talk.next().await {
                Some(Turn::Event(Event::Progress(told))) => {
                    assert_eq!(told.as_str(), format!(r#"{{"progress":{n}}}"#));
                }
                _ => panic!("event {n} was lost"),
            }
        }
        if again {
            scene.question().await;
        } else {
            assert!(scene.end().await.is_ok());
        }
    }
}

#[tokio::test]
async fn a_server_that_never_stops_telling_keeps_no_answer_from_going_on() {
    let mut scene = Scene::of(required(FORM), vec![], MINUTE);
    let question = scene.question().await;
    assert!(scene.answer(&question, Ok(json(r#"{"action":"accept","content":{}}"#))));
    for _ in 0..1_000 {
        let event = Event::Progress(json(r#"{"progress":1}"#));
        scene.aside.try_send(event).unwrap();
        if let Some(Turn::End(ended)) = scene.talk.next().await {
            assert!(ended.is_ok());
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_nothing_is_asked_again_at_a_measured_pace() {
    let more = || Outcome::InputRequired(required("{}"));
    let mut scene = Scene::of(required("{}"), vec![more(), more(), more()], MINUTE);
    let before = Instant::now();
    assert!(scene.end().await.is_ok());
    assert_eq!(before.elapsed(), PACE * (1 + 2 + 4 + 8));
    let state = || (None, State::Sealed("state".into()));
    assert_eq!(scene.brought(), [state(), state(), state(), state()]);
}

#[tokio::test]
async fn more_questions_than_a_session_may_have_open_count_as_refused() {
    let mut scene = Scene::of(required(SAMPLE), vec![], MINUTE);
    let open: Vec<_> = std::iter::from_fn(|| asks::open(&scene.session)).collect();
    assert_eq!(open.len(), 64);
    assert!(matches!(scene.end().await, Err(Error::InputRefused)));
    let mut scene = Scene::of(required(FORM), vec![], MINUTE);
    let _open: Vec<_> = std::iter::from_fn(|| asks::open(&scene.session)).collect();
    assert!(scene.end().await.is_ok());
    let cancelled = r#"{"f":{"action":"cancel"}}"#.to_owned();
    assert_eq!(scene.brought()[0].0, Some(cancelled));
}

const BOTH: &str = r#"{"f":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}},"r":{"method":"roots/list"}}"#;

fn withdrawal(question: &Request) -> String {
    format!(r#"{{"requestId":{}}}"#, question.id.as_str())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_while_its_client_is_asked_ends_at_once() {
    for lost in [false, true] {
        let mut scene = Scene::of(required(BOTH), vec![], MINUTE);
        let before = Instant::now();
        let (form, roots) = (scene.question().await, scene.question().await);
        assert!(scene.answer(&roots, Ok(json(r#"{"roots":[]}"#))));
        if lost {
            // Nobody reads it on any more.
            scene.meanwhile = None;
        } else {
            let meanwhile = scene.meanwhile.as_ref().unwrap();
            meanwhile.send_modify(|meanwhile| meanwhile.over = true);
        }
        assert_eq!(scene.withdrawn().await, withdrawal(&form));
        assert!(scene.end().await.is_ok());
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(
            scene.brought(),
            [(Some("{}".to_owned()), State::Sealed("state".into()))],
            "nobody waits for answers"
        );
        assert!(!scene.answer(&form, Ok(Json::empty_object())), "late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_is_taken_back_from_the_client_and_the_others_stay() {
    let mut scene = Scene::of(required(BOTH), vec![], MINUTE);
    let before = Instant::now();
    let (form, roots) = (scene.question().await, scene.question().await);
    let take_back = |scene: &Scene, key: &str| {
        let meanwhile = scene.meanwhile.as_ref().unwrap();
        meanwhile.send_modify(|meanwhile| meanwhile.withdrawn.push(key.to_owned()));
    };
    take_back(&scene, "f");
    assert_eq!(scene.withdrawn().await, withdrawal(&form));
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert!(!scene.answer(&form, Ok(Json::empty_object())), "late");
    // The time that a person has is the same as ever.
    assert_eq!(scene.withdrawn().await, withdrawal(&roots));
    assert_eq!(before.elapsed(), PATIENCE);

    let mut scene = Scene::of(required(BOTH), vec![], MINUTE);
    let (form, roots) = (scene.question().await, scene.question().await);
    take_back(&scene, "f");
    assert_eq!(scene.withdrawn().await, withdrawal(&form));
    assert!(scene.answer(&roots, Ok(json(r#"{"roots":[]}"#))));
    assert!(scene.end().await.is_ok());
    let answers = r#"{"r":{"roots":[]}}"#.to_owned();
    assert_eq!(
        scene.brought(),
        [(Some(answers), State::Sealed("state".into()))]
    );

    // With the last question the waiting ends, and the call goes on.
    let mut scene = Scene::of(required(SAMPLE), vec![], MINUTE);
    let sample = scene.question().await;
    take_back(&scene, "s");
    assert_eq!(scene.withdrawn().await, withdrawal(&sample));
    assert!(scene.end().await.is_ok());
    assert_eq!(
        scene.brought(),
        [(Some("{}".to_owned()), State::Sealed("state".into()))]
    );
}
