//! Requests of ours that a session's client has not answered yet, and what such a client can be asked at all.
//!
//! Guarantees: an id is never used twice in a session and looks like no client's own; a response reaches the one question it
//! answers and is otherwise as unknown as any; the number of open questions is bounded; a question nobody waits for is forgotten.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{Session, notice::Notice, sessions::random_id};
use crate::{
    events,
    json::{Edits, Fate, Json, Kind, Node},
    jsonrpc::{RequestId, Response, RpcError},
    protocol::{ClientCapabilities, Revision, codes},
};

/// Questions that one session's client may have open at a time; what more is asked counts as refused.
const OPEN: usize = 64;
/// Withdrawn questions of one session that a late answer may still come to; the oldest is forgotten for another.
const WITHDRAWN: usize = 64;
/// Pages of one session whose end may still be told; the oldest is forgotten for another.
const PAGES: usize = 64;

/// The open questions of one session.
#[derive(Debug, Default)]
pub(in crate::downstream) struct Asks {
    next: AtomicU64,
    // Held for a look-up or an insertion, never across an await.
    open: Mutex<Open>,
    /// Ids of pages that the client was sent to, as the upstream gave them and as we did, oldest first. Locked likewise.
    pages: Mutex<VecDeque<(String, String)>>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
    /// Questions that were withdrawn before they were answered, oldest first: a late answer to one is no fault of the client's.
    withdrawn: VecDeque<u64>,
    /// Messages being read that may be answers.
    coming: usize,
    /// Nobody answers any more.
    closed: bool,
}

impl Open {
    /// Nobody waits for the answer to this question any more.
    fn withdraw(&mut self, number: u64) {
        if self.waiting.remove(&number).is_none() {
            return;
        }
        if self.withdrawn.len() >= WITHDRAWN {
            self.withdrawn.pop_front();
        }
        self.withdrawn.push_back(number);
    }

    /// Whether this question was withdrawn; said once of each.
    fn was_withdrawn(&mut self, number: u64) -> bool {
        let at = self.withdrawn.iter().position(|other| *other == number);
        at.and_then(|at| self.withdrawn.remove(at)).is_some()
    }
}

/// What a response was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::downstream) enum Receipt {
    /// The answer to an open question.
    Heard,
    /// One to a question that was withdrawn meanwhile: nobody waits for it, and it is no fault of the client's.
    Late,
    /// No answer to anything that was asked, or a second one.
    Unasked,
}

/// How the client answered.
pub(super) type Answered = Result<Json, RpcError>;

/// The answer that is waited for; dropped, the question is forgotten.
#[derive(Debug)]
pub(super) struct Awaited {
    /// The question's id.
    pub(super) id: RequestId,
    /// Resolves with the answer.
    pub(super) answer: oneshot::Receiver<Answered>,
    number: u64,
    session: Arc<Session>,
}

/// A message being read that may be an answer: of those there are no more at once than open questions.
pub(in crate::downstream) struct Answering(Arc<Session>);

impl Answering {
    /// In this session, if it has a question for it.
    pub(in crate::downstream) fn of(session: &Arc<Session>) -> Option<Self> {
        let open = session.asks.open.lock();
        let mut open = open.unwrap_or_else(PoisonError::into_inner);
        if open.coming >= open.waiting.len() {
            return None;
        }
        open.coming += 1;
        drop(open);
        Some(Self(Arc::clone(session)))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let open = self.0.asks.open.lock();
        open.unwrap_or_else(PoisonError::into_inner).coming -= 1;
    }
}

