//! What a child says beside the protocol: kept, bounded, made printable, logged (SECURITY OPS-3).
//! What it was told in confidence and what is a secret by its form is taken out (AUD-8), also where a line is cut.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::ChildStderr,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::{Bound, reached},
    protocol::UpstreamId,
    sanitize::{OwnCredentials, without_secrets, without_secrets_before},
    tasks::Tasks,
    upstream::{spec::StdioSpec, transport::printable::printable},
};

/// The longest line kept in one; a longer one is cut into several.
const MAX_LINE: usize = 4 << 10;
/// How much of a line that is cut is read on before it is kept, at least and at most: twice as much as the longest value that the
/// child was told in confidence, so that none is cut that has half of the most.
const OVERLAP: (usize, usize) = (4 << 10, 32 << 10);
/// How much is looked at in one [`PERIOD`]. Of a child that says more the rest is read and left out: a pipe that nobody reads
/// would make it stand still, with all calls to it.
const ALLOWANCE: usize = 1 << 20;
const PERIOD: Duration = Duration::from_secs(1);

/// The last lines of one child's stderr. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Stderr {
    kept: Arc<Mutex<Kept>>,
    ended: CancellationToken,
    confided: Arc<[Confided]>,
    overlap: usize,
}

/// A value that the child may be told in confidence, in its environment or by the words of its command, with the name that it has
/// there.
#[derive(Debug)]
struct Confided {
    name: String,
    value: SecretString,
}

/// What was left out of what the child says, from the line in which it said too much to the next one that is looked at.
#[derive(Debug)]
struct Gap {
    bytes: usize,
    /// Whether it has come to the end of a line.
    at_end: bool,
}

#[derive(Debug, Default)]
struct Kept {
    most: usize,
    lines: VecDeque<String>,
    bytes: usize,
}

impl Stderr {
    /// Reads `pipe` to its end in a task of `tasks`, and keeps the last `most` bytes (SECURITY 6).
    pub(super) fn capture(
        pipe: ChildStderr,
        upstream: UpstreamId,
        spec: &StdioSpec,
        most: usize,
        tasks: &Tasks,
    ) -> Self {
        let stderr = Self::new(confided(&spec.env, &spec.told), most);
        let captured = stderr.clone();
        tasks.spawn(async move {
            captured.read(pipe, &upstream).await;
            captured.ended.cancel();
        });
        stderr
    }

    fn new(confided: Arc<[Confided]>, most: usize) -> Self {
        let (least, largest) = OVERLAP;
        let longest = confided
            .first()
            .map_or(0, |it| it.value.expose_secret().len());
        Self {
            kept: Arc::new(Mutex::new(Kept {
                most,
                ..Kept::default()
            })),
            ended: CancellationToken::new(),
            confided,
            overlap: longest.saturating_mul(2).clamp(least, largest),
        }
    }

    /// Waits until everything has been read, but not longer than `patience`.
    pub(super) async fn ended(&self, patience: Duration) {
        drop(tokio::time::timeout(patience, self.ended.cancelled()).await);
    }

