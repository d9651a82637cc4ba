//! Power cuts and deaths at every storage call of every short history, on the simulated disk.
//!
//! ```text
//! DEEDBOOK_CRASH_STATES   states to check, about (default 1,000,000)
//! DEEDBOOK_CRASH_STEPS    longest history (default 3)
//! DEEDBOOK_CRASH_SEED     seed of the samples
//! DEEDBOOK_CRASH_HISTORY  CONFIG:STEPS of one history, as a failure prints it
//! DEEDBOOK_TRUST_DIR      where crash-*.json is written
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

mod harness;

use std::path::Path;
use std::sync::Mutex;

use deedbook::Durability;
use deedbook::book::{Book, Mode, repair};
use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, Storage};

use harness::book::{BOOK, EPOCH, PATH, options};
use harness::campaign::Campaign;
use harness::history::{ALPHABET, LONGER};
use harness::{How, report};

const CONFIGS: [&str; 7] = [
    "manual",
    "always",
    "manual-reserve",
    "always-reserve",
    "manual-acknowledged",
    "always-acknowledged",
    "none",
];

#[test]
fn a_book_survives_every_crash_of_every_short_history() {
    let states = report::number("DEEDBOOK_CRASH_STATES", 1_000_000);
    let families = &[("", ALPHABET, 0)];
    let book = Campaign {
        subject: &BOOK,
        configs: &CONFIGS,
        families,
        longer: LONGER,
        states,
        states_longer: 0,
    };
    book.run();
    // A tenth with event numbers of several bytes, which the directory's name gives.
    Campaign { subject: &EPOCH, states: states / 10, ..book }.run();
}

const ALWAYS: How = How { durability: Durability::Always, acknowledged: false };

/// What is left if the power cut takes everything that it may.
fn worst(disk: &Sim) -> Sim {
    let crashes = disk.crashes();
    crashes.build(&crashes.nth(0))
}

/// Found by the enumerator: a creator killed before it could sync a directory left names that only
/// the cache had. The next handle found them, synced none, acknowledged deeds, and a power cut took
/// the whole log.
#[test]
fn names_left_by_a_killed_creator_are_made_durable() {
    for call in [Call::SyncDir, Call::Rename, Call::Create, Call::CreateDir] {
        for at in 1..6 {
            let disk = Sim::new();
            disk.inject(Fault::once(at, What::Crash).of(call));
            let _ = options(&disk, ALWAYS).open(PATH, Mode::Append);
            let disk = disk.kill();
            let book = options(&disk, ALWAYS).open(PATH, Mode::Append).unwrap();
            book.append(1, b"acknowledged").unwrap();
            let after = worst(&disk);
            assert!(after.is_dir(Path::new("/log/.deedbook")), "{call:?} {at}");
            let book = options(&after, ALWAYS).open(PATH, Mode::Append).unwrap();
            assert_eq!(book.read(1).unwrap().jam, b"acknowledged", "{call:?} {at}");
        }
    }
}

/// Found by the enumerator: the mark is not synced with every sync, so after a power cut it may be
/// older than what was acknowledged, and `recovery="acknowledged"` cut that.
#[test]
fn recovery_to_the_acknowledged_keeps_all_of_it_after_a_power_cut() {
    let acknowledged = How { acknowledged: true, ..ALWAYS };
    for (writer, kept_more) in [(acknowledged, 0), (ALWAYS, 1)] {
        let writer = How { durability: Durability::Manual, ..writer };
        let disk = Sim::new();
        let book = options(&disk, writer).open(PATH, Mode::Create).unwrap();
        for jam in [b"one", b"two"] {
            book.append(0, jam).unwrap();
            book.sync().unwrap();
        }
        // Never acknowledged, though it is on the disk: cut if the mark is known to be exact.
        book.append(0, b"three").unwrap();
        let crashes = disk.crashes();
        let all = crashes.build(&crashes.nth(crashes.count() - 1));
        for (after, last) in [(worst(&disk), 2), (all, 2 + kept_more)] {
            let book = options(&after, acknowledged).open(PATH, Mode::Append).unwrap();
            assert!((2..=last).contains(&book.last().unwrap()), "{writer:?}");
            assert_eq!(book.read(2).unwrap().jam, b"two");
        }
    }
}

/// A log copied with its sidecar was taken for durable on the word of the mark, and with the power
/// gone before the copy reached the disk, refused as having lost acknowledged deeds.
#[test]
fn a_copied_log_is_synced_before_it_counts_as_durable() {
    let disk = Sim::new();
    let book = options(&disk, ALWAYS).open(PATH, Mode::Create).unwrap();
    book.append(0, b"copied").unwrap();
    book.close().unwrap();
    for dir in ["/copy", "/copy/.deedbook"] {
        disk.create_dir(Path::new(dir)).unwrap();
    }
    for name in ["book.log", ".deedbook/mark"] {
        let copy = disk.create_new(&Path::new("/copy").join(name), 0o644).unwrap();
        copy.write_at(&bytes(&disk, &format!("{PATH}/{name}")), 0).unwrap();
    }
    let book = options(&disk, ALWAYS).open("/copy", Mode::Append).unwrap();
    assert_eq!(book.durable_last().unwrap(), Some(1));
    let after = worst(&disk);
    let book = options(&after, ALWAYS).open("/copy", Mode::Append).unwrap();
    assert_eq!(book.read(1).unwrap().jam, b"copied");
}

