//! The bytes of a ledger: constants, names, encode, parse. Pure, no I/O. Little-endian.
//!
//! ```text
//! record    | length 4 | crc 4 | payload length |       whole size length + 8
//! crc       CRC-32 of the payload
//! file      records one after the other: no header, no footer
//! names     INDEX-BASE, the index without leading zeros, below 2^32
//! ```
//!
//! Source: LedgerStore 0.1.0, "Binary Record Format" and "File Layout".

use std::ffi::OsStr;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::checksum::Sum;
use crate::ground::slice::{part, u32_at};
use crate::scan::framing::{self, Framing, Shape, SumAt};
use crate::scan::{Bad, Step};

/// Name of the format in errors.
pub const FORMAT: &str = "ledger";

/// Offset of `crc` in a record.
const CRC_AT: usize = 4;
/// Size of a record's header; the payload follows.
pub const HEADER_BYTES: u64 = 8;
/// The default limit of a payload.
pub const RECORD_BYTES_MAX: u64 = 1 << 20;
/// The highest limit of a payload: a whole record's size is below 2^32, too.
pub const RECORD_BYTES_LIMIT: u64 = u32::MAX as u64 - HEADER_BYTES;

/// The most bytes of one write. Linux cuts longer writes.
pub const WRITE_BYTES: u64 = 0x7fff_f000;
/// The longest payload for one write.
pub const RECORD_BYTES_WRITTEN: u64 = WRITE_BYTES - HEADER_BYTES;
/// The directory of files that are kept aside, in `.deedbook`.
pub const QUARANTINE_NAME: &str = "quarantine";

const _: () = assert!(HEADER_BYTES == CRC_AT as u64 + 4);

/// The name of file `index`.
pub fn file_name(index: u32, base: &str) -> String {
    format!("{index}-{base}")
}

/// The index in a file's name; anything else in the directory is not ours to look at.
pub fn file_index(name: &OsStr, base: &str) -> Option<u32> {
    file_parts(name).filter(|(_, found)| *found == base).map(|(index, _)| index)
}

/// Index and base of a file by its name.
pub fn file_parts(name: &OsStr) -> Option<(u32, &str)> {
    let (digits, base) = name.to_str()?.split_once('-')?;
    let canonical = digits == "0" || !digits.starts_with('0');
    let all = canonical && digits.bytes().all(|byte| byte.is_ascii_digit());
    let index = digits.parse().ok().filter(|_| all)?;
    (!base.is_empty()).then_some((index, base))
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

    fn bad_length(found: u64, against: &'static str, expected: u64) -> Step<Frame> {
        Step::Bad(Bad { what: "length", found, against, expected, framed_len: None })
    }
}

impl Framing for Codec {
    type Frame = Frame;
    type Tag = ();

    const SUM: Sum = Sum::Crc32;
    const RECORD_BYTES_MIN: u64 = HEADER_BYTES + 1;
    const HEAD_BYTES: usize = HEADER_BYTES as usize;
    /// A payload may end with any number of them.
    const TRAILING_ZEROS_MAX: u64 = u64::MAX;

    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape {
            head: HEADER_BYTES as usize,
            tail: 0,
            covered: HEADER_BYTES as usize..HEADER_BYTES as usize,
            sum: SumAt::Head(CRC_AT),
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
        let (Some(length), Some(stored)) = (u32_at(bytes, 0), u32_at(bytes, CRC_AT)) else {
            return Err(Step::NeedMore(HEADER_BYTES));
        };
        match (u64::from(length), stored) {
            (0, 0) => Err(Step::Blank),
            (0, _) => Err(Self::bad_length(0, "minimum", 1)),
            (length, _) if length > self.record_bytes_max => {
                Err(Self::bad_length(length, "limit", self.record_bytes_max))
            }
            (length, _) => Ok(HEADER_BYTES + length),
        }
    }

    #[inline]
    fn close(&self, _body: &[u8], len: u64, crc: u32) -> Result<Frame, Bad> {
        Ok(Frame { crc, payload_len: (len - HEADER_BYTES) as u32 })
    }

    #[inline]
    fn push_head(&self, out: &mut Vec<u8>, _tag: (), payload_len: usize) {
        out.extend_from_slice(&(payload_len as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }

    #[inline]
    fn check_len(&self, payload_len: usize) -> Result<()> {
        let (kind, message) = match payload_len as u64 {
            0 => (ErrorKind::InvalidArgument, "record of 0 bytes, at least 1".into()),
            length if length > self.record_bytes_max => {
                let message = format!("record of {length} bytes, limit {}", self.record_bytes_max);
                (ErrorKind::TooLarge, message)
            }
            _ => return Ok(()),
        };
        Err(Error::new(kind, message).of(FORMAT).with_durable(Durable::No))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::framing::Frame as _;

    #[test]
    fn records_have_the_golden_bytes() {
        for (payload, header) in [
            (&b"123456789"[..], [9, 0, 0, 0, 0x26, 0x39, 0xF4, 0xCB]),
            (b"\0", [1, 0, 0, 0, 0x8D, 0xEF, 0x02, 0xD2]),
        ] {
            let mut record = vec![0xAA];
            Codec::new(100).encode(&mut record, (), payload);
            let record = record.get(1..).unwrap();
            assert_eq!(record, [&header[..], payload].concat());
            let Step::Record { frame, len } = Codec::new(100).parse(record) else {
                panic!("not read back");
            };
            assert_eq!((frame.payload(record), len), (payload, record.len() as u64));
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_asked_for() {
        let codec = Codec::new(100);
        let step = |len: u32| codec.parse(&[&len.to_le_bytes()[..], &[1; 44]].concat());
        assert!(matches!(step(0), Step::Bad(_)));
        assert!(matches!(step(101), Step::Bad(_)));
        assert!(matches!(step(u32::MAX), Step::Bad(_)));
        assert_eq!(step(100), Step::NeedMore(108));
        assert_eq!(codec.parse(&[0; 8]), Step::Blank);
        assert_eq!(codec.parse(&[1; 7]), Step::NeedMore(8));
        assert_eq!(codec.check_len(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(codec.check_len(101).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn only_the_grammar_names_a_file() {
        let index = |name: &str| file_index(OsStr::new(name), "events");
        for number in [0, 1, 10, u32::MAX] {
            assert_eq!(index(&file_name(number, "events")), Some(number));
        }
        for name in [
            "07-events",
            "00-events",
            "4294967296-events",
            "-events",
            "+1-events",
            "1events",
            "1-events-old",
            "1-event",
            "1 -events",
            "a1-events",
            "1-2-events",
            "١-events",
            "events",
        ] {
            assert_eq!(index(name), None, "{name}");
        }
        assert_eq!(file_index(OsStr::new("1-2-events"), "2-events"), Some(1));
    }
}
