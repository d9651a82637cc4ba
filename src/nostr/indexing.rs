//! Keeping the index with the segments.
//!
//! The index says up to where it covers the segments: of which compaction, and the byte of the last
//! segment. What it lacks is read from there on; where that place is not in the store, the index is
//! made again. After a power cut it may know more than the segments: then the place lies beyond their
//! end, or the log ends before the flags that it knows.

use std::path::Path;

use super::FORMAT;
use super::compaction::Moved;
use super::entry::Lsn;
use super::event::{Id, Location};
use super::hide::Flagged;
use super::index::{Change, Changes, Index};
use super::options::Options;
use super::pending::{Batch, KEYS_AT_ONCE, Known, keys_of};
use super::policy::Address;
use super::progress::Progress;
use super::segment::Found;
use super::store::{EventStore, State};
use crate::error::{ErrorKind, Result};
use crate::lines;
use crate::sidecar::sidecar_dir;

/// So many current versions are remembered; the index is asked for others.
const HEADS_KNOWN: usize = 65_536;
/// The name of its directory in `.deedbook`.
const INDEX_NAME: &str = "events";

/// Bytes of what it says that it covers.
pub(super) const COVERED_BYTES: usize = 24;

/// What an index covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Covered {
    /// The number of the compaction.
    compactions: u64,
    /// The last segment.
    segment: u32,
    /// Its end.
    end: u32,
    /// The last entry of the write-ahead log that asks for flags.
    flags: Lsn,
}

impl Covered {
    fn encode(self) -> [u8; COVERED_BYTES] {
        let mut bytes = [0; COVERED_BYTES];
        let (compactions, rest) = bytes.split_at_mut(8);
        let (segment, rest) = rest.split_at_mut(4);
        let (end, flags) = rest.split_at_mut(4);
        compactions.copy_from_slice(&self.compactions.to_be_bytes());
        segment.copy_from_slice(&self.segment.to_be_bytes());
        end.copy_from_slice(&self.end.to_be_bytes());
        flags.copy_from_slice(&self.flags.0.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&compactions, rest) = bytes.split_first_chunk()?;
        let (&segment, rest) = rest.split_first_chunk()?;
        let (&end, rest) = rest.split_first_chunk()?;
        let (&flags, []) = rest.split_first_chunk()? else { return None };
        Some(Self {
            compactions: u64::from_be_bytes(compactions),
            segment: u32::from_be_bytes(segment),
            end: u32::from_be_bytes(end),
            flags: Lsn(u64::from_be_bytes(flags)),
        })
    }
}

impl EventStore {
    /// Delete the index and make it again from the segments; returns how many events it has. Appends
    /// and queries wait.
    pub fn reindex(&self) -> Result<u64> {
        self.reindex_with(&mut |_, _| Ok(()))
    }

    /// The same; `progress` is called with bytes done and bytes in all. After an error of it the store
    /// has to be opened again, which makes the index. It must not call the store.
    pub fn reindex_with(&self, progress: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<u64> {
        let (shared, _) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        state.catch_up_index()?;
        // Its files are deleted: it must be closed before.
        state.index = None;
        let sidecar = sidecar_dir(&shared.dir);
        let made = state.remake_index(&shared.options, &sidecar, &mut Progress::new(progress));
        made.map_err(|error| {
            state.broken = Some(error.message().to_owned());
            error.of(FORMAT)
        })
    }
}

impl State {
    pub(super) fn remake_index(
        &mut self,
        options: &Options,
        sidecar: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        if options.index_on_disk {
            drop(Index::recreate(&sidecar.join(INDEX_NAME))?);
        }
        let indexed = self.open_index(options, sidecar, progress)?;
        self.index_durable()?;
        Ok(indexed)
    }

