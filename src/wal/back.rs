//! Walking backwards: blocks between known borders are walked forwards and given from their end.

use std::sync::Arc;

use super::cursor::{OnCorrupt, RecordRef, corrupt};
use super::format::{Frame, Lsn};
use super::{Shared, Wal};
use crate::error::{Error, ErrorKind, Result};
use crate::locks::atomic::Ordering;

/// Walks backwards, in memory for one block of the index and its records.
#[derive(Debug)]
pub struct BackCursor {
    shared: Arc<Shared>,
    /// Give no record below this byte.
    start: u64,
    /// Byte behind the records still to be read.
    end: u64,
    /// The block's bytes, and the byte of the log at which they begin.
    bytes: Vec<u8>,
    base: u64,
    /// Records of the block still to be given.
    records: Vec<(u64, Frame)>,
    /// Damage in front of these, where walking back ends.
    damage: Option<Error>,
    /// Cuts of the log's end when the walk began.
    cuts: u64,
}

impl Wal {
    /// Walk the records in `from..to` (`None`: first record, end of the log), the last one first.
    pub fn back_cursor(&self, from: Option<Lsn>, to: Option<Lsn>) -> Result<BackCursor> {
        if from.is_none() {
            self.usable()?.follow_head()?;
        }
        let (start, end) = self.as_it_is_now(|shared| {
            let tip = shared.state().tip;
            let start = from.map_or(tip.start, |lsn| lsn.0);
            let end = to.map_or(tip.end, |lsn| lsn.0.min(tip.end));
            shared.locate(tip, Lsn(start))?;
            shared.locate(tip, Lsn(end))?;
            shared.catch_up(tip);
            Ok((start, end))
        })?;
        let (bytes, records, base) = (Vec::new(), Vec::new(), end);
        let (shared, damage) = (self.shared.clone(), None);
        let cuts = shared.cuts.load(Ordering::Acquire);
        Ok(BackCursor { shared, start, end, bytes, base, records, damage, cuts })
    }
}

impl BackCursor {
    /// The next record, going down.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>> {
        while self.records.is_empty() {
            if let Some(error) = self.damage.take() {
                self.end = self.start;
                return Err(error);
            }
            if self.end <= self.start {
                return Ok(None);
            }
            self.load()?;
        }
        let Some((offset, frame)) = self.records.pop() else { return Ok(None) };
        let at = (offset - self.base) as usize;
        let payload = frame.payload(self.bytes.get(at..).unwrap_or_default());
        Ok(Some(RecordRef { lsn: Lsn(offset), payload }))
    }

    /// Read the block that ends at `end`, or what lies behind the last damage in it.
    fn load(&mut self) -> Result<()> {
        let end = self.end;
        let near = self.shared.index().last_where(|entry| entry.offset < end);
        let base = near.map_or(self.start, |(_, entry)| entry.offset).max(self.start);
        self.bytes.clear();
        self.base = base;
        self.end = base;
        let mut cursor = self.shared.cursor_over(base, end, OnCorrupt::Skip);
        let mut damages = 0;
        loop {
            let found = cursor.advance().map_err(|e| self.shared.why(base, self.cuts, e))?;
            if cursor.damages().len() > damages {
                damages = cursor.damages().len();
                self.bytes.clear();
                self.records.clear();
                self.base = found.map_or(end, |(Lsn(offset), _)| offset);
            }
            let Some((lsn, frame)) = found else { break };
            self.bytes.extend_from_slice(cursor.bytes());
            self.records.push((lsn.0, frame));
        }
        let damage = cursor.damages().last();
        let error =
            damage.map(|damage| corrupt(&self.shared.place.log, damage, ErrorKind::Corrupt));
        self.damage = error.map(|error| self.shared.why(base, self.cuts, error));
        Ok(())
    }
}
