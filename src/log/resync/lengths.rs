//! The end of a damaged record, by the lengths at its begin and end.

use std::io;

use super::search::{Search, Stretch};
use super::trailers::Trailers;
use crate::ground::slice::{part, part_mut};
use crate::scan::framing::{Framing, FramingExt, HEAD_BYTES_MAX, TRAILER_BYTES_MAX};
use crate::scan::{Scanned, Scanner};
use crate::storage::read_full;

/// How far a length that leads back to the damage is looked for.
const TRAILER_SEARCH_BYTES: u64 = 64 << 20;

impl<F: Framing> Search<'_, F> {
    /// The end of the damaged record at `at`, by a length that leads back to the record, if an intact record, a
    /// border or the end of the data follows.
    pub(super) fn end_by_trailer(&mut self, at: u64) -> io::Result<Option<u64>> {
        let mut trailers = std::mem::take(&mut self.learnt.trailers);
        let found = self.end_by(&mut trailers, at);
        self.learnt.trailers = trailers;
        found
    }

    fn end_by(&mut self, trailers: &mut Trailers, at: u64) -> io::Result<Option<u64>> {
        if F::TRAILER_BYTES == 0 {
            return Ok(None);
        }
        let most = self.border.map_or(self.reach, |border| border.offset.min(self.reach));
        let most = most.min(at.saturating_add(TRAILER_SEARCH_BYTES));
        let Stretch { file, framing, .. } = self.stretch;
        let mut after = at;
        while let Some(end) =
            trailers.next_end(file, framing, at, after, most, &mut self.learnt.search)?
        {
            if self.is_end(end) || self.parses_at(end)? {
                return Ok(Some(end));
            }
            after = end;
        }
        Ok(None)
    }

    /// The end of the damaged record at `at`, if a length leads on.
    pub(super) fn own_end(&mut self, trailers: &mut Trailers, at: u64) -> io::Result<Option<u64>> {
        if let Some(end) = self.end_by(trailers, at)? {
            return Ok(Some(end));
        }
        let claimed = self.claimed_end(at)?;
        match claimed {
            Some(end) if self.is_end(end) || self.parses_at(end)? => Ok(claimed),
            _ => Ok(None),
        }
    }

    /// The end of the damaged record at `at`, if a single bit of its length is wrong: the checksum
    /// finds the bit. A format with lengths at the ends of records needs no guess.
    pub(super) fn corrected_end(&mut self, at: u64) -> io::Result<Option<u64>> {
        if F::TRAILER_BYTES > 0 {
            return Ok(None);
        }
        let mut head = [0; HEAD_BYTES_MAX];
        if read_full(&self.near, &mut head, at)? < F::HEAD_BYTES {
            return Ok(None);
        }
        let framing = self.stretch.framing;
        let len_of = |head: &[u8]| framing.claimed_len(part(head, ..F::HEAD_BYTES));
        let most = self.border.map_or(self.reach, |border| border.offset.min(self.reach));
        let (as_found, left) = (len_of(&head), most.saturating_sub(at));
        let mut guesses = Vec::new();
        for (byte, bit) in
            (0..F::HEAD_BYTES).flat_map(|byte| (0..8).map(move |bit| (byte, 1 << bit)))
        {
            let mut other = head;
            part_mut(&mut other, byte..=byte).iter_mut().for_each(|byte| *byte ^= bit);
            let len = len_of(&other).filter(|&len| Some(len) != as_found && len <= left);
            guesses.extend(len.map(|len| (len, at + byte as u64, bit)));
        }
        // Take the longest fitting length: a shorter length could end inside the payload.
        guesses.sort_unstable_by(|a, b| b.cmp(a));
        for (len, byte, bit) in guesses {
            if !self.learnt.corrections.take(len) {
                return Ok(None);
            }
            let mut scanner = Scanner::of_frames(framing, at, at + len);
            let found = scanner.next(&self.near.flipped(byte, bit))?;
            if matches!(found, Scanned::Record { .. }) {
                return Ok(Some(at + len));
            }
        }
        Ok(None)
    }

    /// The end of the record at `offset`, by its head.
    pub(super) fn claimed_end(&self, offset: u64) -> io::Result<Option<u64>> {
        let mut head = [0; HEAD_BYTES_MAX];
        let read = read_full(&self.near, &mut head, offset)?;
        if read < F::HEAD_BYTES {
            return Ok(None);
        }
        let len = self.stretch.framing.claimed_len(part(&head, ..F::HEAD_BYTES));
        Ok(len.and_then(|len| offset.checked_add(len)))
    }

    /// The begin of the record that ends at `end`, by the length at its end.
    pub(super) fn start_by_trailer(&self, end: u64) -> io::Result<Option<u64>> {
        let bytes = F::TRAILER_BYTES;
        let Some(at) = end.checked_sub(bytes as u64).filter(|_| bytes > 0) else {
            return Ok(None);
        };
        let mut trailer = [0; TRAILER_BYTES_MAX];
        let read = read_full(&self.near, &mut trailer, at)?;
        if read < bytes {
            return Ok(None);
        }
        let len = self.stretch.framing.claimed_len(part(&trailer, ..bytes));
        Ok(len.and_then(|len| end.checked_sub(len)))
    }
}
