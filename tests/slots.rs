//! The layout `slots`: the golden files byte for byte, and what its header decides.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{
    Event, check, contents, data, golden, golden_events, read_all, read_past_damage, refused,
};
use deedbook::book::{Book, Layout, Mode, Options, repair, salvage};
use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::{Durability, ErrorKind, Repair, Verdict};

/// Where the first deed begins.
const DEEDS_AT: usize = 8192;

fn options() -> Options {
    Options { layout: Some(Layout::Slots), ..Options::default() }
}

fn deed(mug: u32, jam: &[u8]) -> Vec<u8> {
    let len = (jam.len() as u64 + 4).to_le_bytes();
    [&len[..], &mug.to_le_bytes(), jam, &len].concat()
}

fn deeds(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|(mug, jam)| deed(*mug, jam)).collect()
}

/// A golden log: its slots, and these events.
fn golden_log(name: &str, events: &[Event]) -> Vec<u8> {
    let slots = fs::read(data(name).join("slots.bin")).unwrap();
    let mut log = vec![0; DEEDS_AT];
    log[..48].copy_from_slice(&slots[..48]);
    log[4096..4144].copy_from_slice(&slots[48..]);
    log.extend(deeds(events));
    log
}

/// A directory of this name with this log in it.
fn place(name: &str, log: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("book.log"), log).unwrap();
    (dir, path)
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path.join("book.log")).unwrap()
}

/// Append in batches of these sizes, each one synced.
fn append(book: &Book, events: &[Event], batches: &[usize]) {
    let mut rest = events;
    for &count in batches {
        let mut batch = book.batch();
        for (mug, jam) in &rest[..count] {
            batch.push(*mug, jam).unwrap();
        }
        book.append_batch(&batch, None, None).unwrap();
        rest = &rest[count..];
    }
}

fn events_of(path: &Path) -> Vec<Event> {
    let book = Book::open(path).unwrap();
    let (found, failed) = read_all(&book);
    assert!(failed.is_none(), "{failed:?}");
    contents(&found)
}

#[test]
fn the_same_batches_give_the_golden_bytes() {
    let all = golden_events();
    let written: [(&str, &str, &[usize]); 5] = [
        ("head-3x1", "0i0", &[3]),
        ("head-5x3", "0i0", &[2, 1, 2]),
        ("head-epoch100", "0i100", &[3]),
        ("head-empty", "0i0", &[]),
        ("head-empty100", "0i100", &[]),
    ];
    for (name, dir, batches) in written {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(dir);
        let book = options().open(&path, Mode::Create).unwrap();
        append(&book, &all, batches);
        book.close().unwrap();
        let count = batches.iter().sum::<usize>();
        assert_eq!(bytes(&path), golden_log(name, &all[..count]), "{name}");
        assert_eq!(events_of(&path), all[..count]);
        assert!(check(&path, &Options::default()).ok());
        if let Some(golden) = golden() {
            assert_eq!(bytes(&path), bytes(&golden.join(name).join(dir)), "{name}");
        }
    }
}

/// Opened by its directory alone, and with its own sidecar.
#[test]
fn a_log_of_the_reference_goes_on_as_the_reference_would() {
    let all = golden_events();
    for reopen in [false, true] {
        let (_dir, path) = place("0i0", &golden_log("head-empty", &[]));
        for (from, to) in [(0, 2), (2, 3), (3, 5)] {
            let book = Options::default().open(&path, Mode::Append).unwrap();
            assert_eq!((book.layout(), book.last().unwrap()), (Layout::Slots, from as u64));
            append(&book, &all[from..to], &[to - from]);
            book.close().unwrap();
            if reopen {
                fs::remove_dir_all(path.join(".deedbook")).unwrap();
            }
        }
        assert_eq!(bytes(&path), golden_log("head-5x3", &all));
    }
}

#[test]
fn an_empty_log_takes_its_epoch_from_the_header() {
    let (_dir, path) = place("log", &golden_log("head-empty100", &[]));
    let book = Book::append_to(&path).unwrap();
    assert_eq!((book.epoch().unwrap(), book.bounds().unwrap()), (100, None));
    assert_eq!(book.append(1, b"jam").unwrap(), 101);
    drop(book);
    assert_eq!(Book::open(&path).unwrap().bounds().unwrap(), Some(101..=101));
}

