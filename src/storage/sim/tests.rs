use std::path::Path;

use super::*;
use crate::storage::{Access, File, LockAttempt, Storage};

const PATH: &str = "/dir/file";

/// A file of 1,000 durable bytes in a durable directory.
fn start() -> (Sim, Box<dyn File>) {
    let sim = Sim::new();
    sim.create_dir(Path::new("/dir")).unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    let file = sim.create_new(Path::new(PATH), 0o600).unwrap();
    file.write_at(&[1; 1000], 0).unwrap();
    file.sync_data().unwrap();
    sim.sync_dir(Path::new("/dir")).unwrap();
    (sim, file)
}

fn content(sim: &Sim) -> Option<Vec<u8>> {
    let file = sim.open(Path::new(PATH), Access::Read).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

/// Every content of the file that a power cut can leave.
fn outcomes(sim: &Sim) -> Vec<Option<Vec<u8>>> {
    let crashes = sim.crashes();
    let mut all: Vec<_> = (0..crashes.count()).map(|i| content(&crashes.state(i))).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn what_is_synced_stays() {
    let (sim, _file) = start();
    assert_eq!(outcomes(&sim), [Some(vec![1; 1000])]);
}

#[test]
fn any_sectors_of_any_version_may_survive() {
    let (sim, file) = start();
    file.write_at(&[2; 512], 0).unwrap();
    file.write_at(&[3; 1000], 0).unwrap();
    let mut heads: Vec<_> = outcomes(&sim).iter().flatten().map(|b| (b[0], b[600])).collect();
    heads.sort();
    assert_eq!(heads, [(1, 1), (1, 3), (2, 1), (2, 3), (3, 1), (3, 3)]);
    file.sync_data().unwrap();
    assert_eq!(outcomes(&sim), [Some(vec![3; 1000])]);
}

#[test]
fn a_grown_file_has_any_size_and_content() {
    let (sim, file) = start();
    file.write_at(&[4; 600], 1000).unwrap();
    let all: Vec<_> = outcomes(&sim).into_iter().flatten().collect();
    let mut sizes: Vec<_> = all.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    sizes.dedup();
    assert_eq!(sizes, [1000, 1024, 1536, 1599, 1600]);
    assert!(all.iter().all(|bytes| bytes[..1000] == [1; 1000]));
    let whole: Vec<_> = all.iter().filter(|bytes| bytes.len() == 1600).collect();
    assert!(whole.iter().any(|bytes| bytes[1000..] == [4; 600]));
    assert!(whole.iter().any(|bytes| bytes[1000..] == [0; 600]));
    assert!(whole.iter().any(|bytes| bytes[1590] != 0 && bytes[1590] != 4));
}

#[test]
fn a_cut_file_may_be_whole_again() {
    let (sim, file) = start();
    file.set_len(10).unwrap();
    let all = outcomes(&sim);
    assert!(all.contains(&Some(vec![1; 10])) && all.contains(&Some(vec![1; 1000])));
    file.sync_data().unwrap();
    assert_eq!(outcomes(&sim), [Some(vec![1; 10])]);
}

#[test]
fn a_name_is_durable_only_with_its_directory() {
    for kinder in [false, true] {
        let sim = Sim::new();
        sim.set_kinder(kinder);
        sim.create_dir(Path::new("/dir")).unwrap();
        let file = sim.create_new(Path::new("/dir/new"), 0o600).unwrap();
        file.write_at(&[5; 3], 0).unwrap();
        file.sync_data().unwrap();
        let crashes = sim.crashes();
        assert_eq!(crashes.count(), if kinder { 1 } else { 4 });
        let nothing = crashes.state(0);
        assert_eq!(nothing.is_dir(Path::new("/dir")), kinder);
        sim.rename(Path::new("/dir/new"), Path::new(PATH)).unwrap();
        sim.sync_dir(Path::new("/dir")).unwrap();
        sim.sync_dir(Path::new("/")).unwrap();
        assert_eq!(outcomes(&sim), [Some(vec![5; 3])]);
        assert!(sim.open(Path::new("/dir/new"), Access::Read).is_err());
    }
}

#[test]
fn a_rename_happens_or_not() {
    let (sim, _file) = start();
    let new = sim.create_new(Path::new("/dir/new"), 0o600).unwrap();
    new.write_at(&[6; 3], 0).unwrap();
    new.sync_data().unwrap();
    sim.rename(Path::new("/dir/new"), Path::new(PATH)).unwrap();
    assert_eq!(outcomes(&sim), [Some(vec![1; 1000]), Some(vec![6; 3])]);
}

#[test]
fn a_directory_rename_is_whole_or_absent() {
    let (sim, _file) = start();
    sim.create_dir(Path::new("/aside")).unwrap();
    let inside = sim.create_new(Path::new("/aside/file"), 0o600).unwrap();
    inside.write_at(&[6; 3], 0).unwrap();
    inside.sync_data().unwrap();
    sim.sync_dir(Path::new("/aside")).unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    let taken = sim.rename(Path::new("/aside"), Path::new("/dir")).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    sim.rename(Path::new("/aside"), Path::new("/dir/named")).unwrap();
    let crashes = sim.crashes();
    let is_named = |index| {
        let after = crashes.state(index);
        let [old, new] = ["/aside/file", "/dir/named/file"]
            .map(|path| after.open(Path::new(path), Access::Read).is_ok());
        assert!(old != new, "state {index}");
        new
    };
    let named: Vec<bool> = (0..crashes.count()).map(is_named).collect();
    assert!(named.contains(&true) && named.contains(&false));
    sim.sync_dir(Path::new("/dir")).unwrap();
    let worst = sim.crashes().build(&sim.crashes().nth(0));
    assert!(worst.open(Path::new("/dir/named/file"), Access::Read).is_ok());
}

/// The state that a power cut leaves after a failed sync and a later successful sync, under the
/// given seed.
fn after_a_failed_sync(seed: u64) -> (Sim, Box<dyn File>, Vec<u8>) {
    let (sim, file) = start();
    sim.set_seed(seed);
    file.write_at(&[6; 512], 0).unwrap();
    file.write_at(&[7; 512], 0).unwrap();
    file.write_at(&[7; 600], 1000).unwrap();
    sim.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(content(&sim).unwrap()[..512], [7; 512]);
    let all = outcomes(&sim);
    assert_eq!(all.len(), 1);
    let left = all[0].clone().unwrap();
    (sim, file, left)
}

/// A failed sync once had a single outcome: the loss of everything dirty. Code that relied on the
/// single outcome passed, and code that failed only when a part of a record had reached the disk.
#[test]
fn a_failed_sync_keeps_any_part() {
    let whole = [&[7; 512][..], &[1; 488], &[7; 600]].concat();
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..2000 {
        let (_, _, left) = after_a_failed_sync(seed);
        assert_eq!(left, after_a_failed_sync(seed).2, "seed {seed}");
        // Cut or with zeros, but never with other bytes.
        assert!(matches!(left[0], 1 | 6 | 7) && left[512..1000] == [1; 488], "seed {seed}");
        assert!(matches!(left.len(), 1000 | 1600), "seed {seed}");
        assert!(left[1000..].iter().zip(&whole[1000..]).all(|(a, b)| *a == 0 || a == b));
        *seen.entry(left).or_insert(0) += 1;
    }
    // The first sector old, older or new; then cut, or 2^3 sectors of the new end kept or not.
    assert_eq!(seen.len(), 3 * (1 + 8));
    assert!(seen[&vec![1; 1000]] > 300 && seen[&whole] > 300, "{:?}", seen.values());
}

#[test]
fn rewriting_data_lost_by_a_sync_dirties_it() {
    for seed in 0..20 {
        let (sim, file, mut left) = after_a_failed_sync(seed);
        file.write_at(&[8; 512], 1024).unwrap();
        file.sync_data().unwrap();
        left.resize(1600, 0);
        left[1024..1536].fill(8);
        assert_eq!(outcomes(&sim), [Some(left)], "seed {seed}");
    }
}

/// Names came sorted: a program that relied on the order passed here and failed on a real disk.
#[test]
fn names_are_listed_in_no_order() {
    let list = |seed| {
        let (sim, _file) = start();
        sim.set_seed(seed);
        for name in ["/dir/a", "/dir/b", "/dir/c"] {
            sim.create_new(Path::new(name), 0o600).unwrap();
        }
        [(); 8].map(|()| sim.list(Path::new("/dir")).unwrap())
    };
    let mut orders: Vec<_> = (0..20).flat_map(list).collect();
    assert_eq!(list(3), list(3));
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 24);
}

#[test]
fn faults_strike_the_calls_they_are_meant_for() {
    let (sim, file) = start();
    sim.inject(Fault::once(2, What::Short).of(Call::Write));
    sim.inject(Fault::once(3, What::Misdirect(4096)).of(Call::Write));
    sim.inject(Fault { at: 4, of: Some(Call::Write), what: What::Zero, times: 2 });
    let wrote: Vec<_> = (0..6).map(|_| file.write_at(&[9; 10], 0).unwrap()).collect();
    assert_eq!(wrote, [10, 5, 10, 0, 0, 10]);
    assert_eq!((sim.fired(), file.len().unwrap()), (4, 4106));
    sim.inject(Fault::once(1, What::Crash));
    file.read_at(&mut [0], 0).unwrap_err();
    sim.open(Path::new(PATH), Access::Read).unwrap_err();
    assert_eq!(content(&sim.kill()).unwrap().len(), 4106);
}

#[test]
fn locks_end_with_the_process() {
    let (sim, _file) = start();
    let held = sim.lock(Path::new(PATH), true).unwrap();
    assert!(matches!(sim.lock(Path::new(PATH), true).unwrap(), LockAttempt::Busy(_)));
    let after = sim.kill();
    assert!(matches!(after.lock(Path::new(PATH), true).unwrap(), LockAttempt::Held(_)));
    drop(held);
    assert!(matches!(sim.lock(Path::new(PATH), true).unwrap(), LockAttempt::Held(_)));
}

#[test]
fn the_same_seed_is_the_same_state() {
    let (sim, file) = start();
    for at in 0..40 {
        file.write_at(&[at as u8; 512], at * 512).unwrap();
    }
    let crashes = sim.crashes();
    for seed in 0..50 {
        let (one, two) = (crashes.sample(seed), crashes.sample(seed));
        assert_eq!(crashes.build(&one).fingerprint(), crashes.build(&two).fingerprint());
    }
}
