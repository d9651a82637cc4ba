//! The engine's framing of the event store's log: numbered entries in a row. Pure, no I/O.

use super::entry::{
    CRC_BYTES, Entry, FORMAT, FRAMING_BYTES, HEAD_BYTES, LENGTH_AT, LSN_AT, LSN_MAX, Lsn, Op,
    TIMESTAMP_AT, Tag, bad,
};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::checksum::Sum;
use crate::ground::slice::{part, there, u32_be_at, u64_be_at};
use crate::scan::framing::{self, Framing, Shape, SumAt};
use crate::scan::{Bad, Step};

/// The known facts about an intact entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The entry's kind, number and time.
    pub tag: Tag,
    data_len: u32,
    /// The first half of the stored checksum.
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

    const SUM: Sum = Sum::Crc64;
    const RECORD_BYTES_MIN: u64 = FRAMING_BYTES;
    const HEAD_BYTES: usize = HEAD_BYTES;
    /// An entry ends with a checksum.
    const TRAILING_ZEROS_MAX: u64 = CRC_BYTES as u64;
    const LINKED: bool = true;
    /// The parser needs a whole entry.
    const IN_PARTS: bool = false;

    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape {
            head: HEAD_BYTES,
            tail: CRC_BYTES,
            covered: seeded!(0, "sum-without-kind" => LSN_AT)..HEAD_BYTES,
            sum: SumAt::Tail,
            check: self.check,
            payload_max: self.data_bytes_max,
            staged_from: 0,
        }
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    #[inline]
    fn claim(&self, bytes: &[u8]) -> Result<u64, Step<Frame>> {
        let head = bytes.get(..HEAD_BYTES);
        match (bytes.first().map(|&number| (number, Op::of(number))), head) {
            (Some((0, _)), Some(head)) if head.iter().all(|&byte| byte == 0) => Err(Step::Blank),
            (Some((0, _)), Some(_)) => Err(Step::Bad(bad("op type", 0, "at least", 1))),
            (Some((number @ 1.., None)), _) => {
                Err(Step::Bad(bad("op type", number.into(), "at most", Op::Checkpoint as u64)))
            }
            (_, None) => Err(Step::NeedMore(HEAD_BYTES as u64)),
            (_, Some(head)) => match u64::from(there(u32_be_at(head, LENGTH_AT))) {
                length if length > self.data_bytes_max => {
                    Err(Step::Bad(bad("length", length, "limit", self.data_bytes_max)))
                }
                length => Ok(FRAMING_BYTES + length),
            },
        }
    }

    #[inline]
    fn close(&self, body: &[u8], len: u64, sum: u32) -> Result<Frame, Bad> {
        let op = there(body.first().and_then(|&number| Op::of(number)));
        Entry::parse(op, part(body, HEAD_BYTES..))?;
        let lsn = Lsn(there(u64_be_at(body, LSN_AT)));
        if lsn > LSN_MAX {
            return Err(bad("lsn", lsn.0, "limit", LSN_MAX.0));
        }
        let tag = Tag { op, lsn, timestamp: there(u64_be_at(body, TIMESTAMP_AT)) };
        Ok(Frame { tag, data_len: (len - FRAMING_BYTES) as u32, sum })
    }

    fn push_head(&self, out: &mut Vec<u8>, tag: Tag, data_len: usize) {
        out.push(tag.op as u8);
        out.extend_from_slice(&tag.lsn.0.to_be_bytes());
        out.extend_from_slice(&tag.timestamp.to_be_bytes());
        out.extend_from_slice(&(data_len as u32).to_be_bytes());
    }

    fn follows(&self, before: Frame, next: Frame) -> Result<(), Bad> {
        let expected = before.tag.lsn.0.wrapping_add(1);
        match next.tag.lsn.0 {
            lsn if lsn == expected => Ok(()),
            lsn => Err(bad("lsn", lsn, "expected", expected)),
        }
    }

    #[inline]
    fn check_len(&self, data_len: usize) -> Result<()> {
        if data_len as u64 <= self.data_bytes_max {
            return Ok(());
        }
        let message = format!("entry with {data_len} bytes of data, limit {}", self.data_bytes_max);
        Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::slice::u32_at;
    use crate::scan::framing::FramingExt as _;

    #[test]
    fn parts_have_the_checksum_of_the_whole() {
        let (codec, data) = (Codec::new(100), [7; 50]);
        let tag = Tag { op: Op::Insert, lsn: Lsn(1 << 40), timestamp: 9 };
        let mut whole = Vec::new();
        let short = codec.encode(&mut whole, tag, &data);
        let (mut head, mut tail) = codec.around(tag, 50);
        let sum = codec.sum_of_head(&head);
        let sum = data.chunks(8).fold(sum, |sum, part| Codec::SUM.more(sum, part));
        codec.store_sum(&mut head, &mut tail, sum);
        assert_eq!([&head[..], &data, &tail].concat(), whole);
        assert_eq!(Codec::SUM.short(sum), short);
        let at = codec.sum_at(whole.len() as u64).unwrap_or(0) as usize;
        assert_eq!(u32_at(&whole, at), Some(short));
    }
}