/// The first save may set another epoch, which the next slot has.
#[test]
fn the_first_save_may_set_the_epoch() {
    let (_dir, path) = place("log", &golden_log("head-empty", &[]));
    let book = Book::append_to(&path).unwrap();
    let mut batch = book.batch();
    batch.push(1, b"jam").unwrap();
    assert_eq!(book.append_batch(&batch, Some(51), Some(50)).unwrap(), 51);
    drop(book);
    fs::remove_dir_all(path.join(".deedbook")).unwrap();
    assert_eq!(Book::open(&path).unwrap().bounds().unwrap(), Some(51..=51));
}

/// The reference implementation's own tests begin a log in `0i0` with event 5. Its header has a checksum;
/// that of another layout does not, and there the name is what finds a damaged one.
#[test]
fn a_log_in_0i0_may_begin_after_any_event() {
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
        assert_eq!(Book::append_to(&path).unwrap().epoch().unwrap(), 4);
    }
    let pier = Options::default().open_pier(base.path(), Mode::Read).unwrap();
    assert_eq!((pier.epoch().unwrap(), pier.bounds().unwrap()), (4, Some(5..=5)));
    for (name, layout) in [("0i3", Layout::Slots), ("0i0", Layout::Packed)] {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(name);
        let options = Options { layout: Some(layout), ..Options::default() };
        let book = options.open(&path, Mode::Create).unwrap();
        refused(book.append_batch(&batch, Some(5), Some(4)), ErrorKind::Contiguity);
    }
}

#[test]
fn a_damaged_slot_leaves_the_other_to_decide() {
    let all = golden_events();
    for (name, count, verdict) in
        [("head-badnewest", 3, Verdict::Torn), ("head-badolder", 5, Verdict::Clean)]
    {
        let log = golden_log(name, &all);
        let (_dir, path) = place("0i0", &log);
        assert_eq!(events_of(&path), all[..count], "{name}");
        let report = check(&path, &Options::default());
        assert_eq!((report.verdict, report.records), (verdict, count as u64), "{name}");
        let book = Book::append_to(&path).unwrap();
        let saved = book.recovery().saved_to.clone();
        assert_eq!(saved.is_some(), verdict == Verdict::Torn);
        if let Some(saved) = saved {
            // What is cut off can be read, and is what was there.
            assert_eq!(fs::read(&saved).unwrap(), deeds(&all[count..]));
            let tail = Book::open(&saved).unwrap();
            assert_eq!(contents(&read_all(&tail).0), all[count..]);
        }
        assert_eq!(book.append(7, b"more").unwrap(), count as u64 + 1);
        drop(book);
        fs::remove_dir_all(path.join(".deedbook")).unwrap();
        assert_eq!(events_of(&path).len(), count + 1);
        assert_eq!(check(&path, &Options::default()).verdict, Verdict::Clean);
    }
}

/// A power cut after the header reached the disk and before the deeds did.
#[test]
fn a_header_without_its_deeds_falls_back_to_the_older_one() {
    let all = golden_events();
    let whole = golden_log("head-5x3", &all);
    let third = DEEDS_AT + deeds(&all[..3]).len();
    for len in (third..whole.len()).step_by(7) {
        let (_dir, path) = place("0i0", &whole[..len]);
        assert_eq!(events_of(&path), all[..3], "{len} bytes");
    }
    // The size reached the disk, the bytes did not.
    for at in (third..whole.len()).step_by(11) {
        let mut log = whole.clone();
        log[at] ^= 0x40;
        let (_dir, path) = place("0i0", &log);
        assert_eq!(events_of(&path), all[..3], "byte {at}");
        let book = Book::append_to(&path).unwrap();
        assert_eq!(book.recovery().verdict, Verdict::Torn);
        drop(book);
        assert_eq!(check(&path, &Options::default()).verdict, Verdict::Clean);
        let book = Book::append_to(&path).unwrap();
        assert_eq!(book.append(1, b"after").unwrap(), 4);
        drop(book);
        assert_eq!(events_of(&path).len(), 4);
    }
}

