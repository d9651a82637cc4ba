//! The hook that gets a segment before it goes.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

type Hook = dyn Fn(u64, &Path) -> io::Result<()> + Send + Sync;

/// Called with the number and the path of every segment before it is removed. If it fails, nothing
/// is removed and the head stays where it is. Appends and reads go on meanwhile; truncating the log
/// or setting its consumers from within would wait for itself.
///
/// The call that drops waits for it: [`Wal::retain`](crate::wal::Wal::retain), a truncation, an
/// opening, or the first sync in a segment. With
/// [`Durability::Interval`](crate::Durability::Interval) that is the thread that syncs, so nothing is synced
/// while the hook works: keep it short there.
#[derive(Clone)]
pub struct Archive(pub(super) Arc<Hook>);

impl Archive {
    /// A hook. It may be called again for a segment that it got already: after a crash, or after it
    /// failed for a later one.
    pub fn new(hook: impl Fn(u64, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}
