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

use super::Location;
use crate::checksum::{crc64, crc64_more};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::log::framing::{self, Framing};
use crate::scan::{Bad, Step};
use crate::slice::{part, u32_at};

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

const LSN_AT: usize = 1;
const TIMESTAMP_AT: usize = LSN_AT + 8;
const LENGTH_AT: usize = TIMESTAMP_AT + 8;
/// Size of an entry before its data.
pub const HEAD_BYTES: usize = LENGTH_AT + 4;
const CRC_BYTES: usize = 8;
/// Size of an entry around its data.
pub const FRAMING_BYTES: u64 = (HEAD_BYTES + CRC_BYTES) as u64;
const FLAGS_DATA_BYTES: usize = 4 + 4 + 1;

const _: () = assert!(HEADER_BYTES == 24 && FRAMING_BYTES == 29);

/// The number of an entry: one more than that of the entry before, in all files of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

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

/// The number in a file's name; anything else in the directory is not ours to look at.
pub fn file_number(name: &OsStr) -> Option<u64> {
    let name = name.to_str()?;
    let number = match name {
        "wal.log" => 0,
        _ => name.strip_prefix("wal.")?.strip_suffix(".log")?.parse().ok()?,
    };
    (file_name(number) == name).then_some(number)
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

/// The number of the last checkpoint in a header; `Err` says what is wrong with it.
pub fn parse_file_header(header: &[u8; HEADER_BYTES]) -> Result<Lsn, String> {
    let (magic, version) = (part(header, ..VERSION_AT), be64(header, VERSION_AT));
    if *magic != MAGIC {
        let found: String = magic.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(format!("magic {found}, must be 574c414f"));
    }
    match version {
        VERSION => Ok(Lsn(be64(header, CHECKPOINT_AT))),
        _ => Err(format!("version {version}, must be {VERSION}")),
    }
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A new event.
    Insert {
        /// Its record, without the heads of continuation pages.
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
    /// Everything before is in the segments, durably.
    Checkpoint,
}

impl<'a> Entry<'a> {
    /// The number of its kind.
    pub fn op(&self) -> Op {
        match self {
            Self::Insert { .. } => Op::Insert,
            Self::UpdateFlags { .. } => Op::UpdateFlags,
            Self::IndexUpdate { .. } => Op::IndexUpdate,
            Self::Checkpoint => Op::Checkpoint,
        }
    }

    /// Its data, which an update of an index has room for up to 2^32 bytes.
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

    /// What an entry of this kind with this data says, or why there is none.
    pub fn parse(op: Op, data: &'a [u8]) -> Result<Self, Bad> {
        let bad = |found: u64, expected: u64| {
            let (what, against) = ("data length", "must be");
            Bad { what, found, against, expected, framed_len: None }
        };
        let len = data.len() as u64;
        match op {
            Op::Insert => Ok(Self::Insert { record: data }),
            Op::UpdateFlags if data.len() == FLAGS_DATA_BYTES => {
                let at = Location { segment: be32(data, 0), offset: be32(data, 4) };
                let flags = data.get(8).copied().unwrap_or_default();
                Ok(Self::UpdateFlags { at, flags })
            }
            Op::UpdateFlags => Err(bad(len, FLAGS_DATA_BYTES as u64)),
            Op::IndexUpdate => {
                let split = |bytes: &'a [u8], before: u64| {
                    let Some((head, rest)) = bytes.split_at_checked(4) else {
                        return Err(bad(len, before + 4));
                    };
                    let needed = u64::from(be32(head, 0));
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

/// The kinds of entries, by their numbers.
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
    /// Everything before is in the segments.
    Checkpoint = 4,
}

impl Op {
    const ALL: [Self; 4] = [Self::Insert, Self::UpdateFlags, Self::IndexUpdate, Self::Checkpoint];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as u8 == number)
    }
}

/// What an entry has beside its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Its kind.
    pub op: Op,
    /// Its number.
    pub lsn: Lsn,
    /// When it was made, in seconds from 1970.
    pub timestamp: u64,
}

impl Tag {
    fn encode(self, data_len: usize) -> Vec<u8> {
        let (lsn, timestamp) = (self.lsn.0.to_be_bytes(), self.timestamp.to_be_bytes());
        [&[self.op as u8][..], &lsn, &timestamp, &(data_len as u32).to_be_bytes()].concat()
    }
}

/// What is known of an intact entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it has beside its data.
    pub tag: Tag,
    data_len: u32,
    /// The first half of the checksum as it is stored.
    sum: u32,
}

impl framing::Frame for Frame {
    fn sum(self) -> u32 {
        self.sum
    }

    fn len(self) -> u64 {
        FRAMING_BYTES + u64::from(self.data_len)
    }

    fn payload_len(self) -> u64 {
        self.data_len.into()
    }

    fn payload(self, record: &[u8]) -> &[u8] {
        part(record, HEAD_BYTES..HEAD_BYTES + self.data_len as usize)
    }
}

/// The codec of entries.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// Limit of an entry's data, bytes.
    pub data_bytes_max: u64,
    /// Whether checksums are compared.
    pub check: bool,
}

impl Codec {
    /// The codec that compares checksums.
    pub fn new(data_bytes_max: u64) -> Self {
        Self { data_bytes_max, check: true }
    }
}

fn bad(what: &'static str, found: u64, against: &'static str, expected: u64) -> Bad {
    Bad { what, found, against, expected, framed_len: None }
}

impl Framing for Codec {
    type Frame = Frame;
    type Tag = Tag;
    type Sum = u64;

