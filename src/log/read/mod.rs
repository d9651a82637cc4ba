//! Reading: the extent, one record, ranges by number and by byte.

pub mod cursor;
pub mod follow;
mod locate;
pub mod payload;
mod refresh;
pub mod reverse;

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::log::evidence::{Border, Evidence};
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::notice::corrupt;
use crate::log::read::cursor::{Cursor, Range, Source};
use crate::log::space::Beyond;
use crate::log::{Log, Shared};
use crate::scan::{Damage, OnCorrupt};
use crate::storage::File;

impl<F: Format> Log<F> {
    /// Number of records.
    pub fn len(&self) -> Result<u64> {
        Ok(self.extent()?.records)
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The valid prefix.
    pub fn extent(&self) -> Result<Extent> {
        Ok(self.usable()?.extent())
    }

    /// The log's present extent. Fails if the number of the first record is unknown.
    pub fn numbered_extent(&self) -> Result<Extent> {
        let shared = self.usable()?;
        let state = shared.state();
        match (state.numbered, &state.damage) {
            (false, Some(damage)) => Err(shared.corrupt(damage)),
            _ => Ok(state.extent),
        }
    }

    /// The records with numbers in `start..stop`, as they are now; damage is raised, or passed over
    /// as far as the log's bytes go.
    pub fn cursor_by_ordinal(
        &self,
        start: u64,
        stop: Option<u64>,
        on_corrupt: OnCorrupt,
    ) -> Result<Cursor<F>> {
        let cursor =
            self.as_it_is_now(|shared| shared.cursor_by_ordinal(start, stop, on_corrupt))?;
        Ok(cursor.of(self.shared.clone()))
    }

    /// The present records in the bytes `from..to`. Both must lie between records.
    pub fn cursor_by_offset(
        &self,
        from: Option<u64>,
        to: Option<u64>,
        on_corrupt: OnCorrupt,
    ) -> Result<Cursor<F>> {
        if from.is_none() {
            // Begin at the head that the files have now.
            self.usable()?.follow_head()?;
        }
        let cursor = self.as_it_is_now(|shared| shared.cursor_by_offset(from, to, on_corrupt))?;
        Ok(cursor.of(self.shared.clone()))
    }

    /// The record with a number.
    pub fn read_by_ordinal(&self, ordinal: u64) -> Result<F::Owned> {
        self.numbered_extent()?;
        self.as_it_is_now(|shared| {
            let extent = shared.extent();
            shared.check_is_there(extent, ordinal)?;
            let stop = ordinal.checked_add(1);
            let mut cursor = shared.cursor_by_ordinal(ordinal, stop, OnCorrupt::Raise)?;
            shared.only(&mut cursor, || {
                format!("{} is not where the index says", F::name_of(Some(ordinal), 0))
            })
        })
    }

    /// The record that begins at a byte. Refuses bytes inside a payload that only look like a
    /// record.
    pub fn read_by_offset(&self, offset: u64) -> Result<F::Owned> {
        self.as_it_is_now(|shared| {
            let mut cursor = shared.cursor_by_offset(Some(offset), None, OnCorrupt::Raise)?;
            match cursor.next()? {
                Some(record) => Ok(F::own(record)),
                None => Err(shared.no_record_at_end(offset)),
            }
        })
    }
}

/// The start of a walk.
pub struct Snapshot {
    pub extent: Extent,
    pub numbered: bool,
    /// Damage before the records.
    pub leading: Option<Damage>,
    /// Damage after them.
    pub trailing: Option<Damage>,
    beyond: Option<Beyond>,
    evidence: Evidence,
}

impl Snapshot {
    /// Facts about the log from outside its records.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Take `end` for the end of the known bytes.
    pub fn set_end(&mut self, end: u64) {
        self.evidence.set_known_end(end);
    }
}

impl<F: Format> Shared<F> {
    pub(super) fn corrupt(&self, damage: &Damage) -> Error {
        corrupt::<F>(&self.place.log, damage, ErrorKind::Corrupt)
    }

