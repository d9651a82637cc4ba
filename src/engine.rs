//! What a log format needs that is written outside of this crate, as the toy format of the tests is:
//! parts of the engine, and the verbs of a log whose records go by their numbers.
//!
//! Only with the crate feature `sim`, and no part of the public interface: it changes at any time.

use std::path::Path;

pub use crate::log::Log;
use crate::log::append::Wanted;
pub use crate::log::batch::Batch;
pub use crate::log::cursor::Cursor;
pub use crate::log::extent::Extent;
pub use crate::log::find_end::{Findings, Known, find_end};
pub use crate::log::follow::Follow;
pub use crate::log::format::{Format, FrameOf, Inspected};
pub use crate::log::framing::{Frame, Framing};
pub use crate::log::options::Common;
pub use crate::log::repair::repair;
pub use crate::log::reverse::Reverse;
pub use crate::log::salvage::{create as create_copy, salvage};
pub use crate::log::space::{Place, Space, base_of_tail};
use crate::log::split::bytes_of;
pub use crate::log::verify::verify;
pub use crate::mode::Depth;
pub use crate::scan::{Bad, Step, Stop};
pub use crate::sidecar::{LoadedMark, Mark, MarkFile, Settings};

use crate::error::{ErrorKind, Result};
use crate::log::split::Split;
use crate::mode::Mode;
use crate::scan::OnCorrupt;
use crate::storage::{File, Storage};

type Tag<F> = <<F as Format>::Framing as Framing>::Tag;

/// Open a log.
pub fn open<F: Format>(path: &Path, mode: Mode, options: F::Options) -> Result<Log<F>> {
    Log::open_with(path, mode, options)
}

/// Write a file whole or not at all, durably.
pub fn replace(storage: &dyn Storage, path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    crate::storage::replace(storage, path, bytes, mode)
}

/// Read until the buffer is full or the file ends; returns how many bytes were read.
pub fn read_full(file: &dyn File, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
    crate::storage::read_full(file, buf, offset)
}

/// The valid prefix.
pub fn extent<F: Format>(log: &Log<F>) -> Result<Extent> {
    log.extent()
}

/// Number of the first record that need not be on stable storage; `None` if a reader cannot tell.
pub fn durable_end<F: Format>(log: &Log<F>) -> Result<Option<u64>> {
    let first = log.numbered_extent()?.first;
    Ok(log.durable_records()?.map(|records| first.saturating_add(records)))
}

/// Append one record; returns its number.
pub fn append<F: Format>(log: &Log<F>, tag: Tag<F>, payload: &[u8]) -> Result<u64> {
    let shared = log.writable()?;
    let appended = shared.append_one(tag, payload)?;
    shared.after_append(appended.end)?;
    Ok(appended.ordinal)
}

/// Append records as one batch; returns the number of the first one.
pub fn append_batch<F: Format>(log: &Log<F>, records: &[(Tag<F>, &[u8])]) -> Result<u64> {
    let shared = log.writable()?;
    let mut batch = Batch::with_framing(shared.appending);
    for (tag, payload) in records {
        batch.push_tagged(*tag, payload)?;
    }
    let appended = shared.append_batch_at(&batch, Wanted::default())?;
    shared.after_append(appended.end)?;
    Ok(appended.ordinal)
}

/// Append one record and sync.
pub fn commit<F: Format>(log: &Log<F>, tag: Tag<F>, payload: &[u8]) -> Result<u64> {
    let shared = log.writable()?;
    let appended = shared.append_one(tag, payload)?;
    shared.sync_to(appended.end)?;
    Ok(appended.ordinal)
}

/// Return when the record with that number is on stable storage.
pub fn wait_durable<F: Format>(log: &Log<F>, ordinal: u64) -> Result<()> {
    let shared = log.writable()?;
    let extent = log.numbered_extent()?;
    if !(extent.first..extent.next()).contains(&ordinal) {
        return Err(shared.error(ErrorKind::OutOfRange, "no such record"));
    }
    log.wait_durable_at(shared.locate_ordinal(extent, ordinal)?)
}

/// The record with that number.
pub fn read<F: Format>(log: &Log<F>, ordinal: u64) -> Result<F::Owned> {
    log.read_by_ordinal(ordinal)
}

/// The records `start <= number < stop`.
pub fn cursor<F: Format>(
    log: &Log<F>,
    start: u64,
    stop: Option<u64>,
    on_corrupt: OnCorrupt,
) -> Result<Cursor<F>> {
    log.cursor_by_ordinal(start, stop, on_corrupt)
}

/// The same backwards.
pub fn reverse<F: Format>(log: &Log<F>, start: u64, stop: Option<u64>) -> Result<Reverse<F>> {
    log.reverse_by_ordinal(start, stop)
}

/// Follow the log from a number on.
pub fn follow<F: Format>(log: &Log<F>, start: u64) -> Result<Follow<F>> {
    log.follow_ordinal(start)
}

/// For a reader: look for what others did.
pub fn refresh<F: Format>(log: &Log<F>) -> Result<()> {
    log.refresh_extent().map(drop)
}

/// Parts of about so many bytes with the records `start <= number < stop`.
pub fn splits<F: Format>(
    log: &Log<F>,
    split_bytes: u64,
    start: u64,
    stop: Option<u64>,
) -> Result<Vec<Split>> {
    let snapshot = log.usable()?.snapshot();
    let (first, next) = (snapshot.extent.first, snapshot.extent.next());
    let reaches_end = stop.is_none_or(|stop| stop > next);
    let (start, stop) = (start.max(first), stop.map_or(next, |stop| stop.min(next)));
    let (from, to) = bytes_of(&log.shared, &snapshot, start, stop)?;
    log.splits_over(split_bytes, from, to, reaches_end)
}

/// The records of a part with `start <= number < stop`.
pub fn read_split<F: Format>(
    split: &Split,
    options: &F::Options,
    start: u64,
    stop: Option<u64>,
    on_corrupt: OnCorrupt,
) -> Result<Cursor<F>> {
    let mut cursor = Log::cursor_of_split(split, options, on_corrupt, true, stop)?;
    if split.ordinal.is_some_and(|first| first < start) {
        cursor.skip_to(start)?;
    }
    Ok(cursor)
}
