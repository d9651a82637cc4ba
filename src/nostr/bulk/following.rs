//! Follow the appends and the changes of flags during a compaction.

use crate::error::{Error, Result};
use crate::nostr::bytes::event::{Flags, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::index::moved::Moved;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segments::{Segments, Source};
use crate::nostr::store::handle::{Shared, State};
use crate::retention::Archive;

/// The appended bytes and changed flags that a compaction leaves for the time when it holds the
/// store.
const REST_BYTES: u64 = 256 << 10;
const REST_FLAGS: usize = 1_000;
/// The rounds after which a compaction no longer waits for a small rest.
const ROUNDS_MAX: usize = 10;

impl Shared {
    /// Follow the old segments while other calls go on, until the rest is small; returns the last changes
    /// of flags. `sources` are the old segments as far as they are copied.
    pub(super) fn follow(
        &self,
        sources: &mut Vec<Source>,
        next: u32,
        targets: &mut Segments,
        moved: &mut Moved,
    ) -> Result<Vec<(Location, Flags)>> {
        let ids: Vec<u32> = sources.iter().map(|(old, _)| old.header().segment).collect();
        for _ in 0..ROUNDS_MAX {
            let (appended, changed, seen) = {
                let mut state = self.state();
                state.check(self)?;
                let changed = state.segments.changed.replace(Vec::new()).unwrap_or_default();
                if must_begin_again(&state, next, &changed) {
                    return Ok(changed);
                }
                let segments = &state.segments;
                (segments.appended_to(sources), changed, segments.sources(&ids))
            };
            let bytes: u64 = appended.iter().map(|(is, from)| u64::from(is.end() - from)).sum();
            if bytes < REST_BYTES && changed.len() < REST_FLAGS {
                return Ok(changed);
            }
            self.copy_later(&appended, &changed, next, targets, moved)?;
            *sources = seen;
        }
        Ok(Vec::new())
    }

    /// Give the copies the events and the flags that the old segments got since.
    pub(super) fn catch_up(
        &self,
        state: &State,
        (sources, changed): (&[Source], &[(Location, Flags)]),
        next: u32,
        targets: &mut Segments,
        moved: &mut Moved,
    ) -> Result<()> {
        if must_begin_again(state, next, changed) {
            self.discard(targets);
            *targets = state.segments.unfinished();
            let old: Vec<u32> = sources.iter().map(|(old, _)| old.header().segment).collect();
            let (sources, next) = (state.segments.sources(&old), state.manifest.next_segment_id);
            *moved = self.copy(&sources, &[], next, targets, &mut Progress::silent())?;
            return self.archive(&sources);
        }
        self.copy_later(&state.segments.appended_to(sources), changed, next, targets, moved)
    }

    /// Copy appended events, and set the flags of copies.
    fn copy_later(
        &self,
        appended: &[Source],
        changed: &[(Location, Flags)],
        next: u32,
        targets: &mut Segments,
        moved: &mut Moved,
    ) -> Result<()> {
        if !appended.is_empty() {
            moved.join(self.copy(appended, &[], next, targets, &mut Progress::silent())?);
        }
        for &(at, flags) in changed {
            if let Some(to) = moved.copy_of(at) {
                targets.set_flags_later(to, flags)?;
            }
        }
        targets.write_flags()?;
        targets.sync().map(drop)
    }

    /// Hand old segments to the archive.
    pub(super) fn archive(&self, old: &[Source]) -> Result<()> {
        let Some(Archive(hook)) = &self.options.archive else { return Ok(()) };
        for (segment, _) in old {
            let (id, path) = (segment.header().segment, segment.path());
            hook(id.into(), path)
                .map_err(|e| Error::io(&format!("archive segment {id}"), path, e).of(FORMAT))?;
        }
        Ok(())
    }
}

/// Whether the copies are of no use: the store began a segment with the number of a copy, or shows
/// a dropped event again.
fn must_begin_again(state: &State, next: u32, changed: &[(Location, Flags)]) -> bool {
    state.manifest.next_segment_id != next || changed.iter().any(|(_, flags)| flags.is_live())
}
