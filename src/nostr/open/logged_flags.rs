//! Flags that the write-ahead log has and the segments may lack, for a reader.
//!
//! A writer logs the flags of what is replaced or deleted at once. The segments get them once the log is
//! synced, with a later call of the writer; one that died makes no later call. So a reader takes them from
//! the log when it opens a store, and keeps those that the segments lack in memory.
//!
//! The log is ahead of what a reader has seen of the segments: it may have a new version of a profile that these lack.
//! The reader gives that version from the log (`served_log.rs`). If the manifest does not belong to the log's last
//! checkpoint, the reader cannot do so. It then ignores the flags that were logged after such an event, and gives the
//! old version. The log has the events of one append before all their flags. While a segment has only some of these
//! events, the reader ignores all their flags, and gives the new version and the old one. If the writer dies there,
//! that lasts until the next opening for writing.

use std::collections::BTreeMap;
use std::path::Path;

use super::served_log::serve;
use crate::error::{ErrorKind, Result};
use crate::mode::Mode;
use crate::nostr::bytes::event::{Flags, Id, Location};
use crate::nostr::bytes::record;
use crate::nostr::log::entry::{Entry, WAL_NAME};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segments::Segments;
use crate::nostr::pages::walk::Step;

/// So often a reader looks at what a writer may be changing.
pub(crate) const READER_TRIES: u32 = 8;
/// With so many flags in memory, those go that the segments have by now. A writer leaves at most 65,536 of them
/// unwritten, and those of one call.
const FLAGS_MAX: usize = 131_072;
/// The same with small sizes.
const SMALL_FLAGS_MAX: usize = 2;
/// So many of the segments' last events are known to a reader.
const LAST_EVENTS: usize = 16;

/// Flags that hide events and that the segments lack.
pub(super) type Hiding = BTreeMap<Location, Flags>;

/// Have a reader's segments hide what the write-ahead log says is replaced or deleted, and go on with the events that
/// only the log has. Returns how many these are.
pub fn add_logged(
    options: &Options,
    dir: &Path,
    manifest: &Manifest,
    segments: &mut Segments,
) -> Result<u64> {
    if !options.storage.is_dir(&dir.join(WAL_NAME)) {
        return Ok(0);
    }
    let last = last_events(segments)?;
    let (mut logged, has_more) = logged_flags(&last, options, dir, segments)?;
    let served = if has_more { serve(options, dir, manifest, &last, segments)? } else { 0 };
    if served > 0 {
        // The flags that follow these events in the log count now.
        logged = logged_flags(&last_events(segments)?, options, dir, segments)?.0;
    }
    hide(&logged, segments)?;
    Ok(served)
}

pub(super) fn hide(logged: &Hiding, segments: &mut Segments) -> Result<()> {
    logged.iter().try_for_each(|(&at, &flags)| segments.set_flags_later(at, flags))
}

/// The flags, and whether the log has events after the last one of `last`.
pub(super) fn logged_flags(
    last: &[Id],
    options: &Options,
    dir: &Path,
    segments: &Segments,
) -> Result<(Hiding, bool)> {
    for _ in 0..READER_TRIES {
        match flags_up_to(last, options, dir, segments) {
            // A writer has removed a file whose flags are in the segments.
            Err(e) if e.kind() == ErrorKind::Missing => {}
            flags => return flags,
        }
    }
    Ok((BTreeMap::new(), false))
}

/// The last events that the segments have, the last one first. The log may lack some of them.
pub(super) fn last_events(segments: &Segments) -> Result<Vec<Id>> {
    let mut last = Vec::new();
    for open in segments.by_id.values().rev() {
        let mut scan = open.segment.reverse();
        while let Some(step) = scan.step()? {
            if let Step::Record(seen) = step {
                last.push(scan.looker().record(seen).event.id);
                if last.len() == LAST_EVENTS {
                    return Ok(last);
                }
            }
        }
    }
    Ok(last)
}

/// The flags that hide events and that the segments lack, up to those that were logged with one of the events
/// `last`.
fn flags_up_to(
    last: &[Id],
    options: &Options,
    dir: &Path,
    segments: &Segments,
) -> Result<(Hiding, bool)> {
    let is_passing = |kind| [ErrorKind::Io, ErrorKind::Missing].contains(&kind);
    let flags_max = if options.small { SMALL_FLAGS_MAX } else { FLAGS_MAX };
    let mut logged = Logged { flags: BTreeMap::new(), flags_max, left: 0 };
    // Whether an event was met, and none of `last` was since.
    let mut is_later = false;
    let mut take = |entry: Entry<'_>| {
        match entry {
            Entry::Insert { record } => {
                is_later = !record::parse(record).is_ok_and(|event| last.contains(&event.id));
                if !is_later {
                    logged.have_all_count();
                }
            }
            Entry::UpdateFlags { at, flags } => {
                logged.insert(
                    at,
                    Flags(flags).of_event(),
                    seeded!(is_later, "reader-hides-the-replaced" => false),
                    segments,
                )?;
            }
            // The segments have all that came before.
            Entry::Checkpoint => (logged.flags, is_later) = (BTreeMap::new(), false),
            Entry::IndexUpdate { .. } => {}
        }
        Ok(())
    };
    let wal = EventWal::open_unread(&dir.join(WAL_NAME), Mode::Read, options.wal());
    match wal.and_then(|wal| wal.each_to_replay(&mut take)) {
        Err(e) if is_passing(e.kind()) => Err(e),
        // What cannot be understood does not concern what comes before it: the next opening for writing
        // reports it.
        Ok(()) | Err(_) => Ok((logged.hiding(segments)?, is_later)),
    }
}

/// The flags that the log has, but for some that the segments have, too.
struct Logged {
    flags: BTreeMap<Location, Said>,
    flags_max: usize,
    /// How many were left when it was last looked which the segments have.
    left: usize,
}

/// What the log says of the flags of an event.
#[derive(Clone, Copy, Default)]
struct Said {
    counts: Option<Flags>,
    /// After an event that the segments may lack.
    later: Option<Flags>,
}

impl Logged {
    fn insert(
        &mut self,
        at: Location,
        flags: Flags,
        is_later: bool,
        segments: &Segments,
    ) -> Result<()> {
        let said = self.flags.entry(at).or_default();
        *(if is_later { &mut said.later } else { &mut said.counts }) = Some(flags);
        if self.flags.len() < self.flags_max.max(2 * self.left) {
            return Ok(());
        }
        let mut left = BTreeMap::new();
        for (&at, &said) in &self.flags {
            let (stored, newest) = (segments.stored_flags(at)?, said.later.or(said.counts));
            if stored.is_some() && stored != newest {
                left.insert(at, said);
            }
        }
        (self.left, self.flags) = (left.len(), left);
        Ok(())
    }

    /// The segments have the event before which all of this was logged.
    fn have_all_count(&mut self) {
        for said in self.flags.values_mut() {
            said.counts = said.later.take().or(said.counts);
        }
    }

    /// Those that hide events and that the segments lack. Of an event that is to be found again, the segment
    /// says when it is.
    fn hiding(&self, segments: &Segments) -> Result<Hiding> {
        let mut hiding = BTreeMap::new();
        for (&at, said) in &self.flags {
            let flags = said.counts.filter(|flags| !flags.is_live());
            if let (Some(flags), Some(stored)) = (flags, segments.stored_flags(at)?)
                && flags != stored
            {
                hiding.insert(at, flags);
            }
        }
        Ok(hiding)
    }
}
