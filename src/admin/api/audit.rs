//! The audit log: searching it, and following what is written.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::ControlFlow,
    path::Path,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::sleep;

use super::{Answer, Given, aside};
use crate::{
    admin::{
        AuditReader,
        asked::Asked,
        follow::{self, Source, event},
        paging::{CURSOR, LIMIT, Parameter, Query, Shape, cursor},
        problem::Problem,
        search::{Search, Waiting},
    },
    audit::{
        EVENTS, OUTCOMES,
        chain::Line,
        entry::Entry,
        follow::Follower,
        log::segments,
        query::{Filter, Reach},
    },
    json::{Json, Limits},
};

/// How often the log is looked at for what was written since.
const LOOK: Duration = Duration::from_millis(250);
/// The same after some were read that nobody wanted.
const NEXT: Duration = Duration::from_millis(1);
/// What is read of the log at once.
const RECORDS: usize = 256;
const BYTES: usize = 256 << 10;
/// What surely has a whole record in it: none is longer than half of it (SECURITY 6).
const TAIL: u64 = 128 << 10;

pub(in crate::admin) const SEARCH: &[Parameter] = &[
    CURSOR,
    LIMIT,
    Parameter::maybe("since", Shape::Time, "Not before this time."),
    Parameter::maybe("until", Shape::Time, "Before this time."),
    PRINCIPAL,
    UPSTREAM,
    NAME,
    METHOD,
    OUTCOME,
    DECISION,
    REASON,
    FINDING,
    EVENT,
    CALL,
];
pub(in crate::admin) const FOLLOW: &[Parameter] = &[
    PRINCIPAL, UPSTREAM, NAME, METHOD, OUTCOME, DECISION, REASON, FINDING, EVENT, CALL,
];

const PRINCIPAL: Parameter = Parameter::named(
    "principal",
    "Only records of this principal, or of keys that this one answers for, by name.",
);
const UPSTREAM: Parameter = Parameter::maybe(
    "upstream",
    Shape::Text(32),
    "Only records of this upstream.",
);
const NAME: Parameter = Parameter::named(
    "name",
    "Only records of this tool, prompt or resource, by either of its names, or of what else something was done to.",
);
const METHOD: Parameter = Parameter::named("method", "Only records of this method.");
const OUTCOME: Parameter = Parameter::maybe(
    "outcome",
    Shape::Word(&OUTCOMES),
    "Only records of what ended so, or, of what is no call, of which this came.",
);
const DECISION: Parameter = Parameter::maybe(
    "decision",
    Shape::Word(&["permit", "deny"]),
    "Only records of this decision.",
);
const REASON: Parameter = Parameter::named(
    "reason",
    "Only records of what was refused for this reason, or did not stand up to this check.",
);
const FINDING: Parameter = Parameter::named(
    "finding",
    "Only records with a finding of this class or rule.",
);
const EVENT: Parameter = Parameter::maybe(
    "event",
    Shape::Word(&EVENTS),
    "Only records of this kind of event.",
);
const CALL: Parameter = Parameter::named(
    "call",
    "Only records of this call, or of this approval: the reference that its client was told.",
);

/// Records that were found, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditRecordPage")]
pub(in crate::admin) struct List {
    /// The items.
    items: Vec<Record>,
    /// What `cursor` is to be for the next page; null when the whole log was looked at.
    next_cursor: Option<String>,
    /// Null, unless the search took longer than it may, 10 s: then the records before this number were not looked at yet, and the
    /// page may have fewer items than there are, or none. `next_cursor` goes on there.
    unsearched_before: Option<u64>,
}

/// The name of the event that tells of a record.
pub(in crate::admin) const RECORD: &str = "record";

/// One record.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditRecord")]
pub(in crate::admin) struct Record {
    /// Its number in the log.
    seq: u64,
    /// What it says.
    record: Given,
}

