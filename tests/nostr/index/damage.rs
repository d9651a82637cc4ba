//! After a process crash, a truncation or a flipped byte, the index has whole changes up to some position, or reports
//! its damage.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use deedbook::nostr::{Event, Filter, Index};

use super::world::{Numbers, World, event};
use crate::support::prelude::*;
use crate::support::store::events::{copy, files_below};

/// Batch `number`. Some batches are large enough to become files at once.
fn batch(number: u64) -> Vec<Event> {
    let mut numbers = Numbers(number * 1_000);
    let count = if number % 5 == 3 { 1_400 } else { 20 };
    (0..count).map(|_| event(&mut numbers)).collect()
}

fn apply(index: &Index, world: &mut World, number: u64) {
    world.insert(index, &batch(number), Some(&number.to_be_bytes()));
}

/// The expected index after each batch.
struct Models(Vec<(Index, World)>);

impl Models {
    fn up_to(batches: u64) -> Self {
        let model = |covered| {
            let (index, mut world) = (Index::in_memory(), World::default());
            (1..=covered).for_each(|number| apply(&index, &mut world, number));
            (index, world)
        };
        Self((0..=batches).map(model).collect())
    }

    /// Compare the index with the model of its covered position. Returns the position.
    fn whole(&self, index: &Index) -> deedbook::Result<u64> {
        let covered = index.covered()?;
        let covered = covered.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
        let (model, world) = &self.0[covered as usize];
        let mut numbers = Numbers(covered);
        let filters = (0..20).map(|_| super::world::filter(&mut numbers));
        for filter in filters.chain([Filter::default()]) {
            let found: Vec<_> = index.query(&filter)?.collect::<deedbook::Result<_>>()?;
            let expected: Vec<_> = model.query(&filter)?.collect::<deedbook::Result<_>>()?;
            assert_eq!(found, expected, "{covered} {filter:?}");
        }
        for id in world.events.keys() {
            assert_eq!(index.location(id)?, model.location(id)?);
        }
        Ok(covered)
    }
}

/// The next test runs this in another process, and kills the process.
#[test]
fn child() {
    let Some((_, dir)) = role() else { return };
    let (index, mut world) = (Index::open(&dir).unwrap(), World::default());
    for number in 1.. {
        apply(&index, &mut world, number);
        println!("\napplied {number}");
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_applied() {
    for lines in [1, 4, 23] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = in_role("index::damage::child", "apply", dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut applied = output
            .map(Result::unwrap)
            .filter_map(|line| line.strip_prefix("applied ").map(|number| number.parse().unwrap()));
        let last: u64 = applied.nth(lines - 1).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let last = applied.last().unwrap_or(last);
        let index = Index::open(dir.path()).unwrap();
        let covered = Models::up_to(last + 1).whole(&index).unwrap();
        assert!(covered >= last, "{covered} covered, {last} applied");
    }
}

const BATCHES: u64 = 9;

/// An index of some batches in files.
pub fn made(batches: u64) -> TempDir {
    let (dir, mut world) = (tempfile::tempdir().unwrap(), World::default());
    let index = Index::open(dir.path()).unwrap();
    (1..=batches).for_each(|number| apply(&index, &mut world, number));
    dir
}

/// A copy of the index, marked as made in place, with one file changed.
pub fn changed(index: &Path, file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
    let scratch = tempfile::tempdir().unwrap();
    copy(index, scratch.path());
    vouch_for(scratch.path());
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(scratch.path().join(file.strip_prefix(index).unwrap()), bytes).unwrap();
    scratch
}

/// Damage each file at some places. Returns how often the index reported damage, and how often it lost batches.
fn damage_all(
    dir: &Path,
    models: &Models,
    places: usize,
    damage: &dyn Fn(&Path, usize),
) -> (usize, usize) {
    let (mut noticed, mut lost) = (0, 0);
    let mut numbers = Numbers(5);
    for file in files_below(dir) {
        // A journal ends in zeros that were never written.
        let bytes = fs::read(&file).unwrap();
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        for _ in 0..used.min(places) {
            let at = numbers.below(used as u64) as usize;
            let scratch = changed(dir, &file, |_| {});
            damage(&scratch.path().join(file.strip_prefix(dir).unwrap()), at);
            match Index::open(scratch.path()).and_then(|index| models.whole(&index)) {
                Ok(BATCHES) => {}
                Ok(_) => lost += 1,
                Err(error) => {
                    let what = format!("{} {at}: {error}", file.display());
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}");
                    assert!(error.message().starts_with("damaged index: "), "{what}");
                    noticed += 1;
                }
            }
        }
    }
    (noticed, lost)
}

// Promise: store-index.
#[test]
fn damaged_index_reports_the_damage_or_is_earlier() {
    let (dir, models) = (made(BATCHES), Models::up_to(BATCHES));
    let change = |file: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(file).unwrap();
        change(&mut bytes);
        fs::write(file, bytes).unwrap();
    };
    let damaged =
        |places, damage: &dyn Fn(&Path, usize)| damage_all(dir.path(), &models, places, damage);
    let (noticed, lost) = damaged(8, &|file, at| change(file, &|bytes| bytes.truncate(at)));
    assert!(noticed > 0 && lost > 0);
    let (noticed, _) = damaged(8, &|file, at| change(file, &|bytes| bytes[at] ^= 0x10));
    assert!(noticed > 0);
    let (noticed, _) = damaged(1, &|file, _| fs::remove_file(file).unwrap());
    assert!(noticed > 3, "{noticed}");
}

/// If nothing checks the checksum first, chance decides which flipped bytes end the process.
#[test]
fn checksum_finds_a_flipped_byte_in_version_file() {
    let dir = made(BATCHES);
    let mut found = 0;
    for current in files_below(dir.path()).iter().filter(|file| file.ends_with("current")) {
        let version = u64::from_le_bytes(fs::read(current).unwrap()[..8].try_into().unwrap());
        let names = current.with_file_name(format!("v{version}"));
        let len = fs::read(&names).unwrap().len();
        for at in [0, len / 2, len - 1] {
            let scratch = changed(dir.path(), &names, |bytes| bytes[at] ^= 0x10);
            let error = Index::open(scratch.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{at}: {error}");
            let checksum = format!("the checksum of v{version} is another");
            assert!(error.message().ends_with(&checksum), "{at}: {error}");
            found += 1;
        }
    }
    assert!(found >= 3);
}

#[test]
fn two_handles_cannot_have_one_index() {
    let dir = tempfile::tempdir().unwrap();
    let _first = Index::open(dir.path()).unwrap();
    let error = Index::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
}
