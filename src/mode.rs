//! How a log is opened: the words that all formats share.

use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// The permissions of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Read: takes no writer's lock, and never changes the log. Some calls, as documented, write in
    /// `.deedbook`: consumers, staged records.
    Read,
    /// Append; create the log if it is missing.
    Append,
    /// Create; fail if the log exists.
    Create,
}

/// How opening for write treats a tail that is not clean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// Keep every intact record, cut a torn tail, refuse a corrupt log.
    #[default]
    Valid,
    /// As [`Self::Valid`], and cut intact records that were never acknowledged as durable. Every
    /// sync then syncs the mark, too. Records of a handle with another setting stay, because its
    /// mark may be older than its acknowledgements.
    Acknowledged,
    /// Cut after the last valid record, whatever follows, and save the cut bytes first. Missing
    /// acknowledged records are noted, like a repair's.
    Spec,
}

impl FromStr for Recovery {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "valid" => Ok(Self::Valid),
            "acknowledged" => Ok(Self::Acknowledged),
            "spec" => Ok(Self::Spec),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("recovery {text:?}, must be one of \"valid\", \"acknowledged\", \"spec\""),
            )),
        }
    }
}

/// How much of a log is read when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Check only the beginning and the mark, for callers that know the bytes to read.
    Begin,
    /// As little as shows where it ends.
    Quick,
    /// The checksum of every record.
    Full,
}