    /// The last whole lines that together have at most `max` bytes; of a last one that is longer by itself, its beginning.
    pub(super) fn tail(&self, max: usize) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let fitting = kept.lines.iter().rev().take_while(|line| {
            bytes += line.len() + 1;
            bytes <= max
        });
        let from = kept.lines.len() - fitting.count();
        let lines: Vec<_> = kept.lines.iter().skip(from).map(String::as_str).collect();
        match kept.lines.back() {
            Some(last) if lines.is_empty() => last[..last.floor_char_boundary(max)].to_owned(),
            _ => lines.join("\n"),
        }
    }

    /// What else the child said, fit to be told as its last words are.
    pub(super) fn fit(&self, text: &str) -> String {
        printable(without_secrets(&self.without_confided(text)).trim_end())
    }

    async fn read(&self, mut pipe: impl AsyncRead + Unpin, upstream: &UpstreamId) {
        let mut piece = vec![0; 8 << 10];
        let mut line = Vec::new();
        let (mut since, mut read) = (Instant::now(), 0);
        let mut gap: Option<Gap> = None;
        loop {
            let length = tokio::select! {
                biased;
                length = pipe.read(&mut piece) => length,
                () = sleep_until(since + PERIOD), if gap.as_ref().is_some_and(|gap| gap.bytes > 0) => {
                    // It has gone quiet, and what is missing is told where it is missing.
                    self.close(&mut gap, upstream);
                    (since, read) = (Instant::now(), 0);
                    continue;
                }
            };
            let Ok(length @ 1..) = length else { break };
            if since.elapsed() >= PERIOD {
                (since, read) = (Instant::now(), 0);
            }
            let mut said = &piece[..length];
            if let Some(left_out) = &mut gap {
                let rest = left_out.pass(said, read < ALLOWANCE);
                if rest.is_empty() {
                    continue;
                }
                said = rest;
                self.close(&mut gap, upstream);
            }
            self.take(said, &mut line, upstream);
            read += said.len();
            if read >= ALLOWANCE {
                reached(Bound::StdioStderr);
                // Nor is the beginning of a line kept of which the end is not looked at: it may be half a secret.
                gap = Some(Gap {
                    bytes: line.len(),
                    at_end: line.is_empty(),
                });
                line.clear();
            }
        }
        self.close(&mut gap, upstream);
        self.end(&mut line, upstream);
    }

    /// Tells how much was left out; nothing more is, unless that ended within a line.
    fn close(&self, gap: &mut Option<Gap>, upstream: &UpstreamId) {
        let Some(left_out) = gap else { return };
        if left_out.bytes > 0 {
            let told = format!("[{} bytes left out]", left_out.bytes);
            self.keep(&told, upstream);
        }
        left_out.bytes = 0;
        if left_out.at_end {
            *gap = None;
        }
    }

    /// Goes on with `line`, of which no more is held than [`MAX_LINE`] and the overlap.
    fn take(&self, piece: &[u8], line: &mut Vec<u8>, upstream: &UpstreamId) {
        for byte in piece {
            if *byte == b'\n' {
                self.end(line, upstream);
                continue;
            }
            line.push(*byte);
            if line.len() >= MAX_LINE + self.overlap {
                self.cut(line, upstream);
            }
        }
    }

    /// Keeps a line that is at its end.
    fn end(&self, line: &mut Vec<u8>, upstream: &UpstreamId) {
        let text = self.without_confided(&String::from_utf8_lossy(line));
        let mut rest = &*without_secrets(&text);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(MAX_LINE));
            self.keep(piece, upstream);
            rest = later;
        }
        line.clear();
    }

    /// Keeps the beginning of a line that is too long. What may be the beginning of a secret is read on, and what may be the name
    /// before one.
    fn cut(&self, line: &mut Vec<u8>, upstream: &UpstreamId) {
        let begun = line.utf8_chunks().last();
        let begun = begun.map_or(0, |chunk| chunk.invalid().len());
        let begun = line.split_off(line.len() - begun);
        let text = self.without_confided(&String::from_utf8_lossy(line));
        let until = text.len().saturating_sub(self.overlap / 2);
        let mut text = without_secrets_before(&text, until).into_owned();
        while text.len() > self.overlap {
            let piece = MAX_LINE.min(text.len() - self.overlap);
            // Of a character at that place the whole goes.
            let rest = text.split_off(text.ceil_char_boundary(piece));
            self.keep(&text, upstream);
            text = rest;
        }
        *line = text.into_bytes();
        line.extend(begun);
    }

    fn without_confided(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for Confided { name, value } in &*self.confided {
            if text.contains(value.expose_secret()) {
                text = text.replace(value.expose_secret(), &format!("[redacted:{name}]"));
            }
        }
        text
    }

    /// Keeps a line without secrets.
    fn keep(&self, line: &str, upstream: &UpstreamId) {
        let line = printable(line.trim_end());
        if line.is_empty() {
            return;
        }
        tracing::debug!(upstream = upstream.as_str(), line, "stderr");
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.keep(line);
    }
}

