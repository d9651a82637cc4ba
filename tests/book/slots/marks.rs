//! The mark next to the header: a commit that never returned, an exchanged log, a tail of zeros; and the places that
//! `verify` names.

use deedbook::report::MarkUse;

use crate::slots::support::*;
use crate::support::common::{read_file, write_file};

const LOG: &str = "/0i0/book.log";

fn on(disk: &Sim) -> Options {
    options().storage(Arc::new(disk.clone()))
}

/// Three events in one batch, with one changed byte in the last jam.
fn first_batch_that_differs() -> Vec<u8> {
    let mut log = golden_log("head-3x1", &golden_events()[..3]);
    let byte = log.len() - 10;
    log[byte] ^= 1;
    log
}

/// A log without a commit, then the bytes of another log.
fn begun_then(log: &[u8], close: bool) -> Sim {
    let disk = Sim::new();
    let book = on(&disk).open("/0i0", Mode::Create).unwrap();
    let disk = match close {
        true => {
            book.close().unwrap();
            disk
        }
        false => disk.kill(),
    };
    write_file(&disk, Path::new(LOG), log);
    disk
}

/// Header and sizes reached the disk before a power cut, the bytes of the deeds did not.
#[test]
fn an_unreturned_first_commit_is_removed() {
    let disk = begun_then(&first_batch_that_differs(), false);
    let book = on(&disk).open("/0i0", Mode::Append).unwrap();
    assert_eq!((book.recovery().verdict, book.len().unwrap()), (Verdict::Torn, 0));
    let saved = book.recovery().saved_to.clone().unwrap();
    assert_eq!(read_file(&disk, &saved), first_batch_that_differs()[DEEDS_AT..]);
    assert_eq!(book.append(1, b"first").unwrap(), 1);
}

/// A writer that closed the log had no pending commit: later bytes are from another program.
#[test]
fn a_differing_first_batch_after_close_is_damage() {
    let disk = begun_then(&first_batch_that_differs(), true);
    refused(on(&disk).open("/0i0", Mode::Append), ErrorKind::Corrupt);
    assert_eq!(read_file(&disk, Path::new(LOG)), first_batch_that_differs());
}

/// Commits of another program to an empty log count.
#[test]
fn a_foreign_commit_to_an_empty_log_counts() {
    let all = golden_events();
    let disk = begun_then(&golden_log("head-3x1", &all[..3]), true);
    let book = on(&disk).open("/0i0", Mode::Append).unwrap();
    assert_eq!((book.recovery().verdict, book.len().unwrap()), (Verdict::Clean, 3));
}

/// The mark has more events than the remaining slot. The search for their deeds begins at the end of the mark.
#[test]
fn a_mark_keeps_deeds_of_a_damaged_slot() {
    let all = golden_events();
    let disk = Sim::new();
    let book = on(&disk).open("/0i0", Mode::Create).unwrap();
    append(&book, &all, &[2, 1, 2]);
    book.close().unwrap();
    let mut log = read_file(&disk, Path::new(LOG));
    // The third commit wrote the second slot.
    log[4096 + 20] ^= 1;
    write_file(&disk, Path::new(LOG), &log);
    for mode in [Mode::Read, Mode::Append] {
        let book = on(&disk).open("/0i0", mode).unwrap();
        let recovery = book.recovery();
        assert_eq!((recovery.mark, recovery.verdict), (MarkUse::Used, Verdict::Clean));
        assert_eq!(contents(&read_all(&book).0), all);
    }
}

/// The deeds of the mark lie elsewhere in this log: nothing is counted from there.
#[test]
fn the_mark_of_an_exchanged_log_is_ignored() {
    let all = golden_events();
    for (ours, theirs) in [(3, 3), (3, 5), (5, 3)] {
        let disk = Sim::new();
        let book = on(&disk).open("/0i0", Mode::Create).unwrap();
        for number in 0..ours {
            book.append(number, b"a jam of another size than that of any other").unwrap();
        }
        book.close().unwrap();
        let name = if theirs == 3 { "head-3x1" } else { "head-5x3" };
        let other = golden_log(name, &all[..theirs]);
        write_file(&disk, Path::new(LOG), &other);
        for mode in [Mode::Read, Mode::Append] {
            let book = on(&disk).open("/0i0", mode).unwrap();
            let recovery = book.recovery();
            assert_eq!((recovery.mark, recovery.verdict), (MarkUse::Foreign, Verdict::Clean));
            assert_eq!(contents(&read_all(&book).0), all[..theirs], "{ours} {theirs}");
        }
    }
}

