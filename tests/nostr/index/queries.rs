//! An index finds the same events as a full scan, in the same order, with few reads.

use std::cmp::Reverse;

use deedbook::nostr::{Filter, Index};
use proptest::prelude::*;

use super::world::{KINDS, Numbers, World, author, event, filter};

fn check(index: &Index, world: &World, numbers: &mut Numbers, queries: usize) {
    for known in world.events.values() {
        assert_eq!(index.location(&known.event().id).unwrap(), Some(known.at));
    }
    let ids: Vec<_> = world.events.keys().copied().collect();
    for _ in 0..queries {
        let mut filters: Vec<Filter> = (0..1 + numbers.below(3)).map(|_| filter(numbers)).collect();
        if numbers.one_in(4) {
            let picked = (0..8).filter_map(|_| ids.get(numbers.below(300) as usize).copied());
            filters[0].ids = Some(picked.collect());
        }
        assert_eq!(world.ask(index, &filters).0, world.scan(&filters), "{filters:?}");
    }
    for kind in KINDS {
        for number in 0..6 {
            for d in ["", &format!("{:064x}", 3)] {
                let mut versions = index.versions(&author(number), kind, d).unwrap();
                let found = versions.next().transpose().unwrap();
                assert_eq!(found, latest(world, &author(number), kind, d), "{kind} {d:?}");
            }
        }
    }
}

/// Per NIP-01: the newest event, or the lower id if two have the same second.
fn latest(
    world: &World,
    pubkey: &[u8; 32],
    kind: u16,
    d: &str,
) -> Option<deedbook::nostr::Location> {
    let has_d = |event: &deedbook::nostr::Event| {
        let first = event.tags.iter().find(|tag| tag.first().is_some_and(|name| name == "d"));
        first.and_then(|tag| tag.get(1)).map_or("", String::as_str) == d
    };
    world
        .events
        .values()
        .filter(|known| !known.hidden)
        .map(|known| (known.event().to_event(), known.at))
        .filter(|(event, _)| event.pubkey == *pubkey && event.kind == kind)
        .filter(|(event, _)| kind < 30_000 || has_d(event))
        .min_by_key(|(event, _)| (Reverse(event.created_at), event.id))
        .map(|(_, at)| at)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_query_equals_a_scan(seed in any::<u64>(), rounds in 1..6usize) {
        let mut numbers = Numbers(seed);
        let (index, mut world) = (Index::in_memory(), World::default());
        for _ in 0..rounds {
            let events: Vec<_> = (0..numbers.below(80)).map(|_| event(&mut numbers)).collect();
            world.insert(&index, &events, None);
            world.change(&index, &mut numbers, 6);
        }
        check(&index, &world, &mut numbers, 40);
    }
}

/// In files: few entries go through a journal, and many entries become files at once.
#[test]
fn a_query_in_files_equals_a_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(7);
    let (mut index, mut world) = (Index::open(dir.path()).unwrap(), World::default());
    for count in [10, 3_000, 200, 2_500, 1] {
        let events: Vec<_> = (0..count).map(|_| event(&mut numbers)).collect();
        world.insert(&index, &events, Some(&[count as u8]));
        world.change(&index, &mut numbers, 5);
        check(&index, &world, &mut numbers, 30);
        drop(index);
        index = Index::open(dir.path()).unwrap();
        assert_eq!(index.covered().unwrap(), Some(vec![count as u8]));
        check(&index, &world, &mut numbers, 30);
    }
}

#[test]
fn a_query_sees_the_index_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    for index in [Index::in_memory(), Index::open(dir.path()).unwrap()] {
        let mut numbers = Numbers(9);
        let mut world = World::default();
        let events: Vec<_> = (0..100).map(|_| event(&mut numbers)).collect();
        world.insert(&index, &events, None);
        let expected = world.scan(&[Filter::default()]);
        let query = index.query(&Filter::default()).unwrap();
        world.change(&index, &mut numbers, 1);
        let found: Vec<_> = query.map(Result::unwrap).collect();
        // A moved event is still at its old place, because the view is older.
        assert_eq!(found, expected);
    }
}

#[test]
fn newest_100_events_cost_about_100_reads() {
    let index = Index::in_memory();
    let mut numbers = Numbers(11);
    let mut world = World::default();
    let mut events: Vec<_> = (0..20_000).map(|_| event(&mut numbers)).collect();
    for event in &mut events {
        event.tags = vec![vec!["t".into(), format!("{}", numbers.below(2))]];
        event.kind = KINDS[numbers.below(4) as usize];
    }
    // A rare tag.
    events[500].tags = vec![vec!["t".into(), "rare".into()]];
    world.insert(&index, &events, None);
    for (json, limit) in [
        (r#"{"limit":100}"#.to_owned(), 101),
        (r#"{"kinds":[1,7],"limit":100}"#.to_owned(), 102),
        (format!(r#"{{"authors":["{}"],"limit":100}}"#, "aa".repeat(31) + "00"), 101),
        (
            format!(
                r#"{{"authors":["{}","{}"],"kinds":[1,3],"limit":100}}"#,
                "aa".repeat(31) + "00",
                "aa".repeat(31) + "01"
            ),
            // Two authors and two kinds are four ranges.
            104,
        ),
        // The query counts the authors and the tag. The range of the rare tag ends at once.
        (
            format!(r##"{{"authors":["{}"],"#t":["rare"]}}"##, "aa".repeat(31) + "00"),
            // A turn of the authors, and the tag twice.
            64 + 4,
        ),
    ] {
        let filters = [Filter::parse(&json).unwrap()];
        let (found, read) = world.ask(&index, &filters);
        assert_eq!(found, world.scan(&filters), "{json}");
        assert!(read <= limit, "{json}: {read} entries read, {limit} expected");
    }
}
