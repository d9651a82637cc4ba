//! The bytes of the `packed` layout: constants, encode, parse. Pure, no I/O. All little-endian.
//!
//! ```text
//! book.log   | mag 4 | ver 4 | fir 8 |  deed  |  deed  | ...
//! deed       | len 8 | mug 4 | jam len-4 | crc 4 | let 8 |     whole size len + 20
//! crc        CRC-32 of len, mug and jam; let repeats len
//! ```
//!
//! Source: the UIP "Book Event Log Persistence", "Header Format" and "Deed Format".

use crate::checksum::{crc32, crc32_more};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::log::framing;
use crate::scan::{Bad, Step};
use crate::slice::{part, u32_at, u64_at};

/// Name of the format in errors.
pub const FORMAT: &str = "book";
/// File with the header and the deeds.
pub const LOG_NAME: &str = "book.log";
/// File with the metadata.
pub const META_NAME: &str = "meta.bin";

/// "BOOK" as an integer; on disk `4B 4F 4F 42`.
pub const MAGIC: u32 = 0x424F_4F4B;
/// The only version.
pub const VERSION: u32 = 1;

/// Offset of `fir_d` in the header.
pub const FIRST_AT: u64 = 8;
/// Size of the header; the first deed begins here.
pub const HEADER_BYTES: u64 = 16;

/// `len_d` counts the mug.
pub const MUG_BYTES: u64 = 4;
/// `len_d` and `mug_l`.
pub const HEAD_BYTES: u64 = 12;
/// `crc_w` and `let_d`.
pub const TAIL_BYTES: u64 = 12;
/// A deed's whole size less its `len_d`.
pub const FRAMING_BYTES: u64 = HEAD_BYTES + TAIL_BYTES - MUG_BYTES;
/// `let_d` is not 0, so of the zeros after the last other byte at most 7 belong to a deed.
const TRAILING_ZEROS_MAX: u64 = TAIL_BYTES - 4 - 1;

/// The default limit of `len_d`.
pub const DEED_BYTES_MAX: u64 = 1 << 32;

const _: () = assert!(FRAMING_BYTES == 20 && HEADER_BYTES == FIRST_AT + 8);

/// The three incompatible layouts that share one magic and one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The specification's text: read and written.
    Packed,
    /// Two header slots, deeds from 8192; recognised, not supported yet.
    Slots,
    /// The C struct padding of January 2026; recognised, not supported yet.
    Padded,
}

impl Layout {
    /// `packed`, `slots` or `padded`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Slots => "slots",
            Self::Padded => "padded",
        }
    }
}

/// The header of a log whose first event is `first` (0 until the first save).
pub fn encode_file_header(first: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    let (magic, rest) = header.split_at_mut(4);
    let (version, fir) = rest.split_at_mut(4);
    magic.copy_from_slice(&MAGIC.to_le_bytes());
    version.copy_from_slice(&VERSION.to_le_bytes());
    fir.copy_from_slice(&first.to_le_bytes());
    header
}

/// Read a header: the first event's number, 0 until the first save.
pub fn parse_file_header(bytes: &[u8]) -> Result<u64> {
    let bad = |what: String| Error::new(ErrorKind::NotALog, what).of(FORMAT);
    let (Some(magic), Some(version), Some(first)) =
        (u32_at(bytes, 0), u32_at(bytes, 4), u64_at(bytes, 8))
    else {
        let found = bytes.len();
        return Err(bad(format!("{found} bytes, a book's header has {HEADER_BYTES}")));
    };
    if magic != MAGIC {
        return Err(bad(format!("magic {magic:#010x}, a book has {MAGIC:#010x}")).offset_at(0));
    }
    if version != VERSION {
        return Err(bad(format!("version {version}, known is {VERSION}")).offset_at(4));
    }
    Ok(first)
}

/// What is known of an intact deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The mug as stored.
    pub mug: u32,
    /// The checksum as stored.
    pub crc: u32,
    /// Size of the jam in bytes.
    pub jam_len: u64,
}

impl framing::Frame for Frame {
    fn sum(self) -> u32 {
        self.crc
    }

