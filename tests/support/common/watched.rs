//! A disk with a counter for calls, some of which fail. Syncs do nothing, because here no power is cut.

use crate::support::prelude::*;

/// Runs before a call, with the number of the call, from 1 on, and the path. The call returns its error.
type Before = dyn Fn(u64, &Path) -> io::Result<()> + Send + Sync;

#[derive(Clone)]
pub struct Asking {
    calls: Arc<AtomicU64>,
    before: Arc<Before>,
    synced: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// The disk, with a function before each call.
pub type Watched = Around<Asking>;

impl Watched {
    pub fn new(before: impl Fn(u64, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let (calls, synced) = (Arc::default(), Arc::default());
        Self::on(Disk, Asking { calls, before: Arc::new(before), synced })
    }

    /// Fails the call with this number. With `dead`, all later calls fail, too, as if the process had ended.
    pub fn failing(at: u64, dead: bool) -> Self {
        Self::new(move |call, _| match call == at || (dead && call > at) {
            true => Err(io::ErrorKind::Other.into()),
            false => Ok(()),
        })
    }

    pub fn idle() -> Self {
        Self::new(|_, _| Ok(()))
    }

    pub fn calls(&self) -> u64 {
        self.by.calls.load(Ordering::Relaxed)
    }

    pub fn has_synced(&self, dir: &Path) -> bool {
        self.by.synced.lock().unwrap().contains(dir)
    }
}

impl Between for Asking {
    fn before(&self, call: Call, path: &Path) -> io::Result<()> {
        match call {
            Call::Id | Call::Allocate => Ok(()),
            _ => (self.before)(self.calls.fetch_add(1, Ordering::Relaxed) + 1, path),
        }
    }

    fn allocate(&self, _file: &dyn File, _path: &Path, _len: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn sync(&self, _file: &Arc<dyn File>, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _storage: &Arc<dyn Storage>, dir: &Path) -> io::Result<()> {
        self.synced.lock().unwrap().insert(dir.to_path_buf());
        Ok(())
    }
}
