//! A legacy demo server on a pair of pipes: one message per line.
//!
//! Guarantees that what a request says while it runs is written before its answer, and that a line over [`LONGEST`] bytes is
//! refused without being kept. Ends when the input ends, and every running request with it.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{io, sync::Arc};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc,
};

use super::{
    frame::{self, Message, PARSE_ERROR, Refusal},
    server::DemoServer,
    session::Session,
};

/// The revision spoken on stdio.
pub(super) const REVISION: &str = "2025-11-25";
/// Longest line, in bytes.
pub(super) const LONGEST: usize = 1 << 20;
/// Messages waiting to be written; who says more waits.
const OUTBOX: usize = 64;

/// Serves one client until `input` ends.
///
/// # Errors
/// When `input` or `output` fails.
pub(super) async fn serve(
    server: &dyn DemoServer,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let session = Arc::new(Session::default());
    let mut lines = Lines::new(input);
    let (out, mut said) = mpsc::channel(OUTBOX);
    let mut changes = server.changes().subscribe();
    let mut running = FuturesUnordered::new();
    loop {
        let frames = tokio::select! {
            biased; // finish what runs before taking on more
            Some(frame) = said.recv() => vec![frame],
            Some(answer) = running.next() => {
                let mut frames = Vec::new();
                while let Ok(frame) = said.try_recv() {
                    frames.push(frame);
                }
                frames.extend(answer);
                frames
            }
            change = changes.recv() => session.notices(server, change),
            line = lines.next() => match line? {
                None => return Ok(()),
                Some(Line::Overlong) => {
                    let message = format!("the line is longer than {LONGEST} bytes");
                    vec![Refusal::new(PARSE_ERROR, message).frame(None)]
                }
                Some(Line::Whole(line)) => match frame::parse(&line) {
                    Err(refusal) => vec![refusal],
                    Ok(Message::Request(request)) => {
                        running.push(session.answer(server, REVISION, request, Some(out.clone())));
                        Vec::new()
                    }
                    Ok(Message::Notification { method, params }) => {
                        session.hear(&method, &params);
                        Vec::new()
                    }
                    Ok(Message::Response { id, body }) => {
                        session.resolve(&id, body); // an answer nobody waits for is ignored
                        Vec::new()
                    }
                },
            },
        };
        write(&mut output, &frames).await?;
    }
}

async fn write(output: &mut (impl AsyncWrite + Unpin), frames: &[Value]) -> io::Result<()> {
    for frame in frames {
        let mut line = frame.to_string();
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
    }
    output.flush().await
}

/// One line of input.
enum Line {
    Whole(Vec<u8>),
    Overlong,
}

/// Cuts the input into lines; may be dropped and asked again between two chunks.
struct Lines<R> {
    input: BufReader<R>,
    partial: Vec<u8>,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            partial: Vec::new(),
            skipping: false,
        }
    }

    /// The next line that is not blank; `None` at the end of the input, where an unfinished line is dropped.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.input.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            self.skipping |= self.partial.len() + part.len() > LONGEST;
            if self.skipping {
                self.partial = Vec::new();
            } else {
                self.partial.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.partial);
                if std::mem::take(&mut self.skipping) {
                    return Ok(Some(Line::Overlong));
                }
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(Line::Whole(line)));
                }
            }
        }
    }
}
