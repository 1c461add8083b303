//! Cursors: nobody else can make one, and they stay right while lists change.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{
    super::{CURSOR_CHARS, CURSOR_LIFE, cursor::TAIL},
    *,
};
use crate::{call::Owner, seal::Sealer};

const NOW: u64 = 1_800_000_000;

fn alice() -> Owner {
    Owner::named("alice", Some("app"), &Scope::All)
}

/// A cursor into a list of three, and where it stands.
fn cursor(sealer: &Sealer) -> (String, Position) {
    let mut rules = rules(&[("a-long-key-of-thirty-two-letters", "a")]);
    rules.pages.items = 20;
    let names: Vec<_> = (0..30).map(|n| format!("t{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let catalog = build(
        &rules,
        vec![("a-long-key-of-thirty-two-letters", tools(&names))],
        None,
    );
    let page = catalog
        .page(&Scope::All, ListKind::Tools, MODERN, &Position::start())
        .unwrap();
    let position = page.next.unwrap();
    (
        position.seal(sealer, &alice(), ListKind::Tools, NOW),
        position,
    )
}

#[test]
fn a_cursor_opens_where_it_was_sealed_and_after_a_restart_with_the_same_key() {
    let (cursor, position) = cursor(&Sealer::new(b"key"));
    assert!(
        cursor.len() <= 400 && cursor.len() <= CURSOR_CHARS,
        "{}",
        cursor.len()
    );
    let opened = Position::open(
        &Sealer::new(b"key"),
        &cursor,
        &alice(),
        ListKind::Tools,
        NOW,
    );
    assert_eq!(opened, Ok(position));
    let start = Position::start().seal(&Sealer::new(b"key"), &alice(), ListKind::Tools, NOW);
    assert_eq!(
        Position::open(&Sealer::new(b"key"), &start, &alice(), ListKind::Tools, NOW),
        Ok(Position::start())
    );
}

#[test]
fn state_1_a_cursor_of_another_list_endpoint_principal_client_key_or_hour_is_refused() {
    let sealer = Sealer::new(b"key");
    let (cursor, _) = cursor(&sealer);
    let open = |sealer: &Sealer, owner: &Owner, kind, now| {
        Position::open(sealer, &cursor, owner, kind, now).is_ok()
    };
    let reads = |now| open(&sealer, &alice(), ListKind::Tools, now);
    assert!(reads(NOW + CURSOR_LIFE));
    assert!(!reads(NOW + CURSOR_LIFE + 1));
    assert!(reads(NOW - 60));
    assert!(!reads(NOW - 61));
    let toolset = Scope::Toolset("x".into());
    let own = Scope::Upstream(id("all"));
    for (who, client, scope) in [
        ("bob", Some("app"), &Scope::All),
        ("alice", Some("another"), &Scope::All),
        ("alice", Some(""), &Scope::All),
        ("alice", None, &Scope::All),
        ("alice", Some("app"), &toolset),
        ("alice", Some("app"), &own),
    ] {
        let other = Owner::named(who, client, scope);
        assert!(!open(&sealer, &other, ListKind::Tools, NOW), "{other:?}");
    }
    for kind in [ListKind::Prompts, ListKind::Resources, ListKind::Templates] {
        assert!(!open(&sealer, &alice(), kind, NOW));
    }
    let other = Sealer::new(b"other");
    assert!(!open(&other, &alice(), ListKind::Tools, NOW));
}

#[test]
fn state_1_a_cursor_altered_in_any_character_is_refused() {
    let sealer = Sealer::new(b"key");
    let (cursor, _) = cursor(&sealer);
    let open = |text: &str| Position::open(&sealer, text, &alice(), ListKind::Tools, NOW);
    for at in 0..cursor.len() {
        for other in ['A', 'Q', '_', 'z', '='] {
            let mut changed: Vec<char> = cursor.chars().collect();
            if changed[at] != other {
                changed[at] = other;
                assert!(
                    open(&changed.into_iter().collect::<String>()).is_err(),
                    "{at}"
                );
            }
        }
        assert!(open(&cursor[..at]).is_err());
    }
    assert!(open(&format!("{cursor}A")).is_err());
    assert!(open("").is_err());
    assert!(open(&"A".repeat(100_000)).is_err());
}

/// Upstreams as lists of numbers; a number is never used twice.
type World = Vec<Vec<u32>>;

fn build_world(world: &World, pages: usize) -> Catalog {
    let keys = ["a", "b", "c"];
    let mut rules = rules(&keys.map(|key| (key, key)));
    rules.pages.items = pages;
    let parts = keys
        .into_iter()
        .zip(world)
        .map(|(key, list)| {
            let names: Vec<_> = list.iter().map(|n| tool(&n.to_string())).collect();
            (key, brings(ListKind::Tools, &names))
        })
        .collect();
    build(&rules, parts, None)
}

fn names_of(world: &World) -> HashSet<String> {
    let keys = ["a", "b", "c"];
    world
        .iter()
        .zip(keys)
        .flat_map(|(list, key)| list.iter().map(move |n| format!("{key}_{n}")))
        .collect()
}

#[derive(Debug, Clone)]
enum Change {
    Add {
        upstream: usize,
        at: prop::sample::Index,
    },
    Remove {
        upstream: usize,
        at: prop::sample::Index,
    },
    RemoveLastListed,
    Vanish {
        upstream: usize,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let place = || (0..3_usize, any::<prop::sample::Index>());
    prop_oneof![
        6 => place().prop_map(|(upstream, at)| Change::Add { upstream, at }),
        4 => place().prop_map(|(upstream, at)| Change::Remove { upstream, at }),
        3 => Just(Change::RemoveLastListed),
        1 => (0..3_usize).prop_map(|upstream| Change::Vanish { upstream }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// Fewer removals between two pages than names remembered, so that one of them always stays.
    #[test]
    fn a_list_that_changes_between_pages_repeats_nothing_and_misses_only_what_was_removed(
        sizes in proptest::array::uniform3(0..30_u32),
        page in 1..9_usize,
        rounds in proptest::collection::vec(proptest::collection::vec(change(), 0..TAIL), 1..12),
    ) {
        let mut next = 0;
        let mut world: World = sizes.iter().map(|size| { next += 100; (next..next + size).collect() }).collect();
        next = 1_000;
        let mut throughout = names_of(&world);
        let mut seen = Vec::new();
        let mut after = Some(Position::start());
        let mut rounds = rounds.into_iter();
        while let Some(position) = after {
            let catalog = build_world(&world, page);
            let sealer = Sealer::new(b"key");
            let text = position.seal(&sealer, &alice(), ListKind::Tools, NOW);
            let position = Position::open(&sealer, &text, &alice(), ListKind::Tools, NOW).unwrap();
            let answer = catalog.page(&Scope::All, ListKind::Tools, MODERN, &position).unwrap();
            let names = keys(&answer.items.value(), ListKind::Tools);
            prop_assert!(names.len() <= page);
            seen.extend(names);
            after = answer.next;
            for change in rounds.next().unwrap_or_default() {
                match change {
                    Change::Add { upstream, at } => {
                        let list = &mut world[upstream];
                        list.insert(at.index(list.len() + 1), next);
                        next += 1;
                    }
                    Change::Remove { upstream, at } if !world[upstream].is_empty() => {
                        let list = &mut world[upstream];
                        list.remove(at.index(list.len()));
                    }
                    Change::Remove { .. } => {}
                    Change::RemoveLastListed => {
                        let listed = seen.iter().rev().find(|name| names_of(&world).contains(*name));
                        if let Some((key, number)) = listed.and_then(|name| name.split_once('_')) {
                            let number: u32 = number.parse().unwrap();
                            world[usize::from(key.as_bytes()[0] - b'a')].retain(|n| *n != number);
                        }
                    }
                    Change::Vanish { upstream } => world[upstream].clear(),
                }
            }
            let now = names_of(&world);
            throughout.retain(|name| now.contains(name));
        }
        let unique: HashSet<_> = seen.iter().cloned().collect();
        prop_assert_eq!(unique.len(), seen.len(), "something came twice: {:?}", seen);
        // What was removed after it was listed counts as listed; what was there all the time must have come.
        prop_assert!(throughout.is_subset(&unique), "missed {:?}", throughout.difference(&unique));
    }
}

#[test]
fn when_all_remembered_names_go_at_once_nothing_that_stayed_is_missed() {
    let world: World = vec![(0..60).collect(), vec![], vec![]];
    let page = build_world(&world, 40)
        .page(&Scope::All, ListKind::Tools, MODERN, &Position::start())
        .unwrap();
    let rest: World = vec![(0..24).chain(40..60).collect(), vec![], vec![]];
    let page = build_world(&rest, 40)
        .page(&Scope::All, ListKind::Tools, MODERN, &page.next.unwrap())
        .unwrap();
    let want: Vec<_> = (40..60).map(|n| format!("a_{n}")).collect();
    assert_eq!(keys(&page.items.value(), ListKind::Tools), want);
}

#[test]
fn a_position_in_an_upstream_that_is_no_longer_configured_goes_on_with_the_next() {
    let both = |keys: &[&str]| {
        let pairs: Vec<_> = keys.iter().map(|key| (*key, *key)).collect();
        let mut rules = rules(&pairs);
        rules.pages.items = 3;
        build(
            &rules,
            keys.iter().map(|key| (*key, tools(&["x", "y"]))).collect(),
            None,
        )
    };
    let next = both(&["a", "b", "c"])
        .page(&Scope::All, ListKind::Tools, MODERN, &Position::start())
        .unwrap()
        .next
        .unwrap();
    let page = both(&["a", "c"])
        .page(&Scope::All, ListKind::Tools, MODERN, &next)
        .unwrap();
    assert_eq!(keys(&page.items.value(), ListKind::Tools), ["c_x", "c_y"]);
    let page = both(&["a"])
        .page(&Scope::All, ListKind::Tools, MODERN, &next)
        .unwrap();
    assert_eq!((&page.items.value()[..], page.next), (&b"[]"[..], None));
}
