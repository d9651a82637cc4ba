//! Payloads that hold deeds, sidecars that are wrong, and the modes of recovery.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deedbook::book::{MarkUse, Meta, Mode, Options, Recovery, repair};
use deedbook::storage::{Memory, Storage};
use deedbook::{ErrorKind, Verdict};

use crate::support::common;
use common::{
    Event, borders, check, contents, crc32, deed, event_of, events, log, make, memory, read_all,
    read_file, read_past_damage, refused, rescue, restore, snapshot, snapshot_unlocked, write_file,
};

const BOOK: &str = "/book";
const LOG: &str = "/book/book.log";
const MARK: &str = "/book/.deedbook/mark";
const INDEX: &str = "/book/.deedbook/index";

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files of a log whose first `marked` deeds were synced before its writer died.
fn died(events: &[Event], marked: usize) -> Files {
    died_under(Recovery::Valid, events, marked)
}

fn died_under(recovery: Recovery, events: &[Event], marked: usize) -> Files {
    let (storage, options) = memory();
    let options = options.recovery(recovery);
    let book = options.open(BOOK, Mode::Create).unwrap();
    for (i, (mug, jam)) in events.iter().enumerate() {
        book.append(*mug, jam).unwrap();
        if i + 1 == marked {
            book.sync().unwrap();
        }
    }
    let mut files = snapshot(&storage, Path::new(BOOK));
    files.insert(LOG.into(), log(1, events));
    files
}

fn with_log(files: &Files, bytes: &[u8]) -> (Memory, Options) {
    let mut files = files.clone();
    files.insert(LOG.into(), bytes.to_vec());
    restore(&files)
}

fn without_sidecar(files: &Files) -> Files {
    let outside = |path: &&PathBuf| !path.to_str().unwrap().contains(".deedbook");
    files.keys().filter(outside).map(|path| (path.clone(), files[path].clone())).collect()
}

/// Two small deeds, one whose payload holds deeds at its begin, middle and end, two small ones.
fn nested() -> Vec<Event> {
    let inner = |i: u64| deed(7000 + i as u32, &event_of(900 + i, 30).1);
    let jam = [inner(0), inner(1), b"between".to_vec(), inner(2), inner(3)].concat();
    vec![event_of(1, 30), event_of(2, 30), (5, jam), event_of(4, 30), event_of(5, 30)]
}

/// A deed that readers give and that is none of the log's. A salvage copies them, as uncertain.
fn surfaced(events: &[Event], options: &Options) -> Option<Event> {
    let book = options.open(BOOK, Mode::Read).unwrap();
    let given = contents(&read_past_damage(&book));
    assert!(check(BOOK, options).records <= events.len() as u64);
    given.into_iter().find(|deed| !events.contains(deed))
}

/// Behind the mark everything is unacknowledged: cut at the outer deed, whatever its payload holds.
// Promise: record-in-record.
#[test]
fn deeds_inside_a_torn_deed_never_surface_above_the_mark() {
    let events = nested();
    let at = borders(&events);
    let files = died(&events[..3], 2);
    for cut in at[2]..at[3] {
        let bytes = &files[Path::new(LOG)][..cut as usize];
        let (storage, options) = with_log(&files, bytes);
        assert_eq!(surfaced(&events, &options), None, "cut at {cut}");
        assert_eq!(rescue(Path::new(BOOK), Path::new("/rescued"), &options).records, 2);
        let report = check(BOOK, &options);
        assert_eq!(
            (report.records, report.verdict == Verdict::Corrupt),
            (2, false),
            "cut at {cut}"
        );
        let book = options.open(BOOK, Mode::Append).unwrap();
        assert_eq!(book.bounds().unwrap(), Some(1..=2));
        assert_eq!(book.recovery().cut_bytes, cut - at[2]);
        assert_eq!(read_file(&storage, Path::new(LOG)), log(1, &events[..2]));
    }
}

/// Every bit of the outer deed's lengths, checksum and head, and its sectors lost to zeros.
// Promise: record-in-record.
#[test]
fn deeds_inside_a_deed_with_broken_framing_never_surface() {
    let events = nested();
    let at = borders(&events).into_iter().map(|at| at as usize).collect::<Vec<_>>();
    let whole = log(1, &events);
    let framing = (at[2]..at[2] + 12).chain(at[3] - 12..at[3]);
    let mut broken: Vec<(String, Vec<u8>)> = Vec::new();
    for at in framing {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            broken.push((format!("bit {bit} of byte {at}"), bytes));
        }
    }
    for zeros in [at[2]..at[2] + 8, at[2]..at[2] + 12, at[3] - 12..at[3], at[2]..at[3]] {
        let mut bytes = whole.clone();
        bytes[zeros.clone()].fill(0);
        broken.push((format!("zeros {zeros:?}"), bytes));
    }
    for marked in [2, 3, 5] {
        let files = died(&events, marked);
        for (what, bytes) in &broken {
            let what = format!("{marked} acknowledged, {what}");
            let (storage, options) = with_log(&files, bytes);
            assert_eq!(surfaced(&events, &options), None, "{what}");
            match (marked, options.open(BOOK, Mode::Append)) {
                (2, opened) => assert_eq!(opened.unwrap().last().unwrap(), 2, "{what}"),
                (3, opened) => {
                    refused(opened, ErrorKind::LostRecords);
                    assert_eq!(&read_file(&storage, Path::new(LOG)), bytes, "{what}");
                }
                // Opening looks at the mark's own deed only; a check has noted the damage.
                (_, opened) => {
                    refused(opened, ErrorKind::Corrupt);
                    assert_eq!(&read_file(&storage, Path::new(LOG)), bytes, "{what}");
                }
            }
        }
    }
}

