//! The limit of all files together.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::Shared;
use super::state::{Held, State};
use crate::durability::Durability;
use crate::error::{Durable, Error, ErrorKind, Result, grouped};
use crate::ground::lines;
use crate::ledger::codec::FORMAT;
use crate::ledger::directory::look::{Looking, look};
use crate::ledger::directory::{Away, Gate};
use crate::ledger::options::WhenFull;
use crate::storage::{Access, FileId};

/// Count again after this time: other stores append, and send, too.
const COUNT_AGE_MAX: Duration = Duration::from_secs(1);

/// The last count, if it still holds.
fn counted(state: &State) -> Option<Held> {
    state.held.filter(|held| held.at.elapsed() < COUNT_AGE_MAX)
}

impl Shared {
    /// Make room for so many records and bytes under the limit of all files, or fail without an
    /// append. If the limit is the reason, count the records as rejected.
    pub(in crate::ledger) fn make_room(
        &self,
        state: &mut State,
        records: u64,
        bytes: u64,
    ) -> Result<()> {
        self.find_room(state, records, bytes).map_err(|e| e.with_durable(Durable::No))
    }

    fn find_room(&self, state: &mut State, records: u64, bytes: u64) -> Result<()> {
        let Some(limit) = self.options.bytes_total_max else { return Ok(()) };
        let fits = |held: u64| held.saturating_add(bytes) <= limit;
        if !fits(0) {
            self.counters.rejected(records, bytes);
            let message = format!("{} bytes at once, max_bytes={}", grouped(bytes), grouped(limit));
            return Err(Error::new(ErrorKind::TooLarge, message)
                .of(FORMAT)
                .at(&self.directory.path));
        }
        let drops = self.options.when_full == WhenFull::DropOldest;
        let mut held = match counted(state) {
            Some(held) if fits(held.bytes) => held,
            // Others may have made room meanwhile: nothing is dropped by an earlier count.
            Some(held) if !held.lowered && !drops => held,
            _ => self.count()?,
        };
        state.held = Some(held);
        if !fits(held.bytes) && drops {
            let over = held.bytes.saturating_add(bytes) - limit;
            // A failed drop may have removed some files: the next append that needs room counts
            // again.
            held.bytes = held.bytes.saturating_sub(self.drop_oldest(state, over)?);
            state.held = Some(held);
        }
        match fits(held.bytes) {
            true => Ok(()),
            false => {
                self.counters.rejected(records, bytes);
                let message = format!(
                    "the ledger is full: {} of max_bytes={}, and {} bytes more",
                    grouped(held.bytes),
                    grouped(limit),
                    grouped(bytes),
                );
                let full = io::Error::new(io::ErrorKind::QuotaExceeded, message);
                Err(Error::io("append", &self.directory.path, full).of(FORMAT))
            }
        }
    }

    /// Whether there is room without a new count, and without dropping anything.
    pub(super) fn has_room(&self, state: &State, bytes: u64) -> bool {
        let fits = |limit| counted(state).is_some_and(|held| held.bytes + bytes <= limit);
        self.options.bytes_total_max.is_none_or(fits)
    }

    fn count(&self) -> Result<Held> {
        let mut bytes = 0;
        for index in self.directory.indexes()? {
            let path = self.directory.path_of(index);
            // A missing file has no bytes.
            if let Ok(file) = self.directory.storage.open(&path, Access::Read) {
                bytes += file.len().map_err(|e| Error::io("look at the file", &path, e))?;
            }
        }
        Ok(Held { bytes, at: Instant::now(), lowered: false })
    }

    /// Remove the oldest files without a writer until so many bytes are free, and finally the
    /// store's own open file; returns the freed bytes. A file that cannot be removed, such as
    /// another user's, does not protect later files. It is an error only if the room is too small
    /// without it: then nothing more is removed.
    fn drop_oldest(&self, state: &mut State, over: u64) -> Result<u64> {
        let (gate, looking) = (self.directory.gate()?, self.looking()?);
        let (mut freed, mut failed) = (0, None);
        let own = state.active.as_ref().map_or(0, |active| active.len);
        let mut indexes = VecDeque::from(self.directory.indexes()?);
        // The lengths of the remaining files, once a file could not be removed.
        let mut lens: Option<VecDeque<u64>> = None;
        while let Some(index) =
            seeded!(indexes.pop_front(), "newest-file-dropped" => indexes.pop_back())
        {
            if freed >= over {
                return Ok(freed);
            }
            lens.as_mut().and_then(VecDeque::pop_front);
            match self.drop_finished(&gate, &looking, index) {
                Ok(bytes) => freed += bytes,
                Err(e) => {
                    failed.get_or_insert(e);
                    let lens = lens.get_or_insert_with(|| self.lens_of(&gate, &indexes));
                    if freed + lens.iter().sum::<u64>() + own < over {
                        break;
                    }
                }
            }
        }
        let active = state.active.take_if(|active| {
            let helps = failed.is_none() || freed + active.len >= over;
            freed < over && active.records > 0 && helps
        });
        if let Some(active) = active {
            let (index, id, records, len) = (active.index, active.id, active.records, active.len);
            let dropped = self.drop_file(&gate, index, id, records, len);
            if dropped.is_err() && self.options.durability != Durability::None {
                // The file stays, and waits for its sync.
                state.unsynced.push(active.file.clone());
            }
            match dropped {
                Ok(bytes) => freed += bytes,
                Err(e) => {
                    failed.get_or_insert(e);
                }
            }
        }
        match failed {
            Some(error) if freed < over => Err(error),
            _ => Ok(freed),
        }
    }

    /// The length of each file; 0 for a file that is missing, being written, or cannot be opened.
    fn lens_of(&self, gate: &Gate, indexes: &VecDeque<u32>) -> VecDeque<u64> {
        let found = indexes.iter().map(|&index| self.directory.finished(gate, index));
        found.map(|found| found.ok().flatten().map_or(0, |found| found.len)).collect()
    }

    fn drop_finished(&self, gate: &Gate, looking: &Looking, index: u32) -> Result<u64> {
        let Some(found) = self.directory.finished(gate, index)? else { return Ok(0) };
        // An event that cannot be read is dropped, but not counted.
        let records = look(looking, &found).map_or(0, |seen| seen.records);
        self.drop_file(gate, index, found.id, records, found.len)
    }

    fn drop_file(
        &self,
        gate: &Gate,
        index: u32,
        id: FileId,
        records: u64,
        bytes: u64,
    ) -> Result<u64> {
        if !self.directory.put_away(gate, index, id, Away::Removed)? {
            return Ok(0);
        }
        let path = self.directory.path_of(index);
        self.counters.dropped(1, records, bytes);
        lines::warn(format_args!(
            "the ledger is full: dropped {records} records, {bytes} bytes ({})",
            path.display()
        ));
        Ok(bytes)
    }
}
