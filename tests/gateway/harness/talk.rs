//! Answers read as they come, and conversations in which the client is asked back.

use bytes::BytesMut;
use http::{HeaderMap, Method};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use usher::{protocol::Era, tasks::Tasks};

use super::{
    PATIENCE,
    client::{Answer, Ask, Client, open},
    events::Event,
    json::{member, members, parse, quote},
    within,
};

/// An answer that is read as it comes. Dropping it closes the connection.
pub(crate) struct Talk {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    read: BytesMut,
    ended: bool,
    tasks: Tasks,
}

/// What a client was asked, and what it then got.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The response.
    pub(crate) answer: Answer,
    /// Methods and params, in the order in which they came.
    pub(crate) asked: Vec<(String, Value)>,
}

/// What a client says when it is asked.
pub(crate) enum Says {
    /// This result.
    Result(String),
    /// This error, as only the handshake era can say it.
    Error(String),
}

impl Talk {
    /// The next event; `None` at the end of the stream, broken or not.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        within(PATIENCE, "an event", async {
            loop {
                if let Some(event) = self.buffered() {
                    return Some(event);
                }
                if self.ended {
                    return None;
                }
                match self.body.frame().await {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            self.read.extend_from_slice(&data);
                        }
                    }
                    Some(Err(_)) | None => self.ended = true,
                }
            }
        })
        .await
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                return Some(event.data);
            }
        }
    }

    /// The next message, which must come.
    pub(crate) async fn hear(&mut self) -> String {
        let status = self.status;
        let message = self.next().await;
        message.unwrap_or_else(|| panic!("the answer of status {status} ended"))
    }

    /// Everything up to the end, as an answer.
    pub(crate) async fn rest(mut self) -> Answer {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        Answer {
            status: self.status,
            headers: self.headers.clone(),
            body: String::new(),
            frames,
        }
    }

    fn is_stream(&self) -> bool {
        let kind = self.headers.get("content-type");
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }

    /// An event that has come whole. Comments are no events.
    fn buffered(&mut self) -> Option<Event> {
        if !self.is_stream() {
            let whole = self.ended && !self.read.is_empty();
            return whole.then(|| Event {
                data: String::from_utf8(self.read.split().to_vec()).unwrap(),
                ..Event::default()
            });
        }
        loop {
            let end = self.read.windows(2).position(|pair| pair == b"\n\n")?;
            let text = self.read.split_to(end + 2);
            let text = std::str::from_utf8(&text).unwrap();
            let mut event = Event::default();
            let mut said = false;
            for line in text.lines() {
                let Some((field, value)) = line.split_once(':') else {
                    continue;
                };
                let value = value.strip_prefix(' ').unwrap_or(value);
                said |= !field.is_empty();
                match field {
                    "event" => value.clone_into(&mut event.name),
                    "id" => event.id = Some(value.to_owned()),
                    "data" if event.data.is_empty() => value.clone_into(&mut event.data),
                    "data" => event.data = format!("{}\n{value}", event.data),
                    _ => {}
                }
            }
            if said {
                return Some(event);
            }
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Client {
    /// The stream of this session, from this event on if one is named.
    pub(crate) async fn stream(&self, last_event: Option<&str>) -> Talk {
        let mut headers = self.session_headers();
        headers.push(("accept", "text/event-stream"));
        if let Some(last) = last_event {
            headers.push(("last-event-id", last));
        }
        self.talk(Method::GET, &headers, b"").await
    }

    /// Answers a request of the gateway's with `result` or `error`, which the member says.
    pub(crate) async fn reply(&self, request: &str, member_and_value: (&str, &str)) -> Answer {
        let id = member(request, "id").unwrap_or_else(|| panic!("no id: {request}"));
        let (key, value) = member_and_value;
        self.post(
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{value}}}"#),
            &[],
        )
        .await
    }

    /// A notification, which must be taken.
    pub(crate) async fn notify(&self, method: &str, params: &str) {
        let told = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        assert_eq!(self.post(&told, &[]).await.status, 202);
    }

    async fn talk(&self, method: Method, headers: &[(&str, &str)], body: &[u8]) -> Talk {
        let tasks = Tasks::new();
        let opening = open(&tasks, self.address, method, &self.path, headers, body);
        let response = within(PATIENCE, "the head of an answer", opening).await;
        let (head, body) = response.into_parts();
        Talk {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            read: BytesMut::new(),
            ended: false,
            tasks,
        }
    }
}

