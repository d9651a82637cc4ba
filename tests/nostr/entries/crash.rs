//! Power cuts and process crashes at every storage call of appends that begin files, of checkpoints and of removals.

use deedbook::Result;
use deedbook::nostr::wal::{Entry, EventWal, Lsn, WalOptions};

use crate::support::harness;
use crate::support::prelude::*;

/// The number of power-cut states to try at each moment.
const STATES: u64 = 40;
/// `a` append, `s` sync, `c` checkpoint, `d` drop the files before the checkpoint, `r` open again.
const HISTORIES: [&str; 6] =
    ["aaasaacd", "aaacaaacaadaa", "cdcdcd", "aaracrdraa", "aaaaaaaacaadrad", "csadracaaardcd"];

/// The entries that a crash must or may leave.
#[derive(Clone, Default)]
struct Known {
    /// The entries appended, from lsn 1 on: their data, or a checkpoint.
    written: Vec<Option<Vec<u8>>>,
    /// The number of acknowledged entries.
    acked: usize,
    /// The last checkpoint that returned.
    checkpoint: u64,
}

fn open(disk: &Sim) -> Result<EventWal> {
    WalOptions::new()
        .durability(Durability::Manual)
        .segment_bytes(200)
        .small(true)
        .storage(Arc::new(disk.clone()))
        .open("/wal", Mode::Append)
}

/// The disks that a power cut may leave, and the disk after a kill.
fn states(disk: &Sim) -> Vec<Sim> {
    [harness::states(disk, STATES), vec![disk.kill()]].concat()
}

impl Known {
    /// Do one step. An appended entry counts as written from the start of the step.
    fn step(&mut self, wal: &mut EventWal, disk: &Sim, step: char) {
        let next = self.written.len() as u64 + 1;
        let everything = |known: &mut Self| known.acked = known.written.len();
        match step {
            'a' => {
                let record = vec![next as u8; 50];
                self.written.push(Some(record.clone()));
                let lsn = wal.append(&Entry::Insert { record: &record }, next).unwrap();
                assert_eq!(lsn, Lsn(next));
            }
            's' => {
                wal.sync().unwrap();
                everything(self);
            }
            'c' => {
                self.written.push(None);
                self.checkpoint = wal.checkpoint(next).unwrap().0;
                assert_eq!(self.checkpoint, next);
                everything(self);
            }
            'd' => drop(wal.drop_before_checkpoint().unwrap()),
            'r' => {
                wal.close().unwrap();
                *wal = open(disk).unwrap();
                everything(self);
            }
            step => panic!("{step}"),
        }
    }

    /// A crash leaves a log that starts before the last checkpoint, ends at or after the last acknowledged entry, and
    /// accepts appends.
    fn check(&self, disk: &Sim) -> std::result::Result<(), String> {
        let fail = |what: &str, e: deedbook::Error| format!("{what}: {e:?}");
        let wal = open(disk).map_err(|e| fail("opening", e))?;
        let mut entries = wal.entries(Lsn(0), OnCorrupt::Raise).map_err(|e| fail("reading", e))?;
        let (mut first, mut last) = (None, None);
        let mut checkpoint = 0;
        while let Some(logged) = entries.next().map_err(|e| fail("reading", e))? {
            let lsn = logged.lsn.0;
            if last.is_some_and(|last: u64| last + 1 != lsn) {
                return Err(format!("lsn {lsn} after {last:?}"));
            }
            (first, last) = (first.or(Some(lsn)), Some(lsn));
            let same = match (logged.entry, &self.written[lsn as usize - 1]) {
                (Entry::Insert { record }, Some(written)) => record == written,
                (Entry::Checkpoint, None) => {
                    checkpoint = lsn;
                    true
                }
                _ => false,
            };
            if !same || logged.timestamp != lsn {
                return Err(format!("another entry {lsn}: {logged:?}"));
            }
        }
        let last = last.unwrap_or(0);
        if last < self.acked as u64 {
            return Err(format!("{} acknowledged, {last} there", self.acked));
        }
        let found = wal.last_checkpoint().0;
        if found < self.checkpoint || found != checkpoint {
            return Err(format!("checkpoint {found}, was {}, is {checkpoint}", self.checkpoint));
        }
        if first.unwrap_or(1) > found + 1 {
            return Err(format!("begins with {first:?}, checkpoint {found}"));
        }
        let mut replay = wal.replay(OnCorrupt::Raise).map_err(|e| fail("replay", e))?;
        for lsn in found + 1..=last {
            let next = replay.next().map_err(|e| fail("replay", e))?.map(|logged| logged.lsn.0);
            if next != Some(lsn) {
                return Err(format!("replay gives {next:?}, not {lsn}"));
            }
        }
        if replay.next().map_err(|e| fail("replay", e))?.is_some() {
            return Err("replay goes on".into());
        }
        let lsn = wal.commit(&Entry::Checkpoint, 0).map_err(|e| fail("appending", e))?;
        match lsn.0 == last + 1 {
            true => Ok(()),
            false => Err(format!("lsn {lsn} after {last}")),
        }
    }
}

// Promise: store-power-loss.
#[test]
fn crashes_keep_acknowledged_entries_since_a_checkpoint() {
    let mut checked = 0;
    for history in HISTORIES {
        let disk = Sim::new();
        let mut known = Known::default();
        disk.record();
        let mut wal = open(&disk).unwrap();
        let mut before = known.clone();
        let mut check = |known: &Known, disk: &Sim, what: &str| {
            for moment in disk.recorded() {
                for after in states(&moment) {
                    checked += 1;
                    let found = known.check(&after);
                    found.unwrap_or_else(|why| panic!("{history}, {what}: {why}"));
                }
            }
        };
        check(&before, &disk, "creation");
        for (at, step) in history.chars().enumerate() {
            known.step(&mut wal, &disk, step);
            // During the step, only earlier acknowledgements had to hold.
            before.written.clone_from(&known.written);
            check(&before, &disk, &format!("step {at} {step}"));
            before = known.clone();
            for after in states(&disk) {
                let found = known.check(&after);
                found.unwrap_or_else(|why| panic!("{history}, after step {at} {step}: {why}"));
            }
        }
    }
    assert!(checked > 5_000, "{checked}");
}

/// A header is written in place. A power cut may leave a number without a checkpoint, and a writer that crashes before
/// it writes the header leaves an older number.
#[test]
fn a_header_is_a_hint() {
    for named in [0u64, 1, 3, 99, u64::MAX] {
        let disk = Sim::new();
        let mut known = Known::default();
        let mut wal = open(&disk).unwrap();
        for step in "aacaad".chars() {
            known.step(&mut wal, &disk, step);
        }
        wal.close().unwrap();
        known.acked = known.written.len();
        for path in wal.paths() {
            let file = disk.open(Path::new(&path), Access::Write);
            file.unwrap().write_at(&named.to_be_bytes(), 12).unwrap();
        }
        known.check(&disk).unwrap_or_else(|why| panic!("{named}: {why}"));
    }
}
