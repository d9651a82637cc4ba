//! A store from its creation on: appended, found, replaced, deleted, compacted, opened again.

use std::path::Path;
use std::time::Duration;

use deedbook::nostr::{
    Event, EventStore, Filter, Flags, Id, ImportOptions, ImportReport, Include, Options, Outcome,
};
use deedbook::storage::Storage;
use deedbook::{Durability, ErrorKind, Mode, OnCorrupt};

use crate::support::store::events::nostr_keys::author;
use crate::support::store::events::{event, in_memory, note, open};

fn all(store: &EventStore, include: Include) -> Vec<Event> {
    store.iter(include, OnCorrupt::Raise).unwrap().map(|found| found.unwrap().event).collect()
}

fn found(store: &EventStore, filter: &str) -> Vec<Event> {
    let filters = Filter::parse_any(filter).unwrap();
    store.query(&filters).unwrap().map(|found| found.unwrap().event).collect()
}

/// The one error of a walk that cannot begin is its only item.
#[test]
fn a_store_is_iterated_by_reference_as_a_log_is() {
    let (_, options) = in_memory();
    let store = options.open("/events", Mode::Create).unwrap();
    let notes: Vec<Event> = (0..20).map(note).collect();
    store.append_many(&notes).unwrap();
    let mut events = Vec::new();
    for found in &store {
        events.push(found.unwrap().event);
    }
    assert_eq!(events, notes);
    store.close().unwrap();
    let errors: Vec<_> = (&store).into_iter().map(|found| found.unwrap_err().kind()).collect();
    assert_eq!(errors, [ErrorKind::Closed]);
}

