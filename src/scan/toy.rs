//! A framing for tests: records with their length at both ends, a number and a checksum.
//!
//! ```text
//! | len 8 | tag 4 | payload len-4 | crc 4 | len 8 |   whole size len + 20, all little-endian
//! ```

#![allow(clippy::unwrap_used)]

use crate::checksum::{crc32, crc32_more};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::framing::{Bad, Frame, Framing, Step};
use crate::slice::{part, u32_at, u64_at};

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

    /// A record by its head, its tail and, where checksums are compared, its checksum.
    fn close(&self, len: u64, head: &[u8], tail: &[u8], sum: impl FnOnce() -> u32) -> Step<Found> {
        let (stored, trailer) = (u32_at(tail, 0).unwrap(), u64_at(tail, 4).unwrap());
        if trailer != len {
            return Step::Bad(bad("length trailer", trailer, "length", len));
        }
        let whole = len + AROUND_BYTES;
        let sum = if self.check { sum() } else { stored };
        if sum != stored {
            let differ = bad("checksum", sum.into(), "stored", stored.into());
            return Step::Bad(Bad { framed_len: Some(whole), ..differ });
        }
        let found = Found { tag: u32_at(head, 8).unwrap(), sum, payload_len: len - TAG_BYTES };
        Step::Record { frame: found, len: whole }
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

fn bad(what: &'static str, found: u64, against: &'static str, expected: u64) -> Bad {
    Bad { what, found, against, expected, framed_len: None }
}

fn len_of(payload_len: usize) -> u64 {
    payload_len as u64 + TAG_BYTES
}

impl Framing for Toy {
    type Frame = Found;
    type Tag = u32;
    type Sum = u32;

    const RECORD_BYTES_MIN: u64 = Toy::FRAMING_BYTES as u64;
    const HEAD_BYTES: usize = 8;
    const TRAILER_BYTES: usize = 8;
    const TRAILING_ZEROS_MAX: u64 = 7;

    fn parse(&self, bytes: &[u8]) -> Step<Found> {
        let Some(len) = u64_at(bytes, 0) else {
            return Step::NeedMore(HEAD_BYTES as u64);
        };
        if len < TAG_BYTES {
            return match (len, u32_at(bytes, 8)) {
                (0, None) => Step::NeedMore(HEAD_BYTES as u64),
                (0, Some(0)) => Step::Blank,
                _ => Step::Bad(bad("length", len, "minimum", TAG_BYTES)),
            };
        }
        if len > self.limit {
            return Step::Bad(bad("length", len, "limit", self.limit));
        }
        let whole = len + AROUND_BYTES;
        let Some(record) = bytes.get(..whole as usize) else {
            return Step::NeedMore(whole);
        };
        let (body, tail) = record.split_at(record.len() - TAIL_BYTES);
        self.close(len, body, tail, || crc32(body))
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    fn fits(&self, head: &[u8], trailer: &[u8]) -> std::result::Result<(), Bad> {
        match (u64_at(head, 0), u64_at(trailer, 0)) {
            (Some(len), Some(trailer)) if len != trailer => {
                Err(bad("length trailer", trailer, "length", len))
            }
            _ => Ok(()),
        }
    }

    fn claimed_len(&self, head: &[u8]) -> Option<u64> {
        let len = u64_at(head, 0).filter(|len| (TAG_BYTES..=self.limit).contains(len))?;
        len.checked_add(AROUND_BYTES)
    }

    fn trailed_len(&self, trailer: &[u8]) -> Option<u64> {
        self.claimed_len(trailer)
    }

    fn sum_at(&self, record_len: u64) -> Option<u64> {
        Some(record_len - TAIL_BYTES as u64)
    }

    fn around(&self) -> Option<(usize, usize)> {
        Some((HEAD_BYTES, TAIL_BYTES))
    }

    fn sum_of_head(&self, head: &[u8]) -> Option<u32> {
        self.check.then(|| crc32(head))
    }

    fn parse_around(&self, head: &[u8], tail: &[u8], sum: u32) -> Step<Found> {
        self.close(u64_at(head, 0).unwrap(), head, tail, || sum)
    }

    fn record_bytes_max(&self) -> u64 {
        self.limit + AROUND_BYTES
    }

    fn check_len(&self, payload_len: usize) -> Result<()> {
        match len_of(payload_len) > self.limit {
            true => Err(Error::new(ErrorKind::TooLarge, "too long")),
            false => Ok(()),
        }
    }

    fn encode(&self, out: &mut Vec<u8>, tag: u32, payload: &[u8]) -> u32 {
        let sum = self.sum_more(self.sum_begin(tag, payload.len()), payload);
        let (head, tail) = self.enclose(tag, payload.len(), sum);
        out.extend(head);
        out.extend_from_slice(payload);
        out.extend(tail);
        sum
    }

    fn sum_begin(&self, tag: u32, payload_len: usize) -> u32 {
        crc32(&self.enclose(tag, payload_len, 0).0)
    }

    fn sum_more(&self, sum: u32, part: &[u8]) -> u32 {
        crc32_more(sum, part)
    }

    fn short_sum(sum: u32) -> u32 {
        sum
    }

    fn enclose(&self, tag: u32, payload_len: usize, sum: u32) -> (Vec<u8>, Vec<u8>) {
        let len = len_of(payload_len).to_le_bytes();
        ([&len[..], &tag.to_le_bytes()].concat(), [&sum.to_le_bytes()[..], &len].concat())
    }
}
