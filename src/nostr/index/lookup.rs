//! The lookup index of events: by id, author, kind, tag, time and address, newest first.
//!
//! The index is derived: all that it holds stands in the segments, so it may be deleted and made
//! again. It lies in an embedded store, fjall, which opens and writes its files itself; they do not
//! go through [`crate::storage`].
//!
//! What a crash leaves: each [`Index::apply`] is there as a whole or not at all, together with the
//! position that it covers, and no later one without all before it. The death of the process loses
//! none. A power cut may lose the last ones since [`Index::sync`] (large ones sync themselves), so the
//! store reads [`Index::covered`] and applies again what came after; to apply twice does no harm.
//! Damage is [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when the index is opened or read: all
//! blocks have checksums. Then the directory is deleted and the index made again.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::files::damaged;
use super::filter::Filter;
use super::keys;
use super::query::Query;
use super::table::{Table, View};
use super::writes::Writes;
use crate::error::Result;
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::slice::u32_be_at;
use crate::storage::fork_generation;

/// A change of what can be found.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The event lies there, and is found in all ways if it counts, else by its id only.
    Insert(&'a EventRef<'a>, Location),
    /// The event is found by its id only, as one that is replaced or deleted.
    Hide(&'a EventRef<'a>),
    /// The event is found no more.
    Remove(&'a EventRef<'a>),
    /// The event lies somewhere else now: id, time and the new location.
    Move(Id, u32, Location),
}

/// Changes to be made at once.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    writes: Writes,
    /// The last segment that it puts an event in.
    last: Option<u32>,
    /// Whether an event moves.
    moves: bool,
}

impl Changes {
    /// How many keys they write.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    pub fn push(&mut self, change: Change<'_>) {
        let writes = &mut self.writes;
        match change {
            Change::Insert(event, location) => {
                self.last = self.last.max(Some(location.segment));
                writes.put(&keys::id(&event.id), &keys::place(location, event.created_at));
                match event.flags.is_live() {
                    true => keys::each(event, location, |key, value| writes.put(key, value)),
                    false => keys::each(event, location, |key, _| writes.remove(key)),
                }
            }
            Change::Hide(event) => keys::each(event, NOWHERE, |key, _| writes.remove(key)),
            Change::Remove(event) => {
                writes.remove(&keys::id(&event.id));
                keys::each(event, NOWHERE, |key, _| writes.remove(key));
            }
            Change::Move(id, created_at, location) => {
                self.last = self.last.max(Some(location.segment));
                self.moves = true;
                writes.put(&keys::id(&id), &keys::place(location, created_at));
            }
        }
    }
}

/// A removal of a key needs no location.
const NOWHERE: Location = Location { segment: 0, offset: 0 };

/// A lookup index. Threads may share it.
pub struct Index {
    table: Table,
    /// The last segment of any event, and one more than it was when events last moved: from there on the
    /// location in a range holds, and the id need not be asked.
    last: AtomicU32,
    unmoved_from: AtomicU32,
    /// At opening.
    fork_generation: u64,
}

impl Index {
    /// Open the index in a directory of its own, or make it.
    pub fn open(dir: &Path) -> Result<Self> {
        let table = Table::open(dir)?;
        // Without its journal fjall forgets which changes views may see, and they see none.
        if table.get(keys::COVERED)? != table.view().get(keys::COVERED)? {
            return Err(damaged("its journal is gone").at(dir));
        }
        let segments = table.get(keys::SEGMENTS)?.unwrap_or_default();
        let at = |at| u32_be_at(&segments, at).unwrap_or_default().into();
        let (last, unmoved_from) = (at(0), at(4));
        Ok(Self { table, last, unmoved_from, fork_generation: fork_generation() })
    }

    /// Delete the index in a directory, and make an empty one. No handle may have it open.
    pub fn recreate(dir: &Path) -> Result<Self> {
        Table::delete(dir)?;
        Self::open(dir)
    }

