//! What was found in content, and what was done about it: the list that people, metrics and audit read.
//!
//! Guarantees: a finding never holds the text that was found, only where it stood, how long it was, and a digest under a key
//! of this process, which tells equal texts from others and cannot be guessed back (SECURITY 7). The list is bounded: the
//! oldest go first, and how many went is counted; the counts by kind and action are kept of all. Deliberately absent: what is
//! looked for, which is others' (`sanitize`, and whoever else notes something).

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use aws_lc_rs::{hmac, rand};

use crate::{
    call::{CallId, Trail},
    json::Json,
    metrics,
    protocol::UpstreamId,
};

/// What was found, without the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The class of content, or another kind of event in lower case: `secret`, `definition_changed`. A label of metrics, so
    /// there are few.
    pub kind: &'static str,
    /// The rule that matched: lower case, stable.
    pub rule: Arc<str>,
    /// What was done.
    pub action: Action,
    /// Where the content came from and went to.
    pub direction: Direction,
    /// The place in the content as a JSON pointer (RFC 6901), at most [`PLACE_BYTES`] bytes; `""` is the whole.
    pub place: Box<str>,
    /// The bytes of text that matched; 0 where no text did.
    pub length: usize,
    /// The matched text under the key of this process; `None` where no text matched.
    pub digest: Option<Digest>,
    /// The upstream that it came from or was to go to.
    pub upstream: Option<UpstreamId>,
    /// The tool, prompt, resource or other item, by its upstream's own name for it.
    pub item: Option<Arc<str>>,
    /// The call in which it was found; `None` for definitions.
    pub call: Option<CallId>,
    /// When.
    pub at: SystemTime,
}

/// The longest [`Finding::place`] in bytes; the rest of a longer one is cut off.
pub const PLACE_BYTES: usize = 256;

/// What is done about a finding, strongest first (SECURITY 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The whole is refused.
    Block,
    /// The definition is not offered.
    Quarantine,
    /// A placeholder stands in its place.
    Redact,
    /// It is inert and still readable.
    Neutralise,
    /// It is gone.
    Remove,
    /// It is noted and stays as it is.
    Flag,
}

impl Action {
    /// Every action, strongest first.
    pub const ALL: [Self; 6] = [
        Self::Block,
        Self::Quarantine,
        Self::Redact,
        Self::Neutralise,
        Self::Remove,
        Self::Flag,
    ];

    /// The word for it in configuration, `_meta` and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Quarantine => "quarantine",
            Self::Redact => "redact",
            Self::Neutralise => "neutralise",
            Self::Remove => "remove",
            Self::Flag => "flag",
        }
    }
}

/// Which way content goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From a client to an upstream: arguments, answers to questions.
    Arguments,
    /// From an upstream to a client: results, errors, events, questions.
    Results,
    /// Definitions on their way into the catalog.
    Definitions,
}

impl Direction {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Results => "results",
            Self::Definitions => "definitions",
        }
    }
}

/// A keyed digest: equal for equal texts of one process, and of no use for guessing them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 16]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The findings of this process; cloning gives another handle to the same list.
#[derive(Clone)]
pub struct Findings(Arc<Shared>);

struct Shared {
    key: hmac::Key,
    /// Whether nothing is noted.
    unheard: bool,
    /// How many were noted ever.
    noted: AtomicU64,
    listener: OnceLock<Listener>,
    scrub: OnceLock<Arc<dyn Scrub>>,
    // A std mutex: taken when something is found or somebody looks, never for clean content.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    list: VecDeque<Arc<Finding>>,
    counts: BTreeMap<Count, u64>,
}

