//! One driver for every scan and recovery. A format's pure `parse` judges the bytes at an offset.
//! The driver reads blocks, walks, and concludes how the log ends.
//!
//! Parsing never truncates, logs or opens. The caller decides about a damaged tail.

mod damage;
pub mod framing;
pub mod search;
#[cfg(test)]
pub mod toy;

use std::io;

use crate::ground::slice::{part, part_mut};
use crate::storage::{File, READ_BYTES, read_full};

pub use damage::{Damage, OnCorrupt, Verdict};
pub use framing::{Bad, Step};
use framing::{Framing, FramingExt, TRAILER_BYTES_MAX};

/// The scanner's finding at its position.
#[derive(Clone, Debug)]
pub enum Scanned<F> {
    /// An intact record; [`Scanner::bytes`] has the whole record.
    Record {
        /// Where it begins.
        offset: u64,
        /// The parser's frame.
        frame: F,
    },
    /// The end of the range, exactly after a record.
    End,
    /// Anything else. The scanner stays at the position.
    Stop {
        /// Where it begins.
        offset: u64,
        /// Why it is not a record.
        why: Stop,
    },
}

/// Why a scan stopped before the end of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A record begins here that needs more bytes than there are.
    Incomplete {
        /// Bytes that the record needs.
        need: u64,
        /// Bytes left in the file.
        left: u64,
    },
    /// Zeros where a record would begin.
    Blank,
    /// Not a record.
    Bad(Bad),
    /// An intact record that cannot follow the record before.
    Unlinked(Bad),
}

impl Stop {
    /// The length of a record that is beyond the limit.
    pub fn len_beyond_limit(&self) -> Option<u64> {
        match self {
            Self::Bad(Bad { what: "length", against: "limit", found, .. }) => Some(*found),
            _ => None,
        }
    }

    /// The reason in words, with both values.
    pub fn reason(&self) -> String {
        match self {
            Self::Incomplete { need, left } => {
                format!("incomplete record: {need} bytes needed, {left} there")
            }
            Self::Blank => "unwritten: zeros where a record would begin".into(),
            Self::Bad(bad) | Self::Unlinked(bad) => bad.reason(),
        }
    }
}

/// A longer record is checked in parts, where its bytes are not asked for.
pub const HELD_BYTES_MAX: u64 = 1 << 20;
/// The first read of a scanner, whose caller may want a single record. Each further read is twice
/// as long.
const FIRST_READ_BYTES: usize = 16 << 10;

/// Walks the records of a part of a file in blocks; nothing is allocated per record.
#[derive(Debug)]
pub struct Scanner<P: Framing> {
    parse: P,
    /// Position of the next record.
    pos: u64,
    /// Position and size of the record found last.
    last: (u64, usize),
    /// For linked formats: the byte after the last record found, and the record.
    before: Option<(u64, P::Frame)>,
    end: u64,
    buf: Vec<u8>,
    /// File offset of `buf[0]`.
    buf_start: u64,
    /// Size of the next read.
    block_bytes: usize,
    /// The longest record whose bytes are held.
    held_max: u64,
}

impl<P: Framing> Scanner<P> {
    /// A scanner over `start..end` of a file.
    pub fn new(parse: P, start: u64, end: u64) -> Self {
        let (last, buf, block_bytes) = ((start, 0), Vec::new(), FIRST_READ_BYTES);
        let held_max = u64::MAX;
        let (before, buf_start) = (None, start);
        Self { parse, pos: start, last, before, end, buf, buf_start, block_bytes, held_max }
    }

    /// A scanner for frames only: [`Scanner::bytes`] is empty for a record of more than
    /// [`HELD_BYTES_MAX`]. The scanner checks the record like any other.
    pub fn of_frames(parse: P, start: u64, end: u64) -> Self {
        Self { held_max: HELD_BYTES_MAX, ..Self::new(parse, start, end) }
    }

    /// Position of the next record.
    pub fn position(&self) -> u64 {
        self.pos
    }

