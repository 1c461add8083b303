//! HTTP+SSE against local hyper servers.

use std::sync::{Arc, Mutex};

use futures_util::{FutureExt, StreamExt};
use http::{Request, Response, header::AUTHORIZATION};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{super::rig::*, *};
use crate::{
    json::Limits,
    jsonrpc::{Message, decode},
};

/// The server's side: what to say on the stream, and what was posted.
struct Server {
    stream: Arc<Mutex<Option<mpsc::Sender<Bytes>>>>,
    posted: mpsc::Receiver<Request<Bytes>>,
    spec: HttpSpec,
}

/// Names `endpoint` on GET and answers each POST with `status`.
async fn server(tasks: &Tasks, endpoint: &'static str, status: u16) -> Server {
    let stream = Arc::new(Mutex::new(None));
    let (post, posted) = mpsc::channel(100);
    let keep = Arc::clone(&stream);
    let address = serve(tasks, None, None, move |request| {
        let answer: Response<Body> = if request.method() == Method::GET {
            assert_eq!(request.headers()[ACCEPT], "text/event-stream");
            let (sender, receiver) = mpsc::channel(100);
            sender.try_send(endpoint.into()).unwrap();
            *keep.lock().unwrap() = Some(sender);
            answer(200, "text/event-stream", open(receiver))
        } else {
            post.try_send(request).unwrap();
            answer(status, "text/plain", full("Accepted"))
        };
        std::future::ready(answer)
    })
    .await;
    let mut spec = spec("http", "127.0.0.1", address, "/sse");
    spec.headers
        .push((AUTHORIZATION, "Bearer s3cret".to_owned().into()));
    Server {
        stream,
        posted,
        spec,
    }
}

const NAMED: &str = "event: endpoint\ndata: /messages?session=s3cret\n\n";

impl Server {
    fn say(&self, text: &str) {
        let stream = self.stream.lock().unwrap();
        let event = format!("event: message\ndata: {text}\n\n");
        stream.as_ref().unwrap().try_send(event.into()).unwrap();
    }

    fn hang_up(&self) {
        drop(self.stream.lock().unwrap().take());
    }
}

async fn open_at(spec: &HttpSpec, tasks: &Tasks) -> Result<Sse, UpstreamError> {
    Sse::open(
        &UpstreamId::parse("u").unwrap(),
        spec,
        dial(spec),
        None,
        timeouts(),
        &PeerBounds::default(),
        tasks,
    )
    .await
}

#[tokio::test]
async fn frames_are_posted_and_answers_come_on_the_stream() {
    let tasks = Tasks::new();
    let mut server = server(&tasks, NAMED, 202).await;
    let sse = open_at(&server.spec, &tasks).await.unwrap();
    assert!(!format!("{sse:?}").contains("s3cret"));
    let mut out = request(1);
    let frame = out.frame.clone();
    out.headers
        .insert("mcp-session-id", HeaderValue::from_static("s"));
    let serving = async {
        let posted = server.posted.recv().await.unwrap();
        assert_eq!(posted.uri(), "/messages?session=s3cret");
        assert_eq!(posted.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(posted.headers()[AUTHORIZATION], "Bearer s3cret");
        assert_eq!(posted.body(), &frame);
        server.say(&progress(1, 1));
        server.say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}");
        server.say(&result(1, 7));
    };
    let (answer, ()) = tokio::join!(ask(&sse, out), serving);
    assert_eq!(answer.unwrap(), ["notifications/progress", "{\"n\":7}"]);
    let mut unsolicited = sse.unsolicited(HeaderMap::new()).await.unwrap();
    let frame = unsolicited.next().await.unwrap().unwrap();
    assert_eq!(gist(&frame), "roots/list");
    let accepted = ask(&sse, notification()).await.unwrap();
    assert_eq!(accepted, ["accepted 202"]);
}