/// What is told by a command, values of variables that are called secrets, and those that are long and no paths, the longest first;
/// each line of them by itself. Nobody has to say what of an environment is a secret.
fn confided(
    env: &BTreeMap<String, SecretString>,
    told: &[(String, SecretString)],
) -> Arc<[Confided]> {
    const SHORT: usize = 8;
    const LONG: usize = 16;
    const UNNAMED: &str = "own_credential";
    let mut all = Vec::new();
    let variables = env
        .iter()
        .map(|(name, value)| (name, value, OwnCredentials::is_named_so(name)));
    let words = told.iter().map(|(name, value)| (name, value, true));
    for (name, value, sure) in words.chain(variables) {
        let name = if name.is_empty() {
            UNNAMED
        } else {
            name.as_str()
        };
        for line in value.expose_secret().lines().map(str::trim) {
            let secret = sure || (line.len() >= LONG && !line.starts_with('/'));
            if secret && line.len() >= SHORT {
                all.push(Confided {
                    name: name.to_owned(),
                    value: line.into(),
                });
            }
        }
    }
    all.sort_by_key(|it: &Confided| std::cmp::Reverse(it.value.expose_secret().len()));
    all.into()
}

impl Gap {
    /// Takes in what was said further. What is to be looked at again: nothing, or what begins with a line.
    fn pass<'a>(&mut self, said: &'a [u8], may_end: bool) -> &'a [u8] {
        let left_out = if !may_end {
            said.len()
        } else if self.at_end {
            0
        } else {
            let end = said.iter().position(|byte| *byte == b'\n');
            end.map_or(said.len(), |at| at + 1)
        };
        let (left_out, rest) = said.split_at(left_out);
        self.bytes += left_out.len();
        if let Some(last) = left_out.last() {
            self.at_end = *last == b'\n';
        }
        rest
    }
}