pub(in crate::admin) fn search(asked: Asked) -> Answer {
    let started = reader(&asked).and_then(|reader| {
        let before = asked.query.after_number()?.unwrap_or(u64::MAX);
        Ok((asked.bench.searches.begin(asked.role)?, reader, before))
    });
    match started {
        Ok((begun, reader, before)) => {
            let (filter, limit) = (filter(&asked.query), asked.query.limit());
            searched(begun, reader, filter, limit, before)
        }
        Err(problem) => std::future::ready(Err(problem)).boxed(),
    }
}

fn searched(
    (search, waiting): (Search, Waiting),
    reader: Arc<dyn AuditReader>,
    filter: Filter,
    limit: usize,
    before: u64,
) -> Answer {
    let found = aside(move || {
        let is_over = || search.is_over();
        let enough = &is_over;
        found(&*reader, &filter, limit, &Reach { before, enough })
    });
    async move {
        // Dropped with the request: then nobody waits, and the search ends.
        let _waiting = waiting;
        found.await
    }
    .boxed()
}

/// The newest records within `reach` that match, at most `limit`.
fn found(
    reader: &dyn AuditReader,
    filter: &Filter,
    limit: usize,
    reach: &Reach<'_>,
) -> Result<List, Problem> {
    let mut items = Vec::new();
    let mut more = None;
    let searched = reader.query(filter, reach, &mut |seq, event| {
        if items.len() == limit {
            more = Some(seq);
            return ControlFlow::Break(());
        }
        items.extend(Record::of(seq, event));
        ControlFlow::Continue(())
    });
    let stopped = searched.map_err(|error| unreadable(&error))?;
    // One more was found: the next page begins with it, and what lies between was looked at.
    let next = more.map(|seq| seq.saturating_add(1)).or(stopped);
    Ok(List {
        items,
        next_cursor: next.map(|next| cursor(&next.to_string())),
        unsearched_before: stopped,
    })
}

pub(in crate::admin) fn follow(asked: Asked) -> Answer {
    let started = reader(&asked).and_then(|reader| {
        let records = Records::from_now_on(reader.directory(), &filter(&asked.query));
        let records = records.map_err(|error| unreadable(&error))?;
        let bench = &asked.bench;
        follow::events(&bench.streams, &bench.tasks, asked.role, records)
    });
    std::future::ready(started).boxed()
}

impl Record {
    /// A record as it is told; `None` if it is none of ours.
    pub(in crate::admin) fn of(seq: u64, event: &[u8]) -> Option<Self> {
        let record = Json::parse(Bytes::copy_from_slice(event), &Limits::LIST).ok()?;
        let record = Given(record);
        Some(Self { seq, record })
    }
}

fn reader(asked: &Asked) -> Result<Arc<dyn AuditReader>, Problem> {
    let reader = asked.gateway.audit.clone();
    reader.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "audit_off",
            "no audit log is kept that could be read",
        )
    })
}

fn unreadable(error: &io::Error) -> Problem {
    tracing::error!(%error, "the audit log cannot be read for an operator");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "audit_unavailable",
        "the log cannot be read",
    )
}

fn filter(query: &Query) -> Filter {
    Filter {
        since: query.owned("since"),
        until: query.owned("until"),
        principal: query.owned("principal"),
        upstream: query.owned("upstream"),
        name: query.owned("name"),
        method: query.owned("method"),
        outcome: query.owned("outcome"),
        decision: query.owned("decision"),
        reason: query.owned("reason"),
        finding: query.owned("finding"),
        event: query.owned("event"),
        call: query.owned("call"),
    }
}

/// The records of an audit log that are written from now on.
struct Records {
    follower: Follower,
    filter: Filter,
}

impl Records {
    /// Those of this log that `filter` wants.
    ///
    /// # Errors
    /// When nobody can tell where the log ends now.
    fn from_now_on(directory: &Path, filter: &Filter) -> io::Result<Self> {
        Ok(Self {
            follower: Follower::after(directory, last(directory)?),
            filter: filter.as_written(),
        })
    }

