//! Copying a log into another layout, event by event, and comparing the copy with it.

use std::path::Path;

use super::{Book, Cursor, Layout, Mode, OnCorrupt, Options};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Verdict;

/// Copied with one write.
const BATCH_BYTES: usize = 4 << 20;
/// Compared between two calls of the progress function.
const PROGRESS_DEEDS: u64 = 1 << 14;

/// What a conversion copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertReport {
    /// Layout of the source.
    pub from: Layout,
    /// Layout of the copy.
    pub to: Layout,
    /// Deeds copied and compared.
    pub deeds: u64,
    /// Bytes of their jams.
    pub jam_bytes: u64,
    /// First and last event; `None` for a log without deeds.
    pub bounds: Option<(u64, u64)>,
    /// Size of the source up to its last deed, bytes.
    pub source_bytes: u64,
    /// Size of the copy, bytes.
    pub target_bytes: u64,
}

/// Copy a log, with its epoch and metadata, to a new one in layout `to`, then read both and compare
/// every event. The source is never changed; a source that is corrupt, and a target that exists, are
/// refused; of a torn one all that counts is copied. `progress` is called with bytes done and bytes in all (both passes), and what it fails
/// with ends the conversion. A target that was begun stays; it is no copy until this returned.
pub fn convert(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    to: Layout,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<ConvertReport> {
    let reading = Options { layout: None, ..options.clone() };
    let book = reading.open(source.as_ref(), Mode::Read)?;
    let found = book.recovery();
    if let Some(damage) = found.damage.as_ref().filter(|_| found.verdict == Verdict::Corrupt) {
        let message = format!("{}; salvage copies what is intact", damage.reason);
        return Err(book.shared.error(ErrorKind::Corrupt, message).offset_at(damage.offset));
    }
    let (first, next) = (book.epoch()?.saturating_add(1), book.last()?.saturating_add(1));
    let writing = Options {
        layout: Some(to),
        epoch: Some(first - 1),
        durability: Durability::Manual,
        deed_bytes_max: book.shared.framing.deed_bytes_max,
        ..options.clone()
    };
    let copy = writing.open(target.as_ref(), Mode::Create)?;
    let meta = book.meta()?;
    if meta != super::Meta::default() {
        copy.save_meta(&meta)?;
    }
    let all = 2 * book.end()?;
    let mut deeds = book.cursor(first, Some(next), OnCorrupt::Raise)?;
    let mut batch = copy.batch();
    progress(0, all)?;
    while let Some(deed) = deeds.next()? {
        batch.push(deed.mug, deed.jam)?;
        if batch.bytes_len() >= BATCH_BYTES {
            copy.append_unsynced(&batch)?;
            batch.clear();
            progress(deeds.offset(), all)?;
        }
    }
    copy.append_unsynced(&batch)?;
    copy.sync()?;
    let (deeds, jam_bytes) = compare(&book, &copy, (first, next), all, &mut progress)?;
    let report = ConvertReport {
        from: book.layout(),
        to,
        deeds,
        jam_bytes,
        bounds: copy.bounds()?.map(|bounds| bounds.into_inner()),
        source_bytes: book.end()?,
        target_bytes: copy.end()?,
    };
    copy.close()?;
    progress(all, all)?;
    Ok(report)
}

/// Read both logs and compare each event; returns how many, and the bytes of their jams.
fn compare(
    book: &Book,
    copy: &Book,
    (first, next): (u64, u64),
    all: u64,
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<(u64, u64)> {
    let open = |log: &Book| -> Result<Cursor> { log.cursor(first, Some(next), OnCorrupt::Raise) };
    let (mut ours, mut theirs) = (open(copy)?, open(book)?);
    let (mut count, mut bytes) = (0, 0);
    loop {
        let deed = theirs.next()?;
        let same = match (&deed, ours.next()?) {
            (None, None) => return Ok((count, bytes)),
            (Some(deed), Some(copied)) => {
                (deed.event, deed.mug, deed.jam) == (copied.event, copied.mug, copied.jam)
            }
            _ => false,
        };
        let Some(deed) = deed.filter(|_| same) else {
            let event = first + count;
            let message = format!("event {event} of the copy is not that of the source");
            return Err(Error::new(ErrorKind::Corrupt, message).at(copy.path()));
        };
        count += 1;
        bytes += deed.jam.len() as u64;
        if count % PROGRESS_DEEDS == 0 {
            let done = deed.offset;
            progress(all / 2 + done, all)?;
        }
    }
}