impl Asks {
    /// Takes a response of the client. Whoever answers while the question is being withdrawn cannot know better: who cancels a
    /// request ignores what comes for it afterwards, and a refusal ends the connection of some clients.
    pub(in crate::downstream) fn answer(&self, response: Response) -> Receipt {
        let Some(number) = response.id.as_ref().and_then(RequestId::as_ours) else {
            return Receipt::Unasked;
        };
        let waiting = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            match open.waiting.remove(&number) {
                Some(waiting) => waiting,
                None if open.was_withdrawn(number) => return Receipt::Late,
                None => return Receipt::Unasked,
            }
        };
        // Whoever waited may have given up this instant.
        match waiting.send(response.body) {
            Ok(()) => Receipt::Heard,
            Err(_) => Receipt::Late,
        }
    }

    /// Forgets a question to which no answer is wanted any more: whoever waits for it hears of that.
    pub(super) fn forget(&self, id: &RequestId) {
        if let Some(number) = id.as_ours() {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.withdraw(number);
        }
    }

    /// Nobody answers any more: what is open counts as not answered, and nothing more is asked.
    pub(in crate::downstream) fn close(&self) {
        let unanswered = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.closed = true;
            std::mem::take(&mut open.waiting)
        };
        // Whoever waits is woken without the lock.
        drop(unanswered);
    }

    /// The client was sent to a page: remembers the upstream's id of it, and ours. Gives back the upstream's of the one that is
    /// forgotten for it.
    fn remember(&self, theirs: String, ours: String) -> Option<String> {
        let mut pages = self.pages();
        pages.retain(|(page, _)| *page != theirs);
        let oldest = (pages.len() >= PAGES).then(|| pages.pop_front());
        pages.push_back((theirs, ours));
        oldest.flatten().map(|(page, _)| page)
    }

    /// Our id of a page that the client was sent to, once.
    fn visited(&self, page: &str) -> Option<String> {
        let mut pages = self.pages();
        let at = pages.iter().position(|(other, _)| other == page)?;
        pages.remove(at).map(|(_, ours)| ours)
    }

    fn pages(&self) -> MutexGuard<'_, VecDeque<(String, String)>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// The id under which the client is to know a page, remembered with the upstream's, if it has one.
    pub(super) fn page(self: &Arc<Self>, params: &Json) -> String {
        let ours = random_id();
        if let Some(theirs) = page_of(params.root()) {
            self.sends(theirs, ours.clone());
        }
        ours
    }

    /// The client is told by an error which pages it has to visit first, by these ids (PROTOCOL D2d).
    pub(in crate::downstream) fn sends_to(self: &Arc<Self>, error: &RpcError) {
        let data = error
            .data
            .as_ref()
            .filter(|_| error.code == codes::URL_ELICITATION_REQUIRED);
        let pages = data.and_then(|data| data.root().member("elicitations"));
        for page in pages.into_iter().flat_map(Node::elements).take(PAGES) {
            if let Some(id) = page_of(page) {
                self.sends(id.clone(), id);
            }
        }
    }

    fn sends(self: &Arc<Self>, theirs: String, ours: String) {
        self.pages.sent(&theirs, self);
        if let Some(oldest) = self.asks.remember(theirs, ours) {
            self.pages.forget(&oldest, &**self);
        }
    }

    /// The notification that a page is done with, if it is one that this client was sent to; told once. Else whoever was sent
    /// there hears of it: on a pipe it comes on the call that may be asked just then, whosever page it is.
    /// Of what the upstream says only the id is looked at, and nothing goes on.
    pub(in crate::downstream) fn elicited(&self, params: &Json) -> Option<Bytes> {
        let page = page_of(params.root())?;
        let Some(ours) = self.asks.visited(&page) else {
            self.pages.done(&page);
            return None;
        };
        self.pages.forget(&page, self);
        Some(Notice::Visited(ours.into()).frame())
    }
}

/// What comes when the call that sent somebody there is over.
impl events::Sender for Session {
    fn done(&self, page: &str) -> bool {
        let ours = self.asks.visited(page);
        ours.is_some_and(|ours| {
            self.outbox.notify(Notice::Visited(ours.into()));
            true
        })
    }
}

/// The id of a page, as the upstream's key and its own id of it. Of one with a longer id than is looked at nothing is kept, and
/// its end is not told.
fn page_of(elicitation: Node<'_>) -> Option<String> {
    let id = elicitation.member("elicitationId")?.as_str()?;
    (id.len() <= events::Pages::ID_BYTES).then(|| id.into_owned())
}

