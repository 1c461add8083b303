//! The pipe binding: one message a line in both directions, both eras on the same pipe (PROTOCOL B6, C1).
//!
//! Guarantees: answers are written whole, one after the other; the era is chosen per message; a cancelled request gets no
//! answer; of a line over its bound nothing is kept, and the one after it is taken; a request that there is no room for is
//! refused, so that what comes after it is read; at the end of the input the requests in flight are still answered, and listens
//! end, and questions to the client, which nobody can answer any more; once nobody can read the output all of it ends, where the
//! output is a pipe or a socket also when there is nothing to be said; a gateway that drains reads on until what it has taken is
//! answered, since what runs may wait for what the client says, and refuses requests.

use std::{
    future,
    io::{self, Stdout},
    os::fd::AsFd,
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest},
    net::unix::pipe::Sender,
    sync::mpsc,
};

use super::{Door, channel::Channel, problem::Problem};
use crate::{call::Identity, protocol::names::Scope};

/// How much is read at once, at least.
const PIECE: usize = 16 << 10;

/// Speaks MCP over a pair of pipes until the input ends or the gateway begins to drain, then until the last answer is out, or
/// `unread` says that nobody can read it.
///
/// # Errors
/// When reading or writing fails.
pub async fn serve(
    door: Arc<Door>,
    mut input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
    unread: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (lines, outgoing) = mpsc::channel(64);
    let tasks = door.backing.tasks.child();
    let (done, written) = tokio::sync::oneshot::channel();
    tasks.spawn(async move {
        // The reader side notices a broken output when its channel closes.
        let written = tokio::select! {
            written = write(output, outgoing) => written,
            () = unread => Err(io::ErrorKind::BrokenPipe.into()),
        };
        drop(done.send(written));
    });
    let identity = Identity::anonymous();
    let closing = door.closing.clone();
    let most = door.bounds.line_bytes;
    let channel = Channel::new(door, identity, None, Scope::All, true, lines, line);
    let settled = async {
        closing.cancelled().await;
        channel.settle().await;
    };
    // What runs may wait for what the client says.
    let read = tokio::select! {
        read = read(&channel, &mut input, most) => read,
        () = settled => Ok(()),
        () = channel.deaf() => Ok(()),
    };
    // With the channel its sender goes, and with the last one, in the last task, the writer ends.
    channel.finish().await;
    let written = written.await.unwrap_or(Ok(()));
    read.and(written)
}

/// Waits until nobody can read from this pipe or socket any more. Writing would tell as well, but a gateway that waits for
/// servers writes nothing. Of what is no pipe it is never said.
pub async fn unread(output: Stdout) {
    let watched = output
        .as_fd()
        .try_clone_to_owned()
        .and_then(Sender::from_owned_fd_unchecked);
    if let Ok(output) = watched
        // A pipe that nobody reads is in error, and of a socket whose other end is gone both directions are closed.
        && output.ready(Interest::READABLE | Interest::ERROR).await.is_ok()
    {
        return;
    }
    future::pending().await
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    while let Some(line) = outgoing.recv().await {
        output.write_all(&line).await?;
        if outgoing.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

async fn read(
    channel: &Channel,
    input: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(PIECE);
    let mut searched = 0;
    // Whether what comes is the rest of a line that was refused.
    let mut refused = false;
    loop {
        while let Some(at) = memchr::memchr(b'\n', &buffer[searched..]) {
            let end = searched + at;
            let line = buffer.split_to(end + 1).freeze();
            searched = 0;
            if std::mem::take(&mut refused) {
                continue;
            }
            if end > most {
                channel.refuse(Problem::too_large(most)).await;
            } else {
                take(channel, line).await;
            }
        }
        if !refused && buffer.len() > most {
            refused = true;
            channel.refuse(Problem::too_large(most)).await;
        }
        if refused {
            // Also what it took to hold that much.
            buffer = BytesMut::with_capacity(PIECE);
        }
        searched = buffer.len();
        if channel.is_deaf() {
            return Ok(());
        }
        if input.read_buf(&mut buffer).await? == 0 {
            // The last line may end with the input.
            take(channel, buffer.freeze()).await;
            return Ok(());
        }
    }
}

/// Takes the message on a line, if there is one.
async fn take(channel: &Channel, line: Bytes) {
    if line.trim_ascii().is_empty() {
        return;
    }
    if let Err(problem) = channel.take(&channel.identity, line).await {
        channel.refuse(problem).await;
    }
}

/// The message on one line: line ends inside JSON are white space, so a space says the same.
fn line(segments: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(segments.iter().map(Bytes::len).sum::<usize>() + 1);
    for segment in segments {
        out.extend(segment.iter().map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                *byte
            }
        }));
    }
    out.extend_from_slice(b"\n");
    out.freeze()
}
