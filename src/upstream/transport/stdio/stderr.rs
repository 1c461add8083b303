//! What a child says beside the protocol: kept, bounded, made printable, logged (SECURITY OPS-3).
//! What it was told in confidence and what is a secret by its form is taken out (AUD-8).

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
    sanitize::{OwnCredentials, without_secrets},
    tasks::Tasks,
    upstream::transport::printable::printable,
};

/// The longest line kept in one; a longer one is cut into several.
const MAX_LINE: usize = 4 << 10;
/// How much is read in one [`PERIOD`]; a child that says more waits.
const ALLOWANCE: usize = 1 << 20;
const PERIOD: Duration = Duration::from_secs(1);

/// The last lines of one child's stderr. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Stderr {
    kept: Arc<Mutex<Kept>>,
    ended: CancellationToken,
    confided: Arc<[Confided]>,
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
        let stderr = Self {
            kept: Arc::new(Mutex::new(Kept {
                most,
                ..Kept::default()
            })),
            ended: CancellationToken::new(),
            confided: confided(env),
        };
        let captured = stderr.clone();
        tasks.spawn(async move {
            captured.read(pipe, &upstream).await;
            captured.ended.cancel();
        });
        stderr
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
            for byte in &piece[..length] {
                if *byte == b'\n' || line.len() == MAX_LINE {
                    self.keep(&line, upstream);
                    line.clear();
                }
                if *byte != b'\n' {
                    line.push(*byte);
                }
            }
            read += length;
            if read >= ALLOWANCE {
                tokio::time::sleep_until(since + PERIOD).await;
                (since, read) = (Instant::now(), 0);
            }
        }
        self.keep(&line, upstream);
    }

    fn keep(&self, line: &[u8], upstream: &UpstreamId) {
        let mut line = printable(String::from_utf8_lossy(line).trim_end());
        for Confided { name, value } in &*self.confided {
            if line.contains(value.expose_secret()) {
                line = line.replace(value.expose_secret(), &format!("[redacted:{name}]"));
            }
        }
        let line = without_secrets(&line).into_owned();
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
