//! Whether a manifest vouches for the segments. Such a manifest gives the end of the last segment,
//! and the entry of the log at which the segment continues. Opening, readers and `verify` ask here.
//! `open/redo.rs` uses the answer; without a manifest, `open/adopt.rs` runs.

use std::path::Path;

use super::belonging::{Belonging, Source};
use crate::error::Result;
use crate::nostr::log::entry::Lsn;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segments::Segments;

impl Belonging {
    /// The entry of the log and the byte after which the last segment continues, if a manifest of
    /// this program vouches for the segments.
    pub fn vouches(&self, segments: &Segments) -> Option<(Lsn, u32)> {
        let mut ids = segments.by_id.keys();
        let named = self.manifest.segments.iter().map(|named| named.id);
        let last = ids.clone().next_back().filter(|last| named.max() == Some(**last))?;
        let segment = &segments.by_id.get(last)?.segment;
        let end = self.manifest.pages_end(*last, segment.header().page_bytes)?;
        let is_cut = self.manifest.is_log_cut;
        let is_whole = self.is_current && !is_cut && ids.all(|id| self.manifest.names(*id));
        let after = self.manifest.checkpoint();
        let vouches = is_whole && after > Lsn(0) && end <= segment.end() && !segment.is_missing();
        vouches.then_some((after, end))
    }

    /// Make the manifest vouch for nothing until the next checkpoint, durably. The caller is about
    /// to cut the log, and the segments may then have more than the log. The checkpoint's number
    /// stays, so that a later repair can resume after a crash.
    pub fn stop_vouching(&mut self, options: &Options, dir: &Path) -> Result<()> {
        if self.may_be_of_others() {
            return Ok(());
        }
        self.manifest.is_log_cut = true;
        // Store the manifest even if unchanged: an earlier repair may have crashed before the
        // change was durable.
        self.manifest.store(options, dir)
    }

    /// The byte at which the last segment ended at the log's last checkpoint, from a manifest that
    /// does not vouch for the segments. A manifest that stopped vouching knows the byte for a cut
    /// log.
    pub fn covered(&self, segments: &Segments, checkpoint: Lsn) -> Option<u32> {
        let is_cut = self.source == Source::Manifest && self.manifest.is_log_cut;
        let is_last = checkpoint > Lsn(0) && self.manifest.checkpoint() == checkpoint;
        let (&last, open) = segments.by_id.last_key_value().filter(|_| is_cut || is_last)?;
        self.manifest.pages_end(last, open.segment.header().page_bytes)
    }
}

/// Make the manifest of a closed store vouch for nothing: a backup will replace the log.
pub fn stop_vouching(options: &Options, dir: &Path) -> Result<()> {
    Belonging::load(options, dir)?.0.stop_vouching(options, dir)
}
