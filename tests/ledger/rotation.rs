//! When files begin and end, and the names of files.

use deedbook::ledger::{LedgerFormat, Position};

use crate::prelude::*;

fn sizes(storage: &dyn Storage) -> Vec<(String, usize)> {
    let files = listing(storage, Path::new(DIR)).into_iter();
    files.map(|(name, bytes)| (name, bytes.len())).collect()
}

#[test]
fn record_that_passes_the_cap_ends_its_file() {
    let (memory, ledger) = in_memory(100);
    // 20 bytes with the header: the sixth record passes the cap of 100, the fifth just meets it.
    for _ in 0..13 {
        ledger.append(b"0123456789ab").unwrap();
    }
    let expected = [("0-events", 120), ("1-events", 120), ("2-events", 20)];
    assert_eq!(sizes(&memory), expected.map(|(name, len)| (name.to_string(), len)));
}

#[test]
fn record_count_ends_files_and_appends_return_positions() {
    let options = memory().1.file_records_max(3);
    let ledger = options.open(small(DIR, 10_000)).unwrap();
    let shown = |at: Position| (at.file, at.record);
    let placed = (0..5).map(|number| shown(ledger.append(&event(number, 20)).unwrap()));
    assert_eq!(placed.collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    let (first, last) = ledger.append_many(events(5..12, 20)).unwrap().unwrap();
    assert_eq!((shown(first), shown(last)), ((1, 2), (3, 2)));
    assert_eq!(ledger.append_many(events(0..0, 20)).unwrap(), None);
    let files = fetch_all(&ledger);
    let counts: Vec<_> = files.iter().map(|(index, payloads)| (*index, payloads.len())).collect();
    assert_eq!(counts, [(0, 3), (1, 3), (2, 3), (3, 3)]);
}

#[test]
fn batch_is_stored_like_single_appends() {
    for (max, records) in [(100, None), (1000, Some(4)), (5000, None), (100_000, Some(1))] {
        let all = events(0..100, 90);
        let open = || {
            let (memory, options) = memory();
            let options = options.file_records_max(records);
            (memory, options.open(small(DIR, max)).unwrap())
        };
        let (one, single) = open();
        append_each(&single, &all);
        let (many, batched) = open();
        let mut batch = Batch::<LedgerFormat>::new(1 << 20);
        for (i, payload) in all.iter().enumerate() {
            batch.push(payload).unwrap();
            if i % 37 == 36 {
                batched.append_batch(&batch).unwrap();
                batch.clear();
            }
        }
        batched.append_batch(&batch).unwrap();
        assert_eq!(listing(&one, Path::new(DIR)), listing(&many, Path::new(DIR)));
        assert_eq!(single.stats().records, 100);
        assert_eq!(batched.stats().records, 100);
        assert_eq!(batched.stats().bytes, single.stats().bytes);
    }
}

#[test]
fn first_append_creates_a_file_in_each_run() {
    let (memory, options) = memory();
    for life in 0..3 {
        let ledger = options.open(small(DIR, 1000)).unwrap();
        assert_eq!(ledger.has_data().unwrap(), life > 0);
        assert_eq!(sizes(&memory).len(), life);
        ledger.append(&event(life as u64, 0)).unwrap();
        ledger.append(&event(life as u64, 0)).unwrap();
    }
    let files = listing(&memory, Path::new(DIR));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["0-events", "1-events", "2-events"]);
    for (life, bytes) in files.values().enumerate() {
        assert_eq!(*bytes, file_of(&[event(life as u64, 0), event(life as u64, 0)]));
    }
}

#[test]
fn fetch_finishes_the_file_and_starts_with_oldest() {
    let (memory, options) = memory();
    put(&memory, 10, &file_of(&events(3..5, 0)));
    put(&memory, 9, &file_of(&events(0..3, 0)));
    let ledger = options.open(small(DIR, 100_000)).unwrap();
    ledger.append(&event(5, 0)).unwrap();
    let files = fetch_all(&ledger);
    assert_eq!(files, [(9, events(0..3, 0)), (10, events(3..5, 0)), (11, events(5..6, 0))]);
    ledger.append(&event(6, 0)).unwrap();
    assert_eq!(fetch_all(&ledger).last().unwrap(), &(12, events(6..7, 0)));
}