impl Ask<'_> {
    /// Sends it, and reads the answer as it comes.
    pub(crate) async fn begin(&self) -> Talk {
        let (body, headers) = self.spelled();
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let headers = self.client.with_headers(&headers);
        self.client
            .talk(Method::POST, &headers, body.as_bytes())
            .await
    }

    /// Sends it, and answers whatever the client is asked on the way: by responses in the handshake era, by calling
    /// again in the other. Fails when it is asked too often.
    pub(crate) async fn answering(self, says: impl Fn(&str, &Value) -> Says) -> Conversation {
        if self.client.revision.era() == Era::Legacy {
            self.in_requests(says).await
        } else {
            self.in_rounds(says).await
        }
    }

    async fn in_requests(self, says: impl Fn(&str, &Value) -> Says) -> Conversation {
        let mut talk = self.begin().await;
        let mut asked = Vec::new();
        let mut frames = Vec::new();
        loop {
            let message = talk.hear().await;
            let method = member(&message, "method");
            match (method, member(&message, "id")) {
                (Some(method), Some(_)) => {
                    let method = parse(&method).as_str().unwrap().to_owned();
                    let params =
                        member(&message, "params").map_or(Value::Null, |text| parse(&text));
                    let said = says(&method, &params);
                    asked.push((method, params));
                    let (key, value) = match said {
                        Says::Result(result) => ("result", result),
                        Says::Error(error) => ("error", error),
                    };
                    let taken = self.client.reply(&message, (key, &value)).await;
                    assert_eq!(taken.status, 202, "{taken:?}");
                }
                (Some(_), None) => frames.push(message),
                (None, _) => {
                    frames.push(message);
                    let answer = Answer {
                        status: talk.status,
                        headers: talk.headers.clone(),
                        body: String::new(),
                        frames,
                    };
                    return Conversation { answer, asked };
                }
            }
            assert!(asked.len() < 100, "asked without end: {asked:?}");
        }
    }

    async fn in_rounds(mut self, says: impl Fn(&str, &Value) -> Says) -> Conversation {
        let first = self.params.clone();
        let mut asked = Vec::new();
        for _ in 0..40 {
            let answer = self.client.again(&self).await;
            let Some(result) = member(answer.message(), "result") else {
                return Conversation { answer, asked };
            };
            if member(&result, "resultType").as_deref() != Some(r#""input_required""#) {
                return Conversation { answer, asked };
            }
            let requests =
                member(&result, "inputRequests").map_or_else(Vec::new, |it| members(&it));
            let mut responses = Vec::new();
            for (key, request) in requests {
                let request = parse(&request);
                let method = request["method"].as_str().unwrap().to_owned();
                match says(&method, &request["params"]) {
                    Says::Result(result) => responses.push(format!("{}:{result}", quote(&key))),
                    Says::Error(error) => panic!("this era has no way to say {error}"),
                }
                asked.push((method, request["params"].clone()));
            }
            let state = member(&result, "requestState");
            self.params = again(&first, &responses.join(","), state.as_deref());
            self.id = self.client.next_id();
        }
        panic!("asked without end: {asked:?}");
    }
}

/// The params of a call with what its next round brings.
pub(crate) fn again(params: &str, responses: &str, state: Option<&str>) -> String {
    let end = params.trim_end().strip_suffix('}').unwrap();
    let state = state.map_or_else(String::new, |state| format!(r#","requestState":{state}"#));
    let comma = if end.trim_end().ends_with('{') {
        ""
    } else {
        ","
    };
    format!(r#"{end}{comma}"inputResponses":{{{responses}}}{state}}}"#)
}
