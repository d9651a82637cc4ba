//! Disks that claim to have stored data they lost.

use super::*;

for_every_subject! {
    /// A lying disk may lose acknowledged records; then the log reports the loss or gives a prefix.
    a_disk_that_lies_never_makes_wrong_records,
}

// Promise: wal-lies.
fn a_disk_that_lies_never_makes_wrong_records(subject: &Subject) {
    let nested = subject.nested();
    let mut refused = 0;
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
                        let states = (0..6).map(|seed| crashes.state_by_chance(mix(seed)));
                        for disk in states.chain([run.disk.kill()]) {
                            let there = || format!("{config:?} {call:?} {what:?} at {at}");
                            let opened = subject.open(&disk, config.how);
                            let got = match opened.and_then(|log| log.read_all()) {
                                Ok(got) => got,
                                Err(error) => {
                                    refused += 1;
                                    use ErrorKind::{
                                        Corrupt, InvalidArgument, LostRecords, NotALog,
                                    };
                                    // Without its header, a log looks like a log of another layout.
                                    let expected = [Corrupt, LostRecords, NotALog, InvalidArgument];
                                    let is_expected = expected.contains(&error.kind());
                                    assert!(is_expected, "{}: {error:?}", there());
                                    continue;
                                }
                            };
                            judge(&got, &run.records, 0, false)
                                .unwrap_or_else(|wrong| panic!("{}: {wrong}", there()));
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 0, "no lie was ever noticed");
}
