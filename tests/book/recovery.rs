//! Wrong sidecars, and the modes of recovery.

use crate::prelude::*;
use crate::support::formats::specimen::DIR as BOOK;

const LOG: &str = "/log/book.log";
const MARK: &str = "/log/.deedbook/mark";

/// The files of a log whose first `marked` deeds were synced before the writer died.
fn died(events: &[Event], marked: usize) -> Files {
    let (storage, options) = memory();
    let book = options.open(BOOK, Mode::Create).unwrap();
    for (i, (mug, jam)) in events.iter().enumerate() {
        book.append(*mug, jam).unwrap();
        if i + 1 == marked {
            book.sync().unwrap();
        }
    }
    let mut files = Files::of(&storage);
    files.bytes.insert(LOG.into(), log(1, events));
    files
}

fn restore(files: &Files) -> (Memory, Options) {
    let (memory, (_, options)) = (files.restore(), memory());
    (memory.clone(), options.storage(Arc::new(memory)))
}

fn with_log(files: &Files, bytes: &[u8]) -> (Memory, Options) {
    let mut files = files.clone();
    files.bytes.insert(LOG.into(), bytes.to_vec());
    restore(&files)
}

/// Damage below the mark: only `spec` and `repair` remove the records, after saving them.
// Promise: crash-in-repair.
#[test]
fn spec_recovery_and_repair_save_before_truncating() {
    let events = events(9, 40);
    let at = borders(&events);
    let files = died(&events, 6);
    let mut bytes = files.bytes[Path::new(LOG)].clone();
    bytes[at[5] as usize + 3] ^= 1;
    for by_repair in [false, true] {
        let (storage, options) = with_log(&files, &bytes);
        refused(options.open(BOOK, Mode::Append), ErrorKind::LostRecords);
        let saved_to = if by_repair {
            let report = options.repair(BOOK, FORCED).unwrap();
            assert_eq!((report.valid_end, report.cut_bytes), (at[5], at[9] - at[5]));
            report.saved.first().cloned()
        } else {
            let spec = options.clone().recovery(Recovery::Spec);
            spec.open(BOOK, Mode::Append).unwrap().recovery().saved_to.clone()
        };
        assert_eq!(read_file(&storage, &saved_to.unwrap()), bytes[at[5] as usize..]);
        let book = options.open(BOOK, Mode::Append).unwrap();
        assert_eq!(book.append(1, b"on").unwrap(), 6);
        book.close().unwrap();
        assert!(check(BOOK, &options).ok());
        assert_eq!(options.repair(BOOK, FORCED).unwrap().saved.len(), 0);
    }
}

#[test]
fn saving_a_tail_never_replaces_an_earlier_one() {
    let events = events(5, 40);
    let at = borders(&events);
    let files = died(&events, 5).without_sidecar();
    let (storage, options) = restore(&files);
    let mut saved = Vec::new();
    for _ in 0..3 {
        let mut bytes = log(1, &events);
        bytes[at[2] as usize] ^= 1;
        write_file(&storage, Path::new(LOG), &bytes);
        storage.remove(Path::new(MARK)).ok();
        saved.extend(options.repair(BOOK, FORCED).unwrap().saved);
    }
    saved.dedup();
    assert_eq!(saved.len(), 3);
    assert!(saved.iter().all(|path| read_file(&storage, path).len() as u64 == at[5] - at[2]));
}

/// Older marks do not say where the first deed begins. Read as byte 0, an older mark counted as another log's mark, and
/// every opening read the whole log.
#[test]
fn an_older_mark_without_a_start_is_used() {
    let mut files = died(&events(5, 40), 4);
    for slot in files.bytes.get_mut(Path::new(MARK)).unwrap().chunks_mut(512) {
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

/// Metadata of another size ended the salvage, and the empty copy blocked the next salvage.
#[test]
fn salvage_copies_all_deeds_despite_damaged_metadata() {
    let events = events(5, 40);
    let mut files = died(&events, 5);
    files.bytes.insert("/log/meta.bin".into(), vec![1; 255]);
    let (_, options) = restore(&files);
    assert_eq!(rescue(Path::new(BOOK), Path::new("/rescued"), &options).records, 5);
    let copy = options.open("/rescued", Mode::Read).unwrap();
    assert_eq!(contents(&read_all(&copy).0), events);
    assert_eq!(copy.meta().unwrap(), Meta::default());
}

/// Salvage counted every deed after the first damage as lost, even the deeds that it copied.
#[test]
fn salvage_counts_only_deeds_after_the_end_lost() {
    let events = events(20, 40);
    let (files, borders) = (died(&events, 20), borders(&events));
    let mut bytes = log(1, &events);
    bytes[borders[4] as usize + 12] ^= 1;
    bytes.truncate(borders[15] as usize);
    let (_, options) = with_log(&files, &bytes);
    let report = rescue(Path::new(BOOK), Path::new("/rescued"), &options);
    let loss = report.loss.unwrap();
    assert_eq!((report.records, report.damages.len()), (14, 1), "{report:?}");
    assert_eq!((loss.first, loss.records, loss.offset), (16, 5, borders[15]), "{loss:?}");
}

/// The first event of a header is 0, and the mark says "empty": a power cut lost the header's sector before the first
/// save returned. If a slot is damaged, the mark may be older than acknowledged deeds.
#[test]
fn an_older_mark_keeps_deeds_without_a_header() {
    let events = events(5, 40);
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