    /// Have the index cover the segments; returns how many events it lacked.
    pub(super) fn open_index(
        &mut self,
        options: &Options,
        sidecar: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let dir = sidecar.join(INDEX_NAME);
        let index = match options.index_on_disk {
            true => open_or_make(&dir)?,
            false => Index::in_memory(),
        };
        let covered = index.covered().ok().flatten();
        let from = covered.as_deref().and_then(Covered::decode).filter(|covered| {
            let open = self.segments.by_id.get(&covered.segment);
            covered.compactions == self.manifest.compactions
                && covered.flags <= self.flags_asked
                && open.is_some_and(|open| covered.end <= open.segment.end())
        });
        let index = match covered.is_some() && from.is_none() {
            true => {
                drop(index);
                Index::recreate(&dir)?
            }
            false => index,
        };
        let lacks_all = from.is_none() && self.segments.by_id.values().any(|open| open.has_pages());
        if lacks_all {
            lines::info(format_args!("the index is made from all events: {}", dir.display()));
        }
        let indexed = self.index_from(&index, from, progress)?;
        if lacks_all {
            lines::info(format_args!("the index is made: {indexed} events, {}", dir.display()));
        }
        self.index = Some(index.into());
        Ok(indexed)
    }

    /// Add the events of the segments from a place on.
    fn index_from(
        &self,
        index: &Index,
        from: Option<Covered>,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let first = from.map_or(0, |from| from.segment);
        let ends = self.segments.by_id.range(first..).map(|(_, open)| open.segment.end());
        progress.expect(ends.map(u64::from).sum());
        let mut indexed = 0;
        for (&id, _) in self.segments.by_id.range(first..) {
            let begin = from.filter(|from| from.segment == id).map_or(0, |from| from.end);
            indexed += self.index_segment(index, id, begin, progress)?;
        }
        progress.end()?;
        Ok(indexed)
    }

    fn index_segment(
        &self,
        index: &Index,
        id: u32,
        begin: u32,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let Some(open) = self.segments.by_id.get(&id) else { return Ok(0) };
        let mut scan = open.segment.scan(begin).with_names();
        let (mut changes, mut count, mut end) = (Changes::default(), 0, begin);
        let (compactions, flags) = (self.manifest.compactions, self.flags_asked);
        while let Some(found) = scan.next()? {
            match found {
                Found::Record(found) => {
                    end = found.end;
                    let at = Location { segment: id, offset: found.offset };
                    changes.push(Change::Insert(&found.event, at));
                    count += 1;
                    progress.add((found.end - found.offset).into())?;
                }
                Found::Damage(damage) => lines::warn(format_args!(
                    "what a damaged part of segment {id} held is not found: {}",
                    damage.reason
                )),
            }
            if changes.len() >= self.pending.keys_max() {
                // After a power cut that took these events, the place lies beyond the end of the segment,
                // and the index is made again.
                let covered = Covered { compactions, segment: id, end, flags };
                index.apply_all(&mut changes, Some(&covered.encode()))?;
            }
        }
        let covered = Covered { compactions, segment: id, end: open.segment.end(), flags };
        index.apply_all(&mut changes, Some(&covered.encode()))?;
        Ok(count)
    }

    /// Have the index know what was appended, and what lost its place: at the latest when it is asked.
    /// The caller noted what is known of it.
    pub(super) fn index_changes(&mut self, stored: Batch, flagged: &Flagged) -> Result<()> {
        self.pending.add(stored);
        let (mut buf, mut comes_back) = (Vec::new(), false);
        let mut changed = Batch::default();
        for (&at, &flags) in flagged {
            let found = self.segments.read(at, &mut buf)?;
            changed.bytes.extend_from_slice(found.bytes);
            changed.records.push((changed.bytes.len(), at));
            changed.keys += keys_of(&found.event);
            let Some(address) = Address::of(&found.event) else { continue };
            comes_back |= flags.is_live();
            // Those that wait for the index and came before it were replaced by it.
            let forgotten = Some(at).filter(|_| !flags.is_live());
            self.pending.forget_head(&address, forgotten);
            if forgotten.is_none() || self.heads.get(&address) == Some(&at) {
                self.heads.remove(&address);
            }
        }
        self.pending.add(changed);
        if comes_back {
            self.catch_up_index()
        } else if self.pending.is_due() {
            self.begin_to_index()
        } else {
            Ok(())
        }
    }

    /// Have a thread tell the index all there is.
    pub(super) fn begin_to_index(&mut self) -> Result<()> {
        let covered = self.covered().map(Covered::encode);
        let Some(index) = &self.index else { return Ok(()) };
        let done = self.pending.begin(index, covered)?;
        self.know_heads(done);
        Ok(())
    }

