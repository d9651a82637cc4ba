//! A reader's view of a store, read without changes to any file.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::redo::redo_in_memory;
use crate::error::{Error, ErrorKind, Result};
use crate::log::with_patience;
use crate::mode::Mode;
use crate::nostr::bytes::event::{Flags, Id};
use crate::nostr::bytes::page::is_page_bytes;
use crate::nostr::bytes::record;
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::log::entry::{Entry, WAL_NAME};
use crate::nostr::log::files::numbers;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, Segment};
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::State;
use crate::nostr::store::opened::OpenReport;
use crate::scan::{Damage, OnCorrupt};
use crate::sidecar::{Loss, sidecar_dir};
use crate::storage::Access;

/// The number of times a reader retries while a writer may be changing the store.
pub(crate) const READER_TRIES: u32 = 8;
/// The most missing numbers that a reader without a manifest names.
const GAPS_MAX: usize = 1000;

/// Read the store as a reader. On the last try, a missing segment is damage.
pub(super) fn look(dir: &Path, options: &Options, is_last: bool) -> Result<(OpenReport, State)> {
    let (belonging, files) = Belonging::load(options, dir)?;
    let mut segments = Segments::new(dir, options.storage.clone());
    if files.is_empty() && belonging.missing(&files).is_empty() {
        return Err(Error::new(ErrorKind::Missing, "no event store there").at(dir));
    }
    if !is_last {
        belonging.check_none_missing(&files, &segments.dir)?;
    }
    for (&id, path) in files.iter().filter(|(id, _)| !belonging.passes_over(**id)) {
        segments.open(id, path, Access::Read, options)?;
    }
    belonging.expect_all_pages(&mut segments);
    segments.forget(&belonging.begun(&segments));
    let is_whole = options.storage.is_dir(&dir.join(WAL_NAME));
    if !is_last {
        belonging.check_no_gap(&segments, is_whole)?;
    }
    let gap = belonging.gap(&segments, is_whole);
    stand_in(&belonging, &files, gap, &mut segments)?;
    let appended_again = go_on(options, dir, &belonging, &mut segments, is_last)?;
    let manifest_rebuilt = belonging.is_rebuilt();
    let is_noted = Loss::load(&*options.storage, &sidecar_dir(dir))?.is_some();
    let is_loss = is_noted || segments.lack_pages() || belonging.foreign(&segments).is_some();
    let opening = OpenReport { appended_again, manifest_rebuilt, is_loss, ..OpenReport::default() };
    Ok((opening, State::new(belonging.manifest, segments)))
}

/// Retry until no writer interferes: a compaction or a checkpoint removes named files. `look`
/// learns whether the try is the last.
pub(super) fn patiently<T>(look: impl Fn(bool) -> Result<T>) -> Result<T> {
    let kinds = [ErrorKind::Missing, ErrorKind::LostRecords];
    match with_patience(READER_TRIES - 1, Duration::ZERO, &kinds, || look(false)) {
        Err(e) if kinds.contains(&e.kind()) => look(true),
        looked => looked,
    }
}

/// A single segment as part of its store, with the view of a reader of the whole store. Each part
/// reads the log. Errors of other segments do not matter here.
pub fn look_at_one(options: &Options, segment: Segment) -> Result<Segment> {
    let id = segment.header().segment;
    let Some(dir) = segment.path().ancestors().nth(3) else { return Ok(segment) };
    if segment.path().parent() != Some(&*Segments::new(dir, options.storage.clone()).dir) {
        return Ok(segment);
    }
    let looked = patiently(|is_last| {
        let (belonging, files) = Belonging::load(options, dir)?;
        let mut segments = Segments::new(dir, options.storage.clone());
        segments.insert(id, segment.clone());
        let last = files.iter().rfind(|(id, _)| !belonging.passes_over(**id));
        if let Some((&last, path)) = last.filter(|(last, _)| **last != id) {
            let opened = segments.open(last, path, Access::Read, options);
            opened.or_else(|e| if e.kind() == ErrorKind::Io { Err(e) } else { Ok(()) })?;
        }
        go_on(options, dir, &belonging, &mut segments, is_last)?;
        Ok(segments.by_id.remove(&id).map(|open| open.segment))
    });
    match looked {
        Err(e) if e.kind() == ErrorKind::Io => Err(e),
        Err(_) | Ok(None) => Ok(segment),
        Ok(Some(looked)) => Ok(looked),
    }
}

/// Extend a reader's segments with the events of the write-ahead log. Returns how many events only
/// the log has.
fn go_on(
    options: &Options,
    dir: &Path,
    belonging: &Belonging,
    segments: &mut Segments,
    is_last: bool,
) -> Result<u64> {
    let wal_dir = dir.join(WAL_NAME);
    if numbers(&*options.storage, &wal_dir)?.is_empty() {
        return Ok(0);
    }
    let concerns = |e: &Error| [ErrorKind::Io, ErrorKind::Missing].contains(&e.kind());
    let wal = match EventWal::open_unread(&wal_dir, Mode::Read, options.wal()) {
        Err(e) if concerns(&e) => return Err(e),
        // `verify` reports the damage of the log.
        Err(_) => return Ok(0),
        Ok(wal) => wal,
    };
    if let Some((after, end)) = belonging.vouches(segments) {
        let redone = match wal.has_checkpoint(after)? {
            true => redo_in_memory(&wal, after, end, segments),
            // A writer has made a later checkpoint, and dropped the entry of this checkpoint.
            false if !is_last => {
                return Err(Error::new(ErrorKind::Missing, "no checkpoint").at(dir));
            }
            false => Err(Error::new(ErrorKind::LostRecords, "no checkpoint").at(dir)),
        };
        match redone {
            Err(e) if concerns(&e) => return Err(e),
            // Read the segments as they are; opening for writing refuses the store.
            Err(_) => {}
            redone => return redone,
        }
    }
    leave_unfinished(options, dir, segments)?;
    match wal.find_checkpoint().and_then(|()| hide_logged(&wal, segments)) {
        Err(e) if concerns(&e) => Err(e),
        Err(_) | Ok(()) => Ok(0),
    }
}

