//! An answer that is listened to while it comes: for what a server asks before it ends.

use std::{collections::VecDeque, net::SocketAddr};

use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use usher::tasks::Tasks;

use super::{PATIENCE, client::open, within};

/// One POST and what has come back of its answer. Dropping it breaks the connection.
pub(crate) struct Talk {
    body: Incoming,
    streams: bool,
    text: String,
    frames: VecDeque<String>,
    tasks: Tasks,
}

impl Talk {
    pub(super) async fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let tasks = Tasks::new();
        let opening = open(
            &tasks,
            address,
            Method::POST,
            path,
            headers,
            body.as_bytes(),
        );
        let response = within(PATIENCE, body, opening).await;
        let (head, body) = response.into_parts();
        let kind = head.headers.get("content-type");
        Self {
            streams: kind.is_some_and(|kind| kind == "text/event-stream"),
            body,
            text: String::new(),
            frames: VecDeque::new(),
            tasks,
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        within(PATIENCE, "a message", async {
            loop {
                if let Some(frame) = self.frames.pop_front() {
                    return Some(frame);
                }
                match self.body.frame().await {
                    Some(frame) => self.take(frame.unwrap().into_data().ok()?.as_ref()),
                    None if self.text.trim().is_empty() => return None,
                    None => return Some(std::mem::take(&mut self.text)),
                }
            }
        })
        .await
    }

    /// The next message, which must come.
    pub(crate) async fn hear(&mut self) -> String {
        self.next().await.expect("the answer ended")
    }

    fn take(&mut self, bytes: &[u8]) {
        self.text.push_str(std::str::from_utf8(bytes).unwrap());
        if !self.streams {
            return;
        }
        while let Some((event, rest)) = self.text.split_once("\n\n") {
            let data: Vec<_> = event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            let data = data.join("\n");
            if !data.trim().is_empty() {
                self.frames.push_back(data);
            }
            self.text = rest.to_owned();
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}
