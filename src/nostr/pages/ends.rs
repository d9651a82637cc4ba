//! Start walks over a segment, and handle a partial record in its last pages.

use std::path::{Path, PathBuf};

use super::segment::{Found, Segment};
use super::walk::{Forward, Reverse, Step};
use crate::error::{Error, Result};
use crate::ground::slice::part;
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::page::{self, Head};
use crate::nostr::bytes::record::{FLAGS_AT, LONG_HEAD_BYTES, PUBKEY_AT, SHORT_HEAD_BYTES};
use crate::storage::{File, read_full, write_full};

/// A record that was incomplete when its segment was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    /// The record's first byte.
    pub offset: u32,
    /// The id of the record's event.
    pub id: Id,
    /// Whether the file now reaches the record's end.
    pub has_come: bool,
}

impl Segment {
    /// Walk the records from an offset on, in their order.
    pub fn scan(&self, from: u32) -> Forward {
        let page_bytes = self.header().page_bytes;
        let from = page::whole_pages(from.max(page_bytes).into(), page_bytes) as u32;
        Forward::new(self.clone(), from)
    }

    /// Walk the records of pages without a header page.
    pub fn scan_pages(&self) -> Forward {
        Forward::new(self.clone(), 0)
    }

    /// Count the intact records from an offset on.
    pub fn count(&self, from: u32) -> Result<u32> {
        let (mut scan, mut count) = (self.scan(from), 0);
        while let Some(found) = scan.next()? {
            count += u32::from(matches!(found, Found::Record(_)));
        }
        Ok(count)
    }

    /// Walk the records, the last one first.
    pub fn reverse(&self) -> Reverse {
        Reverse::new(self.clone())
    }

    /// The last record, if it continues beyond the file's end at opening: a writer is appending the
    /// rest, or a crash lost the rest.
    pub(crate) fn unfinished(&self) -> Result<Option<Unfinished>> {
        if !self.missing().is_empty() {
            return Ok(None);
        }
        let Some(Step::Damage(damage)) = self.clone().reverse().step()? else { return Ok(None) };
        let mut bytes = [0; LONG_HEAD_BYTES + PUBKEY_AT];
        let read = read_full(&**self.file(), &mut bytes, damage.offset.into());
        let bytes = part(&bytes, ..read.map_err(|e| self.failed(e))?);
        let head = Head::parse(bytes, self.header().page_bytes, u64::MAX);
        let Ok(head) = head else { return Ok(None) };
        let id_at = if head.continuations > 0 { LONG_HEAD_BYTES } else { SHORT_HEAD_BYTES };
        let (offset, end) = (damage.offset, u64::from(damage.offset) + head.file_bytes());
        let len = self.file().len().map_err(|e| self.failed(e))?;
        let is_cut = end > len.min(self.end().into());
        let id = part(bytes, id_at.min(bytes.len())..).first_chunk().copied();
        let unfinished = |id| Unfinished { offset, id: Id(id), has_come: end <= len };
        Ok(id.filter(|_| is_cut).map(unfinished))
    }

    /// Void a partial record. The next append fills the record's last page with zeros, and without
    /// a checksum the record would look whole. `save` gets the file first.
    pub fn void_unfinished(
        &self,
        save: impl FnOnce(&dyn File, &Path, u32) -> Result<Option<PathBuf>>,
    ) -> Result<Option<PathBuf>> {
        let Some(record) = self.unfinished()? else { return Ok(None) };
        let saved = save(&**self.file(), self.path(), record.offset)?;
        write_full(&**self.file(), &[0; FLAGS_AT], record.offset.into())
            .map_err(|e| Error::io("void a torn record", self.path(), e).of(FORMAT))?;
        Ok(saved)
    }
}
