//! What a commit appends, recognises and refuses.

use deedbook::storage::Storage;
use deedbook::{Durable, ErrorKind, Mode};

use crate::support::common::refused;
use crate::support::crashes::cuts;
use crate::transactions::store::{KINDS, Kind, PATH, Store};
use crate::transactions::{
    BEFORE, JOB, all, of_app, of_no_application, of_query, prepared, stage_all,
};

#[test]
fn parts_are_appended_in_the_order_of_their_partitions() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        let committed = store.commit(&of_no_application(), &parts).unwrap();
        assert_eq!((committed.records, committed.repeated), (5, false), "{kind:?}");
        let at = if let Store::Book(_) = store { 5 } else { committed.first.unwrap() };
        assert_eq!(committed.first, Some(at));
        assert_eq!(store.read(), all());
        assert_eq!(kind.read(&sim), all());
        // Durable, also where the writer syncs by itself.
        assert!(cuts(&sim, 50).iter().all(|cut| kind.read(cut) == all()), "{kind:?}");
        assert!(store.staged().is_empty(), "also the attempt that was not committed");
        store.append("after");
        drop(store);
        assert_eq!(kind.read(&sim).last().unwrap(), "after");
    }
}

// Promise: transaction-repeat.
#[test]
fn a_repeat_appends_nothing() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        store.commit(&of_app(7), &parts).unwrap();
        let again = stage_all(&store);
        assert!(store.commit(&of_app(7), &again).unwrap().repeated);
        assert!(store.staged().is_empty());
        // Without its staged files, whose removal was the end of the first one.
        assert!(store.commit(&of_app(3), &parts).unwrap().repeated);
        assert_eq!(store.read(), all());
        drop(store);
        let store = kind.open(&sim, Mode::Append).unwrap();
        assert_eq!(store.noted("etl"), Some(7));
        assert!(store.commit(&of_app(7), &parts).unwrap().repeated);
        // Applications number as they like, so a gap is none.
        let next = stage_all(&store);
        assert_eq!(store.commit(&of_app(20), &next).unwrap().records, 5);
        assert_eq!(store.read().len(), 14);
    }
}

/// A stream with a fixed application id and a new checkpoint began again with batch 0, and all of it
/// was skipped in silence.
// Promise: transaction-repeat.
#[test]
fn another_query_of_the_same_application_is_refused() {
    let (_, store, parts) = prepared(Kind::Book);
    store.commit(&of_query("first", 0), &parts).unwrap();
    for other in [of_query("second", 0), of_query("second", 1), of_app(5)] {
        let parts = stage_all(&store);
        let error = refused(store.commit(&other, &parts), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("give another txnAppId"), "{error}");
        assert!(store.discard(JOB));
    }
    assert_eq!(store.read(), all());
}

// Promise: transaction-repeat.
#[test]
fn a_batch_that_is_not_the_next_is_refused() {
    let (_, store, parts) = prepared(Kind::Segments(64));
    let error = refused(store.commit(&of_query("q", 3), &parts), ErrorKind::Contiguity);
    assert!(error.to_string().contains("batches 0 to 2 are missing"), "{error}");
    store.commit(&of_query("q", 0), &parts).unwrap();
    let error = store.commit(&of_query("q", 2), &stage_all(&store)).unwrap_err();
    assert!(error.to_string().contains("the log has its batches up to 0"), "{error}");
    assert_eq!(store.read(), all());
}

/// A checkpoint of an earlier time was restored. Spark planned a batch again, of records that were never
/// read, under a number that the log had: all of it was skipped as a repeat, and counted as written.
// Promise: transaction-repeat.
#[test]
fn a_batch_before_the_last_one_is_refused() {
    for kind in KINDS {
        let (_, store, parts) = prepared(kind);
        store.commit(&of_query("q", 0), &parts).unwrap();
        store.commit(&of_query("q", 1), &[]).unwrap();
        let error = store.commit(&of_query("q", 0), &stage_all(&store)).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Contiguity, Some(Durable::No)));
        let wanted =
            "batch 0 of application etl is older than the log, which has its batches up to 1";
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(store.read(), all());
        // The last one is what Spark repeats.
        assert!(store.commit(&of_query("q", 1), &[]).unwrap().repeated);
    }
}

#[test]
fn a_commit_without_records_counts_as_a_batch() {
    let (_, store, _) = prepared(Kind::Book);
    let parts = [store.stage(JOB, 0, 1, &[])];
    store.commit(&of_query("q", 0), &parts).unwrap();
    store.commit(&of_query("q", 1), &[]).unwrap();
    assert_eq!((store.noted("etl"), store.read().len()), (Some(1), BEFORE.len()));
}

#[test]
fn a_number_that_a_record_would_not_get_is_refused() {
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
fn both_attempts_of_a_task_are_refused() {
    for kind in KINDS {
        let (_, store, mut parts) = prepared(kind);
        parts.push(store.stage(JOB, 0, 99, &["a", "bb"]));
        let error = refused(store.commit(&of_no_application(), &parts), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("by attempts 10 and 99"), "{error}");
        assert_eq!(store.read(), BEFORE);
    }
}

// Promise: transaction-attempts.
#[test]
fn a_staged_file_that_changed_leaves_the_log_as_it_was() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        let directory = match kind {
            Kind::Single => format!("/.deedbook{PATH}/staged"),
            _ => format!("{PATH}/.deedbook/staged"),
        };
        let path = format!("{directory}/{JOB}.2.0.12");
        let file = sim.open(path.as_ref(), deedbook::storage::Access::Write).unwrap();
        let mut byte = [0];
        let middle = file.len().unwrap() / 2;
        file.read_at(&mut byte, middle).unwrap();
        file.write_at(&[byte[0] ^ 1], middle).unwrap();
        let error = store.commit(&of_app(1), &parts).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Corrupt, Some(Durable::No)));
        assert_eq!(error.path().unwrap().to_str().unwrap(), path, "{error}");
        assert_eq!(kind.read(&sim), BEFORE);
        // The same handle goes on, and the batch is staged again.
        assert!(store.discard(JOB));
        let parts = stage_all(&store);
        assert_eq!(store.commit(&of_app(1), &parts).unwrap().records, 5);
        assert_eq!(kind.read(&sim), all());
    }
}

// Promise: transaction-attempts.
#[test]
fn a_missing_staged_file_is_refused_before_anything_changes() {
    let (sim, store, parts) = prepared(Kind::Book);
    assert!(store.discard(JOB));
    let error = store.commit(&of_app(1), &parts).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::Missing, Some(Durable::No)));
    drop(store);
    assert_eq!(Kind::Book.open(&sim, Mode::Append).unwrap().read(), BEFORE);
}

#[test]
fn jobs_are_listed_and_discarded_one_by_one() {
    let (sim, store, _) = prepared(Kind::Segments(4096));
    store.stage("job-12", 0, 1, &["x"]);
    let listed = |store: &Store| -> Vec<_> {
        store.staged().into_iter().map(|job| (job.job, job.files, job.is_committing)).collect()
    };
    let expected = [(JOB.to_string(), 4, false), ("job-12".to_string(), 1, false)];
    assert_eq!(listed(&store), expected);
    // A handle for reading will do.
    let reader = Kind::Segments(4096).open(&sim, Mode::Read).unwrap();
    assert!(reader.discard(JOB));
    assert_eq!(listed(&reader), expected[1..]);
    assert!(reader.abandon().unwrap_err().kind() == ErrorKind::Locked);
    for job in ["", "a/b", "a.b", "a b"] {
        refused(reader.stage_from(job, 0, 0, None, &[]), ErrorKind::InvalidArgument);
    }
}
