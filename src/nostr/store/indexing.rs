//! Keep the index in step with the segments.
//!
//! The index notes the end of its coverage: the number of compactions, and a byte of the last
//! segment. Opening adds the events from there on. If the store has no such place, opening builds a
//! new index. After a power cut the index may know more than the segments: then its place lies
//! beyond the segments' end, or the log ends before the flags that the index has. The index also
//! names its store (`index/covered.rs`), and each look-up compares the index with the stored event.

use std::mem::replace;
use std::path::Path;

use super::handle::{EventStore, Shared, State};
use super::hide::Flagged;
use crate::error::{ErrorKind, Result};
use crate::ground::lines;
use crate::mode::Mode;
use crate::nostr::bytes::event::{Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::policy::Address;
use crate::nostr::index::covered::{COVERED_BYTES, Covered, Ends};
use crate::nostr::index::files::lent::Lent;
use crate::nostr::index::lookup::{Change, Changes, Index};
use crate::nostr::index::pending::{Batch, Known, keys_of};
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::Found;
use crate::sidecar::sidecar_dir;

/// The name of the index directory in `.deedbook`.
const INDEX_NAME: &str = "events";

impl EventStore {
    /// Delete the index and build it again from the segments; returns the number of indexed events.
    /// Appends and queries wait.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)), and for damage; see
    /// [Errors](crate#errors).
    pub fn reindex(&self) -> Result<u64> {
        self.reindex_with(&mut |_, _| Ok(()))
    }

    /// Rebuild the index, and call `progress` with the bytes done and the total. After an error of
    /// `progress`, open the store again to build the index. `progress` must not call the store.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)), and for damage; see
    /// [Errors](crate#errors).
    pub fn reindex_with(&self, progress: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<u64> {
        let (shared, _) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        shared.remake_index(&mut state, &mut Progress::new(progress)).map_err(|e| e.of(FORMAT))
    }
}

impl Shared {
    fn remake_index(&self, state: &mut State, progress: &mut Progress<'_>) -> Result<u64> {
        state.catch_up_index()?;
        // The index must be closed before its files are deleted.
        state.index = None;
        // The old index was the source of the current versions and of the deletion requests.
        (state.heads, state.tombstones) = Default::default();
        let made = state.remake_index(&self.options, &sidecar_dir(&self.dir), progress);
        made.inspect_err(|error| state.broken = Some(error.message().to_owned()))
    }

    /// Run `ask`, which uses the index. If `ask` meets another event than the index says, the index
    /// belongs to another store: rebuild it, and ask again.
    pub(crate) fn asking_index<T>(
        &self,
        state: &mut State,
        mut ask: impl FnMut(&mut State) -> Result<T>,
    ) -> Result<T> {
        match ask(state) {
            Err(error) if state.index_is_foreign.take() => {
                if self.wal.is_none() {
                    // The reader scans from now on.
                    (state.index, state.lent) = (None, None);
                    return Err(error);
                }
                lines::warn(format_args!("the index is made again: {}", error.message()));
                self.remake_index(state, &mut Progress::silent())?;
                ask(state)
            }
            asked => asked,
        }
    }
}

/// Delete the index in the sidecar of a closed store; the next opening builds a new index.
pub fn drop_index(options: &Options, sidecar: &Path) -> Result<()> {
    match options.index_on_disk {
        true => Index::recreate(&sidecar.join(INDEX_NAME)).map(drop),
        false => Ok(()),
    }
}

impl State {
    pub(crate) fn remake_index(
        &mut self,
        options: &Options,
        sidecar: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        drop_index(options, sidecar)?;
        let indexed = self.open_index(options, sidecar, progress)?;
        self.index_durable()?;
        Ok(indexed)
    }

    /// Bring the index up to the segments; returns the number of added events.
    pub(crate) fn open_index(
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
        let mut from = covered.as_deref().and_then(Covered::decode).filter(|covered| {
            let open = self.segments.by_id.get(&covered.segment);
            covered.compactions == self.manifest.compactions
                && covered.flags <= self.flags_asked
                && open.is_some_and(|open| covered.end <= open.segment.end())
        });
        if let Some(covered) = from
            && !covered.ends.are_in(&self.segments)?
        {
            lines::warn(format_args!("the index is of another store: {}", dir.display()));
            from = None;
        }
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

    /// Give a reader a copy of the writer's index at its first query. Without an index, a reader
    /// scans.
    pub(super) fn ask_for_index(&mut self, options: &Options, dir: &Path) {
        if self.index.is_some() || !options.index_on_disk || replace(&mut self.has_asked, true) {
            return;
        }
        if let Err(error) = self.borrow_index(options, dir) {
            lines::warn(format_args!(
                "a reader without an index looks at all events for each query: {error}"
            ));
        }
    }

    /// Copy the writer's index, if the copy fits the segments that the reader opened.
    fn borrow_index(&mut self, options: &Options, dir: &Path) -> Result<()> {
        let Some((index, lent)) = Lent::of(&sidecar_dir(dir).join(INDEX_NAME))? else {
            return Ok(());
        };
        let covered = index.covered()?.as_deref().and_then(Covered::decode);
        let Some(covered) = covered.filter(|of| of.compactions == self.manifest.compactions) else {
            return Ok(());
        };
        // A power cut may have lost the end of the log, and the flags that the index has.
        if covered.flags.0 > self.manifest.last_checkpoint_lsn {
            let wal = EventWal::open_unread(&dir.join(WAL_NAME), Mode::Read, options.wal())?;
            if covered.flags >= wal.next_lsn() {
                return Ok(());
            }
        }
        let Some((&segment, open)) = self.segments.by_id.iter().next_back() else { return Ok(()) };
        let end = Location { segment, offset: open.segment.end() };
        let known = covered.ends.last.filter(|(at, _)| *at < end);
        if !(Ends { last: known, ..covered.ends }).are_in(&self.segments)? {
            return Ok(());
        }
        if (Location { segment: covered.segment, offset: covered.end }) < end {
            self.index_from(&index, Some(covered), &mut Progress::silent())?;
        }
        // The log's last events may have gone to a new segment, which this reader does not know.
        let last = self.ends()?.last;
        if last.map(|(_, id)| index.location(&id)).transpose()?.flatten() != last.map(|(at, _)| at)
        {
            return Ok(());
        }
        (self.index, self.lent) = (Some(index.until(end).into()), Some(lent));
        Ok(())
    }

    /// Add the events of the segments from a place on.
    fn index_from(
        &mut self,
        index: &Index,
        from: Option<Covered>,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let first = from.map_or(0, |from| from.segment);
        let ends = self.segments.by_id.range(first..).map(|(_, open)| open.segment.end());
        progress.expect(ends.map(u64::from).sum());
        let (mut indexed, searches) = (0, Searches::default());
        let last = from.and_then(|from| from.ends.last);
        let mut ends = Ends { last, ..self.ends()? };
        for (&id, _) in self.segments.by_id.range(first..) {
            let begin = from.filter(|from| from.segment == id).map_or(0, |from| {
                seeded!(from.end, "index-claims-all" => self.segments.by_id[&id].segment.end())
            });
            indexed += self.index_segment(index, (id, begin), (&mut ends, &searches), progress)?;
        }
        progress.end()?;
        Ok(indexed)
    }

    fn index_segment(
        &self,
        index: &Index,
        (id, begin): (u32, u32),
        (ends, searches): (&mut Ends, &Searches),
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let Some(open) = self.segments.by_id.get(&id) else { return Ok(0) };
        let mut scan = open.segment.scan(begin).with_names(searches);
        let (mut changes, mut count, mut end) = (Changes::default(), 0, begin);
        let (compactions, flags) = (self.manifest.compactions, self.flags_asked);
        while let Some(found) = scan.next()? {
            match found {
                Found::Record(found) => {
                    end = found.end;
                    let at = Location { segment: id, offset: found.offset };
                    ends.last = Some((at, found.event.id));
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
                // If a power cut loses these events, the place lies beyond the end of the segment,
                // and opening builds a new index.
                let covered = Covered { compactions, segment: id, end, flags, ends: *ends };
                index.apply_all(&mut changes, Some(&covered.encode()))?;
            }
        }
        let end = open.segment.end();
        let covered = Covered { compactions, segment: id, end, flags, ends: *ends };
        index.apply_all(&mut changes, Some(&covered.encode()))?;
        Ok(count)
    }

    /// Tell the index about appended and hidden events, at the latest before the next query. The
    /// caller has noted the same facts.
    pub(crate) fn index_changes(&mut self, stored: Batch, flagged: &Flagged) -> Result<()> {
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
            // The waiting events before this event were replaced by this event.
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

    /// Start a thread that gives the index all waiting changes.
    pub(super) fn begin_to_index(&mut self) -> Result<()> {
        let covered = self.covered()?;
        let Some(index) = &self.index else { return Ok(()) };
        let done = self.pending.begin(index, covered)?;
        self.know_heads(done);
        Ok(())
    }

    /// Give the index all waiting changes.
    pub(crate) fn catch_up_index(&mut self) -> Result<()> {
        let covered = self.covered()?;
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

    /// Give the index all changes, and wait until its files, if any, are on stable storage.
    pub(crate) fn index_durable(&mut self) -> Result<()> {
        self.catch_up_index()?;
        self.index.as_deref().map_or(Ok(()), Index::sync)
    }

    /// The coverage once the index has the waiting changes; `None` leaves the stored coverage.
    pub(crate) fn covered(&mut self) -> Result<Option<[u8; COVERED_BYTES]>> {
        if self.index.as_ref().is_some_and(|index| index.is_moving()) {
            return Ok(None);
        }
        let ends = self.ends()?;
        let Some((&segment, open)) = self.segments.by_id.iter().next_back() else {
            return Ok(None);
        };
        let (compactions, end) = (self.manifest.compactions, open.segment.end());
        let covered = Covered { compactions, segment, end, flags: self.flags_asked, ends };
        Ok(Some(covered.encode()))
    }

    /// The first and the last event.
    fn ends(&mut self) -> Result<Ends> {
        if let Some(ends) = self.ends.filter(|ends| ends.first.is_some()) {
            return Ok(ends);
        }
        let ends = Ends::of(&self.segments)?;
        self.ends = Some(ends);
        Ok(ends)
    }

    /// Note an event stored at the end.
    pub(crate) fn has_last(&mut self, at: Location, id: Id) {
        if let Some(ends) = &mut self.ends {
            ends.last = Some((at, id));
        }
    }
}

/// Rebuild an index that cannot be opened: the segments hold all its facts.
fn open_or_make(dir: &Path) -> Result<Index> {
    match Index::open(dir) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            lines::warn(format_args!("the index is made again: {error}"));
            Index::recreate(dir)
        }
        opened => opened,
    }
}
