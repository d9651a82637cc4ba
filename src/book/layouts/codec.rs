//! The bytes of a deed, in each layout: encode, parse. Pure, no I/O. All little-endian.
//!
//! ```text
//! packed   | len 8 | mug 4 | jam len-4 | crc 4 | let 8 |                   whole size len + 20
//! slots    | len 8 | mug 4 | jam len-4 | let 8 |                           whole size len + 16
//! padded   | len 8 | mug 4 | any 4 | jam len-4 | crc 4 | any 4 | let 8 |   whole size len + 28
//! crc      CRC-32 of len, mug and jam; let repeats len
//! ```
//!
//! Sources: the UIP "Book Event Log Persistence", "Deed Format" (`packed`); the reference
//! implementation's branch (`slots`); its state of January 2026 (`padded`).

use crate::book::layouts::{HEAD_BYTES, Layout, MUG_BYTES, TRAILER_BYTES};
use crate::book::names::FORMAT;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::checksum::Sum;
use crate::ground::slice::{part, there, u32_at, u64_at};
use crate::scan::framing::{self, Framing, Shape, SumAt};
use crate::scan::{Bad, Step};

/// `let_d` is not 0, so of the zeros after the last other byte at most 7 belong to a deed.
const TRAILING_ZEROS_MAX: u64 = TRAILER_BYTES as u64 - 1;

/// The default limit of `len_d`.
pub const DEED_BYTES_MAX: u64 = 1 << 32;

/// Facts about an intact deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The mug as stored.
    pub mug: u32,
    /// The checksum as stored; computed where the layout stores none.
    pub crc: u32,
    /// Size of the jam in bytes.
    pub jam_len: u64,
    /// The layout it is in.
    pub layout: Layout,
}

impl framing::Frame for Frame {
    #[inline(always)]
    fn sum(self) -> u32 {
        self.crc
    }

    #[inline(always)]
    fn len(self) -> u64 {
        self.jam_len + MUG_BYTES + self.layout.framing_bytes()
    }

    #[inline(always)]
    fn payload_len(self) -> u64 {
        self.jam_len
    }

    #[inline(always)]
    fn payload(self, record: &[u8]) -> &[u8] {
        let start = self.layout.head_bytes() as usize;
        part(record, start..start + self.jam_len as usize)
    }

    #[inline(always)]
    fn tag(self) -> u32 {
        self.mug
    }
}

/// The codec of deeds.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// The layout of the bytes around a jam.
    pub layout: Layout,
    /// Limit of `len_d`.
    pub deed_bytes_max: u64,
    /// Whether checksums are compared, or only lengths.
    pub check: bool,
}

impl Codec {
    /// The codec that compares checksums.
    pub fn new(layout: Layout, deed_bytes_max: u64) -> Self {
        Self { layout, deed_bytes_max, check: true }
    }

    /// The codec with `layout`, its own layout: a constant layout makes the sizes constants, too.
    #[inline(always)]
    fn named(&self, layout: Layout) -> Self {
        Self { layout, ..*self }
    }
}

fn bad(found: u64, against: &'static str, expected: u64) -> Step<Frame> {
    Step::Bad(Bad { what: "length", found, against, expected, framed_len: None })
}

impl Framing for Codec {
    type Frame = Frame;
    type Tag = u32;

    const SUM: Sum = Sum::Crc32;
    /// The minimum of `slots`, which has the shortest deeds.
    const RECORD_BYTES_MIN: u64 = (HEAD_BYTES + TRAILER_BYTES) as u64;
    const HEAD_BYTES: usize = 8;
    const TRAILER_BYTES: usize = TRAILER_BYTES;
    const TRAILING_ZEROS_MAX: u64 = TRAILING_ZEROS_MAX;

    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape {
            head: self.layout.head_bytes() as usize,
            tail: self.layout.tail_bytes() as usize,
            covered: 0..HEAD_BYTES,
            sum: if self.layout.has_checksum() { SumAt::Tail } else { SumAt::Nowhere },
            check: self.check,
            payload_max: self.deed_bytes_max.saturating_sub(MUG_BYTES),
            staged_from: match self.layout {
                Layout::Packed => self.layout.header_bytes(),
                Layout::Slots | Layout::Padded => 0,
            },
        }
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    #[inline(always)]
    fn claim(&self, bytes: &[u8]) -> Result<u64, Step<Frame>> {
        let Some(len) = u64_at(bytes, 0) else {
            return Err(Step::NeedMore(HEAD_BYTES as u64));
        };
        if len < MUG_BYTES {
            return Err(match (len, u32_at(bytes, 8)) {
                (0, None) => Step::NeedMore(HEAD_BYTES as u64),
                (0, Some(0)) => Step::Blank,
                _ => bad(len, "minimum", MUG_BYTES),
            });
        }
        let whole = len.checked_add(self.layout.framing_bytes());
        let within = whole.filter(|_| len <= self.deed_bytes_max);
        within.ok_or(bad(len, "limit", self.deed_bytes_max))
    }

