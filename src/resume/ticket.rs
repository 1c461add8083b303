//! The ticket: everything that is needed to go on with a call, in one sealed text that the client keeps for us.

use std::sync::Arc;

use super::{Asked, Number, SEALED_CHARS, digest};
use crate::{
    call::{Op, Owner, State},
    json::{Json, Kind, Limits, Node},
    metrics::{Bound, reached},
    protocol::{UpstreamId, meta},
    seal::{Purpose, SealError, Sealer},
};

/// What a call must still be when it goes on: who calls, where, and what for.
#[derive(Debug, Clone, Copy)]
pub struct CallBinding<'a> {
    /// Who calls, by which OAuth client and at which endpoint (PROTOCOL D2a).
    pub owner: &'a Owner,
    /// The method, and the outward name or URI.
    pub op: &'a Op,
    /// The params, of which `_meta`, answers and state do not count.
    pub params: &'a Json,
}

/// A call that waits for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Who asked.
    pub upstream: UpstreamId,
    /// What the upstream calls what was called: it must still be found under the same outward name.
    pub local: Arc<str>,
    /// What the upstream is to get back, never [`State::Sealed`].
    pub state: State,
    /// How often the caller has been asked, this time included.
    pub round: u32,
    /// What is to be answered.
    pub asked: Asked,
    /// Where a person has to agree to the call before it leaves: how far that is.
    pub approval: Option<Approval>,
}

/// That a person has to agree to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approval {
    /// What makes the ticket count once.
    pub number: Number,
    /// That the person agreed already, and the upstream asks; else the person is asked, and no upstream has heard of it.
    pub given: Option<Given>,
    /// Until when agreeing counts, in seconds since 1970.
    pub until: u64,
}

/// The approval that a call goes by which goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// The number of the ticket by which the person agreed.
    pub reference: Number,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// State that is not good here: altered, another's, for another call, or late. Says no more on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("state is not valid here")]
pub struct BadState;

impl From<SealError> for BadState {
    fn from(_: SealError) -> Self {
        Self
    }
}

/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;

impl Ticket {
    /// The text that stands for this ticket at `bound_to`, from `now` in seconds since 1970.
    pub fn seal(&self, sealer: &Sealer, bound_to: CallBinding<'_>, now: u64) -> String {
        let mut members = vec![
            ("at", Json::of(&now)),
            ("u", Json::string(self.upstream.as_str())),
            ("l", Json::string(&self.local)),
            ("n", Json::of(&self.round)),
            ("k", self.asked.to_json()),
        ];
        match &self.state {
            // Absent stays absent: it is not the empty string (PROTOCOL G9).
            State::Upstream(None) => {}
            State::Upstream(Some(state)) => members.push(("s", state.clone())),
            State::Parked(slot) => members.push(("p", Json::of(slot))),
            State::Own(note) => members.push(("o", Json::string(note))),
            State::Sealed(text) => members.push(("s", Json::string(text))),
        }
        if let Some(approval) = &self.approval {
            members.push(("a", digits(approval.number)));
            if let Some(given) = approval.given {
                members.push(("ag", digits(given.reference)));
                members.push(("aw", Json::of(&given.at)));
            }
            members.push(("au", Json::of(&approval.until)));
        }
        let plain = meta::object_of(&members);
        sealer.seal(Purpose::Resume, &bound_to.binding().parts(), plain.bytes())
    }

    /// The ticket that `text` stands for, if it is no older than `life` in seconds.
    ///
    /// # Errors
    /// [`BadState`] when it was altered, or sealed at another place or with another secret, or is older.
    pub fn open(
        sealer: &Sealer,
        bound_to: CallBinding<'_>,
        text: &str,
        now: u64,
        life: u64,
    ) -> Result<Self, BadState> {
        if text.len() > SEALED_CHARS {
            return Err(BadState);
        }
        let plain = sealer.open(Purpose::Resume, &bound_to.binding().parts(), text)?;
        let plain = Json::parse(plain.into(), &Limits::KNOWN).map_err(|_| BadState)?;
        let issued = number(plain.root(), "at").ok_or(BadState)?;
        if now > issued.saturating_add(life) {
            reached(Bound::ResumeLife);
            return Err(BadState);
        }
        if issued > now.saturating_add(SKEW) {
            return Err(BadState);
        }
        Self::read(&plain).ok_or(BadState)
    }

