//! Damage, a reader's reaction, and the verdicts on a log's end.

#[cfg(feature = "nostr")]
use std::ops::Range;
use std::path::PathBuf;

/// How a log ends. The worse verdict is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The last record ends where the file ends.
    Clean,
    /// Only unwritten space follows the last intact record: a writer has the log open, or crashed.
    Open,
    /// An incomplete tail follows the last intact record.
    Torn,
    /// Damage with intact records after it, or below the high-water mark.
    Corrupt,
}

impl Verdict {
    /// `clean`, `open`, `torn` or `corrupt`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Open => "open",
            Self::Torn => "torn",
            Self::Corrupt => "corrupt",
        }
    }
}

/// The behaviour of a reader at damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCorrupt {
    /// An error.
    #[default]
    Raise,
    /// Go on at the next intact record, and note the damage.
    Skip,
}

/// A damaged stretch of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// First damaged byte.
    pub offset: u64,
    /// First byte after the damage: the next intact record, or the end of the file.
    pub end: u64,
    /// The reason, with both values.
    pub reason: String,
    /// The next intact record.
    pub next_intact: Option<u64>,
    /// Whether the next record is proved to be a record of the log. An unproved one may lie inside
    /// the payload of a damaged record.
    pub next_proved: bool,
    /// Ordinal of the first record lost, where it is known.
    pub first_lost: Option<u64>,
    /// How many records are lost, where it is known.
    pub records_lost: Option<u64>,
    /// The segment of an event store, whose file has the bytes.
    pub segment: Option<u32>,
    /// The file with the bytes, or the directory, where a check of an event store names one.
    pub path: Option<PathBuf>,
}

impl Damage {
    /// Damage of some bytes of a file.
    #[cfg(feature = "nostr")]
    pub(crate) fn of_file(path: impl Into<PathBuf>, bytes: Range<u64>, reason: String) -> Self {
        Self {
            offset: bytes.start,
            end: bytes.end,
            reason,
            path: Some(path.into()),
            ..Self::default()
        }
    }
}