#[test]
fn what_is_appended_is_found_in_all_ways_and_after_opening_again() {
    let (_, options) = in_memory();
    let notes: Vec<Event> = (0..300).map(note).collect();
    let store = options.open("/events", Mode::Create).unwrap();
    for part in notes.chunks(7) {
        let outcomes = store.append_many(part).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.is_stored()), "{outcomes:?}");
    }
    store.commit().unwrap();
    for again in 0..2 {
        let store = if again == 0 { store.clone() } else { open(&options) };
        assert_eq!(all(&store, Include::Live), notes);
        let reverse = store.iter_reverse(Include::Live, OnCorrupt::Raise).unwrap();
        let mut reverse: Vec<Event> = reverse.map(|found| found.unwrap().event).collect();
        reverse.reverse();
        assert_eq!(reverse, notes);
        for note in &notes {
            let found = store.find(&note.id).unwrap().unwrap();
            assert_eq!(found.event, *note);
            assert_eq!(store.read(found.location).unwrap().event, *note);
        }
        let newest: Vec<Event> = notes.iter().rev().take(10).cloned().collect();
        assert_eq!(found(&store, r#"{"limit": 10}"#), newest);
        let of_author: Vec<Event> =
            notes.iter().rev().filter(|note| note.pubkey == author(3)).cloned().collect();
        let author = Id(author(3));
        assert_eq!(found(&store, &format!(r#"{{"authors": ["{author}"]}}"#)), of_author);
        let outcomes = store.append_many(&notes).unwrap();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Duplicate(_))));
        store.close().unwrap();
        let reader = options.open("/events", Mode::Read).unwrap();
        assert_eq!(all(&reader, Include::Live), notes);
        assert_eq!(found(&reader, r#"{"limit": 10}"#), newest);
        assert_eq!(reader.find(&notes[5].id).unwrap().unwrap().event, notes[5]);
        let refused = reader.append(&notes[0]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    }
}

#[test]
fn the_newest_version_counts_in_whatever_order_they_come() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
        for at_once in [false, true] {
            let (_, options) = in_memory();
            let store = open(&options);
            let versions = [1, 2, 3].map(|at| event(9, at, 0, &[], &format!("profile {at}")));
            let order = order.map(|number| versions[number].clone());
            if at_once {
                store.append_many(&order).unwrap();
            } else {
                for version in &order {
                    store.append(version).unwrap();
                }
            }
            let counts = vec![versions[2].clone()];
            assert_eq!(all(&store, Include::Live), counts, "{at_once}");
            assert_eq!(found(&store, r#"{"kinds": [0]}"#), counts);
            assert_eq!(store.find(&versions[0].id).unwrap(), None);
            let report = store.compact(0.0, false).unwrap();
            assert_eq!((report.kept, report.replaced), (1, 2), "{report:?}");
            assert_eq!(all(&store, Include::All), counts);
            assert_eq!(found(&store, r#"{"kinds": [0]}"#), counts);
            assert_eq!(store.find(&versions[0].id).unwrap(), None);
            drop(store);
            assert_eq!(all(&open(&options), Include::All), counts);
        }
    }
}

#[test]
fn an_author_deletes_own_events_only_and_they_do_not_come_back() {
    let (_, options) = in_memory();
    let store = open(&options);
    let (own, other) = (event(1, 10, 1, &[], "own"), event(2, 10, 1, &[], "other's"));
    let article = event(1, 10, 30_023, &[&["d", "a"]], "an article");
    store.append_many(&[own.clone(), other.clone(), article.clone()]).unwrap();
    let address = format!("30023:{}:a", Id(author(1)));
    let tags: &[&[&str]] =
        &[&["e", &own.id.to_string()], &["e", &other.id.to_string()], &["a", &address]];
    let request = event(1, 20, 5, tags, "");
    assert!(store.append(&request).unwrap().is_stored());
    let left = vec![other, request];
    assert_eq!(all(&store, Include::Live), left);
    assert_eq!(store.find(&own.id).unwrap(), None);
    for compacted in [false, true] {
        for again in [&own, &article] {
            assert!(!store.append(again).unwrap().is_stored(), "{compacted}");
        }
        assert_eq!(all(&store, Include::Live), left);
        store.compact(0.0, false).unwrap();
    }
    drop(store);
    let store = open(&options);
    assert_eq!(store.append(&own).unwrap(), Outcome::Deleted);
    let newer = event(1, 30, 30_023, &[&["d", "a"]], "written again");
    assert!(store.append(&newer).unwrap().is_stored());
}

/// A request that an earlier one named was refused, and what it asks to delete stayed. A request against
/// a request has no effect (NIP-09).
#[test]
fn a_request_that_another_one_names_deletes_what_it_asks_for() {
    let note = event(1, 10, 1, &[], "to be deleted");
    let first = event(1, 20, 5, &[&["e", &note.id.to_string()]], "");
    let against_it = event(1, 30, 5, &[&["e", &first.id.to_string()]], "");
    for requests in
        [[&first, &against_it], [&against_it, &first]].map(|both| both.map(Event::clone))
    {
        for at_once in [false, true] {
            let (_, options) = in_memory();
            let store = open(&options);
            store.append(&note).unwrap();
            for part in requests.chunks(if at_once { 2 } else { 1 }) {
                let outcomes = store.append_many(part).unwrap();
                assert!(outcomes.iter().all(|outcome| outcome.is_stored()), "{outcomes:?}");
            }
            assert_eq!(store.find(&note.id).unwrap(), None, "{at_once}");
            assert_eq!(all(&store, Include::Live), requests);
            store.compact(0.0, false).unwrap();
            drop(store);
            let store = open(&options);
            assert_eq!(store.append(&note).unwrap(), Outcome::Deleted);
            assert_eq!(all(&store, Include::All), requests);
        }
    }
}

/// A request with an expiration went with a compaction once its time was over, and what it had deleted could
/// come back. A request has no end: it is stored, deletes and stays, however late it comes.
#[test]
fn a_request_does_not_expire() {
    let (_, options) = in_memory();
    let store = open(&options);
    let note = event(1, 10, 1, &[], "to be deleted");
    let over: &[&[&str]] = &[&["e", &note.id.to_string()], &["expiration", "21"]];
    let request = event(1, 20, 5, over, "");
    store.append(&note).unwrap();
    assert!(store.append(&request).unwrap().is_stored());
    assert_eq!(store.find(&note.id).unwrap(), None);
    let report = store.compact(0.0, false).unwrap();
    assert_eq!((report.kept, report.deleted, report.expired), (1, 1, 0));
    assert_eq!(store.append(&note).unwrap(), Outcome::Deleted);
    drop(store);
    let store = open(&options);
    assert_eq!(store.append(&note).unwrap(), Outcome::Deleted);
    assert_eq!(all(&store, Include::All), [request]);
}

/// A deleted version went on counting against those that came later, in the store and in its index.
#[test]
fn what_was_deleted_replaces_nothing() {
    for is_indexed in [false, true] {
        let (_, options) = in_memory();
        let store = open(&options);
        let (older, newer) = (event(1, 10, 0, &[], "older"), event(1, 20, 0, &[], "newer"));
        let request = event(1, 30, 5, &[&["e", &newer.id.to_string()]], "");
        store.append(&newer).unwrap();
        if is_indexed {
            assert_eq!(found(&store, r#"{"kinds": [0]}"#), [newer]);
        }
        store.append(&request).unwrap();
        assert!(matches!(store.append(&older).unwrap(), Outcome::Stored(_)), "{is_indexed}");
        let expected = [request, older];
        assert_eq!(found(&store, r#"{"kinds": [0]}"#), expected[1..]);
        assert_eq!(all(&store, Include::Live), expected);
    }
}

#[test]
fn what_is_over_or_ephemeral_is_not_stored() {
    let (_, options) = in_memory();
    let store = open(&options);
    let over = event(1, 10, 1, &[&["expiration", "11"]], "over");
    assert_eq!(store.append(&over).unwrap(), Outcome::Expired);
    let later = event(1, 10, 1, &[&["expiration", "99999999999"]], "later");
    assert!(store.append(&later).unwrap().is_stored());
    let passing = event(1, 10, 20_001, &[], "typing");
    assert_eq!(store.append(&passing).unwrap(), Outcome::Ephemeral);
    assert_eq!(all(&store, Include::All), [later]);
}

#[test]
fn an_event_with_a_wrong_id_is_refused_with_both_ids() {
    let (_, options) = in_memory();
    let store = open(&options);
    let mut wrong = note(1);
    wrong.content.push('!');
    let error = store.append_many(&[note(0), wrong.clone()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let (given, right) = (wrong.id.to_string(), wrong.canonical_id().to_string());
    assert!(error.message().contains(&given) && error.message().contains(&right), "{error}");
    assert_eq!(all(&store, Include::All), []);
}

/// Without its segments and its manifest, a store looked like a new one, and began empty.
#[test]
fn a_store_without_its_segments_has_lost_records() {
    let (memory, options) = in_memory();
    let store = open(&options);
    store.append(&note(1)).unwrap();
    store.close().unwrap();
    memory.remove(Path::new("/events/manifest.json")).unwrap();
    memory.remove(Path::new("/events/data/segments/data.0.seg")).unwrap();
    let error = options.open("/events", Mode::Append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
}

#[test]
fn an_import_reports_bad_lines_or_stops_at_the_first() {
    let (_, options) = in_memory();
    let store = open(&options);
    let mut wrong = note(2);
    wrong.content.push('!');
    let lines = [note(1).to_json(), "{}".into(), wrong.to_json(), String::new(), note(3).to_json()];
    let text = lines.join("\n");
    let stopping = ImportOptions::new().stop_at_bad(true);
    let stopped = store.import(&mut text.as_bytes(), &stopping, None, &mut |_| Ok(())).unwrap_err();
    assert!(stopped.message().starts_with("line 2: "), "{stopped}");
    assert_eq!(all(&store, Include::All), [note(1)]);
    let mut aside = Vec::new();
    let whole = ImportOptions::default();
    let report =
        store.import(&mut text.as_bytes(), &whole, Some(&mut aside), &mut |_| Ok(())).unwrap();
    assert_eq!((report.lines, report.stored, report.duplicates, report.bad), (5, 1, 1, 2));
    assert_eq!(report.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(aside, format!("{{}}\n{}\n", wrong.to_json()).into_bytes());
    let mut out = Vec::new();
    let count = store.export(&mut out, Include::Live, OnCorrupt::Raise, &mut |_| Ok(())).unwrap();
    assert_eq!((count.events, count.lossy), (2, 0));
    assert_eq!(out, format!("{}\n{}\n", note(1).to_json(), note(3).to_json()).into_bytes());
}

/// One event that is too large ended an import without the number of its line, and every other import of
/// the file at the same place: what came after it was never stored.
#[test]
fn an_event_that_is_too_large_is_a_bad_line_and_the_rest_goes_on() {
    let tag: &[&str] = &["t", "x"];
    for (large, reason) in [
        (event(1, 5, 1, &[], &"long ".repeat(1000)), "limit 5000"),
        (event(1, 5, 1, &vec![tag; 65_536], ""), "tags of 65536 entries, limit 65535"),
    ] {
        let (_, options) = in_memory();
        let store = open(&options.event_bytes_max(5000));
        let text = [note(1), large.clone(), note(2)].map(|event| event.to_json() + "\n").concat();
        let stopping = ImportOptions::new().stop_at_bad(true);
        let import = |options: &ImportOptions, aside: &mut Vec<u8>| {
            store.import(&mut text.as_bytes(), options, Some(aside), &mut |_| Ok(()))
        };
        let stopped = import(&stopping, &mut Vec::new()).unwrap_err();
        assert!(stopped.message().starts_with("line 2: "), "{stopped}");
        assert_eq!(all(&store, Include::All), [note(1)]);
        let mut aside = Vec::new();
        let report = import(&ImportOptions::default(), &mut aside).unwrap();
        assert_eq!((report.lines, report.stored, report.duplicates, report.bad), (3, 1, 1, 1));
        assert_eq!(report.bytes, text.len() as u64);
        let bad = &report.bad_lines[0];
        assert!(bad.line == 2 && bad.reason.contains(reason), "{bad:?}");
        assert_eq!(aside, (large.to_json() + "\n").into_bytes());
        assert_eq!(all(&store, Include::All), [note(1), note(2)]);
    }
}

/// Bytes of a line that is too long count, though they are not kept: else the next import begins amiss.
#[test]
fn an_import_goes_on_after_what_is_known_of_it() {
    let (_, options) = in_memory();
    let store = open(&options);
    let line = |number| note(number).to_json() + "\n";
    let first = [line(1), "x".repeat(5000) + "\n", line(2)].concat();
    let text = [&first, "oops\n", &line(1), "\n", &line(4)].concat();
    let import = |text: &str, after: ImportReport| {
        let options = ImportOptions::new().line_bytes_max(1000).after(after);
        store.import(&mut text.as_bytes(), &options, None, &mut |_| Ok(())).unwrap()
    };
    let begun = import(&first, ImportReport::default());
    assert_eq!((begun.lines, begun.stored, begun.bad), (3, 2, 1));
    assert_eq!(begun.bytes, first.len() as u64);
    let done = import(&text, begun);
    assert_eq!((done.lines, done.stored, done.duplicates, done.bad), (7, 3, 1, 2));
    assert_eq!(done.bytes, text.len() as u64);
    assert_eq!(done.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 4]);
    // Of lines that end before, there is nothing more.
    assert_eq!(import(&first, done.clone()), done);
}

#[test]
fn flags_hide_an_event_and_show_it_again() {
    let (_, options) = in_memory();
    let store = open(&options);
    let Outcome::Stored(at) = store.append(&note(3)).unwrap() else { panic!() };
    store.append(&note(4)).unwrap();
    store.set_flags(at, Flags::DELETED).unwrap();
    assert_eq!(all(&store, Include::Live), [note(4)]);
    assert_eq!(store.find(&note(3).id).unwrap(), None);
    drop(store);
    let store = open(&options);
    assert_eq!(found(&store, "{}"), [note(4)]);
    assert_eq!(store.read(at).unwrap().flags, Flags::DELETED);
    store.set_flags(at, Flags::default()).unwrap();
    assert_eq!(found(&store, "{}"), [note(4), note(3)]);
}

#[test]
fn sizes_beyond_their_ranges_are_refused_and_the_ends_are_taken() {
    let opened = |change: &dyn Fn(&mut Options)| {
        let (_, mut options) = in_memory();
        let sizes = Options::default();
        (options.small, options.segment_bytes) = (false, sizes.segment_bytes);
        options.wal_segment_bytes = sizes.wal_segment_bytes;
        change(&mut options);
        options.open("/events", Mode::Create).map(drop).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            error.message().to_owned()
        })
    };
    let page = |bytes| opened(&|options| options.page_bytes = Some(bytes));
    let segment = |bytes| opened(&|options| options.segment_bytes = Some(bytes));
    let event = |bytes| opened(&|options| options.event_bytes_max = bytes);
    let ratio = |ratio| opened(&|options| options.compaction_ratio = ratio);
    for taken in [
        [page(4096), page(16384), segment(10 << 20), segment((1 << 32) - 4096)],
        [event(4096), event(100_000_000), ratio(0.1), ratio(0.5)],
    ] {
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), Ok(())]);
    }
    for (refused, text) in [
        (page(0), "page size 0, may be 4096, 8192 or 16384"),
        (page(4095), "page size 4095, may be 4096, 8192 or 16384"),
        (page(32768), "page size 32768, may be 4096, 8192 or 16384"),
        (segment((10 << 20) - 1), "segment size 10485759, may be 10485760 to 4294963200"),
        (segment((1 << 32) - 4095), "segment size 4294963201, may be 10485760 to 4294963200"),
        (event(4095), "event limit 4095, may be 4096 to 100000000"),
        (event(100_000_001), "event limit 100000001, may be 4096 to 100000000"),
        (ratio(0.09), "compaction ratio 0.09, may be 0.1 to 0.5"),
        (ratio(0.51), "compaction ratio 0.51, may be 0.1 to 0.5"),
        (ratio(f64::NAN), "compaction ratio NaN, may be 0.1 to 0.5"),
    ] {
        assert_eq!(refused.unwrap_err(), text);
    }
}

/// `open` made a store where the path was wrong, while that of any other log reads.
#[test]
fn opening_without_more_reads_and_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events");
    assert_eq!(EventStore::open(&path).unwrap_err().kind(), ErrorKind::Missing);
    assert!(!path.exists());
    let store = EventStore::append_to(&path).unwrap();
    store.append(&note(1)).unwrap();
    store.close().unwrap();
    let reader = EventStore::open(&path).unwrap();
    assert_eq!(reader.append(&note(2)).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(reader.iter(Include::All, OnCorrupt::Raise).unwrap().count(), 1);
}

/// The index, the lock and copies of segments were touched before the log refused it.
#[test]
fn an_interval_without_a_pause_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events");
    let options = Options::default().durability(Durability::Interval(Duration::ZERO));
    let error = options.open(&path, Mode::Append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("interval of 0ns"), "{error}");
    assert!(!path.exists());
}

/// Anybody could delete the events of others: a request with the author's public key and any signature hid
/// them, and their later copies were refused.
#[test]
fn a_request_without_a_true_signature_deletes_nothing() {
    let (memory, options) = in_memory();
    let store = open(&options);
    let (note, later) = (event(1, 10, 1, &[], "note"), event(1, 11, 1, &[], "later"));
    let profile = event(1, 10, 0, &[], "profile");
    store.append_many(&[note.clone(), profile.clone()]).unwrap();
    let address = format!("0:{}:", Id(author(1)));
    let tags: &[&[&str]] =
        &[&["e", &note.id.to_string()], &["e", &later.id.to_string()], &["a", &address]];
    let signed = event(1, 20, 5, tags, "");
    let unsigned = Event { sig: [7; 64], ..signed.clone() };
    let mut changed = Event { content: "of another content".into(), ..signed.clone() };
    changed.id = changed.canonical_id();
    for (number, forged) in [unsigned, changed].iter().enumerate() {
        match number {
            0 => drop(store.append(forged).unwrap()),
            _ => {
                let lines = format!("{}\n", forged.to_json());
                let on = ImportOptions::default();
                let report =
                    store.import(&mut lines.as_bytes(), &on, None, &mut |_| Ok(())).unwrap();
                assert_eq!(report.stored, 1);
            }
        }
        for event in [&note, &profile] {
            assert!(store.find(&event.id).unwrap().unwrap().flags.is_live(), "{event:?}");
        }
    }
    store.append(&later).unwrap();
    drop(store);
    // Opened again, by the log alone and by the index.
    let store = open(&options);
    let copy = event(1, 12, 1, &[], "one more");
    assert!(store.append(&copy).unwrap().is_stored());
    for event in [&note, &profile, &later, &copy] {
        assert!(store.find(&event.id).unwrap().unwrap().flags.is_live(), "{event:?}");
    }
    store.close().unwrap();
    drop((store, memory));
}

/// The same request, signed.
#[test]
fn a_signed_request_deletes_what_a_forged_one_did_not() {
    let (_, options) = in_memory();
    let store = open(&options);
    let note = event(1, 10, 1, &[], "note");
    store.append(&note).unwrap();
    let signed = event(1, 20, 5, &[&["e", &note.id.to_string()]], "");
    store.append(&signed).unwrap();
    assert!(!store.find(&note.id).unwrap().is_some_and(|found| found.flags.is_live()));
}
