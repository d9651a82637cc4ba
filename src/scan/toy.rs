//! A framing for tests: records with their length at both ends, a number and a checksum.
//!
//! ```text
//! | len 8 | tag 4 | payload len-4 | crc 4 | len 8 |   whole size len + 20, all little-endian
//! ```

#![allow(clippy::unwrap_used)]

use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::Sum;
use crate::ground::slice::{part, u32_at, u64_at};
use crate::scan::framing::{Bad, Frame, Framing, Shape, Step, SumAt};

const TAG_BYTES: u64 = 4;
const HEAD_BYTES: usize = 12;
const TAIL_BYTES: usize = 12;
const AROUND_BYTES: u64 = (HEAD_BYTES + TAIL_BYTES) as u64 - TAG_BYTES;

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct Toy {
    /// The limit of a length.
    limit: u64,
    /// Whether checksums are compared, or only lengths.
    check: bool,
}

impl Toy {
    /// The bytes of a record without its payload.
    pub const FRAMING_BYTES: usize = HEAD_BYTES + TAIL_BYTES;

    /// The codec with this limit of a length.
    pub fn new(limit: u64) -> Self {
        Self { limit, check: true }
    }
}

/// An intact record.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    tag: u32,
    sum: u32,
    payload_len: u64,
}

impl Frame for Found {
    fn sum(self) -> u32 {
        self.sum
    }

    fn len(self) -> u64 {
        self.payload_len + Toy::FRAMING_BYTES as u64
    }

    fn payload_len(self) -> u64 {
        self.payload_len
    }

    fn payload(self, record: &[u8]) -> &[u8] {
        part(record, HEAD_BYTES..HEAD_BYTES + self.payload_len as usize)
    }

    fn tag(self) -> u32 {
        self.tag
    }
}

fn bad(found: u64, against: &'static str, expected: u64) -> Step<Found> {
    Step::Bad(Bad { what: "length", found, against, expected, framed_len: None })
}

fn len_of(payload_len: usize) -> u64 {
    payload_len as u64 + TAG_BYTES
}

impl Framing for Toy {
    type Frame = Found;
    type Tag = u32;

    const SUM: Sum = Sum::Crc32;
    const RECORD_BYTES_MIN: u64 = Toy::FRAMING_BYTES as u64;
    const HEAD_BYTES: usize = 8;
    const TRAILER_BYTES: usize = 8;
    const TRAILING_ZEROS_MAX: u64 = 7;

    fn shape(&self) -> Shape {
        Shape {
            head: HEAD_BYTES,
            tail: TAIL_BYTES,
            covered: 0..HEAD_BYTES,
            sum: SumAt::Tail,
            check: self.check,
            payload_max: self.limit - TAG_BYTES,
            staged_from: 0,
        }
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    fn claim(&self, bytes: &[u8]) -> std::result::Result<u64, Step<Found>> {
        let Some(len) = u64_at(bytes, 0) else {
            return Err(Step::NeedMore(HEAD_BYTES as u64));
        };
        match (len, u32_at(bytes, 8)) {
            (0, None) => Err(Step::NeedMore(HEAD_BYTES as u64)),
            (0, Some(0)) => Err(Step::Blank),
            (..TAG_BYTES, _) => Err(bad(len, "minimum", TAG_BYTES)),
            _ if len > self.limit => Err(bad(len, "limit", self.limit)),
            _ => Ok(len + AROUND_BYTES),
        }
    }

    fn close(&self, body: &[u8], len: u64, sum: u32) -> std::result::Result<Found, Bad> {
        let payload_len = len - Self::FRAMING_BYTES as u64;
        Ok(Found { tag: u32_at(body, 8).unwrap(), sum, payload_len })
    }

    fn push_head(&self, out: &mut Vec<u8>, tag: u32, payload_len: usize) {
        out.extend(len_of(payload_len).to_le_bytes());
        out.extend(tag.to_le_bytes());
    }

    fn check_len(&self, payload_len: usize) -> Result<()> {
        match len_of(payload_len) > self.limit {
            true => Err(Error::new(ErrorKind::TooLarge, "too long")),
            false => Ok(()),
        }
    }
}
