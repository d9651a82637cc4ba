//! Syncs concurrent with writes and with other syncs.

use std::ffi::OsString;

use super::*;
use crate::storage::{FileId, LockAttempt, Memory};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn name(index: u64) -> String {
    format!("{index}.seg")
}

/// Counts the writes, and the writes that a sync covered. In the middle of each write another
/// thread syncs.
#[derive(Debug, Default)]
struct Watched {
    memory: Memory,
    segments: Mutex<Option<std::sync::Weak<Segmented>>>,
    writes: Arc<AtomicU64>,
    synced: Arc<AtomicU64>,
    /// Syncs take their time.
    slow: AtomicBool,
    fails: AtomicBool,
    /// A sync has begun.
    syncing: AtomicBool,
}

#[derive(Debug)]
struct WatchedFile(Box<dyn File>, Arc<Watched>);

impl File for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.0.id()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        if let Some(segments) = lock(&self.1.segments).as_ref().and_then(|s| s.upgrade()) {
            segments.sync_data()?;
        }
        self.1.writes.fetch_add(1, Ordering::Relaxed);
        self.0.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.0.allocate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        let covered = self.1.writes.load(Ordering::Relaxed);
        self.1.syncing.store(true, Ordering::Release);
        if self.1.slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(200));
        }
        if self.1.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("injected"));
        }
        self.1.synced.store(covered, Ordering::Relaxed);
        self.0.sync_data()
    }
}

#[derive(Clone, Debug)]
struct Watching(Arc<Watched>);

impl Storage for Watching {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(Box::new(WatchedFile(self.0.memory.open(path, access)?, self.0.clone())))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Ok(Box::new(WatchedFile(self.0.memory.create_new(path, mode)?, self.0.clone())))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.memory.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.memory.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.memory.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.memory.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        self.0.memory.is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.memory.sync_dir(dir)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.0.memory.lock(path, sign)
    }
}

/// A sync that takes the set of unsynced segments just before a write lands does not cover the
/// write.
// Promise: wal-segments-sync.
#[test]
fn an_overtaken_write_waits_for_the_next_sync() {
    let watched = Arc::new(Watched::default());
    let storage = Arc::new(Watching(watched.clone()));
    storage.create_dir(Path::new("/log")).unwrap();
    // A short write holds the lock too long for a sync to overtake.
    let (dir, bytes) = (Path::new("/log"), vec![7; SHORT_BYTES_MAX + 1]);
    let (size, extent) = (3 * bytes.len() as u64, Listing::default());
    let access = Access::Write;
    let segments = Arc::new(Segmented::new(storage, dir, name, size, access, 0o600, extent));
    *lock(&watched.segments) = Some(Arc::downgrade(&segments));
    for at in 0..9 {
        segments.write_at(&bytes, at * bytes.len() as u64).unwrap();
        segments.sync_data().unwrap();
        let counts = [&watched.writes, &watched.synced].map(|n| n.load(Ordering::Relaxed));
        assert_eq!(counts[0], counts[1], "write {at}");
    }
}

/// Found by a reviewer: a sync took the set of unsynced segments. A concurrent sync, on closing or
/// after a failed write, found the set empty and returned, before the first sync had reached the
/// disk or failed.
#[test]
fn concurrent_syncs_share_one_failure() {
    type Sync = fn(&Segmented) -> io::Result<()>;
    let second: [Sync; 3] = [|s| s.sync_data(), |s| s.sync_from(0), |s| s.ensure(0)];
    for (second, fails) in second.into_iter().flat_map(|sync| [(sync, false), (sync, true)]) {
        let watched = Arc::new(Watched::default());
        let storage = Arc::new(Watching(watched.clone()));
        storage.create_dir(Path::new("/log")).unwrap();
        let (dir, extent) = (Path::new("/log"), Listing::default());
        let segments = Segmented::new(storage, dir, name, 600, Access::Write, 0o600, extent);
        segments.write_at(b"unsynced", 0).unwrap();
        watched.slow.store(true, Ordering::Relaxed);
        watched.fails.store(fails, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| segments.sync_data());
            while !watched.syncing.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            assert_eq!(second(&segments).is_err(), fails);
            let synced = watched.synced.load(Ordering::Relaxed);
            assert_eq!(synced, u64::from(!fails), "the first sync has not ended");
            assert_eq!(first.join().unwrap().is_err(), fails);
        });
    }
}
