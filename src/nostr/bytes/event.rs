//! Events: owned, and borrowed from the bytes of a record.

use super::format::FORMAT;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

use super::hex::{self, NotHex};
use super::tags::TagsRef;

/// The id of an event: the SHA-256 of its canonical form. Shown in lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 32]);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::display(&self.0, f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::display(&self.0, f)
    }
}

impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        hex::decode(text.as_bytes()).map(Self).map_err(|why| {
            let message = match why {
                NotHex::Length(len) => format!("id of {len} characters, 64 needed"),
                NotHex::Digit(at) => {
                    format!("id with a character at {at} that is no lower-case hexadecimal digit")
                }
            };
            Error::new(ErrorKind::InvalidArgument, message).of(FORMAT)
        })
    }
}

/// An event, as NIP-01 describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The SHA-256 of the canonical form.
    pub id: Id,
    /// The author's public key.
    pub pubkey: [u8; 32],
    /// Seconds since 1970.
    pub created_at: u32,
    /// The kind, which says how to read the content.
    pub kind: u16,
    /// The tags. Each tag is a list of strings, and the first string is the tag's name.
    pub tags: Vec<Vec<String>>,
    /// The content.
    pub content: String,
    /// The signature: BIP-340 Schnorr over secp256k1.
    pub sig: [u8; 64],
}

/// An event borrowed from the bytes of its record. Parsing allocates no memory.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'a> {
    /// The SHA-256 of the canonical form.
    pub id: Id,
    /// The author's public key.
    pub pubkey: [u8; 32],
    /// Seconds since 1970.
    pub created_at: u32,
    /// The kind, which says how to read the content.
    pub kind: u16,
    /// The tags in their stored form.
    pub tags: TagsRef<'a>,
    /// The content.
    pub content: &'a str,
    /// The signature.
    pub sig: [u8; 64],
    /// The store's notes about the event, and whether the event is [lossy](Flags::LOSSY).
    pub flags: Flags,
}

impl EventRef<'_> {
    /// Copy the event into memory of its own.
    pub fn to_event(&self) -> Event {
        Event {
            id: self.id,
            pubkey: self.pubkey,
            created_at: self.created_at,
            kind: self.kind,
            tags: self.tags.to_vec(),
            content: self.content.to_owned(),
            sig: self.sig,
        }
    }
}

/// The store's notes about an event. The event itself never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The event is deleted.
    pub const DELETED: Self = Self(0x01);
    /// A newer replaceable event replaced the event.
    pub const REPLACED: Self = Self(0x02);
    /// The record continues on further pages. Pages set this flag; callers never do.
    pub const CONTINUED: Self = Self(0x80);
    /// Tag names are lost: no known names match the id. Readers compute the flag; no file stores
    /// it.
    pub const LOSSY: Self = Self(0x40);

    /// Whether all flags of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the event is neither deleted nor replaced.
    pub fn is_live(self) -> bool {
        self.0 & (Self::DELETED.0 | Self::REPLACED.0) == 0
    }

    /// [`Flags::LOSSY`] alone, if the flag is set.
    pub(crate) fn lossy(self) -> Self {
        Self(self.0 & Self::LOSSY.0)
    }

    /// The stored flags of an event: without [`Flags::CONTINUED`] and [`Flags::LOSSY`].
    pub(crate) fn of_event(self) -> Self {
        Self(self.0 & !(Self::CONTINUED.0 | Self::LOSSY.0))
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The location of a record: the segment, and the first byte of the record's first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Number of the segment.
    pub segment: u32,
    /// The byte of the segment's file.
    pub offset: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}
