//! A reader's segment continues in memory, with the events that only the write-ahead log has.

use std::io;
use std::sync::Arc;

use super::{Segment, limit};
use crate::ground::slice::{part, part_mut};
use crate::nostr::bytes::page::{self, Head};
use crate::storage::{File, FileId};

impl Segment {
    /// Add records to reads and walks, at the offsets where the next writer will append them.
    /// Returns false, and adds nothing, if the segment has no room for all records.
    pub(crate) fn go_on_in_memory(&mut self, records: &[Vec<u8>]) -> bool {
        let (page_bytes, mut more) = (self.header.page_bytes, Vec::new());
        for record in records {
            let head = Head::parse(record, page_bytes, u64::MAX);
            if !head.is_ok_and(|head| head.record_len as usize == record.len()) {
                return false;
            }
            page::spread(record, page_bytes, &mut more);
        }
        let from = u64::from(self.end);
        let end = from + more.len() as u64;
        if end > limit(page_bytes) {
            return false;
        }
        self.file = Arc::new(Overlay { file: self.file.clone(), from, more });
        self.end = end as u32;
        true
    }
}

/// A file up to a byte, followed by bytes in memory.
#[derive(Debug)]
struct Overlay {
    file: Arc<dyn File>,
    from: u64,
    more: Vec<u8>,
}

impl File for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.from + self.more.len() as u64)
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(at) = offset.checked_sub(self.from) {
            let there = self.more.get(at as usize..).unwrap_or_default();
            let len = there.len().min(buf.len());
            part_mut(buf, ..len).copy_from_slice(part(there, ..len));
            return Ok(len);
        }
        let len = (self.from - offset).min(buf.len() as u64) as usize;
        let buf = part_mut(buf, ..len);
        match self.file.read_at(buf, offset)? {
            // The file's last page may be partial; the rest of the page is zeros.
            0 => {
                buf.fill(0);
                Ok(len)
            }
            read => Ok(read),
        }
    }

    fn data_from(&self, offset: u64) -> io::Result<u64> {
        if offset >= self.from {
            return Ok(offset);
        }
        Ok(self.file.data_from(offset)?.min(self.from))
    }
}
