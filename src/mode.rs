//! How a log is opened: the words that all formats share.

use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// What a handle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Read: takes no writer's lock, and never changes the log. Calls that say so write beside it, in
    /// `.deedbook`: consumers, staged records.
    Read,
    /// Append; create the log if it is missing.
    Append,
    /// Create; fail if the log exists.
    Create,
}

/// What opening for write does with a tail that is not clean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// Keep every intact record, cut a torn tail, refuse a corrupt log.
    #[default]
    Valid,
    /// The same, and cut intact records that were never acknowledged as durable. Every sync then
    /// syncs the mark, too. Of what a handle with another setting wrote, nothing is cut, because
    /// its mark may be older than what it acknowledged.
    Acknowledged,
    /// Cut after the last valid record whatever lies there, after saving what is cut. Acknowledged
    /// records that are missing are noted, as a repair notes them.
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
    /// Only where it begins and what its mark says, for callers that know what to read.
    Begin,
    /// As little as shows where it ends.
    Quick,
    /// The checksum of every record.
    Full,
}
