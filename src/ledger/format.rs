//! The type of the format: a finished file as a log without further appends. The engine reads,
//! checks and splits the file like any other log.

use std::io;
use std::sync::Arc;

use super::codec::Codec;
use crate::log::{Format, Inspected, Known, Space, find_end};
use crate::mode::Depth;
use crate::storage::File;

/// The format of a ledger, as the parameter of the types that walk over logs: `Cursor<LedgerFormat>`.
#[derive(Clone, Copy, Debug)]
pub struct LedgerFormat {
    /// Limit of a payload that is read.
    pub(super) codec: Codec,
}

impl LedgerFormat {
    /// With the limit of a payload that is read.
    pub(super) fn new(record_bytes_max: u64) -> Self {
        Self { codec: Codec::new(record_bytes_max) }
    }

    /// Inspect an open file by itself: there is no mark.
    pub(super) fn inspect_file(
        self,
        file: Arc<dyn File>,
        len: u64,
        depth: Depth,
    ) -> io::Result<Inspected<Self>> {
        let space = Space::new(file, 0, len);
        let known = Known::unmarked(Some(0), depth);
        let findings = find_end(&self, &space, known)?;
        let settings = Some(self.settings());
        Ok(Inspected { settings, ..Inspected::new(self, space, findings, None) })
    }
}
