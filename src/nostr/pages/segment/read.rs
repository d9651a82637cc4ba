//! Read single records of a segment.

use crate::error::{ErrorKind, Result};
use crate::ground::locks::lock;
use crate::nostr::bytes::event::Flags;
use crate::nostr::bytes::names::{Names, Searches, may_be_lost};
use crate::nostr::bytes::page::Head;
use crate::nostr::bytes::record::{self, FLAGS_AT, Layout};
use crate::nostr::pages::window::{READ_BYTES, Window};
use crate::scan::Bad;
use crate::storage::read_full;

use super::{Record, Segment};

impl Segment {
    /// The record at an offset in its stored form; the reader checks everything but id and
    /// signature.
    pub fn read<'b>(&self, offset: u32, buf: &'b mut Vec<u8>) -> Result<Record<'b>> {
        let layout = self.gather(offset, buf)?;
        let end = offset + self.bytes_for(buf.len()) as u32;
        let (event, has_sum) = (layout.event(buf), layout.has_sum);
        Ok(Record { offset, end, bytes: buf, event, has_sum, is_recovered: false })
    }

    /// The record at an offset, with recovered tag names.
    pub(crate) fn read_named<'b>(&self, offset: u32, buf: &'b mut Vec<u8>) -> Result<Record<'b>> {
        let mut layout = self.gather(offset, buf)?;
        let end = offset + self.bytes_for(buf.len()) as u32;
        let named = self.named(offset, buf, &mut layout, &Searches::default());
        let is_recovered = named.is_some();
        if let Some(named) = named {
            *buf = named;
        }
        let (event, has_sum) = (layout.event(buf), layout.has_sum);
        Ok(Record { offset, end, bytes: buf, event, has_sum, is_recovered })
    }

    /// Recover the tag names of a checked record. `None` if the record stays as stored; its flags
    /// may then mark the event as lossy.
    #[inline]
    pub(crate) fn named(
        &self,
        offset: u32,
        record: &[u8],
        layout: &mut Layout,
        searches: &Searches,
    ) -> Option<Vec<u8>> {
        // Nearly all records: no name is lost.
        match layout.has_sum {
            true => None,
            false => self.look_for_names(offset, record, layout, searches),
        }
    }

    fn look_for_names(
        &self,
        offset: u32,
        record: &[u8],
        layout: &mut Layout,
        searches: &Searches,
    ) -> Option<Vec<u8>> {
        let event = layout.event(record);
        if !may_be_lost(&event) {
            return None;
        }
        let place = (offset, event.id);
        let names = match lock(&self.lossy).contains(&place) {
            true => Names::Lossy,
            false => searches.recover(&event),
        };
        match names {
            Names::Intact => None,
            Names::Lossy => {
                lock(&self.lossy).insert(place);
                layout.flags = layout.flags | Flags::LOSSY;
                None
            }
            Names::Recovered(event) => {
                let mut named = Vec::new();
                // The new checksum records that no names are lost. All recovered names fit.
                let page_bytes = self.header.page_bytes;
                record::encode(&event, layout.flags, true, page_bytes, &mut named).ok()?;
                *layout = record::measure(&named).ok()?;
                Some(named)
            }
        }
    }

    /// The flags in the file for the record at an offset, without waiting flags; `None` after the
    /// end.
    pub(crate) fn stored_flags(&self, offset: u32) -> Result<Option<Flags>> {
        let mut flags = [0];
        let at = u64::from(offset) + FLAGS_AT as u64;
        let read = read_full(&*self.file, &mut flags, at).map_err(|e| self.failed(e))?;
        let [flags] = flags;
        Ok((offset < self.end && read > 0).then_some(Flags(flags).of_event()))
    }

    /// The checked bytes of the record at an offset.
    pub(super) fn gather(&self, offset: u32, buf: &mut Vec<u8>) -> Result<Layout> {
        let page_bytes = self.header.page_bytes;
        if !offset.is_multiple_of(page_bytes) || offset < page_bytes || offset >= self.end {
            let message =
                format!("no record at {offset}: pages of {page_bytes} end at {}", self.end);
            return Err(self.error(ErrorKind::OutOfRange, &message));
        }
        let corrupt =
            |bad: Bad| self.error(ErrorKind::Corrupt, &bad.reason()).offset_at(offset.into());
        if let Some(bad) = self.missing_at(offset) {
            return Err(corrupt(bad));
        }
        if let Some(layout) = self.read_page(offset, buf)? {
            return Ok(layout);
        }
        let mut window = Window::new(self.file.clone(), self.page_end()?, page_bytes as usize);
        let head = window.head(offset, page_bytes);
        let event = match head.map_err(|e| self.failed(e))? {
            Ok(head) => {
                let rest = head.pages_bytes(page_bytes).min(READ_BYTES as u64);
                window.block_bytes = rest as usize;
                window.gather(offset, head, page_bytes, buf).map_err(|e| self.failed(e))?
            }
            Err(bad) => Err(bad),
        };
        if let (Ok(()), Some(flags)) = (&event, self.waiting_at(offset)) {
            record::set_flags(buf, flags);
        }
        event.and_then(|()| record::check(buf)).map_err(corrupt)
    }

    /// The record at an offset, if one page has all of an intact record. Otherwise the caller looks
    /// again for the error. Nearly all reads need only this one system call.
    fn read_page(&self, offset: u32, buf: &mut Vec<u8>) -> Result<Option<Layout>> {
        let page_bytes = self.header.page_bytes;
        buf.resize(page_bytes as usize, 0);
        let read = read_full(&*self.file, buf, offset.into()).map_err(|e| self.failed(e))?;
        let left = u64::from(self.end - offset);
        let head = match Head::parse(buf, page_bytes, left) {
            Ok(head) if read == buf.len() && head.continuations == 0 => head,
            _ => return Ok(None),
        };
        buf.truncate(head.record_len as usize);
        if let Some(flags) = self.waiting_at(offset) {
            record::set_flags(buf, flags);
        }
        Ok(record::check(buf).ok())
    }
}
