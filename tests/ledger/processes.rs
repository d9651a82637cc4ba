//! Real processes: writers and senders, killed at any moment.
#![cfg(unix)]

use std::fs::OpenOptions;
use std::process::Child;

use crate::prelude::*;

const FIRST: &str = "DEEDBOOK_FIRST";
/// The numbers of each writer begin at a multiple of `NUMBERS_EACH`.
const NUMBERS_EACH: u64 = 100_000;
const DURABILITIES: [&str; 4] = ["none", "rotate", "always", "interval:3"];

fn start(role: &str, place: &Path, first: u64) -> Child {
    in_role("processes::child", role, place).env(FIRST, first.to_string()).spawn().unwrap()
}

/// Not a real test: the code that the child processes run.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let first = std::env::var(FIRST).unwrap().parse().unwrap();
    match role.as_str() {
        "send" => send_for_ever(&place),
        "fork" => fork(&place),
        durability => write_for_ever(durability, &place, first),
    }
}

/// A child made by a fork: the inherited handle refuses, its end frees nothing of the parent's, and a new handle works.
#[allow(unsafe_code)]
fn fork(place: &Path) {
    let dir = place.join("spool");
    let ledger = open(&dir, "interval:5");
    ledger.append(&event(0, 0)).unwrap();
    // SAFETY: the child only calls the ledger and ends without running anything else.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let refuses = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            refused(ledger.append(&event(1, 0)), ErrorKind::Forked);
            refused(ledger.fetch(None, None), ErrorKind::Forked);
            refused(ledger.remove(&[]), ErrorKind::Forked);
            refused(ledger.sync(), ErrorKind::Forked);
            refused(ledger.close(), ErrorKind::Forked);
            drop(ledger);
            let own = open(&dir, "none");
            own.append(&event(2, 0)).unwrap();
            // Not the parent's file, which is still locked.
            assert_eq!(shown(&own.fetch(None, None).unwrap().unwrap()), [(1, events(2..3, 0))]);
        }));
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(refuses.is_err())) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child was not refused");
    ledger.append(&event(3, 0)).unwrap();
    let files = shown(&ledger.fetch(None, None).unwrap().unwrap());
    assert_eq!(files, [(0, vec![event(0, 0), event(3, 0)]), (1, events(2..3, 0))]);
}

/// Runs in a process of its own, because a fork copies the locks of all threads.
// Promise: ledger-fork.
#[test]
fn forked_child_is_refused_without_harming_its_parent() {
    let place = tempfile::tempdir().unwrap();
    let done = start("fork", place.path(), 0).wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn open(dir: &Path, durability: &str) -> LedgerStore {
    let durability = durability.parse().unwrap();
    let options = Options::new().durability(durability).file_records_max(40);
    options.open(small(dir, 6000)).unwrap()
}

/// Append, and print the end of the acknowledged numbers on stderr, 8 bytes a time.
fn write_for_ever(durability: &str, place: &Path, first: u64) {
    let ledger = open(&place.join("spool"), durability);
    let mut acknowledge = std::io::stderr();
    for number in (first..first + NUMBERS_EACH).step_by(8) {
        match number / 8 % 2 {
            0 => (number..number + 8).for_each(|n| {
                ledger.append(&event(n, 200)).unwrap();
            }),
            _ => {
                ledger.append_many(events(number..number + 8, 200)).unwrap();
            }
        }
        acknowledge.write_all(&(number + 8).to_le_bytes()).unwrap();
    }
}

/// Send to a file, a line for each event, and remove the sent files.
fn send_for_ever(place: &Path) {
    let ledger = open(&place.join("spool"), "none");
    let mut sent = OpenOptions::new().append(true).create(true).open(place.join("sent")).unwrap();
    loop {
        let Some(fetched) = ledger.fetch(Some(5), None).unwrap() else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        for (index, payloads) in shown(&fetched) {
            let lines: String =
                payloads.iter().map(|p| format!("{index} {:08}\n", number_of(p))).collect();
            sent.write_all(lines.as_bytes()).unwrap();
        }
        ledger.remove(&fetched.removable.unwrap()).unwrap();
    }
}

/// How often each event arrived. No event may arrive under another file's number.
#[derive(Default)]
struct Arrived {
    times: BTreeMap<u64, u32>,
    files: BTreeMap<u64, u32>,
}

impl Arrived {
    fn add(&mut self, index: u32, number: u64) {
        *self.times.entry(number).or_default() += 1;
        let file = *self.files.entry(number).or_insert(index);
        assert_eq!(file, index, "event {number} came from two files");
    }

    /// Every event that this writer acknowledged arrived, in order, and at most one more portion.
    fn judge(&self, first: u64, end: u64, what: &str) {
        for number in first..end {
            assert!(self.times.contains_key(&number), "{what}: event {number} is lost");
        }
        let beyond = self.times.range(end + 8..first + NUMBERS_EACH).next();
        assert_eq!(beyond, None, "{what}: an event that was not written yet");
        let files: Vec<_> = self.files.range(first..first + NUMBERS_EACH).map(|(_, i)| i).collect();
        assert!(files.is_sorted(), "{what}: out of order");
    }
}

/// Send a limited number of times: live writers may be quicker.
fn drain(ledger: &LedgerStore, arrived: &mut Arrived, times: usize) {
    for _ in 0..times {
        let Some(fetched) = ledger.fetch(Some(9), None).unwrap() else { return };
        for (index, payloads) in shown(&fetched) {
            payloads.iter().for_each(|payload| {
                let number = number_of(payload);
                assert!(*payload == event(number, 200), "event {number} was changed");
                arrived.add(index, number);
            });
        }
        ledger.remove(&fetched.removable.unwrap()).unwrap();
    }
}

/// Three writers at once, each killed while another process sends: every acknowledged event arrives exactly once.
// Promise: ledger-kill.
#[test]
fn writers_killed_at_any_moment_lose_nothing_acknowledged() {
    let cycles = report::of_tier("DEEDBOOK_LEDGER_KILLS") / 3;
    let seed = report::number("DEEDBOOK_SEED", 1);
    let place = tempfile::tempdir().unwrap();
    let sender = open(&place.path().join("spool"), "none");
    let (mut arrived, mut next, mut acknowledged) = (Arrived::default(), 0, 0);
    for cycle in 0..cycles {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let first = next;
                next += NUMBERS_EACH;
                let role = DURABILITIES[(mix(seed ^ cycle ^ (writer << 20)) % 4) as usize];
                (start(role, place.path(), first), first, role)
            })
            .collect();
        let mut ends = Vec::new();
        for (number, (writer, first, role)) in writers.into_iter().enumerate() {
            let wait = 5000 + mix(seed ^ (cycle << 8) ^ number as u64) % 40_000;
            std::thread::sleep(Duration::from_micros(wait));
            drain(&sender, &mut arrived, 3);
            let end = killed(writer).unwrap_or(first);
            acknowledged += end - first;
            ends.push((first, end, role));
        }
        drain(&sender, &mut arrived, usize::MAX);
        for (first, end, role) in ends {
            arrived.judge(first, end, &format!("seed {seed}, cycle {cycle}, {role}"));
        }
    }
    assert!(acknowledged > 100, "no writer lived long enough: {acknowledged}");
    let twice = arrived.times.iter().find(|(_, times)| **times > 1);
    assert_eq!(twice, None, "nobody was killed between sending and removing");
    assert!(!sender.has_data().unwrap(), "a file is left");
    println!("{} writers killed, {acknowledged} events acknowledged", 3 * cycles);
}

