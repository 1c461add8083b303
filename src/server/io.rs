//! The bytes of one connection: a socket, perhaps under TLS, watched, and on HTTP/1 let through only as the framing allows.
//!
//! Guarantees: hyper reads only what [`Framing`] admitted. After a bad head it reads one made-up request instead, to which
//! the service answers for the bad one, so that answers already under way keep their order; then nothing. Deliberately
//! absent: closing for slowness, which is for whoever drives the connection and asks the [`Watch`].

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

use super::{
    frames::Frames,
    framing::{Fault, Framing, Place},
    watch::{Phase, Watch},
};

/// How a client begins that speaks HTTP/2.
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A socket with or without TLS.
pub(super) enum Socket {
    Plain(TcpStream),
    /// Boxed: its state is a hundred times that of a plain socket.
    Tls(Box<TlsStream<TcpStream>>),
}

/// See the module.
pub(super) struct Io {
    socket: Socket,
    watch: Arc<Watch>,
    /// Bytes to be read before the socket's: those looked at to tell HTTP/2 apart, and the beginnings of heads.
    held: Vec<u8>,
    /// How many of `held` may pass.
    cleared: usize,
    /// Absent on HTTP/2.
    framing: Option<Framing>,
    /// Of HTTP/2.
    frames: Frames,
}

/// The request in place of a bad one. The service knows it by its number, never by its looks.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

impl Io {
    /// `seen` was already read from `socket`; on HTTP/2 it is the preface, or nothing.
    pub(super) fn new(
        socket: Socket,
        seen: Vec<u8>,
        watch: Arc<Watch>,
        mut framing: Option<Framing>,
    ) -> Self {
        let cleared = match &mut framing {
            None => seen.len(),
            Some(framing) => framing.admit(&seen),
        };
        let mut io = Self {
            socket,
            watch,
            frames: Frames::after(PREFACE.len().saturating_sub(seen.len())),
            held: seen,
            cleared,
            framing,
        };
        io.settle();
        io
    }

    /// Whether the client may be sending something that was not read.
    pub(super) fn has_unread(&self) -> bool {
        self.framing
            .as_ref()
            .is_some_and(|framing| framing.fault().is_some() || framing.place() != Place::Between)
    }

    pub(super) const fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// After bytes were admitted: notes the phase, and acts on a fault.
    fn settle(&mut self) {
        let Some(framing) = &self.framing else { return };
        self.watch.read_heads(framing.heads());
        match framing.fault() {
            Some(Fault::Head(violation)) => {
                self.watch.refuse(framing.heads(), violation);
                self.held.truncate(self.cleared);
                self.held.extend_from_slice(STAND_IN);
                self.cleared = self.held.len();
                self.watch.enter(Phase::Closing);
            }
            Some(Fault::Body) => {
                self.watch.break_off();
                self.held.truncate(self.cleared);
            }
            None => self.watch.enter(match framing.place() {
                Place::Between if framing.heads() == 0 => Phase::Head,
                Place::Between => Phase::Idle,
                Place::InHead => Phase::Head,
                Place::InBody => Phase::Body,
            }),
        }
    }

    /// Gives what was held and may pass.
    fn give_held(&mut self, buf: &mut ReadBuf<'_>) {
        let take = self.cleared.min(buf.remaining());
        let Some(bytes) = self.held.get(..take) else {
            return;
        };
        buf.put_slice(bytes);
        self.cleared -= take;
        self.held.drain(..take);
        if self.held.is_empty() {
            self.held = Vec::new(); // an idle connection keeps no buffer here
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.cleared > 0 {
                this.give_held(buf);
                return Poll::Ready(Ok(()));
            }
            let Some(framing) = &mut this.framing else {
                return this.read_frames(cx, buf);
            };
            match framing.fault() {
                None => {}
                // The stand-in was read. Its answer ends the connection, and so does the deadline of closing.
                Some(Fault::Head(_)) => return Poll::Pending,
                Some(Fault::Body) => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            }
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.socket).poll_read(cx, buf))?;
            let fresh = buf.filled().get(before..).unwrap_or_default();
            if fresh.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if this.held.is_empty() {
                // As a rule whole messages come at once and stay where they are.
                let admitted = framing.admit(fresh);
                if let Some(rest) = fresh.get(admitted..).filter(|rest| !rest.is_empty()) {
                    this.held.extend_from_slice(rest);
                    buf.set_filled(before + admitted);
                }
                this.settle();
                if admitted > 0 {
                    return Poll::Ready(Ok(()));
                }
            } else {
                this.held.extend_from_slice(fresh);
                buf.set_filled(before);
                this.cleared = framing.admit(&this.held);
                this.settle();
            }
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.note(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, bytes);
        this.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        if flushed.is_ready() {
            // It is asked for once there is nothing else to be sent.
            this.watch.sent();
        }
        this.note(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.socket).poll_shutdown(cx);
        this.note(shut)
    }
}

impl Io {
    /// Reads what is HTTP/2. Of a client that floods nothing more is passed on, which the connection's driver sees.
    fn read_frames(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        let fresh = buf.filled().get(before..).unwrap_or_default();
        self.watch.read_frames(self.frames.read(fresh));
        if self.watch.is_flooded() {
            buf.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn note<T>(&self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &outcome {
            Poll::Pending => self.watch.write_blocked(),
            Poll::Ready(_) => self.watch.wrote(),
        }
        outcome
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Tls(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bytes),
            Self::Tls(socket) => Pin::new(socket).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
