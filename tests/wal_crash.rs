//! Power cuts and deaths at every storage call of every short history of a write-ahead log, with
//! prefixes dropped and ends cut, on the simulated disk. The settings are those of `crash.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

mod harness;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::wal::{Lsn, Mode, OnCorrupt, Options, Wal, repair, segment_name};
use deedbook::{Durability, ErrorKind};

use harness::campaign::Campaign;
use harness::wal::{ALPHABET, LONGER, SEGMENTS, SINGLE, TINY, WalSubject, read_all};
use harness::watch::{Seen, watched};
use harness::{How, Record, Subject, mix, report};

const CONFIGS: [&str; 7] = [
    "manual",
    "always",
    "manual-reserve",
    "always-reserve",
    "manual-acknowledged",
    "always-acknowledged",
    "none",
];
/// Of one file no prefix can be dropped.
const ALPHABET_SINGLE: &str = "0<=>SbLstcr";
const LONGER_SINGLE: &str = "0<=>SbLsr0<=>SbLsr1tucCKH";
const ALWAYS: How = How { durability: Durability::Always, acknowledged: false };
const MANUAL: How = How { durability: Durability::Manual, acknowledged: false };

fn survives(subject: &WalSubject, alphabet: &'static str, longer: &'static str) {
    let states = report::number("DEEDBOOK_CRASH_STATES", 1_000_000);
    let steps = report::number("DEEDBOOK_CRASH_STEPS", 3) as usize;
    // From nothing; and with records to drop, which makes long histories anyway.
    let families = &[("", alphabet, 0), ("bLs", alphabet, steps.saturating_sub(2))];
    let (states, states_longer) = (states / 25, states / 10);
    Campaign { subject, configs: &CONFIGS, families, longer, states, states_longer }.run();
}

#[test]
fn a_log_of_one_file_survives_every_crash_of_every_short_history() {
    survives(&SINGLE, ALPHABET_SINGLE, LONGER_SINGLE);
}

#[test]
fn a_log_of_segments_survives_every_crash_of_every_short_history() {
    survives(&SEGMENTS, ALPHABET, LONGER);
}

#[test]
fn a_log_of_tiny_segments_survives_every_crash_of_every_short_history() {
    survives(&TINY, ALPHABET, LONGER);
}

/// What is left if the power cut takes everything that it may.
fn worst(disk: &Sim) -> Sim {
    let crashes = disk.crashes();
    crashes.build(&crashes.nth(0))
}

/// States that a power cut can leave: all, or so many by chance.
fn states(disk: &Sim, count: u64) -> Vec<Sim> {
    let crashes = disk.crashes();
    let all = crashes.count() <= count;
    let choice = |index| if all { crashes.nth(index) } else { crashes.sample(mix(index)) };
    (0..crashes.count().min(count)).map(|index| crashes.build(&choice(index))).collect()
}

fn segments(disk: &Sim) -> Vec<u64> {
    let names = disk.list(Path::new("/log")).unwrap();
    let index = |name: OsString| name.to_str()?.strip_suffix(".wal")?.parse().ok();
    let mut indices: Vec<_> = names.into_iter().filter_map(index).collect();
    indices.sort_unstable();
    indices
}

/// A creator killed before it could sync a directory leaves names that only the cache has; the next
/// one makes them durable, those of the sidecar as well: without the mark, a torn record that holds
/// records would be refused.
#[test]
fn names_left_by_a_killed_creator_are_made_durable() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let nested = subject.nested();
        for call in [Call::SyncDir, Call::Rename, Call::Create, Call::CreateDir] {
            for at in 1..9 {
                let disk = Sim::new();
                disk.inject(Fault::once(at, What::Crash).of(call));
                let _ = subject.wal(&disk, MANUAL);
                let disk = disk.kill();
                let wal = subject.wal(&disk, MANUAL).unwrap();
                let lsn = wal.commit(b"acknowledged").unwrap();
                wal.append(&nested.repeat(3)).unwrap();
                for after in states(&disk, 60) {
                    let opened = subject.wal(&after, MANUAL);
                    let wal = opened.unwrap_or_else(|e| panic!("{call:?} {at}: {e}"));
                    assert_eq!(wal.read(lsn).unwrap().payload, b"acknowledged", "{call:?} {at}");
                    assert!(wal.len().unwrap() <= 2);
                }
            }
        }
    }
}

