//! The simulated disk for the model checker. Other threads may run where a log writes or syncs: also before a sync has
//! any effect, and after its effect, before it returns.

use std::io;
use std::path::Path;
use std::sync::Arc;

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{File, Storage};
use shuttle::sync::atomic::{AtomicBool, Ordering};

use crate::around::{Around, Between};

/// The disk. A standard lock guards the state, and is never held at a point where threads change.
#[derive(Clone, Default)]
pub struct Disk {
    sim: Sim,
    points: Points,
}

#[derive(Clone, Default)]
struct Points {
    /// Read at points where another thread may run.
    point: Arc<AtomicBool>,
    panics: Arc<AtomicBool>,
}

impl Disk {
    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(Around::on(self.sim.clone(), self.points.clone()))
    }

    /// The sync of data after this many fails, once.
    pub fn fail_sync_after(&self, syncs: u64) {
        let fault = Fault::once(syncs + 1, What::Error(io::ErrorKind::Other));
        self.sim.inject(fault.of(Call::Sync));
    }

    pub fn panic_in_sync(&self) {
        self.points.panics.store(true, Ordering::SeqCst);
    }

    pub fn after_kill(&self) -> Self {
        Self { sim: self.sim.kill(), points: Points::default() }
    }

    /// The disk after a power cut at this moment: synced names and bytes, nothing else.
    pub fn after_power_cut(&self) -> Self {
        Self { sim: self.sim.crashes().state(0), points: Points::default() }
    }
}

impl Points {
    /// Another thread may go on here. A yield would not do: after a yield, a thread is the last in
    /// line for good, so the thread in the window under test went on at each call of the disk.
    fn others_may_run(&self) {
        self.point.load(Ordering::Relaxed);
    }

    fn amid<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.others_may_run();
        let done = call();
        self.others_may_run();
        done
    }
}

impl Between for Points {
    fn write(&self, file: &dyn File, _path: &Path, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.amid(|| file.write_at(buf, offset))
    }

    fn sync(&self, file: &Arc<dyn File>, _path: &Path) -> io::Result<()> {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "the leader panics");
        self.amid(|| file.sync_data())
    }

    fn sync_dir(&self, storage: &Arc<dyn Storage>, dir: &Path) -> io::Result<()> {
        self.amid(|| storage.sync_dir(dir))
    }
}
