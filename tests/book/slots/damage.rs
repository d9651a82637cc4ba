//! Damaged headers and batches, and the deeds that remain.

use crate::slots::support::*;

/// A kill between the deeds and the header: the deeds were never committed.
// Promise: slots-crash.
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

/// A newest batch with a deed beyond the handle's limit counted as lost in a power cut, and was removed.
#[test]
fn an_oversized_newest_batch_is_refused_not_truncated() {
    let all = [(1, vec![1; 20]), (1, vec![2; 200])];
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("0i0");
    let book = options().open(&path, Mode::Create).unwrap();
    append(&book, &all, &[1, 1]);
    book.close().unwrap();
    let whole = bytes(&path);
    fs::remove_dir_all(path.join(".deedbook")).unwrap();
    let low = || Options::new().deed_bytes_max(100);
    refused(low().open(&path, Mode::Append), ErrorKind::Corrupt);
    assert!(bytes(&path) == whole);
    let reader = low().open(&path, Mode::Read).unwrap();
    let (found, failed) = read_all(&reader);
    assert_eq!((found.len(), failed.unwrap().kind()), (1, ErrorKind::Corrupt));
    assert_eq!(events_of(&path), all);
}

/// Next to a damaged slot, the slot of an empty log won even if the first length was damaged, too.
// Promise: slots-first-batch.
#[test]
fn any_deed_counts_if_a_slot_is_damaged() {
    let all = golden_events();
    let mut log = golden_log("head-3x1", &all[..3]);
    log[4096 + 20] ^= 1;
    log[DEEDS_AT] ^= 0x20;
    let (_dir, path) = place("0i0", &log);
    refused(Book::append_to(&path), ErrorKind::Corrupt);
    assert_eq!(check(&path, &Options::default()).records, 2);
    // Bytes without a deed are no events.
    log[DEEDS_AT..].fill(0xee);
    let (_dir, path) = place("0i0", &log);
    let book = Book::append_to(&path).unwrap();
    assert_eq!((book.recovery().verdict, book.len().unwrap()), (Verdict::Torn, 0));
}

/// Opening removes a first batch lost in a power cut, and leaves no header that counts the batch.
// Promise: slots-first-batch.
#[test]
fn a_missing_first_batch_leaves_an_empty_log() {
    let all = golden_events();
    let whole = golden_log("head-3x1", &all[..3]);
    for log in [whole[..DEEDS_AT].to_vec(), [&whole[..DEEDS_AT], &[0; 200]].concat()] {
        let (_dir, path) = place("0i0", &log);
        let book = Book::append_to(&path).unwrap();
        assert_eq!((book.recovery().verdict, book.len().unwrap()), (Verdict::Torn, 0));
        book.close().unwrap();
        fs::remove_dir_all(path.join(".deedbook")).unwrap();
        // A kill before the next header leaves uncommitted deeds.
        let ghost = [&bytes(&path)[..], &deeds(&all[..1])].concat();
        fs::write(path.join("book.log"), ghost).unwrap();
        assert_eq!(events_of(&path), []);
    }
}

// Promise: slots-header.
#[test]
fn a_log_without_slots_is_refused_but_salvaged() {
    let all = golden_events();
    let mut log = golden_log("head-3x1", &all[..3]);
    [0, 4096].iter().for_each(|at| log[at + 20] ^= 1);
    let (dir, path) = place("0i0", &log);
    let error = refused(Book::append_to(&path), ErrorKind::Corrupt);
    assert!(error.message().contains("both header slots are damaged"), "{error}");
    let to = dir.path().join("copy");
    let report = Options::default().salvage(&path, &to).unwrap();
    assert_eq!(report.records, 3);
    assert_eq!(events_of(&to), all[..3]);
    assert_eq!(Book::open(&to).unwrap().layout(), Layout::Slots);
}

/// A deed has no checksum of its own, but its block in the index has one.
// Promise: slots-flip.
#[test]
fn verify_finds_rot_that_the_layout_itself_cannot() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("log");
    let options = options().durability(Durability::Manual);
    let book = options.open(&path, Mode::Create).unwrap();
    for number in 0..3000u32 {
        book.append(number, &[number as u8; 100]).unwrap();
    }
    book.sync().unwrap();
    book.append(0, b"of the next batch").unwrap();
    book.close().unwrap();
    assert!(check(&path, &Options::default()).ok());
    let mut log = bytes(&path);
    log[DEEDS_AT + 120 * 1000 + 50] ^= 1;
    fs::write(path.join("book.log"), &log).unwrap();
    let report = check(&path, &Options::default());
    assert_eq!((report.verdict, report.records), (Verdict::Corrupt, 3001));
    let [damage] = &report.damages[..] else { panic!("{:?}", report.damages) };
    let byte = (DEEDS_AT + 120 * 1000 + 50) as u64;
    assert!((damage.offset..damage.end).contains(&byte), "{damage:?}");
    assert!(damage.reason.contains("of the block"), "{damage:?}");
}

/// If a header is half written, the other header counts. With it, the appends since the last sync were lost when the
/// process crashed.
// Promise: slots-crash.
#[test]
fn a_half_written_header_loses_no_earlier_append() {
    let disk = Sim::new();
    let on = |disk: &Sim| options().storage(Arc::new(disk.clone())).durability(Durability::Manual);
    let book = on(&disk).open("/log", Mode::Create).unwrap();
    book.append(1, b"synced").unwrap();
    book.sync().unwrap();
    book.append(2, b"appended").unwrap();
    // The first write is the deed's.
    let half = What::Partial(std::io::ErrorKind::Other);
    disk.inject(Fault::once(2, half).of(Call::Write));
    book.append(3, b"refused").unwrap_err();
    disk.heal();
    let book = on(&disk.kill()).open("/log", Mode::Append).unwrap();
    let expected = vec![(1, b"synced".to_vec()), (2, b"appended".to_vec())];
    assert_eq!(contents(&read_all(&book).0), expected);
}

/// The newest slot was damaged after the log was closed. The mark vouched for the slot's deeds, but the next batch was
/// counted from the older slot: its checksum covered other deeds, and the appends were lost when the process crashed.
#[test]
fn appends_after_a_damaged_slot_survive_a_crash() {
    let base = tempfile::tempdir().unwrap();
    let (path, copy) = (base.path().join("log"), base.path().join("copy"));
    let options = options().durability(Durability::Manual);
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
    // The bytes on disk while the writer lives are the bytes that a crash leaves.
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("book.log"), bytes(&path)).unwrap();
    let jams: Vec<_> = events_of(&copy).into_iter().map(|(_, jam)| jam).collect();
    assert_eq!(jams, [&b"one"[..], b"two", b"three", b"four"]);
}