    fn read(plain: &Json) -> Option<Self> {
        let root = plain.root();
        let text = |key: &str| root.member(key).and_then(Node::as_str);
        let state = match (root.member("p"), root.member("o"), root.member("s")) {
            // What waits must never be taken for something to be sent again.
            (Some(_), _, _) => State::Parked(number(root, "p")?),
            (None, Some(_), _) => State::Own(text("o")?.as_ref().into()),
            (None, None, Some(state)) if state.kind() == Kind::String => {
                State::Upstream(Some(plain.slice(state)))
            }
            (None, None, Some(_)) => return None,
            (None, None, None) => State::Upstream(None),
        };
        Some(Self {
            upstream: UpstreamId::parse(&text("u")?)?,
            local: text("l")?.as_ref().into(),
            state,
            round: number(root, "n")?.try_into().ok()?,
            asked: Asked::from_json(plain, root.member("k")?)?,
            approval: match text("a") {
                None => None,
                Some(number) => Some(Approval {
                    number: of_digits(&number)?,
                    given: match text("ag") {
                        None => None,
                        Some(reference) => Some(Given {
                            reference: of_digits(&reference)?,
                            at: self::number(root, "aw")?,
                        }),
                    },
                    until: self::number(root, "au")?,
                }),
            },
        })
    }
}

fn digits(number: Number) -> Json {
    Json::string(&format!("{:032x}", u128::from_be_bytes(number)))
}

fn of_digits(text: &str) -> Option<Number> {
    Some(u128::from_str_radix(text, 16).ok()?.to_be_bytes())
}

fn number(object: Node<'_>, key: &str) -> Option<u64> {
    // Slots are random and fill all 64 bits, which is more than a signed number holds.
    let value = object.member(key)?;
    if value.kind() == Kind::Number {
        value.raw().parse().ok()
    } else {
        None
    }
}

/// The parts that a seal is tied to.
struct Binding<'a> {
    owner: &'a Owner,
    method: &'static str,
    name: &'a str,
    digest: [u8; 32],
}

impl<'a> CallBinding<'a> {
    fn binding(&self) -> Binding<'a> {
        let name: &str = match self.op {
            Op::CallTool(name) | Op::GetPrompt(name) | Op::ReadResource(name) => name,
            // Nothing else may ask.
            Op::Discover
            | Op::List(..)
            | Op::Complete(_)
            | Op::GetSkill(_)
            | Op::ReadDirectory(..)
            | Op::Task(..)
            | Op::ListTasks(_)
            | Op::Listen(_) => "",
        };
        Binding {
            owner: self.owner,
            method: self.op.method(),
            name,
            digest: digest::of(self.params),
        }
    }
}