/// A server that answers a POST with the status that comes next, and with nothing until it comes; where that is a success it has
/// said the result of request 1 before. A POST that is broken off meanwhile is told by `broken_off`.
async fn slow(tasks: &Tasks, broken_off: &CancellationToken) -> (Server, mpsc::Sender<u16>) {
    let stream = Arc::new(Mutex::new(None));
    let (post, posted) = mpsc::channel(100);
    let (answers, next) = mpsc::channel(1);
    let next = Arc::new(tokio::sync::Mutex::new(next));
    let (keep, broken_off) = (Arc::clone(&stream), broken_off.clone());
    let address = serve(tasks, None, None, move |request| {
        let (keep, post, next) = (Arc::clone(&keep), post.clone(), Arc::clone(&next));
        let broken_off = broken_off.clone();
        async move {
            if request.method() == Method::GET {
                let (sender, receiver) = mpsc::channel(100);
                sender.try_send(NAMED.into()).unwrap();
                *keep.lock().unwrap() = Some(sender);
                return answer(200, "text/event-stream", open(receiver));
            }
            let unanswered = broken_off.drop_guard();
            post.try_send(request).unwrap();
            let status = next.lock().await.recv().await.unwrap();
            unanswered.disarm();
            if status == 202 {
                let event = format!("data: {}\n\n", result(1, 7));
                let stream = keep.lock().unwrap();
                stream.as_ref().unwrap().try_send(event.into()).unwrap();
            }
            answer(status, "text/plain", full(""))
        }
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/sse");
    let server = Server {
        stream,
        posted,
        spec,
    };
    (server, answers)
}

/// The stream of an answer that has begun before its POST was answered.
async fn begun(server: &mut Server, sse: &Sse) -> Frames {
    let serving = async {
        server.posted.recv().await.unwrap();
        server.say(&progress(1, 1));
    };
    let (answer, ()) = tokio::join!(sse.send(request(1)), serving);
    let Ok(Answer::Stream(_, mut frames)) = answer else {
        panic!("no stream");
    };
    let first = frames.next().await.unwrap().unwrap();
    assert_eq!(gist(&first), "notifications/progress");
    frames
}

#[tokio::test]
async fn a_post_that_is_answered_when_the_work_is_done_is_waited_for_however_long_that_takes() {
    let (tasks, broken_off) = (Tasks::new(), CancellationToken::new());
    let (mut server, answers) = slow(&tasks, &broken_off).await;
    let sse = open_at(&server.spec, &tasks).await.unwrap();
    let mut frames = begun(&mut server, &sse).await;
    let working = async {
        for step in 2..10 {
            server.say(&progress(1, step));
            frames.next().await.unwrap().unwrap();
            tokio::time::pause();
            tokio::time::advance(AFTERMATH).await;
            tokio::time::resume();
        }
        answers.try_send(202).unwrap();
        frames.next().await.unwrap().unwrap()
    };
    tokio::select! {
        last = working => assert_eq!(gist(&last), "{\"n\":7}"),
        () = broken_off.cancelled() => panic!("broken off in the middle of the work"),
    }
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn a_post_that_fails_after_the_first_frame_ends_the_answer() {
    for (status, said) in [
        (500, "upstream_unavailable"),
        (307, "upstream_redirect"),
        (401, "upstream_auth_failed"),
    ] {
        let (tasks, broken_off) = (Tasks::new(), CancellationToken::new());
        let (mut server, answers) = slow(&tasks, &broken_off).await;
        let sse = open_at(&server.spec, &tasks).await.unwrap();
        let mut frames = begun(&mut server, &sse).await;
        answers.try_send(status).unwrap();
        let failed = timeout(Duration::from_secs(20), frames.next()).await;
        let error = failed.expect("told").unwrap().unwrap_err();
        assert_eq!(error.reason(), said, "{status}");
        assert!(frames.next().await.is_none());
    }
}

/// What stands in front of a server gives a POST up that is long in being answered; the server works on.
#[tokio::test]
async fn a_post_that_was_given_up_on_the_way_ends_no_answer() {
    for status in [502, 503, 504, 524] {
        let (tasks, broken_off) = (Tasks::new(), CancellationToken::new());
        let (mut server, answers) = slow(&tasks, &broken_off).await;
        let sse = open_at(&server.spec, &tasks).await.unwrap();
        let mut frames = begun(&mut server, &sse).await;
        answers.try_send(status).unwrap();
        let waiting = timeout(Duration::from_millis(200), frames.next()).await;
        assert!(waiting.is_err(), "{status}");
        server.say(&result(1, 7));
        let last = timeout(Duration::from_secs(20), frames.next()).await;
        assert_eq!(gist(&last.unwrap().unwrap().unwrap()), "{\"n\":7}");
    }
}

/// The first frame of an answer, and its last if so wanted.
fn heard(last: bool) -> Vec<Result<Frame, UpstreamError>> {
    let texts = [Some(progress(1, 1)), last.then(|| result(1, 7))];
    let frame = |text: String| match decode(text.into(), &Limits::LIST) {
        Ok(Message::One(frame)) => Ok(frame),
        other => panic!("{other:?}"),
    };
    texts.into_iter().flatten().map(frame).collect()
}

#[tokio::test]
async fn what_came_before_a_post_failed_is_heard_first() {
    for (last, told) in [(true, 2), (false, 1)] {
        let mut posted = Posted {
            frames: stream::iter(heard(last)).chain(stream::pending()).boxed(),
            posting: Some(Box::pin(std::future::ready(Err(UpstreamError::Redirect(
                None,
            ))))),
            tasks: Tasks::new(),
        };
        for _ in 0..told {
            assert!(posted.next().await.unwrap().is_ok());
        }
        if !last {
            let error = posted.next().await.unwrap().unwrap_err();
            assert_eq!(error.reason(), "upstream_redirect");
        }
    }
    // A connection that broke is no word of the server's.
    let broken = UpstreamError::unreached("reset");
    let later = stream::once(tokio::task::yield_now());
    let mut posted = Posted {
        frames: later.flat_map(|()| stream::iter(heard(true))).boxed(),
        posting: Some(Box::pin(std::future::ready(Err(broken)))),
        tasks: Tasks::new(),
    };
    assert!(posted.next().await.unwrap().is_ok());
    assert!(posted.next().await.unwrap().is_ok());
    assert!(posted.next().await.is_none());
}

#[tokio::test]
async fn who_gives_an_answer_up_breaks_its_post_off() {
    let (tasks, broken_off) = (Tasks::new(), CancellationToken::new());
    let (mut server, _answers) = slow(&tasks, &broken_off).await;
    let sse = open_at(&server.spec, &tasks).await.unwrap();
    drop(begun(&mut server, &sse).await);
    broken_off.cancelled().await;
}

#[tokio::test]
async fn the_end_of_the_stream_is_told_to_those_who_wait() {
    let tasks = Tasks::new();
    let mut server = server(&tasks, NAMED, 202).await;
    let sse = open_at(&server.spec, &tasks).await.unwrap();
    let serving = async {
        server.posted.recv().await.unwrap();
        server.hang_up();
    };
    let (answer, ()) = tokio::join!(ask(&sse, request(1)), serving);
    assert_eq!(answer.unwrap_err().reason(), "upstream_unavailable");
    assert_eq!(sse.lost().await.reason(), "upstream_unavailable");
}

#[tokio::test]
async fn a_post_that_is_not_taken_is_told_at_once() {
    for (status, said) in [
        (404, Ok("status 404")),
        (500, Ok("status 500")),
        (307, Err("upstream_redirect")),
        (401, Err("upstream_auth_failed")),
        (413, Err("upstream_request_too_large")),
    ] {
        let tasks = Tasks::new();
        let server = server(&tasks, NAMED, status).await;
        let sse = open_at(&server.spec, &tasks).await.unwrap();
        match ask(&sse, request(1)).await {
            Ok(answer) => assert_eq!(Ok(answer[0].as_str()), said),
            Err(error) => assert_eq!(Err(error.reason()), said),
        }
    }
}

/// SECURITY EGR-3, EGR-6
#[tokio::test]
async fn an_event_stream_that_is_refused_is_told_and_looked_for_nowhere_else() {
    for (status, said) in [
        (302, "upstream_redirect"),
        (307, "upstream_redirect"),
        (401, "upstream_auth_failed"),
        (403, "upstream_auth_failed"),
    ] {
        let tasks = Tasks::new();
        let address = serve(&tasks, None, None, move |_request| {
            let mut answer = answer(status, "text/event-stream", full(NAMED));
            let elsewhere = HeaderValue::from_static("/elsewhere");
            answer.headers_mut().insert("location", elsewhere);
            std::future::ready(answer)
        })
        .await;
        let spec = spec("http", "127.0.0.1", address, "/sse");
        let error = open_at(&spec, &tasks).await.unwrap_err();
        assert_eq!(error.reason(), said, "{status}");
    }
}

#[tokio::test]
async fn only_an_address_of_the_same_origin_is_taken_and_it_comes_first() {
    for named in [
        "event: endpoint\ndata: http://elsewhere.example/messages?session=s3cret\n\n",
        "event: endpoint\ndata: //elsewhere.example/messages?session=s3cret\n\n",
        "event: message\ndata: /messages?session=s3cret\n\n",
    ] {
        let tasks = Tasks::new();
        let server = server(&tasks, named, 202).await;
        let error = open_at(&server.spec, &tasks).await.unwrap_err();
        assert_eq!(error.reason(), "upstream_protocol_error");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn a_server_without_this_transport_is_no_hang() {
    let tasks = Tasks::new();
    let address = serve(&tasks, None, None, |_request| {
        std::future::ready(answer(405, "text/plain", full("")))
    })
    .await;
    let error = open_at(&spec("http", "127.0.0.1", address, "/"), &tasks)
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");

    let server = server(&tasks, ": nothing\n\n", 202).await;
    let mut soon = timeouts();
    soon.connect = Duration::from_millis(100);
    let id = UpstreamId::parse("u").unwrap();
    let error = Sse::open(
        &id,
        &server.spec,
        dial(&server.spec),
        None,
        soon,
        &PeerBounds::default(),
        &tasks,
    )
    .await
    .unwrap_err();
    assert!(matches!(error, UpstreamError::Timeout(Deadline::Connect)));
}

#[tokio::test]
async fn closing_it_closes_the_stream_and_ends_what_waits() {
    let tasks = Tasks::new();
    let mut server = server(&tasks, NAMED, 202).await;
    let sse = open_at(&server.spec, &tasks).await.unwrap();
    let sender = server.stream.lock().unwrap().clone().unwrap();
    let closing = async {
        server.posted.recv().await.unwrap();
        sse.close().await;
    };
    let (answer, ()) = tokio::join!(ask(&sse, request(1)), closing);
    assert_eq!(answer.unwrap_err().reason(), "upstream_unavailable");
    assert!(sse.lost().now_or_never().is_some());
    sender.closed().await;
}

#[tokio::test]
async fn stopping_the_family_ends_the_transport() {
    let tasks = Tasks::new();
    let family = tasks.child();
    let server = server(&tasks, NAMED, 202).await;
    let sse = open_at(&server.spec, &family).await.unwrap();
    family.stop();
    assert_eq!(sse.lost().await.reason(), "upstream_unavailable");
}
