//! The engine's framing of the event store's log: entries one after the other, numbered. Pure, no I/O.

use super::entry::{
    CRC_BYTES, Entry, FORMAT, FRAMING_BYTES, HEAD_BYTES, LENGTH_AT, LSN_AT, LSN_MAX, Lsn, Op,
    TIMESTAMP_AT, Tag, bad,
};
use crate::checksum::{crc64, crc64_more};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::log::framing::{self, Framing};
use crate::scan::{Bad, Step};
use crate::slice::{part, there, u32_at, u32_be_at, u64_be_at};
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
        let data_len = u32_be_at(head, LENGTH_AT).unwrap_or_default();
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
            let (crc, stored) = (crc64(covered), u64_be_at(stored, 0).unwrap_or_default());
            if crc != stored {
                return Step::Bad(bad("checksum", crc, "stored", stored));
            }
        }
        if let Err(bad) = Entry::parse(op, part(covered, HEAD_BYTES..)) {
            return Step::Bad(bad);
        }
        let (lsn, timestamp) = (
            Lsn(u64_be_at(head, LSN_AT).unwrap_or_default()),
            u64_be_at(head, TIMESTAMP_AT).unwrap_or_default(),
        );
        if lsn > LSN_MAX {
            return Step::Bad(bad("lsn", lsn.0, "limit", LSN_MAX.0));
        }
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
        let length = u64::from(there(u32_be_at(head.get(..HEAD_BYTES)?, LENGTH_AT)));
        Op::of(*head.first()?)?;
        (length <= self.data_bytes_max).then_some(FRAMING_BYTES + length)
    }

    fn sum_at(&self, record_len: u64) -> Option<u64> {
        Some(record_len - CRC_BYTES as u64)
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
        let sum = crc64(part(out, seeded!(start, "sum-without-kind" => start + LSN_AT)..));
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
        there(u32_at(&sum.to_be_bytes(), 0))
    }

    fn enclose(&self, tag: Tag, data_len: usize, sum: u64) -> (Vec<u8>, Vec<u8>) {
        (tag.encode(data_len), sum.to_be_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let at = codec.sum_at(whole.len() as u64).unwrap_or(0) as usize;
        assert_eq!(u32_at(&whole, at), Some(short));
    }
}
