//! Rules for dropping records, and the hook for a file before its removal: the words that all
//! formats share.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::ground::setters::setters;

/// Rules for dropping the beginning of a log, in whole pieces: segments of a write-ahead log,
/// epochs of a pier. An event store drops single events. Each rule allows more drops; consumers
/// allow fewer.
///
/// ```
/// use std::time::Duration;
/// use deedbook::Retention;
///
/// let week = Duration::from_secs(7 * 24 * 3600);
/// let retention = Retention::new().bytes_max(10 << 30).age_max(week);
/// assert!(!retention.consumed);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Drop the oldest pieces as long as the rest has at least so many bytes.
    pub bytes_max: Option<u64>,
    /// Drop pieces whose newest record is older, by the clock's time when the log went on in the
    /// next one.
    pub age_max: Option<Duration>,
    /// Drop pieces that every named consumer has passed. Without consumers, drop none.
    pub consumed: bool,
}

setters! {
    Retention {
        consumed: bool,
    }
    optional {
        bytes_max: u64,
        age_max: Duration,
    }
}

impl Retention {
    /// No rule: nothing is dropped.
    pub fn new() -> Self {
        Self::default()
    }
}

type Hook = dyn Fn(u64, &Path) -> io::Result<()> + Send + Sync;

/// The hook of the option `archive`: gets the number and the path of a segment before its removal.
#[derive(Clone)]
pub(crate) struct Archive(pub Arc<Hook>);

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}
