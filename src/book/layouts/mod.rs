//! The layouts of a book, and how many bytes each has around a jam.

pub(super) mod codec;
pub(super) mod header;
pub(super) mod packed;

use std::path::Path;

use super::names::FORMAT;
use crate::error::{Error, ErrorKind, Result};

/// `len_d` counts the mug.
pub const MUG_BYTES: u64 = 4;
/// `len_d` and `mug_l`, which every layout begins with.
pub(super) const HEAD_BYTES: usize = 12;
/// `let_d`, the end of every layout.
pub(super) const TRAILER_BYTES: usize = 8;

/// The three incompatible layouts under one magic and version.
// As wide as a length: a `Frame` has no padding, which would be copied bytewise.
#[repr(u64)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// The specification's text, the default.
    #[default]
    Packed,
    /// Two header slots that say how far the log is committed, deeds from byte 8192.
    Slots,
    /// The C struct padding of January 2026: read only.
    Padded,
}

impl Layout {
    /// `packed`, `slots` or `padded`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Slots => "slots",
            Self::Padded => "padded",
        }
    }

    /// Bytes of the file before the first deed.
    pub(super) fn header_bytes(self) -> u64 {
        match self {
            Self::Packed | Self::Padded => packed::HEADER_BYTES,
            Self::Slots => super::slots::DEEDS_AT,
        }
    }

    /// Bytes of a deed before the jam.
    #[inline]
    pub(super) fn head_bytes(self) -> u64 {
        match self {
            Self::Packed | Self::Slots => HEAD_BYTES as u64,
            Self::Padded => 16,
        }
    }

    /// Bytes of a deed after its jam.
    #[inline]
    pub(super) fn tail_bytes(self) -> u64 {
        match self {
            Self::Packed => 12,
            Self::Slots => TRAILER_BYTES as u64,
            Self::Padded => 16,
        }
    }

    /// A deed's whole size less its `len_d`.
    pub(super) fn framing_bytes(self) -> u64 {
        self.head_bytes() + self.tail_bytes() - MUG_BYTES
    }

    /// Whether a deed has a checksum of its own.
    pub(super) fn has_checksum(self) -> bool {
        self != Self::Slots
    }
}

impl std::str::FromStr for Layout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Packed, Self::Slots, Self::Padded];
        all.into_iter().find(|layout| layout.name() == name).ok_or_else(|| {
            let message = format!("layout {name:?}, must be packed, slots or padded");
            Error::new(ErrorKind::InvalidArgument, message).of(FORMAT)
        })
    }
}

/// Refuse a new log in the layout that is only read.
pub(super) fn refuse_padded(layout: Layout, log: &Path) -> Result<()> {
    if layout != Layout::Padded {
        return Ok(());
    }
    let message = "layout padded is only read: new logs are packed or slots";
    Err(Error::new(ErrorKind::Unsupported, message).at(log))
}
