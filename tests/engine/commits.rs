//! What a commit acknowledges beside appends and failed writes of other threads, in both formats.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use deedbook::book::{self, Book};
use deedbook::storage::Storage;
use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::wal::{self, Layout, Wal};
use deedbook::{Durability, ErrorKind, Result};

use crate::support::watch::{Seen, watched};

const PATH: &str = "/log";
const HANGS: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Format {
    Book,
    Wal,
    Segments,
}

const FORMATS: [Format; 3] = [Format::Book, Format::Wal, Format::Segments];

#[derive(Clone, Debug)]
enum AnyLog {
    Book(Book),
    Wal(Wal),
}

impl Format {
    fn open(self, storage: Arc<dyn Storage>) -> AnyLog {
        let durability = Durability::Manual;
        let layout = match self {
            Self::Book => {
                let options = book::Options::new().durability(durability).storage(storage);
                return AnyLog::Book(options.open(PATH, book::Mode::Append).unwrap());
            }
            Self::Wal => Layout::Single,
            Self::Segments => Layout::Segmented { segment_bytes: 64 },
        };
        let layout = Some(layout);
        let options = wal::Options::new().durability(durability).storage(storage).layout(layout);
        AnyLog::Wal(options.open(PATH, wal::Mode::Append).unwrap())
    }
}

impl AnyLog {
    fn append(&self, payload: &[u8]) -> Result<()> {
        match self {
            Self::Book(book) => book.append(0, payload).map(drop),
            Self::Wal(wal) => wal.append(payload).map(drop),
        }
    }

    fn sync(&self) -> Result<()> {
        match self {
            Self::Book(book) => book.sync(),
            Self::Wal(wal) => wal.sync(),
        }
    }

    fn payloads(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Book(book) => book.iter(0, None).unwrap().map(|deed| deed.unwrap().jam).collect(),
            Self::Wal(wal) => wal.iter(None).unwrap().map(|r| r.unwrap().payload).collect(),
        }
    }
}

/// The classic bug of group commit: a leader that reads the end of the log *after* its fsync takes
/// what was appended meanwhile for durable, and the sync of that returns without doing anything.
#[test]
fn what_is_appended_during_a_sync_is_not_durable_by_it() {
    for format in FORMATS {
        let sim = Sim::new();
        let log = Arc::new(OnceLock::<AnyLog>::new());
        let armed = Arc::new(AtomicBool::new(false));
        let storage = watched(Arc::new(sim.clone()), {
            let (log, armed) = (log.clone(), armed.clone());
            move |seen| {
                if seen == Seen::Synced && armed.swap(false, Ordering::Relaxed) {
                    log.get().unwrap().append(b"during").unwrap();
                }
            }
        });
        let log = log.get_or_init(|| format.open(storage));
        log.append(b"before").unwrap();
        armed.store(true, Ordering::Relaxed);
        log.sync().unwrap();
        assert!(!armed.load(Ordering::Relaxed), "{format:?}: nothing was synced");
        log.sync().unwrap();
        let crashes = sim.crashes();
        let after = crashes.build(&crashes.nth(0));
        let payloads = format.open(Arc::new(after)).payloads();
        assert_eq!(payloads, [&b"before"[..], b"during"], "{format:?}");
    }
}

/// A full disk stops an append while another thread syncs, and the fsync of the roll back fails: the
/// kernel reports the error there, and only once. With the lock of the roll back dropped at once, or
/// not asked for, the other thread acknowledged what may be lost.
#[test]
fn a_sync_beside_a_roll_back_that_fails_is_not_acknowledged() {
    // Syncs of segments wait for each other: there no other thread can meet the error.
    for format in [Format::Book, Format::Wal] {
        let sim = Sim::new();
        let (synced, is_synced) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (rolling, is_rolling) = mpsc::channel();
        let (release, is_released) = mpsc::channel::<()>();
        let (may_go_on, is_released) = (Mutex::new(may_go_on), Mutex::new(is_released));
        let storage = watched(Arc::new(sim.clone()), move |seen| {
            match (std::thread::current().name(), seen) {
                (Some("leader"), Seen::Synced) if synced.send(()).is_ok() => {
                    let _ = may_go_on.lock().unwrap().recv();
                }
                (Some("appender"), Seen::Syncing) => {
                    rolling.send(()).unwrap();
                    is_released.lock().unwrap().recv().unwrap();
                }
                _ => {}
            }
        });
        let log = format.open(storage);
        log.append(b"before").unwrap();
        let (acked, is_acked) = mpsc::channel();
        let (opened, disk) = (log.clone(), sim.clone());
        // With the ends of the channels, so that a failure in here ends the other threads.
        std::thread::scope(move |scope| {
            let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
                std::thread::Builder::new().name(name.into()).spawn_scoped(scope, work).unwrap();
            };
            let leader = opened.clone();
            spawn("leader", Box::new(move || acked.send(leader.sync()).unwrap()));
            is_synced.recv_timeout(HANGS).unwrap();
            drop(is_synced);
            let full = What::Error(io::ErrorKind::StorageFull);
            disk.inject(Fault::once(1, full).of(Call::Write));
            let appender = opened.clone();
            spawn("appender", Box::new(move || drop(appender.append(b"full").unwrap_err())));
            is_rolling.recv_timeout(HANGS).unwrap();
            drop(go_on);
            // Time for a leader that does not wait.
            let early = is_acked.recv_timeout(Duration::from_millis(100));
            disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
            release.send(()).unwrap();
            let acknowledged = early.or_else(|_| is_acked.recv_timeout(HANGS)).unwrap();
            let error = acknowledged.expect_err("acknowledged beside a failed fsync");
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{format:?}: {error}");
        });
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned, "{format:?}");
    }
}
