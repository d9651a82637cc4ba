//! The parts of the engine that a log format outside of this crate needs, like the toy format of
//! the tests.
//!
//! Only with the crate feature `sim`, and no part of the public interface: it changes at any time.

pub use crate::ground::checksum::Sum;
pub use crate::log::{
    Batch, Common, Cursor, Extent, Findings, Follow, Format, FrameOf, Inspected, Known, Log, Place,
    Reverse, Space, base_of_tail, check, check_rest, create_copy, find_end, repair, salvage,
};
#[cfg(feature = "arrow")]
pub use crate::log::{Column, Value};
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
use crate::log::Wanted;
use crate::storage::File;

/// Read until the buffer is full or the file ends; returns how many bytes were read.
pub fn read_full(file: &dyn File, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
    crate::storage::read_full(file, buf, offset)
}

/// Append records as one batch; returns the byte of the first record.
pub fn append_batch<F: Format>(
    log: &Log<F>,
    records: &[(<F::Framing as Framing>::Tag, &[u8])],
) -> Result<u64> {
    let mut batch = Batch::with_framing(log.writable()?.appending);
    for (tag, payload) in records {
        batch.push_tagged(*tag, payload)?;
    }
    Ok(log.append_encoded(&batch, Wanted::default())?.offset)
}
