//! Segments that are missing, swapped, doubled or short: read as if what is not there were zeros.

use std::path::{Path, PathBuf};

use deedbook::wal::segment_name;

use crate::judge::judge_files;
use crate::specimen::{DIR, Files, Specimen, besides};
use crate::tally::all_passed;
use crate::views::plain;
use crate::wal::TINY;

fn segment(index: usize) -> PathBuf {
    Path::new(DIR).join(segment_name(index as u64))
}

/// Change the files of a log with every kind of sidecar, and hold every reader against the oracle.
fn in_every_state(mut cases: impl FnMut(&Specimen<'_>, &mut dyn FnMut(&str, &dyn Fn(&mut Files)))) {
    for beside in besides(12) {
        // Records of 37 bytes: some end in the segment in which they begin.
        let specimen = Specimen::new(&TINY, &plain(12, 29), beside);
        cases(&specimen, &mut |what, change| {
            let mut files = specimen.files.clone();
            change(&mut files);
            let space = files.space(&TINY);
            judge_files(&specimen, &files, &space, &|| what.to_string());
        });
    }
    all_passed();
}

fn count(specimen: &Specimen<'_>) -> usize {
    let size = specimen.format.segment_bytes().unwrap() as usize;
    specimen.space.len().div_ceil(size)
}

#[test]
fn every_segment_missing() {
    in_every_state(|specimen, case| {
        for i in 0..count(specimen) {
            if i == 0 && matches!(specimen.beside, crate::specimen::Beside::Open(0)) {
                // The file that the mark names is gone: nothing says that it is this log's.
                continue;
            }
            case(&format!("segment {i} missing"), &|files| {
                files.bytes.remove(&segment(i)).unwrap();
            });
        }
    });
}

#[test]
fn every_segment_but_the_last_too_short() {
    in_every_state(|specimen, case| {
        for i in 0..count(specimen) - 1 {
            for len in [0, 1, 30, 63] {
                case(&format!("segment {i} of {len} bytes"), &|files| {
                    let bytes = files.bytes.get_mut(&segment(i)).unwrap();
                    // What is missing reads as zeros: of zeros, nothing would be damaged.
                    bytes.truncate(if bytes[len..].iter().all(|&byte| byte == 0) {
                        30
                    } else {
                        len
                    });
                });
            }
        }
    });
}

#[test]
fn every_two_segments_swapped_and_every_one_written_over_another() {
    in_every_state(|specimen, case| {
        let last = count(specimen) - 1;
        for (i, j) in (0..last).flat_map(|i| (0..last).map(move |j| (i, j))) {
            if i == j {
                continue;
            }
            case(&format!("segment {j} written over {i}"), &|files| {
                files.bytes.insert(segment(i), files.bytes[&segment(j)].clone());
            });
            if i < j {
                case(&format!("segments {i} and {j} swapped"), &|files| {
                    let [first, second] = [i, j].map(|i| files.bytes[&segment(i)].clone());
                    files.bytes.insert(segment(i), second);
                    files.bytes.insert(segment(j), first);
                });
            }
        }
    });
}