    /// End of the range.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Go on at another offset, whatever record was found last.
    pub fn seek(&mut self, offset: u64) {
        self.pos = offset;
        self.before = None;
    }

    /// The whole bytes of the record found last.
    pub fn bytes(&self) -> &[u8] {
        let (offset, len) = self.last;
        let start = (offset - self.buf_start) as usize;
        part(&self.buf, start..start + len)
    }

    /// The bytes in memory from the position on; none if the position lies beyond them.
    pub fn ahead(&self) -> &[u8] {
        let at = self.pos.wrapping_sub(self.buf_start) as usize;
        self.buf.get(at..).unwrap_or_default()
    }

    /// The next record, if it is whole in memory and intact: its byte and frame. [`Scanner::next`]
    /// would return the same. Inlined with its parser, this copies nothing through memory.
    #[inline(always)]
    pub fn next_in_memory(&mut self) -> Option<(u64, P::Frame)> {
        let Step::Record { frame, len } = self.parse.parse(self.ahead()) else { return None };
        let offset = self.pos;
        if P::LINKED && self.unlinked(offset, frame).is_some() {
            return None;
        }
        self.pass(frame, len, (offset, len as usize));
        Some((offset, frame))
    }

    /// Look at the next record. An error of the file is an error, never taken for the end.
    pub fn next(&mut self, file: &dyn File) -> io::Result<Scanned<P::Frame>> {
        let offset = self.pos;
        let mut need = 0;
        loop {
            let there = self.ahead();
            if (there.len() as u64) < need || there.is_empty() {
                if need > READ_BYTES as u64 && need <= self.end.saturating_sub(offset) {
                    let fits = trailer_fits(file, &self.parse, there, offset, need)?;
                    if let Some(Err(bad)) = fits {
                        return Ok(Scanned::Stop { offset, why: Stop::Bad(bad) });
                    }
                    if need > self.held_max
                        && let Some(step) = in_parts(file, &self.parse, offset, need)?
                    {
                        return self.found(file, offset, step, true);
                    }
                }
                match self.fill(file, need)? {
                    0 if offset >= self.end => return Ok(Scanned::End),
                    // The file shrank since its end was read: not the end of the range.
                    0 => {
                        let why = Stop::Incomplete { need: self.end - offset, left: 0 };
                        return Ok(Scanned::Stop { offset, why });
                    }
                    have if have < need => {
                        let left = self.end.saturating_sub(offset).min(have);
                        return Ok(Scanned::Stop { offset, why: Stop::Incomplete { need, left } });
                    }
                    _ => continue,
                }
            }
            match self.parse.parse(there) {
                Step::NeedMore(more) => need = more.max(there.len() as u64 + 1),
                step => return self.found(file, offset, step, false),
            }
        }
    }

    /// Go on after a record, and stop at anything else.
    fn found(
        &mut self,
        file: &dyn File,
        offset: u64,
        step: Step<P::Frame>,
        in_parts: bool,
    ) -> io::Result<Scanned<P::Frame>> {
        let why = match step {
            Step::Record { frame, len } => {
                if P::LINKED
                    && let Some(bad) = self.unlinked(offset, frame)
                {
                    return Ok(Scanned::Stop { offset, why: Stop::Unlinked(bad) });
                }
                let held = if in_parts { (self.buf_start, 0) } else { (offset, len as usize) };
                self.pass(frame, len, held);
                return Ok(Scanned::Record { offset, frame });
            }
            // The file shrank while a long record was read.
            Step::NeedMore(need) => {
                let end = file.len()?.min(self.end);
                Stop::Incomplete { need, left: end.saturating_sub(offset) }
            }
            Step::Blank => Stop::Blank,
            Step::Bad(bad) => Stop::Bad(bad),
        };
        Ok(Scanned::Stop { offset, why })
    }

    /// Continue after a record of `len` bytes. Its bytes at `held` are in memory.
    #[inline(always)]
    fn pass(&mut self, frame: P::Frame, len: u64, held: (u64, usize)) {
        self.pos += len;
        self.last = held;
        if P::LINKED {
            self.before = Some((self.pos, frame));
        }
    }