    fn len(self) -> u64 {
        self.jam_len + MUG_BYTES + FRAMING_BYTES
    }

    fn payload_len(self) -> u64 {
        self.jam_len
    }

    fn payload(self, record: &[u8]) -> &[u8] {
        let start = HEAD_BYTES as usize;
        part(record, start..start + self.jam_len as usize)
    }

    fn tag(self) -> u32 {
        self.mug
    }
}

/// The codec of the `packed` layout.
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    /// Limit of `len_d`.
    pub deed_bytes_max: u64,
    /// Whether checksums are compared, or only lengths.
    pub check: bool,
}

impl Packed {
    /// The codec that compares checksums.
    pub fn new(deed_bytes_max: u64) -> Self {
        Self { deed_bytes_max, check: true }
    }
}

fn bad(what: &'static str, found: u64, against: &'static str, expected: u64) -> Bad {
    Bad { what, found, against, expected, framed_len: None }
}

/// `len_d` and `mug_l` of a deed.
fn encode_head(mug: u32, jam_len: usize) -> [u8; HEAD_BYTES as usize] {
    let mut head = [0; HEAD_BYTES as usize];
    let (len, rest) = head.split_at_mut(8);
    len.copy_from_slice(&(jam_len as u64 + MUG_BYTES).to_le_bytes());
    rest.copy_from_slice(&mug.to_le_bytes());
    head
}

impl framing::Framing for Packed {
    type Frame = Frame;
    type Tag = u32;
    type Sum = u32;

    const RECORD_BYTES_MIN: u64 = FRAMING_BYTES + MUG_BYTES;
    const HEAD_BYTES: usize = 8;
    const TRAILER_BYTES: usize = 8;
    const TRAILING_ZEROS_MAX: u64 = TRAILING_ZEROS_MAX;

    #[inline]
    fn parse(&self, bytes: &[u8]) -> Step<Frame> {
        let Some(len) = u64_at(bytes, 0) else {
            return Step::NeedMore(HEAD_BYTES);
        };
        if len < MUG_BYTES {
            return match (len, u32_at(bytes, 8)) {
                (0, None) => Step::NeedMore(HEAD_BYTES),
                (0, Some(0)) => Step::Blank,
                _ => Step::Bad(bad("length", len, "minimum", MUG_BYTES)),
            };
        }
        if len > self.deed_bytes_max {
            return Step::Bad(bad("length", len, "limit", self.deed_bytes_max));
        }
        let whole = len + FRAMING_BYTES;
        let Some(deed) = usize::try_from(whole).ok().and_then(|whole| bytes.get(..whole)) else {
            return Step::NeedMore(whole);
        };
        let (body, tail) = deed.split_at(deed.len() - TAIL_BYTES as usize);
        let (Some(stored), Some(trailer), Some(mug)) =
            (u32_at(tail, 0), u64_at(tail, 4), u32_at(body, 8))
        else {
            return Step::NeedMore(whole);
        };
        if trailer != len {
            return Step::Bad(bad("length trailer", trailer, "length", len));
        }
        if self.check {
            let crc = crc32(body);
            if crc != stored {
                let differ = bad("checksum", crc.into(), "stored", stored.into());
                return Step::Bad(Bad { framed_len: Some(whole), ..differ });
            }
        }
        Step::Record { frame: Frame { mug, crc: stored, jam_len: len - MUG_BYTES }, len: whole }
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
        len.checked_add(FRAMING_BYTES)
    }

    fn trailed_len(&self, trailer: &[u8]) -> Option<u64> {
        self.claimed_len(trailer)
    }

    fn sum_at(record_len: u64) -> u64 {
        record_len - TAIL_BYTES
    }

    fn record_bytes_max(&self) -> u64 {
        self.deed_bytes_max.saturating_add(FRAMING_BYTES)
    }

