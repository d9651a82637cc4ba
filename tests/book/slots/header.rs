//! The facts in the header, and the moments when it is written.

use crate::slots::support::*;

/// The reference implementation's own tests begin a log in `0i0` with event 5. The header of `slots` has a checksum.
/// The header of the other layout has none, so only the name reveals a damaged header.
#[test]
fn a_log_in_0i0_begins_at_any_event() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("0i0");
    let book = options().open(&path, Mode::Create).unwrap();
    let mut batch = book.batch();
    batch.push(1, b"jam").unwrap();
    refused(book.append_batch(&batch, Some(5), Some(0)), ErrorKind::Contiguity);
    assert_eq!(book.append_batch(&batch, Some(5), Some(4)).unwrap(), 5);
    book.close().unwrap();
    for sidecar in [true, false] {
        if !sidecar {
            fs::remove_dir_all(path.join(".deedbook")).unwrap();
        }
        assert_eq!(Book::open(&path).unwrap().bounds().unwrap(), Some(5..=5));
        assert!(check(&path, &Options::default()).ok());
        for mode in [Mode::Read, Mode::Append] {
            let book = options().epoch(Some(4)).open(&path, mode).unwrap();
            assert_eq!((book.epoch().unwrap(), book.last().unwrap()), (4, 5));
        }
    }
    let pier = Options::default().open_pier(base.path(), Mode::Read).unwrap();
    assert_eq!((pier.epoch().unwrap(), pier.bounds().unwrap()), (4, Some(5..=5)));
    for (name, layout) in [("0i3", Layout::Slots), ("0i0", Layout::Packed)] {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(name);
        let options = Options::new().layout(layout);
        let book = options.open(&path, Mode::Create).unwrap();
        refused(book.append_batch(&batch, Some(5), Some(4)), ErrorKind::Contiguity);
    }
}

/// An unsynced append survives a crash of its process, and many unsynced appends are one batch.
#[test]
fn unsynced_appends_change_one_slot_until_a_sync() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let options = options().durability(Durability::Manual);
    let book = options.open(&path, Mode::Create).unwrap();
    let slot = |at: usize| bytes(&path)[at..at + 48].to_vec();
    let (first, second) = (slot(0), slot(4096));
    book.append(1, b"one").unwrap();
    book.append(2, b"two").unwrap();
    assert_eq!(slot(0), first);
    assert_ne!(slot(4096), second);
    assert_eq!(events_of(&path).len(), 2);
    book.sync().unwrap();
    let second = slot(4096);
    book.append(3, b"three").unwrap();
    book.append(4, b"four").unwrap();
    assert_eq!(slot(4096), second);
    assert_eq!(events_of(&path).len(), 4);
    std::mem::forget(book);
    let (_dir, copy) = place("log", &bytes(&path));
    assert_eq!(Book::append_to(&copy).unwrap().last().unwrap(), 4);
}

/// Deeds and header go to stable storage together, by one fdatasync for each commit.
#[test]
fn a_commit_syncs_once() {
    let disk = Sim::new();
    let options = options().storage(Arc::new(disk.clone()));
    let book = options.open("/log", Mode::Create).unwrap();
    // The first append opens the mark, durably.
    book.append(0, b"jam").unwrap();
    let before = book.stats().unwrap().syncs;
    let syncs = |of: Call| {
        // Syncs of any file, counted because each is a lie.
        disk.heal();
        disk.inject(Fault::ever(1, What::Lie).of(of));
    };
    for (round, of) in [Call::Sync, Call::SyncDir].into_iter().enumerate() {
        let fired = disk.fired();
        syncs(of);
        for number in 1..=20u32 {
            book.append(number, &vec![1; 100 * number as usize]).unwrap();
        }
        for count in [1, 7] {
            append(&book, &vec![(1, b"of a batch".to_vec()); count], &[count]);
        }
        book.commit(1, b"committed").unwrap();
        let (commits, rounds) = (23, round as u64 + 1);
        assert_eq!(disk.fired() - fired, if of == Call::Sync { commits } else { 0 }, "{of:?}");
        assert_eq!(book.stats().unwrap().syncs, before + rounds * commits);
    }
}

/// A header with the right end is not written again.
#[test]
fn reopening_slots_syncs_no_more_than_packed() {
    let syncs = [Layout::Packed, Layout::Slots].map(|layout| {
        let disk = Sim::new();
        let options = Options::new().layout(layout).storage(Arc::new(disk.clone()));
        let book = options.open("/log", Mode::Create).unwrap();
        append(&book, &[(1, b"one".to_vec()), (2, b"two".to_vec())], &[1, 1]);
        book.close().unwrap();
        disk.inject(Fault::ever(1, What::Lie).of(Call::Sync));
        let book = options.open("/log", Mode::Append).unwrap();
        assert_eq!(book.last().unwrap(), 2);
        disk.fired()
    });
    assert_eq!(syncs[0], syncs[1]);
}

