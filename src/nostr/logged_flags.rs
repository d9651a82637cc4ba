//! Flags that the write-ahead log has and the segments may lack, for a reader.
//!
//! A writer logs the flags of what is replaced or deleted at once. The segments get them once the log is
//! synced, with a later call of the writer; one that died makes no later call. So a reader takes them from
//! the log when it opens a store, and keeps those that the segments lack in memory.
//!
//! The log is ahead of what a reader has seen of the segments: it may have a new version of a profile that
//! these lack. What flags stand after such an event do not count yet, so that the reader has one version.

use std::collections::BTreeMap;
use std::path::Path;

use super::entry::Entry;
use super::event::{Flags, Id, Location};
use super::opening::{READER_TRIES, WAL_NAME};
use super::options::Options;
use super::record;
use super::segment::Segment;
use super::segments::Segments;
use super::walk::Step;
use crate::error::{Error, ErrorKind, Result};
use crate::mode::Mode;
use crate::scan::OnCorrupt;
use crate::storage::Access;

/// With so many flags in memory, those go that the segments have by now. A writer leaves at most 65,536 of them
/// unwritten, and those of one call.
const FLAGS_MAX: usize = 131_072;
/// The same with small sizes.
const SMALL_FLAGS_MAX: usize = 2;

/// Have a reader's segments hide what the write-ahead log says is replaced or deleted.
pub fn hide_logged(options: &Options, dir: &Path, segments: &mut Segments) -> Result<()> {
    if !options.storage.is_dir(&dir.join(WAL_NAME)) {
        return Ok(());
    }
    let last = last_event(segments)?;
    let mut logged = BTreeMap::new();
    for _ in 0..READER_TRIES {
        match flags_up_to(last, options, dir, segments) {
            // A writer has removed a file whose flags are in the segments.
            Err(e) if e.kind() == ErrorKind::Missing => {}
            flags => {
                logged = flags?;
                break;
            }
        }
    }
    for (at, flags) in logged {
        segments.set_flags_later(at, flags)?;
    }
    Ok(())
}

/// The same for a segment that is read alone, as a part of its store.
pub fn hide_logged_in(options: &Options, segment: Segment) -> Result<Segment> {
    let Some(dir) = segment.path().ancestors().nth(3).map(Path::to_owned) else {
        return Ok(segment);
    };
    let mut segments = Segments::new(&dir, options.storage.clone());
    if segment.path().parent() != Some(&*segments.dir) {
        return Ok(segment);
    }
    let id = segment.header().segment;
    // What is wrong with others does not concern this one.
    let unless_io = |e: Error| if e.kind() == ErrorKind::Io { Err(e) } else { Ok(()) };
    let files = segments.list().or_else(|e| unless_io(e).map(|()| BTreeMap::new()))?;
    if let Some((&last, path)) = files.last_key_value().filter(|(last, _)| **last > id) {
        segments.open(last, path, Access::Read, options).or_else(unless_io)?;
    }
    segments.insert(id, segment.clone());
    hide_logged(options, &dir, &mut segments)?;
    Ok(segments.by_id.remove(&id).map_or(segment, |open| open.segment))
}

/// The last event that the segments have.
fn last_event(segments: &Segments) -> Result<Option<Id>> {
    for open in segments.by_id.values().rev() {
        let mut scan = open.segment.reverse();
        while let Some(step) = scan.step()? {
            if let Step::Record(seen) = step {
                return Ok(Some(scan.looker().record(seen).event.id));
            }
        }
    }
    Ok(None)
}

/// The flags that hide events and that the segments lack, up to those that were logged with the event `last`.
fn flags_up_to(
    last: Option<Id>,
    options: &Options,
    dir: &Path,
    segments: &Segments,
) -> Result<BTreeMap<Location, Flags>> {
    let is_passing = |kind| [ErrorKind::Io, ErrorKind::Missing].contains(&kind);
    let wal = match options.wal().open(dir.join(WAL_NAME), Mode::Read) {
        Err(e) if is_passing(e.kind()) => return Err(e),
        // What is wrong with it does not concern what can be read.
        Err(_) => return Ok(BTreeMap::new()),
        Ok(wal) => wal,
    };
    let flags_max = if options.small { SMALL_FLAGS_MAX } else { FLAGS_MAX };
    let mut logged = Logged { flags: BTreeMap::new(), flags_max, left: 0 };
    // Whether an event was met, and `last` was not since.
    let mut is_later = false;
    let mut entries = wal.replay(OnCorrupt::Skip)?;
    loop {
        let entry = match entries.next() {
            Ok(Some(logged)) => logged.entry,
            Err(e) if is_passing(e.kind()) => return Err(e),
            // Of an entry that cannot be understood, the next opening for writing tells.
            Ok(None) | Err(_) => break,
        };
        match entry {
            Entry::Insert { record } => {
                is_later = !record::parse(record).is_ok_and(|event| Some(event.id) == last);
                if !is_later {
                    logged.have_all_count();
                }
            }
            Entry::UpdateFlags { at, flags } => {
                logged.insert(at, Flags(flags).of_event(), is_later, segments)?;
            }
            Entry::IndexUpdate { .. } | Entry::Checkpoint => {}
        }
    }
    logged.hiding(segments)
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
    fn hiding(&self, segments: &Segments) -> Result<BTreeMap<Location, Flags>> {
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
