//! The life of a store: create, append, find, replace, delete, compact, open again.

use crate::store::prelude::*;

#[test]
fn newest_version_counts_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
        for at_once in [false, true] {
            let (options, store) = memory_store();
            let versions = [1, 2, 3].map(|at| event(9, at, 0, &[], &format!("profile {at}")));
            let order = order.map(|number| versions[number].clone());
            for part in order.chunks(if at_once { 3 } else { 1 }) {
                store.append_many(part).unwrap();
            }
            let counts = vec![versions[2].clone()];
            everything(&store);
            assert_eq!(live(&store), counts, "{at_once}");
            let report = store.compact(0.0, false).unwrap();
            assert_eq!((report.kept, report.replaced), (1, 2), "{report:?}");
            everything(&store);
            assert_eq!(all(&store), counts);
            assert_eq!(store.find(&versions[0].id).unwrap(), None);
            drop(store);
            assert_eq!(all(&open(&options)), counts);
        }
    }
}

#[test]
fn author_deletes_only_own_events_for_good() {
    let (options, store) = memory_store();
    let (own, other) = (event(1, 10, 1, &[], "own"), event(2, 10, 1, &[], "other's"));
    let article = event(1, 10, 30_023, &[&["d", "a"]], "an article");
    store.append_many(&[own.clone(), other.clone(), article.clone()]).unwrap();
    let address = format!("30023:{}:a", Id(author(1)));
    let tags: &[&[&str]] =
        &[&["e", &own.id.to_string()], &["e", &other.id.to_string()], &["a", &address]];
    let request = event(1, 20, 5, tags, "");
    assert!(store.append(&request).unwrap().is_stored());
    let left = vec![other, request];
    assert_eq!(live(&store), left);
    assert_eq!(store.find(&own.id).unwrap(), None);
    for compacted in [false, true] {
        for again in [&own, &article] {
            assert!(!store.append(again).unwrap().is_stored(), "{compacted}");
        }
        assert_eq!(live(&store), left);
        store.compact(0.0, false).unwrap();
    }
    drop(store);
    let store = open(&options);
    assert_eq!(store.append(&own).unwrap(), Outcome::Deleted);
    let newer = event(1, 30, 30_023, &[&["d", "a"]], "written again");
    assert!(store.append(&newer).unwrap().is_stored());
}

/// The store refused a request that an earlier request named, and the events of the refused request stayed. A request
/// against a request has no effect (NIP-09).
#[test]
fn request_named_by_another_still_deletes() {
    let note = event(1, 10, 1, &[], "to be deleted");
    let first = request(1, 20, &note);
    let against_it = request(1, 30, &first);
    for requests in [[first.clone(), against_it.clone()], [against_it, first]] {
        for at_once in [false, true] {
            let (options, store) = memory_store();
            store.append(&note).unwrap();
            for part in requests.chunks(if at_once { 2 } else { 1 }) {
                let outcomes = store.append_many(part).unwrap();
                assert!(outcomes.iter().all(|outcome| outcome.is_stored()), "{outcomes:?}");
            }
            assert_eq!(store.find(&note.id).unwrap(), None, "{at_once}");
            assert_eq!(live(&store), requests);
            store.compact(0.0, false).unwrap();
            drop(store);
            let store = open(&options);
            assert_eq!(store.append(&note).unwrap(), Outcome::Deleted);
            assert_eq!(all(&store), requests);
        }
    }
}

/// A compaction dropped an expired deletion request, and its deleted events could come back. A request never expires:
/// the store keeps and obeys it, however late it comes.
#[test]
fn a_request_does_not_expire() {
    let (options, store) = memory_store();
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
    assert_eq!(all(&store), [request]);
}

