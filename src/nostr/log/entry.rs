//! The bytes of the event store's write-ahead log: header, entries, names. Pure, no I/O. Big-endian.
//!
//! ```text
//! header        | magic 4 | version 8 | last checkpoint's lsn 8 | reserved 4 |    whole size 24
//! entry         | op 1 | lsn 8 | timestamp 8 | data length 4 | data | crc 8 |    length + 29
//! crc           CRC-64/XZ of op to data
//! INSERT        1  an event's record, without the heads of continuation pages
//! UPDATE_FLAGS  2  | segment 4 | offset 4 | flags 1 |
//! INDEX_UPDATE  3  | key length 4 | key | value length 4 | value |
//! CHECKPOINT    4  nothing
//! files         wal.log, then wal.%06d.log from wal.000001.log on
//! ```
//!
//! Source: the event store's "Write-Ahead Log (WAL)", and the files of its reference implementation.

use std::borrow::Cow;
use std::ffi::OsStr;

use crate::error::Result;
use crate::ground::slice::{part, there, u32_be_at, u64_be_at};
use crate::nostr::bytes::event::Location;
use crate::scan::Bad;

/// The directory of the write-ahead log in a store.
pub const WAL_NAME: &str = "wal";
/// Name of the format in errors.
pub const FORMAT: &str = "nostr-wal";

const MAGIC: [u8; 4] = *b"WLAO";
const VERSION: u64 = 1;
const VERSION_AT: usize = MAGIC.len();
/// Offset of the last checkpoint's number in a header.
pub const CHECKPOINT_AT: usize = VERSION_AT + 8;
const RESERVED_AT: usize = CHECKPOINT_AT + 8;
/// Size of a file's header; the first entry follows.
pub const HEADER_BYTES: usize = RESERVED_AT + 4;

pub(super) const LSN_AT: usize = 1;
pub(super) const TIMESTAMP_AT: usize = LSN_AT + 8;
pub(crate) const LENGTH_AT: usize = TIMESTAMP_AT + 8;
/// Size of an entry before its data.
pub const HEAD_BYTES: usize = LENGTH_AT + 4;
pub(crate) const CRC_BYTES: usize = 8;
/// Size of an entry around its data.
pub const FRAMING_BYTES: u64 = (HEAD_BYTES + CRC_BYTES) as u64;
const FLAGS_DATA_BYTES: usize = 4 + 4 + 1;

const _: () = assert!(HEADER_BYTES == 24 && FRAMING_BYTES == 29);

/// The number of an entry: one more than the number of the entry before, across all files of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// The highest number of an entry. No log gets there, so a higher number is damage. The limit also
/// keeps sums of numbers from overflowing.
pub(super) const LSN_MAX: Lsn = Lsn(1 << 62);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of the file with this number.
pub fn file_name(number: u64) -> String {
    match number {
        0 => "wal.log".into(),
        _ => format!("wal.{number:06}.log"),
    }
}

/// The number in a file's name. The log ignores other files of the directory.
pub fn file_number(name: &OsStr) -> Option<u64> {
    let name = name.to_str()?;
    let number = match name {
        "wal.log" => 0,
        _ => name.strip_prefix("wal.")?.strip_suffix(".log")?.parse().ok()?,
    };
    // A higher number would leave no number for the next file.
    (number < u64::MAX && file_name(number) == name).then_some(number)
}

/// The header of a file.
pub fn encode_file_header(checkpoint: Lsn) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let parts = [&MAGIC[..], &VERSION.to_be_bytes(), &checkpoint.0.to_be_bytes()];
    for (to, from) in header.iter_mut().zip(parts.concat()) {
        *to = from;
    }
    header
}

/// Parse the number of the last checkpoint from a header; `Err` names the error.
pub fn parse_file_header(header: &[u8; HEADER_BYTES]) -> Result<Lsn, String> {
    let (magic, version) = (part(header, ..VERSION_AT), there(u64_be_at(header, VERSION_AT)));
    if *magic != MAGIC {
        let found: String = magic.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(format!("magic {found}, must be 574c414f"));
    }
    match version {
        VERSION => Ok(Lsn(there(u64_be_at(header, CHECKPOINT_AT)))),
        _ => Err(format!("version {version}, must be {VERSION}")),
    }
}

/// The content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A new event.
    Insert {
        /// The event's record, without the heads of continuation pages.
        record: &'a [u8],
    },
    /// The flags of a record change.
    UpdateFlags {
        /// The record.
        at: Location,
        /// Its flags from now on.
        flags: u8,
    },
    /// A change of an index.
    IndexUpdate {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// The segments hold all earlier entries durably.
    Checkpoint,
}

impl<'a> Entry<'a> {
    /// The kind of the entry.
    pub fn op(&self) -> Op {
        match self {
            Self::Insert { .. } => Op::Insert,
            Self::UpdateFlags { .. } => Op::UpdateFlags,
            Self::IndexUpdate { .. } => Op::IndexUpdate,
            Self::Checkpoint => Op::Checkpoint,
        }
    }

