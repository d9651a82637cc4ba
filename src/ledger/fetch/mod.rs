//! Fetching finished files, and removing them after sending.

pub(super) mod fetched;
pub(super) mod leasing;
pub(super) mod reader;
pub(super) mod walk;

use super::codec::FORMAT;
use super::directory::look::{Looking, Seen, look};
use super::directory::{Away, Finished, Gate};
use super::options::OnCorrupt;
use super::store::{LedgerStore, Shared};
use crate::durability::Durability;
use crate::error::Result;
use crate::ground::lines;
use fetched::{DataResult, Removable};
use reader::{Around, LedgerReader};

/// The most files of a fetch: each is open, and a process may open 1,024.
const FETCH_FILES_MAX: usize = 256;

impl LedgerStore {
    /// Finish the file being written, and return the oldest finished files: at most `count` (and 256: each is open),
    /// with at most `max_bytes` together, but always one. `None` without files.
    ///
    /// The store leases the files until [`LedgerStore::remove`] or [`LedgerStore::release`] gives them back, or the
    /// store is closed, or its process ends. A fetch passes over files that another store leased or writes, in any
    /// process. A second fetch of the same store returns the same files again, so each sending thread needs a store.
    ///
    /// A file without an intact record is removed if it is blank, else moved to
    /// `.deedbook/quarantine/`. A file that cannot be read is an error only if no other can be sent.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn fetch(
        &self,
        count: Option<usize>,
        max_bytes: Option<u64>,
    ) -> Result<Option<DataResult>> {
        let shared = self.sending()?;
        shared.finish_and_sync()?;
        shared.fetch(count, max_bytes).map_err(|e| e.of(FORMAT))
    }

    /// Remove sent files. Passes over a file that is gone, or replaced by another file. With [`Durability::None`], a
    /// power cut may bring removed files back.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn remove(&self, items: &[Removable]) -> Result<()> {
        self.sending()?.remove(items).map_err(|e| e.of(FORMAT))
    }

    /// Give back fetched files without sending: other stores may send them.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn release(&self, items: &[Removable]) -> Result<()> {
        self.sending()?.give_back_items(items).map_err(|e| e.of(FORMAT))
    }

    /// Whether there is anything to send: a record in the file being written, or any file, even a file that
    /// [`LedgerStore::fetch`] leaves out because another store writes or leased it.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn has_data(&self) -> Result<bool> {
        let shared = self.sending()?;
        if shared.state().active.is_some() {
            return Ok(true);
        }
        Ok(!shared.directory.indexes().map_err(|e| e.of(FORMAT))?.is_empty())
    }

    /// Remove every file, also the file being written and files leased by any store. The files being written by other
    /// live stores stay, and the quarantine stays; indexes go on. A file that cannot be removed stays, too, and is an
    /// error after all other files are gone.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn reset(&self) -> Result<()> {
        self.sending()?.reset().map_err(|e| e.of(FORMAT))
    }
}

impl Shared {
    /// A look with the present limit: another store may have raised the limit.
    pub(super) fn looking(&self) -> Result<Looking> {
        Ok(Looking::new(&self.options, self.directory.kept_limit()?))
    }

    fn fetch(&self, count: Option<usize>, max_bytes: Option<u64>) -> Result<Option<DataResult>> {
        let mut removable = Vec::new();
        let fetched = self.fetch_leased(count, max_bytes, &mut removable);
        if fetched.is_err() {
            // The caller has no name for them.
            let _ = self.give_back_items(&removable);
        }
        let Some((readers, more)) = fetched? else { return Ok(None) };
        Ok(Some(DataResult { data: Some(readers), removable: Some(removable), more }))
    }

