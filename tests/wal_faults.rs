//! Every storage call of a write-ahead log fails once and for ever, in every way; and disks that
//! lie. Afterwards the handle works or is poisoned, and whoever opens the log again finds
//! everything acknowledged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

mod harness;

use std::collections::BTreeMap;
use std::io;

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::wal::{Batch, Lsn};
use deedbook::{Durability, Durable, ErrorKind};

use harness::faulty::{Script, expect_typed, honest};
use harness::history::{Config, Run};
use harness::wal::{SEGMENTS, SINGLE, TINY, WalSubject, read_all};
use harness::{How, Subject, judge, mix, report};

const CONFIGS: [&str; 6] =
    ["manual", "always", "manual-reserve", "always-reserve", "always-acknowledged", "none"];
const ALWAYS: How = How { durability: Durability::Always, acknowledged: false };
const MANUAL: How = How { durability: Durability::Manual, acknowledged: false };

/// Fail the k-th call for k = 1, 2, ... until none is left to fail.
///
/// `DEEDBOOK_FAULT_STRIDE` (default 1) tries every n-th call only.
fn every_call_fails(subject: &WalSubject, scripts: &[&str]) {
    let stride = report::number("DEEDBOOK_FAULT_STRIDE", 1).max(1);
    let nested = subject.nested();
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for (name, what, lasts) in honest() {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for config in CONFIGS.map(Config::named) {
            for steps in scripts {
                let script = Script { subject, config, steps, nested: &nested };
                let mut times = vec![1, 3];
                times.extend(lasts.then_some(u64::MAX));
                for (offset, times) in times.into_iter().enumerate() {
                    for at in (1 + offset as u64 % stride..).step_by(stride as usize) {
                        let fault = Fault { at, of: None, what, times };
                        let met = match script.run(fault) {
                            Ok(met) => met,
                            Err(what) => {
                                failures.push(format!("{} {steps} {fault:?}: {what}", config.name));
                                break;
                            }
                        };
                        if at > met.calls {
                            break;
                        }
                        *counts.entry("faults").or_default() += u64::from(met.fired);
                        *counts.entry("refused").or_default() += met.refused;
                        *counts.entry("unknown").or_default() += met.unknown;
                    }
                }
            }
        }
        let counts: Vec<_> = counts.iter().map(|(key, n)| format!("\"{key}\": {n}")).collect();
        lines.push(format!("    \"{name}\": {{{}}}", counts.join(", ")));
    }
    println!("{}", lines.join("\n"));
    let json = format!(
        "{{\n  \"format\": \"{}\",\n  \"failures\": {},\n  \"faults\": {{\n{}\n  }}\n}}\n",
        subject.name,
        failures.len(),
        lines.join(",\n")
    );
    report::write(&format!("faults-{}", subject.name), &json);
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_call_on_one_file_fails_in_every_way_once_and_for_ever() {
    every_call_fails(&SINGLE, &["0=sbLt1r>c", "Lbsu", "r1r"]);
}

#[test]
fn every_call_on_segments_fails_in_every_way_once_and_for_ever() {
    every_call_fails(&SEGMENTS, &["0=sbLsh>r1x", "bLst1", "r1r"]);
}

#[test]
fn every_call_on_tiny_segments_fails_in_every_way_once_and_for_ever() {
    // The third one has more unsynced segments than may be open.
    every_call_fails(&TINY, &["=S>sm0c", "Lsx1r", "LLLLLs"]);
}

/// A log of some records, closed.
fn written(subject: &WalSubject, steps: &str) -> (Sim, Vec<harness::Record>) {
    let nested = subject.nested();
    let mut run = Run::new(subject, Config::named("always"), &nested);
    run.open().unwrap();
    steps.chars().for_each(|op| run.apply(op).unwrap());
    run.log().close().unwrap();
    (run.disk.clone(), run.records.clone())
}

/// A read error is an error, never taken for the end.
#[test]
fn a_reader_gives_all_or_an_error() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let (disk, records) = written(subject, "0=bL>");
        let short = What::Short;
        let (eio, eintr) = (io::ErrorKind::Other, io::ErrorKind::Interrupted);
        for what in [What::Error(eio), What::Error(eintr), short] {
            for times in [1, 2, 50] {
                for at in 1.. {
                    let disk = disk.kill();
                    disk.inject(Fault { at, of: None, what, times });
                    match subject.peek(&disk) {
                        Ok(got) => assert_eq!(got, records, "{what:?} at {at}"),
                        Err(error) => expect_typed(&error).unwrap(),
                    }
                    if at > disk.calls() {
                        assert!(at > 5, "{at} calls only");
                        break;
                    }
                }
            }
        }
    }
}

