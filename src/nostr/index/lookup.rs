//! The lookup index of events: by id, author, kind, tag, time and address, newest first.
//!
//! The index is derived: the segments hold all its facts, so you may delete the index and build it
//! again. It lies in an embedded store, fjall. fjall opens and writes its own files; they bypass
//! [`crate::storage`].
//!
//! After a crash: each [`Index::apply`] is present whole or not at all, together with the position
//! it covers, and never without every earlier call. A crash of the process loses no call. A power
//! cut may lose the last calls since [`Index::sync`] (large calls sync themselves). The store then
//! reads [`Index::covered`] and applies the later events again; repeated changes do no harm. Damage
//! is [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) at opening or reading, because all blocks
//! have checksums. Then the store deletes the directory and builds a new index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::files::damaged;
use super::filter::Filter;
use super::keys;
use super::moved::Moved;
use super::query::{Query, Seen};
use super::table::Table;
use super::writes::Writes;
use crate::error::Result;
use crate::ground::locks::{Mutex, lock};
use crate::ground::slice::u32_be_at;
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::storage::fork_generation;

/// A change of the index.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The event is at this location. Queries find a live event in all ways, another event by its
    /// id only.
    Insert(&'a EventRef<'a>, Location),
    /// The event is deleted or replaced: only its id finds the event.
    Hide(&'a EventRef<'a>),
    /// No query finds the event any more.
    Remove(&'a EventRef<'a>),
    /// The event has moved: id, time and new location.
    Move(Id, u32, Location),
}

/// Changes to apply at once.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    writes: Writes,
    /// The last segment of an inserted event.
    last: Option<u32>,
    /// Whether an event moves.
    moves: bool,
}

impl Changes {
    /// The number of keys to write.
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
    /// The last segment of any event, and the last segment at the last move plus one. From the
    /// second number on, the location in a range is right without a look-up of the id.
    last: AtomicU32,
    unmoved_from: AtomicU32,
    /// The moves of a compaction that the table has in part.
    moving: Mutex<Option<Arc<Moved>>>,
    /// A reader knows no event from here on.
    until: Option<Location>,
    /// The fork generation at opening.
    fork_generation: u64,
}

impl Index {
    /// Open or create the index in a directory of its own.
    pub fn open(dir: &Path) -> Result<Self> {
        let table = Table::open(dir)?;
        // Without its journal, fjall forgets which changes views may see, and a view is empty.
        if table.get(keys::COVERED)? != table.view().get(keys::COVERED)? {
            return Err(damaged("its journal is gone").at(dir));
        }
        let segments = table.get(keys::SEGMENTS)?.unwrap_or_default();
        let at = |at| u32_be_at(&segments, at).unwrap_or_default().into();
        Ok(Self::over(table, at(0), at(4)))
    }

    /// Delete the index in a directory, and create an empty index. No handle may have the index
    /// open.
    pub fn recreate(dir: &Path) -> Result<Self> {
        Table::delete(dir)?;
        Self::open(dir)
    }

    /// An index in memory, dropped with its handle.
    pub fn in_memory() -> Self {
        Self::over(Table::in_memory(), 0.into(), 0.into())
    }

    /// Answer without the events from a location on.
    pub fn until(mut self, end: Location) -> Self {
        self.until = Some(end);
        self
    }

    fn over(table: Table, last: AtomicU32, unmoved_from: AtomicU32) -> Self {
        let (moving, fork_generation) = (Mutex::default(), fork_generation());
        Self { table, last, unmoved_from, moving, until: None, fork_generation }
    }

