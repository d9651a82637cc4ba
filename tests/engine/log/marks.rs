//! Somebody may have lost a newer mark: the mark on disk is true, but may lack acknowledged
//! records.

use super::*;

const EVENTS: usize = 40;
const SYNCED: usize = 10;

fn events() -> Vec<Event> {
    (0..EVENTS).map(|i| (i as u32, vec![i as u8 + 1; 30])).collect()
}

/// A log whose writer synced every ten records, and died.
fn died(format: &dyn Format, how: How) -> Files {
    let (memory, at) = in_memory(format);
    let log = format.open(&at, Mode::Create, how).unwrap();
    for (i, (tag, bytes)) in events().iter().enumerate() {
        log.append(*tag, bytes).unwrap();
        if (i + 1) % SYNCED == 0 {
            log.sync().unwrap();
        }
    }
    Files::of(&memory)
}

fn mark_of(files: &mut Files) -> &mut Vec<u8> {
    let mut all = files.bytes.iter_mut();
    all.find(|(path, _)| path.ends_with("mark")).unwrap().1
}

/// The same with the newest slot of the mark damaged: the other slot has the lower number.
fn without_newest(files: &Files) -> Files {
    let mut files = files.clone();
    let mark = mark_of(&mut files);
    let seq = |at: usize| u64::from_le_bytes(mark[at + 8..at + 16].try_into().unwrap());
    let newest = if seq(0) > seq(512) { 0 } else { 512 };
    mark[newest + 30] ^= 1;
    files
}

/// The same with one bit of a record changed, its log, and the changed bytes.
fn with_a_changed_bit(format: &dyn Format, files: Files, record: usize) -> (Memory, At, Vec<u8>) {
    let mut space = files.space(format);
    let begin = format.framing().file_header(format.first_ordinal()).len();
    let size = format.framing().around() + 30;
    space[begin + record * size + size / 2] ^= 1;
    let memory = files.with_space(format, &space).restore();
    let at = At::memory(&memory, format.path_in(Path::new(DIR)));
    (memory, at, space)
}

/// The newer slot of the mark and one bit of an acknowledged record were damaged. The other slot passed for an open
/// mark: opening cut the intact records after the damage, and readers left them out.
#[test]
fn records_after_an_older_mark_are_not_cut() {
    for format in with_sums() {
        let (files, name) = (without_newest(&died(format, MANUAL)), format.name());
        let damaged = EVENTS - 7;
        let (memory, at, space) = with_a_changed_bit(format, files, damaged);
        refused(format.open(&at, Mode::Append, MANUAL).map(drop), ErrorKind::Corrupt);
        assert!(Files::of(&memory).space(format) == space, "{name}");
        let mut intact = events();
        intact.remove(damaged);
        intact.iter_mut().filter(|_| !format.framing().is_book()).for_each(|event| event.0 = 0);
        let reader = format.read(&at).unwrap();
        let read = reader.forward(None, None, true).events();
        assert_eq!((read.len(), read == intact), (39, true), "{name}");
        let checked = format.verify(&at, MANUAL).unwrap();
        assert_eq!((checked.verdict, checked.records), (Verdict::Corrupt, 39), "{name}");
        let copied = format.salvage(&at, Path::new("/copy/0i0"), MANUAL).unwrap();
        assert_eq!((copied.records, copied.uncertain), (39, 0), "{name}");
    }
}

/// A torn end without any intact record is cut as before, and the opening writes both slots again.
#[test]
fn opening_removes_torn_ends_after_an_older_mark() {
    for format in with_sums() {
        let files = without_newest(&died(format, MANUAL));
        let space = files.space(format);
        let end = space.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        let memory = files.with_space(format, &space[..end - 3]).restore();
        let at = At::memory(&memory, format.path_in(Path::new(DIR)));
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        assert_eq!(log.len().unwrap(), 39, "{}", format.name());
        assert_eq!(log.recovery().verdict.name(), "torn", "{}", format.name());
        let mut files = Files::of(&memory);
        assert!(mark_of(&mut files)[512..640].iter().all(|&byte| byte == 0), "{}", format.name());
    }
}

/// Nothing in the log was damaged, and `recovery="acknowledged"` cut ten acknowledged records.
#[test]
fn a_possibly_outdated_mark_removes_no_record() {
    for format in LARGE {
        let how = How { recovery: Recovery::Acknowledged, ..MANUAL };
        for files in [died(format, how), without_newest(&died(format, how))] {
            let memory = files.restore();
            let at = At::memory(&memory, format.path_in(Path::new(DIR)));
            let log = format.open(&at, Mode::Append, how).unwrap();
            assert_eq!(log.len().unwrap(), 40, "{}", format.name());
        }
    }
}

/// A log was written with `durability="none"` and closed. Its mark stayed open at the beginning. One bit changed weeks
/// later: opening cut 989 of 999 intact records, and `verify` and `salvage` left them out.
#[test]
fn a_log_closed_with_durability_none_is_complete() {
    let none = How { durability: Durability::None, ..MANUAL };
    for format in with_sums() {
        let (memory, at) = in_memory(format);
        let log = format.open(&at, Mode::Create, none).unwrap();
        events().iter().for_each(|(tag, bytes)| assert!(log.append(*tag, bytes).is_ok()));
        log.close().unwrap();
        let name = format.name();
        let (memory, at, space) = with_a_changed_bit(format, Files::of(&memory), 10);
        let checked = format.verify(&at, MANUAL).unwrap();
        assert_eq!((checked.verdict, checked.records), (Verdict::Corrupt, 39), "{name}");
        for how in [none, MANUAL] {
            refused(format.open(&at, Mode::Append, how).map(drop), ErrorKind::Corrupt);
        }
        assert!(Files::of(&memory).space(format) == space, "{name}");
        assert_eq!(format.salvage(&at, Path::new("/copy/0i0"), MANUAL).unwrap().records, 39);
    }
}