/// Record what `change` does and crash every step of it: the log holds `old` or `new`, and behind
/// the last step only `new`.
fn old_or_new(subject: &WalSubject, disk: &Sim, wal: &Wal, change: impl FnOnce()) {
    let old = read_all(wal).unwrap();
    disk.record();
    change();
    let moments = disk.recorded();
    let new = read_all(wal).unwrap();
    assert_ne!(old, new);
    for (call, moment) in moments.iter().enumerate() {
        for after in states(moment, 40).into_iter().chain([moment.kill()]) {
            let got = read_all(&subject.wal(&after, MANUAL).unwrap()).unwrap();
            assert!(
                got == old || got == new,
                "{} call {call}: {} records",
                subject.name,
                got.len()
            );
        }
    }
    for after in states(disk, 40) {
        assert_eq!(read_all(&subject.wal(&after, MANUAL).unwrap()).unwrap(), new);
    }
}

/// Also the n-th one, with records behind the new head that are not synced, and of all records.
#[test]
fn a_crash_at_any_step_of_any_dropping_of_a_prefix_leaves_the_old_or_the_new_log() {
    for subject in [&SEGMENTS, &TINY] {
        let disk = Sim::new();
        let wal = subject.wal(&disk, MANUAL).unwrap();
        for round in 0..6u8 {
            let payload = |n: u8| vec![round * 10 + n; 90 * usize::from(n)];
            let lsns: Vec<_> = (0..4).map(|n| wal.append(&payload(n)).unwrap()).collect();
            wal.sync().unwrap();
            let to = match round {
                3 => wal.end().unwrap(),
                round => lsns[usize::from(1 + round % 3)],
            };
            old_or_new(subject, &disk, &wal, || wal.truncate_before(to).unwrap());
            assert_eq!(wal.head().unwrap(), to);
        }
    }
}

/// Records of the same sizes come where the dropped ones were, so that stale bytes would fit; the
/// cut lies within a segment, or exactly on a border.
#[test]
fn a_cut_end_never_comes_back_under_appends_of_the_same_size() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let border = subject.border_bytes() as usize;
        for len in [border - 8, border / 2 - 8, 30, 2 * border - 8] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            let lsns: Vec<_> = (0..6u8).map(|n| wal.append(&vec![n; len]).unwrap()).collect();
            wal.sync().unwrap();
            for round in 0..3u8 {
                old_or_new(subject, &disk, &wal, || wal.truncate_after(lsns[2]).unwrap());
                let kept = read_all(&wal).unwrap();
                assert_eq!(wal.end().unwrap(), lsns[3]);
                let mut written = kept.clone();
                for n in 3..6u8 {
                    let Lsn(ordinal) = wal.append(&vec![50 + round * 10 + n; len]).unwrap();
                    assert_eq!(Lsn(ordinal), lsns[usize::from(n)]);
                    let bytes = vec![50 + round * 10 + n; len];
                    written.push(Record { ordinal, tag: ordinal as u32, bytes });
                    for after in states(&disk, 60) {
                        let got = read_all(&subject.wal(&after, MANUAL).unwrap()).unwrap();
                        harness::judge(&got, &written, kept.len(), false).unwrap();
                    }
                }
                wal.sync().unwrap();
                let after = subject.wal(&worst(&disk), MANUAL).unwrap();
                assert_eq!(read_all(&after).unwrap(), written);
            }
        }
    }
}