    fn told(&self, line: &[u8]) -> Option<Bytes> {
        let line = Line::parse(line)?;
        let entry = Entry::parse(line.event)?;
        let wanted = self.filter.matches(&entry);
        let record = wanted.then(|| Record::of(line.seq, line.event)).flatten()?;
        Some(event(RECORD, &Json::of(&record)))
    }
}

impl Source for Records {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Bytes>>> {
        async {
            loop {
                // A piece of a file that was just written: it is in memory.
                let batch = match self.follower.read(RECORDS, BYTES) {
                    Ok(batch) => batch,
                    Err(error) => {
                        tracing::error!(%error, "the audit log cannot be followed");
                        return None;
                    }
                };
                let missed = (batch.missed > 0).then(|| follow::missed(batch.missed));
                let told = batch.lines().filter_map(|line| self.told(line));
                let events: Vec<_> = missed.into_iter().chain(told).collect();
                if !events.is_empty() {
                    return Some(events);
                }
                sleep(if batch.is_empty() { LOOK } else { NEXT }).await;
            }
        }
        .boxed()
    }
}

/// The number of the last record of a log; 0 of an empty one.
fn last(directory: &Path) -> io::Result<u64> {
    let Some(segment) = segments(directory)?.pop() else {
        return Ok(0);
    };
    let mut file = File::open(&segment.path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut text = Vec::new();
    file.take(TAIL).read_to_end(&mut text)?;
    let mut lines = text.split(|byte| *byte == b'\n').rev();
    let last = lines.find_map(|line| Some(Line::parse(line)?.seq));
    Ok(last.unwrap_or_else(|| segment.first.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, TrySendError};

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        admin::{
            Role,
            search::{Searches, TIME},
        },
        audit::chain::{ChainPosition, Origin, link},
    };

    fn lines(events: &[&str]) -> (Vec<u8>, ChainPosition) {
        let origin = Origin {
            node: "n".to_owned(),
            boot: "b".to_owned(),
        };
        let (mut text, mut last) = (Vec::new(), ChainPosition::START);
        for event in events {
            last = link(&mut text, event.as_bytes(), &last, &origin);
        }
        (text, last)
    }

    /// A log that is never through, and holds a record at each number that it comes to.
    struct Endless {
        begun: mpsc::SyncSender<()>,
        ended: mpsc::Sender<()>,
    }

    impl AuditReader for Endless {
        fn query(
            &self,
            _: &Filter,
            reach: &Reach<'_>,
            found: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
        ) -> io::Result<Option<u64>> {
            _ = found(7, br#"{"v":1}"#);
            while !(reach.enough)() {
                // A test that has failed waits for nobody.
                if let Err(TrySendError::Disconnected(())) = self.begun.try_send(()) {
                    break;
                }
                std::thread::yield_now();
            }
            _ = self.ended.send(());
            Ok(Some(5))
        }

        fn directory(&self) -> &Path {
            Path::new("/")
        }
    }

    fn endless() -> (Arc<Endless>, [mpsc::Receiver<()>; 2]) {
        let ((begun, begins), (ended, ends)) = (mpsc::sync_channel(1), mpsc::channel());
        (Arc::new(Endless { begun, ended }), [begins, ends])
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_search_that_nobody_waits_for_ends_and_gives_its_seat_back() {
        let searches = Searches::new(CancellationToken::new());
        let (log, [begins, ends]) = endless();
        let mut left = Vec::new();
        while let Ok(begun) = searches.begin(Some(Role::Auditor)) {
            left.push(searched(begun, log.clone(), Filter::default(), 9, 99));
            begins.recv_timeout(PATIENCE).unwrap();
        }
        assert!(!left.is_empty());
        // Their time does not pass here.
        for answer in left {
            drop(answer);
            ends.recv_timeout(PATIENCE).unwrap();
        }
        while searches.begin(Some(Role::Auditor)).is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_takes_too_long_says_what_it_did_not_look_at_and_where_to_go_on() {
        let searches = Searches::new(CancellationToken::new());
        let begun = searches.begin(Some(Role::Auditor)).unwrap();
        let (log, [begins, _ends]) = endless();
        let answer = searched(begun, log, Filter::default(), 9, u64::MAX);
        begins.recv_timeout(PATIENCE).unwrap();
        tokio::time::advance(TIME).await;
        let body = answer.await.unwrap().into_body();
        let body = http_body_util::BodyExt::collect(body).await.unwrap();
        let told = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        let next = cursor("5");
        let expected = format!(
            r#"{{"items":[{{"seq":7,"record":{{"v":1}}}}],"next_cursor":"{next}","unsearched_before":5}}"#
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn what_no_record_can_be_is_refused_and_not_looked_for() {
        for text in ["outcome=okay", "event=calls"] {
            let problem = Query::parse(Some(text), SEARCH).unwrap_err();
            assert_eq!(
                (problem.status.as_u16(), problem.reason),
                (400, "bad_parameter"),
                "{text}"
            );
        }
        for text in ["outcome=okay", "event=calls"] {
            assert!(Query::parse(Some(text), FOLLOW).is_err(), "{text}");
        }
        // Between these there is nothing, which is no fault of the question's.
        let none = "since=2026-11-22T00:00:00Z&until=2026-11-21T23:59:59Z";
        for text in [none, "outcome=tool_error&event=call", "event=retention"] {
            Query::parse(Some(text), SEARCH).unwrap();
        }
    }

    #[test]
    fn a_log_is_followed_from_its_end_and_one_that_cannot_be_read_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(last(directory.path()).unwrap(), 0);
        let (text, end) = lines(&[r#"{"v":1}"#; 3]);
        let name = format!("{:020}-0000.jsonl", 1);
        std::fs::write(directory.path().join(name), text).unwrap();
        assert_eq!((last(directory.path()).unwrap(), end.seq), (3, 3));
        let none = directory.path().join("none");
        assert!(Records::from_now_on(&none, &Filter::default()).is_err());
    }

    #[tokio::test]
    async fn who_is_slower_than_retention_is_told_how_many_records_it_missed() {
        let directory = tempfile::tempdir().unwrap();
        let filter = Filter {
            event: Some("call".to_owned()),
            ..Filter::default()
        };
        let mut records = Records::from_now_on(directory.path(), &filter).unwrap();
        let (text, _) = lines(&[
            r#"{"event":"start"}"#,
            r#"{"event":"call"}"#,
            r#"{"event":"call"}"#,
        ]);
        // The first of them was in a segment that is gone.
        let begin = memchr::memchr(b'\n', &text).unwrap() + 1;
        let name = format!("{:020}-0000.jsonl", 2);
        std::fs::write(directory.path().join(name), &text[begin..]).unwrap();
        let told = records.next().await.unwrap();
        assert_eq!(told[0], "event: missed\ndata: {\"missed\":1}\n\n");
        assert_eq!(told.len(), 3);
        assert!(
            told[1..]
                .iter()
                .all(|event| event.starts_with(b"event: record\n"))
        );
    }

    #[test]
    fn a_filter_means_what_records_make_of_what_it_says() {
        let directory = tempfile::tempdir().unwrap();
        let mut text = String::new();
        crate::audit::canonical::text(&mut text, "a\u{202e}b", 100);
        let event = format!(r#"{{"event":"call","target":{{"exposed":{text}}}}}"#);
        let (line, _) = lines(&[&event]);
        let told = |name: &str| {
            let filter = Filter {
                name: Some(name.to_owned()),
                ..Filter::default()
            };
            let records = Records::from_now_on(directory.path(), &filter).unwrap();
            records.told(line.trim_ascii_end()).is_some()
        };
        assert!(told("a\u{202e}b"));
        assert!(!told("ab"));
    }
}
