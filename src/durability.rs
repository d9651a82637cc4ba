//! The durability of appends: the words that all formats share.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// When appends are synced. With every choice, a returned append is in the operating system's page
/// cache and survives a crash of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Each append is on stable storage when it returns. A power cut takes nothing acknowledged.
    Always,
    /// A thread of the handle syncs appends after this time, at least a millisecond, and up to two
    /// syncs. A power cut loses at most the appends of that time.
    Interval(Duration),
    /// A sync after so many bytes. A power cut loses at most that many bytes, and one append.
    Bytes(u64),
    /// The caller syncs; closing syncs. A power cut loses everything after the last sync.
    Manual,
    /// For a ledger: each file is synced when finished. A power cut loses at most the appends of
    /// the file being written.
    Rotate,
    /// Appends are not synced. Closing syncs, except in a ledger. A power cut takes the bytes that the
    /// system did not write yet.
    None,
}

/// A shorter time would keep a core busy.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

impl Durability {
    /// Refuse an interval too short to leave a pause between syncs.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Interval(time) if time < INTERVAL_MIN => {
                let message =
                    format!("durability: interval of {time:?}, at least {INTERVAL_MIN:?}");
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
            _ => Ok(()),
        }
    }

    /// As [`Self::check`], and refuse the choices that only ledgers have.
    pub(crate) fn check_of_log(self) -> Result<()> {
        if self == Self::Rotate {
            let message = "durability \"rotate\" is for ledgers only";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        self.check()
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Interval(time) => write!(f, "interval:{}", time.as_millis()),
            Self::Bytes(bytes) => write!(f, "bytes:{bytes}"),
            Self::Manual => f.write_str("manual"),
            Self::Rotate => f.write_str("rotate"),
            Self::None => f.write_str("none"),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|&number| number > 0);
        let parsed = match text.split_once(':') {
            None => match text {
                "always" => Some(Self::Always),
                "manual" => Some(Self::Manual),
                "rotate" => Some(Self::Rotate),
                "none" => Some(Self::None),
                _ => None,
            },
            Some(("interval", ms)) => {
                number(ms).map(|ms| Self::Interval(Duration::from_millis(ms)))
            }
            Some(("bytes", bytes)) => number(bytes).map(Self::Bytes),
            Some(_) => None,
        };
        parsed.ok_or_else(|| {
            let message = match text.split_once(':') {
                Some((name @ ("interval" | "bytes"), _)) => {
                    let unit = if name == "bytes" { "bytes" } else { "milliseconds" };
                    format!("durability {text:?}, must be at least \"{name}:1\" ({unit})")
                }
                _ => format!(
                    "durability {text:?}, must be \"always\", \"interval:MS\", \"bytes:N\", \"manual\", \
                     \"none\", or of a ledger \"rotate\""
                ),
            };
            Error::new(ErrorKind::InvalidArgument, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_a_pause_is_refused() {
        let of = |micros| Durability::Interval(Duration::from_micros(micros)).check();
        assert_eq!(of(999).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(of(1000).is_ok() && Durability::Always.check().is_ok());
    }

    #[test]
    fn every_word_is_read_back() {
        for text in ["always", "interval:100", "bytes:10000000", "manual", "rotate", "none"] {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
        for text in ["", "os", "Always", "interval", "interval:0", "bytes:-1", "interval:1s"] {
            let error = text.parse::<Durability>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }
}
