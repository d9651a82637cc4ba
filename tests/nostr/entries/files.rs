//! The files of a log, and numbers that continue over all of them.

use deedbook::nostr::wal::{Entry, EventWal, Lsn, WalOptions};

use crate::support::prelude::*;

const DIR: &str = "/wal";

fn on(storage: &Arc<dyn Storage>, mode: Mode) -> Result<EventWal> {
    let options = WalOptions::new().segment_bytes(200).small(true);
    options.storage(storage.clone()).open(DIR, mode)
}

fn insert(wal: &EventWal, record: &[u8]) -> u64 {
    wal.append(&Entry::Insert { record }, 7).unwrap().0
}

fn names(wal: &EventWal) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().into();
    wal.paths().iter().map(name).collect()
}

fn numbers(wal: &EventWal, from: u64, on_corrupt: OnCorrupt) -> Result<Vec<u64>> {
    let (mut entries, mut seen) = (wal.entries(Lsn(from), on_corrupt)?, Vec::new());
    while let Some(logged) = entries.next()? {
        seen.push(logged.lsn.0);
    }
    Ok(seen)
}

/// Files of at most 200 bytes: 2 entries of 29 + 50 bytes each.
fn filled(storage: &Arc<dyn Storage>, entries: u64) -> EventWal {
    let wal = on(storage, Mode::Append).unwrap();
    let next = wal.next_lsn().0;
    for lsn in next..next + entries {
        assert_eq!(insert(&wal, &[lsn as u8; 50]), lsn);
    }
    wal
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(Memory::new())
}

#[test]
fn numbers_go_on_over_files_and_reopening() {
    let storage = memory();
    for round in 0..4 {
        let wal = filled(&storage, 3);
        assert_eq!(wal.next_lsn(), Lsn(3 * round + 4));
        assert_eq!(
            numbers(&wal, 1, OnCorrupt::Raise).unwrap(),
            (1..=3 * round + 3).collect::<Vec<_>>()
        );
        wal.close().unwrap();
    }
    let wal = on(&storage, Mode::Read).unwrap();
    assert_eq!(names(&wal)[..2], ["wal.log", "wal.000001.log"]);
    assert_eq!(names(&wal).len(), 6);
    for from in 1..=13 {
        assert_eq!(numbers(&wal, from, OnCorrupt::Raise).unwrap(), (from..=12).collect::<Vec<_>>());
    }
}

#[test]
fn stats_are_of_all_files() {
    let storage = memory();
    let wal = filled(&storage, 7);
    assert_eq!(names(&wal).len(), 4);
    wal.sync().unwrap();
    let stats = wal.stats();
    assert_eq!((stats.appends, stats.records, stats.bytes), (7, 7, 7 * 79));
    // The older files were synced when they were finished, and the newest just now.
    assert!(stats.syncs >= 4, "{stats:?}");
    wal.close().unwrap();
    assert_eq!(on(&storage, Mode::Append).unwrap().stats().records, 0);
}

#[test]
fn batch_and_long_entry_stay_in_one_file() {
    let storage = memory();
    let wal = filled(&storage, 1);
    let records: Vec<_> = (0..9).map(|time| (Entry::Insert { record: &[9; 30] }, time)).collect();
    assert_eq!(wal.append_many(&records).unwrap(), Lsn(2));
    assert_eq!(insert(&wal, &vec![1; 3 << 20]), 11);
    assert_eq!(insert(&wal, b""), 12);
    assert_eq!(names(&wal), ["wal.log", "wal.000001.log", "wal.000002.log", "wal.000003.log"]);
    drop(wal);
    let wal = on(&storage, Mode::Append).unwrap();
    assert_eq!(numbers(&wal, 0, OnCorrupt::Raise).unwrap(), (1..=12).collect::<Vec<_>>());
}

#[test]
fn files_before_the_checkpoint_go_and_numbers_continue() {
    let storage = memory();
    let wal = filled(&storage, 5);
    assert_eq!(wal.drop_before_checkpoint().unwrap().len(), 0);
    assert_eq!(wal.checkpoint(8).unwrap(), Lsn(6));
    assert_eq!(wal.drop_before_checkpoint().unwrap().len(), 2);
    assert_eq!(names(&wal), ["wal.000002.log"]);
    assert_eq!(numbers(&wal, 1, OnCorrupt::Raise).unwrap(), [5, 6]);
    drop(wal);
    let wal = on(&storage, Mode::Append).unwrap();
    assert_eq!((wal.last_checkpoint(), wal.next_lsn()), (Lsn(6), Lsn(7)));
    assert_eq!(wal.replay(OnCorrupt::Raise).unwrap().next().unwrap(), None);
    drop(wal);
    let wal = filled(&storage, 4);
    let mut replay = wal.replay(OnCorrupt::Raise).unwrap();
    for lsn in 7..=10 {
        assert_eq!(replay.next().unwrap().unwrap().lsn, Lsn(lsn));
    }
    assert_eq!(replay.next().unwrap(), None);
}

