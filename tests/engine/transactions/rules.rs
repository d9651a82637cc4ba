//! Appended, recognised and refused records of a commit.

use super::*;

#[test]
fn a_commit_appends_parts_by_partition() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        let committed = store.commit(&of_no_application(), &parts).unwrap();
        assert_eq!((committed.records, committed.repeated), (5, false), "{kind:?}");
        let first = match store {
            Store::Book(_) => Some(5),
            Store::Wal(_) => Some(committed.first.unwrap()),
            Store::Ledger(..) => Some(2),
            Store::Events(_) => None,
        };
        assert_eq!(committed.first, first);
        assert_eq!((store.read(), kind.read(&sim)), (kind.all(), kind.all()));
        // Durable, also if the writer syncs by itself.
        for cut in cuts(&sim, 50) {
            // A power cut may take flags from the cache of an event store: the writer sets them again.
            drop(kind.open(&cut, Mode::Append).unwrap());
            assert_eq!(kind.read(&cut), kind.all(), "{kind:?}");
            if kind == Kind::Ledger {
                // The files get indexes by partition and part.
                let indexes = ledger::read(&cut).into_iter().map(|(index, _)| index);
                assert!(indexes.eq([0, 0, 0, 1, 2, 2, 3, 3, 4]));
            }
        }
        assert!(store.staged().is_empty(), "also the attempt that was not committed");
        // Without an id, the log cannot recognise a repeat.
        let again = store.commit(&of_no_application(), &stage_all(kind, &store)).unwrap();
        let records = if let Store::Events(_) = store { 0 } else { 5 };
        assert_eq!((again.records, again.repeated), (records, false));
        store.append("after");
        if let Store::Ledger(ledger, _) = &store {
            let (records, last) = (ledger.stats().records, ledger::read(&sim).pop());
            assert_eq!((records, last), (4 + 5 + 5 + 1, Some((8, "after".into()))));
        }
        drop(store);
        assert_eq!(kind.read(&sim).last().unwrap(), "after");
    }
}

/// An engine that tells a task no number tells the driver the order.
#[test]
fn unnumbered_partitions_follow_in_the_callers_order() {
    for kind in KINDS {
        let sim = Sim::new();
        let store = kind.open(&sim, Mode::Create).unwrap();
        let named = |name| Part::UNNUMBERED + name;
        let staged = [(named(9), "c"), (named(1), "d"), (2, "b"), (named(4), "e"), (0, "a")];
        let stage = |&(partition, payload)| store.stage(partition, 7, &[payload]);
        let parts: Vec<Part> = staged.iter().flat_map(stage).collect();
        assert_eq!(store.commit(&of_app(1), &parts).unwrap().records, 5);
        assert_eq!(store.read(), ["a", "b", "c", "d", "e"], "{kind:?}");
    }
}

// Promise: transaction-repeat.
#[test]
fn a_repeat_appends_nothing() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        store.commit(&of_app(7), &parts).unwrap();
        let again = stage_all(kind, &store);
        assert!(store.commit(&of_app(7), &again).unwrap().repeated);
        assert!(store.staged().is_empty());
        // Without the staged files: the first commit removed them at its end.
        assert!(store.commit(&of_app(3), &parts).unwrap().repeated);
        assert_eq!(store.read(), kind.all());
        drop(store);
        let store = kind.open(&sim, Mode::Append).unwrap();
        assert_eq!(store.noted("etl"), Some(7));
        assert!(store.commit(&of_app(7), &parts).unwrap().repeated);
        // Applications number as they like, so a gap in the numbers is no error.
        let next = store.stage(0, 1, &["next"]);
        assert_eq!(store.commit(&of_app(20), &next).unwrap().records, 1);
        assert_eq!(store.read().len(), kind.all().len() + 1);
    }
}

/// A stream with a fixed application id and a new checkpoint began again with batch 0, which the log skipped silently.
// Promise: transaction-repeat.
#[test]
fn another_query_of_the_same_application_is_refused() {
    let kind = Kind::Book;
    let (_, store, parts) = prepared(kind);
    store.commit(&of_query("first", 0), &parts).unwrap();
    for other in [of_query("second", 0), of_query("second", 1), of_app(5)] {
        let parts = stage_all(kind, &store);
        let error = refused(store.commit(&other, &parts), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("give another txnAppId"), "{error}");
        assert!(store.discard(JOB));
    }
    assert_eq!(store.read(), kind.all());
}

// Promise: transaction-repeat.
#[test]
fn a_commit_refuses_a_batch_after_a_gap() {
    let kind = Kind::Segments(64);
    let (_, store, parts) = prepared(kind);
    let error = refused(store.commit(&of_query("q", 3), &parts), ErrorKind::Contiguity);
    assert!(error.to_string().contains("batches 0 to 2 are missing"), "{error}");
    store.commit(&of_query("q", 0), &parts).unwrap();
    let error = store.commit(&of_query("q", 2), &stage_all(kind, &store)).unwrap_err();
    assert!(error.to_string().contains("the log has its batches up to 0"), "{error}");
    assert_eq!(store.read(), kind.all());
}

