//! Export of events as JSON lines.

use std::io::Write;

use super::read::Include;
use super::store::EventStore;
use crate::error::{Error, Result};
use crate::scan::OnCorrupt;

const WRITE_BYTES: usize = 1 << 20;

impl EventStore {
    /// Write events as JSON lines in the order in which they were stored; returns how many.
    pub fn export(
        &self,
        out: &mut dyn Write,
        include: Include,
        on_corrupt: OnCorrupt,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let mut text = Vec::with_capacity(WRITE_BYTES + 4096);
        let mut count = 0;
        let mut events = self.iter(include, on_corrupt)?;
        let failed = |e| Error::io("write the events", self.path(), e);
        while events.next_with(|_, event| event.write_json(&mut text))?.is_some() {
            text.push(b'\n');
            count += 1;
            if text.len() >= WRITE_BYTES {
                out.write_all(&text).map_err(failed)?;
                text.clear();
                progress(count)?;
            }
        }
        out.write_all(&text).and_then(|()| out.flush()).map_err(failed)?;
        progress(count)?;
        Ok(count)
    }
}
