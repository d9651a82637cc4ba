//! The hook for a segment before its removal: see [`Options::archive`](crate::wal::Options::archive).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

type Hook = dyn Fn(u64, &Path) -> io::Result<()> + Send + Sync;

/// The hook, which `Debug` shows by its name.
#[derive(Clone)]
pub struct Archive(pub Arc<Hook>);

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}