#[test]
fn files_and_bytes_limit_a_fetch() {
    let (memory, options) = memory();
    for index in 0..6 {
        put(&memory, index, &file_of(&events(0..3, 0)));
    }
    let len = file_of(&events(0..3, 0)).len() as u64;
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let indexes = |count, max_bytes| -> Vec<u32> {
        let fetched = ledger.fetch(count, max_bytes).unwrap();
        fetched.map_or(Vec::new(), |fetched| {
            fetched.removable.unwrap().iter().map(|removable| removable.index()).collect()
        })
    };
    assert_eq!(indexes(Some(2), None), [0, 1]);
    assert_eq!(indexes(None, Some(3 * len)), [0, 1, 2]);
    assert_eq!(indexes(None, Some(3 * len - 1)), [0, 1]);
    assert_eq!(indexes(None, Some(1)), [0], "else a long file were never sent");
    assert_eq!(indexes(Some(0), None), [0; 0]);
    assert_eq!(indexes(None, None), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_fetch_opens_a_bounded_number_of_files() {
    let (memory, options) = memory();
    for index in 0..300 {
        put(&memory, index, &file_of(&events(0..1, 0)));
    }
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let first = ledger.fetch(None, None).unwrap().unwrap();
    assert_eq!(first.data.unwrap().len(), 256);
    ledger.remove(&first.removable.unwrap()).unwrap();
    assert_eq!(fetch_all(&ledger).len(), 44);
}

#[test]
fn records_of_wrong_length_are_refused_unwritten() {
    let (memory, options) = memory();
    let options = options.record_bytes_max(10);
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let error = refused(ledger.append(&[b'x'; 11]), ErrorKind::TooLarge);
    assert!(error.message().contains("11") && error.message().contains("10"), "{error}");
    assert_eq!(error.durable(), Some(Durable::No));
    refused(ledger.append(b""), ErrorKind::InvalidArgument);
    let mut batch = Batch::<LedgerFormat>::new(100);
    batch.push(b"short").unwrap();
    batch.push(&[b'x'; 11]).unwrap();
    refused(ledger.append_batch(&batch), ErrorKind::TooLarge);
    assert_eq!(batch.push(b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
    ledger.append_batch(&Batch::<LedgerFormat>::new(100)).unwrap();
    assert!(!ledger.has_data().unwrap());
    assert!(sizes(&memory).is_empty());
    ledger.append(&[b'x'; 10]).unwrap();
}

/// A store with the usual limit would have taken another store's long records for damage.
#[test]
fn higher_record_limit_also_applies_to_fetching_stores() {
    let (memory, options) = memory();
    let long = vec![b'x'; 3 << 20];
    let writer = options.record_bytes_max(4 << 20);
    let writer = writer.open(small(DIR, 1000)).unwrap();
    writer.append(&long).unwrap();
    writer.close().unwrap();
    let sender = on(memory).open(small(DIR, 1000)).unwrap();
    assert_eq!(fetch_all(&sender), [(0, vec![long])]);
    refused(sender.append(&vec![b'x'; 2 << 20]), ErrorKind::TooLarge);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let (_, options) = memory();
    for config in [small(DIR, 99), small("", 100)] {
        let error = options.open(config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    for base in ["", "a/b", "..\\x", "a\0b"] {
        let config = deedbook::ledger::LedgerConfig::lines(DIR, base);
        refused(options.open(config), ErrorKind::InvalidArgument);
    }
    for options in [
        options.clone().record_bytes_max(0),
        options.clone().record_bytes_max(1 << 32),
        options.clone().file_records_max(0),
        options.bytes_total_max(99),
    ] {
        refused(options.open(small(DIR, 100)), ErrorKind::InvalidArgument);
    }
    let (wal, book) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    deedbook::wal::Wal::create(wal.path()).unwrap();
    deedbook::book::Book::create(book.path()).unwrap();
    for dir in [wal, book] {
        refused(Options::default().open(small(dir.path(), 100)), ErrorKind::NotALog);
    }
}

/// A store lists the files before its first file. Later the store takes the next name, and lists again only if another
/// store has the name.
#[test]
fn store_continues_after_files_that_others_created() {
    let (memory, options) = memory();
    let (one, two) =
        (options.open(small(DIR, 100)).unwrap(), options.open(small(DIR, 100)).unwrap());
    let path_of = |index| Path::new(DIR).join(format!("{index}-{BASE}"));
    let full = vec![b'x'; 200];
    one.append(&full).unwrap();
    // More than the number of names that a store tries in turn.
    for _ in 1..=1100 {
        two.append(&full).unwrap();
    }
    for index in [1101, 1102] {
        one.append(&full).unwrap();
        assert!(memory.open(&path_of(index), Access::Read).is_ok(), "{index}");
    }
    two.append(&full).unwrap();
    one.append(&full).unwrap();
    assert!(memory.open(&path_of(1104), Access::Read).is_ok());
    assert_eq!(sizes(&memory).len(), 1105);
}

/// Each finished file stayed open until enough bytes had come, and in the end no file could be opened.
#[cfg(target_os = "linux")]
#[test]
fn files_that_wait_for_a_sync_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    let open = || {
        let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let files = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        files.filter(|file| file.starts_with(&place)).count()
    };
    let options = Options::new().durability(Durability::Bytes(1_000_000_000));
    let ledger = options.open(small(dir.path(), 1000)).unwrap();
    let mut most = 0;
    for number in 0..300 {
        ledger.append(&event(number, 0)).unwrap();
        send(&ledger);
        most = most.max(open());
    }
    assert!((32..100).contains(&most), "{most}");
}

#[test]
fn the_highest_index_is_the_last() {
    let (memory, options) = memory();
    put(&memory, u32::MAX - 1, &file_of(&events(0..1, 0)));
    let ledger = options.open(small(DIR, 100)).unwrap();
    ledger.append(&event(1, 0)).unwrap();
    assert_eq!(fetch_all(&ledger).len(), 2);
    let error = refused(ledger.append(&event(2, 0)), ErrorKind::TooLarge);
    assert!(error.message().contains("4294967296"), "{error}");
    assert_eq!(fetch_all(&ledger).len(), 2);
}

#[test]
fn closed_handles_refuse_and_dropped_ones_free_files() {
    let (memory, options) = memory();
    let ledger = options.open(small(DIR, 1000)).unwrap();
    ledger.append(&event(0, 0)).unwrap();
    ledger.close().unwrap();
    ledger.close().unwrap();
    assert!(ledger.is_closed());
    refused(ledger.append(&event(1, 0)), ErrorKind::Closed);
    refused(ledger.fetch(None, None), ErrorKind::Closed);
    refused(ledger.sync(), ErrorKind::Closed);
    refused(ledger.remove(&[]), ErrorKind::Closed);
    refused(ledger.has_data(), ErrorKind::Closed);
    refused(ledger.reset(), ErrorKind::Closed);
    let dropped = options.open(small(DIR, 1000)).unwrap();
    let clone = dropped.clone();
    dropped.append(&event(1, 0)).unwrap();
    drop(dropped);
    let other = options.open(small(DIR, 1000)).unwrap();
    assert_eq!(fetch_all(&other).len(), 1, "the clone still writes the second file");
    drop(clone);
    assert_eq!(fetch_all(&other), [(0, events(0..1, 0)), (1, events(1..2, 0))]);
    let path = Path::new(DIR).join(format!("1-{BASE}"));
    assert_eq!(memory.open(&path, Access::Read).unwrap().len().unwrap(), 32);
}
