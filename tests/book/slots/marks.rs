//! The mark next to the header: a commit that never returned, an exchanged log, a tail of zeros; and the places that
//! `verify` names.

use crate::slots::support::*;

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
#[test]
fn the_mark_decides_about_a_first_batch() {
    let (differs, foreign) =
        (first_batch_that_differs(), golden_log("head-3x1", &golden_events()[..3]));
    // The log, whether the writer closed it, whether a slot of the mark is damaged; verdict and deeds, if it opens.
    let cases = [
        // Header and sizes reached the disk before a power cut, the bytes of the deeds did not.
        (&differs, false, false, Some((Verdict::Torn, 0))),
        // A writer that closed the log had no pending commit: later bytes are from another program.
        (&differs, true, false, None),
        // The damaged slot may have held a newer mark, which counted the first batch.
        (&differs, false, true, None),
        // Commits of another program to an empty log count.
        (&foreign, true, false, Some((Verdict::Clean, 3))),
    ];
    for (log, closes, damages, expected) in cases {
        let disk = Sim::new();
        let book = on(&disk).open("/0i0", Mode::Create).unwrap();
        if closes {
            book.close().unwrap();
        }
        let disk = disk.kill();
        write_file(&disk, Path::new(LOG), log);
        if damages {
            let path = Path::new("/0i0/.deedbook/mark");
            let mut mark = read_file(&disk, path);
            mark[512..512 + 64].fill(7);
            write_file(&disk, path, &mark);
        }
        let opened = on(&disk).open("/0i0", Mode::Append);
        let Some(expected) = expected else {
            refused(opened, ErrorKind::Corrupt);
            assert_eq!(read_file(&disk, Path::new(LOG)), *log);
            continue;
        };
        let book = opened.unwrap();
        assert_eq!((book.recovery().verdict, book.len().unwrap()), expected);
        if let Some(saved) = book.recovery().saved_to.clone() {
            assert_eq!(read_file(&disk, &saved), log[DEEDS_AT..]);
        }
        assert_eq!(book.recovery().saved_to.is_some(), expected.0 == Verdict::Torn);
        assert_eq!(book.append(1, b"next").unwrap(), expected.1 + 1);
    }
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
