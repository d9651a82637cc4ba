//! What the crash and fault tests share: logs as subjects, an oracle, and the enumerator.
//!
//! A further format plugs in with one implementation of [`Subject`] and [`Log`]; see `book.rs`, and
//! `wal.rs` for one that can drop records at both ends.
#![allow(dead_code)]

pub mod book;
pub mod campaign;
pub mod explore;
pub mod faulty;
pub mod history;
pub mod report;
pub mod wal;
pub mod watch;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use deedbook::storage::sim::Sim;
use deedbook::{Durability, Error, ErrorKind, Result};

/// One record as appended or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number in the log.
    pub ordinal: u64,
    /// A number stored beside the payload; a format without one gives the ordinal's low bits.
    pub tag: u32,
    pub bytes: Vec<u8>,
}

/// How a log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub durability: Durability,
    /// Cut back to what was acknowledged.
    pub acknowledged: bool,
}

/// A log format on a simulated disk.
pub trait Subject: Sync {
    fn name(&self) -> &'static str;
    /// Bytes of a record around its payload.
    fn framing_bytes(&self) -> u64;
    /// Number of the first record.
    fn first_ordinal(&self) -> u64;
    /// Bytes that are whole valid records, for payloads that try to deceive recovery.
    fn nested(&self) -> Vec<u8>;
    /// Number of the record behind one with this number and payload.
    fn ordinal_behind(&self, ordinal: u64, _payload_len: usize) -> u64 {
        ordinal + 1
    }
    /// The tag that a record is read back with.
    fn tag(&self, _ordinal: u64, tag: u32) -> u32 {
        tag
    }
    /// Bytes of the framing before the payload.
    fn head_bytes(&self) -> u64 {
        self.framing_bytes() / 2
    }
    /// Where its files may be cut in the middle of a record: sectors, or smaller pieces.
    fn border_bytes(&self) -> u64 {
        history::SECTOR_BYTES
    }
    /// Size of the payload full of whole records.
    fn long_bytes(&self) -> usize {
        history::LONG_BYTES
    }
    /// Open for appending; create what is missing.
    fn open(&self, disk: &Sim, how: How) -> Result<Box<dyn Log>>;
    /// Open for reading and read all.
    fn peek(&self, disk: &Sim) -> Result<Vec<Record>>;
}

/// An open log.
pub trait Log {
    /// Append tags and payloads as one batch.
    fn append(&self, records: &[(u32, Vec<u8>)]) -> Result<()>;
    fn sync(&self) -> Result<()>;
    fn close(&self) -> Result<()>;
    /// Byte of its file at which the next record begins.
    fn end(&self) -> Result<u64>;
    fn read_all(&self) -> Result<Vec<Record>>;
    /// Number of the next record, where an empty log can have any.
    fn next_ordinal(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Drop the records before the one with this number; with the next one's, all.
    fn truncate_before(&self, _ordinal: u64) -> Result<()> {
        Err(unsupported("truncate_before"))
    }
    /// Drop the records behind the one with this number.
    fn truncate_after(&self, _ordinal: u64) -> Result<()> {
        Err(unsupported("truncate_after"))
    }
    /// Drop the record with this number and those behind it.
    fn truncate_from(&self, _ordinal: u64) -> Result<()> {
        Err(unsupported("truncate_from"))
    }
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: not supported"))
}

/// What a log may hold: of what was written a prefix, with everything acknowledged.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Number of the first record, or of the one to come.
    pub base: u64,
    pub records: Vec<Record>,
    pub acked: usize,
}

/// Whether `got` is what a recovery may give in one of these cases; and in which. `next` is the
/// number of the next record, if that is known.
pub fn judge_any<'a>(
    got: &[Record],
    next: Option<u64>,
    allowed: &'a [Expect],
    whole: bool,
) -> Result<&'a Expect, String> {
    let mut wrong = Vec::new();
    for expect in allowed {
        match judge(got, &expect.records, expect.acked, whole) {
            Ok(()) if got.is_empty() && next.is_some_and(|next| next != expect.base) => {
                wrong.push(format!("empty and begins at {next:?}, not at {}", expect.base));
            }
            Ok(()) => return Ok(expect),
            Err(what) => wrong.push(what),
        }
    }
    Err(wrong.join("; and neither: "))
}

/// A well-spread number for a number.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A set of numbers that are hashes already.
pub type Seen = HashSet<u64, BuildHasherDefault<AsItIs>>;

#[derive(Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("numbers only");
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Whether `got` is what a recovery may give: a prefix of `written`, byte for byte and with the
/// right numbers, that has everything acknowledged. With `whole`, nothing but a state that was
/// acknowledged or about to be.
pub fn judge(got: &[Record], written: &[Record], acked: usize, whole: bool) -> Result<(), String> {
    if got.len() < acked {
        return Err(format!("lost: {} records are left, {acked} were acknowledged", got.len()));
    }
    if got.len() > written.len() {
        return Err(format!("invented: {} records, {} were written", got.len(), written.len()));
    }
    for (found, wrote) in got.iter().zip(written) {
        if found != wrote {
            return Err(format!("changed: {} is not {}", shown(found), shown(wrote)));
        }
    }
    if whole && got.len() != acked && got.len() != written.len() {
        let (got, all) = (got.len(), written.len());
        return Err(format!("a part of what was in flight: {got}, not {acked} or {all}"));
    }
    Ok(())
}

fn shown(record: &Record) -> String {
    let Record { ordinal, tag, bytes } = record;
    format!("record {ordinal} (tag {tag}, {} bytes, hash {:x})", bytes.len(), hash(bytes))
}

/// A hash of some bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |hash, &byte| mix(hash ^ u64::from(byte)))
}
