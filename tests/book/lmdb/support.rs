//! Environments made by LMDB itself, and the golden ones.

pub use std::ops::RangeInclusive;
pub use std::os::unix::fs::PermissionsExt;

pub use deedbook::book;
pub use deedbook::book::lmdb::{Environment, Options, Report};
use heed::types::Bytes;
use heed::{CommitOrAbort, EnvOpenOptions, IntegerComparator};

pub use crate::prelude::*;
pub use crate::support::common::flips::flips;
pub use crate::support::common::lmdb_pages::make;
pub use crate::support::common::watched::Watched;
use crate::support::store::events::copy;

pub type Event = (u32, Vec<u8>);

pub const META: Meta =
    Meta { who: Some(0x1122_3344), version: Some(3), life: Some(7), fake: Some(false) };
pub const PIER_META: Meta =
    Meta { who: Some(0x0100), version: Some(3), life: Some(4), fake: Some(true) };

thread_local! {
    static COPIES: RefCell<BTreeMap<String, (TempDir, PathBuf)>> = RefCell::default();
}

/// A copy of a golden file or directory for this test alone: a process opens an environment only once.
pub fn data(name: &str) -> PathBuf {
    COPIES.with_borrow_mut(|copies| {
        let made = copies.entry(name.to_owned()).or_insert_with(|| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            let from = Path::new("tests/data/lmdb").join(name);
            match from.is_dir() {
                true => copy(&from, &path),
                false => drop(fs::copy(from, &path).unwrap()),
            }
            (dir, path)
        });
        made.1.clone()
    })
}

pub fn golden_events() -> Vec<Event> {
    let text = fs::read_to_string(data("events.hex")).unwrap();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let lines = text.lines().map(|line| line.as_bytes().chunks(2).map(byte).collect::<Vec<_>>());
    lines.map(|b| (u32::from_le_bytes(*b.first_chunk().unwrap()), b[4..].to_vec())).collect()
}

pub fn numbered(range: RangeInclusive<u64>) -> Vec<(u64, Vec<u8>)> {
    let value = |event: u64| {
        let jam = vec![event as u8; 1 + (event % 50) as usize];
        [&(event as u32).to_le_bytes()[..], &jam].concat()
    };
    range.map(|event| (event, value(event))).collect()
}

pub fn make_numbered(dir: &Path, range: RangeInclusive<u64>) {
    let events = numbered(range);
    let borrowed: Vec<_> = events.iter().map(|(event, value)| (*event, &value[..])).collect();
    make(
        dir,
        &borrowed,
        &[("who", b"\x01"), ("version", b"\x03"), ("life", b"\x01"), ("fake", b"")],
    );
}

pub fn bring(source: &Path, dest: &Path) -> Result<Report> {
    Options::default().migrate(source, dest, |_, _| Ok(()))
}

pub fn back(source: &Path, dest: &Path) -> Result<Report> {
    Options::default().export(source, dest, |_, _| Ok(()))
}

pub fn look(source: &Path, dest: &Path) -> Result<Report> {
    let options = Options::new().dry_run(true);
    options.migrate(source, dest, |_, _| Ok(()))
}

pub fn deeds(path: &Path) -> Vec<(u64, Event)> {
    let book = Book::open(path).unwrap();
    let deeds = book.iter(..).unwrap().map(Result::unwrap);
    deeds.map(|deed| (deed.event.unwrap(), (deed.mug, deed.jam))).collect()
}

pub fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    snapshot(&Disk, dir)
}

pub fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, says: &str) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    error
}

pub fn space() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (source, dest) = (dir.path().join("source"), dir.path().join("dest"));
    (dir, source, dest)
}

/// Keys and values of both databases, through LMDB itself.
pub fn contents(dir: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let copy = tempfile::tempdir().unwrap();
    fs::copy(dir.join("data.mdb"), copy.path().join("data.mdb")).unwrap();
    let mut options = EnvOpenOptions::new();
    options.max_dbs(2);
    let env = unsafe { options.open(copy.path()).unwrap() };
    let txn = env.read_txn().unwrap();
    let mut found = Vec::new();
    env.open_databases_and_commit(txn, |opener, txn| {
        let mut options =
            opener.database_options().types::<Bytes, Bytes>().key_comparator::<IntegerComparator>();
        let events = options.name("EVENTS").open(txn)?;
        let meta = opener.open_database::<Bytes, Bytes>(txn, Some("META"))?;
        let own = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        if let Some(events) = events {
            found.extend(events.iter(txn)?.map(|entry| own(entry.unwrap())));
        }
        if let Some(meta) = meta {
            found.extend(meta.iter(txn)?.map(|entry| own(entry.unwrap())));
        }
        Ok::<_, heed::Error>(CommitOrAbort::<(), _>::Abort(()))
    })
    .unwrap();
    found
}
