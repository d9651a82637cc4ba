//! A storage that reports calls to a test. The test may delay the calls.

use crate::support::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Calling,
    Opened,
    Closed,
    /// The number of bytes read.
    Read(usize),
    Synced,
    Syncing,
    NotSynced,
}

#[derive(Clone)]
struct Watching(Arc<dyn Fn(Seen) + Send + Sync>);

/// `storage`, with a function that runs before every call and after the calls on files.
pub fn watched(
    storage: Arc<dyn Storage>,
    hook: impl Fn(Seen) + Send + Sync + 'static,
) -> Arc<dyn Storage> {
    Arc::new(Around { storage, by: Watching(Arc::new(hook)) })
}

/// `storage` with `act` before call number `at`, and the number of calls so far.
pub fn before_call(
    storage: Arc<dyn Storage>,
    at: u64,
    act: impl Fn() + Send + Sync + 'static,
) -> (Arc<dyn Storage>, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let storage = watched(storage, move |seen| {
        if seen == Seen::Calling && count.fetch_add(1, Ordering::Relaxed) + 1 == at {
            act();
        }
    });
    (storage, calls)
}

impl Between for Watching {
    fn before(&self, call: Call, _path: &Path) -> io::Result<()> {
        if call == Call::Sync {
            (self.0)(Seen::Syncing);
        }
        (self.0)(Seen::Calling);
        Ok(())
    }

    fn opened(&self, _path: &Path) {
        (self.0)(Seen::Opened);
    }

    fn closed(&self) {
        (self.0)(Seen::Closed);
    }

    fn read(&self, file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = file.read_at(buf, offset)?;
        (self.0)(Seen::Read(read));
        Ok(read)
    }

    fn sync(&self, file: &Arc<dyn File>, _path: &Path) -> io::Result<()> {
        let synced = file.sync_data();
        (self.0)(if synced.is_ok() { Seen::Synced } else { Seen::NotSynced });
        synced
    }
}