    /// Why the record at `offset` cannot come right after the record before.
    fn unlinked(&self, offset: u64, frame: P::Frame) -> Option<Bad> {
        let (_, before) = self.before.filter(|&(end, _)| end == offset)?;
        self.parse.follows(before, frame).err()
    }

    /// Have at least `need` bytes from the position on, if the range has them; returns how many
    /// there are. Never reserves more than the bytes left.
    fn fill(&mut self, file: &dyn File, need: u64) -> io::Result<u64> {
        let left = self.end.saturating_sub(self.pos);
        if need > left {
            return Ok(left);
        }
        let want = need.max(self.block_bytes as u64).min(left) as usize;
        self.block_bytes = (2 * self.block_bytes).min(READ_BYTES);
        let kept = match self.pos.checked_sub(self.buf_start) {
            Some(skip) if (skip as usize) < self.buf.len() => {
                let skip = skip as usize;
                let kept = self.buf.len() - skip;
                self.buf.copy_within(skip.., 0);
                kept
            }
            _ => 0,
        };
        self.buf_start = self.pos;
        // A buffer grown for one long record is not kept for the rest of the log.
        if self.buf.capacity() > 4 * READ_BYTES && want <= READ_BYTES {
            self.buf.truncate(kept);
            self.buf.shrink_to(READ_BYTES);
        }
        self.buf.resize(want.max(kept), 0);
        let read = read_full(file, part_mut(&mut self.buf, kept..), self.pos + kept as u64);
        let read = seeded!(read?, "read-error-is-the-end" => read.unwrap_or(0));
        self.buf.truncate(kept + read);
        Ok(self.buf.len() as u64)
    }
}

/// Read the trailer of a record of `len` bytes at `offset` and compare the trailer with the head;
/// `None` if the file lacks the bytes.
pub fn trailer_fits<P: Framing>(
    file: &dyn File,
    parse: &P,
    head: &[u8],
    offset: u64,
    len: u64,
) -> io::Result<Option<Result<(), Bad>>> {
    let mut trailer = [0; TRAILER_BYTES_MAX];
    let trailer = part_mut(&mut trailer, ..P::TRAILER_BYTES);
    let read = read_full(file, trailer, offset + len.saturating_sub(trailer.len() as u64))?;
    Ok((read == trailer.len()).then(|| parse.fits(head, trailer)))
}

/// Check a record of `len` bytes at `offset` without holding its bytes; `None` if the format needs
/// the whole record.
fn in_parts<P: Framing>(
    file: &dyn File,
    parse: &P,
    offset: u64,
    len: u64,
) -> io::Result<Option<Step<P::Frame>>> {
    if !P::IN_PARTS {
        return Ok(None);
    }
    let shape = parse.shape();
    let (mut head, mut tail) = (vec![0; shape.head], vec![0; shape.tail]);
    let payload = offset + head.len() as u64..(offset + len).saturating_sub(tail.len() as u64);
    let there = read_full(file, &mut head, offset)? + read_full(file, &mut tail, payload.end)?;
    if there < head.len() + tail.len() {
        return Ok(Some(Step::NeedMore(len)));
    }
    if !parse.needs_sum() {
        return Ok(Some(parse.parse_around(&head, &tail, 0)));
    }
    let mut sum = parse.sum_of_head(&head);
    let mut block = vec![0; READ_BYTES];
    let mut at = payload.start;
    while at < payload.end {
        let want = (payload.end - at).min(READ_BYTES as u64) as usize;
        let read = read_full(file, part_mut(&mut block, ..want), at)?;
        if read < want {
            return Ok(Some(Step::NeedMore(len)));
        }
        sum = P::SUM.more(sum, part(&block, ..read));
        at += read as u64;
    }
    Ok(Some(parse.parse_around(&head, &tail, sum)))
}

#[cfg(test)]
mod tests;
