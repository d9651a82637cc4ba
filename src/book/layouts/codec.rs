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
use crate::checksum::{crc32, crc32_more};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::log::framing;
use crate::scan::{Bad, Step};
use crate::slice::{part, u32_at, u64_at};

/// `let_d` is not 0, so of the zeros after the last other byte at most 7 belong to a deed.
const TRAILING_ZEROS_MAX: u64 = TRAILER_BYTES as u64 - 1;

/// The default limit of `len_d`.
pub const DEED_BYTES_MAX: u64 = 1 << 32;

/// What is known of an intact deed.
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
    /// Which bytes stand around a jam.
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

    /// The checksum of a deed.
    #[inline(always)]
    fn sum(&self, deed: &[u8], jam_len: u64) -> u32 {
        let (head, jam_end) = (self.layout.head_bytes(), self.layout.head_bytes() + jam_len);
        match self.layout {
            // One pass over head and jam where they lie.
            Layout::Packed | Layout::Slots => crc32(part(deed, ..jam_end as usize)),
            Layout::Padded => crc32_more(
                crc32(part(deed, ..HEAD_BYTES)),
                part(deed, head as usize..jam_end as usize),
            ),
        }
    }

    /// What stands at the beginning of some bytes.
    #[inline(always)]
    fn parse_deed(&self, bytes: &[u8]) -> Step<Frame> {
        let Some(len) = u64_at(bytes, 0) else {
            return Step::NeedMore(HEAD_BYTES as u64);
        };
        if len < MUG_BYTES {
            return match (len, u32_at(bytes, 8)) {
                (0, None) => Step::NeedMore(HEAD_BYTES as u64),
                (0, Some(0)) => Step::Blank,
                _ => Step::Bad(bad("length", len, "minimum", MUG_BYTES)),
            };
        }
        if len > self.deed_bytes_max {
            return Step::Bad(bad("length", len, "limit", self.deed_bytes_max));
        }
        let whole = len + self.layout.framing_bytes();
        let Some(deed) = usize::try_from(whole).ok().and_then(|whole| bytes.get(..whole)) else {
            return Step::NeedMore(whole);
        };
        let (body, tail) = deed.split_at(deed.len() - self.layout.tail_bytes() as usize);
        self.conclude(len, body, tail, || self.sum(deed, len - MUG_BYTES))
    }

    /// Append a whole deed to `out`; returns its checksum.
    #[inline(always)]
    fn encode_deed(&self, out: &mut Vec<u8>, mug: u32, jam: &[u8]) -> u32 {
        let start = out.len();
        let layout = self.layout;
        out.reserve(jam.len() + (layout.head_bytes() + layout.tail_bytes()) as usize);
        out.extend_from_slice(&encode_head(mug, jam.len()));
        out.resize(start + layout.head_bytes() as usize, 0);
        out.extend_from_slice(jam);
        let crc = self.sum(part(out, start..), jam.len() as u64);
        self.push_tail(out, jam.len(), crc);
        crc
    }

    /// What a deed is by its head, its tail and, where that is asked for, its checksum.
    #[inline(always)]
    fn conclude(
        &self,
        len: u64,
        head: &[u8],
        tail: &[u8],
        sum: impl FnOnce() -> u32,
    ) -> Step<Frame> {
        let whole = len + self.layout.framing_bytes();
        let trailer = tail.len().checked_sub(TRAILER_BYTES).and_then(|at| u64_at(tail, at));
        let (Some(trailer), Some(mug)) = (trailer, u32_at(head, 8)) else {
            return Step::NeedMore(whole);
        };
        if trailer != len {
            return Step::Bad(bad("length trailer", trailer, "length", len));
        }
        let stored = u32_at(tail, 0).filter(|_| self.layout.has_checksum());
        let crc = match stored {
            Some(stored) if !self.check => stored,
            _ => sum(),
        };
        if let Some(stored) = stored.filter(|&stored| stored != crc) {
            let differ = bad("checksum", crc.into(), "stored", stored.into());
            return Step::Bad(Bad { framed_len: Some(whole), ..differ });
        }
        let frame = Frame { mug, crc, jam_len: len - MUG_BYTES, layout: self.layout };
        Step::Record { frame, len: whole }
    }

    #[inline(always)]
    fn push_tail(&self, out: &mut Vec<u8>, jam_len: usize, crc: u32) {
        if self.layout.has_checksum() {
            out.extend_from_slice(&crc.to_le_bytes());
        }
        if self.layout == Layout::Padded {
            out.extend_from_slice(&[0; 4]);
        }
        out.extend_from_slice(&(jam_len as u64 + MUG_BYTES).to_le_bytes());
    }
}

fn bad(what: &'static str, found: u64, against: &'static str, expected: u64) -> Bad {
    Bad { what, found, against, expected, framed_len: None }
}

