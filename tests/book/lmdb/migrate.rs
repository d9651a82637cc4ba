//! Environments and piers that become books.

use crate::lmdb::support::*;

// Promise: migrate-killed.
#[test]
fn an_environment_migrates_and_stays_unchanged() {
    for name in ["lmdb-100", "lmdb-100-rawmeta"] {
        let (_dir, _, dest) = space();
        let before = tree(&data(name));
        let report = bring(&data(name), &dest).unwrap();
        assert_eq!((report.events, report.found, report.resumed_from), (100, 0, None));
        let expected = golden_events();
        assert_eq!(report.bytes, expected.iter().map(|(_, jam)| jam.len() as u64).sum::<u64>());
        let numbered: Vec<_> = (1..).zip(expected).collect();
        assert_eq!(deeds(&dest), numbered);
        assert_eq!(Book::open(&dest).unwrap().meta().unwrap(), META);
        assert_eq!(tree(&data(name)), before);
    }
}

#[test]
fn a_data_file_is_named_itself() {
    let (_dir, _, dest) = space();
    assert_eq!(bring(&data("lmdb-100").join("data.mdb"), &dest).unwrap().events, 100);
}

#[test]
fn a_migrated_pier_keeps_texts_and_metadata() {
    let (_dir, _, dest) = space();
    let source = data("pier-lmdb");
    let before = tree(&source);
    let report = bring(&source, &dest).unwrap();
    let ranges: Vec<_> = report.epochs.iter().map(|log| log.events.clone().unwrap()).collect();
    assert_eq!(ranges[0], 1..=60);
    assert_eq!(*ranges[1].start(), 61);
    assert_eq!(report.meta, PIER_META);
    for (epoch, range) in [(0, &ranges[0]), (60, &ranges[1])] {
        let (from, to) = (source.join(".urb/log"), dest.join(".urb/log"));
        let (from, to) = (from.join(format!("0i{epoch}")), to.join(format!("0i{epoch}")));
        let found: Vec<_> = deeds(&to).into_iter().map(|(event, _)| event).collect();
        assert_eq!(found, range.clone().collect::<Vec<_>>());
        assert_eq!(fs::read(to.join("epoc.txt")).unwrap(), b"3");
        assert_eq!(
            fs::read(to.join("vere.txt")).unwrap(),
            fs::read(from.join("vere.txt")).unwrap()
        );
        assert_eq!(Book::open(&to).unwrap().meta().unwrap(), PIER_META);
    }
    let top = Environment::open(dest.join(".urb/log")).unwrap();
    assert_eq!((top.meta().unwrap(), top.bounds().unwrap()), (PIER_META, None));
    drop(top);
    assert_eq!(tree(&source), before);
    let again = bring(&source, &dest).unwrap();
    assert_eq!((again.found, again.resumed_from), (again.events, None));
}

#[test]
fn a_version_1_pier_migrates_from_the_top() {
    let (_dir, source, dest) = space();
    make_numbered(&source.join(".urb/log"), 1..=30);
    let report = bring(&source, &dest).unwrap();
    assert_eq!(report.epochs[0].events, Some(1..=30));
    assert_eq!(deeds(&dest.join(".urb/log/0i0")).len(), 30);
    let top = Environment::open(dest.join(".urb/log")).unwrap();
    assert_eq!(top.bounds().unwrap(), None);
    assert_eq!(top.meta().unwrap().who, Some(1));
}

#[test]
fn a_migration_copies_epochs_that_are_books() {
    let (_dir, source, dest) = space();
    let log = source.join(".urb/log");
    make(&log, &[], &[("who", b"\x05"), ("version", b""), ("life", b""), ("fake", b"")]);
    make_numbered(&log.join("0i0"), 1..=10);
    fs::write(log.join("0i0/epoc.txt"), "1").unwrap();
    let options = book::Options::new().epoch(10);
    let book = options.open(log.join("0i10"), Mode::Create).unwrap();
    book.append(7, b"eleven").unwrap();
    book.close().unwrap();
    drop(book);
    fs::write(log.join("0i10/epoc.txt"), "3\n").unwrap();
    let report = bring(&source, &dest).unwrap();
    assert_eq!(report.events, 11);
    assert_eq!(deeds(&dest.join(".urb/log/0i10")), [(11, (7, b"eleven".to_vec()))]);
}

