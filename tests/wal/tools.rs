//! Shared functions: logs on the simulated disk.

use super::*;
use crate::support::formats::wal::segments_in;

pub fn synced(subject: &WalSubject, how: How, count: u64, len: usize) -> (Sim, Wal, Vec<Lsn>) {
    let disk = Sim::new();
    let wal = subject.wal(&disk, how).unwrap();
    let lsns = (0..count).map(|n| wal.append(&vec![n as u8; len]).unwrap()).collect();
    wal.sync().unwrap();
    (disk, wal, lsns)
}

pub fn of_size(segment_bytes: u64) -> Options {
    Options::new().layout(Layout::Segmented { segment_bytes })
}

pub fn found(subject: &WalSubject, disk: &Sim) -> Vec<Record> {
    let wal = subject.wal(disk, MANUAL).unwrap_or_else(|e| panic!("{}: {e}", subject.name));
    read_all(&wal).unwrap()
}

pub fn segments(disk: &Sim) -> Vec<u64> {
    segments_in(disk, Path::new("/log"))
}

/// The disks after a kill at each call of `change`, and some disks after a power cut there, each with the call's name.
pub fn at_every_call<T>(
    disk: &Sim,
    states_max: u64,
    change: impl FnOnce() -> T,
) -> Vec<(String, Sim)> {
    disk.record();
    drop(change());
    let moments = disk.recorded();
    let left = moments.iter().enumerate().flat_map(|(call, moment)| {
        let left = states(moment, states_max).into_iter().chain([moment.kill()]);
        left.map(move |disk| (format!("call {call}"), disk))
    });
    left.collect()
}