    /// An index that is gone with its handle.
    pub fn in_memory() -> Self {
        let (table, last, unmoved_from) = (Table::in_memory(), 0.into(), 0.into());
        Self { table, last, unmoved_from, fork_generation: fork_generation() }
    }

    /// Make changes, and set the position that they bring the index to: all of it or nothing. Of
    /// changes to one event the later counts. Many at once are much quicker than many calls.
    pub fn apply(&self, changes: &[Change<'_>], covered: Option<&[u8]>) -> Result<()> {
        let mut writes = Changes::default();
        changes.iter().for_each(|&change| writes.push(change));
        self.apply_all(&mut writes, covered)
    }

    /// The same; no changes are left, but by an error all.
    pub(crate) fn apply_all(&self, changes: &mut Changes, covered: Option<&[u8]>) -> Result<()> {
        if let Some(position) = covered {
            changes.writes.put(keys::COVERED, position);
        }
        if let Some(segment) = changes.last {
            let last = self.last.fetch_max(segment, Ordering::SeqCst).max(segment);
            let from = if changes.moves { last.saturating_add(1) } else { 0 };
            // Before anything moves: a query that sees it move must know.
            let from = self.unmoved_from.fetch_max(from, Ordering::SeqCst).max(from);
            changes.writes.put(keys::SEGMENTS, &keys::segments(last, from));
        }
        if changes.len() > 0 {
            self.table.write(&mut changes.writes)?;
        }
        *changes = Changes::default();
        Ok(())
    }

    /// Put on stable storage all that was applied so far.
    pub fn sync(&self) -> Result<()> {
        self.table.sync()
    }

    /// The position that the last [`Index::apply`] set, as it was given; none in a new index.
    pub fn covered(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.table.get(keys::COVERED)?.map(|position| position.to_vec()))
    }

    /// The location of an event.
    pub fn location(&self, id: &Id) -> Result<Option<Location>> {
        let Some(place) = self.table.get(&keys::id(id))? else { return Ok(None) };
        let (location, _) = keys::place_of(&place).ok_or_else(|| damaged("location too short"))?;
        Ok(Some(location))
    }

    /// Whether there is an event with that id.
    pub fn contains(&self, id: &Id) -> Result<bool> {
        Ok(self.location(id)?.is_some())
    }

    /// Where the versions of a replaceable or addressable event lie, the newest first, and of one second
    /// that with the lower id: the first that still counts is the one. `d` matters only to addressable
    /// kinds.
    pub fn versions(&self, pubkey: &[u8; 32], kind: u16, d: &str) -> Result<Query> {
        self.versions_until(pubkey, kind, d, u32::MAX)
    }

    /// The same of those up to a second, which is included.
    pub(crate) fn versions_until(
        &self,
        pubkey: &[u8; 32],
        kind: u16,
        d: &str,
        until: u32,
    ) -> Result<Query> {
        Query::versions(self.seen(), pubkey, kind, d, until)
    }

    /// Where the events lie that a filter may match, newest first, and of one second by their ids:
    /// those in the index now, whatever is applied later. All that match are among them. The caller,
    /// which reads the event for its flags, asks [`Filter::matches`] and counts
    /// up to the limit.
    pub fn query(&self, filter: &Filter) -> Result<Query> {
        self.query_any(std::slice::from_ref(filter))
    }

    /// The same for several filters: each event once.
    pub fn query_any(&self, filters: &[Filter]) -> Result<Query> {
        Query::new(self.seen(), filters)
    }

    /// The index as it is now, and from which segment on no event moved.
    fn seen(&self) -> (View, u32) {
        // The view first: a move raises the number before it writes, so the number is never too low.
        let view = self.table.view();
        (view, self.unmoved_from.load(Ordering::SeqCst))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        if self.fork_generation != fork_generation() {
            self.table.leak();
        }
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.table {
            Table::Files { dir, .. } => f.debug_tuple("Index").field(dir).finish(),
            Table::Memory(_) => f.write_str("Index"),
        }
    }
}
