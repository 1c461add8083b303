//! What becomes of a subscription whose listen is made anew, in paused time.

use std::{future, sync::atomic::AtomicUsize};

use futures_util::stream;
use tokio::{sync::mpsc, time::Instant};
use tower::service_fn;

use super::*;
use crate::{
    audit::journal::Journal,
    call::{Identity, IdentityKind, Principal},
    downstream::{Backing, Door, DrainDeadline, MessageBounds, SessionBounds, Sessions, Starting},
    tasks::{PerLaneArc, Tasks},
};

fn door(service: McpService, tasks: &Tasks) -> Door {
    Door {
        backing: PerLaneArc::from(Backing {
            service,
            tasks: tasks.clone(),
            drain_deadline: DrainDeadline::default(),
        }),
        sessions: Sessions::new(SessionBounds::default(), Arc::default(), tasks),
        deadline: Duration::from_secs(60),
        closing: CancellationToken::new(),
        starting: Starting::default(),
        observed: false,
        bounds: MessageBounds::default(),
        journal: Journal::off(),
    }
}

/// A proof of other rights than nobody has.
fn with_rights_of(name: &str) -> Arc<Identity> {
    Arc::new(Identity {
        principal: Principal::anonymous(),
        ..Identity::named(IdentityKind::Key, name)
    })
}

fn acknowledged(op: &Op) -> Reply {
    let Op::Listen(filter) = op else {
        panic!("{op:?}");
    };
    let first = future::ready(Step::Event(Event::Acknowledged(filter.clone())));
    let all = stream::once(first).chain(stream::pending());
    Reply::Stream(ReplyStream::new(all.boxed()))
}

/// PRODUCT 5
#[tokio::test(start_paused = true)]
async fn a_subscription_outlasts_what_passes_and_is_told_of_when_it_is_heard_again() {
    for gone in [false, true] {
        let (tries, mut tried) = mpsc::channel(16);
        let count = Arc::new(AtomicUsize::new(0));
        let stack = service_fn(move |call: Box<Call>| {
            tries.try_send(Instant::now()).unwrap();
            future::ready(match count.fetch_add(1, Ordering::Relaxed) {
                1 => Err(Error::NotSubscribable { gone: false }),
                2 => Err(Error::Limited("too many")),
                3 => Err(Error::AuditUnavailable),
                4 if gone => Err(Error::NotSubscribable { gone }),
                _ => Ok(acknowledged(&call.op)),
            })
        });
        let tasks = Tasks::new();
        let door = door(McpService::new(|| stack.clone()), &tasks);
        let session = Session::for_tests();
        let mut notices = session.notices(&tasks).unwrap();
        let legacy = Legacy { door: &door };
        let subscribed = legacy.subscribe(&session, "r://1".into(), (None, Trail::NONE));
        subscribed.await.unwrap();
        let mut at = vec![tried.recv().await.unwrap()];
        session.identified(&with_rights_of("ana"));
        for _ in 0..4 {
            assert!(notices.next().now_or_never().is_none(), "it is not heard");
            assert_eq!(session.subscriptions.count(), 1);
            at.push(tried.recv().await.unwrap());
        }
        let waits: Vec<_> = at
            .windows(2)
            .map(|two| (two[1] - two[0]).as_secs())
            .collect();
        assert_eq!(waits, [5, 10, 20, 40]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let told = notices.next().now_or_never().flatten();
        let told = told.map(|frame| String::from_utf8(frame.to_vec()).unwrap());
        assert_eq!(told.is_none(), gone, "{told:?}");
        assert!(told.is_none_or(|told| told.contains("r://1")));
        assert!(notices.next().now_or_never().is_none());
        assert_eq!(session.subscriptions.count(), usize::from(!gone));
        tasks.stop();
    }
}

#[tokio::test(start_paused = true)]
async fn other_rights_cut_short_the_wait_for_what_was_refused_by_those_before() {
    let (tries, mut tried) = mpsc::channel(16);
    let count = Arc::new(AtomicUsize::new(0));
    let stack = service_fn(move |call: Box<Call>| {
        tries.try_send(Instant::now()).unwrap();
        future::ready(match count.fetch_add(1, Ordering::Relaxed) {
            1..=3 => Err(Error::Limited("too many")),
            _ => Ok(acknowledged(&call.op)),
        })
    });
    let tasks = Tasks::new();
    let door = door(McpService::new(|| stack.clone()), &tasks);
    let session = Session::for_tests();
    let legacy = Legacy { door: &door };
    let subscribed = legacy.subscribe(&session, "r://1".into(), (None, Trail::NONE));
    subscribed.await.unwrap();
    let mut at = vec![tried.recv().await.unwrap()];
    session.identified(&with_rights_of("ana"));
    for _ in 0..3 {
        at.push(tried.recv().await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.identified(&with_rights_of("ben"));
    at.push(tried.recv().await.unwrap());
    let waits: Vec<_> = at
        .windows(2)
        .map(|two| (two[1] - two[0]).as_secs())
        .collect();
    assert_eq!(waits, [5, 10, 20, 1 + 5]);
    tasks.stop();
}
