//! A repair never makes a loss invisible.

use std::path::Path;

use deedbook::storage::Storage;
use deedbook::{ErrorKind, Mode, Recovery, Repair};

use crate::FORMATS;
use crate::specimen::{Beside, Files};
use crate::subject::{How, MANUAL, refused};
use crate::views::{broken, plain};

/// A log that had lost its end at a record's edge was "clean" once it had been repaired: there was
/// nothing to cut, the mark was lowered, and the evidence of 2,437 acknowledged records was gone.
/// Only an accepted loss may go: until then checking and opening show it, and nothing is changed.
#[test]
fn a_loss_at_a_record_s_edge_stays_visible_after_a_repair() {
    for format in FORMATS {
        for beside in [Beside::Closed(12), Beside::Open(12)] {
            let (specimen, memory, at) =
                broken(format, &plain(12, 30), beside, |specimen, space| {
                    space.truncate(specimen.edges[7]);
                });
            let what = format!("{}, {beside:?}", format.name());
            // Whether this is an error that says so or a report is no matter here.
            let _ = format.repair(&at, MANUAL);
            let files = Files::of(&memory);
            let kept = specimen.space[..specimen.edges[7]].to_vec();
            assert!(files.space(format) == kept, "{what}: the log was changed");
            let report = format.verify(&at, MANUAL).unwrap();
            let found = (report.records, report.lost_acknowledged, report.ok);
            assert_eq!(found, (7, true, false), "{what}: {report:?}");
            let walk = format.read(&at).unwrap().forward(None, None, false);
            assert_eq!(walk.records.len(), 7, "{what}");
            assert!(walk.error.is_some(), "{what}: reads as if nothing were lost");
        }
    }
}

/// A loss that was accepted is noted beside the log, and every later check tells of it, whatever was
/// appended since: nothing else knows any more that records were acknowledged and are gone.
#[test]
fn an_accepted_loss_is_told_by_every_later_check() {
    for format in FORMATS {
        for beside in [Beside::Closed(12), Beside::Open(12)] {
            let (specimen, _, at) = broken(format, &plain(12, 30), beside, |specimen, space| {
                space.truncate(specimen.edges[7]);
            });
            let what = format!("{}, {beside:?}", format.name());
            let accepting = Repair { accept_loss: true, ..Repair::default() };
            format.repair_as(&at, MANUAL, accepting).unwrap();
            let offset = specimen.edges[7] as u64;
            for appended in 0..3 {
                let report = format.verify(&at, MANUAL).unwrap();
                let found = (report.records, report.lost_acknowledged, report.ok);
                assert_eq!(found, (7 + appended, false, true), "{what}: {report:?}");
                let loss = report.loss.unwrap_or_else(|| panic!("{what}: forgot the loss"));
                assert_eq!((loss.records, loss.offset), (5, offset), "{what}");
                let log = format.open(&at, Mode::Append, MANUAL).unwrap();
                log.append(1, &[7; 40]).unwrap();
                log.close().unwrap();
            }
        }
    }
}

/// A repair cut intact records off, because they lay after damage, and only its report said so. Now
/// it refuses that unless it is forced, and names the way to keep them.
#[test]
fn a_repair_that_would_cut_intact_records_is_refused() {
    for format in FORMATS {
        for beside in [Beside::Closed(12), Beside::Open(12), Beside::Nothing] {
            let (_, memory, at) = broken(format, &plain(12, 30), beside, |specimen, space| {
                space[specimen.edges[4] + format.framing().head() + 3] ^= 1;
            });
            let before = Files::unlocked(&memory);
            let error = format.repair(&at, MANUAL).expect_err("would cut seven records");
            assert!(error.to_string().contains("salvage"), "{}: {error}", format.name());
            assert!(Files::unlocked(&memory) == before, "{}: changed", format.name());
        }
    }
}

/// What was cut off and saved was not recognised: 4,139 intact deeds were in a Book's tail, which was
/// taken for a write-ahead log, and "copied 0 records" was a success.
#[test]
fn a_saved_tail_can_be_salvaged() {
    for format in FORMATS {
        let (specimen, memory, at) =
            broken(format, &plain(12, 30), Beside::Nothing, |specimen, space| {
                space[specimen.edges[4] + format.framing().length().start] ^= 1;
            });
        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        let spec = How { recovery: Recovery::Spec, ..MANUAL };
        let log = format.open(&at, Mode::Append, spec).unwrap();
        let saved_to = log.recovery().saved_to.as_ref().expect("what is cut is saved");
        log.close().unwrap();
        let to = format.path_in(Path::new("/copy"));
        memory.create_dir(to.parent().unwrap()).unwrap();
        let report = format.salvage(&at.other(saved_to), &to, MANUAL).unwrap();
        assert_eq!(report.records, 7, "{}: {report:?}", format.name());
        let copied = format.read(&at.other(to)).unwrap().forward(None, None, false);
        assert!(copied.events() == specimen.events[5..], "{}", format.name());
    }
}