// Promise: record-in-record.
#[test]
fn without_a_mark_a_torn_deed_that_holds_deeds_is_refused() {
    let events = nested();
    let at = borders(&events);
    let files = without_sidecar(&died(&events[..3], 3));
    let first_inner = at[2] + 12 + 24 + event_of(900, 30).1.len() as u64;
    for cut in at[2] + 1..at[3] {
        let bytes = &files[Path::new(LOG)][..cut as usize];
        let (storage, options) = with_log(&files, bytes);
        let opened = options.open(BOOK, Mode::Append);
        if cut < first_inner {
            assert_eq!(opened.unwrap().last().unwrap(), 2, "cut at {cut}");
        } else {
            let error = refused(opened, ErrorKind::Corrupt);
            assert_eq!((error.offset(), error.next_intact()), (Some(at[2]), Some(at[2] + 12)));
            assert_eq!(read_file(&storage, Path::new(LOG)), bytes);
        }
    }
}

/// A log with several blocks, closed, and how it is read in every way.
fn large() -> (Vec<Event>, Files) {
    let events = events(1500, 400);
    let (storage, options) = memory();
    make(Path::new(BOOK), &options, &events);
    let files = snapshot(&storage, Path::new(BOOK));
    assert!(files[Path::new(INDEX)].len() > 16 + 3 * 24);
    (events, files)
}

// Promise: mark-index.
#[test]
fn a_mark_ahead_of_the_file_is_refused_and_says_what_is_lost() {
    let (events, files) = large();
    let older = log(1, &events[..1000]);
    let (storage, options) = with_log(&files, &older);
    let before = snapshot_unlocked(&storage, Path::new(BOOK));
    let error = refused(options.open(BOOK, Mode::Append), ErrorKind::LostRecords);
    assert_eq!(error.offset(), Some(older.len() as u64));
    assert_eq!(snapshot_unlocked(&storage, Path::new(BOOK)), before);
    let book = options.open(BOOK, Mode::Read).unwrap();
    let (deeds, failed) = read_all(&book);
    assert_eq!((deeds.len(), failed.is_some()), (1000, true));
    let damage = book.recovery().damage.clone().unwrap();
    assert_eq!((damage.first_lost, damage.records_lost), (Some(1001), Some(500)));
    assert!(check(BOOK, &options).lost_acknowledged);
}

#[test]
fn acknowledged_recovery_cuts_back_to_the_mark_and_valid_does_not() {
    let events = events(9, 40);
    // The writer must know of it, because then it makes its marks durable too.
    let files = died_under(Recovery::Acknowledged, &events, 4);
    let mut torn = files[Path::new(LOG)].clone();
    torn.truncate(torn.len() - 3);
    let (_, options) = with_log(&files, &torn);
    assert_eq!(options.open(BOOK, Mode::Append).unwrap().last().unwrap(), 8);
    let (storage, options) = with_log(&files, &torn);
    let options = options.recovery(Recovery::Acknowledged);
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!((book.last().unwrap(), book.recovery().cut_records), (4, 4));
    // The report said that the log ends after the eighth deed, which was cut.
    let (borders, recovery) = (borders(&events), book.recovery());
    let written = torn.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1;
    assert_eq!((recovery.valid_end, recovery.torn_bytes), (borders[4], written - borders[8]));
    assert_eq!(read_file(&storage, Path::new(LOG)), log(1, &events[..4]));
    let (mug, jam) = &events[8];
    assert_eq!(book.append(*mug, jam).unwrap(), 5);
    book.close().unwrap();
    assert_eq!(options.open(BOOK, Mode::Append).unwrap().last().unwrap(), 5);
}

