//! Events that the write-ahead log has and the segments lack, for a reader.
//!
//! A writer stores an event in the log first, and then in a segment. A power cut can take the event from the segment; the
//! next opening for writing appends it again. Until then a reader gives the event from the log.

use std::collections::HashSet;
use std::path::Path;

use crate::error::{ErrorKind, Result};
use crate::mode::Mode;
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::record;
use crate::nostr::log::entry::Entry;
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::Found;
use crate::nostr::pages::segments::Segments;
use crate::scan::OnCorrupt;

/// Add the events that only the log has to a reader's last segment, in memory. `last` are the last events of the
/// segments. Returns the number of added events.
///
/// This program makes a checkpoint before it begins a segment, so all events after the checkpoint belong to the last
/// segment. If the manifest does not name the log's last checkpoint, the function adds nothing.
pub fn serve(
    options: &Options,
    dir: &Path,
    manifest: &Manifest,
    last: &[Id],
    segments: &mut Segments,
) -> Result<u64> {
    let wal = match options.wal().open(dir.join(WAL_NAME), Mode::Read) {
        Err(e) if e.kind() == ErrorKind::Io => return Err(e),
        // `verify` names the damage of the log.
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

/// The records that follow the events `last` in the log. If the log has no event of `last`, all records that are not
/// `stored`.
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