    fn check_len(&self, payload_len: usize) -> Result<()> {
        let len = payload_len as u64 + MUG_BYTES;
        if len <= self.deed_bytes_max && len <= u64::MAX - FRAMING_BYTES {
            return Ok(());
        }
        let message = format!("deed of {len} bytes with its mug, limit {}", self.deed_bytes_max);
        Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>, mug: u32, jam: &[u8]) -> u32 {
        let start = out.len();
        out.reserve(jam.len() + (HEAD_BYTES + TAIL_BYTES) as usize);
        out.extend_from_slice(&encode_head(mug, jam.len()));
        out.extend_from_slice(jam);
        // One pass over head and jam where they lie.
        let crc = crc32(part(out, start..));
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&(jam.len() as u64 + MUG_BYTES).to_le_bytes());
        crc
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
        let len = (jam_len as u64 + MUG_BYTES).to_le_bytes();
        (encode_head(mug, jam_len).to_vec(), [&sum.to_le_bytes()[..], &len].concat())
    }
}

/// Whether the first deed, at byte 16, fits the `padded` layout: a head of 16 bytes with 4 of
/// garbage, a tail of 16 with 4 of garbage, the checksum as in `packed`.
pub fn looks_padded(bytes: &[u8]) -> bool {
    let padded = || {
        let len = u64_at(bytes, 0)?;
        let jam_len = usize::try_from(len.checked_sub(MUG_BYTES)?).ok()?;
        let jam = bytes.get(16..16usize.checked_add(jam_len)?)?;
        let tail = bytes.get(16 + jam_len..)?;
        let crc = crc32_more(crc32(bytes.get(..12)?), jam);
        Some(u32_at(tail, 0)? == crc && u64_at(tail, 8)? == len)
    };
    padded().unwrap_or(false)
}

/// Whether the first or second header slot of the `slots` layout is intact.
pub fn looks_slots(slot: &[u8]) -> bool {
    let intact = || {
        let magic = u32_at(slot, 0)? == MAGIC && u32_at(slot, 4)? == VERSION;
        Some(magic && u32_at(slot, 44)? == crc32(slot.get(..44)?))
    };
    intact().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::framing::{Frame as _, Framing as _};

    #[test]
    fn a_deed_has_the_golden_bytes() {
        let mut deed = Vec::new();
        Packed::new(DEED_BYTES_MAX).encode(&mut deed, 0x0102_0304, &[0x02]);
        let golden = "0500000000000000040302010 2bc78ff010500000000000000".replace(' ', "");
        let shown: String = deed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, golden);
        let Step::Record { frame, len } = Packed::new(DEED_BYTES_MAX).parse(&deed) else {
            panic!("not read back");
        };
        assert_eq!((frame.mug, frame.payload(&deed), len), (0x0102_0304, &[2u8][..], 25));
    }

    #[test]
    fn head_and_tail_apart_are_the_same_bytes() {
        let (codec, mut whole, jam) = (Packed::new(DEED_BYTES_MAX), Vec::new(), vec![7; 300]);
        let crc = codec.encode(&mut whole, 9, &jam);
        let apart = codec.sum_more(codec.sum_begin(9, jam.len()), &jam);
        let (head, tail) = codec.enclose(9, jam.len(), apart);
        assert_eq!(whole, [&head[..], &jam, &tail].concat());
        assert_eq!(crc, apart);
    }

    #[test]
    fn lengths_are_checked_before_anything_is_asked_for() {
        let codec = Packed { deed_bytes_max: 100, check: true };
        let step = |len: u64| codec.parse(&[&len.to_le_bytes()[..], &[1; 40]].concat());
        for len in [0u64, 1, 3, 101, u64::MAX] {
            assert!(matches!(step(len), Step::Bad(_)), "{len}");
        }
        assert_eq!(step(100), Step::NeedMore(120));
        assert_eq!(codec.parse(&[0; 12]), Step::Blank);
    }

    #[test]
    fn a_header_is_refused_with_both_values() {
        let mut header = encode_file_header(1);
        header[4] = 2;
        let error = parse_file_header(&header).unwrap_err();
        assert_eq!(error.to_string(), "version 2, known is 1 (byte 4)");
        assert_eq!(parse_file_header(&[0; 15]).unwrap_err().kind(), ErrorKind::NotALog);
    }
}