/// Somebody restored an older checkpoint. Spark planned a batch of records nobody had read, under a number already in
/// the log. The log skipped the batch as a repeat, and counted all of it as written.
// Promise: transaction-repeat.
#[test]
fn a_batch_before_the_last_one_is_refused() {
    for kind in KINDS {
        let (_, store, parts) = prepared(kind);
        store.commit(&of_query("q", 0), &parts).unwrap();
        store.commit(&of_query("q", 1), &[]).unwrap();
        let error = store.commit(&of_query("q", 0), &stage_all(kind, &store)).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Contiguity, Some(Durable::No)));
        let wanted =
            "batch 0 of application etl is older than the log, which has its batches up to 1";
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(store.read(), kind.all());
        // Spark repeats the last batch.
        assert!(store.commit(&of_query("q", 1), &[]).unwrap().repeated);
    }
}

#[test]
fn a_commit_without_records_counts_as_a_batch() {
    let (_, store, _) = prepared(Kind::Book);
    let parts = store.stage(0, 1, &[]);
    store.commit(&of_query("q", 0), &parts).unwrap();
    store.commit(&of_query("q", 1), &[]).unwrap();
    assert_eq!((store.noted("etl"), store.read().len()), (Some(1), BEFORE.len()));
}

#[test]
fn a_commit_refuses_wrong_first_numbers() {
    let (_, store, _) = prepared(Kind::Book);
    store.discard(JOB);
    let stage = |partition, first| {
        store.stage_from(JOB, partition, first, Some(first), &["x", "y"]).unwrap()
    };
    let error = store.commit(&of_no_application(), &[stage(0, 5), stage(1, 8)]).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::Contiguity, Some(Durable::No)));
    let wanted = "partition 1 begins with deed 8, and would get 7: the log goes on with 5";
    assert!(error.to_string().contains(wanted), "{error}");
    assert_eq!(store.read(), BEFORE);
    store.discard(JOB);
    assert_eq!(
        store.commit(&of_no_application(), &[stage(0, 5), stage(1, 7)]).unwrap().first,
        Some(5)
    );
}

// Promise: transaction-attempts.
#[test]
fn an_incomplete_commit_leaves_the_log_unchanged() {
    let damages = [
        ("changed", ErrorKind::Corrupt),
        ("cut", ErrorKind::Corrupt),
        ("missing", ErrorKind::Missing),
        ("both attempts", ErrorKind::InvalidArgument),
    ];
    for (kind, (damage, expected)) in KINDS.iter().flat_map(|k| damages.map(|d| (*k, d))) {
        let (sim, store, mut parts) = prepared(kind);
        let path = kind.last_staged();
        match damage {
            "changed" => change_byte(&sim, &path),
            "cut" => sim.open(path.as_ref(), Access::Write).unwrap().set_len(8).unwrap(),
            "missing" => sim.remove(path.as_ref()).unwrap(),
            _ => parts.extend(store.stage(0, 99, &["a", "bb"])),
        }
        let error = store.commit(&of_app(1), &parts).unwrap_err();
        let what = format!("{kind:?} {damage}: {error}");
        assert_eq!((error.kind(), error.durable()), (expected, Some(Durable::No)), "{what}");
        match damage {
            "both attempts" => {
                assert!(error.to_string().contains("by attempts 10 and 99"), "{what}")
            }
            _ => assert_eq!(error.path().unwrap().to_str(), Some(&*path), "{what}"),
        }
        assert_eq!(kind.read(&sim), BEFORE, "{what}");
        // The same handle goes on, and the batch is staged again.
        assert!(store.discard(JOB), "{what}");
        let parts = stage_all(kind, &store);
        assert_eq!(store.commit(&of_app(1), &parts).unwrap().records, 5, "{what}");
        assert_eq!(kind.read(&sim), kind.all(), "{what}");
    }
}

#[test]
fn jobs_are_listed_and_discarded_one_by_one() {
    let (sim, store, _) = prepared(Kind::Segments(4096));
    store.stage_from("job-12", 0, 1, None, &["x"]).unwrap();
    let listed = |store: &Store| -> Vec<_> {
        store.staged().into_iter().map(|job| (job.job, job.files, job.is_committing)).collect()
    };
    let expected = [(JOB.to_string(), 4, false), ("job-12".to_string(), 1, false)];
    assert_eq!(listed(&store), expected);
    let reader = Kind::Segments(4096).open(&sim, Mode::Read).unwrap();
    assert!(reader.discard(JOB));
    assert_eq!(listed(&reader), expected[1..]);
    assert!(reader.abandon().unwrap_err().kind() == ErrorKind::Locked);
    for job in ["", "a/b", "a.b", "a b"] {
        refused(reader.stage_from(job, 0, 0, None, &[]), ErrorKind::InvalidArgument);
    }
}
