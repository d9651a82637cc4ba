//! Export of events as JSON lines.

use std::io::Write;

use crate::error::{Error, Result};
use crate::nostr::bytes::event::{EventRef, Flags};
use crate::nostr::store::handle::EventStore;
use crate::nostr::store::read::Include;
use crate::scan::OnCorrupt;

const WRITE_BYTES: usize = 1 << 20;

/// The report of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Events.
    pub events: u64,
    /// Exported events that lack tag names: their ids do not verify.
    pub lossy: u64,
}

impl EventStore {
    /// Write events as JSON lines in the order of storage. `progress` gets the number of events so
    /// far.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the export skips
    /// damage, and if the target cannot be written. An error of `progress` ends the work and is
    /// returned.
    pub fn export(
        &self,
        out: &mut dyn Write,
        include: Include,
        on_corrupt: OnCorrupt,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<ExportReport> {
        let mut text = Vec::with_capacity(WRITE_BYTES + 4096);
        let mut report = ExportReport::default();
        let mut events = self.iter(include, on_corrupt)?;
        let failed = |e| Error::io("write the events", self.path(), e);
        let mut write = |event: &EventRef<'_>, text: &mut Vec<u8>| {
            event.write_json(text);
            text.push(b'\n');
            report.events += 1;
            report.lossy += u64::from(event.flags.contains(Flags::LOSSY));
            report.events
        };
        let mut count = 0;
        while let Some(events) = events.next_with(|_, event| write(event, &mut text))? {
            count = events;
            if text.len() >= WRITE_BYTES {
                out.write_all(&text).map_err(failed)?;
                text.clear();
                progress(count)?;
            }
        }
        out.write_all(&text).and_then(|()| out.flush()).map_err(failed)?;
        progress(count)?;
        Ok(report)
    }
}