    const RECORD_BYTES_MIN: u64 = FRAMING_BYTES;
    const HEAD_BYTES: usize = HEAD_BYTES;
    /// The last bytes are a checksum's.
    const TRAILING_ZEROS_MAX: u64 = CRC_BYTES as u64;
    const LINKED: bool = true;

    #[inline]
    fn parse(&self, bytes: &[u8]) -> Step<Frame> {
        let op = match bytes.first().map(|&number| (number, Op::of(number))) {
            Some((_, Some(op))) => op,
            // No kind at all: not written, if the rest is not either.
            Some((0, None)) => match bytes.get(..HEAD_BYTES) {
                Some(head) if head.iter().all(|&byte| byte == 0) => return Step::Blank,
                Some(_) => return Step::Bad(bad("op type", 0, "at least", 1)),
                None => return Step::NeedMore(HEAD_BYTES as u64),
            },
            Some((number, None)) => {
                return Step::Bad(bad("op type", number.into(), "at most", Op::Checkpoint as u64));
            }
            None => return Step::NeedMore(HEAD_BYTES as u64),
        };
        let Some(head) = bytes.get(..HEAD_BYTES) else {
            return Step::NeedMore(HEAD_BYTES as u64);
        };
        let data_len = be32(head, LENGTH_AT);
        let length = u64::from(data_len);
        if length > self.data_bytes_max {
            return Step::Bad(bad("length", length, "limit", self.data_bytes_max));
        }
        let whole = FRAMING_BYTES + length;
        let Some(record) = bytes.get(..whole as usize) else {
            return Step::NeedMore(whole);
        };
        let (covered, stored) = record.split_at(record.len() - CRC_BYTES);
        if self.check {
            let (crc, stored) = (crc64(covered), be64(stored, 0));
            if crc != stored {
                return Step::Bad(bad("checksum", crc, "stored", stored));
            }
        }
        if let Err(bad) = Entry::parse(op, part(covered, HEAD_BYTES..)) {
            return Step::Bad(bad);
        }
        let (lsn, timestamp) = (Lsn(be64(head, LSN_AT)), be64(head, TIMESTAMP_AT));
        let sum = u32_at(stored, 0).unwrap_or_default();
        Step::Record { frame: Frame { tag: Tag { op, lsn, timestamp }, data_len, sum }, len: whole }
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    fn follows(&self, before: Frame, next: Frame) -> Result<(), Bad> {
        let expected = before.tag.lsn.0.wrapping_add(1);
        match next.tag.lsn.0 {
            lsn if lsn == expected => Ok(()),
            lsn => Err(bad("lsn", lsn, "expected", expected)),
        }
    }

    fn claimed_len(&self, head: &[u8]) -> Option<u64> {
        let length = u64::from(be32(head.get(..HEAD_BYTES)?, LENGTH_AT));
        Op::of(*head.first()?)?;
        (length <= self.data_bytes_max).then_some(FRAMING_BYTES + length)
    }

    fn sum_at(record_len: u64) -> u64 {
        record_len - CRC_BYTES as u64
    }

    fn record_bytes_max(&self) -> u64 {
        self.data_bytes_max + FRAMING_BYTES
    }

    #[inline]
    fn check_len(&self, data_len: usize) -> Result<()> {
        if data_len as u64 <= self.data_bytes_max {
            return Ok(());
        }
        let message = format!("entry with {data_len} bytes of data, limit {}", self.data_bytes_max);
        Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
    }

    /// The checksum is that of the bytes in `out`.
    fn encode(&self, out: &mut Vec<u8>, tag: Tag, data: &[u8]) -> u32 {
        let start = out.len();
        out.reserve(data.len() + FRAMING_BYTES as usize);
        out.extend_from_slice(&tag.encode(data.len()));
        out.extend_from_slice(data);
        let sum = crc64(part(out, start..));
        out.extend_from_slice(&sum.to_be_bytes());
        Self::short_sum(sum)
    }

    fn sum_begin(&self, tag: Tag, data_len: usize) -> u64 {
        crc64(&tag.encode(data_len))
    }

    fn sum_more(&self, sum: u64, part: &[u8]) -> u64 {
        crc64_more(sum, part)
    }

    fn short_sum(sum: u64) -> u32 {
        u32_at(&sum.to_be_bytes(), 0).unwrap_or_default()
    }

    fn enclose(&self, tag: Tag, data_len: usize, sum: u64) -> (Vec<u8>, Vec<u8>) {
        (tag.encode(data_len), sum.to_be_bytes().to_vec())
    }
}

/// The big-endian number at a byte, which must be there.
fn be32(bytes: &[u8], at: usize) -> u32 {
    part(bytes, at..at + 4).iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// The big-endian number at a byte, which must be there.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    part(bytes, at..at + 8).iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
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

    #[test]
    fn parts_have_the_checksum_of_the_whole() {
        let (codec, data) = (Codec::new(100), [7; 50]);
        let tag = Tag { op: Op::Insert, lsn: Lsn(1 << 40), timestamp: 9 };
        let mut whole = Vec::new();
        let short = codec.encode(&mut whole, tag, &data);
        let sum =
            data.chunks(8).fold(codec.sum_begin(tag, 50), |sum, part| codec.sum_more(sum, part));
        let (head, trailer) = codec.enclose(tag, 50, sum);
        assert_eq!([&head[..], &data, &trailer].concat(), whole);
        assert_eq!(Codec::short_sum(sum), short);
        let at = Codec::sum_at(whole.len() as u64) as usize;
        assert_eq!(u32_at(&whole, at), Some(short));
    }
}