#[test]
fn long_events_and_later_epochs_come_over() {
    let (_dir, source, dest) = space();
    let long: Vec<u8> = (0..20u32 << 20).map(|at| ((at * 31) >> 7) as u8).collect();
    make(&source, &[(101, b"\x01\0\0\0"), (102, &long), (103, b"\x02\0\0\0b")], &[]);
    let report = bring(&source, &dest).unwrap();
    assert_eq!((report.epochs[0].epoch, report.epochs[0].events.clone()), (100, Some(101..=103)));
    assert_eq!(Book::open(&dest).unwrap().read(102).unwrap().jam, long[4..]);
    let book = Book::append_to(&dest).unwrap();
    assert_eq!(book.append(0, b"next").unwrap(), 104);
}

#[test]
fn multi_byte_event_numbers_migrate_in_order() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 200..=70_000);
    assert_eq!(bring(&source, &dest).unwrap().events, 69_801);
    let expected = numbered(200..=70_000);
    for ((event, (mug, jam)), (number, value)) in deeds(&dest).into_iter().zip(expected) {
        assert_eq!((event, &[&mug.to_le_bytes()[..], &jam].concat()), (number, &value));
    }
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    let (_dir, _, dest) = space();
    let report = look(&data("pier-lmdb"), &dest).unwrap();
    assert!(report.dry_run && !dest.exists());
    assert_eq!(report.events, bring(&data("pier-lmdb"), &dest).unwrap().events);
    assert_eq!(report.bytes, look(&data("pier-lmdb"), &dest).unwrap().bytes);
}

/// Brought by processes of their own, the epochs of a pier come in any order.
#[test]
fn a_pier_migrated_by_epochs_gets_metadata_last() {
    let (_dir, _, dest) = space();
    let source = data("pier-lmdb");
    let only = |epochs: &[u64], dest: &Path| {
        let options = Options::new().epochs(epochs.to_vec());
        let mut last = (0, 0);
        let report = options.migrate(&source, dest, |done, all| {
            last = (done, all);
            Ok(())
        })?;
        assert!(epochs.is_empty() || last == (report.events, report.events));
        Ok::<_, Error>(report)
    };
    let log = dest.join(".urb/log");
    assert_eq!(only(&[], &dest).unwrap().events, 0);
    let later = only(&[60], &dest).unwrap();
    assert_eq!((later.epochs.len(), later.epochs[0].epoch), (1, 60));
    assert!(!log.join("data.mdb").exists() && !log.join("0i0").exists());
    let elsewhere = dest.with_file_name("elsewhere");
    only(&[0], &elsewhere).unwrap();
    fs::rename(elsewhere.join(".urb/log/0i0"), log.join("0i0")).unwrap();
    let signed = fs::read(log.join("0i0/epoc.txt")).unwrap();
    fs::remove_file(log.join("0i0/epoc.txt")).unwrap();
    only(&[], &dest).unwrap();
    assert!(!log.join("data.mdb").exists(), "an epoch that is not whole is there");
    fs::write(log.join("0i0/epoc.txt"), signed).unwrap();
    only(&[], &dest).unwrap();
    assert!(log.join("data.mdb").exists());
    let whole = dest.with_file_name("whole");
    bring(&source, &whole).unwrap();
    assert_eq!(contents(&log), contents(&whole.join(".urb/log")));
    assert_eq!(deeds(&log.join("0i60")), deeds(&whole.join(".urb/log/0i60")));
}