    /// Have the index know all there is.
    pub(super) fn catch_up_index(&mut self) -> Result<()> {
        let covered = self.covered().map(Covered::encode);
        let Some(index) = &self.index else { return Ok(()) };
        let before = self.pending.take(index, covered)?;
        let done = self.pending.wait(index)?;
        self.know_heads(before);
        self.know_heads(done);
        Ok(())
    }

    fn know_heads(&mut self, done: Option<Known>) {
        let done = done.filter(|known| !known.is_unsure).into_iter();
        done.flat_map(|known| known.heads).for_each(|(address, at)| self.know_head(address, at));
    }

    /// Where an event lies, whatever its flags.
    pub(super) fn location(&self, id: &Id) -> Result<Option<Location>> {
        match self.pending.all_known().find_map(|known| known.ids.get(id)) {
            Some(&at) => Ok(Some(at)),
            None => self.index()?.location(id),
        }
    }

    /// Where the version lies that counts, of those that can be read.
    pub(super) fn latest(&mut self, address: &Address) -> Result<Option<Location>> {
        let waiting = self.pending.all_known().find_map(|known| known.heads.get(address));
        if let Some(&at) = waiting.or_else(|| self.heads.get(address)) {
            return Ok(Some(at));
        }
        let mut buf = Vec::new();
        for at in self.index()?.versions(&address.pubkey, address.kind, &address.d)? {
            let at = at?;
            // The index may not know yet that it lost its place.
            let found = self.segments.read_intact(at, &mut buf)?;
            if found.is_some_and(|found| found.event.flags.is_live()) {
                self.know_head(address.clone(), at);
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn know_head(&mut self, address: Address, at: Location) {
        if self.heads.len() >= HEADS_KNOWN {
            self.heads.clear();
        }
        self.heads.insert(address, at);
    }

    /// Have the index say which version counts: several that were stored may count, the last one or not.
    pub(super) fn forget_heads(&mut self) {
        self.heads.clear();
        self.pending.known().is_unsure = true;
    }

    /// Where the events of an author and a kind lie that the index does not know yet.
    pub(super) fn versions_waiting(&self, address: &Address) -> impl Iterator<Item = Location> {
        let of = (address.pubkey, address.kind);
        let waiting = self.pending.all_known().filter_map(move |known| known.versions.get(&of));
        waiting.flatten().copied()
    }

    /// After a compaction: forget what went, while the old segments are there, and find the rest in the
    /// new ones.
    pub(super) fn index_moved(&mut self, moved: &Moved) -> Result<()> {
        self.catch_up_index()?;
        self.heads.clear();
        let (index, mut changes, mut buf) = (self.index()?, Changes::default(), Vec::new());
        for &at in &moved.gone {
            changes.push(Change::Remove(&self.segments.read(at, &mut buf)?.event));
            if changes.len() >= KEYS_AT_ONCE {
                index.apply_all(&mut changes, None)?;
            }
        }
        for &(id, created_at, at) in &moved.kept {
            changes.push(Change::Move(id, created_at, at));
            if changes.len() >= KEYS_AT_ONCE {
                index.apply_all(&mut changes, None)?;
            }
        }
        let covered = self.covered().map(Covered::encode);
        index.apply_all(&mut changes, covered.as_ref().map(|bytes| &bytes[..]))
    }

    /// Return when the index knows all there is, on stable storage as far as it is kept in files.
    pub(super) fn index_durable(&mut self) -> Result<()> {
        self.catch_up_index()?;
        self.index.as_deref().map_or(Ok(()), Index::sync)
    }

    fn covered(&self) -> Option<Covered> {
        let (&segment, open) = self.segments.by_id.iter().next_back()?;
        let (compactions, end) = (self.manifest.compactions, open.segment.end());
        Some(Covered { compactions, segment, end, flags: self.flags_asked })
    }
}

/// An index that cannot be opened is made again: all that it holds stands in the segments.
fn open_or_make(dir: &Path) -> Result<Index> {
    match Index::open(dir) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            lines::warn(format_args!("the index is made again: {error}"));
            Index::recreate(dir)
        }
        opened => opened,
    }
}
