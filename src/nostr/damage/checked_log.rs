//! Check the write-ahead log before an opening for writing changes any file.
//!
//! A refused opening leaves the files unchanged. Opening the log for writing cuts a torn end and
//! reserved room. So this check reads the log first, and refuses the store here.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::belonging::Belonging;
use super::witnesses::{Expected, reason, unstored};
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::names::{self, Searches};
use crate::nostr::bytes::page;
use crate::nostr::bytes::record;
use crate::nostr::log::entry::{Entry, Lsn, file_name};
use crate::nostr::log::files::{check_none_lost, numbers};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::records::Records;
use crate::scan::OnCorrupt;
use crate::storage::Storage;

/// The result of the check of a log whose store may be opened.
#[derive(Debug, Default)]
pub struct Checked {
    /// The entry of the log and the byte at which the last segment continues, if a manifest vouches
    /// for them. Otherwise opening adopts the store.
    pub vouched: Option<(Lsn, u32)>,
    /// Events from before the last checkpoint, missing from all segments: a repair appends them
    /// again.
    pub unstored: Records,
}

/// Refuse a store whose log does not match its segments and its manifest. `is_mended` says that a
/// repair will append the events missing from the segments.
pub fn check_log(
    options: &Options,
    dir: &Path,
    belonging: &Belonging,
    segments: &Segments,
    is_mended: bool,
) -> Result<Checked> {
    let (storage, manifest) = (&*options.storage, &belonging.manifest);
    if numbers(storage, dir)?.is_empty() {
        return check_is_there(storage, dir, manifest).map(|()| Checked::default());
    }
    let wal = EventWal::open_to_check(dir, options.wal())?;
    let next = wal.next_lsn();
    if manifest.checkpoint() >= next {
        let path = wal.paths().pop().unwrap_or_else(|| dir.join(file_name(0)));
        return Err(lost_log(&ends_before(next, manifest), &path));
    }
    if let Some((after, end)) = belonging.vouches(segments)
        && wal.has_checkpoint(after)?
    {
        // Read the log to its end before any change: a damaged log is refused, and the files stay
        // unchanged.
        let mut entries = wal.entries(after, OnCorrupt::Raise)?;
        while entries.next()?.is_some() {}
        return Ok(Checked { vouched: Some((after, end)), ..Checked::default() });
    }
    wal.find_checkpoint()?;
    let checkpoint = wal.last_checkpoint();
    if segments.by_id.is_empty() && checkpoint != Lsn(0) {
        let message =
            format!("no segment, but the write-ahead log has a checkpoint at {checkpoint}");
        return Err(Error::new(ErrorKind::LostRecords, message).at(&segments.dir));
    }
    events_of(&wal, options.page_size())?;
    let (mut lost, damaged_pages) = only_in(&wal, manifest, segments, checkpoint)?;
    if lost.len() > damaged_pages && !is_mended {
        let advice = "repair appends them again";
        let error = Error::new(ErrorKind::LostRecords, reason(lost.len(), checkpoint));
        return Err(error.with_advice(advice).at(&segments.dir));
    }
    if !is_mended {
        // The damage stays until a repair, and every check reports the damage.
        lost.clear();
    }
    let (mut records, searches) = (Records::default(), Searches::default());
    let mut entries = wal.entries(Lsn(0), OnCorrupt::Skip)?;
    while let Some(found) = entries.next()?.filter(|_| !lost.is_empty()) {
        if let Entry::Insert { record } = found.entry
            && let Ok((event, is_lossy)) = names::event_of(record, &searches)
            && lost.contains(&event.id)
        {
            // A checksum would promise that no names are lost.
            let checksums = options.checksums && !is_lossy;
            records.push(&event, &options.clone().checksums(checksums))?;
        }
    }
    Ok(Checked { vouched: None, unstored: records })
}

/// The events of the log from before its last checkpoint that no manifest vouches for and no
/// segment has.
fn only_in(
    wal: &EventWal,
    manifest: &Manifest,
    segments: &Segments,
    checkpoint: Lsn,
) -> Result<(HashSet<Id>, usize)> {
    let expected = Expected::beyond_manifest(manifest, segments, checkpoint);
    if expected.is_empty() {
        return Ok((HashSet::new(), 0));
    }
    let (mut events, mut entries) =
        (HashSet::new(), wal.entries(expected.first(), OnCorrupt::Skip)?);
    while let Some(found) = entries.next()? {
        if let Entry::Insert { record } = found.entry
            && expected.has(found.lsn)
            && let Ok(event) = record::parse(record)
        {
            events.insert(event.id);
        }
    }
    unstored(segments, events)
}

/// The events of the log after the last checkpoint, each with the bytes of pages before it.
pub fn events_of(wal: &EventWal, page_bytes: u32) -> Result<HashMap<Id, u64>> {
    let (mut events, mut entries) = (HashMap::new(), wal.replay(OnCorrupt::Raise)?);
    let mut before = 0;
    while let Some(found) = entries.next()? {
        if let Entry::Insert { record } = found.entry {
            if let Ok(event) = record::parse(record) {
                events.insert(event.id, before);
            }
            before += page::bytes_for(record.len() as u64, page_bytes);
        }
    }
    Ok(events)
}

/// Refuse a store if the write-ahead log has no file, although the manifest knows a checkpoint.
fn check_is_there(storage: &dyn Storage, dir: &Path, manifest: &Manifest) -> Result<()> {
    if manifest.checkpoint() == Lsn(0) {
        return Ok(());
    }
    // The error of a mark has more detail.
    check_none_lost(storage, dir, None)?;
    Err(lost_log(&no_log(manifest), &dir.join(file_name(0))).offset_at(0))
}

/// The reason to refuse a store without a log.
pub fn no_log(manifest: &Manifest) -> String {
    let (what, checkpoint) = (manifest.name(), manifest.checkpoint());
    format!(
        "the write-ahead log has no file, and so no entry; {what} names the checkpoint with lsn \
         {checkpoint}, after which events and flags may be lost"
    )
}

/// The reason to refuse a log that is older than the manifest.
pub fn ends_before(next: Lsn, manifest: &Manifest) -> String {
    let (what, checkpoint) = (manifest.name(), manifest.checkpoint());
    let last = next.0.saturating_sub(1);
    format!(
        "the write-ahead log ends with lsn {last}; {what} names the checkpoint with lsn {checkpoint}, after \
         which events and flags may be lost"
    )
}

fn lost_log(message: &str, path: &Path) -> Error {
    let advice = "a backup may have it; repair with accept_loss goes on without it";
    Error::new(ErrorKind::LostRecords, message).with_advice(advice).at(path)
}