/// Killed at any step, no truncation leaves a gap between segments: other programs end their scan
/// at one.
#[test]
fn segments_go_oldest_first_at_the_front_and_newest_first_at_the_end() {
    for front in [true, false] {
        let disk = Sim::new();
        let wal = TINY.wal(&disk, MANUAL).unwrap();
        let lsns: Vec<_> = (0..12).map(|n| wal.append(&[n; 50]).unwrap()).collect();
        wal.sync().unwrap();
        disk.record();
        match front {
            true => wal.truncate_before(lsns[8]).unwrap(),
            false => wal.truncate_after(lsns[3]).unwrap(),
        }
        let mut fewer = 0;
        for moment in disk.recorded() {
            let indices = segments(&moment);
            assert!(indices.windows(2).all(|pair| pair[1] == pair[0] + 1), "{indices:?}");
            fewer += u64::from(indices.len() < 11);
        }
        assert!(fewer > 3);
    }
}

/// Directory changes undone: segments that were dropped at the front are back. They are no part of
/// the log, and the next writer removes them.
#[test]
fn segments_that_come_back_below_the_head_are_not_read_and_go_again() {
    for subject in [&SEGMENTS, &TINY] {
        let disk = Sim::new();
        let wal = subject.wal(&disk, ALWAYS).unwrap();
        let lsns: Vec<_> = (0..9).map(|n| wal.append(&[n; 300]).unwrap()).collect();
        let before = disk.kill();
        wal.truncate_before(lsns[6]).unwrap();
        let expected = read_all(&wal).unwrap();
        let (all, left) = (segments(&before), segments(&disk));
        let gone: Vec<_> = all.iter().filter(|index| !left.contains(index)).collect();
        assert!(gone.len() > 2);
        drop(wal);
        for pick in 1..(1u64 << gone.len().min(6)) {
            let disk = disk.kill();
            let back = gone.iter().enumerate().filter(|(at, _)| pick >> (at % 6) & 1 == 1);
            for (_, index) in back {
                let path = Path::new("/log").join(segment_name(**index));
                let from = before.open(&path, Access::Read).unwrap();
                let mut bytes = vec![0; from.len().unwrap() as usize];
                from.read_at(&mut bytes, 0).unwrap();
                disk.create_new(&path, 0o600).unwrap().write_at(&bytes, 0).unwrap();
            }
            assert_eq!(subject.peek(&disk).unwrap(), expected);
            let wal = subject.wal(&disk, MANUAL).unwrap();
            assert_eq!(read_all(&wal).unwrap(), expected);
            assert!(!wal.recovery().removed_segments.is_empty());
            assert_eq!(segments(&disk), left);
            assert_eq!(segments(&worst(&disk)), left);
        }
    }
}

/// Without the marker nothing tells where the first record begins, unless the mark does. It is never
/// taken for 0 while segments are missing, and nothing is removed.
#[test]
fn a_lost_head_marker_is_made_up_for_or_the_log_is_refused() {
    for (damage, mark) in [(true, true), (true, false), (false, true), (false, false)] {
        let disk = Sim::new();
        let wal = TINY.wal(&disk, ALWAYS).unwrap();
        let lsns: Vec<_> = (0..9).map(|n| wal.append(&[n; 50]).unwrap()).collect();
        wal.truncate_before(lsns[6]).unwrap();
        let expected = read_all(&wal).unwrap();
        wal.close().unwrap();
        let left = segments(&disk);
        let head = Path::new("/log/head");
        match damage {
            true => drop(disk.open(head, Access::Write).unwrap().write_at(&[7], 3).unwrap()),
            false => disk.remove(head).unwrap(),
        }
        if !mark {
            disk.remove(Path::new("/log/.deedbook/mark")).unwrap();
        }
        match TINY.wal(&disk, MANUAL) {
            Ok(wal) => {
                assert!(mark);
                assert_eq!(read_all(&wal).unwrap(), expected);
                assert_eq!(wal.append(b"on").unwrap(), Lsn(9 * 58));
            }
            Err(error) => {
                assert!(!mark, "{error}");
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert_eq!(segments(&disk), left);
            }
        }
    }
}