    /// The entry's data. An update of an index has room for up to 2^32 bytes.
    pub fn data(&self) -> Cow<'a, [u8]> {
        match *self {
            Self::Insert { record } => record.into(),
            Self::UpdateFlags { at, flags } => {
                let (segment, offset) = (at.segment.to_be_bytes(), at.offset.to_be_bytes());
                [&segment[..], &offset, &[flags]].concat().into()
            }
            Self::IndexUpdate { key, value } => {
                let len = |bytes: &[u8]| (bytes.len() as u32).to_be_bytes();
                [&len(key)[..], key, &len(value), value].concat().into()
            }
            Self::Checkpoint => Cow::Borrowed(&[]),
        }
    }

    /// Parse the data of an entry of this kind; `Err` names the error.
    pub fn parse(op: Op, data: &'a [u8]) -> Result<Self, Bad> {
        let bad = |found: u64, expected: u64| {
            let (what, against) = ("data length", "must be");
            Bad { what, found, against, expected, framed_len: None }
        };
        let len = data.len() as u64;
        match op {
            Op::Insert => Ok(Self::Insert { record: data }),
            Op::UpdateFlags if data.len() == FLAGS_DATA_BYTES => {
                let at = Location {
                    segment: there(u32_be_at(data, 0)),
                    offset: there(u32_be_at(data, 4)),
                };
                let flags = *there(data.get(8));
                Ok(Self::UpdateFlags { at, flags })
            }
            Op::UpdateFlags => Err(bad(len, FLAGS_DATA_BYTES as u64)),
            Op::IndexUpdate => {
                let split = |bytes: &'a [u8], before: u64| {
                    let Some((head, rest)) = bytes.split_at_checked(4) else {
                        return Err(bad(len, before + 4));
                    };
                    let needed = u64::from(there(u32_be_at(head, 0)));
                    rest.split_at_checked(needed as usize).ok_or(bad(len, before + 4 + needed))
                };
                let (key, rest) = split(data, 0)?;
                let before = 4 + key.len() as u64;
                let (value, rest) = split(rest, before)?;
                match rest.is_empty() {
                    true => Ok(Self::IndexUpdate { key, value }),
                    false => Err(bad(len, before + 4 + value.len() as u64)),
                }
            }
            Op::Checkpoint if data.is_empty() => Ok(Self::Checkpoint),
            Op::Checkpoint => Err(bad(len, 0)),
        }
    }
}

/// The kinds of entries, with their stored numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// A new event.
    #[default]
    Insert = 1,
    /// The flags of a record change.
    UpdateFlags = 2,
    /// A change of an index.
    IndexUpdate = 3,
    /// The segments hold all earlier entries.
    Checkpoint = 4,
}

impl Op {
    const ALL: [Self; 4] = [Self::Insert, Self::UpdateFlags, Self::IndexUpdate, Self::Checkpoint];

    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as u8 == number)
    }
}

/// An entry's fields other than its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Its kind.
    pub op: Op,
    /// Its number.
    pub lsn: Lsn,
    /// When it was made, in seconds from 1970.
    pub timestamp: u64,
}

pub(crate) fn bad(what: &'static str, found: u64, against: &'static str, expected: u64) -> Bad {
    Bad { what, found, against, expected, framed_len: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_grammar_names_a_file() {
        let number = |name: &str| file_number(OsStr::new(name));
        for (expected, name) in
            [(0, "wal.log"), (1, "wal.000001.log"), (1 << 20, "wal.1048576.log")]
        {
            assert_eq!((number(name), &*file_name(expected)), (Some(expected), name));
        }
        let last = format!("wal.{}.log", u64::MAX);
        assert_eq!(number(&last), None);
        for name in ["wal.000000.log", "wal.1.log", "wal.+00001.log", "wal.log.tmp", "wal..log"] {
            assert_eq!(number(name), None, "{name}");
        }
    }

    #[test]
    fn a_header_says_which_checkpoint_was_the_last() {
        let header = encode_file_header(Lsn(5));
        assert_eq!(parse_file_header(&header), Ok(Lsn(5)));
        for (at, why) in [(0, "magic"), (11, "version")] {
            let mut other = header;
            other[at] ^= 1;
            assert!(parse_file_header(&other).unwrap_err().contains(why), "{at}");
        }
    }

    #[test]
    fn data_of_another_shape_is_no_entry() {
        let entry = Entry::IndexUpdate { key: b"key", value: b"" };
        let data = entry.data();
        assert_eq!(Entry::parse(Op::IndexUpdate, &data), Ok(entry));
        for end in 0..data.len() {
            assert!(Entry::parse(Op::IndexUpdate, &data[..end]).is_err(), "{end}");
        }
        assert!(Entry::parse(Op::IndexUpdate, &[&data[..], &[0]].concat()).is_err());
        assert!(Entry::parse(Op::UpdateFlags, &[0; 8]).is_err());
        assert!(Entry::parse(Op::Checkpoint, &[0]).is_err());
    }
}
