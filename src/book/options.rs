//! How a book is opened.

use std::sync::Arc;
use std::time::Duration;

use super::layouts::codec::DEED_BYTES_MAX;
use super::layouts::{Layout, MUG_BYTES};
use super::names::FORMAT;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::setters::setters;
use crate::log::{Common, log_options};
use crate::mode::Recovery;
use crate::sidecar::LockTimeout;
use crate::storage::{Disk, Storage};

log_options! {
    /// How a book is opened; see the fields.
    Options {
        /// When appends are synced; the specification's default is always.
        durability: Durability = Durability::Always,
        /// Limit of a deed's `len_d` (mug and jam), bytes.
        deed_bytes_max: u64 = DEED_BYTES_MAX,
        /// Unix permissions of new files, less the umask; the specification asks for 0644.
        file_mode: u32 = 0o644,
    }
    optional {
        /// Last event before the log's first event, for an empty log. By default the N of a
        /// directory named `0iN` (any other epoch is refused there), the value that an earlier
        /// handle was given, or 0.
        epoch: u64,
        /// Layout on disk. By default the log's layout, `packed` for a new log; a layout other than
        /// the log's is refused.
        layout: Layout,
        /// For a pier: a transaction whose parts have so many bytes or more on average makes an
        /// epoch of each part, by renaming the staged files, instead of appending to the last
        /// epoch. Only in layout `packed`, and only after an epoch with events; by default never.
        epoch_part_bytes: u64,
    }
}

impl Options {
    /// The default limit of a deed: mug and jam, bytes.
    pub const DEED_BYTES_MAX: u64 = DEED_BYTES_MAX;

    pub(super) fn check(&self) -> Result<()> {
        if self.deed_bytes_max < MUG_BYTES || self.deed_bytes_max > 1 << 62 {
            let message = format!("deed limit {} bytes, from 4 to 2^62", self.deed_bytes_max);
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        if self.epoch == Some(u64::MAX) {
            let message = "epoch 2^64 - 1 has no event after it";
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        Ok(())
    }
}
