//! What a child says beside the protocol: kept, bounded, made printable, logged (SECURITY OPS-3).
//! What it was told in confidence and what is a secret by its form is taken out (AUD-8), also where a line is cut.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::{io::AsyncReadExt, process::ChildStderr, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::{Bound, reached},
    protocol::UpstreamId,
    sanitize::{OwnCredentials, without_secrets, without_secrets_before},
    tasks::Tasks,
    upstream::transport::printable::printable,
};

/// The longest line kept in one; a longer one is cut into several.
const MAX_LINE: usize = 4 << 10;
/// How much of a line that is cut is read on before it is kept, at least and at most: twice as much as the longest value that the
/// child was told in confidence, so that none is cut that has half of the most.
const OVERLAP: (usize, usize) = (4 << 10, 32 << 10);
/// How much is read in one [`PERIOD`]; a child that says more waits.
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

/// A value of the child's environment that it may be told in confidence, with the name of its variable.
#[derive(Debug)]
struct Confided {
    name: String,
    value: SecretString,
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
        env: &BTreeMap<String, SecretString>,
        most: usize,
        tasks: &Tasks,
    ) -> Self {
        let stderr = Self::new(env, most);
        let captured = stderr.clone();
        tasks.spawn(async move {
            captured.read(pipe, &upstream).await;
            captured.ended.cancel();
        });
        stderr
    }

    fn new(env: &BTreeMap<String, SecretString>, most: usize) -> Self {
        let (least, largest) = OVERLAP;
        let confided = confided(env);
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

    /// The last whole lines that together have at most `max` bytes.
    pub(super) fn tail(&self, max: usize) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let fitting = kept.lines.iter().rev().take_while(|line| {
            bytes += line.len() + 1;
            bytes <= max
        });
        let from = kept.lines.len() - fitting.count();
        let lines: Vec<_> = kept.lines.iter().skip(from).map(String::as_str).collect();
        lines.join("\n")
    }

    async fn read(&self, mut pipe: ChildStderr, upstream: &UpstreamId) {
        let mut piece = vec![0; 8 << 10];
        let mut line = Vec::new();
        let (mut since, mut read) = (Instant::now(), 0);
        while let Ok(length @ 1..) = pipe.read(&mut piece).await {
            self.take(&piece[..length], &mut line, upstream);
            read += length;
            if read >= ALLOWANCE {
                tokio::time::sleep_until(since + PERIOD).await;
                (since, read) = (Instant::now(), 0);
            }
        }
        self.end(&mut line, upstream);
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

/// Values of variables that are called secrets, and those that are long and no paths, the longest first; each line of them by
/// itself. Nobody has to say what of an environment is a secret.
fn confided(env: &BTreeMap<String, SecretString>) -> Arc<[Confided]> {
    const SHORT: usize = 8;
    const LONG: usize = 16;
    let mut all = Vec::new();
    for (name, value) in env {
        let named = OwnCredentials::is_named_so(name);
        for line in value.expose_secret().lines().map(str::trim) {
            let secret = named || (line.len() >= LONG && !line.starts_with('/'));
            if secret && line.len() >= SHORT {
                all.push(Confided {
                    name: name.clone(),
                    value: line.into(),
                });
            }
        }
    }
    all.sort_by_key(|it: &Confided| std::cmp::Reverse(it.value.expose_secret().len()));
    all.into()
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
    use super::*;
    use crate::metrics::seen;

    /// What is kept of a line that the child writes in pieces of such a length.
    fn said(env: &[(&str, &str)], line: &str, piece: usize) -> String {
        let env = env.iter();
        let env = env.map(|(name, value)| ((*name).to_owned(), SecretString::from(*value)));
        let stderr = Stderr::new(&env.collect(), 1 << 20);
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
        let stderr = Stderr::new(&BTreeMap::new(), 1 << 20);
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
