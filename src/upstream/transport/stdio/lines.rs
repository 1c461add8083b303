//! Bytes to lines, with a bound.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::{
    memory::{self, Hold},
    metrics::Bound,
    upstream::UpstreamError,
};

/// How much is read at once, at least.
const PIECE: usize = 16 << 10;
/// Lines up to this are copied out, so that the buffer serves again and a line holds no more memory than itself.
const COPIED: usize = 16 << 10;

/// Reads lines of at most `max` bytes. Empty lines are left out, and so is one without its end.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    buffer: BytesMut,
    searched: usize,
    max: usize,
    /// What is held of a line that is not complete.
    hold: Hold,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(source: R, max: usize) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            searched: 0,
            max,
            hold: memory::process().hold(),
        }
    }

    /// The next line without its end; `None` when the source is at its end.
    ///
    /// # Errors
    /// `TooLarge` for a line over the bound, `Unavailable` when the source cannot be read.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                if end > self.max {
                    return Err(UpstreamError::too_large(Bound::StdioLine, self.max));
                }
                self.searched = 0;
                let line = self.cut(end);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
            }
            self.searched = self.buffer.len();
            if self.searched > self.max {
                return Err(UpstreamError::too_large(Bound::StdioLine, self.max));
            }
            self.hold.count(self.searched);
            self.buffer.reserve(PIECE);
            let read = self.source.read_buf(&mut self.buffer).await;
            if read.map_err(UpstreamError::unreached)? == 0 {
                return Ok(None);
            }
        }
    }

    fn cut(&mut self, end: usize) -> Bytes {
        if end <= COPIED {
            let line = Bytes::copy_from_slice(&self.buffer[..end]);
            bytes::Buf::advance(&mut self.buffer, end + 1);
            line
        } else {
            let mut line = self.buffer.split_to(end + 1);
            line.truncate(end);
            // What was held of it goes with it.
            let mut hold = std::mem::replace(&mut self.hold, memory::process().hold());
            hold.count(end);
            hold.with(line.freeze())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::seen;

    async fn read(text: &'static [u8], max: usize) -> (Vec<Bytes>, bool) {
        let mut lines = Lines::new(text, max);
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => all.push(line),
                Ok(None) => return (all, true),
                Err(_too_large) => return (all, false),
            }
        }
    }

    #[tokio::test]
    async fn empty_lines_and_an_unfinished_one_are_left_out() {
        let (lines, ended) = read(b"\n  \r\na\r\n\nb c\nrest", 100).await;
        assert!(ended);
        assert_eq!(lines, ["a\r", "b c"]);
    }

    #[tokio::test]
    async fn a_line_may_have_its_bound_and_no_byte_more() {
        for (text, fits) in [
            (&b"1234\n"[..], true),
            (b"12345\n", true),
            (b"123456\n", false),
            (b"123456", false),
        ] {
            seen::take();
            assert_eq!(read(text, 5).await.1, fits);
            let noted: &[_] = if fits { &[] } else { &[Bound::StdioLine] };
            assert_eq!(seen::take(), noted);
        }
    }

    #[tokio::test]
    async fn long_and_short_lines_come_out_whole() {
        let (mut writer, reader) = tokio::io::duplex(1000);
        let long = "x".repeat(3 * COPIED);
        let text = format!("a\n{long}\nb\n{long}\n");
        let writing = async {
            tokio::io::AsyncWriteExt::write_all(&mut writer, text.as_bytes())
                .await
                .unwrap();
            drop(writer);
        };
        let reading = async {
            let mut lines = Lines::new(reader, 1 << 20);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                all.push(line);
            }
            all
        };
        let ((), lines) = tokio::join!(writing, reading);
        assert_eq!(lines, ["a", &long, "b", &long]);
    }
}