    /// The readers of the files, and whether there are more. The files go to `removable`.
    fn fetch_leased(
        &self,
        count: Option<usize>,
        max_bytes: Option<u64>,
        removable: &mut Vec<Removable>,
    ) -> Result<Option<(Vec<LedgerReader>, bool)>> {
        let wanted = count.unwrap_or(FETCH_FILES_MAX).min(FETCH_FILES_MAX);
        let looking = self.looking()?;
        let mut readers = Vec::new();
        let (mut bytes, mut unreadable) = (0u64, None);
        let mut indexes = self.directory.indexes()?.into_iter().peekable();
        while readers.len() < wanted {
            let (given, mut chosen) = (!readers.is_empty(), 0);
            let mut total = bytes;
            let fits = |file: &Finished| {
                total = total.saturating_add(file.len);
                chosen += 1;
                (!given && chosen == 1) || max_bytes.is_none_or(|max| total <= max)
            };
            let left = wanted - readers.len();
            let leased = self.lease_next(&mut indexes, left, fits, &mut unreadable)?;
            if leased.is_empty() {
                break;
            }
            for found in leased {
                match look(&looking, &found) {
                    Ok(seen) if seen.records == 0 => {
                        // On a full disk it may have to stay.
                        if let Err(e) = self.set_aside(&found, &seen) {
                            unreadable.get_or_insert(e);
                        }
                    }
                    Ok(seen) => {
                        bytes = bytes.saturating_add(found.len);
                        removable.push(self.removable(&found, &seen));
                        readers.push(LedgerReader::new(found, seen, self.around()));
                    }
                    Err(e) => {
                        seeded!("unreadable-file-stops-all" => return Err(e));
                        self.give_back(&self.directory.gate()?, [found.index]);
                        unreadable.get_or_insert(e);
                    }
                }
            }
        }
        match (removable.last(), unreadable) {
            (None, Some(error)) => return Err(error),
            (None, None) => return Ok(None),
            (Some(_), Some(error)) => {
                lines::warn(format_args!("a file was left out: {error}"));
            }
            (Some(_), None) => {}
        }
        if let Some(last) = removable.last() {
            // The caller may name a batch by the index.
            self.directory.show(&self.directory.gate()?, last.index)?;
        }
        let more = indexes.peek().is_some() && self.is_any_free(indexes)?;
        Ok(Some((readers, more)))
    }

    fn removable(&self, found: &Finished, seen: &Seen) -> Removable {
        // The specification drops records after damage. A record that only exceeds the limit is no
        // damage.
        let kept = self.options.on_corrupt != OnCorrupt::Stop || seen.beyond_limit;
        let quarantine = seen.withheld && kept;
        Removable { index: found.index, file: found.id, quarantine }
    }

    fn around(&self) -> Around {
        Around {
            header: (self.header)(),
            footer: (self.footer)(),
            separator: self.separator.clone(),
        }
    }

    /// Remove or quarantine a file with nothing to send.
    fn set_aside(&self, found: &Finished, seen: &Seen) -> Result<()> {
        let away = if seen.blank { Away::Removed } else { Away::Quarantined };
        let gate = self.directory.gate()?;
        let gone = self.directory.put_away(&gate, found.index, found.id, away);
        self.give_back(&gate, [found.index]);
        drop(gate);
        if gone? && away == Away::Quarantined {
            self.counters.quarantined();
        }
        self.state().lower_held();
        Ok(())
    }

    fn remove(&self, items: &[Removable]) -> Result<()> {
        let mut items = items.to_vec();
        items.sort_unstable_by_key(|item| item.index);
        let gate = self.directory.gate()?;
        let mut failed = None;
        for item in &items {
            if let Err(error) = self.remove_one(&gate, item) {
                failed.get_or_insert(error);
            }
        }
        self.give_back(&gate, items.iter().map(Removable::index));
        drop(gate);
        self.state().lower_held();
        match failed {
            Some(error) => Err(error),
            None => self.sync_removal(),
        }
    }

    fn remove_one(&self, gate: &Gate, item: &Removable) -> Result<()> {
        let away = if item.quarantine { Away::Quarantined } else { Away::Removed };
        let gone = self.directory.put_away(gate, item.index, item.file, away)?;
        if gone && item.quarantine {
            self.counters.quarantined();
        }
        Ok(())
    }

    /// Sync the removal if files are durable at all: no removed file is sent again after a power
    /// cut.
    fn sync_removal(&self) -> Result<()> {
        match self.options.durability {
            Durability::None => Ok(()),
            _ => self.directory.sync(),
        }
    }

    fn reset(&self) -> Result<()> {
        let mut state = self.state();
        self.finish_active(&mut state);
        let gate = self.directory.gate()?;
        let mut failed = None;
        let indexes = self.directory.indexes()?;
        for &index in &indexes {
            if let Err(error) = self.remove_finished(&gate, index) {
                failed.get_or_insert(error);
            }
        }
        self.give_back(&gate, indexes);
        state.held = None;
        if let Some(error) = failed {
            // A remaining file may be this store's, and waits for a sync.
            return Err(error);
        }
        state.unsynced.clear();
        drop(gate);
        drop(state);
        self.sync_removal()
    }

    fn remove_finished(&self, gate: &Gate, index: u32) -> Result<()> {
        let Some(found) = self.directory.finished(gate, index)? else { return Ok(()) };
        self.directory.put_away(gate, index, found.id, Away::Removed).map(drop)
    }
}
