//! How records lie one after the other in bytes: pure, no I/O.

use std::fmt::Debug;
use std::ops::Range;

use crate::error::Result;
use crate::ground::checksum::Sum;
use crate::ground::slice::{part, part_mut, u64_at};

/// The result of a format's parser at the start of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<F> {
    /// An intact record of `len` bytes.
    Record {
        /// The parsed record.
        frame: F,
        /// Its whole size in the file, bytes.
        len: u64,
    },
    /// The record needs this many bytes in all before more can be said.
    NeedMore(u64),
    /// Not written: zeros where a record would begin.
    Blank,
    /// Not a record.
    Bad(Bad),
}

/// Why some bytes are not a record: two values that do not agree.
///
/// No text yet, because the search for intact records meets one at almost every byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The name of the value found, for example `checksum`.
    pub what: &'static str,
    /// The value found.
    pub found: u64,
    /// The name of the expected value, for example `stored`.
    pub against: &'static str,
    /// The expected value.
    pub expected: u64,
    /// The size of the record if its framing is intact and only its content is damaged.
    pub framed_len: Option<u64>,
}

impl Bad {
    /// The reason in words, with both values; checksums in hexadecimal.
    pub fn reason(&self) -> String {
        let Self { what, found, against, expected, .. } = self;
        match *what {
            "checksum" => format!("{what} {found:08x}, {against} {expected:08x}"),
            _ => format!("{what} {found}, {against} {expected}"),
        }
    }
}

/// A parsed, intact record: small and free of references.
#[allow(clippy::len_without_is_empty)]
pub trait Frame: Copy + Debug + Send + Sync + 'static {
    /// The checksum as stored.
    fn sum(self) -> u32;
    /// Size in the log, bytes.
    fn len(self) -> u64;
    /// Size of the payload, bytes.
    fn payload_len(self) -> u64;
    /// The payload within the record's bytes.
    fn payload(self, record: &[u8]) -> &[u8];
    /// The number stored with the payload, if the format has one.
    fn tag(self) -> u32 {
        0
    }
}

/// The longest [`Framing::HEAD_BYTES`] of any format.
pub const HEAD_BYTES_MAX: usize = 32;
/// The size of every trailer.
pub const TRAILER_BYTES_MAX: usize = 8;

/// The place of a record's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumAt {
    /// At this byte of the head.
    Head(usize),
    /// At the begin of the tail.
    Tail,
    /// Nowhere: it is computed.
    Nowhere,
}

/// The bytes around the payloads of a log, and the codec's rules for them.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Size of the head, the bytes of a record before its payload.
    pub head: usize,
    /// Size of the tail, the bytes of a record after its payload.
    pub tail: usize,
    /// The bytes of the head under the checksum. The checksum also covers the payload.
    pub covered: Range<usize>,
    /// The place of the checksum.
    pub sum: SumAt,
    /// Whether checksums are compared, or only lengths.
    pub check: bool,
    /// Size of the longest payload.
    pub payload_max: u64,
    /// Bytes of a staged file before its records: room for a log's header, because the file may
    /// become a log.
    pub staged_from: u64,
}