type Count = (&'static str, Action, Direction);

/// The most findings kept; the oldest goes for each beyond.
pub const KEPT: usize = 1_024;
/// The most different kinds times actions times directions that are counted; more are counted under the kind `other`.
const COUNTED: usize = 512;

impl Kept {
    fn count(&mut self, mut count: Count, times: u64) {
        if self.counts.len() >= COUNTED && !self.counts.contains_key(&count) {
            count.0 = "other";
        }
        *self.counts.entry(count).or_default() += times;
    }
}

/// Takes out what must not be kept of what peers wrote, whatever is done about it where it goes through (SECURITY AUD-8).
pub trait Scrub: fmt::Debug + Send + Sync {
    /// Content as it may be kept: of a call to this upstream, and of this tool by its original name, where it is of one.
    fn content(&self, value: &Json, upstream: Option<&UpstreamId>, tool: Option<&str>) -> Json;

    /// A name or an address as it may be kept.
    fn name<'a>(&self, name: &'a str) -> Cow<'a, str>;

    /// Whether a name is seen at a glance to be kept as it is, beside others like it, too. It costs nothing.
    fn is_plain(&self, _name: &str) -> bool {
        false
    }

    /// What a call was for, as it may be kept. A name that leads somewhere stands in the catalog; an address may lead there with
    /// anything in it.
    fn target<'a>(&self, name: &'a str, leads: bool) -> Cow<'a, str> {
        if leads && memchr::memchr(b':', name.as_bytes()).is_none() {
            name.into()
        } else {
            self.name(name)
        }
    }

    /// The id of a request as it may be kept, as it was written; what most clients count by costs nothing.
    fn id<'a>(&self, id: &'a str) -> Cow<'a, str>;
}

/// Is told of findings.
pub type Listener = Box<dyn Fn(&Finding) + Send + Sync>;

impl Default for Findings {
    fn default() -> Self {
        Self::new()
    }
}

impl Findings {
    /// An empty list, with a key of its own.
    pub fn new() -> Self {
        Self::begun(false)
    }

    /// One that stays empty, and counts nothing: for looking at content that is not on its way.
    pub fn unheard() -> Self {
        Self::begun(true)
    }

    #[expect(clippy::expect_used, reason = "see the invariant")]
    fn begun(unheard: bool) -> Self {
        let mut key = [0; 32];
        // INVARIANT: the operating system's random source does not fail after boot; a process without one must not serve.
        rand::fill(&mut key).expect("the system gives random bytes");
        Self(Arc::new(Shared {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            unheard,
            noted: AtomicU64::new(0),
            listener: OnceLock::new(),
            scrub: OnceLock::new(),
            kept: Mutex::default(),
        }))
    }

    /// Tells `listener` of every finding from now on; of several, the first alone. It must not wait.
    pub fn listen(&self, listener: Listener) {
        _ = self.0.listener.set(listener);
    }

    /// Places, and names of what is defined, are kept as `scrub` says from now on: one may hold what was found (SECURITY AUD-8). Of
    /// several, the first counts alone.
    pub fn scrub(&self, scrub: Arc<dyn Scrub>) {
        _ = self.0.scrub.set(scrub);
    }

    /// The digest of a text that matched.
    pub fn digest(&self, text: &str) -> Digest {
        let tag = hmac::sign(&self.0.key, text.as_bytes());
        let mut digest = [0; 16];
        digest.copy_from_slice(&tag.as_ref()[..16]);
        Digest(digest)
    }

