//! The damaged logs of the snapshots: a log with a change, and with a mark or none. Together they show every kind of
//! line, with every field that a format can have.

use crate::support::formats::specimen::segment_index;
use crate::support::formats::wal::TINY;
use crate::support::prelude::*;

/// Few and short records, so a reader can check each figure by hand.
const RECORDS: usize = 6;
const BYTES: usize = 40;
/// Each large record ends a block of the index.
const LARGE: (usize, usize) = (5, 70_000);
const EXACT: How = How { recovery: Recovery::Acknowledged, ..MANUAL };
const LIMITED: How = How { record_bytes_max: Some(BYTES as u64 / 2), ..MANUAL };

type Change = (&'static str, fn(&Specimen<'_>, &mut Vec<u8>));
type Mark = (&'static str, Beside);
type Situation = (String, Files, How);

const AS_IT_WAS: Change = ("as it was", |_, _| {});
const ZEROS_AFTER: Change =
    ("24 zeros after the end", |_, space| space.resize(space.len() + 24, 0));
const BYTE_AFTER: Change = ("700 zeros and a byte after the end", |_, space| {
    space.resize(space.len() + 700, 0);
    space.push(7);
});
const BYTE_1: Change = ("a byte of record 1 changed", |specimen, space| flip(specimen, space, 1));
const BYTE_2: Change = ("a byte of record 2 changed", |specimen, space| flip(specimen, space, 2));
const BYTE_6: Change = ("a byte of record 6 changed", |specimen, space| flip(specimen, space, 6));
const BYTES_2_AND_5: Change = ("bytes of records 2 and 5 changed", |specimen, space| {
    flip(specimen, space, 2);
    flip(specimen, space, 5);
});
const LENGTH_2: Change = ("the length of record 2 changed", |specimen, space| {
    space[specimen.edges[1] + specimen.format.framing().length().start] ^= 3;
});
const ZEROS_2: Change = ("record 2 is zeros", |specimen, space| {
    space[specimen.edges[1]..specimen.edges[2]].fill(0);
});
const CUT_SHORT: Change =
    ("record 6 is cut short", |specimen, space| space.truncate(specimen.edges[5] + 15));
const CUT_OFF: Change =
    ("record 6 is cut off", |specimen, space| space.truncate(specimen.edges[5]));
const ALL_CUT_OFF: Change =
    ("all of it is cut off", |specimen, space| space.truncate(specimen.edges[0]));

const NOTHING: Mark = ("nothing beside it", Beside::Nothing);
const NONE_SYNCED: Mark = ("none was synced", Beside::Open(0));
const SYNCED_3: Mark = ("3 were synced", Beside::Open(3));
const ALL_SYNCED: Mark = ("all were synced", Beside::Open(RECORDS));
const CLOSED: Mark = ("closed", Beside::Closed(RECORDS));

const OF_BOOKS: [(Change, Mark); 6] = [
    (ZEROS_AFTER, CLOSED),
    (BYTE_AFTER, NOTHING),
    (CUT_SHORT, SYNCED_3),
    (BYTES_2_AND_5, SYNCED_3),
    (ZEROS_2, NOTHING),
    (BYTE_1, NONE_SYNCED),
];

const OF_SEGMENTS: [(Change, Mark); 2] = [(BYTE_6, CLOSED), (ALL_CUT_OFF, SYNCED_3)];

const CHANGES: [Change; 12] = [
    AS_IT_WAS,
    ZEROS_AFTER,
    BYTE_AFTER,
    BYTE_1,
    BYTE_2,
    BYTE_6,
    BYTES_2_AND_5,
    LENGTH_2,
    ZEROS_2,
    CUT_SHORT,
    CUT_OFF,
    ALL_CUT_OFF,
];
const MARKS: [Mark; 5] = [NOTHING, NONE_SYNCED, SYNCED_3, ALL_SYNCED, CLOSED];

/// A byte of the payload of a record, counted from 1.
fn flip(specimen: &Specimen<'_>, space: &mut [u8], record: usize) {
    space[specimen.edges[record - 1] + specimen.format.framing().head() + 3] ^= 1;
}

/// The situations of a format: the name of each, the files, and the options for opening. The engine is the same for
/// every format, so formats other than packed books have only those with a line of another kind.
pub fn each(format: &dyn Format) -> Vec<Situation> {
    let plainly = |table: &[(Change, Mark)]| -> Vec<Situation> {
        table.iter().map(|&(change, mark)| plainly(format, change, mark)).collect()
    };
    match format.framing() {
        Framing::Wal => {
            let mut all = plainly(&OF_SEGMENTS);
            for (segment, mark) in [
                (0, NONE_SYNCED),
                (0, SYNCED_3),
                (2, NONE_SYNCED),
                (2, SYNCED_3),
                // Segment 3 begins at the end of a record.
                (3, SYNCED_3),
            ] {
                all.push(without_a_segment(format, segment, mark));
            }
            all.extend(dropped(format));
            all
        }
        Framing::Slots => plainly(&[(BYTE_6, CLOSED)]).into_iter().chain([large(format)]).collect(),
        _ => {
            let mut all = plainly(&OF_BOOKS);
            all.extend(other_marks(format));
            all.extend([exact(format), limited(format)]);
            all.extend(plainly(&[(BYTE_1, NOTHING)]));
            all
        }
    }
}

pub fn every_pair(format: &dyn Format) -> Vec<Situation> {
    let pairs = CHANGES.into_iter().flat_map(|change| MARKS.map(|mark| (change, mark)));
    pairs.map(|(change, mark)| plainly(format, change, mark)).collect()
}

fn changed(specimen: &Specimen<'_>, (_, change): Change) -> Files {
    let mut space = specimen.space.clone();
    change(specimen, &mut space);
    specimen.broken(&space)
}

fn plainly(format: &dyn Format, change: Change, (mark, beside): Mark) -> Situation {
    let specimen = Specimen::new(format, &plain(RECORDS, BYTES), beside);
    (format!("{}, {mark}", change.0), changed(&specimen, change), MANUAL)
}

fn without_a_segment(format: &dyn Format, missing: usize, (mark, beside): Mark) -> Situation {
    let mut files = Specimen::new(format, &plain(RECORDS, BYTES), beside).files;
    files.bytes.retain(|path, _| segment_index(path) != Some(missing));
    (format!("segment {missing} is missing, {mark}"), files, MANUAL)
}

fn large(format: &dyn Format) -> Situation {
    let ((records, bytes), (mark, beside)) = (LARGE, SYNCED_3);
    let specimen = Specimen::new(format, &plain(records, bytes), beside);
    let name = format!("of {bytes} bytes each: {}, {mark}", BYTE_2.0);
    (name, changed(&specimen, BYTE_2), MANUAL)
}

/// A log whose opening removes unacknowledged records.
fn exact(format: &dyn Format) -> Situation {
    let (mark, beside) = SYNCED_3;
    let specimen = Specimen::with(format, EXACT, &plain(RECORDS, BYTES), beside);
    (format!("acknowledged only: {}, {mark}", AS_IT_WAS.0), specimen.files, EXACT)
}

/// A log opened with a limit below the length of its records.
fn limited(format: &dyn Format) -> Situation {
    let (what, mut files, _) = plainly(format, AS_IT_WAS, SYNCED_3);
    files.bytes.retain(|path, _| !path.ends_with("settings"));
    (format!("{what}, opened with a limit of {} bytes", BYTES / 2), files, LIMITED)
}

/// Logs with an unreadable mark and with the mark of another log, and a copy.
fn other_marks(format: &dyn Format) -> [Situation; 3] {
    let events = plain(RECORDS + 1, BYTES);
    let specimen = Specimen::new(format, &events[..RECORDS], CLOSED.1);
    let other = Specimen::new(format, &events[1..], CLOSED.1);
    let mut rotten = changed(&specimen, CUT_SHORT);
    for (path, bytes) in &mut rotten.bytes {
        if path.ends_with("mark") {
            bytes[20] ^= 1;
            if let Some(byte) = bytes.get_mut(532) {
                *byte ^= 1;
            }
        }
    }
    [
        (format!("{}, its mark cannot be read", CUT_SHORT.0), rotten, MANUAL),
        (
            format!("{}, the mark of another log", AS_IT_WAS.0),
            other.broken(&specimen.space),
            MANUAL,
        ),
        (format!("{}, closed, a copy", CUT_OFF.0), changed(&specimen, CUT_OFF).copied(), MANUAL),
    ]
}

/// A log without records after a truncation, and a log with the mark from before and a changed byte in the last record.
fn dropped(format: &dyn Format) -> [Situation; 2] {
    let (before, after, last) = drop_all_but(3);
    let mut space = after.space(format);
    space[last as usize + 11] ^= 1;
    let older = after.with_beside(&before, "mark").with_space(format, &space);
    let what = "the first 3 dropped, the mark is from before, a byte of the last changed";
    [("all dropped".into(), drop_all_but(0).1, MANUAL), (what.into(), older, MANUAL)]
}

/// The files of a log before and after dropping all but the last `kept` records, and the last record's start.
fn drop_all_but(kept: usize) -> (Files, Files, u64) {
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    let at = At::memory(&memory, DIR);
    let log = TINY.options(&at, MANUAL).open(&at.path, Mode::Create).unwrap();
    let events = plain(RECORDS, BYTES);
    let lsns: Vec<_> = events.iter().map(|(_, payload)| log.append(payload).unwrap()).collect();
    log.sync().unwrap();
    let before = Files::of(&memory);
    let first = if kept == 0 { log.end().unwrap() } else { lsns[RECORDS - kept] };
    log.truncate_before(first).unwrap();
    (before, Files::of(&memory), lsns[RECORDS - 1].0)
}
