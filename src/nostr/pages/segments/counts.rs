//! Count the dead bytes of each segment along with its writes, and take the counts of a manifest.

use super::dead::Dead;
use super::{Open, Segments};
use crate::error::Result;
use crate::nostr::bytes::event::{Flags, Location};
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::record::event_of_own;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::segment::{Found, Record};

impl Open {
    /// The bytes of dead events at a second, and of all events; `None` without a count.
    pub fn dead_and_all(&mut self, now: u64) -> Option<(u64, u64)> {
        let all = self.segment.end() - self.segment.header().page_bytes;
        Some((self.dead.as_mut()?.bytes(now)?, all.into()))
    }

    /// Take the count of a look at the segment, unless the segment changed since: `as_seen` is its
    /// end and `flags_set` then.
    pub fn take_count(&mut self, dead: Dead, as_seen: (u32, u64)) {
        if (self.segment.end(), self.flags_set) == as_seen {
            self.dead = Some(dead);
        }
    }

    /// Count appended records.
    pub(super) fn count_appended(&mut self, records: &[&[u8]]) {
        let Some(dead) = &mut self.dead else { return };
        for record in records {
            match event_of_own(record) {
                Ok(event) => dead.add(&event, self.segment.bytes_for(record.len())),
                Err(_) => {
                    self.dead = None;
                    return;
                }
            }
        }
    }

    /// Count new flags of a record, before reads see the flags.
    pub(super) fn count_flags(&mut self, offset: u32, flags: Flags) {
        self.flags_set += 1;
        let Some(dead) = &mut self.dead else { return };
        let mut buf = Vec::new();
        match self.segment.read_named(offset, &mut buf) {
            Ok(Record { event, offset, end, .. }) => {
                dead.change(&event, flags, (end - offset).into());
            }
            Err(_) => self.dead = None,
        }
    }
}

impl Segments {
    /// Take the counts of a manifest that vouches for the segments. `flagged` are the flags in the
    /// log after the manifest's checkpoint: the manifest may know some of them, because a manifest
    /// with a new segment comes between two checkpoints.
    pub fn take_counts(
        &mut self,
        manifest: &Manifest,
        flagged: &[(Location, Flags)],
    ) -> Result<()> {
        let last = self.last();
        for (&id, open) in self.by_id.iter_mut().filter(|(_, open)| open.dead.is_none()) {
            let segment = &open.segment;
            let end = manifest.pages_end(id, segment.header().page_bytes);
            let Some((kept, end)) = manifest.dead_of(id).zip(end) else { continue };
            let is_whole = end == segment.end() || Some(id) == last && end < segment.end();
            let is_counted = |at: &Location| at.segment == id && at.offset < end;
            if !is_whole || flagged.iter().any(|(at, _)| is_counted(at)) {
                continue;
            }
            let mut dead = Dead::from(kept);
            let mut scan = segment.scan(end).with_names(&Searches::default());
            while let Some(found) = scan.next()? {
                if let Found::Record(Record { event, offset, end, .. }) = found {
                    dead.add(&event, (end - offset).into());
                }
            }
            open.dead = Some(dead);
        }
        Ok(())
    }
}