    #[inline(always)]
    fn close(&self, body: &[u8], len: u64, crc: u32) -> Result<Frame, Bad> {
        let jam_len = len - MUG_BYTES - self.layout.framing_bytes();
        Ok(Frame { mug: there(u32_at(body, 8)), crc, jam_len, layout: self.layout })
    }

    #[inline(always)]
    fn push_head(&self, out: &mut Vec<u8>, mug: u32, jam_len: usize) {
        out.extend_from_slice(&(jam_len as u64 + MUG_BYTES).to_le_bytes());
        out.extend_from_slice(&mug.to_le_bytes());
        if self.layout == Layout::Padded {
            out.extend_from_slice(&[0; 4]);
        }
    }

    fn check_len(&self, payload_len: usize) -> Result<()> {
        let len = (payload_len as u64).saturating_add(MUG_BYTES);
        if len <= self.deed_bytes_max && len <= u64::MAX - self.layout.framing_bytes() {
            return Ok(());
        }
        let message = format!("deed of {len} bytes with its mug, limit {}", self.deed_bytes_max);
        Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
    }

    #[inline(always)]
    fn parse(&self, bytes: &[u8]) -> Step<Frame> {
        match self.layout {
            Layout::Packed => framing::parse(&self.named(Layout::Packed), bytes),
            Layout::Slots | Layout::Padded => framing::parse(self, bytes),
        }
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>, mug: u32, jam: &[u8]) -> u32 {
        match self.layout {
            Layout::Packed => framing::encode(&self.named(Layout::Packed), out, mug, jam),
            Layout::Slots => framing::encode(&self.named(Layout::Slots), out, mug, jam),
            Layout::Padded => framing::encode(self, out, mug, jam),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::framing::{Frame as _, FramingExt as _};

    const ALL: [Layout; 3] = [Layout::Packed, Layout::Slots, Layout::Padded];

    fn codec(layout: Layout) -> Codec {
        Codec::new(layout, DEED_BYTES_MAX)
    }

    #[test]
    fn a_deed_has_the_golden_bytes() {
        let golden = [
            "0500000000000000 04030201 02 bc78ff01 0500000000000000",
            "0500000000000000 04030201 02 0500000000000000",
            "0500000000000000 04030201 00000000 02 bc78ff01 00000000 0500000000000000",
        ];
        for (layout, golden) in ALL.into_iter().zip(golden) {
            let mut deed = Vec::new();
            codec(layout).encode(&mut deed, 0x0102_0304, &[0x02]);
            let shown: String = deed.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(shown, golden.replace(' ', ""));
            let Step::Record { frame, len } = codec(layout).parse(&deed) else {
                panic!("not read back");
            };
            assert_eq!((frame.mug, frame.payload(&deed)), (0x0102_0304, &[2u8][..]));
            assert_eq!((len, frame.len()), (deed.len() as u64, deed.len() as u64));
        }
    }

    #[test]
    fn head_and_tail_apart_are_the_same_bytes() {
        for layout in ALL {
            let (codec, mut whole, jam) = (codec(layout), Vec::new(), vec![7; 300]);
            let crc = codec.encode(&mut whole, 9, &jam);
            let (mut head, mut tail) = codec.around(9, jam.len());
            let apart = Codec::SUM.more(codec.sum_of_head(&head), &jam);
            codec.store_sum(&mut head, &mut tail, apart);
            assert_eq!(whole, [&head[..], &jam, &tail].concat());
            assert_eq!(u64::from(crc), apart);
        }
    }

    /// The reference writes a C structure, whose padding is whatever the memory held.
    #[test]
    fn padding_is_not_a_part_of_a_deed() {
        let (codec, mut deed) = (codec(Layout::Padded), Vec::new());
        codec.encode(&mut deed, 9, b"jam");
        let tail = deed.len() - 12;
        deed[12..16].fill(0xee);
        deed[tail..tail + 4].fill(0xee);
        assert!(matches!(codec.parse(&deed), Step::Record { .. }));
        deed[16] ^= 1;
        assert!(matches!(codec.parse(&deed), Step::Bad(Bad { what: "checksum", .. })));
    }

    #[test]
    fn lengths_are_checked_before_anything_is_asked_for() {
        let codec = Codec::new(Layout::Packed, 100);
        let step = |len: u64| codec.parse(&[&len.to_le_bytes()[..], &[1; 40]].concat());
        for len in [0u64, 1, 3, 101, u64::MAX] {
            assert!(matches!(step(len), Step::Bad(_)), "{len}");
        }
        assert_eq!(step(100), Step::NeedMore(120));
        assert_eq!(codec.parse(&[0; 12]), Step::Blank);
    }
}
