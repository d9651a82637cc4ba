//! Every way to read a log past damage, and logs that are broken by hand.

use crate::support::common::event_of;
use crate::support::formats::subject::Event;
use crate::support::prelude::*;

/// Records of `len` bytes. No payload looks like a possible length.
pub fn plain(count: usize, len: usize) -> Vec<Event> {
    let event = |i: usize| {
        let (tag, _) = event_of(i as u64, 0);
        let byte = |at: usize| ((i * 31 + at * 7 + (at >> 8)) as u8) | 0x80;
        (tag, (0..len).map(byte).collect())
    };
    (0..count).map(event).collect()
}

pub fn broken<'a>(
    format: &'a dyn Format,
    events: &[Event],
    beside: Beside,
    change: impl FnOnce(&Specimen<'_>, &mut Vec<u8>),
) -> (Specimen<'a>, Memory, At) {
    let specimen = Specimen::new(format, events, beside);
    let mut space = specimen.space.clone();
    change(&specimen, &mut space);
    let memory = specimen.broken(&space).restore();
    let at = At::memory(&memory, specimen.path());
    (specimen, memory, at)
}

/// Make the log a copy of itself: its first file is new, and the mark names the old file.
pub fn copy_in_place(format: &dyn Format, at: &At) {
    let file = format.first_file(&at.path);
    let copy = file.with_extension("copy");
    write_file(&*at.storage, &copy, &read_file(&*at.storage, &file));
    at.storage.rename(&copy, &file).unwrap();
}

pub const WRITTEN: Reach = Reach { to: None, records: None, bytes: None, durable: false };

pub fn ways(format: &dyn Format, at: &At) -> Vec<(&'static str, Walk)> {
    let log = format.read(at).unwrap();
    let joined = |bytes: u64| {
        let mut all = Walk::default();
        for part in log.splits(bytes, None, None, true).unwrap() {
            all.records.extend(part.records);
            all.error = all.error.or(part.error);
        }
        all
    };
    vec![
        ("cursor", log.forward(None, None, true)),
        ("small splits", joined(1)),
        ("one split", joined(1 << 40)),
        ("steps of 3", log.steps(&Reach { records: Some(3), ..WRITTEN }, true)),
        ("steps of 300 bytes", log.steps(&Reach { bytes: Some(300), ..WRITTEN }, true)),
        ("one step", log.steps(&WRITTEN, true)),
        ("Arrow", log.arrow(true)),
    ]
}

/// Every way returns the records with the `expected` numbers, and a salvage copies them.
#[track_caller]
pub fn all_give(specimen: &Specimen<'_>, at: &At, expected: &[usize]) -> SalvageReport {
    let format = specimen.format;
    for (way, walk) in ways(format, at) {
        let given: Vec<_> = walk.records.iter().map(|record| record.offset as usize).collect();
        let expected: Vec<_> = expected.iter().map(|&i| specimen.edges[i]).collect();
        let (got, all) = (given.len(), expected.len());
        let first = given.iter().zip(&expected).find(|(a, b)| a != b);
        let what = format!("{}, {way}: {got} of {all}, {first:?}", format.name());
        assert!(given == expected && walk.error.is_none(), "{what}, {:?}", walk.error);
    }
    let report = format.verify(at, MANUAL).unwrap();
    assert_eq!(report.records, expected.len() as u64, "{}, verify", format.name());
    salvages(specimen, at, expected)
}

/// A salvage copies the records with the `expected` numbers, and reports their count.
#[track_caller]
pub fn salvages(specimen: &Specimen<'_>, at: &At, expected: &[usize]) -> SalvageReport {
    let format = specimen.format;
    let to = format.path_in(Path::new("/copy"));
    at.storage.create_dir(to.parent().unwrap()).unwrap();
    let report = format.salvage(at, &to, MANUAL).unwrap();
    let copied = format.read(&at.other(to)).unwrap().forward(None, None, false);
    assert!(copied.error.is_none(), "{}: {:?}", format.name(), copied.error);
    let copied = copied.events();
    let expected: Vec<_> = expected.iter().map(|&i| specimen.events[i].clone()).collect();
    let (got, all) = (copied.len(), expected.len());
    assert!(copied == expected, "{}: salvaged {got} of {all}", format.name());
    assert_eq!(report.records, got as u64, "{}", format.name());
    report
}

pub fn all_but(count: usize, lost: &[usize]) -> Vec<usize> {
    (0..count).filter(|i| !lost.contains(i)).collect()
}

pub fn unharmed(specimen: &Specimen<'_>, space: &[u8]) -> Vec<usize> {
    let is_there = |i: &usize| {
        let place = specimen.edges[*i]..specimen.edges[*i + 1];
        space.get(place.clone()) == Some(&specimen.space[place])
    };
    (0..specimen.events.len()).filter(is_there).collect()
}