/// The suite `error_texts` has each reason of `verify`. Here other bytes follow the damage, and the events belong to an
/// epoch.
#[test]
fn verify_names_the_place_and_both_values() {
    let all = golden_events();
    let end = |count: usize| (DEEDS_AT + deeds(&all[..count]).len()) as u64;
    let found = |log: &[u8], name: &str| {
        let (_dir, path) = place(name, log);
        let damage = check(&path, &Options::default()).damages.remove(0);
        (damage.offset, damage.end, damage.reason)
    };
    let mut changed = golden_log("head-5x3", &all);
    let byte = changed.len() - 9;
    changed[byte] ^= 0x40;
    changed.extend([7; 50]);
    let (offset, damage_end, reason) = found(&changed, "0i0");
    assert_eq!((offset, damage_end), (end(3), end(5)));
    assert!(reason.starts_with("the batch of events 4 to 5: checksum "), "{reason}");
    let epoch = golden_log("head-epoch100", &all[..3]);
    let cut = &epoch[..epoch.len() - 5];
    let reason = "the header ends with event 103, the deeds with 102";
    assert_eq!(found(cut, "0i100"), (end(2), cut.len() as u64, reason.to_owned()));
}

/// The header has a checksum of the newest batch. Opening ignored the checksum if a mark vouched for the log: readers
/// returned a changed byte as a good event, and `verify` called the log clean. One of vere's own tests failed.
#[test]
fn a_mark_never_replaces_the_batch_checksum() {
    let all = golden_events();
    for batches in [&[1, 2][..], &[3], &[1, 1, 1]] {
        let disk = Sim::new();
        let book = on(&disk).open("/0i0", Mode::Create).unwrap();
        append(&book, &all[..3], batches);
        book.close().unwrap();
        drop(book);
        let before = 3 - *batches.last().unwrap() as u64;
        let mut log = read_file(&disk, Path::new(LOG));
        // A byte of the last jam.
        let byte = log.len() - 10;
        log[byte] ^= 1;
        write_file(&disk, Path::new(LOG), &log);
        let error = refused(on(&disk).open("/0i0", Mode::Append), ErrorKind::LostRecords);
        let batch = format!("the batch of events {} to 3: checksum ", before + 1);
        assert!(error.message().contains(&batch), "{error}");
        assert_eq!(read_file(&disk, Path::new(LOG)), log, "a refused opening changes nothing");

        let book = on(&disk).open("/0i0", Mode::Read).unwrap();
        let (read, failed) = read_all(&book);
        assert_eq!(contents(&read), all[..before as usize]);
        assert!(failed.unwrap().message().contains(&batch));
        assert_eq!(read_past_damage(&book).len(), 3);
        let report = check("/0i0", &on(&disk));
        assert!(!report.ok() && report.verdict == Verdict::Corrupt, "{report:?}");
        assert!(report.damages.iter().any(|damage| damage.reason.contains(&batch)), "{report:?}");

        on(&disk).repair("/0i0", FORCED).unwrap();
        let book = on(&disk).open("/0i0", Mode::Append).unwrap();
        assert_eq!(book.len().unwrap(), before);
        assert_eq!(book.recovery().loss.map(|loss| loss.first), Some(before + 1));
    }
}

/// The damaged slot may have held a newer mark, which counted the first batch: nothing shows that the commit never
/// returned.
#[test]
fn a_damaged_mark_slot_keeps_the_first_batch() {
    let disk = begun_then(&first_batch_that_differs(), false);
    let path = Path::new("/0i0/.deedbook/mark");
    let mut mark = read_file(&disk, path);
    mark[512..512 + 64].fill(7);
    write_file(&disk, path, &mark);
    refused(on(&disk).open("/0i0", Mode::Append), ErrorKind::Corrupt);
    assert_eq!(read_file(&disk, Path::new(LOG)), first_batch_that_differs());
}