    /// Refuse a number that no record has.
    fn check_is_there(&self, extent: Extent, ordinal: u64) -> Result<()> {
        if extent.records > 0 && (extent.first..extent.next()).contains(&ordinal) {
            return Ok(());
        }
        let is_before = |end: Border| end.ordinal.is_none_or(|end| ordinal < end);
        if ordinal >= extent.next() {
            self.check_not_lost(&self.snapshot(), is_before)?;
        }
        let name = F::name_of(Some(ordinal), 0);
        let message = match extent.records {
            0 => format!("no {name}, the log is empty"),
            _ => format!("no {name}, the log has {} to {}", extent.first, extent.next() - 1),
        };
        Err(self.error(ErrorKind::OutOfRange, message))
    }

    /// Raise the damage at the log's end, if the wanted record may have been lost there: if it lies
    /// before an end that other files know.
    fn check_not_lost(
        &self,
        snapshot: &Snapshot,
        is_before: impl Fn(Border) -> bool,
    ) -> Result<()> {
        let known = snapshot.evidence.known_end_after(snapshot.extent.end);
        match &snapshot.trailing {
            Some(damage) if known.is_none_or(is_before) => Err(self.corrupt(damage)),
            _ => Ok(()),
        }
    }

    fn no_record_at_end(&self, offset: u64) -> Error {
        let lost = self.check_not_lost(&self.snapshot(), |end| offset < end.offset);
        if let Err(lost) = lost {
            return lost;
        }
        let message = format!("no {}, the log ends there", F::name_of(None, offset));
        self.error(ErrorKind::OutOfRange, message)
    }