/// Recovery of torn logs, and of truncations half done, meets faults too: an error or the same as
/// without.
#[test]
fn a_recovery_that_fails_leaves_what_it_found() {
    for (subject, steps) in [(&SINGLE, "L>t"), (&SEGMENTS, "L>u"), (&SEGMENTS, "sh"), (&TINY, "sc")]
    {
        let nested = subject.nested();
        for config in ["manual", "always-reserve", "always-acknowledged"].map(Config::named) {
            let mut run = Run::new(subject, config, &nested);
            run.open().unwrap();
            "1bs".chars().for_each(|op| run.apply(op).unwrap());
            run.record();
            steps.chars().for_each(|op| run.apply(op).unwrap());
            for moment in run.moments.iter().step_by(2) {
                let crashes = moment.disk.crashes();
                for seed in 0..2 {
                    let image = crashes.build(&crashes.sample(seed));
                    for (_, what, _) in honest() {
                        for at in 1.. {
                            let disk = image.kill();
                            disk.inject(Fault::once(at, what));
                            if let Err(error) = subject.open(&disk, config.how) {
                                expect_typed(&error).unwrap();
                            }
                            let last = at > disk.calls();
                            disk.heal();
                            let disk = disk.kill();
                            let log = subject.open(&disk, config.how).unwrap();
                            let got = log.read_all().unwrap();
                            moment.judge(&*log, &got, config.how.acknowledged).unwrap();
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

/// A disk that lies may lose what it swore to have, but the log says so or gives a prefix.
#[test]
fn a_disk_that_lies_never_makes_wrong_records() {
    let mut refused = 0;
    for subject in [&SINGLE, &SEGMENTS] {
        let nested = subject.nested();
        for config in ["manual", "always", "always-reserve"].map(Config::named) {
            for call in [Call::Sync, Call::SyncDir, Call::Write] {
                for what in [What::Lie, What::Misdirect(512), What::Misdirect(1 << 16)] {
                    for at in 1..60 {
                        for times in [1, u64::MAX] {
                            let mut run = Run::new(subject, config, &nested);
                            run.disk.inject(Fault { at, of: Some(call), what, times });
                            let mut done = run.open();
                            for op in "0=sbLs>1s".chars() {
                                done = done.and_then(|()| run.apply(op));
                            }
                            run.disk.heal();
                            if run.disk.fired() == 0 {
                                break;
                            }
                            let crashes = run.disk.crashes();
                            let states =
                                (0..6).map(|seed| crashes.build(&crashes.sample(mix(seed))));
                            for disk in states.chain([run.disk.kill()]) {
                                let opened = subject.open(&disk, config.how);
                                let got = match opened.and_then(|log| log.read_all()) {
                                    Ok(got) => got,
                                    Err(error) => {
                                        refused += 1;
                                        let kind = error.kind();
                                        use ErrorKind::{Corrupt, LostRecords, NotALog};
                                        assert!(
                                            matches!(kind, Corrupt | LostRecords | NotALog),
                                            "{config:?} {call:?} {what:?} at {at}: {error:?}"
                                        );
                                        continue;
                                    }
                                };
                                judge(&got, &run.records, 0, false).unwrap_or_else(|wrong| {
                                    panic!("{config:?} {call:?} {what:?} at {at}: {wrong}")
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 0, "no lie was ever noticed");
}

#[test]
fn interrupted_reads_and_writes_are_repeated() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let (disk, records) = written(subject, "0=bL");
        for call in [Call::Read, Call::Write] {
            for at in 1..30 {
                let disk = disk.kill();
                let interrupted = What::Error(io::ErrorKind::Interrupted);
                disk.inject(Fault { at, of: Some(call), what: interrupted, times: 3 });
                let log = subject.open(&disk, ALWAYS).unwrap();
                log.append(&[(5, vec![5; 700])]).unwrap();
                assert_eq!(log.read_all().unwrap().len(), records.len() + 1);
                log.close().unwrap();
            }
        }
    }
}

/// What is left if the power cut takes everything that it may.
fn worst(disk: &Sim) -> Sim {
    let crashes = disk.crashes();
    crashes.build(&crashes.nth(0))
}

/// Also those who come later, and whatever else is asked: truncations, waiting for what is in the
/// log.
#[test]
fn after_a_failed_sync_everything_is_refused_until_it_is_opened_again() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        // Which of the files to sync fails, if there are several.
        for at in 1..=2 {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            let one = wal.append(&[1; 700]).unwrap();
            wal.sync().unwrap();
            let two = wal.append(&[2; 700]).unwrap();
            disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
            let error = match wal.sync() {
                Err(error) => error,
                Ok(()) if at > 1 => continue,
                Ok(()) => panic!("{}: synced", subject.name),
            };
            assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::Unknown)));
            let durable = wal.durable_end().unwrap();
            assert_eq!(durable, Some(two));
            let mut batch = Batch::new(100);
            batch.push(b"three").unwrap();
            for error in [
                wal.append(b"three").unwrap_err(),
                wal.append_batch(&batch).unwrap_err(),
                wal.commit(b"three").unwrap_err(),
                wal.sync().unwrap_err(),
                wal.wait_durable(two).unwrap_err(),
                wal.wait_durable(one).unwrap_err(),
                wal.truncate_after(one).unwrap_err(),
                wal.truncate_from(two).unwrap_err(),
            ] {
                let told = (error.kind(), error.durable());
                assert_eq!(told, (ErrorKind::Poisoned, Some(Durable::Unknown)), "{error}");
            }
            assert_eq!(wal.close().unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(wal.read(one).unwrap_err().kind(), ErrorKind::Closed);
            let wal = subject.wal(&disk, MANUAL).unwrap();
            assert_eq!(wal.read(one).unwrap().payload, [1; 700]);
            // What the failed sync left in the cache, clean but not on the disk, is written again.
            assert_eq!(wal.read(two).unwrap().payload, [2; 700]);
            assert_eq!(wal.durable_end().unwrap(), Some(wal.end().unwrap()));
            let wal = subject.wal(&worst(&disk), MANUAL).unwrap();
            assert_eq!(wal.read(two).unwrap().payload, [2; 700]);
        }
    }
}

/// One failing fsync fails all who wait for it, and those who come after.
#[test]
fn a_failed_sync_fails_all_eight_waiters() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        for at in 1..12 {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
            let told: Vec<Vec<Lsn>> = std::thread::scope(|scope| {
                let work = |thread: u8| {
                    let wal = &wal;
                    let mut told = Vec::new();
                    for n in 0..6 {
                        match wal.commit(&[thread; 90][..60 + 5 * n]) {
                            Ok(lsn) => told.push(lsn),
                            Err(error) => {
                                assert_eq!(error.durable(), Some(Durable::Unknown), "{error}");
                                break;
                            }
                        }
                    }
                    told
                };
                let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || work(n))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            if disk.fired() > 0 {
                assert_eq!(wal.append(b"late").unwrap_err().kind(), ErrorKind::Poisoned);
            }
            let after = subject.wal(&worst(&disk), MANUAL).unwrap();
            for (thread, told) in told.iter().enumerate() {
                for lsn in told {
                    assert_eq!(after.read(*lsn).unwrap().payload[0], thread as u8);
                }
            }
        }
    }
}

/// A record spans segments and only its first part was written: it is taken back, with the segments
/// made for it, and never comes back, not even those that lie behind a gap after the power cut.
#[test]
fn a_record_whose_second_half_fails_is_rolled_back_over_all_its_segments() {
    for subject in [&SEGMENTS, &TINY] {
        for call in [Call::Write, Call::Create] {
            for (what, times) in [
                (What::Partial(io::ErrorKind::StorageFull), 1),
                (What::Error(io::ErrorKind::StorageFull), 1),
                (What::Zero, 1),
            ] {
                for at in 1..8 {
                    let disk = Sim::new();
                    let wal = subject.wal(&disk, MANUAL).unwrap();
                    wal.append(b"one").unwrap();
                    wal.sync().unwrap();
                    disk.inject(Fault { at, of: Some(call), what, times });
                    // The first half of the batch is a whole record.
                    let mut batch = Batch::new(1 << 20);
                    batch.push(&[2; 400]).unwrap();
                    batch.push(&[3; 1500]).unwrap();
                    let Err(error) = wal.append_batch(&batch) else { continue };
                    assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
                    let crashes = disk.crashes();
                    for index in 0..crashes.count().min(200) {
                        let image = crashes.build(&crashes.nth(index));
                        let after = subject.wal(&image, MANUAL).unwrap();
                        assert_eq!(after.len().unwrap(), 1, "{what:?} {at}, state {index}");
                        assert_eq!(after.end().unwrap(), Lsn(11));
                    }
                    disk.heal();
                    assert_eq!(wal.append(b"goes on").unwrap(), Lsn(11));
                    assert_eq!(read_all(&wal).unwrap().len(), 2);
                    wal.sync().unwrap();
                    let after = subject.wal(&worst(&disk), MANUAL).unwrap();
                    assert_eq!(after.read(Lsn(11)).unwrap().payload, b"goes on");
                }
            }
        }
    }
}

/// A rolled back append cannot be rolled back if cutting fails too: then nothing more is taken.
#[test]
fn an_append_that_cannot_be_rolled_back_poisons() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        for call in [Call::SetLen, Call::Sync] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            wal.append(b"one").unwrap();
            wal.sync().unwrap();
            let eio = What::Error(io::ErrorKind::Other);
            disk.inject(Fault::ever(1, What::Partial(io::ErrorKind::StorageFull)).of(Call::Write));
            disk.inject(Fault::ever(1, eio).of(call));
            let error = wal.append(&[7; 50]).unwrap_err();
            assert_eq!(error.durable(), Some(Durable::Unknown), "{} {call:?}", subject.name);
            disk.heal();
            assert_eq!(wal.append(b"late").unwrap_err().kind(), ErrorKind::Poisoned);
            drop(wal);
            assert_eq!(subject.wal(&disk, MANUAL).unwrap().read(Lsn(0)).unwrap().payload, b"one");
        }
    }
}

/// A log that cannot be created is not there, and can be created later.
#[test]
fn a_failed_creation_leaves_nothing_in_the_way() {
    for subject in [&SINGLE, &SEGMENTS] {
        for (_, what, lasts) in honest() {
            for at in 1..60 {
                let disk = Sim::new();
                disk.inject(if lasts { Fault::ever(at, what) } else { Fault::once(at, what) });
                let created = subject.wal(&disk, ALWAYS);
                disk.heal();
                drop(created);
                for disk in [disk.kill(), worst(&disk)] {
                    let wal = subject.wal(&disk, ALWAYS).unwrap();
                    assert_eq!(wal.append(b"one").unwrap(), Lsn(0));
                }
            }
        }
    }
}

/// More segments are unsynced than may be open, so the oldest is synced and closed. If that fails,
/// no later sync may make up for it.
#[test]
fn a_segment_is_synced_before_it_is_closed_for_want_of_handles() {
    for failing in [None, Some(1), Some(2), Some(5)] {
        let disk = Sim::new();
        let wal = TINY.wal(&disk, MANUAL).unwrap();
        if let Some(at) = failing {
            disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        }
        let mut refused = 0;
        for n in 0..40 {
            refused += u64::from(wal.append(&[n; 56]).is_err());
        }
        assert_eq!(refused > 0, failing.is_some());
        let synced = wal.sync();
        assert_eq!(synced.is_err(), failing.is_some());
        let Lsn(durable) = wal.durable_end().unwrap().unwrap();
        let after = TINY.wal(&worst(&disk), MANUAL).unwrap();
        assert!(after.end().unwrap().0 >= durable, "{failing:?}");
        if synced.is_ok() {
            assert_eq!(read_all(&after).unwrap(), read_all(&wal).unwrap());
        }
    }
}