impl Binding<'_> {
    fn parts(&self) -> Vec<&[u8]> {
        let call = [
            self.method.as_bytes(),
            self.name.as_bytes(),
            &self.digest[..],
        ];
        self.owner.parts().chain(call).collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        metrics::seen,
        protocol::{ClientCapabilities, names::Scope},
        resume::{Bounds, MOST_STATE_BYTES},
    };

    const LIFE: u64 = 600;

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap()
    }

    fn sealer() -> Sealer {
        Sealer::new(b"a secret")
    }

    fn ticket(state: State) -> Ticket {
        let requests = json(
            r#"{"who":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}},"r":{"method":"roots/list"}}"#,
        );
        let all = ClientCapabilities::read(json(r#"{"elicitation":{},"roots":{}}"#)).unwrap();
        Ticket {
            upstream: UpstreamId::parse("notes").unwrap(),
            local: "t".into(),
            state,
            round: 3,
            asked: Asked::of(&requests, &all, &Bounds::default()).unwrap(),
            approval: None,
        }
    }

    /// A place, owned.
    #[derive(Clone)]
    struct At(Owner, Op, Json);

    impl At {
        fn bound_to(&self) -> CallBinding<'_> {
            CallBinding {
                owner: &self.0,
                op: &self.1,
                params: &self.2,
            }
        }
    }

    fn at() -> At {
        At(
            Owner::named("alice", None, &Scope::All),
            Op::CallTool("n_t".into()),
            json(r#"{"name":"n_t","arguments":{"a":1}}"#),
        )
    }

    #[test]
    fn a_ticket_comes_back_as_it_was_and_absent_state_stays_absent() {
        for state in [
            State::Upstream(None),
            State::Upstream(Some(json(r#""""#))),
            State::Upstream(Some(json(r#""\u00e4\/ \" state""#))),
            State::Parked(0),
            State::Parked(7),
            State::Parked(u64::MAX),
            State::Own("a note \u{e4}".into()),
        ] {
            let ticket = ticket(state);
            let text = ticket.seal(&sealer(), at().bound_to(), 1_000);
            let retried = At(
                at().0,
                Op::CallTool("n_t".into()),
                json(
                    r#"{"requestState":"x","inputResponses":{},"arguments":{"a":1},"_meta":{},"name":"n_t"}"#,
                ),
            );
            assert_eq!(
                Ticket::open(&sealer(), retried.bound_to(), &text, 1_000, LIFE),
                Ok(ticket)
            );
        }
    }

    #[test]
    fn how_far_an_agreement_is_comes_back_too() {
        let earlier = Given {
            reference: [0x80; 16],
            at: 1_700_000_000,
        };
        for given in [None, Some(earlier)] {
            let mut ticket = ticket(State::Upstream(None));
            ticket.approval = Some(Approval {
                number: [7; 16],
                given,
                until: 1_600,
            });
            let text = ticket.seal(&sealer(), at().bound_to(), 1_000);
            let opened = Ticket::open(&sealer(), at().bound_to(), &text, 1_000, LIFE);
            assert_eq!(opened, Ok(ticket));
        }
    }

    #[test]
    fn a_ticket_is_refused_in_any_other_place() {
        let text = ticket(State::Upstream(None)).seal(&sealer(), at().bound_to(), 1_000);
        let open = |at: &At| Ticket::open(&sealer(), at.bound_to(), &text, 1_000, LIFE);
        assert!(open(&at()).is_ok());
        let of = |who, client, scope: &Scope| At(Owner::named(who, client, scope), at().1, at().2);
        let own = Scope::Upstream(UpstreamId::parse("notes").unwrap());
        let others = [
            of("bob", None, &Scope::All),
            of("alice", Some("c"), &Scope::All),
            of("alice", None, &Scope::Toolset("x".into())),
            of("alice", None, &own),
            At(at().0, Op::CallTool("n_u".into()), at().2),
            At(at().0, Op::GetPrompt("n_t".into()), at().2),
            At(at().0, Op::ReadResource("n_t".into()), at().2),
            At(
                at().0,
                at().1,
                json(r#"{"name":"n_t","arguments":{"a":2}}"#),
            ),
            At(
                at().0,
                at().1,
                json(r#"{"name":"n_t","arguments":{"a":"1"}}"#),
            ),
            At(at().0, at().1, json(r#"{"name":"n_t"}"#)),
        ];
        for other in &others {
            assert_eq!(open(other), Err(BadState), "{:?} {:?}", other.0, other.1);
        }
        assert_eq!(
            Ticket::open(
                &Sealer::new(b"another"),
                at().bound_to(),
                &text,
                1_000,
                LIFE
            ),
            Err(BadState)
        );
    }

    #[test]
    fn a_ticket_altered_in_any_character_is_refused() {
        let text = ticket(State::Parked(3)).seal(&sealer(), at().bound_to(), 1_000);
        for index in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(bytes).unwrap();
            assert_eq!(
                Ticket::open(&sealer(), at().bound_to(), &altered, 1_000, LIFE),
                Err(BadState),
                "{index}"
            );
        }
        for bad in [
            "",
            "x",
            &text[..text.len() - 1],
            &"A".repeat(SEALED_CHARS + 1),
        ] {
            assert!(Ticket::open(&sealer(), at().bound_to(), bad, 1_000, LIFE).is_err());
        }
        let cursor = sealer().seal(Purpose::Cursor, &at().bound_to().binding().parts(), b"{}");
        assert!(Ticket::open(&sealer(), at().bound_to(), &cursor, 1_000, LIFE).is_err());
    }

    proptest! {
        #[test]
        fn no_text_but_ours_opens(text in "[A-Za-z0-9_=-]{0,400}") {
            prop_assert_eq!(Ticket::open(&sealer(), at().bound_to(), &text, 1_000, LIFE), Err(BadState));
        }

        #[test]
        fn whatever_was_sealed_by_us_is_read_without_a_panic(plain in "\\PC{0,200}") {
            let bound_to = at();
            let text = sealer().seal(Purpose::Resume, &bound_to.bound_to().binding().parts(), plain.as_bytes());
            prop_assert!(Ticket::open(&sealer(), bound_to.bound_to(), &text, 1_000, LIFE).is_err());
        }
    }

    #[test]
    fn a_ticket_is_good_for_its_life_and_not_a_second_longer() {
        let text = ticket(State::Upstream(None)).seal(&sealer(), at().bound_to(), 1_000);
        for life in [LIFE, 61] {
            let open = |now| {
                seen::take();
                let opened = Ticket::open(&sealer(), at().bound_to(), &text, now, life);
                (opened.is_ok(), seen::take())
            };
            assert_eq!(open(999 + life), (true, vec![]));
            assert_eq!(open(1_000 + life), (true, vec![]));
            assert_eq!(open(1_001 + life), (false, vec![Bound::ResumeLife]));
            assert!(open(1_000 - SKEW).0 && !open(999 - SKEW).0);
        }
    }

    #[test]
    fn the_largest_ticket_that_is_given_out_is_taken_back() {
        let state = format!("\"{}\"", "s".repeat(MOST_STATE_BYTES));
        let mut ticket = ticket(State::Upstream(Some(json(&state))));
        let form = Json::string(&"f".repeat(crate::resume::FORM_BYTES));
        let form = meta::object_of(&[("p", form)]);
        ticket.asked.asks = (0..8)
            .map(|i| {
                (
                    format!("{i}{}", "\u{1}".repeat(crate::resume::KEY_BYTES - 1)),
                    super::super::Ask::Url,
                )
            })
            .chain([("f".into(), super::super::Ask::Form(form))])
            .collect();
        let text = ticket.seal(&sealer(), at().bound_to(), 1_000);
        let opened = Ticket::open(&sealer(), at().bound_to(), &text, 1_000, LIFE);
        assert!(opened == Ok(ticket), "{} characters", text.len());
    }
}
