//! An open event stream, read as it comes.

use std::{collections::VecDeque, net::SocketAddr};

use http::{HeaderMap, Method};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use usher::tasks::Tasks;

use super::{PATIENCE, open, within};

/// One event as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// An open stream. It is closed when it is dropped.
pub(crate) struct EventStream {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    text: String,
    ready: VecDeque<Event>,
    // The connection's owner.
    tasks: Tasks,
}

impl EventStream {
    pub(crate) async fn open(
        address: SocketAddr,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let tasks = Tasks::new();
        let opening = open(&tasks, address, method, path, headers, body.as_bytes());
        let (head, body) = within(PATIENCE, "an answer's head", opening)
            .await
            .into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            text: String::new(),
            ready: VecDeque::new(),
            tasks,
        }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        within(PATIENCE, "an event", async {
            loop {
                if let Some(event) = self.ready.pop_front() {
                    return Some(event);
                }
                let frame = self.body.frame().await?;
                let Ok(data) = frame.unwrap().into_data() else {
                    continue;
                };
                self.text.push_str(std::str::from_utf8(&data).unwrap());
                while let Some(at) = self.text.find("\n\n") {
                    let rest = self.text.split_off(at + 2);
                    let text = std::mem::replace(&mut self.text, rest);
                    self.ready.extend(event(&text));
                }
            }
        })
        .await
    }

    /// The next event that says something.
    pub(crate) async fn message(&mut self) -> Event {
        loop {
            let event = self.next().await.expect("a message");
            if !event.data.is_empty() {
                return event;
            }
        }
    }

    /// The rest, to the end.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// `None` for comments.
fn event(text: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut any = false;
    for line in text.lines().filter(|line| !line.starts_with(':')) {
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        any = true;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event.name),
            "id" => event.id = Some(value.to_owned()),
            "data" => {
                if !event.data.is_empty() {
                    event.data.push('\n');
                }
                event.data.push_str(value);
            }
            other => panic!("a field `{other}`"),
        }
    }
    any.then_some(event)
}
