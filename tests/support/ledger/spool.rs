//! Shared by the tests: the byte layout again, without a line of the crate, and small ledgers.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::ledger::{DataResult, LedgerConfig, LedgerReader, LedgerStore, Options};
use deedbook::storage::{Memory, Storage};
use deedbook::{ErrorKind, Result};

pub use super::super::mix::mix;
use super::super::plain::write_file;
pub use super::super::plain::{crc32, read_file};

pub const DIR: &str = "/spool";
pub const BASE: &str = "events";

pub fn record(payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_le_bytes();
    [&len[..], &crc32(payload).to_le_bytes(), payload].concat()
}

pub fn file_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    payloads.iter().map(|payload| record(payload)).collect::<Vec<_>>().concat()
}

/// The payload and the whole size of the intact record at a byte.
pub fn parse(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let len = number(at)? as usize;
    let payload = bytes.get(at + 8..(at + 8).checked_add(len)?)?;
    (len > 0 && len <= 1 << 20 && crc32(payload) == number(at + 4)?).then_some((payload, len + 8))
}

pub fn prefix(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let (mut payloads, mut at) = (Vec::new(), 0);
    while let Some((payload, len)) = parse(bytes, at) {
        payloads.push(payload.to_vec());
        at += len;
    }
    (payloads, at)
}

/// The event with this number: JSON, from 24 to 24 + `longest` bytes long.
pub fn event(number: u64, longest: u64) -> Vec<u8> {
    let len = if longest == 0 { 0 } else { mix(number) % longest };
    let filler: String =
        (0..len).map(|i| char::from(b'a' + (mix(number ^ i) % 26) as u8)).collect();
    format!("{{\"n\":{number:08},\"fill\":\"{filler}\"}}").into_bytes()
}

pub fn events(numbers: std::ops::Range<u64>, longest: u64) -> Vec<Vec<u8>> {
    numbers.map(|number| event(number, longest)).collect()
}

pub fn number_of(event: &[u8]) -> u64 {
    std::str::from_utf8(&event[5..13]).unwrap().parse().unwrap()
}

pub fn small(dir: impl Into<PathBuf>, max_file_size: usize) -> LedgerConfig {
    LedgerConfig { max_file_size, ..LedgerConfig::lines(dir, BASE) }
}

pub fn around(header: &'static [u8], footer: &'static [u8], separator: &[u8]) -> LedgerConfig {
    LedgerConfig {
        header: Box::new(|| header.to_vec()),
        footer: Box::new(|| footer.to_vec()),
        separator: separator.to_vec(),
        ..LedgerConfig::lines(DIR, BASE)
    }
}

pub fn body_of(header: &[u8], payloads: &[Vec<u8>], separator: &[u8], footer: &[u8]) -> Vec<u8> {
    [header, &payloads.join(separator), footer].concat()
}

pub fn memory() -> (Memory, Options) {
    let memory = Memory::new();
    (memory.clone(), on(memory))
}

pub fn in_memory(max_file_size: usize) -> (Memory, LedgerStore) {
    let (memory, options) = memory();
    (memory, options.open(small(DIR, max_file_size)).unwrap())
}

pub fn on(storage: impl Storage + 'static) -> Options {
    Options::new().storage(Arc::new(storage))
}

pub fn payloads(reader: &LedgerReader) -> Vec<Vec<u8>> {
    let found: Vec<_> = reader.payloads().map(Result::unwrap).collect();
    assert_eq!(found.len() as u64, reader.records());
    found
}

/// The whole body. Its length must be the announced length.
pub fn body(reader: &mut LedgerReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, reader.content_length());
    bytes
}

pub fn append_each(ledger: &LedgerStore, payloads: &[Vec<u8>]) {
    for payload in payloads {
        ledger.append(payload).unwrap();
    }
}

/// The files of a fetch: for each file its index and its payloads.
pub fn shown(fetched: &DataResult) -> Vec<(u32, Vec<Vec<u8>>)> {
    let readers = fetched.data.as_ref().unwrap();
    let removable = fetched.removable.as_ref().unwrap();
    assert_eq!(readers.len(), removable.len());
    let shown = readers.iter().zip(removable).map(|(reader, removable)| {
        assert_eq!(reader.index(), removable.index());
        (reader.index(), payloads(reader))
    });
    shown.collect()
}

pub fn fetch_all(ledger: &LedgerStore) -> Vec<(u32, Vec<Vec<u8>>)> {
    ledger.fetch(None, None).unwrap().as_ref().map(shown).unwrap_or_default()
}

pub fn drain(ledger: &LedgerStore) -> Vec<Vec<u8>> {
    fetch_all(ledger).into_iter().flat_map(|(_, payloads)| payloads).collect()
}

pub fn send(ledger: &LedgerStore) -> Vec<(u32, Vec<Vec<u8>>)> {
    let Some(fetched) = ledger.fetch(None, None).unwrap() else { return Vec::new() };
    let files = shown(&fetched);
    ledger.remove(&fetched.removable.unwrap()).unwrap();
    files
}

pub fn last_index(ledger: &LedgerStore) -> u32 {
    fetch_all(ledger).last().unwrap().0
}

pub fn listing(storage: &dyn Storage, dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = storage.list(dir).unwrap_or_default();
    let files = names.into_iter().filter(|name| !storage.is_dir(&dir.join(name)));
    files.map(|name| (name.to_str().unwrap().into(), read_file(storage, &dir.join(name)))).collect()
}

pub fn quarantined(storage: &dyn Storage) -> BTreeMap<String, Vec<u8>> {
    listing(storage, &Path::new(DIR).join(".deedbook/quarantine"))
}

pub fn names(storage: &dyn Storage, dir: impl AsRef<Path>) -> Vec<String> {
    listing(storage, dir.as_ref()).into_keys().collect()
}

pub fn put(storage: &dyn Storage, index: u32, bytes: &[u8]) {
    storage.create_dir(Path::new(DIR)).unwrap();
    write_file(storage, &Path::new(DIR).join(format!("{index}-{BASE}")), bytes);
}

#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) -> deedbook::Error {
    let error = result.expect_err("should have been refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.format(), Some("ledger"), "{error}");
    assert!(error.path().is_some(), "{error}");
    error
}
