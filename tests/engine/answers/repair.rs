//! A repair never makes a loss invisible.

use super::*;

const ACCEPTING: Repair = Repair { force: false, dry_run: false, accept_loss: true };

/// A log lost its end at a record's edge. A repair lowered the mark, and the evidence of 2,437 acknowledged records was
/// gone. The loss must show until somebody accepts it.
#[test]
fn a_repair_hides_no_loss_between_two_records() {
    for format in FORMATS {
        for beside in [Beside::Closed(12), Beside::Open(12)] {
            let (specimen, memory, at) =
                broken(format, &plain(12, 30), beside, |specimen, space| {
                    space.truncate(specimen.edges[7]);
                });
            let what = format!("{}, {beside:?}", format.name());
            // An error is as good as a report here.
            if let Ok(report) = format.repair(&at, MANUAL) {
                assert_eq!(report.records, 7, "{what}: {report:?}");
            }
            let files = Files::of(&memory);
            let kept = specimen.space[..specimen.edges[7]].to_vec();
            assert!(files.space(format) == kept, "{what}: the log was changed");
            // A backup may still bring the records back, and then none is lost.
            assert!(files.named("loss").is_none(), "{what}: noted");
            let report = format.verify(&at, MANUAL).unwrap();
            let found = (report.records, report.lost_acknowledged, report.ok());
            assert_eq!(found, (7, true, false), "{what}: {report:?}");
            let walk = format.read(&at).unwrap().forward(None, None, false);
            assert_eq!(walk.records.len(), 7, "{what}");
            assert!(walk.error.is_some(), "{what}: reads as if nothing were lost");
        }
    }
}

/// An accepted loss is noted next to the log, and every later check reports it: nothing else knows about it. An opening
/// with the specification's recovery lowered the mark and noted nothing.
#[test]
fn every_later_verify_reports_an_accepted_loss() {
    let spec = How { recovery: Recovery::Spec, ..MANUAL };
    for format in FORMATS {
        for (beside, by_opening) in [
            (Beside::Closed(12), false),
            (Beside::Open(12), false),
            (Beside::Closed(12), true),
            (Beside::Open(12), true),
        ] {
            let (specimen, _, at) = broken(format, &plain(12, 30), beside, |specimen, space| {
                space.truncate(specimen.edges[7]);
            });
            let what = format!("{}, {beside:?}, by opening: {by_opening}", format.name());
            match by_opening {
                true => format.open(&at, Mode::Append, spec).unwrap().close().unwrap(),
                false => {
                    let report = format.repair_as(&at, MANUAL, ACCEPTING).unwrap();
                    assert_eq!((report.mended, report.records), (true, 7), "{what}: {report:?}");
                }
            }
            let offset = specimen.edges[7] as u64;
            for appended in 0..3 {
                let report = format.verify(&at, MANUAL).unwrap();
                let found = (report.records, report.lost_acknowledged, report.ok());
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

/// The note of a second loss replaced the first: every check reported 2 lost records instead of 7.
/// A repair that crashed after its note is done again, and its loss counts once.
#[test]
fn the_losses_of_two_repairs_are_told_together() {
    for format in FORMATS {
        let (specimen, memory, at) =
            broken(format, &plain(12, 30), Beside::Closed(12), |specimen, space| {
                space.truncate(specimen.edges[7]);
            });
        let check = |memory: &Memory, records: u64| {
            let at = At::memory(memory, at.path.clone());
            let loss = format.verify(&at, MANUAL).unwrap().loss.unwrap();
            let offset = specimen.edges[7] as u64;
            assert_eq!((loss.records, loss.offset), (records, offset), "{}", format.name());
        };
        let memory = accepted_twice(format, &memory, &at);
        check(&memory, 5);
        let at = At::memory(&memory, at.path.clone());
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        log.append(1, &[7; 40]).unwrap();
        let end = log.end().unwrap() as usize;
        (0..2).for_each(|_| assert!(log.append(1, &[7; 40]).is_ok()));
        log.close().unwrap();
        let files = Files::of(&memory);
        let memory = files.with_space(format, &files.space(format)[..end]).restore();
        let at = At::memory(&memory, at.path);
        let memory = accepted_twice(format, &memory, &at);
        check(&memory, 7);
    }
}

/// Repair a log that lost records, as if a crash had come between the note and the cut.
fn accepted_twice(format: &dyn Format, memory: &Memory, at: &At) -> Memory {
    let before = Files::of(memory);
    assert!(format.repair_as(at, MANUAL, ACCEPTING).unwrap().mended, "{}", format.name());
    let crashed = before.with_beside(&Files::of(memory), "loss").restore();
    let at = At::memory(&crashed, at.path.clone());
    assert!(format.repair_as(&at, MANUAL, ACCEPTING).unwrap().mended, "{}", format.name());
    crashed
}

/// A writer cut its end between a repair's looks at mark and log. The repair noted the cut as a loss.
#[test]
fn a_repair_notes_no_truncation_as_loss() {
    for format in [&SINGLE, &TINY] {
        let path = format.path_in(Path::new(DIR));
        for (accept_loss, read) in (0..40).flat_map(|read| [(true, read), (false, read)]) {
            let memory = Memory::new();
            memory.create_dir(Path::new(DIR)).unwrap();
            let options = format.options(&At::memory(&memory, path.clone()), MANUAL);
            let wal = options.open(&path, Mode::Create).unwrap();
            let lsns: Vec<_> = (0..12).map(|n| wal.append(&[n; 30]).unwrap()).collect();
            wal.sync().unwrap();
            let reads = AtomicUsize::new(0);
            let storage = watched(Arc::new(memory.clone()), move |seen| {
                let is_read = matches!(seen, Seen::Read(_));
                if is_read && reads.fetch_add(1, Ordering::Relaxed) == read {
                    wal.truncate_after(lsns[7]).unwrap();
                }
            });
            let at = At { storage, path: path.clone() };
            let repaired = format.repair_as(&at, MANUAL, Repair { accept_loss, ..ACCEPTING });
            let what = format!("{}, read {read}, {repaired:?}", format.name());
            assert!(Files::of(&memory).named("loss").is_none(), "{what}");
            assert!(repaired.is_err() || !accept_loss, "{what}: beside a writer");
        }
    }
}

/// A Book's saved tail with 4,139 intact deeds passed for a write-ahead log, and "copied 0 records" was a success. A
/// writer could also open the tail, and put a `.deedbook` next to it.
#[test]
fn a_saved_end_is_salvaged_but_never_written() {
    for format in FORMATS {
        let (specimen, memory, at) =
            broken(format, &plain(12, 30), Beside::Nothing, |specimen, space| {
                space[specimen.edges[4] + format.framing().length().start] ^= 1;
            });
        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        let spec = How { recovery: Recovery::Spec, ..MANUAL };
        let log = format.open(&at, Mode::Append, spec).unwrap();
        let tail = at.other(log.recovery().saved_to.as_ref().expect("what is cut is saved"));
        log.close().unwrap();
        let before = Files::unlocked(&memory);
        refused(format.open(&tail, Mode::Append, MANUAL), ErrorKind::ReadOnly);
        assert!(Files::unlocked(&memory) == before, "{}: changed", format.name());
        let to = format.path_in(Path::new("/copy"));
        memory.create_dir(to.parent().unwrap()).unwrap();
        let report = format.salvage(&tail, &to, MANUAL).unwrap();
        assert_eq!(report.records, 7, "{}: {report:?}", format.name());
        let copied = format.read(&at.other(to)).unwrap().forward(None, None, false);
        assert!(copied.events() == specimen.events[5..], "{}", format.name());
    }
}