    fn only(&self, cursor: &mut Cursor<F>, missing: impl Fn() -> String) -> Result<F::Owned> {
        match cursor.next()? {
            Some(record) => Ok(F::own(record)),
            None => Err(self.error(ErrorKind::Corrupt, missing())),
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let is_leading = |damage: &Damage| damage.offset < state.extent.start;
        let (leading, trailing) = match state.damage.clone() {
            Some(damage) if is_leading(&damage) => (Some(damage), state.after.clone()),
            trailing => (None, trailing),
        };
        Snapshot {
            extent: state.extent,
            numbered: state.numbered,
            leading,
            trailing,
            beyond: state.beyond.clone(),
            evidence: self.evidence(&state),
        }
    }

    /// All bytes there are, also after a gap, and the byte after the last one.
    pub(super) fn whole(&self, snapshot: &Snapshot) -> Result<(Arc<dyn File>, u64)> {
        match &snapshot.beyond {
            Some(beyond) => Ok((beyond.file.clone(), beyond.end)),
            None => {
                let there = self.file.len().map_err(|e| self.fail("look at the log", e))?;
                Ok((self.file.clone(), there.max(snapshot.extent.end)))
            }
        }
    }

    fn cursor_by_ordinal(
        &self,
        start: u64,
        stop: Option<u64>,
        on_corrupt: OnCorrupt,
    ) -> Result<Cursor<F>> {
        let mut snapshot = self.snapshot();
        let Extent { first, records, end, .. } = snapshot.extent;
        let skips = on_corrupt == OnCorrupt::Skip;
        if let Some(damage) = snapshot.leading.as_ref().filter(|_| !skips) {
            return Err(self.corrupt(damage));
        }
        let leading = snapshot.leading.take();
        if !snapshot.numbered {
            let (file, end) = self.whole(&snapshot)?;
            let range = Range { offset: snapshot.extent.start, end, ordinal: None, stop: None };
            let trailing = snapshot.trailing.clone();
            let cursor = self.cursor_over(file, range, on_corrupt, snapshot);
            return Ok(cursor.with_trailing(trailing).with_leading(leading));
        }
        let next = snapshot.extent.next();
        let start = start.max(first);
        let reaches_end = stop.is_none_or(|stop| stop > next);
        let trailing = snapshot.trailing.clone().filter(|_| reaches_end);
        let past_damage = skips && trailing.is_some();
        let (file, end) = match past_damage {
            true => self.whole(&snapshot)?,
            false => (self.file.clone(), end),
        };
        let (ordinal, offset) = match start - first >= records {
            true => (next, snapshot.extent.end),
            false => match self.locate_ordinal(snapshot.extent, start) {
                Ok(offset) => (start, offset),
                // Damage before the range: walk over it from the last border known.
                Err(e) if skips && e.kind() == ErrorKind::Corrupt => {
                    let entry = self.index().last_where(|entry| entry.ordinal <= start);
                    let begin = (first, snapshot.extent.start);
                    entry.map_or(begin, |(_, entry)| (entry.ordinal, entry.offset))
                }
                Err(e) => return Err(e),
            },
        };
        let range = Range { offset, end, ordinal: Some(ordinal), stop };
        let cursor = self.cursor_over(file, range, on_corrupt, snapshot);
        let mut cursor = cursor.with_trailing(trailing);
        if skips {
            cursor.skip_to(start)?;
        }
        Ok(cursor.with_leading(leading))
    }

    fn cursor_by_offset(
        &self,
        from: Option<u64>,
        to: Option<u64>,
        on_corrupt: OnCorrupt,
    ) -> Result<Cursor<F>> {
        let snapshot = self.snapshot();
        let extent = snapshot.extent;
        if let Some(damage) = snapshot.leading.as_ref().filter(|_| on_corrupt == OnCorrupt::Raise) {
            return Err(self.corrupt(damage));
        }
        let leading = snapshot.leading.clone();
        let start = from.unwrap_or(extent.start);
        // Skipping reads on after the valid prefix, where no border is known.
        let after_end = snapshot.trailing.is_some() && start > extent.end;
        let skips = on_corrupt == OnCorrupt::Skip;
        let mut refused = None;
        let (ordinal, offset) = match after_end {
            true => (None, start),
            false => match self.locate_offset(extent, start) {
                Ok(ordinal) => (Some(ordinal), start),
                // Damage before the range, perhaps of a length: walk over it from the last border
                // known.
                Err(e) if skips && (extent.start..extent.end).contains(&start) => {
                    refused = Some(e);
                    let entry = self.index().last_where(|entry| entry.offset <= start);
                    let (ordinal, offset) = self.border_of(entry.map(|(_, entry)| entry), extent);
                    (Some(ordinal), offset)
                }
                Err(e) => return Err(e),
            },
        };
        let (mut file, mut end) = (self.file.clone(), extent.end);
        match to {
            Some(to) if to <= extent.end => {
                self.locate_offset(extent, to)?;
                end = to;
            }
            _ if snapshot.trailing.is_some() => {
                let (whole, there) = self.whole(&snapshot)?;
                (file, end) = (whole, to.map_or(there, |to| to.min(there)));
            }
            _ => {}
        }
        let trailing = snapshot.trailing.clone().filter(|_| to.is_none());
        let ordinal = ordinal.filter(|_| snapshot.numbered);
        let range = Range { offset, end, ordinal, stop: None };
        let cursor = self.cursor_over(file, range, on_corrupt, snapshot);
        let mut cursor = cursor.with_trailing(trailing);
        if skips {
            cursor.skip_to_offset(start)?;
        }
        // No damage, but no record either.
        if let Some(e) = refused.filter(|e| e.kind() == ErrorKind::OutOfRange)
            && cursor.offset() != start
        {
            return Err(e);
        }
        Ok(cursor.with_leading(leading))
    }

    /// Walk a range whose bounds are known to lie between records.
    pub fn cursor_over(
        &self,
        file: Arc<dyn File>,
        range: Range,
        on_corrupt: OnCorrupt,
        snapshot: Snapshot,
    ) -> Cursor<F> {
        let source = Source {
            file,
            path: self.place.log.clone(),
            format: self.format.clone(),
            framing: self.framing,
            evidence: snapshot.evidence,
        };
        Cursor::new(source, range, on_corrupt)
    }
}