    /// A place as it may be told: in the names on the way there peers write what they like.
    pub fn place<'a>(&self, place: &'a str) -> Cow<'a, str> {
        let Some(scrub) = self.0.scrub.get() else {
            return place.into();
        };
        // Most places are: to look at each of many would take longer than to look at the content.
        if place.split('/').all(|name| scrub.is_plain(name)) {
            return place.into();
        }
        // The slash and the tilde of a name are escaped.
        if !place.contains('~') {
            return scrub.name(place);
        }
        let names = place.split('/').map(|name| {
            let read = name.replace("~1", "/").replace("~0", "~");
            let kept = scrub.name(&read).replace('~', "~0");
            kept.replace('/', "~1")
        });
        names.collect::<Vec<_>>().join("/").into()
    }

    /// Takes a finding into the list and counts it; `trail` is that of the call that it is of, for the call's record: the list is for
    /// all, and forgets.
    pub fn note(&self, mut finding: Finding, trail: Option<&Trail>) {
        if self.0.unheard {
            return;
        }
        if finding.direction == Direction::Definitions
            && let Some(scrub) = self.0.scrub.get()
        {
            finding.item = finding.item.map(|item| scrub.name(&item).into());
        }
        // Whole, since part of a secret is not known for one.
        if let Cow::Owned(place) = self.place(&finding.place) {
            finding.place = place.into();
        }
        if finding.place.len() > PLACE_BYTES {
            let end = finding.place.floor_char_boundary(PLACE_BYTES);
            finding.place = finding.place[..end].into();
        }
        if let Some(trail) = trail {
            trail.note(|facts| facts.found.add(&finding));
        }
        if let Some(listener) = self.0.listener.get() {
            listener(&finding);
        }
        let rule = finding.rule.to_string();
        metrics::instruments().found(finding.kind, rule, finding.action.word(), 1);
        let mut kept = self.kept();
        kept.count((finding.kind, finding.action, finding.direction), 1);
        if kept.list.len() >= KEPT {
            kept.list.pop_front();
        }
        kept.list.push_back(Arc::new(finding));
        self.0.noted.fetch_add(1, Ordering::Release);
    }

    /// Counts some of very many that are not worth a place in the list each, of the call of this trail.
    pub fn count(
        &self,
        kind: &'static str,
        rule: &str,
        action: Action,
        direction: Direction,
        times: u64,
        trail: Option<&Trail>,
    ) {
        if self.0.unheard {
            return;
        }
        if let Some(trail) = trail {
            trail.note(|facts| facts.found.count(kind, rule, action, times));
        }
        metrics::instruments().found(kind, rule.to_owned(), action.word(), times);
        self.kept().count((kind, action, direction), times);
    }

    /// How many were noted since the process began.
    pub fn noted(&self) -> u64 {
        self.0.noted.load(Ordering::Acquire)
    }

    /// Those that are kept, oldest first.
    pub fn recent(&self) -> Vec<Arc<Finding>> {
        self.kept().list.iter().cloned().collect()
    }

    /// The same, each with its number: they count up from 1 in this process.
    pub fn numbered(&self) -> Vec<(u64, Arc<Finding>)> {
        let kept = self.kept();
        // Counted under the lock, so that both are of one moment.
        let gone = self.noted().saturating_sub(kept.list.len() as u64);
        (gone + 1..)
            .zip(&kept.list)
            .map(|(number, finding)| (number, finding.clone()))
            .collect()
    }

    /// How many there were of each kind, action and direction, kept or not.
    pub fn counts(&self) -> Vec<(&'static str, Action, Direction, u64)> {
        let kept = self.kept();
        let counts = kept.counts.iter();
        counts
            .map(|((kind, action, direction), count)| (*kind, *action, *direction, *count))
            .collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Findings({} noted)", self.noted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Origin;

    fn finding(place: &str) -> Finding {
        Finding {
            kind: "secret",
            rule: "aws_access_key".into(),
            action: Action::Redact,
            direction: Direction::Results,
            place: place.into(),
            length: 20,
            digest: None,
            upstream: None,
            item: None,
            call: None,
            at: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_oldest_goes_at_the_bound_and_all_are_counted() {
        let findings = Findings::new();
        for n in 0..KEPT {
            findings.note(finding(&format!("/{n}")), None);
        }
        assert_eq!(findings.recent().len(), KEPT);
        assert_eq!(&*findings.recent()[0].place, "/0");
        findings.note(finding("/last"), None);
        let recent = findings.recent();
        assert_eq!((recent.len(), &*recent[0].place), (KEPT, "/1"));
        assert_eq!(&*recent[KEPT - 1].place, "/last");
        let all = (KEPT + 1) as u64;
        assert_eq!(findings.noted(), all);
        let numbered = findings.numbered();
        let of = |at: usize| (numbered[at].0, &*numbered[at].1.place);
        assert_eq!((of(0), of(KEPT - 1)), ((2, "/1"), (all, "/last")));
        assert_eq!(
            findings.counts(),
            [("secret", Action::Redact, Direction::Results, all)]
        );
    }

    /// Hides one word.
    #[derive(Debug)]
    struct Hides(&'static str);

    impl Scrub for Hides {
        fn content(&self, value: &Json, _: Option<&UpstreamId>, _: Option<&str>) -> Json {
            value.clone()
        }

        fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
            name.replace(self.0, "[hidden]").into()
        }

        fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
            id.into()
        }
    }

    /// SECURITY AUD-8
    #[test]
    fn what_must_not_be_kept_is_in_no_place_whichever_way_the_content_goes() {
        let findings = Findings::new();
        findings.scrub(Arc::new(Hides("a/~b")));
        for direction in [
            Direction::Arguments,
            Direction::Results,
            Direction::Definitions,
        ] {
            let found = finding("/n/a~1~0b/0/~1~01");
            let finding = Finding { direction, ..found };
            findings.note(finding, None);
        }
        findings.note(finding(&format!("/{}/a~1~0b", "x".repeat(250))), None);
        let recent = findings.recent();
        let (cut, whole) = recent.split_last().unwrap();
        for finding in whole {
            assert_eq!(&*finding.place, "/n/[hidden]/0/~1~01");
        }
        assert!(cut.place.ends_with("x/[hid"), "{cut:?}");
    }

    /// Takes what is short for plain, and hides all else.
    #[derive(Debug)]
    struct Short;

    impl Scrub for Short {
        fn content(&self, value: &Json, _: Option<&UpstreamId>, _: Option<&str>) -> Json {
            value.clone()
        }

        fn name<'a>(&self, _: &'a str) -> Cow<'a, str> {
            "[hidden]".into()
        }

        fn is_plain(&self, name: &str) -> bool {
            name.len() < 8
        }

        fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
            id.into()
        }
    }

    #[test]
    fn a_place_of_plain_names_alone_is_not_looked_at() {
        let findings = Findings::new();
        findings.scrub(Arc::new(Short));
        assert_eq!(findings.place("/content/0/text"), "/content/0/text");
        assert_eq!(findings.place("/content/0/long-one"), "[hidden]");
    }

    #[test]
    fn what_is_found_in_a_call_is_on_its_trail_as_it_is_kept() {
        let findings = Findings::new();
        findings.scrub(Arc::new(Hides("secret")));
        let (one, two) = (Trail::of(Origin::default()), Trail::of(Origin::default()));
        findings.note(finding("/secret"), Some(&one));
        findings.note(finding("/b"), Some(&two));
        findings.note(finding("/c"), None);
        let (action, direction) = (Action::Redact, Direction::Results);
        findings.count("secret", "aws_access_key", action, direction, 5, Some(&two));
        let told = |trail: &Trail| {
            let found = trail.read(|facts| facts.found.clone());
            let told = found
                .list()
                .iter()
                .map(|it| (it.place.to_string(), it.count));
            told.collect::<Vec<_>>()
        };
        assert_eq!(told(&one), [("/[hidden]".to_owned(), 1)]);
        assert_eq!(told(&two), [("/b".to_owned(), 6)]);
        // What is not on its way is nobody's.
        Findings::unheard().note(finding("/d"), Some(&one));
        assert_eq!(told(&one).len(), 1);
    }

    #[test]
    fn a_long_place_is_cut_between_characters() {
        let findings = Findings::new();
        findings.note(finding(&"é".repeat(200)), None);
        findings.note(finding(&format!("x{}", "é".repeat(200))), None);
        let recent = findings.recent();
        assert_eq!((recent[0].place.len(), recent[1].place.len()), (256, 255));
    }

    #[test]
    fn equal_texts_have_equal_digests_in_one_process_only() {
        let (one, two) = (Findings::new(), Findings::new());
        assert_eq!(one.digest("4111"), one.digest("4111"));
        assert_ne!(one.digest("4111"), one.digest("4112"));
        assert_ne!(one.digest("4111"), two.digest("4111"));
        assert!(!format!("{:?} {one:?}", one.digest("4111")).contains("4111"));
    }
}