/// A kill between the deeds and the header: the deeds were never committed.
#[test]
fn deeds_after_the_committed_end_are_never_promoted() {
    let all = golden_events();
    for (name, count) in [("head-3x1", 3), ("head-empty", 0)] {
        let (_dir, path) = place("0i0", &golden_log(name, &all));
        assert_eq!(events_of(&path), all[..count], "{name}");
        let report = check(&path, &Options::default());
        assert_eq!((report.verdict, report.records), (Verdict::Torn, count as u64));
        let book = Book::append_to(&path).unwrap();
        let saved = book.recovery().saved_to.clone().unwrap();
        assert_eq!(fs::read(saved).unwrap(), deeds(&all[count..]));
        assert_eq!(book.append(9, b"next").unwrap(), count as u64 + 1);
    }
}

/// Two events in the first batch, the second one cut: the reference keeps the first.
#[test]
fn of_a_first_batch_that_was_cut_the_whole_deeds_stay() {
    let all = golden_events();
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("0i0");
    let book = options().open(&path, Mode::Create).unwrap();
    append(&book, &all, &[2]);
    book.close().unwrap();
    let whole = bytes(&path);
    let (_dir, cut) = place("0i0", &whole[..whole.len() - 5]);
    assert_eq!(events_of(&cut), all[..1]);
    let book = Book::append_to(&cut).unwrap();
    assert_eq!((book.recovery().verdict, book.last().unwrap()), (Verdict::Torn, 1));
    book.append(1, b"x").unwrap();
    drop(book);
    fs::remove_dir_all(cut.join(".deedbook")).unwrap();
    assert_eq!(events_of(&cut).len(), 2);
    // With the mark of this log beside it, the loss is one.
    fs::write(path.join("book.log"), &whole[..whole.len() - 5]).unwrap();
    refused(Book::append_to(&path), ErrorKind::LostRecords);
}

/// All deeds of the first batch are there by their lengths, and a byte is not what was committed.
#[test]
fn a_first_batch_whose_checksum_differs_is_refused_and_not_taken_for_empty() {
    let all = golden_events();
    let mut log = golden_log("head-3x1", &all[..3]);
    let last = log.len() - 10;
    log[last] ^= 1;
    let (_dir, path) = place("0i0", &log);
    let error = refused(Book::append_to(&path), ErrorKind::Corrupt);
    assert!(error.message().contains("the batch of events 1 to 3: checksum"), "{error}");
    assert_eq!(check(&path, &Options::default()).verdict, Verdict::Corrupt);
    let book = Book::open(&path).unwrap();
    refused(
        book.iter(1, None).and_then(Iterator::collect::<Result<Vec<_>, _>>),
        ErrorKind::Corrupt,
    );
    assert_eq!(read_past_damage(&book).len(), 3);
    let how = Repair { force: false, accept_loss: true, dry_run: false };
    let error = refused(repair(&path, &Options::default(), how), ErrorKind::Corrupt);
    assert!(error.message().contains("3 intact deeds"), "{error}");
    assert_eq!(bytes(&path), log);
}

#[test]
fn without_a_slot_the_log_is_refused_and_salvaged() {
    let all = golden_events();
    for slots in [&[0][..], &[0, 4096]] {
        let mut log = golden_log("head-3x1", &all[..3]);
        // Of the first log the newest slot stays, of the second none does.
        for at in slots {
            log[at + 20] ^= 1;
        }
        let (dir, path) = place("0i0", &log);
        if slots.len() == 1 {
            assert_eq!(events_of(&path), all[..3]);
            continue;
        }
        let error = refused(Book::append_to(&path), ErrorKind::Corrupt);
        assert!(error.message().contains("both header slots are damaged"), "{error}");
        let to = dir.path().join("copy");
        let report = salvage(&path, &to, &Options::default(), |_, _| Ok(())).unwrap();
        assert_eq!(report.records, 3);
        assert_eq!(events_of(&to), all[..3]);
        assert_eq!(Book::open(&to).unwrap().layout(), Layout::Slots);
    }
}

