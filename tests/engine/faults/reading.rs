//! Faults while a log is read, checked or recovered.

use super::*;
use crate::support::common::data;
use crate::support::harness::subjects::BOOK;

for_every_subject! {
    a_reader_gives_all_or_an_error,
    a_check_gives_the_truth_or_an_error,
    /// Recovery of torn logs and half-done truncations meets faults: an error, or the same as without.
    a_recovery_that_fails_leaves_what_it_found,
    interrupted_reads_and_writes_are_repeated,
}

fn written(subject: &Subject, steps: &str) -> (Sim, Vec<Record>) {
    let nested = subject.nested();
    let mut run = Run::new(subject, Config::named("always"), &nested);
    run.open().unwrap();
    steps.chars().for_each(|op| run.apply(op).unwrap());
    run.log().close().unwrap();
    (run.disk.clone(), run.records.clone())
}

// Promise: read-error, wal-read-error.
fn a_reader_gives_all_or_an_error(subject: &Subject) {
    let (disk, records) = written(subject, "0=bL>");
    each_read_fails(
        &disk,
        |disk| subject.read(disk),
        |got| got.error.is_none() && got.records == records,
    );
    // Without a sidecar and with its first record damaged, the engine reads more to recognise the log.
    for name in disk.list(&subject.sidecar()).unwrap() {
        let _ = disk.remove(&subject.sidecar().join(name));
    }
    damage(subject, &disk, records[0].offset);
    let Ok(log) = subject.read(&disk) else { return };
    let sound = log.forward(None, None, true);
    each_read_fails(&disk, |disk| subject.read(disk), |got| got.records == sound.records);
}

/// With each call failing in turn, a walk past damage gives what it gives otherwise, or the error of the disk. Returns
/// the number of errors.
fn each_read_fails(
    disk: &Sim,
    open: impl Fn(&Sim) -> deedbook::Result<Box<dyn Log>>,
    is_right: impl Fn(&Walk) -> bool,
) -> u64 {
    let (eio, eintr) = (io::ErrorKind::Other, io::ErrorKind::Interrupted);
    let mut errors = 0;
    for what in [What::Error(eio), What::Error(eintr), What::Short] {
        for times in [1, 2, 50] {
            for at in 1.. {
                let disk = disk.kill();
                disk.inject(Fault { at, of: None, what, times });
                let walk =
                    open(&disk).map_or_else(Walk::failed, |log| log.forward(None, None, true));
                match &walk.error {
                    Some(error) if !is_right(&walk) => {
                        expect_typed(error).unwrap();
                        errors += 1;
                    }
                    _ => assert!(is_right(&walk), "{what:?} at {at}: {walk:?}"),
                }
                if at > disk.calls() {
                    assert!(at > 5, "{at} calls only");
                    break;
                }
            }
        }
    }
    errors
}

/// An error during the search for another layout: a log of another layout was "not a log".
#[test]
fn a_failed_read_during_layout_detection_is_reported() {
    let disk = Sim::new();
    disk.create_dir(Path::new("/log")).unwrap();
    let padded = fs::read(data("specC-3").join("book.log")).unwrap();
    write_file(&disk, Path::new("/log/book.log"), &padded);
    let errors = each_read_fails(&disk, |disk| BOOK.read(disk), |got| got.records.len() == 3);
    assert!(errors > 0, "no read met the fault");
}

// Promise: read-error.
fn a_check_gives_the_truth_or_an_error(subject: &Subject) {
    let (disk, records) = written(subject, "0=bL>");
    for at in 1.. {
        let disk = disk.kill();
        disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)));
        match subject.check(&disk) {
            // Without the mark or the index, which are advisory, less is known.
            Ok(checked) => {
                assert_eq!(checked.records, records.len() as u64, "{at}");
                assert_eq!(checked.verdict, deedbook::report::Verdict::Clean, "{at}");
            }
            Err(error) => expect_typed(&error).unwrap(),
        }
        if at > disk.calls() {
            assert!(at > 5, "{at} calls only");
            break;
        }
    }
}

// Promise: crash-in-recovery, crash-in-repair, wal-recovery.
fn a_recovery_that_fails_leaves_what_it_found(subject: &Subject) {
    let nested = subject.nested();
    // Truncations, where the format has them.
    let letters: Vec<char> = subject.steps.alphabet.chars().collect();
    let possible = |steps: &&str| steps.chars().all(|op| letters.contains(&op));
    for steps in ["L>", ">t", "sh", "sc"].iter().filter(|steps| possible(steps)) {
        for config in ["manual", "always-reserve", "always-acknowledged"].map(Config::named) {
            let mut run = Run::new(subject, config, &nested);
            run.open().unwrap();
            "1bs".chars().for_each(|op| run.apply(op).unwrap());
            run.record();
            steps.chars().for_each(|op| run.apply(op).unwrap());
            for moment in run.moments.iter().step_by(2) {
                let crashes = moment.disk.crashes();
                for seed in 0..2 {
                    let image = crashes.state_by_chance(seed);
                    for kind in &HONEST {
                        for at in 1.. {
                            let disk = image.kill();
                            disk.inject(Fault::once(at, kind.what(at)));
                            if let Err(error) = subject.open(&disk, config.how) {
                                expect_typed(&error).unwrap();
                            }
                            let last = at > disk.calls();
                            disk.heal();
                            let disk = disk.kill();
                            let log = subject.open(&disk, config.how).unwrap();
                            let got = log.read_all().unwrap();
                            moment.judge(&*log, &got, config.how.acknowledged()).unwrap();
                            if last {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
}

// Promise: wal-call-fails.
fn interrupted_reads_and_writes_are_repeated(subject: &Subject) {
    let (disk, records) = written(subject, "0=bL");
    for call in [Call::Read, Call::Write] {
        for at in 1..30 {
            let disk = disk.kill();
            let interrupted = What::Error(io::ErrorKind::Interrupted);
            disk.inject(Fault { at, of: Some(call), what: interrupted, times: 3 });
            let log = subject.open(&disk, ALWAYS).unwrap();
            log.append(5, &[5; 700]).unwrap();
            assert_eq!(log.read_all().unwrap().len(), records.len() + 1);
            log.close().unwrap();
        }
    }
}