/// Senders killed while two writers go on: every event arrives, and only events that a killed sender had fetched arrive
/// twice.
// Promise: ledger-kill.
#[test]
fn killed_senders_send_everything_at_least_once() {
    let cycles = report::of_tier("DEEDBOOK_LEDGER_KILLS") / 2;
    let place = tempfile::tempdir().unwrap();
    let writers = ["none", "rotate"].map(|role| {
        let first = if role == "none" { 0 } else { NUMBERS_EACH };
        (start(role, place.path(), first), first)
    });
    let sent = place.path().join("sent");
    let has_sent = || fs::metadata(&sent).is_ok_and(|file| file.len() > 0);
    // On a busy machine none may reach its first event.
    let mut cycle = 0;
    while cycle < cycles || (!has_sent() && cycle < 10 * cycles) {
        let sender = start("send", place.path(), 0);
        std::thread::sleep(Duration::from_micros(8000 + mix(cycle) % 25_000));
        killed(sender);
        cycle += 1;
    }
    let ends = writers.map(|(writer, first)| (first, killed(writer).unwrap_or(first)));
    let mut arrived = Arrived::default();
    // The last line may be torn: its file was not removed.
    let sent = fs::read_to_string(&sent).unwrap_or_default();
    let mut by_senders = 0;
    for line in sent.lines() {
        if let Some((index, number)) = line.split_once(' ').filter(|(_, n)| n.len() == 8)
            && let (Ok(index), Ok(number)) = (index.parse(), number.parse())
        {
            arrived.add(index, number);
            by_senders += 1;
        }
    }
    let options = Options::default();
    for (file, report) in options.verify(place.path().join("spool"), BASE).unwrap() {
        assert_ne!(report.verdict, Verdict::Corrupt, "{report:?}");
        assert!(!file.active);
    }
    drain(&open(&place.path().join("spool"), "none"), &mut arrived, usize::MAX);
    for (first, end) in ends {
        arrived.judge(first, end, "a writer beside senders");
    }
    let again: u64 = arrived.times.values().map(|times| u64::from(times - 1)).sum();
    assert!(again <= cycle * 5 * 40, "{again} events came again");
    println!("{cycle} senders killed, {by_senders} events sent by them, {again} again");
    assert!(by_senders > 0, "no sender lived long enough");
}
