//! The bytes of a write-ahead log: constants, names, encode, parse. Pure, no I/O. Little-endian.
//!
//! ```text
//! record    | crc 4 | length 4 | payload length |       whole size length + 8
//! crc       CRC-32C of length and payload
//! segments  %020d.wal: segment k holds the log's bytes k S up to (k + 1) S
//! ```
//!
//! Source: wal-db's "On-disk format": "Record layout", "Segments", "Prefix truncation".

use std::ffi::OsStr;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::checksum::Sum;
use crate::ground::slice::{part, u32_at};
use crate::scan::framing::{self, Framing, Shape, SumAt};
use crate::scan::{Bad, Step};

/// Name of the format in errors.
pub const FORMAT: &str = "wal";
/// Offset of `length` in a record.
const LENGTH_AT: usize = 4;
/// Size of a record's header; the payload follows.
pub const HEADER_BYTES: u64 = 8;
/// The default limit of a payload.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;
/// The default size of a segment.
pub const SEGMENT_BYTES: u64 = 64 << 20;

const _: () = assert!(HEADER_BYTES == LENGTH_AT as u64 + 4);

/// A log sequence number: the byte at which a record begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for Lsn {
    fn from(offset: u64) -> Self {
        Self(offset)
    }
}

/// The name of segment `index`.
pub fn segment_name(index: u64) -> String {
    format!("{index:020}.wal")
}

/// The index in a segment's name; anything else in the directory is not ours to look at.
pub fn segment_index(name: &OsStr) -> Option<u64> {
    let digits = name.to_str()?.strip_suffix(".wal")?;
    let canonical = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| canonical)
}

/// An intact record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The checksum as stored.
    pub crc: u32,
    /// Size of the payload in bytes.
    pub payload_len: u32,
}

impl framing::Frame for Frame {
    fn sum(self) -> u32 {
        self.crc
    }

    fn len(self) -> u64 {
        HEADER_BYTES + u64::from(self.payload_len)
    }

    fn payload_len(self) -> u64 {
        self.payload_len.into()
    }

    fn payload(self, record: &[u8]) -> &[u8] {
        part(record, HEADER_BYTES as usize..self.len() as usize)
    }
}

/// The codec of records.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// Limit of a payload, bytes.
    pub record_bytes_max: u64,
    /// Whether checksums are compared.
    pub check: bool,
}

impl Codec {
    /// The codec that compares checksums.
    pub fn new(record_bytes_max: u64) -> Self {
        Self { record_bytes_max, check: true }
    }
}

impl Framing for Codec {
    type Frame = Frame;
    type Tag = ();

    const SUM: Sum = Sum::Crc32c;
    const RECORD_BYTES_MIN: u64 = HEADER_BYTES;
    const HEAD_BYTES: usize = HEADER_BYTES as usize;
    /// A payload may end with any number of them.
    const TRAILING_ZEROS_MAX: u64 = u64::MAX;

    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape {
            head: HEADER_BYTES as usize,
            tail: 0,
            covered: LENGTH_AT..HEADER_BYTES as usize,
            sum: SumAt::Head(0),
            check: self.check,
            payload_max: self.record_bytes_max,
            staged_from: 0,
        }
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    #[inline]
    fn claim(&self, bytes: &[u8]) -> Result<u64, Step<Frame>> {
        let (Some(stored), Some(length)) = (u32_at(bytes, 0), u32_at(bytes, LENGTH_AT)) else {
            return Err(Step::NeedMore(HEADER_BYTES));
        };
        let (found, expected) = (u64::from(length), self.record_bytes_max);
        match (stored, length) {
            (0, 0) => Err(Step::Blank),
            _ if found > expected => {
                let (what, against) = ("length", "limit");
                Err(Step::Bad(Bad { what, found, against, expected, framed_len: None }))
            }
            _ => Ok(HEADER_BYTES + found),
        }
    }

    #[inline]
    fn close(&self, _body: &[u8], len: u64, crc: u32) -> Result<Frame, Bad> {
        Ok(Frame { crc, payload_len: (len - HEADER_BYTES) as u32 })
    }

    #[inline]
    fn push_head(&self, out: &mut Vec<u8>, _tag: (), payload_len: usize) {
        out.extend_from_slice(&[0; LENGTH_AT]);
        out.extend_from_slice(&(payload_len as u32).to_le_bytes());
    }

    #[inline]
    fn check_len(&self, payload_len: usize) -> Result<()> {
        if payload_len as u64 <= self.record_bytes_max {
            return Ok(());
        }
        let message = format!("record of {payload_len} bytes, limit {}", self.record_bytes_max);
        Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::framing::Frame as _;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn records_have_the_golden_bytes() {
        for (payload, header) in [
            (&b""[..], "c74b674800000000"),
            (b"hello", "a1b1174e05000000"),
            (b"tail", "8d303fe204000000"),
            (b"\0", "9919637d01000000"),
            (b"123456789", "78d2175709000000"),
        ] {
            let mut record = Vec::new();
            Codec::new(100).encode(&mut record, (), payload);
            assert_eq!(hex(record.get(..8).unwrap()), header);
            let Step::Record { frame, len } = Codec::new(100).parse(&record) else {
                panic!("not read back");
            };
            assert_eq!((frame.payload(&record), len), (payload, record.len() as u64));
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_asked_for() {
        let codec = Codec::new(100);
        let step = |len: u32| codec.parse(&[&[1; 4], &len.to_le_bytes()[..], &[1; 40]].concat());
        assert!(matches!(step(101), Step::Bad(_)));
        assert!(matches!(step(u32::MAX), Step::Bad(_)));
        assert_eq!(step(100), Step::NeedMore(108));
        assert_eq!(codec.parse(&[0; 8]), Step::Blank);
    }

    #[test]
    fn only_the_grammar_names_a_segment() {
        let index = |name: &str| segment_index(OsStr::new(name));
        assert_eq!(index(&segment_name(7)), Some(7));
        assert_eq!(index("18446744073709551615.wal"), Some(u64::MAX));
        for name in ["7.wal", "head", "0000000000000000007.wal", "99999999999999999999.wal"] {
            assert_eq!(index(name), None, "{name}");
        }
        assert_eq!(index("+0000000000000000007.wal"), None);
    }
}
