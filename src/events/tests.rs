//! The hub without a gateway: what listeners hear, in paused time.

use std::{
    ptr,
    task::{Context, Waker},
};

use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, advance};

use super::*;
use crate::{call::Identity, metrics::seen, protocol::methods::ListKind};

fn up(key: &str) -> UpstreamId {
    UpstreamId::parse(key).unwrap()
}

fn hub() -> Arc<Hub> {
    Hub::new(Bounds::default())
}

fn lists(kinds: &[ListKind]) -> Lists {
    kinds
        .iter()
        .fold(Lists::NONE, |set, kind| set | Lists::of(*kind))
}

/// Listens for lists only.
fn of_lists(hub: &Arc<Hub>, scope: &Scope, kinds: &[ListKind]) -> Listener {
    hub.listen(scope, lists(kinds), [], None).unwrap()
}

/// Watches these URIs of `u`.
fn of_uris(hub: &Arc<Hub>, uris: &[&str]) -> Listener {
    let watched = uris
        .iter()
        .map(|uri| (hub.interest(&up("u")), Arc::from(*uri)));
    hub.listen(&Scope::All, Lists::NONE, watched, None).unwrap()
}

fn heard(listener: &mut Listener) -> Vec<News> {
    std::iter::from_fn(|| listener.next().now_or_never())
        .map(|news| news.unwrap().unwrap())
        .collect()
}

fn all_in_force(interest: &ResourceInterest) {
    let wanted = interest.wanted();
    interest.settle(wanted.iter().map(|wanted| (wanted, true)));
}

const fn exactly(watched: usize) -> News {
    News::Resource {
        watched,
        below: None,
    }
}

fn below(watched: usize, uri: &str) -> News {
    News::Resource {
        watched,
        below: Some(uri.into()),
    }
}

#[test]
fn a_listener_hears_of_the_lists_it_asked_for_in_its_scope_and_of_no_others() {
    let hub = hub();
    let toolset = Scope::Toolset("t".into());
    let mut tools = of_lists(&hub, &Scope::All, &[ListKind::Tools]);
    let mut rest = of_lists(&hub, &Scope::All, &[ListKind::Prompts, ListKind::Templates]);
    let mut elsewhere = of_lists(&hub, &toolset, &ListKind::ALL);
    hub.lists_changed(&Scope::All, lists(&[ListKind::Tools, ListKind::Resources]));
    assert_eq!(heard(&mut tools), [News::List(ListKind::Tools)]);
    assert_eq!(heard(&mut rest), [News::List(ListKind::Resources)]);
    assert_eq!(heard(&mut elsewhere), []);
}

