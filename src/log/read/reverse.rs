//! Walking backwards: blocks between known borders are walked forwards and given from their end.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ground::locks::atomic::Ordering;
use crate::ground::slice::part;
use crate::log::format::{Format, Stepped};
use crate::log::notice;
use crate::log::read::cursor::Range;
use crate::log::{Log, Shared};
use crate::scan::framing::Frame;
use crate::scan::{Damage, OnCorrupt};
use crate::storage::File;

/// Walks backwards. Holds one block of the index with all records in memory. Gives the records
/// after damage first, then the damage as an error.
pub struct Reverse<F: Format> {
    shared: Arc<Shared<F>>,
    /// The bytes, and the damage after the log's valid prefix if the walk begins after it.
    file: Arc<dyn File>,
    trailing: Option<Damage>,
    /// Give no record below this byte.
    start: u64,
    /// Byte after the records still to be read.
    end: u64,
    /// The block's bytes, and their first byte in the log.
    bytes: Vec<u8>,
    base: u64,
    /// Records of the block still to be given.
    records: Vec<Stepped<F>>,
    /// Damage in front of these, where walking back ends.
    damage: Option<Error>,
    /// Cuts of the log's end when the walk began.
    cuts: u64,
    /// Walks of the earlier logs, the nearest last.
    before: Vec<Self>,
}

impl<F: Format> Debug for Reverse<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reverse")
            .field("format", &F::NAME)
            .field("path", &self.shared.place.log)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl<F: Format> Log<F> {
    /// The records in the bytes `from..to` (`None`: first record, end of the log), the last one
    /// first.
    pub fn reverse_by_offset(&self, from: Option<u64>, to: Option<u64>) -> Result<Reverse<F>> {
        if from.is_none() {
            self.usable()?.follow_head()?;
        }
        let (start, end) = self.as_it_is_now(|shared| {
            let extent = shared.extent();
            let start = from.unwrap_or(extent.start);
            let end = to.map_or(extent.end, |to| to.min(extent.end));
            shared.locate_offset(extent, start)?;
            shared.locate_offset(extent, end)?;
            shared.catch_up(extent);
            Ok((start, end))
        })?;
        self.reverse_over(start, end, to.is_none())
    }

    /// The records with numbers in `start..stop`, the last one first.
    pub fn reverse_by_ordinal(&self, start: u64, stop: Option<u64>) -> Result<Reverse<F>> {
        self.numbered_extent()?;
        let (start, end, beyond) = self.as_it_is_now(|shared| {
            let extent = shared.extent();
            let next = extent.next();
            let beyond = stop.is_none_or(|stop| stop > next);
            let (start, stop) = (start.max(extent.first), stop.map_or(next, |stop| stop.min(next)));
            if start >= stop {
                return Ok((extent.end, extent.end, beyond));
            }
            let end = shared.locate_ordinal(extent, stop)?;
            Ok((shared.locate_ordinal(extent, start)?, end, beyond))
        })?;
        self.reverse_over(start, end, beyond)
    }

    /// With `beyond`, from the last byte of the files: the records after the last damage, then the
    /// damage.
    fn reverse_over(&self, start: u64, end: u64, beyond: bool) -> Result<Reverse<F>> {
        let shared = self.shared.clone();
        let cuts = shared.cuts.load(Ordering::Acquire);
        let snapshot = shared.snapshot();
        if let Some(damage) = &snapshot.leading {
            return Err(shared.corrupt(damage));
        }
        let trailing = snapshot.trailing.clone().filter(|_| beyond);
        let (file, end) = match trailing {
            Some(_) => shared.whole(&snapshot)?,
            None => (shared.file.clone(), end),
        };
        let (bytes, records, damage) = (Vec::new(), Vec::new(), None);
        let base = end;
        let before = Vec::new();
        Ok(Reverse {
            shared,
            file,
            trailing,
            start,
            end,
            bytes,
            base,
            records,
            damage,
            cuts,
            before,
        })
    }
}

impl<F: Format> Reverse<F> {
    /// Go on in the earlier logs, the nearest last.
    #[must_use]
    pub(crate) fn with_before(self, before: Vec<Self>) -> Self {
        Self { before, ..self }
    }

    /// The next record, going down.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<F::Ref<'_>>> {
        while self.records.is_empty() {
            if let Some(error) = self.damage.take() {
                self.end = self.start;
                // The log before would leave a gap after the error.
                self.before.clear();
                notice::raised(&error);
                return Err(error);
            }
            if self.end <= self.start && self.trailing.is_none() {
                let Some(next) = self.before.pop() else { return Ok(None) };
                *self = next.with_before(std::mem::take(&mut self.before));
                continue;
            }
            self.load().inspect_err(|_| self.before.clear())?;
        }
        let Some((ordinal, offset, frame)) = self.records.pop() else { return Ok(None) };
        let at = (offset - self.base) as usize;
        let record = part(&self.bytes, at..at + frame.len() as usize);
        Ok(Some(F::show(ordinal, offset, frame, record)))
    }

    /// Read the block that ends at `end`, or the records after the block's last damage.
    fn load(&mut self) -> Result<()> {
        let (end, shared) = (self.end, self.shared.clone());
        let near = shared.index().last_where(|entry| entry.offset < end);
        let near = near.map(|(_, entry)| entry).filter(|entry| entry.offset > self.start);
        let base = near.map_or(self.start, |entry| entry.offset);
        let mut snapshot = shared.snapshot();
        let ordinal = match near {
            Some(entry) => Some(entry.ordinal),
            None => shared.locate_offset(snapshot.extent, base).ok(),
        };
        let trailing = self.trailing.take();
        let beyond = trailing.is_some();
        let unacknowledged = snapshot.evidence().unacknowledged_from().filter(|_| beyond);
        if trailing.is_none() {
            // This walk's end is a border, whatever was appended since.
            snapshot.set_end(end);
        }
        self.bytes.clear();
        self.base = base;
        self.end = base;
        let ordinal = ordinal.filter(|_| snapshot.numbered);
        let range = Range { offset: base, end, ordinal, stop: None };
        let file = self.file.clone();
        let mut cursor = shared.cursor_over(file, range, OnCorrupt::Skip, snapshot);
        cursor = cursor.with_trailing(trailing.filter(|damage| damage.offset >= base));
        let mut looked_at = 0;
        let is_torn = |damage: &Damage| {
            damage.next_intact.is_none() && unacknowledged.is_some_and(|from| damage.offset >= from)
        };
        loop {
            let found = cursor.advance().map_err(|e| shared.explain(base, self.cuts, e))?;
            let fresh = cursor.damages().get(looked_at..).unwrap_or_default();
            looked_at += fresh.len();
            // A torn tail is the end of the log. Records inside the tail may be parts of its
            // payload.
            let is_damaged = fresh.iter().any(|damage| !is_torn(damage));
            if is_damaged || !cursor.is_proved() {
                self.bytes.clear();
                self.records.clear();
                self.base = found.map_or(end, |(_, offset, _)| offset);
            }
            let Some(record) = found else { break };
            if !cursor.is_proved() {
                continue;
            }
            self.bytes.extend_from_slice(cursor.bytes());
            self.records.push(record);
        }
        let error = cursor
            .damages()
            .iter()
            .rfind(|damage| !is_torn(damage))
            .map(|damage| shared.corrupt(damage));
        self.damage = error.map(|error| shared.explain(base, self.cuts, error));
        Ok(())
    }
}