/// A new question to the client of `session`; `None` when too many are open, or when nobody answers any more.
pub(super) fn open(session: &Arc<Session>) -> Option<Awaited> {
    let asks = &session.asks;
    let (sender, answer) = oneshot::channel();
    let number = asks.next.fetch_add(1, Ordering::Relaxed);
    {
        let mut open = asks.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.closed || open.waiting.len() >= OPEN {
            return None;
        }
        open.waiting.insert(number, sender);
    }
    Some(Awaited {
        id: RequestId::ours(number),
        answer,
        number,
        session: Arc::clone(session),
    })
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let open = &self.session.asks.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        open.withdraw(self.number);
    }
}

/// What a client of `revision` can be asked of what it declared: capabilities that its revision does not have, and those we
/// do not pass on, are left out (PROTOCOL A5, D1, D2b).
pub(super) fn deliverable(revision: Revision, declared: ClientCapabilities) -> ClientCapabilities {
    let modes = revision >= Revision::V2025_11_25;
    let elicits = revision >= Revision::V2025_06_18;
    let json = declared.json();
    let mut edits = Edits::new();
    let part = |node: Node<'_>, keep: &dyn Fn(&str) -> bool| {
        let part = json.slice(node);
        let mut edits = Edits::new();
        edits.members(part.root(), |key, _| fate(keep(key)), &[]);
        Fate::Replace(part.splice(&edits))
    };
    edits.members(
        json.root(),
        |key, value| match key {
            _ if value.kind() != Kind::Object => Fate::Keep,
            "elicitation" if !elicits => Fate::Remove,
            "elicitation" | "sampling" if !modes => part(value, &|_| false),
            // Changes of roots are not passed on: they are asked for afresh.
            "roots" => part(value, &|key| key != "listChanged"),
            _ => Fate::Keep,
        },
        &[],
    );
    let kept = json.splice(&edits);
    ClientCapabilities::read(kept).unwrap_or(ClientCapabilities::NONE)
}

/// Capabilities for a call whose answer has no room for questions (PROTOCOL D0.5, D7); `None` when they stay as they are.
pub(super) fn mute(declared: &ClientCapabilities) -> Option<ClientCapabilities> {
    const ASKING: [&str; 3] = ["elicitation", "sampling", "roots"];
    let json = declared.json();
    let asks = |key: &str| ASKING.contains(&key);
    if !json.root().members().any(|member| asks(&member.key)) {
        return None;
    }
    let mut edits = Edits::new();
    edits.members(json.root(), |key, _| fate(!asks(key)), &[]);
    ClientCapabilities::read(json.splice(&edits))
}