/// An initial slot beside a damaged one says nothing of the deeds that lie there.
#[test]
fn committed_events_are_never_taken_for_an_empty_log() {
    let all = golden_events();
    let mut log = golden_log("head-3x1", &all[..3]);
    log[4096 + 20] ^= 1;
    let (_dir, path) = place("0i0", &log);
    refused(Book::append_to(&path), ErrorKind::Corrupt);
    assert_eq!(Book::open(&path).unwrap().len().unwrap(), 3);
    assert_eq!(bytes(&path), log);
}

/// A deed has no checksum of its own, but its block in the index has one.
#[test]
fn verify_finds_rot_that_the_layout_itself_cannot() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let options = Options { durability: Durability::Manual, ..options() };
    let book = options.open(&path, Mode::Create).unwrap();
    for number in 0..3000u32 {
        book.append(number, &[number as u8; 100]).unwrap();
    }
    book.close().unwrap();
    assert!(check(&path, &Options::default()).ok());
    let mut log = bytes(&path);
    log[DEEDS_AT + 120 * 1000 + 50] ^= 1;
    fs::write(path.join("book.log"), &log).unwrap();
    let report = check(&path, &Options::default());
    assert_eq!((report.verdict, report.records), (Verdict::Corrupt, 3000));
    let [damage] = &report.damages[..] else { panic!("{:?}", report.damages) };
    let byte = (DEEDS_AT + 120 * 1000 + 50) as u64;
    assert!((damage.offset..damage.end).contains(&byte), "{damage:?}");
    assert!(damage.reason.contains("of the block"), "{damage:?}");
}

/// An append that no sync covered survives the death of its process, and many of them are one batch.
#[test]
fn unsynced_appends_change_one_slot_until_a_sync() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let options = Options { durability: Durability::Manual, ..options() };
    let book = options.open(&path, Mode::Create).unwrap();
    let slot = |at: usize| bytes(&path)[at..at + 48].to_vec();
    let (first, second) = (slot(0), slot(4096));
    book.append(1, b"one").unwrap();
    book.append(2, b"two").unwrap();
    assert_eq!(slot(0), first);
    assert_ne!(slot(4096), second);
    // As another process finds it.
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

/// The reference takes zeros after the last deed for damage, and drops a committed event.
#[test]
fn no_space_is_reserved_after_the_last_deed() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let book = options().open(&path, Mode::Create).unwrap();
    for number in 0..5u32 {
        book.append(number, b"jam").unwrap();
        assert_eq!(bytes(&path).len() as u64, book.end().unwrap());
    }
}

/// A reader that follows must not see what is not committed.
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

#[test]
fn another_layout_than_the_logs_is_refused() {
    let (_dir, path) = place("0i0", &golden_log("head-3x1", &golden_events()[..3]));
    let packed = Options { layout: Some(Layout::Packed), ..Options::default() };
    for mode in [Mode::Read, Mode::Append] {
        let error = refused(packed.open(&path, mode), ErrorKind::InvalidArgument);
        assert!(error.message().contains("packed asked for, but the log has slots"), "{error}");
    }
    assert!(options().open(&path, Mode::Append).is_ok());
}

#[test]
fn a_repair_of_slots_leaves_a_log_that_is_clean() {
    let all = golden_events();
    let mut log = golden_log("head-3x1", &all[..3]);
    let last = log.len() - 1;
    log[last] ^= 1;
    let (_dir, path) = place("0i0", &log);
    let how = Repair { force: true, accept_loss: true, dry_run: false };
    repair(&path, &Options::default(), how).unwrap();
    fs::remove_dir_all(path.join(".deedbook")).unwrap();
    let report = check(&path, &Options::default());
    assert_eq!((report.verdict, report.records), (Verdict::Clean, 2), "{report:?}");
    assert_eq!(events_of(&path), all[..2]);
}

