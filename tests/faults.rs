//! Every storage call fails once and for ever, in every way; and disks that lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

mod harness;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use deedbook::book::{Book, Meta, Mode, Options, verify};
use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::{Durability, Durable, ErrorKind};

use harness::book::{BOOK, PATH, options};
use harness::faulty::{Script, expect_typed, honest};
use harness::history::{Config, Run};
use harness::{How, Subject, judge, mix, report};

const SCRIPTS: [&str; 3] = ["0=sbLr>s1rK", "Lbs", "r1r"];
const CONFIGS: [&str; 6] =
    ["manual", "always", "manual-reserve", "always-reserve", "always-acknowledged", "none"];
const ALWAYS: How = How { durability: Durability::Always, acknowledged: false };
const MANUAL: How = How { durability: Durability::Manual, acknowledged: false };

/// Fail the k-th call for k = 1, 2, ... until none is left to fail.
#[test]
fn every_call_fails_in_every_way_once_and_for_ever() {
    let nested = BOOK.nested();
    let mut lines = Vec::new();
    let mut failures = Vec::new();
    for (name, what, lasts) in honest() {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for config in CONFIGS.map(Config::named) {
            for steps in SCRIPTS {
                let script = Script { subject: &BOOK, config, steps, nested: &nested };
                let mut times = vec![1, 3];
                times.extend(lasts.then_some(u64::MAX));
                for times in times {
                    for at in 1.. {
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
        "{{\n  \"format\": \"book\",\n  \"failures\": {},\n  \"faults\": {{\n{}\n  }}\n}}\n",
        failures.len(),
        lines.join(",\n")
    );
    report::write("faults", &json);
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// A log of some records, closed, and what a reader and a check find in it.
fn written(steps: &str) -> (Sim, Vec<harness::Record>) {
    let nested = BOOK.nested();
    let mut run = Run::new(&BOOK, Config::named("always"), &nested);
    run.open().unwrap();
    steps.chars().for_each(|op| run.apply(op).unwrap());
    run.log().close().unwrap();
    (run.disk.clone(), run.records.clone())
}

/// A read error is an error, never taken for the end.
#[test]
fn a_reader_gives_all_or_an_error() {
    let (disk, records) = written("0=bLK>");
    for what in
        [What::Error(io::ErrorKind::Other), What::Error(io::ErrorKind::Interrupted), What::Short]
    {
        for times in [1, 2, 50] {
            for at in 1.. {
                let disk = disk.kill();
                disk.inject(Fault { at, of: None, what, times });
                match BOOK.peek(&disk) {
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

#[test]
fn a_check_gives_the_truth_or_an_error() {
    let (disk, _) = written("0=bLK>");
    let options = |disk: &Sim| options(disk, MANUAL);
    let truth = verify(PATH, &options(&disk), |_, _| Ok(())).unwrap();
    assert!(truth.ok());
    for at in 1..40 {
        let disk = disk.kill();
        disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)));
        match verify(PATH, &options(&disk), |_, _| Ok(())) {
            // Without the mark or the index, which are advisory, less is known.
            Ok(report) => {
                assert_eq!((report.records, report.verdict), (truth.records, truth.verdict))
            }
            Err(error) => expect_typed(&error).unwrap(),
        }
    }
}

/// Recovery of torn logs meets faults too: an error or the same as without.
#[test]
fn a_recovery_that_fails_leaves_what_it_found() {
    let nested = BOOK.nested();
    for config in ["manual", "always-reserve", "always-acknowledged"].map(Config::named) {
        let mut run = Run::new(&BOOK, config, &nested);
        run.open().unwrap();
        "1bs".chars().for_each(|op| run.apply(op).unwrap());
        run.record();
        "L>".chars().for_each(|op| run.apply(op).unwrap());
        for moment in &run.moments {
            let crashes = moment.disk.crashes();
            for seed in 0..6 {
                let image = crashes.build(&crashes.sample(seed));
                for (_, what, _) in honest() {
                    for at in 1..45 {
                        let disk = image.kill();
                        disk.inject(Fault::once(at, what));
                        if let Err(error) = BOOK.open(&disk, config.how) {
                            expect_typed(&error).unwrap();
                        }
                        disk.heal();
                        let disk = disk.kill();
                        let log = BOOK.open(&disk, config.how).unwrap();
                        let got = log.read_all().unwrap();
                        moment.judge(&*log, &got, config.how.acknowledged).unwrap();
                    }
                }
            }
        }
    }
}

/// A disk that lies may lose what it swore to have, but the log says so or gives a prefix.
#[test]
fn a_disk_that_lies_never_makes_wrong_records() {
    let nested = BOOK.nested();
    let mut refused = 0;
    for config in ["manual", "always", "always-reserve"].map(Config::named) {
        for call in [Call::Sync, Call::SyncDir, Call::Write] {
            for what in [What::Lie, What::Misdirect(512), What::Misdirect(1 << 16)] {
                for at in 1..60 {
                    for times in [1, u64::MAX] {
                        let mut run = Run::new(&BOOK, config, &nested);
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
                        let states = (0..6).map(|seed| crashes.build(&crashes.sample(mix(seed))));
                        for disk in states.chain([run.disk.kill()]) {
                            // Opened for writing; where that is refused, what can be read is right.
                            let opened = BOOK.open(&disk, config.how);
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
    assert!(refused > 0, "no lie was ever noticed");
}

#[test]
fn interrupted_reads_and_writes_are_repeated() {
    let (disk, records) = written("0=bL");
    for call in [Call::Read, Call::Write] {
        for at in 1..30 {
            let disk = disk.kill();
            let interrupted = What::Error(io::ErrorKind::Interrupted);
            disk.inject(Fault { at, of: Some(call), what: interrupted, times: 3 });
            let log = BOOK.open(&disk, ALWAYS).unwrap();
            log.append(&[(5, vec![5; 700])]).unwrap();
            assert_eq!(log.read_all().unwrap().len(), records.len() + 1);
            log.close().unwrap();
        }
    }
}

fn book(disk: &Sim, how: How) -> Book {
    options(disk, how).open(PATH, Mode::Append).unwrap()
}

#[test]
fn after_a_failed_sync_everything_is_refused_until_it_is_opened_again() {
    let disk = Sim::new();
    let log = book(&disk, MANUAL);
    log.append(1, b"one").unwrap();
    log.sync().unwrap();
    log.append(2, b"two").unwrap();
    disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
    let error = log.sync().unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::Unknown)));
    for error in [log.append(3, b"three").unwrap_err(), log.sync().unwrap_err()] {
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Poisoned, Some(Durable::Unknown)));
    }
    assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(log.read(1).unwrap_err().kind(), ErrorKind::Closed);
    let log = book(&disk, MANUAL);
    assert_eq!(log.read(1).unwrap().jam, b"one");
}

/// Found by the fault loop: the failed sync left the deed in the cache, clean but not on the disk;
/// opening again found it there, synced nothing, and called it durable.
#[test]
fn what_a_failed_sync_left_in_the_cache_is_written_again_when_opening() {
    let disk = Sim::new();
    let log = book(&disk, MANUAL);
    log.append(1, b"one").unwrap();
    disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
    log.sync().unwrap_err();
    drop(log);
    let log = book(&disk, MANUAL);
    assert_eq!((log.last().unwrap(), log.durable_last().unwrap()), (1, Some(1)));
    let crashes = disk.crashes();
    let after = book(&crashes.build(&crashes.nth(0)), MANUAL);
    assert_eq!(after.read(1).unwrap().jam, b"one");
}

/// Found by the fault loop: an append that failed half-way was cut off again, but not on the disk,
/// and a power cut brought back the deed whose caller was told that it is not in the log.
#[test]
fn an_append_that_was_rolled_back_does_not_come_back() {
    for what in [What::Partial(io::ErrorKind::StorageFull), What::Short] {
        let disk = Sim::new();
        let log = book(&disk, MANUAL);
        log.append(1, b"one").unwrap();
        log.sync().unwrap();
        // The first half of the batch is a whole deed.
        let mut batch = deedbook::book::Batch::new(1 << 20);
        batch.push(2, &[2; 400]).unwrap();
        batch.push(3, &[3; 400]).unwrap();
        disk.inject(Fault::once(1, what).of(Call::Write));
        disk.inject(Fault::once(2, What::Error(io::ErrorKind::StorageFull)).of(Call::Write));
        let error = log.append_batch(&batch, None, None).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
        let crashes = disk.crashes();
        for index in 0..crashes.count() {
            let after = book(&crashes.build(&crashes.nth(index)), MANUAL);
            assert_eq!(after.last().unwrap(), 1, "state {index}");
        }
        disk.heal();
        log.append(4, b"goes on").unwrap();
        assert_eq!(log.last().unwrap(), 2);
    }
}

/// Metadata is old or new, whatever fails.
#[test]
fn metadata_is_replaced_whole_or_not_at_all() {
    let meta = |life| Meta { who: Some(7), version: Some(1), life: Some(life), fake: Some(false) };
    for (_, what, _) in honest() {
        for at in 1..20 {
            let disk = Sim::new();
            let log = book(&disk, ALWAYS);
            log.save_meta(&meta(1)).unwrap();
            disk.inject(Fault::once(at, what));
            let saved = log.save_meta(&meta(2));
            let crashes = disk.crashes();
            for index in 0..crashes.count().min(100) {
                let after = book(&crashes.build(&crashes.nth(index)), ALWAYS).meta().unwrap();
                let old = saved.is_err() && after == meta(1);
                assert!(old || after == meta(2), "{what:?} at {at}: {after:?}");
            }
            disk.heal();
            let disk = disk.kill();
            let log = book(&disk, ALWAYS);
            log.save_meta(&meta(3)).unwrap();
            assert_eq!(log.meta().unwrap(), meta(3));
        }
    }
}

/// A book that cannot be created is not there, and can be created later.
#[test]
fn a_failed_creation_leaves_nothing_in_the_way() {
    for (_, what, lasts) in honest() {
        for at in 1..40 {
            let disk = Sim::new();
            disk.inject(if lasts { Fault::ever(at, what) } else { Fault::once(at, what) });
            let options = Options { storage: Arc::new(disk.clone()), ..Options::default() };
            let created = options.open(PATH, Mode::Create);
            disk.heal();
            let disk = disk.kill();
            let options = Options { storage: Arc::new(disk.clone()), ..Options::default() };
            if created.is_err() && disk.open(Path::new("/log/book.log"), Access::Read).is_err() {
                options.open(PATH, Mode::Create).unwrap().append(1, b"one").unwrap();
            } else {
                drop(created);
                options.open(PATH, Mode::Append).unwrap().append(1, b"one").unwrap();
            }
        }
    }
}

/// A deed beyond 1 MiB is written in parts; a failure at any of them takes back all.
#[test]
fn a_long_deed_written_in_parts_is_there_whole_or_not_at_all() {
    let jam: Vec<u8> = (0..(1 << 20) + 700u32).map(|at| mix(u64::from(at)) as u8).collect();
    for what in [What::Partial(io::ErrorKind::StorageFull), What::Zero, What::Short, What::Crash] {
        for at in 1..6 {
            let disk = Sim::new();
            let log = book(&disk, MANUAL);
            log.append(1, b"one").unwrap();
            log.sync().unwrap();
            disk.inject(Fault::once(at, what).of(Call::Write));
            let appended = log.append(2, &jam);
            let crashes = disk.crashes();
            for seed in 0..8 {
                let after = book(&crashes.build(&crashes.sample(seed)), MANUAL);
                match (after.last().unwrap(), &appended) {
                    (1, _) => {}
                    (2, Ok(2)) => assert_eq!(after.read(2).unwrap().jam, jam),
                    (2, Err(error)) if error.durable() == Some(Durable::Unknown) => {
                        assert_eq!(after.read(2).unwrap().jam, jam);
                    }
                    other => panic!("{what:?} {at}: {other:?}"),
                }
            }
        }
    }
}
