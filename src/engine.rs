//! What a log format needs that is written outside of this crate, as the toy format of the tests is:
//! parts of the engine, and the verbs of a log whose records go by their bytes.
//!
//! Only with the crate feature `sim`, and no part of the public interface: it changes at any time.

use std::path::Path;

pub use crate::checksum::Sum;
pub use crate::log::Log;
pub use crate::log::extent::Extent;
pub use crate::log::findings::Findings;
pub use crate::log::format::{Format, FrameOf, Inspected};
pub use crate::log::look::find_end::{Known, find_end};
pub use crate::log::mend::repair::repair;
pub use crate::log::mend::salvage::{create as create_copy, salvage};
pub use crate::log::mend::verify::{check, check_rest as verify};
pub use crate::log::options::Common;
pub use crate::log::read::cursor::Cursor;
pub use crate::log::read::follow::Follow;
pub use crate::log::read::reverse::Reverse;
pub use crate::log::space::{Place, Space, base_of_tail};
use crate::log::write::append::Wanted;
pub use crate::log::write::batch::Batch;
pub use crate::mode::Depth;
pub use crate::scan::framing::{Frame, Framing, Shape, SumAt};
pub use crate::scan::{Bad, Step, Stop};
pub use crate::sidecar::{LoadedMark, Mark, MarkFile, Settings};

/// The bytes of the event store.
#[cfg(feature = "nostr")]
pub mod nostr {
    pub use crate::nostr::bytes::page::{HEADER_BYTES, Header, spread};
    pub use crate::nostr::bytes::record::{encode, encode_stored, parse};
    pub use crate::nostr::pages::segment::{Found, PageDamage, Record, Segment};
    pub use crate::nostr::pages::walk::{Forward, Reverse};
}

use crate::error::Result;
use crate::log::split::Split;
use crate::log::split::bookmark::Bookmark;
use crate::mode::Mode;
use crate::scan::OnCorrupt;
use crate::storage::File;

type Tag<F> = <<F as Format>::Framing as Framing>::Tag;

/// Open a log.
pub fn open<F: Format>(path: &Path, mode: Mode, options: F::Options) -> Result<Log<F>> {
    Log::open_with(path, mode, options)
}

/// Read until the buffer is full or the file ends; returns how many bytes were read.
pub fn read_full(file: &dyn File, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
    crate::storage::read_full(file, buf, offset)
}

/// The valid prefix.
pub fn extent<F: Format>(log: &Log<F>) -> Result<Extent> {
    log.extent()
}

/// The end of what is on stable storage; `None` if a reader cannot tell.
pub fn durable_end<F: Format>(log: &Log<F>) -> Result<Option<u64>> {
    log.durable_offset()
}

/// Append one record; returns its byte.
pub fn append<F: Format>(log: &Log<F>, tag: Tag<F>, payload: &[u8]) -> Result<u64> {
    Ok(log.append_tagged(tag, payload)?.offset)
}

/// Append records as one batch; returns the byte of the first one.
pub fn append_batch<F: Format>(log: &Log<F>, records: &[(Tag<F>, &[u8])]) -> Result<u64> {
    let mut batch = Batch::with_framing(log.writable()?.appending);
    for (tag, payload) in records {
        batch.push_tagged(*tag, payload)?;
    }
    Ok(log.append_encoded(&batch, Wanted::default())?.offset)
}

/// Append one record and sync.
pub fn commit<F: Format>(log: &Log<F>, tag: Tag<F>, payload: &[u8]) -> Result<u64> {
    Ok(log.commit_tagged(tag, payload)?.offset)
}

/// Return when the record at that byte is on stable storage.
pub fn wait_durable<F: Format>(log: &Log<F>, offset: u64) -> Result<()> {
    log.wait_durable_at(offset)
}

/// The record at that byte.
pub fn read<F: Format>(log: &Log<F>, offset: u64) -> Result<F::Owned> {
    log.read_by_offset(offset)
}

/// The records in the bytes `from..to`.
pub fn cursor<F: Format>(
    log: &Log<F>,
    from: Option<u64>,
    to: Option<u64>,
    on_corrupt: OnCorrupt,
) -> Result<Cursor<F>> {
    log.cursor_by_offset(from, to, on_corrupt)
}

/// The same backwards.
pub fn reverse<F: Format>(log: &Log<F>, from: Option<u64>, to: Option<u64>) -> Result<Reverse<F>> {
    log.reverse_by_offset(from, to)
}

/// Follow the log from its first record on.
pub fn follow<F: Format>(log: &Log<F>) -> Result<Follow<F>> {
    log.follow_offset(None)
}

/// For a reader: look for what others did.
pub fn refresh<F: Format>(log: &Log<F>) -> Result<()> {
    log.refresh_extent().map(drop)
}

/// Parts of about so many bytes of the whole log.
pub fn splits<F: Format>(log: &Log<F>, split_bytes: u64) -> Result<Vec<Split>> {
    let Extent { start, end, .. } = log.extent()?;
    log.splits_over(split_bytes, start, end, true)
}

/// Where the record at that byte lies, or the one to come.
pub fn bookmark_at<F: Format>(log: &Log<F>, offset: u64) -> Result<Bookmark> {
    log.bookmark_of_offset(offset)
}

/// The records of a part.
pub fn read_split<F: Format>(
    split: &Split,
    options: &F::Options,
    on_corrupt: OnCorrupt,
) -> Result<Cursor<F>> {
    Log::cursor_of_split(split, options, on_corrupt, true, None)
}