const fn fate(keep: bool) -> Fate {
    if keep { Fate::Keep } else { Fate::Remove }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn declared(text: &str) -> ClientCapabilities {
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap();
        ClientCapabilities::read(json).unwrap()
    }

    /// Some clients read nothing else, and compare it with what they have asked themselves.
    #[test]
    fn our_ids_are_numbers_far_from_those_that_clients_come_to() {
        let id = RequestId::ours(7);
        assert!(
            id.as_str()
                .parse::<i32>()
                .is_ok_and(|id| id > 1_000_000_000)
        );
        assert_eq!(id.as_ours(), Some(7));
        assert_eq!(RequestId::minted(7).as_ours(), None);
    }

    #[test]
    fn a_late_answer_to_a_withdrawn_question_is_taken_note_of_once() {
        let session = Session::for_tests();
        let answers = |id: &RequestId| {
            session.asks.answer(Response {
                id: Some(id.clone()),
                body: Ok(Json::empty_object()),
            })
        };
        let (answered, withdrawn) = (open(&session).unwrap(), open(&session).unwrap());
        let late = withdrawn.id.clone();
        drop(withdrawn);
        assert_eq!(answers(&late), Receipt::Late);
        assert_eq!(answers(&late), Receipt::Unasked, "once");
        assert_eq!(answers(&answered.id), Receipt::Heard);
        let id = answered.id.clone();
        drop(answered);
        assert_eq!(answers(&id), Receipt::Unasked, "it was answered");
        assert_eq!(answers(&RequestId::ours(99)), Receipt::Unasked);
        let all: Vec<_> = (0..=WITHDRAWN)
            .map(|_| open(&session).unwrap().id.clone())
            .collect();
        assert_eq!(
            answers(&all[0]),
            Receipt::Unasked,
            "the oldest is forgotten"
        );
        assert!(all[1..].iter().all(|id| answers(id) == Receipt::Late));
    }

    #[test]
    fn the_end_of_a_page_is_told_once_under_our_id_and_only_to_who_was_sent_there() {
        let params = |id: &str| {
            let text = format!(
                r#"{{"x":1.0,"elicitationId":"{id}","_meta":{{"v":"what nobody has looked at"}}}}"#
            );
            Json::parse(text.into(), &Limits::CLIENT).unwrap()
        };
        let (asks, other) = (Session::for_tests(), Session::for_tests());
        let ours = asks.page(&params("notes:1"));
        assert_ne!(ours, other.page(&params("notes:2")));
        assert_eq!(other.elicited(&params("notes:1")), None);
        let told = asks.elicited(&params("notes:1")).unwrap();
        assert_eq!(
            told,
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"{ours}"}}}}"#
            )
        );
        assert_eq!(asks.elicited(&params("notes:1")), None, "once");
        // What comes on a call of another's is told to who was sent there.
        asks.page(&params("notes:3"));
        other.pages.sent("notes:3", &asks);
        assert_eq!(other.elicited(&params("notes:3")), None);
        assert_eq!(asks.elicited(&params("notes:3")), None, "it was told");
        for n in 0..=PAGES {
            asks.page(&params(&n.to_string()));
        }
        assert_eq!(asks.elicited(&params("0")), None, "the oldest is forgotten");
        assert!(asks.elicited(&params("1")).is_some());
        assert!(asks.elicited(&params(&PAGES.to_string())).is_some());
    }

    #[test]
    fn of_a_page_with_an_endless_id_nothing_is_kept() {
        let most = events::Pages::ID_BYTES;
        for (bytes, kept) in [(most, 1), (most + 1, 0)] {
            let id = "x".repeat(bytes);
            let text = format!(r#"{{"elicitations":[{{"elicitationId":"{id}"}}]}}"#);
            let error = RpcError {
                data: Some(Json::parse(text.into(), &Limits::CLIENT).unwrap()),
                ..RpcError::new(codes::URL_ELICITATION_REQUIRED, "visit")
            };
            let session = Session::for_tests();
            session.sends_to(&error);
            assert_eq!(session.asks.pages().len(), kept);
        }
    }

    #[test]
    fn nothing_is_promised_that_a_revision_has_no_words_for() {
        let all = r#"{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"x":{"y":1}}"#;
        for (revision, want) in [
            (
                Revision::V2024_11_05,
                r#"{"roots":{},"sampling":{},"x":{"y":1}}"#,
            ),
            (
                Revision::V2025_03_26,
                r#"{"roots":{},"sampling":{},"x":{"y":1}}"#,
            ),
            (
                Revision::V2025_06_18,
                r#"{"roots":{},"sampling":{},"elicitation":{},"x":{"y":1}}"#,
            ),
            (
                Revision::V2025_11_25,
                r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"x":{"y":1}}"#,
            ),
        ] {
            assert_eq!(deliverable(revision, declared(all)).json().as_str(), want);
        }
        let odd = r#"{"elicitation":3,"roots":null}"#;
        let kept = deliverable(Revision::V2025_11_25, declared(odd));
        assert_eq!(kept.json().as_str(), odd);
    }

    #[test]
    fn whoever_cannot_be_asked_declares_nothing_to_ask_for() {
        let muted = mute(&declared(
            r#"{"roots":{},"x":{},"sampling":{},"elicitation":{}}"#,
        ));
        assert_eq!(muted.unwrap().json().as_str(), r#"{"x":{}}"#);
        assert!(mute(&declared(r#"{"x":{}}"#)).is_none());
        assert!(mute(&ClientCapabilities::NONE).is_none());
    }
}
