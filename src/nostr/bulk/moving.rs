//! Give the index the new places of a compaction, in portions between which other calls go on.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::ground::locks::atomic::Ordering;
use crate::nostr::bytes::event::Location;
use crate::nostr::index::covered::Covered;
use crate::nostr::index::lookup::{Change, Changes};
use crate::nostr::index::moved::Moved;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::Segment;
use crate::nostr::store::handle::{Shared, State};

/// The number of keys in a portion: some milliseconds of work.
const KEYS_AT_ONCE: usize = 1_000;
/// The pause after a portion, in which a waiting call gets the lock.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// The moves that the index lacks.
pub(crate) struct Moving {
    moved: Arc<Moved>,
    /// The old segments. Their files may be deleted.
    old: Vec<Segment>,
    /// The number of dropped and of copied events that the index knows.
    gone_done: usize,
    kept_done: usize,
}

impl Moving {
    fn next_gone(&self) -> Option<Location> {
        self.moved.gone.get(self.gone_done).copied()
    }
}

impl Shared {
    /// Give the index all moves. `progress` is called between the portions; its error comes after
    /// the last portion.
    pub(crate) fn move_index(&self, mut moving: Moving, progress: &mut Progress<'_>) -> Result<()> {
        let mut told = Ok(());
        loop {
            let is_closing = self.closing.load(Ordering::Acquire);
            let mut state = self.state();
            let more = state.move_some(&mut moving, is_closing);
            let more = more.inspect_err(|error| state.broken = Some(error.message().to_owned()))?;
            let index = state.index.clone();
            drop(state);
            if !more {
                // Without the sync, a power cut would cost a new index.
                index.map_or(Ok(()), |index| index.sync())?;
                return told;
            }
            told = told.and_then(|()| progress.again());
            if !is_closing {
                thread::sleep(PAUSE);
            }
        }
    }
}

impl State {
    /// Make look-ups answer with the new places, before the old segments go.
    pub(crate) fn begin_to_move(&mut self, moved: Moved, old: &[u32]) -> Result<Moving> {
        self.heads.clear();
        self.ends = None;
        let moved = Arc::new(Moved { old: old.to_vec(), ..moved });
        self.index()?.begin_to_move(moved.clone());
        let sources = self.segments.sources(old).into_iter();
        let old = sources.map(|(segment, _)| segment).collect();
        Ok(Moving { moved, old, gone_done: 0, kept_done: 0 })
    }

    /// Give the index the next moves; false after the last.
    fn move_some(&mut self, moving: &mut Moving, is_closing: bool) -> Result<bool> {
        // The writing thread may add a dropped event again.
        if self.pending.is_writing() {
            if !is_closing {
                return Ok(true);
            }
            self.catch_up_index()?;
        }
        let Some(index) = self.index.clone().filter(|index| index.is_moving()) else {
            // The index was made again meanwhile, or the handle is closed.
            return Ok(false);
        };
        let at_once = KEYS_AT_ONCE.min(self.pending.keys_max());
        let (mut changes, mut buf) = (Changes::default(), Vec::new());
        while changes.len() < at_once
            && let Some(at) = moving.next_gone()
        {
            let old = moving.old.iter().find(|old| old.header().segment == at.segment);
            if let Some(old) = old {
                let found = old.read_named(at.offset, &mut buf)?;
                // The event may be back, at another place.
                if index.stored_location(&found.event.id)? == Some(at) {
                    changes.push(Change::Remove(&found.event));
                }
            }
            moving.gone_done += 1;
        }
        let room = at_once.saturating_sub(changes.len());
        let kept = moving.moved.kept.iter().skip(moving.kept_done).take(room);
        for &(id, created_at, at) in kept {
            changes.push(Change::Move(id, created_at, at));
            moving.kept_done += 1;
        }
        let is_last = moving.kept_done == moving.moved.kept.len() && moving.next_gone().is_none();
        let mut covered = Some(Covered::MOVING.encode());
        if is_last {
            self.catch_up_index()?;
            index.has_moved();
            covered = self.covered()?;
        }
        index.apply_all(&mut changes, covered.as_ref().map(|bytes| &bytes[..]))?;
        Ok(!is_last)
    }
}
