//! New segments: whole for appends, unfinished for a compaction.

use std::io;
use std::path::Path;

use super::Segment;
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::page::{Header, check_page_bytes};
use crate::storage::segmented::remove;
use crate::storage::{Access, Storage, replace, write_full};

impl Segment {
    /// Create a segment without records, whole or not at all; durable on return.
    pub fn create(
        storage: &dyn Storage,
        path: &Path,
        segment: u32,
        page_bytes: u32,
        created_at: u64,
        file_mode: u32,
    ) -> Result<Self> {
        let bytes = first_page(segment, page_bytes, created_at)?;
        match storage.open(path, Access::Read) {
            Ok(_) => {
                let message = format!("segment {segment} exists already");
                let error = Error::new(ErrorKind::AlreadyExists, message);
                return Err(error.at(path).of(FORMAT));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => {
                return Err(Error::io("look for the segment", path, e).of(FORMAT));
            }
        }
        replace(storage, path, &bytes, file_mode)
            .map_err(|e| Error::io("create the segment", path, e).of(FORMAT))?;
        Self::open(storage, path, Access::Write)
    }

    /// Begin a segment in place of an unfinished one. The caller syncs file and name.
    pub fn begin(
        storage: &dyn Storage,
        path: &Path,
        segment: u32,
        page_bytes: u32,
        created_at: u64,
        file_mode: u32,
    ) -> Result<Self> {
        let bytes = first_page(segment, page_bytes, created_at)?;
        let begun = remove(storage, path).and_then(|()| {
            let file = storage.create_new(path, file_mode)?;
            write_full(&*file, &bytes, 0)
        });
        begun.map_err(|e| Error::io("create the segment", path, e).of(FORMAT))?;
        Self::open(storage, path, Access::Write)
    }
}

/// The first page of a segment without records.
fn first_page(segment: u32, page_bytes: u32, created_at: u64) -> Result<Vec<u8>> {
    check_page_bytes(page_bytes)
        .map_err(|message| Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))?;
    let (records, next_free, compacted_at) = (0, page_bytes, 0);
    let header = Header { page_bytes, created_at, segment, records, next_free, compacted_at };
    let mut bytes = header.encode().to_vec();
    bytes.resize(page_bytes as usize, 0);
    Ok(bytes)
}