    /// Apply changes, and set the position that they bring the index to, all or nothing. Later
    /// changes of one event override earlier changes. One large call is much quicker than many
    /// small calls.
    pub fn apply(&self, changes: &[Change<'_>], covered: Option<&[u8]>) -> Result<()> {
        let mut writes = Changes::default();
        changes.iter().for_each(|&change| writes.push(change));
        self.apply_all(&mut writes, covered)
    }

    /// Apply and drain the changes; after an error all changes are still there.
    pub(crate) fn apply_all(&self, changes: &mut Changes, covered: Option<&[u8]>) -> Result<()> {
        if let Some(position) = covered {
            changes.writes.put(keys::COVERED, position);
        }
        if let Some(segment) = changes.last {
            // Raise the number before any event moves: a query that sees a move must know the
            // number.
            let (last, from) = self.raise(segment, changes.moves);
            changes.writes.put(keys::SEGMENTS, &keys::segments(last, from));
        }
        if changes.len() > 0 {
            self.table.write(&mut changes.writes)?;
        }
        *changes = Changes::default();
        Ok(())
    }

    /// Note an event in a segment; returns the last segment, and the first segment without moves.
    fn raise(&self, segment: u32, moves: bool) -> (u32, u32) {
        let last = self.last.fetch_max(segment, Ordering::SeqCst).max(segment);
        let from = if moves { last.saturating_add(1) } else { 0 };
        (last, self.unmoved_from.fetch_max(from, Ordering::SeqCst).max(from))
    }

    /// Answer with the new locations from now on, while the table gets the moves.
    pub fn begin_to_move(&self, moved: Arc<Moved>) {
        self.raise(moved.last(), true);
        *lock(&self.moving) = Some(moved);
    }

    /// Whether the table lacks some moves.
    pub fn is_moving(&self) -> bool {
        lock(&self.moving).is_some()
    }

    /// The table has all moves.
    pub fn has_moved(&self) {
        *lock(&self.moving) = None;
    }

    /// Sync all applied changes to stable storage.
    pub fn sync(&self) -> Result<()> {
        self.table.sync()
    }

    /// The position set by the last [`Index::apply`]; `None` for a new index.
    pub fn covered(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.table.get(keys::COVERED)?.map(|position| position.to_vec()))
    }

    /// The location of an event.
    pub fn location(&self, id: &Id) -> Result<Option<Location>> {
        let (found, moving) = (self.stored_location(id)?, lock(&self.moving));
        let found = found.filter(|at| self.until.is_none_or(|until| *at < until));
        Ok(found.and_then(|at| moving.as_ref().map_or(Some(at), |moved| moved.place_now(at))))
    }

    /// The location of an event in the table, which may lack some moves.
    pub fn stored_location(&self, id: &Id) -> Result<Option<Location>> {
        let Some(place) = self.table.get(&keys::id(id))? else { return Ok(None) };
        let (location, _) = keys::place_of(&place).ok_or_else(|| damaged("location too short"))?;
        Ok(Some(location))
    }

    /// Whether the index has this id.
    pub fn contains(&self, id: &Id) -> Result<bool> {
        Ok(self.location(id)?.is_some())
    }

    /// The locations of a replaceable or addressable event's versions, the newest first, and the
    /// lower id first within one second. The first live version is current. `d` matters only for
    /// addressable kinds.
    pub fn versions(&self, pubkey: &[u8; 32], kind: u16, d: &str) -> Result<Query> {
        self.versions_until(pubkey, kind, d, u32::MAX)
    }

    /// The versions up to a second, inclusive.
    pub(crate) fn versions_until(
        &self,
        pubkey: &[u8; 32],
        kind: u16,
        d: &str,
        until: u32,
    ) -> Result<Query> {
        Query::versions(self.seen(), pubkey, kind, d, until)
    }

    /// A snapshot of the locations of events that may match a filter, newest first, and by id
    /// within one second. The result includes every match. The caller reads each event for its
    /// flags, calls [`Filter::matches`], and counts up to the limit.
    pub fn query(&self, filter: &Filter) -> Result<Query> {
        self.query_any(std::slice::from_ref(filter))
    }

    /// The same for several filters; each event comes once.
    pub fn query_any(&self, filters: &[Filter]) -> Result<Query> {
        Query::new(self.seen(), filters)
    }

    fn seen(&self) -> Seen {
        // Take the view first: a move raises the number before it writes, so the number is never
        // too low.
        let view = self.table.view();
        let unmoved_from = self.unmoved_from.load(Ordering::SeqCst);
        Seen { view, unmoved_from, moving: lock(&self.moving).clone(), until: self.until }
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
