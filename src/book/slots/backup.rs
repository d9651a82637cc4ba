//! The header of a book for a backup: the bytes that change in place, and the deeds under them.

use std::io;

use super::committed::read_slots;
use super::{DEEDS_AT, SLOTS_AT, Slot, newest_first};
use crate::book::format::BookFormat;
use crate::book::layouts::{Layout, packed};
use crate::error::Result;
use crate::log::Log;
use crate::storage::{File, read_full};

/// The bytes of a log that change in place: both slots, or the header of another layout.
pub(crate) fn header_now(file: &dyn File) -> io::Result<Vec<u8>> {
    let has_slots = read_slots(file)?.iter().any(Option::is_some);
    let mut header = vec![0; if has_slots { DEEDS_AT } else { packed::HEADER_BYTES } as usize];
    let read = read_full(file, &mut header, 0)?;
    header.truncate(read);
    Ok(header)
}

impl Log<BookFormat> {
    /// The byte up to which this header, read before, vouches for the log: in the layout `slots`,
    /// later deeds look like damage. `None` if the header does not give the end.
    pub fn vouched_by(&self, header: &[u8]) -> Result<Option<u64>> {
        let has_slots = self.shared.format.layout() == Layout::Slots;
        let slots = SLOTS_AT.map(|at| Slot::parse(header.get(at as usize..)?));
        let newest = newest_first(&slots).next().filter(|_| has_slots);
        let Some((_, slot)) = newest.filter(|(_, slot)| slot.records() > 0) else {
            return Ok(None);
        };
        let extent = self.numbered_extent()?;
        let next = extent.next().min(slot.las.saturating_add(1));
        self.shared.locate_ordinal(extent, next).map(Some)
    }
}