/// A record longer than the limit asked for is no torn tail, with and without a mark: refused, and
/// nothing is cut.
#[test]
fn a_record_beyond_the_limit_is_not_cut_as_torn() {
    for subject in [&SINGLE, &TINY] {
        for mark in [true, false] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            wal.commit(b"short").unwrap();
            wal.append(&[9; 100]).unwrap();
            drop(wal.clone());
            let killed = disk.kill();
            let sidecar = if subject.name == "wal-single" { "wal/" } else { "" };
            let gone: &[&str] = if mark { &["settings"] } else { &["settings", "mark"] };
            for name in gone {
                killed.remove(Path::new(&format!("/log/.deedbook/{sidecar}{name}"))).unwrap();
            }
            let lower = Options { record_bytes_max: Some(50), ..subject.options(&killed, MANUAL) };
            let error = lower.open(subject.path, Mode::Append).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(13)), "{mark}");
            assert_eq!(subject.wal(&killed, MANUAL).unwrap().len().unwrap(), 2);
        }
    }
}

/// Above the mark a torn record may hold whole ones, at the begin of a segment too. Nobody sees them,
/// not even who skips damage.
#[test]
fn records_inside_a_torn_record_never_surface() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let nested = subject.nested();
        let border = subject.border_bytes() as usize;
        for shift in [0, 1, 5, 8] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            wal.commit(b"acknowledged").unwrap();
            let end = wal.end().unwrap().0 as usize + 8;
            let mut payload = vec![1; end.next_multiple_of(border) - end + shift];
            payload.extend(nested.repeat(4));
            wal.append(&payload).unwrap();
            for after in states(&disk, 200) {
                let before = after.fingerprint();
                let options = subject.options(&after, MANUAL);
                let reader = options.open(subject.path, Mode::Read).unwrap();
                let mut records = reader.cursor(None, None, OnCorrupt::Skip).unwrap();
                let mut count = 0;
                while let Some(record) = records.next().unwrap() {
                    count += 1;
                    assert!(record.payload == b"acknowledged" || record.payload == payload);
                }
                assert!((1..=2).contains(&count));
                assert_eq!(after.fingerprint(), before);
                let wal = subject.wal(&after, MANUAL).unwrap();
                assert_eq!(wal.len().unwrap(), count);
            }
        }
    }
}

/// Nor if a record below the mark is damaged, so that who skips damage reads on behind it: whatever
/// is torn above the mark ends the log.
#[test]
fn records_inside_a_torn_record_never_surface_behind_damage() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let nested = subject.nested();
        let border = subject.border_bytes() as usize;
        let disk = Sim::new();
        let wal = subject.wal(&disk, MANUAL).unwrap();
        let acknowledged: Vec<Vec<u8>> = (1..5).map(|n| vec![n; 20]).collect();
        let lsns: Vec<_> = acknowledged.iter().map(|bytes| wal.append(bytes).unwrap().0).collect();
        wal.sync().unwrap();
        let end = wal.end().unwrap().0 as usize + 8;
        let mut payload = vec![1; end.next_multiple_of(border) - end];
        payload.extend(nested.repeat(4));
        wal.append(&payload).unwrap();
        let mut torn = 0;
        for after in states(&disk, 200) {
            let size = subject.layout.segment_bytes().unwrap_or(1 << 40);
            let at = lsns[3] + 12;
            let path = match subject.layout.segment_bytes() {
                None => subject.path.into(),
                Some(_) => Path::new("/log").join(segment_name(at / size)),
            };
            let file = after.open(&path, Access::Write).unwrap();
            file.write_at(&[0xff], at % size).unwrap();
            let reader = subject.options(&after, MANUAL).open(subject.path, Mode::Read).unwrap();
            let mut records = reader.cursor(None, None, OnCorrupt::Skip).unwrap();
            let mut got = Vec::new();
            while let Some(record) = records.next().unwrap() {
                got.push(record.payload.to_vec());
            }
            assert_eq!(got[..3], acknowledged[..3], "{}", subject.name);
            torn += u64::from(got.len() == 3);
            assert!(got.len() == 3 || got[3..] == [payload.clone()], "{}: {got:?}", subject.name);
        }
        assert!(torn > 0);
    }
}