/// The pages of the last segment from the first event on that the log lacks, under a vouching
/// manifest. Opening for writing saves these pages.
pub fn beyond_log(
    options: &Options,
    dir: &Path,
    belonging: &Belonging,
    segments: &mut Segments,
) -> Result<Option<Damage>> {
    let Some((_, from)) = belonging.vouches(segments) else { return Ok(None) };
    let stored = segments.active()?.segment.clone();
    go_on(options, dir, belonging, segments, true)?;
    let (mut logged, mut scan) = (HashSet::new(), segments.active()?.segment.scan(from));
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found {
            logged.insert(found.event.id);
        }
    }
    let mut scan = stored.scan(from);
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found
            && !logged.contains(&found.event.id)
        {
            let (offset, end) = (u64::from(found.offset), u64::from(stored.end()));
            let reason = format!(
                "the write-ahead log lacks the event at byte {offset}; opening for writing saves the segment from there \
                 to byte {end}"
            );
            return Ok(Some(Damage::of_file(stored.path(), offset..end, reason)));
        }
    }
    Ok(None)
}

/// Hide the events that the log replaces or deletes, without a vouching manifest. The segments may
/// lack events of the log. Only the flags up to the segments' last event count, and the flags
/// directly after.
fn hide_logged(wal: &EventWal, segments: &mut Segments) -> Result<()> {
    let (mut stored, mut scan) = (HashSet::new(), segments.active()?.segment.scan(0));
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found {
            stored.insert(found.event.id);
        }
    }
    let (mut flagged, mut count, mut is_later) = (Vec::new(), 0, false);
    let mut entries = wal.replay(OnCorrupt::Skip)?;
    while let Some(found) = entries.next()? {
        match found.entry {
            Entry::Insert { record } => {
                is_later = !record::parse(record).is_ok_and(|event| stored.contains(&event.id));
            }
            Entry::UpdateFlags { at, flags } => flagged.push((at, Flags(flags).of_event())),
            Entry::IndexUpdate { .. } | Entry::Checkpoint => {}
        }
        if !is_later {
            count = flagged.len();
        }
    }
    flagged.truncate(count);
    // The last flags of an event count.
    for (at, flags) in flagged.into_iter().collect::<BTreeMap<_, _>>() {
        let stored = segments.stored_flags(at)?;
        if !flags.is_live() && stored.is_some_and(|stored| stored != flags) {
            segments.set_flags_later(at, flags)?;
        }
    }
    Ok(())
}

/// Count the events of a missing segment as damage, as for lost pages.
fn stand_in(
    belonging: &Belonging,
    files: &BTreeMap<u32, PathBuf>,
    gap: Option<(u32, u32)>,
    segments: &mut Segments,
) -> Result<()> {
    let of_others = segments.by_id.values().next().map(|open| open.segment.header().page_bytes);
    let of_manifest = Some(belonging.manifest.page_bytes).filter(|&size| is_page_bytes(size));
    let page_bytes = of_others.or(of_manifest).unwrap_or(4096);
    for id in belonging.missing(files) {
        let end = belonging.manifest.pages_end(id, page_bytes).unwrap_or_default();
        segments.insert_missing(id, page_bytes, end)?;
    }
    let numbers = gap.into_iter().flat_map(|(first, last)| first..last);
    for id in numbers.filter(|id| !files.contains_key(id)).take(GAPS_MAX) {
        segments.insert_missing(id, page_bytes, 0)?;
    }
    Ok(())
}

/// End a reader's view before a partial record of the last segment, if the write-ahead log has the
/// event. A writer is appending the record, or the next writer will complete it. The partial record
/// is no damage.
fn leave_unfinished(options: &Options, dir: &Path, segments: &mut Segments) -> Result<()> {
    let mut before = None;
    for _ in 0..READER_TRIES {
        let Some(open) = segments.by_id.values_mut().next_back() else { return Ok(()) };
        let Some(record) = open.segment.unfinished()? else { return Ok(()) };
        let place = (record.offset, open.segment.end());
        let earlier = before.replace(place);
        // The next try sees the bytes written meanwhile. A fast writer may change every try.
        if !record.has_come || earlier.is_some() {
            if is_logged(options, dir, record.id)? {
                open.segment = open.segment.clone().until(record.offset);
                return Ok(());
            }
            // The record may be whole by now, and the log empty. A record unchanged at the second
            // try is damage.
            if earlier == Some(place) {
                return Ok(());
            }
        }
        let (last, path) = (open.segment.header().segment, open.segment.path().to_owned());
        segments.open(last, &path, Access::Read, options)?;
    }
    Ok(())
}

/// Whether the write-ahead log has an event after its last checkpoint.
fn is_logged(options: &Options, dir: &Path, id: Id) -> Result<bool> {
    let wal = match options.wal().open(dir.join(WAL_NAME), Mode::Read) {
        Err(e) if e.kind() == ErrorKind::Io => return Err(e),
        // `verify` reports errors of the log. The segments are readable without the log.
        Err(_) => return Ok(false),
        Ok(wal) => wal,
    };
    let mut entries = wal.replay(OnCorrupt::Skip)?;
    while let Some(found) = entries.next()? {
        if let Entry::Insert { record } = found.entry
            && record::parse(record).is_ok_and(|event| event.id == id)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
