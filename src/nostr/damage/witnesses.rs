//! Compare the witnesses of a store: segments, write-ahead log, manifest and copy. (The fourth
//! witness, the index, names its store: `index/covered.rs`.)
//!
//! Every event logged before the last checkpoint is in a segment, unless a compaction dropped the
//! event. A compaction leaves a marker in a segment, a number above 0 in the manifest, or gaps in
//! the numbers of segments. This program stores the manifest after a checkpoint and after each
//! compaction. The manifest vouches for all entries up to its checkpoint, and no compaction dropped
//! events from between its checkpoint and the log's last checkpoint.
//!
//! Opening, `verify`, `repair` and `salvage` ask here, and give one verdict.

use std::collections::HashSet;

use crate::error::Result;
use crate::nostr::bytes::event::Id;
use crate::nostr::log::entry::Lsn;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::segment::Found;
use crate::nostr::pages::segments::Segments;

/// The entries of the log whose events must be in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The manifest vouches up to this entry.
    after: Lsn,
    /// The last checkpoint of the log.
    up_to: Lsn,
    /// Whether a compaction may have dropped events from before.
    pub may_be_dropped: bool,
}

impl Expected {
    /// The entries for which no manifest vouches.
    pub fn beyond_manifest(manifest: &Manifest, segments: &Segments, checkpoint: Lsn) -> Self {
        let all = Self::all(manifest, segments, checkpoint);
        Self { after: all.after.max(manifest.checkpoint()), ..all }
    }

    /// All entries whose events no compaction can have dropped.
    pub fn all(manifest: &Manifest, segments: &Segments, checkpoint: Lsn) -> Self {
        let may_be_dropped = was_compacted(manifest, segments);
        // Without a manifest of this program, the time of the compaction is unknown.
        let before = match manifest.checkpoint() {
            Lsn(0) => checkpoint,
            named => named,
        };
        let after = if may_be_dropped { before } else { Lsn(0) };
        Self { after, up_to: checkpoint, may_be_dropped }
    }

    /// The entries after the last checkpoint, for a store without a vouching manifest.
    pub fn later(checkpoint: Lsn) -> Self {
        Self { after: checkpoint, up_to: Lsn(u64::MAX), may_be_dropped: false }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.after >= self.up_to
    }

    /// Whether the event of an entry must be in a segment.
    pub fn has(&self, lsn: Lsn) -> bool {
        self.after < lsn && lsn <= self.up_to
    }

    /// The first entry.
    pub fn first(&self) -> Lsn {
        Lsn(self.after.0.saturating_add(1))
    }
}

/// Whether a compaction may have dropped events.
fn was_compacted(manifest: &Manifest, segments: &Segments) -> bool {
    let follow = segments.by_id.keys().zip(0..).all(|(&id, number)| id == number);
    let marked = |segments: &Segments| {
        segments.by_id.values().any(|open| open.segment.header().compacted_at != 0)
    };
    manifest.compactions > 0 || !follow || marked(segments)
}

/// The events missing from all segments, and the number of damaged pages, which may have held them.
pub fn unstored(segments: &Segments, mut events: HashSet<Id>) -> Result<(HashSet<Id>, usize)> {
    let mut damaged = 0;
    // The last segment has most of them.
    for open in segments.by_id.values().rev() {
        let mut scan = open.segment.scan(0);
        while !events.is_empty()
            && let Some(found) = scan.next()?
        {
            match found {
                Found::Record(found) => drop(events.remove(&found.event.id)),
                Found::Damage(damage) => {
                    let page_bytes = open.segment.header().page_bytes.max(1);
                    damaged += ((damage.end - damage.offset) / page_bytes) as usize;
                }
            }
        }
    }
    Ok((events, damaged))
}

/// The message about missing events.
pub fn reason(count: usize, checkpoint: Lsn) -> String {
    let events = if count == 1 { "event" } else { "events" };
    format!(
        "the write-ahead log has {count} {events} from before its checkpoint with lsn {checkpoint}; no segment \
         has them"
    )
}

/// The message about missing events from after the last checkpoint.
pub fn reason_of_later(count: usize, checkpoint: Lsn) -> String {
    let events = if count == 1 { "event" } else { "events" };
    format!(
        "the write-ahead log has {count} {events} from after its checkpoint with lsn {checkpoint}; no segment \
         has them, and opening for writing appends them"
    )
}
