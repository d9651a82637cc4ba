//! How records lie one after the other in bytes: pure, no I/O.

use std::fmt::Debug;

use crate::error::Result;

/// What a format's parser finds at the start of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<F> {
    /// An intact record of `len` bytes.
    Record {
        /// What the parser learnt of it.
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
    /// The name of the value that it should agree with, for example `stored`.
    pub against: &'static str,
    /// The value that it should agree with.
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

/// What is known of an intact record: small and free of references.
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
    /// The number stored beside the payload, for formats that have one.
    fn tag(self) -> u32 {
        0
    }
}

/// A format's record codec.
pub trait Framing: Copy + Debug + Send + Sync + 'static {
    /// What is known of an intact record.
    type Frame: Frame;
    /// What a record has beside its payload.
    type Tag: Copy + Default + Debug + Send + Sync + 'static;
    /// A checksum that is continued over the parts of a payload.
    type Sum: Copy + Default + Debug;
    /// Size of the shortest record.
    const RECORD_BYTES_MIN: u64;
    /// Bytes at the begin of a record that give its length.
    const HEAD_BYTES: usize;
    /// Bytes at the end of a record that repeat its length; 0 where nothing does.
    const TRAILER_BYTES: usize = 0;
    /// Zeros at the end of the data that may belong to the last record.
    const TRAILING_ZEROS_MAX: u64 = 0;
    /// Whether [`Framing::follows`] says anything.
    const LINKED: bool = false;

    /// Bytes that a staged file has before its records: room for the header of a log, which it may become.
    fn staged_from(&self) -> u64 {
        0
    }

    /// Parse the start of `bytes`. Asks for more rather than guesses, and never for more than the
    /// format's limit.
    fn parse(&self, bytes: &[u8]) -> Step<Self::Frame>;

    /// The same framing, which compares lengths only.
    #[must_use]
    fn by_lengths(self) -> Self;

    /// Whether a record that begins with `head` can end with `trailer`. Keeps a long record from
    /// being read, and memory from being reserved for it, where only its head says so.
    fn fits(&self, _head: &[u8], _trailer: &[u8]) -> std::result::Result<(), Bad> {
        Ok(())
    }

    /// Whether an intact record can come right after another one, for records that are numbered in
    /// their bytes.
    fn follows(&self, _before: Self::Frame, _next: Self::Frame) -> std::result::Result<(), Bad> {
        Ok(())
    }

    /// The size of the record by its first bytes, if that is possible.
    fn claimed_len(&self, head: &[u8]) -> Option<u64>;

    /// The size of the record by its last bytes, if that is possible.
    fn trailed_len(&self, _trailer: &[u8]) -> Option<u64> {
        None
    }

    /// The byte within a record of `record_len` bytes at which its checksum is stored, in 4 bytes;
    /// `None` where a record has none, and [`Frame::sum`] is computed.
    fn sum_at(&self, record_len: u64) -> Option<u64>;

    /// Bytes of a record before and after its payload, for formats of which a long record can be
    /// checked in parts; `None` where it is held as a whole.
    fn around(&self) -> Option<(usize, usize)> {
        None
    }

    /// The checksum of the first bytes of a record, to be continued by [`Framing::sum_more`]; `None`
    /// where [`Framing::parse_around`] needs none.
    fn sum_of_head(&self, _head: &[u8]) -> Option<Self::Sum> {
        None
    }

    /// What [`Framing::parse`] finds in a whole record whose payload was read in parts: by the bytes
    /// before and after it, and the checksum of what comes before those after it.
    fn parse_around(&self, _head: &[u8], _tail: &[u8], _sum: Self::Sum) -> Step<Self::Frame> {
        Step::NeedMore(u64::MAX)
    }

    /// Size of the longest record.
    fn record_bytes_max(&self) -> u64;

    /// Refuse a payload beyond the limit.
    fn check_len(&self, payload_len: usize) -> Result<()>;

    /// Append a whole record to `out`; returns its checksum, which is that of the bytes in `out`.
    fn encode(&self, out: &mut Vec<u8>, tag: Self::Tag, payload: &[u8]) -> u32;

    /// The checksum of a record before its payload, to be continued by [`Framing::sum_more`].
    fn sum_begin(&self, tag: Self::Tag, payload_len: usize) -> Self::Sum;

    /// Continue a checksum over a part of the payload.
    fn sum_more(&self, sum: Self::Sum, part: &[u8]) -> Self::Sum;

    /// What [`Frame::sum`] says of a record with this checksum.
    fn short_sum(sum: Self::Sum) -> u32;

    /// What stands before and after a payload with this checksum.
    fn enclose(&self, tag: Self::Tag, payload_len: usize, sum: Self::Sum) -> (Vec<u8>, Vec<u8>);
}
