//! Events that the write-ahead log has and the segments lack, for a reader.
//!
//! An event is in the log first. A writer that lives appends it to a segment at once; after a power cut, the next
//! opening for writing does. Until then a reader gives it from the log.

use std::collections::HashSet;
use std::path::Path;

use super::entry::Entry;
use super::event::Id;
use super::manifest::Manifest;
use super::opening::WAL_NAME;
use super::options::Options;
use super::record;
use super::segment::Found;
use super::segments::Segments;
use super::wal::EventWal;
use crate::error::{ErrorKind, Result};
use crate::mode::Mode;
use crate::scan::OnCorrupt;

/// Have the last segment of a reader go on with what only the log has. `last` are the last events of the segments.
/// Returns how many events that were.
///
/// The log has no events of an earlier segment: the writer makes a checkpoint before it begins a segment. That holds
/// for this program, and if the manifest is of the log's last checkpoint. Otherwise no event is given from the log.
pub fn serve(
    options: &Options,
    dir: &Path,
    manifest: &Manifest,
    last: &[Id],
    segments: &mut Segments,
) -> Result<u64> {
    let wal = match options.wal().open(dir.join(WAL_NAME), Mode::Read) {
        Err(e) if e.kind() == ErrorKind::Io => return Err(e),
        // What is wrong with it, `verify` says.
        Err(_) => return Ok(0),
        Ok(wal) => wal,
    };
    let segment = &mut segments.active()?.segment;
    let header = segment.header();
    let noted = manifest.pages_end(header.segment, header.page_bytes);
    if segment.is_missing() {
        return Ok(0);
    }
    let Some(from) = noted.filter(|_| manifest.checkpoint() == wal.last_checkpoint()) else {
        return Ok(0);
    };
    let records = lacking(&wal, last, || {
        let (mut scan, mut stored) = (segment.scan(from), HashSet::new());
        while let Some(found) = scan.next()? {
            if let Found::Record(found) = found {
                stored.insert(found.event.id);
            }
        }
        Ok(stored)
    })?;
    match segment.go_on_in_memory(&records) {
        true => Ok(records.len() as u64),
        false => Ok(0),
    }
}

/// The records of the log after the last one of `last`. If it has none of these, those that are not `stored`.
fn lacking(
    wal: &EventWal,
    last: &[Id],
    stored: impl FnOnce() -> Result<HashSet<Id>>,
) -> Result<Vec<Vec<u8>>> {
    let (mut records, mut has_last) = (Vec::new(), false);
    let mut entries = wal.replay(OnCorrupt::Skip)?;
    while let Some(found) = entries.next()? {
        let Entry::Insert { record } = found.entry else { continue };
        let Ok(event) = record::parse(record) else { continue };
        if last.contains(&event.id) {
            has_last = true;
            records.clear();
        } else {
            records.push((event.id, record.to_vec()));
        }
    }
    let mut known = if has_last { HashSet::new() } else { stored()? };
    records.retain(|(id, _)| known.insert(*id));
    Ok(records.into_iter().map(|(_, record)| record).collect())
}