/// Damage below the mark, which only `spec` and `repair` cut, after saving what they cut.
// Promise: crash-in-repair.
#[test]
fn spec_recovery_and_repair_cut_below_the_mark_after_saving() {
    let events = events(9, 40);
    let at = borders(&events);
    let files = died(&events, 6);
    let mut bytes = files[Path::new(LOG)].clone();
    bytes[at[5] as usize + 3] ^= 1;
    for by_repair in [false, true] {
        let (storage, options) = with_log(&files, &bytes);
        refused(options.open(BOOK, Mode::Append), ErrorKind::LostRecords);
        let saved_to = if by_repair {
            let report = repair(
                BOOK,
                &options,
                deedbook::Repair { force: true, accept_loss: true, dry_run: false },
            )
            .unwrap();
            assert_eq!((report.valid_end, report.cut_bytes), (at[5], at[9] - at[5]));
            report.saved_to
        } else {
            let spec = options.clone().recovery(Recovery::Spec);
            spec.open(BOOK, Mode::Append).unwrap().recovery().saved_to.clone()
        };
        assert_eq!(read_file(&storage, &saved_to.unwrap()), bytes[at[5] as usize..]);
        let book = options.open(BOOK, Mode::Append).unwrap();
        assert_eq!(book.append(1, b"on").unwrap(), 6);
        book.close().unwrap();
        assert!(check(BOOK, &options).ok());
        assert_eq!(
            repair(
                BOOK,
                &options,
                deedbook::Repair { force: true, accept_loss: true, dry_run: false }
            )
            .unwrap()
            .saved_to,
            None
        );
    }
}

#[test]
fn saving_a_tail_never_replaces_an_earlier_one() {
    let events = events(5, 40);
    let at = borders(&events);
    let files = without_sidecar(&died(&events, 5));
    let (storage, options) = restore(&files);
    let mut saved = Vec::new();
    for _ in 0..3 {
        let mut bytes = log(1, &events);
        bytes[at[2] as usize] ^= 1;
        write_file(&storage, Path::new(LOG), &bytes);
        storage.remove(Path::new(MARK)).ok();
        saved.push(
            repair(
                BOOK,
                &options,
                deedbook::Repair { force: true, accept_loss: true, dry_run: false },
            )
            .unwrap()
            .saved_to
            .unwrap(),
        );
    }
    saved.dedup();
    assert_eq!(saved.len(), 3);
    assert!(saved.iter().all(|path| read_file(&storage, path).len() as u64 == at[5] - at[2]));
}

#[test]
fn a_file_in_place_of_another_log_is_judged_by_what_it_holds() {
    let files = died(&events(5, 40), 5);
    let other = [(9, b"other".to_vec()), (8, b"log".to_vec())];
    let (_, options) = with_log(&files, &log(1, &other));
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!((book.len().unwrap(), book.recovery().cut_bytes), (2, 0));
    assert_eq!(book.recovery().mark, MarkUse::Foreign);
    assert_eq!(contents(&read_all(&book).0), other);
}

/// Older marks do not say where the first deed begins. Taken for byte 0, such a mark passed for that
/// of whatever log lay there, and its own log was read as a whole on every opening.
#[test]
fn a_mark_that_does_not_say_where_the_first_deed_begins_counts_like_any_other() {
    let mut files = died(&events(5, 40), 4);
    for slot in files.get_mut(Path::new(MARK)).unwrap().chunks_mut(512) {
        slot[96..104].fill(0);
        let sum = crc32(&slot[..124]);
        slot[124..128].copy_from_slice(&sum.to_le_bytes());
    }
    let (_, options) = restore(&files);
    let book = options.open(BOOK, Mode::Append).unwrap();
    let recovery = book.recovery();
    assert_eq!((recovery.mark, recovery.scanned_records), (MarkUse::Used, 1), "{recovery:?}");
    let other = [(9, b"other".to_vec()), (8, b"log".to_vec())];
    let (_, options) = with_log(&files, &log(1, &other));
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!((book.recovery().mark, book.len().unwrap()), (MarkUse::Foreign, 2));
}

/// Metadata of another size ended the salvage, and the empty copy stood in the way of the next one.
#[test]
fn metadata_that_is_damaged_keeps_no_deed_from_being_salvaged() {
    let events = events(5, 40);
    let mut files = died(&events, 5);
    files.insert("/book/meta.bin".into(), vec![1; 255]);
    let (_, options) = restore(&files);
    assert_eq!(rescue(Path::new(BOOK), Path::new("/rescued"), &options).records, 5);
    let copy = options.open("/rescued", Mode::Read).unwrap();
    assert_eq!(contents(&read_all(&copy).0), events);
    assert_eq!(copy.meta().unwrap(), Meta::default());
}

/// The first event of a header is 0, and the mark says "empty": a power cut took the header's sector before the
/// first save returned. With a damaged slot, the mark may be older than acknowledged deeds.
#[test]
fn deeds_without_a_header_are_kept_beside_an_older_mark() {
    let events = nested();
    let (storage, options) = memory();
    let book = options.open(BOOK, Mode::Create).unwrap();
    events.iter().for_each(|(mug, jam)| assert!(book.append(*mug, jam).is_ok()));
    let mut headless = read_file(&storage, Path::new(LOG));
    headless[8..16].fill(0);
    write_file(&storage, Path::new(LOG), &headless);
    let read = || options.open(BOOK, Mode::Read).unwrap().recovery().verdict;
    assert_eq!(read(), Verdict::Torn);
    let mut mark = read_file(&storage, Path::new(MARK));
    mark[512..512 + 64].fill(7);
    write_file(&storage, Path::new(MARK), &mark);
    assert_eq!(read(), Verdict::Corrupt);
}