impl Kept {
    fn keep(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        if self.bytes > self.most {
            reached(Bound::StdioStderr);
        }
        while self.bytes > self.most {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.len() + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncWriteExt as _, time::sleep};

    use super::*;
    use crate::metrics::seen;

    /// What is kept of a line that the child writes in pieces of such a length.
    fn said(env: &[(&str, &str)], line: &str, piece: usize) -> String {
        let env = env.iter();
        let env = env.map(|(name, value)| ((*name).to_owned(), SecretString::from(*value)));
        let stderr = Stderr::new(confided(&env.collect(), &[]), 1 << 20);
        let upstream = UpstreamId::parse("u").unwrap();
        let mut held = Vec::new();
        for piece in line.as_bytes().chunks(piece) {
            stderr.take(piece, &mut held, &upstream);
            assert!(held.len() < MAX_LINE + stderr.overlap);
        }
        stderr.end(&mut held, &upstream);
        let kept = stderr.tail(1 << 20);
        assert!(kept.lines().all(|line| line.len() <= MAX_LINE + 3));
        kept.replace('\n', "")
    }

    /// SECURITY AUD-8
    #[test]
    fn no_secret_is_cut_in_two() {
        const TOKEN: &str = "glpat-k7Qd2ZrTn8VbXw4Ls9Yc";
        let long = "ünï-".repeat(1_500);
        let env = [
            ("API_KEY", "hunter2-hunter2-hunter2"),
            ("LONG_TOKEN", &*long),
        ];
        for (secret, told) in [
            (TOKEN, "[redacted:gitlab_personal_token]"),
            (env[0].1, "[redacted:API_KEY]"),
            (&long, "[redacted:LONG_TOKEN]"),
        ] {
            let end = &secret[secret.ceil_char_boundary(secret.len() - 8)..];
            for before in (MAX_LINE - 40..MAX_LINE + 20)
                .chain(8_150..8_230)
                .step_by(6)
            {
                let (before, after) = (". ".repeat(before / 2), " .".repeat(6_000));
                let line = format!("{before}{secret}{after}");
                let kept = said(&env, &line, 1_000);
                assert!(kept.contains(told), "{}", before.len());
                assert!(!kept.contains(end), "{}", before.len());
            }
        }
        let clean = "a word, ".repeat(5_000);
        let same = |kept: String| kept.replace(' ', "") == clean.replace(' ', "");
        for piece in [1, 4_096, 8_192] {
            assert!(same(said(&env, &clean, piece)));
        }
    }

    #[test]
    fn what_is_no_text_is_kept_in_bounds_and_characters_whole() {
        let stderr = Stderr::new(Arc::default(), 1 << 20);
        let upstream = UpstreamId::parse("u").unwrap();
        let mut held = Vec::new();
        stderr.take(&[0xff; 100_000], &mut held, &upstream);
        assert!(held.len() < MAX_LINE + stderr.overlap);
        stderr.end(&mut held, &upstream);
        assert!(!stderr.tail(1 << 20).is_empty());
        let letters = "日".repeat(20_000);
        assert_eq!(said(&[], &letters, 1), letters);
    }

    #[test]
    fn of_a_last_line_that_is_too_long_to_be_told_the_beginning_is() {
        let stderr = Stderr::new(Arc::default(), 1 << 20);
        let upstream = UpstreamId::parse("u").unwrap();
        assert_eq!(stderr.tail(5), "");
        for (line, told) in [
            ("one", "one"),
            ("four", "four"),
            ("seven", "seven"),
            ("eleven", "eleve"),
            ("日本語", "日"),
            ("x", "x"),
        ] {
            stderr.keep(line, &upstream);
            assert_eq!(stderr.tail(5), told);
        }
        assert_eq!(stderr.tail(usize::MAX).lines().count(), 6);
    }

    /// SECURITY OPS-3
    #[tokio::test(start_paused = true)]
    async fn who_says_too_much_is_not_made_to_wait_and_what_is_left_out_is_told() {
        let (mut child, pipe) = tokio::io::duplex(64 << 10);
        let stderr = Stderr::new(Arc::default(), 4 << 20);
        let upstream = UpstreamId::parse("u").unwrap();
        let lines = format!("{}\n", "x".repeat(1_023)).repeat(1_024);
        let later = PERIOD + Duration::from_millis(1);
        seen::take();
        let saying = async {
            let began = Instant::now();
            for _ in 0..3 {
                child.write_all(lines.as_bytes()).await.unwrap();
            }
            assert_eq!(began.elapsed(), Duration::ZERO);
            sleep(later).await;
            let last = |count| {
                let kept = stderr.tail(4 << 20);
                let lines: Vec<_> = kept.lines().map(str::to_owned).collect();
                lines[lines.len() - count..].to_vec()
            };
            assert_eq!(last(1), [format!("[{} bytes left out]", 2 << 20)]);
            assert_eq!(seen::take(), [Bound::StdioStderr]);
            child.write_all(b"later\n").await.unwrap();
            // Two periods, with no end of a line between them.
            sleep(later).await;
            child.write_all(&[b'z'; 2 << 20]).await.unwrap();
            sleep(later).await;
            child.write_all(b"the end\nof it\n").await.unwrap();
            sleep(later).await;
            assert_eq!(last(2), ["[8 bytes left out]", "of it"]);
            assert_eq!(seen::take(), [Bound::StdioStderr]);
            let kept = stderr.tail(4 << 20);
            let told = kept.lines().filter(|line| line.ends_with("left out]"));
            let count = told
                .clone()
                .nth(1)
                .and_then(|line| line[1..].split_once(' '));
            let left_out: usize = count.unwrap().0.parse().unwrap();
            assert_eq!(kept.matches('z').count() + left_out, 2 << 20);
            assert_eq!((told.count(), kept.matches("later").count()), (3, 1));
            drop(child);
        };
        tokio::join!(stderr.read(pipe, &upstream), saying);
    }

    #[test]
    fn last_words_may_have_their_bound_and_no_byte_more() {
        // With the end of each line.
        for (second, lines, noted) in [
            (4, 2, vec![]),
            (5, 2, vec![]),
            (6, 1, vec![Bound::StdioStderr]),
        ] {
            let mut kept = Kept {
                most: 10,
                ..Kept::default()
            };
            seen::take();
            kept.keep("one".to_owned());
            kept.keep("x".repeat(second));
            assert_eq!((kept.lines.len(), seen::take()), (lines, noted));
        }
    }
}