/// With `recovery="acknowledged"` nothing comes back that was not acknowledged, and all that was.
#[test]
fn recovery_to_the_acknowledged_keeps_all_of_it_and_no_more() {
    let exact = How { acknowledged: true, ..MANUAL };
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        for dropped in [false, true] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, exact).unwrap();
            let lsns: Vec<_> = (0..4).map(|n| wal.append(&[n; 200]).unwrap()).collect();
            wal.sync().unwrap();
            let mut first = 0;
            if dropped && subject.name != "wal-single" {
                wal.truncate_before(lsns[2]).unwrap();
                first = 2;
            }
            if dropped {
                wal.truncate_after(lsns[2]).unwrap();
            }
            let acknowledged = read_all(&wal).unwrap();
            assert_eq!(acknowledged.len(), if dropped { 3 - first } else { 4 });
            for n in 0..3 {
                wal.append(&[50 + n; 200]).unwrap();
            }
            for after in states(&disk, 100).into_iter().chain([disk.kill()]) {
                let wal = subject.wal(&after, exact).unwrap();
                assert_eq!(read_all(&wal).unwrap(), acknowledged);
            }
        }
    }
}

/// Every byte of a log, one segment behind the other.
fn bytes(subject: &WalSubject, disk: &Sim) -> Vec<u8> {
    let paths = match subject.layout.segment_bytes() {
        None => vec![subject.path.into()],
        Some(_) => {
            segments(disk).iter().map(|i| Path::new("/log").join(segment_name(*i))).collect()
        }
    };
    paths.iter().flat_map(|path: &std::path::PathBuf| file_bytes(disk, path)).collect()
}

fn file_bytes(disk: &Sim, path: &Path) -> Vec<u8> {
    let file = disk.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

/// A crash at any step of a repair leaves the log as it was, or cut with the rest beside it.
#[test]
fn a_repair_loses_no_byte_at_any_crash() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let disk = Sim::new();
        let wal = subject.wal(&disk, ALWAYS).unwrap();
        let lsns: Vec<_> = (1..8).map(|n| wal.append(&[n; 100]).unwrap().0).collect();
        wal.close().unwrap();
        drop(wal);
        let (damaged, size) = (lsns[2] + 50, subject.layout.segment_bytes().unwrap_or(1 << 40));
        let path = match subject.layout.segment_bytes() {
            None => subject.path.into(),
            Some(_) => Path::new("/log").join(segment_name(damaged / size)),
        };
        let file = disk.open(&path, Access::Write).unwrap();
        file.write_at(&[0xff], damaged % size).unwrap();
        file.sync_data().unwrap();
        drop(file);
        // Without a mark, so that the damage is found by looking.
        let sidecar = Path::new(subject.path).parent().unwrap().join(".deedbook/wal/mark");
        let mark =
            if subject.name == "wal-single" { &sidecar } else { Path::new("/log/.deedbook/mark") };
        disk.remove(mark).unwrap();
        let (whole, cut) = (bytes(subject, &disk), lsns[2] as usize);
        assert_eq!(subject.wal(&disk, MANUAL).unwrap_err().kind(), ErrorKind::Corrupt);
        let options = |disk: &Sim| subject.options(disk, MANUAL);
        disk.record();
        repair(
            subject.path,
            &options(&disk),
            deedbook::Repair { force: true, accept_loss: true, dry_run: false },
        )
        .unwrap();
        let mut checked = 0;
        for moment in disk.recorded() {
            for after in states(&moment, 60) {
                checked += 1;
                if bytes(subject, &after) != whole {
                    let names = after.list(Path::new("/log")).unwrap();
                    let saved =
                        names.iter().filter(|name| name.to_string_lossy().contains(".cut-"));
                    let saved: Vec<_> = saved
                        .map(|name| file_bytes(&after, &Path::new("/log").join(name)))
                        .collect();
                    assert!(saved.contains(&whole[cut..].to_vec()), "{}", subject.name);
                    // Cut, so it is the new state: nothing says that records are missing.
                    assert_eq!(subject.wal(&after.kill(), MANUAL).unwrap().len().unwrap(), 2);
                }
                // Repairing again ends in the same.
                repair(
                    subject.path,
                    &options(&after),
                    deedbook::Repair { force: true, accept_loss: true, dry_run: false },
                )
                .unwrap();
                let wal = subject.wal(&after, MANUAL).unwrap();
                assert_eq!(wal.len().unwrap(), 2);
                assert_eq!(wal.append(b"goes on").unwrap(), Lsn(lsns[2]));
            }
        }
        assert!(checked > 20, "{checked}");
    }
}