/// `len_d` and `mug_l` of a deed.
fn encode_head(mug: u32, jam_len: usize) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let (len, rest) = head.split_at_mut(8);
    len.copy_from_slice(&(jam_len as u64 + MUG_BYTES).to_le_bytes());
    rest.copy_from_slice(&mug.to_le_bytes());
    head
}

impl framing::Framing for Codec {
    type Frame = Frame;
    type Tag = u32;
    type Sum = u32;

    /// Of `slots`, which has the shortest.
    const RECORD_BYTES_MIN: u64 = (HEAD_BYTES + TRAILER_BYTES) as u64;
    const HEAD_BYTES: usize = 8;
    const TRAILER_BYTES: usize = TRAILER_BYTES;
    const TRAILING_ZEROS_MAX: u64 = TRAILING_ZEROS_MAX;

    fn staged_from(&self) -> u64 {
        match self.layout {
            Layout::Packed => self.layout.header_bytes(),
            Layout::Slots | Layout::Padded => 0,
        }
    }

    #[inline(always)]
    fn parse(&self, bytes: &[u8]) -> Step<Frame> {
        match self.layout {
            // The sizes of a layout that is named are constants.
            Layout::Packed => Self { layout: Layout::Packed, ..*self }.parse_deed(bytes),
            Layout::Slots | Layout::Padded => self.parse_deed(bytes),
        }
    }

    fn around(&self) -> Option<(usize, usize)> {
        Some((self.layout.head_bytes() as usize, self.layout.tail_bytes() as usize))
    }

    fn sum_of_head(&self, head: &[u8]) -> Option<u32> {
        let computed = self.check || !self.layout.has_checksum();
        computed.then(|| crc32(part(head, ..HEAD_BYTES)))
    }

    fn parse_around(&self, head: &[u8], tail: &[u8], sum: u32) -> Step<Frame> {
        match u64_at(head, 0) {
            Some(len) => self.conclude(len, head, tail, || sum),
            None => Step::NeedMore(HEAD_BYTES as u64),
        }
    }

    fn by_lengths(self) -> Self {
        Self { check: false, ..self }
    }

    fn fits(&self, head: &[u8], trailer: &[u8]) -> Result<(), Bad> {
        match (u64_at(head, 0), u64_at(trailer, 0)) {
            (Some(len), Some(trailer)) if len != trailer => {
                Err(bad("length trailer", trailer, "length", len))
            }
            _ => Ok(()),
        }
    }

    fn claimed_len(&self, head: &[u8]) -> Option<u64> {
        let len = u64_at(head, 0).filter(|len| (MUG_BYTES..=self.deed_bytes_max).contains(len))?;
        len.checked_add(self.layout.framing_bytes())
    }

    fn trailed_len(&self, trailer: &[u8]) -> Option<u64> {
        self.claimed_len(trailer)
    }

    fn sum_at(&self, record_len: u64) -> Option<u64> {
        self.layout.has_checksum().then(|| record_len - self.layout.tail_bytes())
    }

    fn record_bytes_max(&self) -> u64 {
        self.deed_bytes_max.saturating_add(self.layout.framing_bytes())
    }

    fn check_len(&self, payload_len: usize) -> Result<()> {
        let len = (payload_len as u64).saturating_add(MUG_BYTES);
        if len <= self.deed_bytes_max && len <= u64::MAX - self.layout.framing_bytes() {
            return Ok(());
        }
        let message = format!("deed of {len} bytes with its mug, limit {}", self.deed_bytes_max);
        Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>, mug: u32, jam: &[u8]) -> u32 {
        match self.layout {
            Layout::Packed => Self { layout: Layout::Packed, ..*self }.encode_deed(out, mug, jam),
            Layout::Slots | Layout::Padded => self.encode_deed(out, mug, jam),
        }
    }

    fn sum_begin(&self, mug: u32, jam_len: usize) -> u32 {
        crc32(&encode_head(mug, jam_len))
    }

    fn sum_more(&self, sum: u32, part: &[u8]) -> u32 {
        crc32_more(sum, part)
    }

    fn short_sum(sum: u32) -> u32 {
        sum
    }

    fn enclose(&self, mug: u32, jam_len: usize, sum: u32) -> (Vec<u8>, Vec<u8>) {
        let mut head = encode_head(mug, jam_len).to_vec();
        head.resize(self.layout.head_bytes() as usize, 0);
        let mut tail = Vec::new();
        self.push_tail(&mut tail, jam_len, sum);
        (head, tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::framing::{Frame as _, Framing as _};

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
            let apart = codec.sum_more(codec.sum_begin(9, jam.len()), &jam);
            let (head, tail) = codec.enclose(9, jam.len(), apart);
            assert_eq!(whole, [&head[..], &jam, &tail].concat());
            assert_eq!(crc, apart);
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