/// A deleted version still replaced later appends, in the store and in the index.
#[test]
fn what_was_deleted_replaces_nothing() {
    for is_indexed in [false, true] {
        let (_, store) = memory_store();
        let (older, newer) = (event(1, 10, 0, &[], "older"), event(1, 20, 0, &[], "newer"));
        let request = request(1, 30, &newer);
        store.append(&newer).unwrap();
        if is_indexed {
            assert_eq!(found(&store, r#"{"kinds": [0]}"#), [newer]);
        }
        store.append(&request).unwrap();
        stored(&store, &older);
        let expected = [request, older];
        assert_eq!(found(&store, r#"{"kinds": [0]}"#), expected[1..]);
        assert_eq!(live(&store), expected);
    }
}

#[test]
fn what_is_over_or_ephemeral_is_not_stored() {
    let (_, store) = memory_store();
    let over = event(1, 10, 1, &[&["expiration", "11"]], "over");
    assert_eq!(store.append(&over).unwrap(), Outcome::Expired);
    let later = event(1, 10, 1, &[&["expiration", "99999999999"]], "later");
    assert!(store.append(&later).unwrap().is_stored());
    let passing = event(1, 10, 20_001, &[], "typing");
    assert_eq!(store.append(&passing).unwrap(), Outcome::Ephemeral);
    assert_eq!(all(&store), [later]);
}

#[test]
fn event_with_wrong_id_reports_both_ids() {
    let (_, store) = memory_store();
    let mut wrong = note(1);
    wrong.content.push('!');
    let error = store.append_many(&[note(0), wrong.clone()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let (given, right) = (wrong.id.to_string(), wrong.canonical_id().to_string());
    assert!(error.message().contains(&given) && error.message().contains(&right), "{error}");
    assert_eq!(all(&store), []);
}

#[test]
fn flags_hide_an_event_and_show_it_again() {
    let (options, store) = memory_store();
    let at = stored(&store, &note(3));
    store.append(&note(4)).unwrap();
    store.set_flags(at, Flags::DELETED).unwrap();
    assert_eq!(live(&store), [note(4)]);
    assert_eq!(store.find(&note(3).id).unwrap(), None);
    drop(store);
    let store = open(&options);
    assert_eq!(found(&store, "{}"), [note(4)]);
    assert_eq!(store.read(at).unwrap().flags, Flags::DELETED);
    store.set_flags(at, Flags::default()).unwrap();
    assert_eq!(found(&store, "{}"), [note(4), note(3)]);
}

#[test]
fn sizes_within_range_are_accepted_and_others_refused() {
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
    let ratio = |ratio| opened(&|options| options.compaction_ratio = Some(ratio));
    let checkpoint = |ms| opened(&|o| o.checkpoint_interval = Some(Duration::from_millis(ms)));
    const DAY: u64 = 24 * 60 * 60 * 1000;
    assert_eq!([checkpoint(1000), checkpoint(DAY)], [Ok(()), Ok(())]);
    for refused in [checkpoint(999), checkpoint(DAY + 1)] {
        let said = refused.unwrap_err();
        assert!(said.contains("checkpoint interval in ms"), "{said}");
    }
    for taken in [
        [page(1024), page(65536), segment(10 << 20), segment((1 << 32) - 4096)],
        [event(4096), event(100_000_000), ratio(0.1), ratio(0.5)],
    ] {
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), Ok(())]);
    }
    for (refused, text) in [
        (page(0), "page size 0, may be a power of two from 1024 to 65536"),
        (page(4095), "page size 4095, may be a power of two from 1024 to 65536"),
        (page(512), "page size 512, may be a power of two from 1024 to 65536"),
        (page(131072), "page size 131072, may be a power of two from 1024 to 65536"),
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

/// `open` made a store at a wrong path, while `open` of every other log reads.
#[test]
fn opening_without_more_reads_and_makes_nothing() {
    let (_place, path) = on_real_disk();
    refused(EventStore::open(&path), ErrorKind::Missing, "");
    assert!(!path.exists());
    let store = EventStore::append_to(&path).unwrap();
    store.append(&note(1)).unwrap();
    store.close().unwrap();
    let reader = EventStore::open(&path).unwrap();
    refused(reader.append(&note(2)), ErrorKind::ReadOnly, "");
    assert_eq!(all(&reader).len(), 1);
}

/// Opening touched the index, the lock and copies of segments before the log refused the interval.
#[test]
fn zero_interval_is_refused_before_anything_is_made() {
    let (_place, path) = on_real_disk();
    let options = Options::default().durability(Durability::Interval(Duration::ZERO));
    refused(options.open(&path, Mode::Append), ErrorKind::InvalidArgument, "interval of 0ns");
    assert!(!path.exists());
}

/// Anybody could delete the events of others: a request with the author's public key and any signature hid the events,
/// and the store refused later copies.
#[test]
fn a_request_without_a_true_signature_deletes_nothing() {
    let (options, store) = memory_store();
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
            _ => assert_eq!(import(&store, &forged.to_json(), &Default::default()).stored, 1),
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
    stored(&store, &copy);
    for event in [&note, &profile, &later, &copy] {
        assert!(store.find(&event.id).unwrap().unwrap().flags.is_live(), "{event:?}");
    }
}