/// A format's record codec. A record is a head, a payload and a tail. The format defines the head.
/// Parsing, encoding and the handling of records in parts follow from the definition.
pub trait Framing: Copy + Debug + Send + Sync + 'static {
    /// A parsed, intact record.
    type Frame: Frame;
    /// The fields of a record next to its payload.
    type Tag: Copy + Default + Debug + Send + Sync + 'static;
    /// The checksum of a record.
    const SUM: Sum;
    /// Size of the shortest record.
    const RECORD_BYTES_MIN: u64;
    /// Bytes at the begin of a record that give its length.
    const HEAD_BYTES: usize;
    /// Size of the trailer at the end of a tail: the first 8 bytes of the record again, which are a
    /// length. 0 if a format has none.
    const TRAILER_BYTES: usize = 0;
    /// Zeros at the end of the data that may belong to the last record.
    const TRAILING_ZEROS_MAX: u64 = 0;
    /// Whether [`Framing::follows`] says anything.
    const LINKED: bool = false;
    /// Whether any payload makes an intact record. Then the engine checks a long record in parts.
    const IN_PARTS: bool = true;

    /// The bytes around a payload.
    fn shape(&self) -> Shape;

    /// The same framing without checksums: it compares only lengths.
    #[must_use]
    fn by_lengths(self) -> Self;

    /// The size of the record at the start of `bytes`, or why it has none. Asks for more rather than
    /// guesses, and never for more than a head.
    fn claim(&self, bytes: &[u8]) -> std::result::Result<u64, Step<Self::Frame>>;

    /// The frame of a record of `len` bytes with the right checksum. `body` is the record without
    /// its tail, or its head alone if the engine read the payload in parts. `sum` becomes
    /// [`Frame::sum`].
    fn close(&self, body: &[u8], len: u64, sum: u32) -> std::result::Result<Self::Frame, Bad>;

    /// Append the head of a record to `out`, with zeros for its checksum.
    fn push_head(&self, out: &mut Vec<u8>, tag: Self::Tag, payload_len: usize);

    /// Whether an intact record can come right after another. For formats that number records in
    /// their bytes.
    fn follows(&self, _before: Self::Frame, _next: Self::Frame) -> std::result::Result<(), Bad> {
        Ok(())
    }

    /// Refuse a payload beyond the limit.
    fn check_len(&self, payload_len: usize) -> Result<()>;

    /// Parse the start of `bytes`. Asks for more rather than guesses, and never for more than the
    /// format's limit. A codec of several shapes may call the free function `parse` with a constant one.
    #[inline]
    fn parse(&self, bytes: &[u8]) -> Step<Self::Frame> {
        parse(self, bytes)
    }

    /// Append a whole record to `out`; returns its [`Frame::sum`].
    #[inline]
    fn encode(&self, out: &mut Vec<u8>, tag: Self::Tag, payload: &[u8]) -> u32 {
        encode(self, out, tag, payload)
    }
}

/// [`Framing::parse`] of any format.
#[inline(always)]
pub fn parse<P: Framing>(framing: &P, bytes: &[u8]) -> Step<P::Frame> {
    const { assert!(P::HEAD_BYTES <= HEAD_BYTES_MAX) };
    const { assert!(P::TRAILER_BYTES == 0 || P::TRAILER_BYTES == TRAILER_BYTES_MAX) };
    let len = match framing.claim(bytes) {
        Ok(len) => len,
        Err(step) => return step,
    };
    let Some(record) = usize::try_from(len).ok().and_then(|len| bytes.get(..len)) else {
        return Step::NeedMore(len);
    };
    let (body, tail) = record.split_at(record.len() - framing.shape().tail);
    conclude(framing, len, body, tail, || sum_of(framing, body))
}

/// [`Framing::encode`] of any format.
#[inline(always)]
pub fn encode<P: Framing>(framing: &P, out: &mut Vec<u8>, tag: P::Tag, payload: &[u8]) -> u32 {
    let (start, Shape { head, tail, .. }) = (out.len(), framing.shape());
    out.reserve(head + payload.len() + tail);
    framing.push_head(out, tag, payload.len());
    out.extend_from_slice(payload);
    let sum = sum_of(framing, part(out, start..));
    let body = out.len() - start;
    out.resize(start + body + tail, 0);
    let (head, tail) = part_mut(out, start..).split_at_mut(body);
    framing.store_sum(head, tail, sum);
    P::SUM.short(sum)
}

/// The checksum of a record without its tail: in one pass if the covered bytes lie in a row.
#[inline(always)]
fn sum_of<P: Framing>(framing: &P, body: &[u8]) -> u64 {
    let Shape { head, covered, .. } = framing.shape();
    match covered.end == head {
        true => P::SUM.of(part(body, covered.start..)),
        false => P::SUM.more(P::SUM.of(part(body, covered)), part(body, head..)),
    }
}