#[test]
fn the_padded_layout_is_read_and_not_written() {
    let all = golden_events();
    for (name, dir, first, count) in [("specC-3", "0i0", 1, 3), ("specC-epoch100", "0i100", 101, 3)]
    {
        let log = fs::read(data(name).join("book.log")).unwrap();
        let (base, path) = place(dir, &log);
        let book = Book::open(&path).unwrap();
        assert_eq!(book.layout(), Layout::Padded);
        assert_eq!(book.bounds().unwrap(), Some(first..=first + count - 1));
        assert_eq!(events_of(&path), all[..count as usize]);
        assert!(check(&path, &Options::default()).ok());
        refused(Book::append_to(&path), ErrorKind::Unsupported);
        let to = base.path().join("copy").join(dir);
        fs::create_dir(base.path().join("copy")).unwrap();
        salvage(&path, &to, &Options::default(), |_, _| Ok(())).unwrap();
        assert_eq!(events_of(&to), all[..count as usize]);
        assert_eq!(Book::open(&to).unwrap().layout(), Layout::Packed);
        assert_eq!(bytes(&path), log);
    }
    let padded = Options { layout: Some(Layout::Padded), ..Options::default() };
    let base = tempfile::tempdir().unwrap();
    refused(padded.open(base.path().join("new"), Mode::Create), ErrorKind::Unsupported);
}

#[test]
fn the_whole_golden_set_of_other_layouts_is_read() {
    let Some(golden) = golden() else { return };
    let all = golden_events();
    let expected = [
        ("head-3x1/0i0", 0, 3),
        ("head-5x3/0i0", 0, 5),
        ("head-badnewest/0i0", 0, 3),
        ("head-badolder/0i0", 0, 5),
        ("head-empty/0i0", 0, 0),
        ("head-empty100/0i100", 100, 0),
        ("head-epoch100/0i100", 100, 3),
        ("head-torn/0i0", 0, 3),
        ("specC-3/0i0", 0, 3),
        ("specC-5/0i0", 0, 5),
        ("specC-epoch100/0i100", 100, 3),
    ];
    for (name, epoch, count) in expected {
        let from = golden.join(name);
        let (_dir, path) = place(from.file_name().unwrap().to_str().unwrap(), &bytes(&from));
        let book = Book::open(&path).unwrap();
        assert_eq!(book.epoch().unwrap(), epoch, "{name}");
        assert_eq!(contents(&read_all(&book).0), all[..count], "{name}");
    }
}

/// Of a header that was half written the other one counts, and with it the appends since the last sync
/// were gone after the death of the process.
#[test]
fn a_header_that_is_half_written_takes_nothing_from_the_appends_before_it() {
    let disk = Sim::new();
    let on = |disk: &Sim| Options {
        storage: Arc::new(disk.clone()),
        durability: Durability::Manual,
        ..options()
    };
    let book = on(&disk).open("/log", Mode::Create).unwrap();
    book.append(1, b"synced").unwrap();
    book.sync().unwrap();
    book.append(2, b"appended").unwrap();
    // The first write is that of the deed.
    let half = What::Partial(std::io::ErrorKind::Other);
    disk.inject(Fault::once(2, half).of(Call::Write));
    book.append(3, b"refused").unwrap_err();
    disk.heal();
    let book = on(&disk.kill()).open("/log", Mode::Append).unwrap();
    let expected = vec![(1, b"synced".to_vec()), (2, b"appended".to_vec())];
    assert_eq!(contents(&read_all(&book).0), expected);
}

/// Where the newest slot was damaged after the log was closed, the mark vouched for its deeds, but the next
/// batch was counted from the older slot: its checksum was of other deeds, and what had been appended was
/// gone after the death of the process.
#[test]
fn appends_after_a_damaged_slot_survive_the_death_of_the_process() {
    let base = tempfile::tempdir().unwrap();
    let (path, copy) = (base.path().join("log"), base.path().join("copy"));
    let options = Options { durability: Durability::Manual, ..options() };
    let book = options.open(&path, Mode::Create).unwrap();
    book.append(1, b"one").unwrap();
    book.sync().unwrap();
    book.append(2, b"two").unwrap();
    book.close().unwrap();
    let mut log = bytes(&path);
    // The second commit wrote the first slot.
    log[20] ^= 1;
    fs::write(path.join("book.log"), &log).unwrap();
    let book = options.open(&path, Mode::Append).unwrap();
    assert_eq!(book.append(3, b"three").unwrap(), 3);
    assert_eq!(book.append(4, b"four").unwrap(), 4);
    // What lies there while the writer lives is what its death leaves.
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("book.log"), bytes(&path)).unwrap();
    let jams: Vec<_> = events_of(&copy).into_iter().map(|(_, jam)| jam).collect();
    assert_eq!(jams, [&b"one"[..], b"two", b"three", b"four"]);
}
