//! What only a book can tell a backup: which bytes change in place, and which deeds its header vouches for.

use super::{SLOT_BYTES, SLOTS_AT, Slot, newest_first};
use crate::book::Book;
use crate::book::layouts::Layout;
use crate::error::Result;
use crate::slice::part;

impl Book {
    /// The bytes before the first deed, which change in place.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.layout().header_bytes()
    }

    /// The byte up to which this header, read before, vouches for the log: in the layout `slots`, what follows it
    /// looks like damage. `None` where the header says nothing of the end.
    pub(crate) fn vouched_by(&self, header: &[u8]) -> Result<Option<u64>> {
        if self.layout() != Layout::Slots {
            return Ok(None);
        }
        let slot = |at: u64| {
            let bytes = header.get(at as usize..)?;
            Slot::parse(part(bytes, ..SLOT_BYTES.min(bytes.len())))
        };
        let newest = newest_first(&SLOTS_AT.map(slot)).next();
        let Some((_, slot)) = newest.filter(|(_, slot)| slot.records() > 0) else {
            return Ok(None);
        };
        let last = slot.las.min(self.last()?);
        Ok(Some(self.bookmark_at(last.saturating_add(1))?.offset))
    }
}
