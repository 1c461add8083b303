//! Serving scripted upstreams: Streamable HTTP, the two endpoints of 2024-11-05, and connections that stand for pipes.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use usher::{protocol::Era, tasks::Tasks};

use super::{
    script::Heard,
    stage::{OUTGOING, Out, Outlet, OutletKind, Spoken, Stage, Wire},
};

type Body = UnsyncBoxBody<Bytes, io::Error>;
/// Open event streams of the two-endpoint transport, by session.
type Streams = Arc<Mutex<HashMap<String, mpsc::Sender<Out>>>>;

/// Serves `stage` on a free port until `tasks` stop.
pub(super) fn serve(stage: &Arc<Stage>, tasks: &Tasks) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let (stage, family) = (Arc::clone(stage), tasks.clone());
    let streams = Streams::default();
    tasks.spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            if stage.is_down() {
                continue;
            }
            socket.set_nodelay(true).unwrap();
            let (stage, streams) = (Arc::clone(&stage), Arc::clone(&streams));
            family.spawn(async move {
                let cut = stage.cut.notified();
                let served = async {
                    match stage.wire {
                        Wire::Pipe => pipe(&stage, socket).await,
                        Wire::Http | Wire::Sse => http(&stage, streams, socket).await,
                    }
                };
                tokio::select! {
                    () = cut => {}
                    () = served => {}
                }
            });
        }
    });
    address
}

async fn http(stage: &Arc<Stage>, streams: Streams, socket: TcpStream) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (stage, streams) = (Arc::clone(stage), Arc::clone(&streams));
        async move {
            match stage.wire {
                Wire::Sse => two_endpoints(&stage, &streams, request).await,
                Wire::Http | Wire::Pipe => streamable(&stage, request).await,
            }
        }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    // A connection that ends early is what some tests are about.
    drop(
        builder
            .serve_connection(TokioIo::new(socket), service)
            .await,
    );
}

async fn streamable(stage: &Arc<Stage>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let session = head.headers.get("mcp-session-id");
    let session = session.map(|value| value.to_str().unwrap().to_owned());
    match head.method {
        Method::POST => {}
        Method::DELETE => {
            stage.note(Heard {
                method: "DELETE".into(),
                params: "{}".into(),
                id: None,
                headers: head.headers,
                session,
            });
            return Ok(status(200));
        }
        Method::GET if stage.tells() && stage.revision.era() == Era::Legacy => {
            stage.note(Heard {
                method: "GET".into(),
                params: "{}".into(),
                id: None,
                headers: head.headers,
                session: session.clone(),
            });
            let (out, outgoing) = mpsc::channel(OUTGOING);
            stage.outlet(Outlet {
                session,
                kind: OutletKind::Stream,
                out,
            });
            return Ok(events(outgoing));
        }
        _ => {
            stage.note(Heard {
                method: "refused GET".into(),
                params: "{}".into(),
                id: None,
                headers: head.headers,
                session,
            });
            return Ok(status(405));
        }
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    Ok(match stage.speak(&text, &head.headers, session) {
        Spoken::Frames(mut frames, session) => {
            let mut answer = if frames.len() == 1 {
                with_body("application/json", full(frames.remove(0)))
            } else {
                let events = frames
                    .into_iter()
                    .map(|frame| Ok(Frame::data(event("message", &frame))));
                with_body(
                    "text/event-stream",
                    StreamBody::new(stream::iter(events)).boxed_unsync(),
                )
            };
            if let Some(session) = session {
                answer
                    .headers_mut()
                    .insert("mcp-session-id", session.parse().unwrap());
            }
            answer
        }
        Spoken::Live(outgoing) => events(outgoing),
        Spoken::Gated(before, gate, after) => {
            let event = |frame: String| Ok(Frame::data(event("message", &frame)));
            // A comment first, so that the head goes out though nothing is said yet.
            let open = Ok(Frame::data(Bytes::from_static(b":\n\n")));
            let after = stream::once(async move { gate.pass().await })
                .flat_map(move |()| stream::iter(after.clone()));
            let frames = stream::iter(before).chain(after).map(event);
            let frames = stream::once(std::future::ready(open)).chain(frames);
            with_body(
                "text/event-stream",
                StreamBody::new(frames.boxed()).boxed_unsync(),
            )
        }
        Spoken::Refused(code, frame) => {
            let mut answer = with_body("application/json", full(frame));
            *answer.status_mut() = code.try_into().unwrap();
            // Who forbids something and says why asks for no login.
            if code == 403 {
                answer.headers_mut().remove("www-authenticate");
            }
            answer
        }
        Spoken::Accepted => status(202),
        Spoken::Status(code) => status(code),
        Spoken::Hang => std::future::pending().await,
        Spoken::Die => return Err(io::Error::other("the script ends it")),
        Spoken::Flood => {
            let noise = stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[b'x'; 8192]))));
            with_body("application/json", StreamBody::new(noise).boxed_unsync())
        }
    })
}

