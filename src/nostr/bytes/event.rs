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
    /// What kind of event it is.
    pub kind: u16,
    /// The tags, each a list of texts of which the first is its name.
    pub tags: Vec<Vec<String>>,
    /// The content.
    pub content: String,
    /// The signature: BIP-340 Schnorr over secp256k1.
    pub sig: [u8; 64],
}

/// An event borrowed from the bytes of its record; nothing is allocated.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'a> {
    /// The SHA-256 of the canonical form.
    pub id: Id,
    /// The author's public key.
    pub pubkey: [u8; 32],
    /// Seconds since 1970.
    pub created_at: u32,
    /// What kind of event it is.
    pub kind: u16,
    /// The tags as they are stored.
    pub tags: TagsRef<'a>,
    /// The content.
    pub content: &'a str,
    /// The signature.
    pub sig: [u8; 64],
    /// What the store notes of the event, and whether it is [lossy](Flags::LOSSY).
    pub flags: Flags,
}

impl EventRef<'_> {
    /// The event with memory of its own.
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

/// What the store notes of an event; the event itself never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The event is deleted.
    pub const DELETED: Self = Self(0x01);
    /// A newer replaceable event took the event's place.
    pub const REPLACED: Self = Self(0x02);
    /// The record goes on in further pages. A matter of pages: it is never given by callers.
    pub const CONTINUED: Self = Self(0x80);
    /// Names of tags are lost: no known ones meet the id. Found when the event is read, and never
    /// stored.
    pub const LOSSY: Self = Self(0x40);

    /// Whether all of these are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the event is neither deleted nor replaced.
    pub fn is_live(self) -> bool {
        self.0 & (Self::DELETED.0 | Self::REPLACED.0) == 0
    }

    /// [`Flags::LOSSY`] alone, if it is set.
    pub(crate) fn lossy(self) -> Self {
        Self(self.0 & Self::LOSSY.0)
    }

    /// What is stored of an event: without [`Flags::CONTINUED`] and [`Flags::LOSSY`].
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

/// Where a record lies: its segment, and the first byte of its first page.
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
