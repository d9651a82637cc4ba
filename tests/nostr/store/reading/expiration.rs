//! Every way to read live events leaves out an expired event (NIP-40).

use crate::store::prelude::*;

const OVER_AT: u64 = 5_000;

/// Whether the store returns an event, in all ways to ask, which agree.
fn is_given(store: &EventStore, event: &Event) -> bool {
    let id = event.id;
    let live: Vec<Id> = live(store).iter().map(|event| event.id).collect();
    let mut ways = vec![store.find(&id).unwrap().is_some(), live.contains(&id)];
    let mut back = store.iter_reverse(Include::Live, OnCorrupt::Raise).unwrap();
    ways.push(back.any(|found| found.unwrap().event.id == id));
    ways.push(store.into_iter().any(|found| found.unwrap().event.id == id));
    for filter in ["{}", r#"{"ids":["@"]}"#, r##"{"#t":["brief"]}"##, r#"{"limit":1}"#] {
        let found = found(store, &filter.replace('@', &id.to_string()));
        // The event is the newest: after its expiration, a limit has room for another.
        assert!(found.len() == 1 || !filter.contains("limit"), "{} found", found.len());
        ways.push(found.contains(event));
    }
    let mut out = Vec::new();
    store.export(&mut out, Include::Live, OnCorrupt::Raise, &mut |_| Ok(())).unwrap();
    ways.push(String::from_utf8(out).unwrap().contains(&id.to_string()));
    assert_eq!(store.census().unwrap().events, live.len() as u64);
    let parts = store.splits(3 * 4096).unwrap();
    let found = parts.iter().flat_map(|each| part(each, store.options(), Include::Live));
    assert_eq!(found.map(|event| event.id).collect::<Vec<_>>(), live);
    #[cfg(feature = "arrow")]
    {
        use crate::support::store::columns::{batches, gathered};
        let rows = gathered(batches(store, Include::Live, 7, 1 << 20));
        assert!(rows.iter().map(|found| found.event.id).eq(live.iter().copied()));
    }
    // A walk over all stored events has the event.
    let stored =
        walked(store, Include::All).into_iter().find(|found| found.event.id == id).unwrap();
    assert_eq!(store.read(stored.location).unwrap(), stored);
    let given = ways[0];
    assert!(ways.iter().all(|way| *way == given), "{ways:?}");
    given
}

/// Appends and compactions obeyed the expiration, but reads did not.
#[test]
fn reads_return_an_event_until_it_expires() {
    for len in [10, 9_000] {
        let (_, options) = in_memory();
        let options = options.clock(clock);
        let store = open(&options);
        NOW.set(OVER_AT - 1);
        store.append_many(&notes(0..20)).unwrap();
        let tags: &[&[&str]] =
            &[&["t", "brief"], &["alt", "x"], &[], &["expiration", &OVER_AT.to_string()]];
        let brief = event(3, u32::MAX, 1, tags, &"x".repeat(len));
        assert!(store.append(&brief).unwrap().is_stored());
        let request = event(3, 9, 5, &[&["e", &note(90).id.to_string()], &["expiration", "1"]], "");
        assert!(store.append(&request).unwrap().is_stored());
        store.append_many(&(20..30).map(note).collect::<Vec<_>>()).unwrap();
        store.sync().unwrap();
        let reader = options.open("/events", Mode::Read).unwrap();
        for store in [&store, &reader] {
            for (now, given) in [(OVER_AT - 1, true), (OVER_AT, false), (OVER_AT + 1, false)] {
                NOW.set(now);
                assert_eq!(is_given(store, &brief), given, "{len} bytes at {now}");
                let live = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
                assert_eq!(live.count(), 31 + usize::from(given), "the request does not expire");
            }
            // A walk uses the time of its start.
            NOW.set(OVER_AT - 1);
            let begun = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
            NOW.set(OVER_AT);
            assert_eq!(begun.count(), 32);
        }
        assert!(matches!(store.append(&brief).unwrap(), Outcome::Duplicate(_)));
        assert_eq!(store.compact(0.0, false).unwrap().expired, 1);
        assert_eq!(store.append(&brief).unwrap(), Outcome::Expired);
        NOW.set(OVER_AT - 1);
        assert!(store.append(&brief).unwrap().is_stored() && is_given(&store, &brief));
    }
}
