//! Events encoded for the store that appends them.

use super::handle::Shared;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::nostr::bytes::event::{Event, EventRef, Flags, Id};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::record;
use crate::nostr::pages::options::Options;

/// Records of events whose ids were checked, one after the other.
#[derive(Debug, Default)]
pub struct Records {
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
}

impl Records {
    /// Add the record of an event; nothing is added by an error.
    pub fn push(&mut self, event: &Event, options: &Options) -> Result<()> {
        let (checksums, page_bytes) = (options.checksums, options.page_size());
        self.push_with(event.id, options, |bytes| {
            record::encode(event, Flags::default(), checksums, page_bytes, bytes)
        })
    }

    /// The same of an event whose id is still to be checked.
    pub fn push_checked(
        &mut self,
        event: &Event,
        scratch: &mut Vec<u8>,
        shared: &Shared,
    ) -> Result<()> {
        let refused = |e: Error| e.of(FORMAT).with_durable(Durable::No);
        event.check_id(scratch).map_err(refused)?;
        self.push(event, &shared.options).map_err(|e| refused(e).at(&shared.dir))
    }

    /// The same of an event that is encoded already.
    pub fn push_stored(&mut self, event: &EventRef<'_>, options: &Options) -> Result<()> {
        let (checksums, page_bytes) = (options.checksums, options.page_size());
        self.push_with(event.id, options, |bytes| {
            record::encode_stored(event, checksums, page_bytes, bytes)
        })
    }

    fn push_with(
        &mut self,
        id: Id,
        options: &Options,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (start, limit) = (self.bytes.len(), options.event_bytes_max);
        encode(&mut self.bytes)?;
        let len = self.bytes.len() - start;
        if len > limit as usize {
            self.bytes.truncate(start);
            let message = format!("event {id}: record of {len} bytes, limit {limit}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Forget the records and keep the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
