//! The identity of a log, for a process that reads another process's findings.
//!
//! Two records, by byte and checksum: the first and the last known record. A copy of the log on
//! another node lacks the file's number and times. The first record alone is too little, because
//! logs often begin alike. Appending changes neither record.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::log::extent::Extent;
use crate::scan::framing::{Frame, Framing, FramingExt};
use crate::scan::{Scanned, Scanner};
use crate::sidecar::Mark;
use crate::storage::{File, read_full};

/// The identity of a log, as text `BYTE:CHECKSUM BYTE:CHECKSUM`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity([Anchor; 2]);

/// A record by byte and stored checksum: `BYTE:CHECKSUM`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The record's first byte.
    pub offset: u64,
    /// The stored checksum.
    pub sum: u32,
}

impl Identity {
    /// The identity of a log with this valid prefix; `None` for an empty log.
    pub(super) fn of(extent: &Extent) -> Option<Self> {
        let first = Anchor { offset: extent.start, sum: extent.first_sum };
        let last = Anchor { offset: extent.last_offset, sum: extent.last_sum };
        (extent.records > 0).then_some(Self([first, last]))
    }

    /// The identity of something other than a log: two places by byte and checksum.
    #[cfg(feature = "nostr")]
    pub(crate) fn of_places(places: [(u64, u32); 2]) -> Self {
        Self(places.map(|(offset, sum)| Anchor { offset, sum }))
    }

    /// The two places.
    #[cfg(feature = "nostr")]
    pub(crate) fn places(self) -> [(u64, u32); 2] {
        self.0.map(|anchor| (anchor.offset, anchor.sum))
    }

    /// Refuse another log, with the present bytes `head..end` and the given mark. Only an intact
    /// record with another checksum proves another log; damaged, cut or dropped records prove
    /// nothing. Without checksums nobody can know an intact record, so for such formats the mark
    /// counts first.
    pub(in crate::log) fn check<C: Framing>(
        &self,
        (file, framing): (&dyn File, C),
        (head, end): (u64, u64),
        mark: Option<&Mark>,
        path: &Path,
    ) -> Result<()> {
        let is_checked = framing.sum_at(C::RECORD_BYTES_MIN).is_some();
        let marked = mark.filter(|_| !is_checked).map(Extent::of_mark);
        let is_marked = |anchor: &Anchor| {
            marked
                .and_then(|extent| Self::of(&extent))
                .is_some_and(|marked| marked.0.contains(anchor))
        };
        let mut found = self.0;
        for anchor in &mut found {
            if (head..end).contains(&anchor.offset) && !is_marked(anchor) {
                let now = anchor.now(file, framing, end);
                *anchor = now.map_err(|e| Error::io("read the log", path, e))?;
            }
        }
        Self(found).check_is(self, path)
    }

    /// Refuse findings that differ from the cut.
    pub(crate) fn check_is(&self, cut: &Self, path: &Path) -> Result<()> {
        if self == cut {
            return Ok(());
        }
        let message = format!(
            "another log than the one that was split: it has {self}, that one had {cut} (records by \
             byte and checksum); split this one"
        );
        Err(Error::new(ErrorKind::NotALog, message).at(path))
    }
}

impl Anchor {
    /// The anchor of the intact record at the byte now; `self` without an intact record.
    pub(in crate::log) fn now<C: Framing>(
        self,
        file: &dyn File,
        framing: C,
        end: u64,
    ) -> io::Result<Self> {
        if self.stands(file, framing, end)? {
            return Ok(self);
        }
        let mut scanner = Scanner::of_frames(framing, self.offset, end);
        Ok(match scanner.next(file)? {
            Scanned::Record { frame, .. } => Self { sum: frame.sum(), ..self },
            _ => self,
        })
    }

    /// Whether the checksum is at its place in the record: reads a few bytes, however long the
    /// record.
    fn stands<C: Framing>(self, file: &dyn File, framing: C, end: u64) -> io::Result<bool> {
        let (mut head, mut sum) = (vec![0; C::HEAD_BYTES], [0; 4]);
        let read = read_full(file, &mut head, self.offset)?;
        let len = framing.claimed_len(&head).filter(|_| read == head.len());
        let within = |len: &u64| (C::RECORD_BYTES_MIN..=end - self.offset).contains(len);
        let Some(len) = len.filter(within) else { return Ok(false) };
        let Some(sum_at) = framing.sum_at(len) else { return Ok(false) };
        let read = read_full(file, &mut sum, self.offset + sum_at)?;
        Ok(read == sum.len() && u32::from_le_bytes(sum) == self.sum)
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:08x}", self.offset, self.sum)
    }
}

impl FromStr for Anchor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = || {
            let (offset, sum) = text.split_once(':')?;
            let sum = u32::from_str_radix(sum, 16).ok()?;
            Some(Self { offset: offset.parse().ok()?, sum })
        };
        parsed().ok_or_else(|| {
            let message = format!("record {text:?}, must be BYTE:CHECKSUM");
            Error::new(ErrorKind::InvalidArgument, message)
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = &self.0;
        write!(f, "{first} {last}")
    }
}

impl FromStr for Identity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let both = text.split_once(' ');
        let both = both.and_then(|(one, two)| Some([one.parse().ok()?, two.parse().ok()?]));
        both.map(Self).ok_or_else(|| {
            let message = format!("identity {text:?}, must be BYTE:CHECKSUM BYTE:CHECKSUM");
            Error::new(ErrorKind::InvalidArgument, message)
        })
    }
}