/// Every byte of a file.
fn bytes(disk: &Sim, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), Access::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

/// A crash at any step of a repair leaves the log as it was, or cut with the rest beside it.
#[test]
fn a_repair_loses_no_byte_at_any_crash() {
    let disk = Sim::new();
    let book = options(&disk, ALWAYS).open(PATH, Mode::Create).unwrap();
    for n in 0..6u8 {
        book.append(0, &[n + 1; 300]).unwrap();
    }
    book.close().unwrap();
    drop(book);
    let log = disk.open(Path::new("/log/book.log"), Access::Write).unwrap();
    log.write_at(&[0xff], 16 + 2 * 324 + 100).unwrap();
    log.sync_data().unwrap();
    drop(log);
    let whole = bytes(&disk, "/log/book.log");
    let cut = 16 + 2 * 324;
    disk.record();
    repair(
        PATH,
        &options(&disk, ALWAYS),
        deedbook::Repair { force: true, accept_loss: true, dry_run: false },
    )
    .unwrap();
    let mut states = 0;
    for moment in disk.recorded() {
        let crashes = moment.crashes();
        for index in 0..crashes.count().min(300) {
            let choice = match crashes.count() <= 300 {
                true => crashes.nth(index),
                false => crashes.sample(index),
            };
            let after = crashes.build(&choice);
            states += 1;
            let log = bytes(&after, "/log/book.log");
            if log != whole {
                // Nothing behind the damage is left of it that the saved file does not have.
                assert_eq!(log[..cut], whole[..cut], "{choice:?}");
                let names = after.list(Path::new("/log")).unwrap();
                let saved = names.iter().filter_map(|name| name.to_str());
                let saved: Vec<_> = saved.filter(|name| name.contains(".cut-")).collect();
                assert!(
                    saved.iter().any(|name| bytes(&after, &format!("/log/{name}")) == whole[cut..]),
                    "{choice:?}: {saved:?}"
                );
                // Cut, so it is the new state: nothing says that deeds are missing.
                let book = options(&after, ALWAYS).open(PATH, Mode::Append);
                book.unwrap_or_else(|e| panic!("{choice:?}: {e}")).close().unwrap();
            }
            // Repairing again ends in the same.
            repair(
                PATH,
                &options(&after, ALWAYS),
                deedbook::Repair { force: true, accept_loss: true, dry_run: false },
            )
            .unwrap();
            let book = options(&after, ALWAYS).open(PATH, Mode::Append).unwrap();
            assert_eq!(book.last().unwrap(), 2);
            assert_eq!(book.append(0, b"goes on").unwrap(), 3);
        }
    }
    assert!(states > 20, "{states}");
}

/// What any thread was told is durable, whoever's sync it was that made it so.
#[test]
fn what_any_thread_was_told_survives_a_power_cut() {
    for failing in [None, Some(1), Some(7), Some(40)] {
        let disk = Sim::new();
        let book = options(&disk, ALWAYS).open(PATH, Mode::Create).unwrap();
        if let Some(at) = failing {
            disk.inject(Fault::once(at, What::Error(std::io::ErrorKind::Other)).of(Call::Sync));
        }
        let told = Mutex::new(Vec::new());
        let append = |book: &Book, thread: u64| {
            for n in 0..150u64 {
                let batch = n % 3 == 0;
                let appended = match batch {
                    true => {
                        book.append(9, &[thread as u8; 40]).and_then(|_| book.sync()).map(|()| 0)
                    }
                    false => book.append(9, &n.to_le_bytes()),
                };
                match appended {
                    Ok(0) => {}
                    Ok(event) => told.lock().unwrap().push(event),
                    Err(error) => {
                        let durable = error.durable();
                        assert_eq!(durable, Some(deedbook::Durable::Unknown), "{error:?}");
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (book, append) = (&book, &append);
                scope.spawn(move || append(book, thread));
            }
            for _ in 0..100 {
                let told = told.lock().unwrap().clone();
                let after = options(&worst(&disk), ALWAYS).open(PATH, Mode::Append).unwrap();
                let last = told.iter().copied().max().unwrap_or(0);
                assert!(after.last().unwrap() >= last, "{failing:?}");
                std::thread::yield_now();
            }
        });
        let told = told.into_inner().unwrap();
        let after = options(&worst(&disk), ALWAYS).open(PATH, Mode::Append).unwrap();
        assert!(after.last().unwrap() >= told.iter().copied().max().unwrap_or(0));
        if failing.is_some() {
            assert_eq!(
                book.append(0, b"refused").unwrap_err().kind(),
                deedbook::ErrorKind::Poisoned
            );
        }
    }
}
