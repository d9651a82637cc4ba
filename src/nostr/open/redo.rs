//! Redo: the segments get the state of the manifest, followed by the events of the write-ahead log.
//!
//! The store writes the manifest after the segments' sync, and before it drops files of the log. So
//! the manifest alone gives the end of the last segment, and the entry at which the log continues.
//! Opening appends the log's events after this entry. A writer logs an event before the append, so
//! pages that differ from the log were never acknowledged: opening saves them to a file next to the
//! segment, and cuts them.
//!
//! Pages that already hold the log's next record stay, and are written again, because they may be
//! in the cache only. After a failed sync, the cache marks such pages as written, and no later sync
//! writes them.
//!
//! A reader does the same in memory: its last segment continues with the missing records
//! (`Overlay`).

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::nostr::bytes::event::{Flags, Location};
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::log::replay::Replay;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::opened::{OpenReport, Tail};
use crate::scan::OnCorrupt;

/// Bring a writer's segments in line with the log. By the manifest, the last segment ends at byte
/// `end` before entry `after`.
pub fn redo(
    wal: &EventWal,
    after: Lsn,
    end: u32,
    segments: &mut Segments,
    file_mode: u32,
    opening: &mut OpenReport,
) -> Result<Tail> {
    // Sync the log first: a power cut could keep pages or flags written below, and lose the log's
    // end.
    wal.sync()?;
    let segment = segments.active()?.segment.header().segment;
    let (mut at, mut is_cut, mut tail) = (end, false, Tail::default());
    let mut entries = wal.entries(Lsn(after.0.saturating_add(1)), OnCorrupt::Raise)?;
    opening.replayed = each_entry(&mut entries, &mut tail, &mut |record| {
        if !is_cut && let Some(next) = segments.write_again(at, record)? {
            let offset = std::mem::replace(&mut at, next);
            return Ok(Location { segment, offset });
        }
        if !std::mem::replace(&mut is_cut, true) {
            cut(segments, at, file_mode, opening)?;
        }
        opening.appended_again += 1;
        append(segments, record)
    })?;
    if !is_cut {
        cut(segments, at, file_mode, opening)?;
    }
    set_flags(segments, &mut tail, opening)?;
    Ok(tail)
}

/// Redo in memory for a reader. Damage of the log is an error, and leaves the segments unchanged.
pub fn redo_in_memory(
    wal: &EventWal,
    after: Lsn,
    end: u32,
    segments: &mut Segments,
) -> Result<u64> {
    let segment = segments.active()?.segment.header().segment;
    let (mut at, mut more, mut tail) = (end, Vec::new(), Tail::default());
    let mut entries = wal.entries(Lsn(after.0.saturating_add(1)), OnCorrupt::Raise)?;
    each_entry(&mut entries, &mut tail, &mut |record| {
        let next = match more.is_empty() {
            true => segments.active()?.segment.end_of_same(at, record)?,
            false => None,
        };
        match next {
            Some(next) => at = next,
            None => more.push(record.to_vec()),
        }
        Ok(Location { segment, offset: at })
    })?;
    let active = segments.active()?;
    let served = more.len() as u64;
    active.segment = active.segment.clone().ending_at(at);
    let more = seeded!(more, "reader-hides-the-replaced" => Vec::new());
    if !more.is_empty() && !active.segment.go_on_in_memory(&more) {
        let message =
            "the records of the write-ahead log are not made for the pages of the last segment";
        return Err(Error::new(ErrorKind::Corrupt, message).at(active.segment.path()));
    }
    // The last flags of an event count.
    for (at, flags) in tail.flagged.into_iter().collect::<BTreeMap<_, _>>() {
        if segments.stored_flags(at)?.is_some_and(|stored| stored != flags) {
            segments.set_flags_later(at, flags)?;
        }
    }
    Ok(served)
}

/// Call `put` with each record, to learn its location; the tail gets the locations and the flags.
/// Returns the number of entries.
pub(super) fn each_entry(
    entries: &mut Replay,
    tail: &mut Tail,
    put: &mut dyn FnMut(&[u8]) -> Result<Location>,
) -> Result<u64> {
    let (mut count, mut group_is_whole) = (0, false);
    while let Some(found) = entries.next()? {
        count += 1;
        match found.entry {
            Entry::Insert { record } => {
                // Flags follow their records in the log.
                if std::mem::take(&mut group_is_whole) {
                    tail.last.clear();
                }
                tail.last.push(put(record)?);
            }
            Entry::UpdateFlags { at, flags } => {
                group_is_whole = true;
                tail.flagged.push((at, Flags(flags).of_event()));
            }
            Entry::IndexUpdate { .. } | Entry::Checkpoint => {}
        }
    }
    Ok(count)
}

/// Set the log's flags, and keep the flags of readable events.
pub(super) fn set_flags(
    segments: &mut Segments,
    tail: &mut Tail,
    opening: &mut OpenReport,
) -> Result<()> {
    // Only a repair continues without a segment named in the log. Events after the end of a segment
    // are lost.
    tail.flagged.retain(|(at, _)| {
        let open = segments.by_id.get(&at.segment);
        open.is_some_and(|open| at.offset < open.segment.end())
    });
    let mut buf = Vec::new();
    for (at, flags) in std::mem::take(&mut tail.flagged) {
        let Some(found) = segments.read_intact(at, &mut buf)? else { continue };
        opening.flags_set_again += u64::from(found.event.flags.of_event() != flags);
        // Write flags even if unchanged, because they may be in the cache only.
        segments.set_flags(at, flags)?;
        tail.flagged.push((at, flags));
    }
    Ok(())
}

/// End the last segment at a byte, after saving the bytes after it.
pub(super) fn cut(
    segments: &mut Segments,
    at: u32,
    file_mode: u32,
    opening: &mut OpenReport,
) -> Result<()> {
    if let Some(saved) = segments.cut(at, file_mode)? {
        lines::warn(format_args!(
            "a segment goes on otherwise than the write-ahead log: cut at byte {at}, the rest is saved ({})",
            saved.display()
        ));
        opening.saved.push(saved);
    }
    Ok(())
}

/// Append one record to the last segment.
pub(super) fn append(segments: &mut Segments, record: &[u8]) -> Result<Location> {
    let place = segments.append(&[record])?.pop();
    place.ok_or_else(|| Error::new(ErrorKind::InvalidArgument, "a record without a place"))
}