#[test]
fn a_storm_is_one_piece_of_news_and_one_wake_up() {
    struct Count(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let hub = hub();
    let mut listener = of_lists(&hub, &Scope::All, &ListKind::ALL);
    let count = Arc::new(Count(std::sync::atomic::AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let polled = listener.poll_next_unpin(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    for _ in 0..10_000 {
        hub.lists_changed(&Scope::All, Lists::of(ListKind::Tools));
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(heard(&mut listener), [News::List(ListKind::Tools)]);
}

#[test]
fn resources_and_templates_are_one_piece_of_news() {
    let hub = hub();
    let mut listener = of_lists(&hub, &Scope::All, &ListKind::ALL);
    hub.lists_changed(&Scope::All, Lists::of(ListKind::Templates));
    hub.lists_changed(&Scope::All, Lists::of(ListKind::Resources));
    assert_eq!(heard(&mut listener), [News::List(ListKind::Resources)]);
}

#[test]
fn whoever_left_is_forgotten_whole() {
    let hub = hub();
    let party = Party::of(&Principal::anonymous(), None);
    let watched = [(hub.interest(&up("u")), Arc::from("a:1"))];
    let listener = hub
        .listen(&Scope::All, Lists::ALL, watched, Some(&party))
        .unwrap();
    assert!(!hub.is_silent());
    assert_eq!(hub.interest(&up("u")).wanted().len(), 1);
    drop(listener);
    assert!(hub.is_silent());
    assert_eq!(hub.interest(&up("u")).wanted(), []);
    assert_eq!(held(&hub.seats).total, 0);
    assert!(held(&hub.seats).parties.is_empty());
}

#[test]
fn places_are_bounded_for_all_together_and_sessions_take_none() {
    let hub = Hub::new(Bounds {
        total: 2,
        per_principal: 1,
        ..Bounds::default()
    });
    let principal = Principal::anonymous();
    let party = Party::of(&principal, None);
    let sit = || hub.listen(&Scope::All, Lists::ALL, [], Some(&party));
    let first = sit().unwrap();
    let _second = sit().unwrap();
    assert_eq!(sit().err(), Some(Full));
    let _session = of_lists(&hub, &Scope::All, &ListKind::ALL);
    drop(first);
    assert!(sit().is_ok());
}

#[test]
fn a_uri_is_wanted_as_long_as_somebody_watches_it() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    let mut changes = interest.changes();
    let first = of_uris(&hub, &["a:1", "a:2"]);
    let second = of_uris(&hub, &["a:2"]);
    let uris = |interest: &ResourceInterest| -> Vec<String> {
        let wanted = interest.wanted().into_iter();
        wanted.map(|wanted| wanted.uri.to_string()).collect()
    };
    assert_eq!(uris(&interest), ["a:1", "a:2"]);
    assert!(changes.has_changed().unwrap());
    drop(first);
    assert_eq!(uris(&interest), ["a:2"]);
    changes.mark_unchanged();
    let third = of_uris(&hub, &["a:2"]);
    assert!(!changes.has_changed().unwrap(), "nothing new is wanted");
    let stamp = interest.wanted()[0].stamp;
    drop((second, third));
    assert_eq!(uris(&interest), [""; 0]);
    let _again = of_uris(&hub, &["a:2"]);
    assert!(interest.wanted()[0].stamp > stamp);
}

#[test]
fn an_update_reaches_exact_watchers_and_those_of_what_it_lies_below_once_each() {
    let hub = hub();
    let mut exact = of_uris(&hub, &["f://d/x/a.txt"]);
    let mut parent = of_uris(&hub, &["other:1", "f://d/x"]);
    let mut slashed = of_uris(&hub, &["f://d/"]);
    let mut both = of_uris(&hub, &["f://d/x", "f://d/x/a.txt"]);
    let mut similar = of_uris(&hub, &["f://d/x/a", "f://d/x/a.txt/", "f://d/y"]);
    let interest = hub.interest(&up("u"));
    assert!(interest.updated("f://d/x/a.txt"));
    assert_eq!(heard(&mut exact), [exactly(0)]);
    assert_eq!(heard(&mut parent), [below(1, "f://d/x/a.txt")]);
    assert_eq!(heard(&mut slashed), [below(0, "f://d/x/a.txt")]);
    assert_eq!(heard(&mut both), [exactly(1)]);
    assert_eq!(heard(&mut similar), []);
    assert!(!interest.updated("f://e"));
    assert!(!hub.interest(&up("v")).updated("f://d/x/a.txt"));
}

#[tokio::test(start_paused = true)]
async fn two_spellings_of_one_resource_are_heard_by_both_and_given_up_each_for_itself() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    let mut listener = of_uris(&hub, &["f://d", "f://d"]);
    all_in_force(&interest);
    let far = Instant::now() + Duration::from_secs(1);
    assert_eq!(listener.settle(far).await, [true, true]);
    assert!(interest.updated("f://d"));
    assert_eq!(heard(&mut listener), [exactly(0), exactly(1)]);
    assert!(interest.updated("f://d/x"));
    assert_eq!(
        heard(&mut listener),
        [below(0, "f://d/x"), below(1, "f://d/x")]
    );
    interest.look_again();
    assert_eq!(heard(&mut listener), [exactly(0), exactly(1)]);
    drop(listener);
    assert_eq!(interest.wanted(), []);
}

#[test]
fn too_many_updates_below_one_resource_become_one_of_the_resource() {
    let hub = hub();
    let mut listener = of_uris(&hub, &["f://d"]);
    let interest = hub.interest(&up("u"));
    for number in 0..10_000 {
        interest.updated(&format!("f://d/{number}"));
    }
    let heard = heard(&mut listener);
    assert_eq!(heard.len(), 257);
    assert!(heard.contains(&exactly(0)));
}

/// SECURITY 6: what waits for one who listens, in number and in bytes.
#[test]
fn as_much_waits_as_may_and_then_the_watched_resource_stands_for_what_is_below_it() {
    let uri = "f://d/123";
    for (buffer, told, merged) in [
        ((4, 1_000), 3, false),
        ((3, 1_000), 3, false),
        ((2, 1_000), 3, true),
        ((9, 3 * uri.len() + 1), 3, false),
        ((9, 3 * uri.len()), 3, false),
        ((9, 3 * uri.len() - 1), 3, true),
    ] {
        let hub = Hub::new(Bounds {
            buffer,
            ..Bounds::default()
        });
        let mut listener = of_uris(&hub, &["f://d"]);
        let interest = hub.interest(&up("u"));
        seen::take();
        for _ in 0..2 {
            // What says the same as what waits takes no room.
            for number in 123..126 {
                interest.updated(&format!("f://d/{number}"));
            }
        }
        let noted = seen::take();
        let heard = heard(&mut listener);
        assert_eq!(heard.len(), told, "{buffer:?}");
        assert_eq!(heard.contains(&exactly(0)), merged, "{buffer:?}");
        assert_eq!(noted.contains(&Bound::StreamBuffer), merged, "{buffer:?}");
        // What was taken has left its room behind.
        seen::take();
        interest.updated("f://d/999");
        assert_eq!(seen::take(), []);
    }
}

/// SECURITY 6: addresses of one stream.
#[test]
fn as_many_resources_are_watched_as_may_and_not_one_more() {
    for (count, noted) in [(2, vec![]), (3, vec![]), (4, vec![Bound::StreamAddresses])] {
        let hub = Hub::new(Bounds {
            addresses: 3,
            ..Bounds::default()
        });
        let uris: Vec<_> = (0..count).map(|n| format!("f://{n}")).collect();
        let uris: Vec<_> = uris.iter().map(String::as_str).collect();
        seen::take();
        let _listener = of_uris(&hub, &uris);
        assert_eq!(seen::take(), noted);
        assert_eq!(hub.interest(&up("u")).wanted().len(), count.min(3));
    }
}

#[test]
fn updates_with_endless_uris_are_not_looked_at() {
    let hub = hub();
    let mut listener = of_uris(&hub, &["f://d"]);
    let interest = hub.interest(&up("u"));
    assert!(!interest.updated(&format!("f://d/{}", "x".repeat(9 << 10))));
    assert!(!interest.updated(&format!("f://d/{}", "x/".repeat(1_000))));
    assert_eq!(heard(&mut listener), []);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_force_is_waited_for_and_not_past_the_deadline() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    interest.begin();
    let mut listener = of_uris(&hub, &["a:1", "a:2", "a:3"]);
    let wanted = interest.wanted();
    interest.settle([(&wanted[0], true), (&wanted[1], false)]);
    let began = Instant::now();
    let in_force = listener.settle(began + Duration::from_secs(1)).await;
    assert_eq!(in_force, [true, false, false]);
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    let left: Vec<_> = interest
        .wanted()
        .into_iter()
        .map(|wanted| wanted.uri)
        .collect();
    assert_eq!(left, ["a:1".into()], "what is not in force is given up");
    // Whoever comes when it is in force already does not wait.
    let mut second = of_uris(&hub, &["a:1"]);
    let began = Instant::now();
    assert_eq!(second.settle(began + Duration::from_secs(1)).await, [true]);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_away_is_not_waited_for() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    let mut listener = of_uris(&hub, &["a:1"]);
    let began = Instant::now();
    let far = began + Duration::from_secs(9);
    let settled = async {
        tokio::join!(listener.settle(far), async {
            advance(Duration::from_secs(2)).await;
            interest.away();
        })
    };
    assert_eq!(settled.await.0, [false]);
    assert_eq!(began.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn what_was_in_force_and_was_broken_off_is_to_be_looked_at_again() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    interest.begin();
    let mut old = of_uris(&hub, &["a:1", "a:2"]);
    all_in_force(&interest);
    let far = Instant::now() + Duration::from_secs(1);
    assert_eq!(old.settle(far).await, [true, true]);
    interest.lost();
    let mut new = of_uris(&hub, &["a:1"]);
    assert_eq!(heard(&mut old), [], "not before it can be heard of again");
    let wanted = interest.wanted();
    interest.settle([(&wanted[0], true), (&wanted[1], false)]);
    assert_eq!(heard(&mut old), [exactly(0), exactly(1)]);
    // A newcomer is told too, which does no harm: it cannot know of what it did not rely on.
    assert_eq!(heard(&mut new), [exactly(0)]);
    interest.settle([(&wanted[0], true)]);
    assert_eq!(heard(&mut old), []);
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_in_force_late_is_to_be_looked_at_once_more() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    interest.begin();
    let mut listener = of_uris(&hub, &["a:1"]);
    all_in_force(&interest);
    assert_eq!(
        listener
            .settle(Instant::now() + Duration::from_secs(1))
            .await,
        [true]
    );
    let wanted = interest.wanted();
    for broken_off in [true, false] {
        if broken_off {
            interest.lost();
        }
        interest.settle([(&wanted[0], false)]);
        assert_eq!(heard(&mut listener), [exactly(0)], "what was promised ends");
        interest.settle([(&wanted[0], false)]);
        assert_eq!(heard(&mut listener), []);
        interest.settle([(&wanted[0], true)]);
        assert_eq!(heard(&mut listener), [exactly(0)], "nobody told meanwhile");
        interest.settle([(&wanted[0], true)]);
        assert_eq!(heard(&mut listener), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_takes_nothing_is_let_go_of_and_others_are_not() {
    let hub = hub();
    let mut slow = of_lists(&hub, &Scope::All, &ListKind::ALL);
    let mut fast = of_lists(&hub, &Scope::All, &ListKind::ALL);
    let change = || hub.lists_changed(&Scope::All, Lists::of(ListKind::Tools));
    change();
    assert_eq!(heard(&mut fast), [News::List(ListKind::Tools)]);
    advance(SLOW_LISTENER_TIMEOUT).await;
    change();
    assert_eq!(heard(&mut fast), [News::List(ListKind::Tools)]);
    advance(Duration::from_millis(1)).await;
    change();
    assert_eq!(slow.next().await, Some(Err(SlowConsumer)));
    assert_eq!(slow.next().await, None);
    assert_eq!(heard(&mut fast), [News::List(ListKind::Tools)]);
    // Silence is not slowness.
    advance(SLOW_LISTENER_TIMEOUT * 2).await;
    change();
    assert_eq!(heard(&mut fast), [News::List(ListKind::Tools)]);
}

/// SECURITY 6: subscription streams of one principal, of the process.
#[tokio::test(start_paused = true)]
async fn as_many_listen_as_may_and_not_one_more() {
    let hub = Hub::new(Bounds {
        total: 66,
        ..Bounds::default()
    });
    let (one, other) = (Principal::new("one"), Principal::new("other"));
    let listen = |who: &Principal| {
        let party = Party::of(who, None);
        hub.listen(&Scope::All, Lists::ALL, [], Some(&party))
    };
    let mut listeners = Vec::new();
    for number in 1..=64 {
        listeners.push(listen(&one).unwrap_or_else(|_| panic!("{number} of 64")));
    }
    assert!(listen(&one).is_err(), "65 of 64");
    listeners.push(listen(&other).unwrap());
    listeners.push(listen(&other).unwrap());
    assert!(listen(&other).is_err(), "67 of 66");
    listeners.pop();
    assert!(listen(&Principal::anonymous()).is_ok());
}

#[tokio::test]
async fn who_has_no_name_is_bounded_by_the_address_elsewhere_and_on_this_machine_by_all_together() {
    let bounds = Bounds::default();
    for (own, others) in [
        (["192.0.2.1", "::ffff:192.0.2.1"], "192.0.2.2"),
        (["2001:db8::1", "2001:db8::2"], "2001:db8:0:1::1"),
    ] {
        let hub = Hub::new(bounds);
        let listen = |who: &Principal, address: &str| {
            let party = Party::of(who, Some(address.parse().unwrap()));
            hub.listen(&Scope::All, Lists::ALL, [], Some(&party))
        };
        let nobody = Principal::anonymous();
        let mut listeners: Vec<_> = (0..bounds.per_principal)
            .map(|number| listen(&nobody, own[number % 2]).unwrap_or_else(|_| panic!("{number}")))
            .collect();
        seen::take();
        assert!(listen(&nobody, own[0]).is_err() && listen(&nobody, own[1]).is_err());
        assert_eq!(seen::take(), [Bound::StreamsPrincipal; 2]);
        for (who, address) in [
            (&nobody, others),
            (&Principal::new("ana"), own[0]),
            (&nobody, "127.0.0.1"),
        ] {
            listeners.push(listen(who, address).unwrap());
        }
        listeners.remove(0);
        listeners.push(listen(&nobody, own[0]).unwrap());
        assert!(listen(&nobody, own[0]).is_err());
        listeners.extend((0..=bounds.per_principal).map(|_| listen(&nobody, "::1").unwrap()));
        drop(listeners);
        assert!(held(&hub.seats).parties.is_empty());
    }
}

#[tokio::test]
async fn operators_see_who_takes_a_seat_and_end_one_alone() {
    let hub = Hub::new(Bounds::default());
    let ana = Principal::new("ana");
    let who = Party::of(&ana, None);
    let listen = |seat| {
        hub.listen(&Scope::All, Lists::ALL, std::iter::empty(), seat)
            .unwrap()
    };
    let (mut one, mut two, _session) = (listen(Some(&who)), listen(Some(&who)), listen(None));
    let seen = hub.seen(0, 10);
    assert_eq!(seen.len(), 2);
    assert_eq!((&seen[0].principal, seen[0].resources), (&ana, 0));
    assert_eq!(hub.seen(seen[0].id, 10).len(), 1);
    assert!(hub.end(seen[0].id) && !hub.end(999));
    hub.lists_changed(&Scope::All, Lists::of(ListKind::Tools));
    assert_eq!(one.next().await, None);
    assert_eq!(two.next().await, Some(Ok(News::List(ListKind::Tools))));
    drop(one);
    assert_eq!(hub.seen(0, 10).len(), 1);
}

#[test]
fn a_desk_of_ones_own_knows_of_the_same_pages() {
    let hub = hub();
    let interest = hub.interest(&up("u"));
    let own = interest.own(&Identity::anonymous().grantee());
    assert!(ptr::eq(own.pages(), interest.pages()));
}
