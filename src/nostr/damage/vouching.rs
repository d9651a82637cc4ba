//! Whether a manifest vouches for the segments: it says where the last one ends, and after which entry of the log it goes
//! on. Opening, readers and `verify` ask here. `open/redo.rs` goes by the answer, `open/adopt.rs` without one.

use std::path::Path;

use super::belonging::{Belonging, Source};
use crate::error::Result;
use crate::nostr::log::entry::Lsn;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segments::Segments;

impl Belonging {
    /// The entry of the log after which the last segment goes on, and the byte at which it does, if a manifest of this
    /// program vouches for the segments.
    pub fn vouches(&self, segments: &Segments, copies: &[u32]) -> Option<(Lsn, u32)> {
        let mut ids = segments.by_id.keys().filter(|id| !copies.contains(id));
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

    /// Have the manifest vouch for nothing until the next checkpoint, durably: the log is going to be cut, and the segments
    /// may have what it lacks then. The number of its checkpoint stays: a repair that a crash ends is taken up with it.
    pub fn stop_vouching(&mut self, options: &Options, dir: &Path) -> Result<()> {
        if self.may_be_of_others() {
            return Ok(());
        }
        self.manifest.is_log_cut = true;
        // Also where it says so already: an earlier repair may have died before that was durable.
        self.manifest.store(options, dir)
    }

    /// The byte at which the last segment ended at the log's last checkpoint, if a manifest knows it that does not vouch
    /// for the segments. A manifest that stopped vouching knows it of a log that was cut.
    pub fn covered(&self, segments: &Segments, checkpoint: Lsn) -> Option<u32> {
        let is_cut = self.source == Source::Manifest && self.manifest.is_log_cut;
        let is_last = checkpoint > Lsn(0) && self.manifest.checkpoint() == checkpoint;
        let (&last, open) = segments.by_id.last_key_value().filter(|_| is_cut || is_last)?;
        self.manifest.pages_end(last, open.segment.header().page_bytes)
    }
}

/// Have the manifest of a store that nobody has open vouch for nothing: a backup is going to give it another log.
pub fn stop_vouching(options: &Options, dir: &Path) -> Result<()> {
    Belonging::load(options, dir)?.0.stop_vouching(options, dir)
}