/// The segmented fsync window: while one segment after the other is synced, appends go on, into
/// those that were synced already and into new ones. They are not durable until the next sync, and
/// that one covers them.
#[test]
fn what_is_appended_during_a_sync_is_durable_behind_the_next_one() {
    for subject in [&SEGMENTS, &TINY] {
        for len in [3, 20, 70, 300] {
            let disk = Sim::new();
            // Behind every sync of a file somebody appends, but not behind those of that append.
            let late: Arc<Mutex<Option<Wal>>> = Arc::default();
            let count = Arc::new(AtomicU64::new(0));
            let hook = {
                let (late, count) = (late.clone(), count.clone());
                move |seen| {
                    let (Seen::Synced, Ok(wal)) = (seen, late.try_lock()) else { return };
                    let Some(wal) = &*wal else { return };
                    if count.fetch_add(1, Ordering::Relaxed) < 12 {
                        wal.append(&vec![7; len]).unwrap();
                    }
                }
            };
            let storage = watched(Arc::new(disk.clone()), hook);
            let options = Options { storage, ..subject.options(&disk, MANUAL) };
            let wal = options.open(subject.path, Mode::Append).unwrap();
            for n in 0..8 {
                wal.append(&[n; 100]).unwrap();
            }
            *late.lock().unwrap() = Some(wal.clone());
            for _ in 0..3 {
                wal.sync().unwrap();
                let Lsn(durable) = wal.durable_end().unwrap().unwrap();
                for after in states(&disk, 30) {
                    let got = subject.wal(&after, MANUAL).unwrap();
                    assert!(got.end().unwrap().0 >= durable);
                }
            }
            assert!(count.load(Ordering::Relaxed) > 3);
            late.lock().unwrap().take();
            wal.sync().unwrap();
            let all = read_all(&wal).unwrap();
            assert_eq!(read_all(&subject.wal(&worst(&disk), MANUAL).unwrap()).unwrap(), all);
        }
    }
}

/// What any thread was told is durable, whoever's sync it was that made it so, over segments.
#[test]
fn what_any_thread_was_told_survives_a_power_cut() {
    for failing in [None, Some(1), Some(7), Some(40)] {
        let disk = Sim::new();
        let wal = TINY.wal(&disk, MANUAL).unwrap();
        if let Some(at) = failing {
            disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        }
        let told = Mutex::new(Vec::new());
        let append = |thread: u8| {
            for n in 0..40usize {
                let payload = vec![thread; 20 + n];
                let appended = match n % 3 {
                    0 => wal.append(&payload).and_then(|lsn| wal.wait_durable(lsn).map(|()| lsn)),
                    1 => wal.append(&payload).and_then(|lsn| wal.sync().map(|()| lsn)),
                    _ => wal.commit(&payload),
                };
                match appended {
                    Ok(lsn) => told.lock().unwrap().push((lsn, payload)),
                    Err(_) => return,
                }
            }
        };
        let check = || {
            let told = told.lock().unwrap().clone();
            let after = TINY.wal(&worst(&disk), MANUAL).unwrap();
            for (lsn, payload) in told.iter().rev().take(20) {
                assert_eq!(after.read(*lsn).unwrap().payload, *payload, "{failing:?}");
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let append = &append;
                scope.spawn(move || append(thread));
            }
            (0..60).for_each(|_| check());
        });
        check();
        if failing.is_some() {
            assert_eq!(wal.append(b"late").unwrap_err().kind(), ErrorKind::Poisoned);
        }
    }
}