/// A header is written in place. A power cut may leave a number without a checkpoint, and a writer that crashes before
/// it writes the header leaves an older number.
#[test]
fn a_header_is_a_hint() {
    for named in [0u64, 1, 3, 99, u64::MAX] {
        let storage = memory();
        let wal = filled(&storage, 2);
        assert_eq!(wal.checkpoint(8).unwrap(), Lsn(3));
        (4..=5).for_each(|lsn| assert_eq!(insert(&wal, &[lsn; 50]), u64::from(lsn)));
        wal.drop_before_checkpoint().unwrap();
        wal.close().unwrap();
        for path in wal.paths() {
            let file = storage.open(&path, Access::Write).unwrap();
            file.write_at(&named.to_be_bytes(), 12).unwrap();
        }
        let wal = on(&storage, Mode::Append).unwrap();
        assert_eq!((wal.last_checkpoint(), insert(&wal, b"more")), (Lsn(3), 6), "{named}");
        let mut replay = wal.replay(OnCorrupt::Raise).unwrap();
        for lsn in 4..=6 {
            assert_eq!(replay.next().unwrap().unwrap().lsn, Lsn(lsn), "{named}");
        }
        assert_eq!(replay.next().unwrap(), None, "{named}");
    }
}

/// Write a log file with the given numbers, from entries of other logs.
fn spliced(storage: &Arc<dyn Storage>, numbers: &[u64]) {
    let other = memory();
    let options = WalOptions::new().storage(other.clone());
    let wal = options.open(DIR, Mode::Create).unwrap();
    let most = numbers.iter().max().copied().unwrap_or(0);
    (1..=most).for_each(|lsn| assert_eq!(insert(&wal, &[lsn as u8; 50]), lsn));
    wal.close().unwrap();
    let path = Path::new(DIR).join("wal.log");
    let bytes = read_file(&*other, &path);
    let mut spliced = bytes[..24].to_vec();
    for lsn in numbers {
        let at = 24 + 79 * (*lsn as usize - 1);
        spliced.extend_from_slice(&bytes[at..at + 79]);
    }
    let file = match storage.open(&path, Access::Write) {
        Ok(file) => file,
        Err(_) => {
            storage.create_dir(Path::new(DIR)).unwrap();
            storage.create_new(&path, 0o600).unwrap()
        }
    };
    assert_eq!(file.write_at(&spliced, 0).unwrap(), spliced.len());
}

#[test]
fn gaps_and_repeats_are_damage_between_readable_entries() {
    for (there, reason) in [
        (&[1, 2, 4, 5][..], "lsn 4, expected 3"),
        (&[1, 2, 2, 3], "lsn 2, expected 3"),
        (&[1, 2, 1], "lsn 1, expected 3"),
        (&[1, 2, 9], "lsn 9, expected 3"),
    ] {
        let storage = memory();
        spliced(&storage, there);
        let error = on(&storage, Mode::Append).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{there:?}");
        assert!(error.message().contains(reason), "{error}");
        assert_eq!((error.offset(), error.next_intact()), (Some(24 + 158), Some(24 + 158)));
        let wal = on(&storage, Mode::Read).unwrap();
        assert_eq!(numbers(&wal, 0, OnCorrupt::Raise).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(numbers(&wal, 0, OnCorrupt::Skip).unwrap(), there);
        let report = &wal.verify().unwrap()[0];
        assert_eq!((report.verdict, report.records), (Verdict::Corrupt, there.len() as u64));
    }
}

/// Another program may append to a closed log.
#[test]
fn a_gap_after_the_mark_is_damage_too() {
    let storage = memory();
    let options = WalOptions::new().storage(storage.clone());
    let wal = options.open(DIR, Mode::Create).unwrap();
    (1..=2).for_each(|lsn| assert_eq!(insert(&wal, &[lsn; 50]), u64::from(lsn)));
    wal.close().unwrap();
    spliced(&storage, &[1, 2, 4]);
    assert_eq!(options.open(DIR, Mode::Append).unwrap_err().kind(), ErrorKind::Corrupt);
    let wal = options.open(DIR, Mode::Read).unwrap();
    assert_eq!(numbers(&wal, 0, OnCorrupt::Skip).unwrap(), [1, 2, 4]);
}

#[test]
fn parameters_have_ranges() {
    for options in [
        WalOptions::new().batch_interval(Duration::from_millis(9)),
        WalOptions::new().batch_interval(Duration::from_millis(1001)),
        WalOptions::new().batch_bytes((1 << 20) - 1),
        WalOptions::new().batch_bytes((100 << 20) + 1),
        WalOptions::new().segment_bytes((10 << 20) - 1),
        WalOptions::new().segment_bytes((10 << 30) + 1),
    ] {
        let refused = options.storage(memory()).open(DIR, Mode::Create);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let options = WalOptions::new()
        .batch_interval(Duration::from_millis(10))
        .batch_bytes(1 << 20)
        .segment_bytes(10 << 20)
        .storage(memory());
    let wal = options.open(DIR, Mode::Create).unwrap();
    insert(&wal, &[1; 100]);
    // Within the interval, without a call.
    let begun = Instant::now();
    while wal.durable().unwrap() < Some(Lsn(2)) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(1));
    }
    // The log syncs before more bytes than the limit are unsynced.
    insert(&wal, &vec![1; 1 << 20]);
    assert_eq!(wal.durable().unwrap(), Some(Lsn(3)));
}