/// A stream of what comes.
fn events(outgoing: mpsc::Receiver<Out>) -> Response<Body> {
    let events = stream::unfold(outgoing, |mut outgoing| async {
        let out = match outgoing.recv().await? {
            Out::Frame(frame) => Ok(Frame::data(event("message", &frame))),
            Out::Noise(bytes) => Ok(Frame::data(bytes)),
            Out::Die => Err(io::Error::other("the script ends it")),
        };
        Some((out, outgoing))
    });
    with_body("text/event-stream", StreamBody::new(events).boxed_unsync())
}

async fn two_endpoints(
    stage: &Arc<Stage>,
    streams: &Streams,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    match (head.method, head.uri.path()) {
        (Method::GET, "/sse") => {
            let session = stage.new_session();
            let (sender, receiver) = mpsc::channel(OUTGOING);
            let place = event("endpoint", &format!("/messages?session={session}"));
            sender.try_send(Out::Noise(place)).unwrap();
            stage.outlet(Outlet {
                session: Some(session.clone()),
                kind: OutletKind::Whole,
                out: sender.clone(),
            });
            streams.lock().unwrap().insert(session, sender);
            Ok(events(receiver))
        }
        (Method::POST, "/messages") => {
            let query = head.uri.query().unwrap_or_default();
            let session = query.strip_prefix("session=").unwrap().to_owned();
            let sender = streams.lock().unwrap().get(&session).cloned();
            let Some(sender) = sender else {
                return Ok(status(404));
            };
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let text = String::from_utf8(body.to_vec()).unwrap();
            match stage.speak(&text, &head.headers, Some(session.clone())) {
                Spoken::Frames(frames, _) => {
                    for frame in frames {
                        // The gateway may have hung up meanwhile.
                        drop(sender.send(Out::Frame(frame)).await);
                    }
                }
                Spoken::Die => {
                    streams.lock().unwrap().remove(&session);
                    drop(sender.send(Out::Die).await);
                }
                Spoken::Live(outgoing) => stage.forward(outgoing, sender),
                Spoken::Status(code) => return Ok(status(code)),
                Spoken::Gated(..)
                | Spoken::Refused(..)
                | Spoken::Accepted
                | Spoken::Hang
                | Spoken::Flood => {}
            }
            Ok(status(202))
        }
        _ => Ok(status(405)),
    }
}

/// One connection is one process: a message a line.
async fn pipe(stage: &Arc<Stage>, socket: TcpStream) {
    let session = stage.new_session();
    let (reader, mut writer) = socket.into_split();
    let (out, mut outgoing) = mpsc::channel(OUTGOING);
    stage.outlet(Outlet {
        session: Some(session.clone()),
        kind: OutletKind::Whole,
        out: out.clone(),
    });
    let written = async move {
        while let Some(out) = outgoing.recv().await {
            let bytes = match out {
                Out::Frame(frame) => format!("{}\n", frame.replace('\n', " ")).into(),
                Out::Noise(bytes) => bytes,
                Out::Die => return,
            };
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    let mut lines = BufReader::new(reader).lines();
    let heard = async {
        while let Ok(Some(line)) = lines.next_line().await {
            match stage.speak(&line, &http::HeaderMap::new(), Some(session.clone())) {
                Spoken::Frames(frames, _) => {
                    for frame in frames {
                        drop(out.send(Out::Frame(frame)).await);
                    }
                }
                Spoken::Live(outgoing) => stage.forward(outgoing, out.clone()),
                Spoken::Die => return,
                Spoken::Flood => {
                    let noise = || Out::Noise(Bytes::from_static(&[b'x'; 8192]));
                    while out.send(noise()).await.is_ok() {}
                }
                Spoken::Gated(..)
                | Spoken::Refused(..)
                | Spoken::Accepted
                | Spoken::Status(_)
                | Spoken::Hang => {}
            }
        }
    };
    tokio::select! {
        () = written => {}
        () = heard => {}
    }
}

fn event(name: &str, data: &str) -> Bytes {
    let data = data.replace('\n', "\ndata: ");
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn status(code: u16) -> Response<Body> {
    meddling().status(code).body(full(String::new())).unwrap()
}

fn with_body(kind: &str, body: Body) -> Response<Body> {
    meddling().header("content-type", kind).body(body).unwrap()
}

/// Headers on every answer that are none of the client's business; [`MEDDLING`] is in each of their values.
fn meddling() -> http::response::Builder {
    Response::builder()
        .header("set-cookie", format!("{MEDDLING}=1"))
        .header("location", format!("http://127.0.0.1:1/{MEDDLING}"))
        .header("www-authenticate", format!("Bearer scope=\"{MEDDLING}\""))
        .header("access-control-allow-origin", format!("https://{MEDDLING}"))
        .header("x-of-the-upstream", MEDDLING)
}

/// See [`meddling`].
pub(crate) const MEDDLING: &str = "m3ddl1ng";
