//! A store as a reader sees it, without changing anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::logged_flags::{READER_TRIES, add_logged};
use crate::error::{Error, ErrorKind, Result};
use crate::mode::Mode;
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::page::PAGE_BYTES_READ;
use crate::nostr::bytes::record;
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::log::entry::{Entry, WAL_NAME};
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::State;
use crate::nostr::store::opened::Opening;
use crate::scan::OnCorrupt;
use crate::sidecar::{Loss, sidecar_dir};
use crate::storage::Access;

/// A reader names so many numbers that are missing without a manifest.
const GAPS_MAX: usize = 1000;

/// Look at the store as a reader. At the last look, a missing segment is damage.
pub(super) fn look(dir: &Path, options: &Options, is_last: bool) -> Result<(Opening, State)> {
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
    let copies = belonging.copies(&segments)?;
    let is_whole = options.storage.is_dir(&dir.join(WAL_NAME));
    if !is_last {
        belonging.check_no_gap(&segments, &copies, is_whole)?;
    }
    let gap = belonging.gap(&segments, &copies, is_whole);
    segments.forget(&copies);
    stand_in(&belonging, &files, gap, &mut segments)?;
    leave_unfinished(options, dir, &mut segments)?;
    let appended_again = add_logged(options, dir, &belonging.manifest, &mut segments)?;
    let manifest_rebuilt = belonging.is_rebuilt();
    let is_noted = Loss::load(&*options.storage, &sidecar_dir(dir))?.is_some();
    let is_loss = is_noted || segments.lack_pages() || belonging.foreign(&segments).is_some();
    let opening = Opening { appended_again, manifest_rebuilt, is_loss, ..Opening::default() };
    Ok((opening, State::new(belonging.manifest, segments)))
}

/// Count the events of a missing segment as damage, as for lost pages.
fn stand_in(
    belonging: &Belonging,
    files: &BTreeMap<u32, PathBuf>,
    gap: Option<(u32, u32)>,
    segments: &mut Segments,
) -> Result<()> {
    let of_others = segments.by_id.values().next().map(|open| open.segment.header().page_bytes);
    let of_manifest = Some(belonging.manifest.page_bytes)
        .filter(|size| size.is_power_of_two() && PAGE_BYTES_READ.contains(size));
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

/// Have a reader end before a record that the last segment has in part, if the write-ahead log has it: a
/// writer is appending it, or the next one makes it good. That is no damage.
fn leave_unfinished(options: &Options, dir: &Path, segments: &mut Segments) -> Result<()> {
    let mut before = None;
    for _ in 0..READER_TRIES {
        let Some(open) = segments.by_id.values_mut().next_back() else { return Ok(()) };
        let Some(record) = open.segment.unfinished()? else { return Ok(()) };
        let place = (record.offset, open.segment.end());
        let earlier = before.replace(place);
        // What has come by now the next look has; a writer may be quicker than all of them.
        if !record.has_come || earlier.is_some() {
            if is_logged(options, dir, record.id)? {
                open.segment = open.segment.clone().until(record.offset);
                return Ok(());
            }
            // It may be whole by now, and the log empty. What is the same once more is damage.
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
        // What is wrong with it does not concern what can be read.
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
