//! The damaged logs whose reports the file has: a log with a change, and a mark beside it or none.

use std::path::Path;

use deedbook::storage::{Memory, Storage};
use deedbook::wal::Lsn;
use deedbook::{Mode, Recovery};

use crate::support::formats::book::{BookFormat, SlotsFormat};
use crate::support::formats::framing::Framing;
use crate::support::formats::specimen::{Beside, DIR, Files, Specimen, segment_index};
use crate::support::formats::subject::{At, Format, How, MANUAL};
use crate::support::formats::views::plain;
use crate::support::formats::wal::{SINGLE, TINY};

pub const FORMATS: [&dyn Format; 4] = [&BookFormat, &SlotsFormat, &SINGLE, &TINY];

/// So few and so short that a reader can check each figure by hand.
const RECORDS: usize = 6;
const BYTES: usize = 40;
/// Each of these ends a block of the index.
const LARGE: (usize, usize) = (5, 70_000);

type Change = fn(&Specimen<'_>, &mut Vec<u8>);

const CHANGES: [(&str, Change); 15] = [
    ("as it was", |_, _| {}),
    ("24 zeros after the end", |_, space| space.resize(space.len() + 24, 0)),
    ("700 zeros and a byte after the end", |_, space| {
        space.resize(space.len() + 700, 0);
        space.push(7);
    }),
    ("a byte of record 1 changed", |specimen, space| flip(specimen, space, 1)),
    ("a byte of record 2 changed", |specimen, space| flip(specimen, space, 2)),
    ("a byte of record 5 changed", |specimen, space| flip(specimen, space, 5)),
    ("a byte of record 6 changed", |specimen, space| flip(specimen, space, 6)),
    ("bytes of records 2 and 5 changed", |specimen, space| {
        flip(specimen, space, 2);
        flip(specimen, space, 5);
    }),
    ("the length of record 2 changed", |specimen, space| {
        space[specimen.edges[1] + specimen.format.framing().length().start] ^= 3;
    }),
    ("record 2 is zeros", |specimen, space| {
        space[specimen.edges[1]..specimen.edges[2]].fill(0);
    }),
    ("zeros from record 5 on", |specimen, space| {
        let from = specimen.edges[4];
        space[from..].fill(0);
    }),
    ("record 6 is cut short", |specimen, space| space.truncate(specimen.edges[5] + 15)),
    ("record 6 is cut off", |specimen, space| space.truncate(specimen.edges[5])),
    ("records 2 to 6 are cut off", |specimen, space| space.truncate(specimen.edges[1])),
    ("all of it is cut off", |specimen, space| space.truncate(specimen.edges[0])),
];

const BESIDES: [(&str, Beside); 6] = [
    ("3 were synced", Beside::Open(3)),
    ("all were synced", Beside::Open(RECORDS)),
    ("none was synced", Beside::Open(0)),
    ("closed", Beside::Closed(RECORDS)),
    ("closed with 3, and 3 by another program", Beside::Closed(3)),
    ("nothing beside it", Beside::Nothing),
];

/// A byte of the payload of a record, counted from 1.
fn flip(specimen: &Specimen<'_>, space: &mut [u8], record: usize) {
    space[specimen.edges[record - 1] + specimen.format.framing().head() + 3] ^= 1;
}

/// Every situation of a format: its name, the files, and how the log is opened.
pub fn each(format: &dyn Format) -> Vec<(String, Files, How)> {
    let mut all = Vec::new();
    for (mark, beside) in BESIDES {
        let specimen = Specimen::new(format, &plain(RECORDS, BYTES), beside);
        for (what, change) in CHANGES {
            all.push((format!("{what}, {mark}"), changed(&specimen, change), MANUAL));
        }
        without_a_segment(&specimen, mark, &mut all);
    }
    large(format, &mut all);
    exact(format, &mut all);
    limited(format, &mut all);
    empty(format, &mut all);
    dropped(format, &mut all);
    other_marks(format, &mut all);
    all
}

/// The files of a log with this change.
fn changed(specimen: &Specimen<'_>, change: Change) -> Files {
    let mut space = specimen.space.clone();
    change(specimen, &mut space);
    specimen.broken(&space)
}

/// Logs of which a segment is missing.
fn without_a_segment(specimen: &Specimen<'_>, mark: &str, all: &mut Vec<(String, Files, How)>) {
    if specimen.format.segment_bytes().is_none() {
        return;
    }
    // Where segment 3 begins, a record ends.
    for missing in [0, 2, 3, 4] {
        let mut files = specimen.files.clone();
        files.bytes.retain(|path, _| segment_index(path) != Some(missing));
        all.push((format!("segment {missing} is missing, {mark}"), files, MANUAL));
    }
}

/// Logs with blocks in the index.
fn large(format: &dyn Format, all: &mut Vec<(String, Files, How)>) {
    if format.segment_bytes().is_some() {
        return;
    }
    let (records, bytes) = LARGE;
    for (mark, beside) in [
        ("3 were synced", Beside::Open(3)),
        ("closed", Beside::Closed(records)),
        ("closed with 3, and 2 by another program", Beside::Closed(3)),
        ("nothing beside it", Beside::Nothing),
    ] {
        let specimen = Specimen::new(format, &plain(records, bytes), beside);
        for (what, change) in [CHANGES[0], CHANGES[4], CHANGES[5], CHANGES[13]] {
            let name = format!("of {bytes} bytes each: {what}, {mark}");
            all.push((name, changed(&specimen, change), MANUAL));
        }
    }
}

/// Logs whose opening cuts what was not acknowledged.
fn exact(format: &dyn Format, all: &mut Vec<(String, Files, How)>) {
    let how = How { recovery: Recovery::Acknowledged, ..MANUAL };
    for (mark, beside) in &BESIDES[..5] {
        let specimen = Specimen::with(format, how, &plain(RECORDS, BYTES), *beside);
        for (what, change) in [CHANGES[0], CHANGES[1], CHANGES[6], CHANGES[12]] {
            let name = format!("acknowledged only: {what}, {mark}");
            all.push((name, changed(&specimen, change), how));
        }
    }
}

/// Empty logs, and a header whose first number is not that of the mark.
fn empty(format: &dyn Format, all: &mut Vec<(String, Files, How)>) {
    for (mark, closes) in [("its writer died", false), ("closed", true)] {
        let memory = Memory::new();
        let path = format.path_in(Path::new(DIR));
        memory.create_dir(path.parent().unwrap()).unwrap();
        let log = format.create(&At::memory(&memory, path), &[]);
        if closes {
            log.close().unwrap();
        }
        let files = Files::of(&memory);
        all.push((format!("empty, {mark}"), files.clone(), MANUAL));
        all.push((format!("empty, {mark}, nothing beside it"), files.without_sidecar(), MANUAL));
        if format.framing() == Framing::Book {
            let later = files.with_space(format, &format.framing().file_header(101));
            let name = format!("empty, {mark}, its header begins with event 101");
            all.push((name, later, MANUAL));
        }
    }
}

/// Logs with records dropped in front, with the mark from after that or from before.
fn dropped(format: &dyn Format, all: &mut Vec<(String, Files, How)>) {
    if format.segment_bytes().is_none() {
        return;
    }
    for closes in [false, true] {
        for (what, kept) in [("the first 3", 3), ("all but the last", 1), ("all", 0)] {
            for more in [0, 2] {
                let (before, after, edges) = drop_all_but(kept, more, closes);
                let older = after.with_beside(&before, "mark");
                let name = format!(
                    "{what} dropped, {more} appended, {}",
                    if closes { "closed" } else { "its writer died" }
                );
                all.push((name.clone(), after.clone(), MANUAL));
                all.push((format!("{name}, the mark is from before"), older.clone(), MANUAL));
                if kept + more > 1 {
                    let at = edges[edges.len() - 2] as usize + 11;
                    for (files, mark) in [(after, ""), (older, ", the mark is from before")] {
                        let mut space = files.space(format);
                        space[at] ^= 1;
                        let name = format!("{name}{mark}, a byte of the last changed");
                        all.push((name, files.with_space(format, &space), MANUAL));
                    }
                }
            }
        }
    }
}

/// The files of a log in segments before and after all but the last `kept` records were dropped and
/// `more` appended, and where its records end.
fn drop_all_but(kept: usize, more: usize, closes: bool) -> (Files, Files, Vec<u64>) {
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    let at = At::memory(&memory, DIR);
    let log = TINY.options(&at, MANUAL).open(&at.path, Mode::Create).unwrap();
    let mut edges = vec![0];
    let append = |payload: &[u8], edges: &mut Vec<u64>| {
        log.append(payload).unwrap();
        edges.push(log.end().unwrap().0);
    };
    let events = plain(RECORDS + more, BYTES);
    events[..RECORDS].iter().for_each(|(_, payload)| append(payload, &mut edges));
    log.sync().unwrap();
    let before = Files::of(&memory);
    log.truncate_before(Lsn(edges[RECORDS - kept])).unwrap();
    events[RECORDS..].iter().for_each(|(_, payload)| append(payload, &mut edges));
    if closes {
        log.close().unwrap();
    }
    (before, Files::of(&memory), edges)
}

/// Logs opened with a limit below the length of their records.
fn limited(format: &dyn Format, all: &mut Vec<(String, Files, How)>) {
    let how = How { record_bytes_max: Some(BYTES as u64 / 2), ..MANUAL };
    for (mark, beside) in [BESIDES[0], BESIDES[3], BESIDES[5]] {
        let specimen = Specimen::new(format, &plain(RECORDS, BYTES), beside);
        for (what, change) in [CHANGES[0], CHANGES[4], CHANGES[11]] {
            let mut files = changed(&specimen, change);
            files.bytes.retain(|path, _| !path.ends_with("settings"));
            let name = format!("{what}, {mark}, opened with a limit of {} bytes", BYTES / 2);
            all.push((name, files, how));
        }
    }
}

/// Logs with a mark that cannot be read, with that of another log, and copies.
fn other_marks(format: &dyn Format, all: &mut Vec<(String, Files, How)>) {
    let events = plain(RECORDS + 2, BYTES);
    let specimen = Specimen::new(format, &events[..RECORDS], Beside::Closed(RECORDS));
    let other = Specimen::new(format, &events[1..=RECORDS], Beside::Closed(RECORDS));
    let longer = Specimen::new(format, &events, Beside::Closed(RECORDS + 2));
    for (what, change) in [CHANGES[0], CHANGES[4], CHANGES[11]] {
        let mut space = specimen.space.clone();
        change(&specimen, &mut space);
        let mut rotten = specimen.broken(&space);
        for (path, bytes) in &mut rotten.bytes {
            if path.ends_with("mark") {
                bytes[20] ^= 1;
                if let Some(byte) = bytes.get_mut(532) {
                    *byte ^= 1;
                }
            }
        }
        all.push((format!("{what}, its mark cannot be read"), rotten, MANUAL));
        all.push((format!("{what}, the mark of another log"), other.broken(&space), MANUAL));
        all.push((format!("{what}, the mark of a longer one"), longer.broken(&space), MANUAL));
    }
    for (mark, beside) in [BESIDES[0], BESIDES[3]] {
        let specimen = Specimen::new(format, &events[..RECORDS], beside);
        for (what, change) in [CHANGES[0], CHANGES[4], CHANGES[12], CHANGES[13], CHANGES[14]] {
            let copied = changed(&specimen, change).copied();
            all.push((format!("{what}, {mark}, a copy"), copied, MANUAL));
        }
    }
}
