//! Wrong answers about segments and head markers that are missing or wrong. Each test
//! opens with its story.

use std::path::{Path, PathBuf};

use deedbook::storage::{Memory, Storage};
use deedbook::wal::{Lsn, segment_name};
use deedbook::{Mode, Verdict};

use crate::support::common::write_file;
use crate::support::formats::framing::crc32c;
use crate::support::formats::specimen::{Beside, DIR, Files, Specimen};
use crate::support::formats::subject::{At, Format, MANUAL};
use crate::support::formats::views::{all_but, all_give, plain};
use crate::support::formats::wal::TINY;

/// Files of a segmented log, without a sidecar or with one.
fn segments(beside: Beside, change: impl FnOnce(&mut Files)) -> (Specimen<'static>, Memory, At) {
    let specimen = Specimen::new(&TINY, &plain(20, 40), beside);
    let mut files = specimen.files.clone();
    change(&mut files);
    let memory = files.restore();
    let at = At::memory(&memory, DIR);
    (specimen, memory, at)
}

fn segment(index: u64) -> PathBuf {
    Path::new(DIR).join(segment_name(index))
}

fn head_marker(head: u64) -> Vec<u8> {
    let bytes = head.to_le_bytes();
    [&bytes[..], &crc32c(&bytes).to_le_bytes()].concat()
}

/// A legal log, of which everything was dropped up to the border of a segment that was not begun
/// yet, was "corrupt" for all that looked at it.
#[test]
fn a_log_of_which_all_was_dropped_needs_no_segment() {
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(&memory, &Path::new(DIR).join("head"), &head_marker(128));
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Read).unwrap();
    assert_eq!(
        (wal.head().unwrap(), wal.end().unwrap(), wal.len().unwrap()),
        (Lsn(128), Lsn(128), 0)
    );
    let report = TINY.verify(&at, MANUAL).unwrap();
    assert_eq!((report.verdict, report.ok()), (Verdict::Clean, true));
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Append).unwrap();
    assert_eq!(wal.append(b"goes on").unwrap(), Lsn(128));
    wal.close().unwrap();
    assert_eq!(TINY.read(&at).unwrap().forward(None, None, false).records.len(), 1);
}

const BESIDE: [Beside; 3] = [Beside::Nothing, Beside::Open(20), Beside::Closed(20)];

/// Segment 0 was missing: neither reading, nor passing over damage, nor `verify`, nor `salvage`
/// gave anything.
#[test]
fn what_follows_a_missing_first_segment_is_read() {
    for beside in BESIDE {
        let (specimen, memory, at) = segments(beside, |files| {
            files.bytes.remove(&segment(0)).unwrap();
        });
        let before = Files::unlocked(&memory);
        assert!(TINY.open(&at, Mode::Append, MANUAL).is_err(), "{beside:?}");
        assert!(Files::unlocked(&memory) == before, "{beside:?}: changed");
        // Records of 48 bytes: two of them lie in the first 64.
        all_give(&specimen, &at, &all_but(20, &[0, 1]));
    }
}

/// The same with a segment that is too long, a stray file that is named like the last possible
/// segment, and a head marker beyond the log.
#[test]
fn a_wrong_file_among_the_segments_costs_no_record() {
    for beside in BESIDE {
        for what in ["too long", "stray", "head"] {
            let (specimen, memory, at) = segments(beside, |files| match what {
                "too long" => files.bytes.get_mut(&segment(3)).unwrap().extend([7; 30]),
                "stray" => drop(files.bytes.insert(segment(u64::MAX), vec![9; 40])),
                _ => drop(files.bytes.insert(Path::new(DIR).join("head"), head_marker(5_000))),
            });
            let before = Files::unlocked(&memory);
            assert!(TINY.open(&at, Mode::Append, MANUAL).is_err(), "{beside:?}, {what}");
            assert!(Files::unlocked(&memory) == before, "{beside:?}, {what}: changed");
            let report = TINY.verify(&at, MANUAL).unwrap();
            assert_eq!(
                (report.verdict, report.ok()),
                (Verdict::Corrupt, false),
                "{beside:?}, {what}"
            );
            all_give(&specimen, &at, &all_but(20, &[]));
        }
    }
}

/// A segment in the middle was missing: readers and `verify` stopped at the gap (41 records),
/// `salvage` did not (88 of 100).
#[test]
fn what_follows_a_missing_segment_is_given_by_all_or_none() {
    for beside in BESIDE {
        for index in [1, 7, 12] {
            let (specimen, memory, at) = segments(beside, |files| {
                files.bytes.remove(&segment(index)).unwrap();
            });
            let before = Files::unlocked(&memory);
            assert!(TINY.open(&at, Mode::Append, MANUAL).is_err(), "{beside:?}, {index}");
            assert!(Files::unlocked(&memory) == before, "{beside:?}, {index}: changed");
            let gap = index as usize * 64..(index as usize + 1) * 64;
            let is_lost =
                |i: &usize| specimen.edges[*i] < gap.end && specimen.edges[*i + 1] > gap.start;
            let lost: Vec<_> = (0..20).filter(is_lost).collect();
            all_give(&specimen, &at, &all_but(20, &lost));
        }
    }
}

/// `salvage` said "say segment_bytes" and took none: the layout in its options was the copy's
/// only.
#[test]
fn a_salvage_takes_the_segment_size() {
    let memory = Memory::new();
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Create).unwrap();
    let lsns: Vec<_> = (0..20).map(|i| wal.append(&[i; 40]).unwrap()).collect();
    wal.sync().unwrap();
    wal.truncate_before(lsns[19]).unwrap();
    wal.close().unwrap();
    // One segment is left, and not the first: nothing tells its size.
    let files = Files::of(&memory).without_sidecar();
    let left = files.bytes.keys().filter(|path| path.extension().is_some()).count();
    assert_eq!(left, 1);
    let memory = files.restore();
    let at = At::memory(&memory, DIR);
    let report = TINY.salvage(&at, Path::new("/copy"), MANUAL).unwrap();
    assert_eq!(report.records, 1, "{report:?}");
}
