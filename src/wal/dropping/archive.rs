//! The hook for a segment before its removal.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

type Hook = dyn Fn(u64, &Path) -> io::Result<()> + Send + Sync;

/// Called with the number and the path of every segment before the removal. If the hook fails,
/// nothing is removed and the head stays. Appends and reads continue meanwhile. A hook that
/// truncates the log or sets its consumers waits for itself.
///
/// The call that drops waits for the hook: [`Wal::retain`](crate::wal::Wal::retain), a truncation,
/// an opening, or the first sync in a segment. With
/// [`Durability::Interval`](crate::Durability::Interval) the background thread waits, and syncs
/// nothing while the hook works: keep the hook short.
#[derive(Clone)]
pub struct Archive(pub(super) Arc<Hook>);

impl Archive {
    /// A hook. The log may call the hook again for the same segment: after a crash, or after the
    /// hook failed for a later segment.
    pub fn new(hook: impl Fn(u64, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}
