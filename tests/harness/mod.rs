//! What the crash and fault tests share: logs as subjects, an oracle, and the enumerator.
//!
//! A further format plugs in with one implementation of [`Subject`] and [`Log`]; see `book.rs`.
#![allow(dead_code)]

pub mod book;
pub mod explore;
pub mod faulty;
pub mod history;
pub mod report;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use deedbook::storage::sim::Sim;
use deedbook::{Durability, Result};

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