/// Readers skipped unusably high numbers, and missed the first entries.
#[test]
fn after_the_last_number_there_is_none() {
    const LAST: u64 = 1 << 62;
    let entry = |lsn: u64| {
        let parts = [&[1][..], &lsn.to_be_bytes(), &7u64.to_be_bytes(), &1u32.to_be_bytes(), b"x"];
        let entry = parts.concat();
        let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Xz, &entry);
        [&entry[..], &sum.to_be_bytes()].concat()
    };
    let begun = |entries: &[u64]| {
        let header = [&b"WLAO"[..], &1u64.to_be_bytes(), &(LAST - 2).to_be_bytes(), &[0; 4]];
        let entries: Vec<u8> = entries.iter().flat_map(|&lsn| entry(lsn)).collect();
        let storage = memory();
        storage.create_dir(Path::new(DIR)).unwrap();
        let file = storage.create_new(&Path::new(DIR).join("wal.log"), 0o600).unwrap();
        file.write_at(&[header.concat(), entries].concat(), 0).unwrap();
        storage
    };
    let storage = begun(&[LAST - 1]);
    let wal = on(&storage, Mode::Append).unwrap();
    let two = [(Entry::Insert { record: b"y" }, 7), (Entry::Insert { record: b"z" }, 7)];
    let error = wal.append_many(&two).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let expected = format!("2 entries from lsn {LAST} on, the last one is {LAST}");
    assert!(error.message().contains(&expected), "{error}");
    assert_eq!(insert(&wal, b"y"), LAST);
    let refused = wal.append(&Entry::Insert { record: b"z" }, 7);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge);
    wal.close().unwrap();
    let wal = on(&storage, Mode::Read).unwrap();
    assert_eq!(numbers(&wal, 0, OnCorrupt::Raise).unwrap(), [LAST - 1, LAST]);
    // Later entries of another program are damage.
    let wal = on(&begun(&[LAST - 1, LAST, LAST + 1]), Mode::Read).unwrap();
    assert_eq!(numbers(&wal, 0, OnCorrupt::Skip).unwrap(), [LAST - 1, LAST]);
    let report = &wal.verify().unwrap()[0];
    let reason = &report.damages[0].reason;
    assert!(reason.contains(&format!("lsn {}, limit {LAST}", LAST + 1)), "{reason}");
}

/// A thread asked for a sync while the append of another one finished the newest file. The sync
/// found the file closed, and the commit failed, though all was durable.
#[test]
fn sync_survives_another_threads_new_file() {
    let options = WalOptions::new().segment_bytes(100).small(true);
    let wal = options.storage(Arc::new(Memory::new())).open("/wal", Mode::Append).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    let durable = wal.next_lsn();
                    wal.sync().unwrap();
                    assert!(wal.durable().unwrap() >= Some(durable));
                }
            });
        }
        // Each has a file of its own.
        let mut lsns = 0..2_000;
        let appended =
            lsns.try_for_each(|_| wal.append(&Entry::Insert { record: &[1; 80] }, 7).map(drop));
        is_done.store(true, Ordering::Release);
        appended.unwrap();
    });
}