/// Judge a record of `len` bytes by its body and tail and, if needed, by its checksum.
#[inline(always)]
fn conclude<P: Framing>(
    framing: &P,
    len: u64,
    body: &[u8],
    tail: &[u8],
    sum: impl FnOnce() -> u64,
) -> Step<P::Frame> {
    let shape = framing.shape();
    if let Err(bad) = framing.fits(body, part(tail, shape.tail - P::TRAILER_BYTES..)) {
        return Step::Bad(bad);
    }
    let stored = match shape.sum {
        SumAt::Head(at) => P::SUM.stored(body, at),
        SumAt::Tail => P::SUM.stored(tail, 0),
        SumAt::Nowhere => None,
    };
    let sum = match stored {
        Some(stored) if !shape.check => stored,
        _ => sum(),
    };
    if let Some(stored) = stored.filter(|&stored| stored != sum) {
        return Step::Bad(Bad {
            what: "checksum",
            found: sum,
            against: "stored",
            expected: stored,
            framed_len: (P::TRAILER_BYTES > 0).then_some(len),
        });
    }
    match framing.close(body, len, P::SUM.short(sum)) {
        Ok(frame) => Step::Record { frame, len },
        Err(bad) => Step::Bad(bad),
    }
}

/// The methods that the engine derives from a [`Framing`].
pub trait FramingExt: Framing {
    /// The size of the record by its first bytes, or by its last bytes if they repeat the length.
    fn claimed_len(&self, head: &[u8]) -> Option<u64> {
        self.claim(head).ok()
    }

    /// Size of the longest record.
    fn record_bytes_max(&self) -> u64 {
        let Shape { head, tail, payload_max, .. } = self.shape();
        payload_max.saturating_add((head + tail) as u64)
    }

    /// Whether a record that begins with `head` can end with `trailer`. If only the head claims a
    /// long record, the engine neither reads the record nor reserves memory for it.
    #[inline(always)]
    fn fits(&self, head: &[u8], trailer: &[u8]) -> std::result::Result<(), Bad> {
        match (u64_at(head, 0), u64_at(trailer, 0)) {
            (Some(expected), Some(found)) if Self::TRAILER_BYTES > 0 && found != expected => {
                let (what, against) = ("length trailer", "length");
                Err(Bad { what, found, against, expected, framed_len: None })
            }
            _ => Ok(()),
        }
    }

    /// The byte within a record of `record_len` bytes at which its checksum is stored; `None` if
    /// the format has none.
    fn sum_at(&self, record_len: u64) -> Option<u64> {
        let Shape { sum, tail, .. } = self.shape();
        match sum {
            SumAt::Head(at) => Some(at as u64),
            SumAt::Tail => Some(record_len - tail as u64),
            SumAt::Nowhere => None,
        }
    }

    /// The checksum of a record before its payload, to be continued by [`Sum::more`].
    fn sum_of_head(&self, head: &[u8]) -> u64 {
        Self::SUM.of(part(head, self.shape().covered))
    }

    /// Whether a record's checksum must be computed.
    fn needs_sum(&self) -> bool {
        let Shape { sum, check, .. } = self.shape();
        check || sum == SumAt::Nowhere
    }

    /// Head and tail of a record, before [`FramingExt::seal`] completes them.
    fn around(&self, tag: Self::Tag, payload_len: usize) -> (Vec<u8>, Vec<u8>) {
        let mut head = Vec::new();
        self.push_head(&mut head, tag, payload_len);
        (head, vec![0; self.shape().tail])
    }

    /// Parse a whole record by its head, its tail and its checksum. The engine read the payload in
    /// parts.
    fn parse_around(&self, head: &[u8], tail: &[u8], sum: u64) -> Step<Self::Frame> {
        match self.claim(head) {
            Ok(len) => conclude(self, len, head, tail, || sum),
            Err(step) => step,
        }
    }

    /// Store the checksum and the trailer in head and tail.
    #[inline(always)]
    fn store_sum(&self, head: &mut [u8], tail: &mut [u8], sum: u64) {
        match self.shape().sum {
            SumAt::Head(at) => Self::SUM.store(sum, head, at),
            SumAt::Tail => Self::SUM.store(sum, tail, 0),
            SumAt::Nowhere => {}
        }
        let trailer = tail.len() - Self::TRAILER_BYTES;
        part_mut(tail, trailer..).copy_from_slice(part(head, ..Self::TRAILER_BYTES));
    }
}

impl<P: Framing> FramingExt for P {}