/// A follower must not see uncommitted deeds.
#[test]
fn a_reader_sees_what_the_header_counts() {
    let all = golden_events();
    let (_dir, path) = place("0i0", &golden_log("head-3x1", &all[..3]));
    let reader = Book::open(&path).unwrap();
    let whole = golden_log("head-5x3", &all);
    let write = |log: &[u8]| fs::write(path.join("book.log"), log).unwrap();
    let mut ghost = golden_log("head-3x1", &all);
    write(&ghost);
    assert_eq!(reader.refresh().unwrap(), 3);
    ghost[4096..4144].copy_from_slice(&whole[4096..4144]);
    write(&ghost);
    assert_eq!(reader.refresh().unwrap(), 5);
}

/// The checksum of a batch is read in parts.
#[test]
fn a_batch_may_exceed_the_read_buffer() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let book = options().open(&path, Mode::Create).unwrap();
    let events: Vec<Event> = (0..5u32).map(|at| (at, vec![at as u8; 700_001])).collect();
    append(&book, &events, &[1, 4]);
    book.close().unwrap();
    fs::remove_dir_all(path.join(".deedbook")).unwrap();
    assert_eq!(events_of(&path), events);
    let mut log = bytes(&path);
    let byte = log.len() - 100;
    log[byte] ^= 1;
    fs::write(path.join("book.log"), &log).unwrap();
    assert_eq!(events_of(&path), events[..1]);
}

/// Each look of a reader summed the whole batch again, and walked back over the batch. Following a writer that does not
/// sync took time with the square of the appended bytes.
#[test]
fn a_refresh_reads_only_newly_appended_bytes() {
    let disk = Sim::new();
    let storage = Arc::new(disk.clone());
    let options = options().durability(Durability::Manual).storage(storage);
    let book = options.open("/log", Mode::Create).unwrap();
    for _ in 0..3 {
        book.append(0, b"synced").unwrap();
    }
    book.sync().unwrap();
    let reader = options.clone().layout(None).open("/log", Mode::Read).unwrap();
    let mut calls = Vec::new();
    for number in 1..=200u32 {
        // In total, more than one read of the sum covers.
        let jam = vec![number as u8; if number % 10 == 0 { 700_000 } else { 40 }];
        let event = book.append(number, &jam).unwrap();
        let before = disk.calls();
        assert_eq!(reader.refresh().unwrap(), event);
        calls.push(disk.calls() - before);
        assert_eq!(reader.read(event).unwrap().jam, jam);
    }
    let (early, late) = (&calls[..20], &calls[180..]);
    let most = |calls: &[u64]| calls.iter().copied().max().unwrap();
    assert!(most(late) <= most(early) + 2, "{early:?}, later {late:?}");
    // A sync begins another batch. A writer that opens the log does, too.
    book.sync().unwrap();
    for round in 0..3 {
        assert_eq!(book.append(1, &[round; 9]).unwrap(), reader.refresh().unwrap());
    }
    drop(book);
    let book = options.open("/log", Mode::Append).unwrap();
    for round in 0..3 {
        assert_eq!(book.append(1, &[round; 9]).unwrap(), reader.refresh().unwrap());
    }
}

/// A header may reach the file before its deeds. A reader that has summed the batch waits for the deeds.
#[test]
fn a_reader_ignores_counted_deeds_without_their_bytes() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let options = options().durability(Durability::Manual);
    let book = options.open(&path, Mode::Create).unwrap();
    let grown: Vec<_> = (1..=4u32)
        .map(|number| {
            book.append(number, &[number as u8; 50]).unwrap();
            bytes(&path)
        })
        .collect();
    let (_dir, copy) = place("log", &grown[1]);
    let reader = Book::open(&copy).unwrap();
    assert_eq!(reader.last().unwrap(), 2);
    for (known, whole) in [(2, &grown[2]), (3, &grown[3])] {
        for at in [60, 30] {
            let mut early = whole.clone();
            let byte = early.len() - at;
            early[byte] ^= 1;
            fs::write(copy.join("book.log"), &early).unwrap();
            assert_eq!(reader.refresh().unwrap(), known);
        }
        fs::write(copy.join("book.log"), whole).unwrap();
        assert_eq!(reader.refresh().unwrap(), known + 1);
        assert_eq!(reader.read(known + 1).unwrap().jam, [known as u8 + 1; 50]);
    }
}
