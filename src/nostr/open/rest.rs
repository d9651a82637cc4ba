//! The end of a segment that goes on otherwise than the write-ahead log.
//!
//! It is cut there, and saved. The log has most of its events, and they are appended again. Those that the log lacks were
//! never acknowledged, or the log lost them: the intact ones stay. They are logged before the cut, so that a crash after
//! it loses none of them.

use std::collections::HashSet;

use crate::error::Result;
use crate::nostr::bytes::event::{Id, Location};
use crate::nostr::bytes::record;
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::now;
use crate::nostr::pages::segment::{Found, Record, Segment};
use crate::nostr::pages::segments::Segments;
use crate::scan::OnCorrupt;

/// Log the events that a segment has from a byte on, of those that `stays` says stay; gives the first entry.
pub fn log_rest(
    wal: &EventWal,
    segment: &Segment,
    from: u32,
    logged: &HashSet<Id>,
    mut stays: impl FnMut(&Record<'_>) -> bool,
) -> Result<Option<Lsn>> {
    let (first, mut seen) = (wal.next_lsn(), HashSet::new());
    let mut scan = segment.scan(from);
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found
            && !logged.contains(&found.event.id)
            && stays(&found)
            && seen.insert(found.event.id)
        {
            wal.append(&Entry::Insert { record: found.bytes }, now())?;
        }
    }
    if seen.is_empty() {
        return Ok(None);
    }
    wal.sync()?;
    Ok(Some(first))
}

/// Append what was logged, but for events that the segment has by now.
pub fn append_rest(wal: &EventWal, from: Lsn, segments: &mut Segments) -> Result<Vec<Location>> {
    let mut there = HashSet::new();
    let mut scan = segments.active()?.segment.scan(0);
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found {
            there.insert(found.event.id);
        }
    }
    let (mut places, mut entries) = (Vec::new(), wal.entries(from, OnCorrupt::Raise)?);
    while let Some(found) = entries.next()? {
        if let Entry::Insert { record } = found.entry
            && record::parse(record).is_ok_and(|event| there.insert(event.id))
        {
            places.extend(segments.append(&[record])?);
        }
    }
    Ok(places)
}
