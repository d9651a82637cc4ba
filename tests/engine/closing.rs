//! Closing and failing writes next to a sync under way: a reported success is real.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use crate::support::formats::book::BOOK;
use crate::support::formats::subject::{self, ACKNOWLEDGED};
use crate::support::formats::wal::{SINGLE, WalFormat};
use crate::support::prelude::*;

const SEGMENTED: WalFormat = WalFormat::segmented("wal-segments-600", 600);
const KINDS: [Kind; 3] = [Kind::Log(&BOOK), Kind::Log(&SINGLE), Kind::Log(&SEGMENTED)];
const ALL_KINDS: [Kind; 4] = [KINDS[0], KINDS[1], KINDS[2], Kind::Ledger];

#[derive(Clone, Copy)]
enum Kind {
    Log(&'static dyn Format),
    Ledger,
}

enum Log {
    OfEngine(Box<dyn subject::Log>),
    OfLedger(ledger::LedgerStore),
}

impl Log {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::OfEngine(log) => log.append(0, bytes).map(drop),
            Self::OfLedger(ledger) => ledger.append(bytes).map(drop),
        }
    }

    fn sync(&self) -> Result<()> {
        match self {
            Self::OfEngine(log) => log.sync(),
            Self::OfLedger(ledger) => ledger.sync(),
        }
    }

    fn close(&self) -> Result<()> {
        match self {
            Self::OfEngine(log) => log.close(),
            Self::OfLedger(ledger) => ledger.close(),
        }
    }

    fn len(&self) -> u64 {
        let ledger = match self {
            Self::OfEngine(log) => return log.len().unwrap(),
            Self::OfLedger(ledger) => ledger,
        };
        let fetched = ledger.fetch(None, None).unwrap();
        let readers = fetched.and_then(|fetched| fetched.data).unwrap_or_default();
        readers.iter().map(ledger::LedgerReader::records).sum()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(format) => f.write_str(format.name()),
            Self::Ledger => f.write_str("Ledger"),
        }
    }
}

impl Kind {
    fn open(self, storage: Arc<dyn Storage>) -> Arc<Log> {
        self.open_as(storage, MANUAL)
    }

    fn open_as(self, storage: Arc<dyn Storage>, how: How) -> Arc<Log> {
        let dir = Path::new("/log");
        if !storage.is_dir(dir) {
            storage.create_dir(dir).unwrap();
            storage.sync_dir(Path::new("/")).unwrap();
        }
        match self {
            Self::Log(format) => {
                let at = At { storage, path: format.path_in(dir) };
                Arc::new(Log::OfEngine(format.open(&at, Mode::Append, how).unwrap()))
            }
            Self::Ledger => {
                let options = ledger::Options::new().durability(how.durability).storage(storage);
                let config = ledger::LedgerConfig::lines(dir, "events");
                Arc::new(Log::OfLedger(options.open(config).unwrap()))
            }
        }
    }

    /// How many records are left in each state that a power cut may leave.
    fn left(self, disk: &Sim) -> Vec<u64> {
        cuts(disk, 64).into_iter().map(|disk| self.open(Arc::new(disk)).len()).collect()
    }
}

/// A log with one record. A call by the thread `leader` waits before its first sync.
struct HeldUp {
    disk: Sim,
    log: Arc<Log>,
    leader: JoinHandle<Result<()>>,
    go_on: Sender<()>,
}

fn held_up(kind: Kind, call: fn(&Log) -> Result<()>) -> HeldUp {
    let disk = Sim::new();
    let (arrived, arrives) = channel();
    let (go_on, goes_on): (_, Receiver<()>) = channel();
    let gate = Mutex::new(Some((arrived, goes_on)));
    let storage = watched(Arc::new(disk.clone()), move |seen| {
        let leads = std::thread::current().name() == Some("leader");
        if seen == Seen::Syncing && leads {
            let gate = gate.lock().unwrap().take();
            if let Some((arrived, goes_on)) = gate {
                arrived.send(()).unwrap();
                let _ = goes_on.recv();
            }
        }
    });
    let log = kind.open(storage);
    log.append(&[1; 50]).unwrap();
    let leading = log.clone();
    let leader = std::thread::Builder::new().name("leader".into()).spawn(move || call(&leading));
    arrives.recv().unwrap();
    HeldUp { disk, log, leader: leader.unwrap(), go_on }
}

/// Found by a review: a segmented log's leader took the set of unsynced segments. Closing found nothing to sync, and
/// reported all records as durable. A second call to close a ledger returned at once, while the first one still synced.
#[test]
fn closing_waits_for_the_call_under_way() {
    let calls: [fn(&Log) -> Result<()>; 2] = [|log| log.sync(), |log| log.close()];
    for (kind, call) in ALL_KINDS.into_iter().flat_map(|kind| calls.map(|call| (kind, call))) {
        closes_after(kind, held_up(kind, call));
    }
}

/// Closing next to the waiting call returns once the record is durable.
fn closes_after(kind: Kind, HeldUp { disk, log, leader, go_on }: HeldUp) {
    let closing = std::thread::spawn(move || log.close().map(|()| kind.left(&disk)));
    std::thread::sleep(Duration::from_millis(50));
    drop(go_on);
    let left = closing.join().unwrap().unwrap();
    assert!(left.iter().all(|&records| records == 1), "{kind:?}: {left:?}");
    leader.join().unwrap().unwrap();
}

/// Closing again after a failure reported success; later the ledger repeated this bug.
#[test]
fn closing_that_failed_fails_again() {
    for kind in ALL_KINDS {
        let disk = Sim::new();
        let log = kind.open(Arc::new(disk.clone()));
        log.append(b"unsynced").unwrap();
        disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Io, "{kind:?}");
        assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Poisoned, "{kind:?}");
        disk.heal();
        kind.open(Arc::new(disk));
    }
}

/// The mark's write or sync failed once, for example on a full disk, so the mark stayed closed.
/// Closing concluded from the closed mark that nobody had appended, and synced nothing.
#[test]
fn closing_syncs_appends_after_the_mark_failed() {
    for kind in KINDS {
        for call in [Call::Write, Call::Sync] {
            let disk = Sim::new();
            let log = kind.open(Arc::new(disk.clone()));
            log.append(b"one").unwrap();
            log.close().unwrap();
            let log = kind.open(Arc::new(disk.clone()));
            disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(call));
            log.append(b"two").unwrap();
            log.close().unwrap();
            let left = kind.left(&disk);
            assert!(left.iter().all(|&records| records == 2), "{kind:?}, {call:?}: {left:?}");
        }
    }
}

/// Gives some bytes, then waits for the word to go on or to fail.
struct Slow {
    given: usize,
    arrived: Sender<()>,
    goes_on: Receiver<bool>,
}

impl io::Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given >= 2 << 20 {
            self.arrived.send(()).unwrap();
            self.given = 0;
            if !self.goes_on.recv().unwrap() {
                return Err(io::ErrorKind::Other.into());
            }
        }
        self.given += out.len();
        out.fill(7);
        Ok(out.len())
    }
}

/// A sync failed while another thread was writing a record, and closing let the next writer in. The
/// record overwrote the next writer's commits, or its rollback removed them.
#[test]
fn closing_a_poisoned_log_waits_for_running_appends() {
    for kind in KINDS {
        for ends_well in [true, false] {
            let HeldUp { disk, log, leader, go_on } = held_up(kind, |log| log.sync());
            let (arrived, arrives) = channel();
            let (tell, goes_on) = channel();
            let appending = {
                let log = log.clone();
                let mut source = Slow { given: 0, arrived, goes_on };
                std::thread::spawn(move || match &*log {
                    Log::OfEngine(log) => drop(log.append_from(0, 3 << 20, &mut source)),
                    Log::OfLedger(_) => unreachable!("a ledger's records are short"),
                })
            };
            arrives.recv().unwrap();
            disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
            drop(go_on);
            assert!(leader.join().unwrap().is_err(), "{kind:?}");
            let (closed, closes) = channel();
            let closing = {
                let log = log.clone();
                std::thread::spawn(move || {
                    let done = log.close().map_err(|error| error.kind());
                    closed.send(done).unwrap();
                })
            };
            let waited = closes.recv_timeout(Duration::from_millis(100));
            assert!(waited.is_err(), "{kind:?}: closed while a record was being written");
            tell.send(ends_well).unwrap();
            assert_eq!(closes.recv().unwrap(), Err(ErrorKind::Poisoned), "{kind:?}");
            closing.join().unwrap();
            appending.join().unwrap();
            assert_eq!(log.append(b"late").unwrap_err().kind(), ErrorKind::Closed, "{kind:?}");
            let next = kind.open(Arc::new(disk.clone()));
            next.append(b"next").unwrap();
            next.sync().unwrap();
            let records = next.len();
            drop(log);
            drop(next);
            assert_eq!(kind.open(Arc::new(disk)).len(), records, "{kind:?}");
        }
    }
}

/// Found by a review: an earlier sync stored its older mark after the mark of closing. A recovery
/// that cuts back to the mark then lost acknowledged records.
#[test]
fn the_mark_of_closing_is_the_last_one() {
    for kind in [KINDS[0], KINDS[1]] {
        let disk = Sim::new();
        let (arrived, arrives) = channel();
        let (go_on, goes_on) = channel::<()>();
        let leading = Mutex::new(Some((arrived, goes_on)));
        let closing = Mutex::new((0, Some(go_on)));
        let storage = watched(Arc::new(disk.clone()), move |seen| {
            match (seen, std::thread::current().name()) {
                (Seen::Syncing, Some("leader")) => {
                    let gate = leading.lock().unwrap().take();
                    if let Some((arrived, goes_on)) = gate {
                        arrived.send(()).unwrap();
                        // The wait ends early, unless closing waits for the leader.
                        let _ = goes_on.recv_timeout(Duration::from_millis(300));
                    }
                }
                (Seen::Syncing, Some("closer")) => {
                    let mut closing = closing.lock().unwrap();
                    closing.0 += 1;
                    // The log was synced; the next syncs are the mark's, then the index's.
                    if closing.0 >= 2 {
                        drop(closing.1.take());
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
                _ => {}
            }
        });
        let log = kind.open_as(storage, ACKNOWLEDGED);
        let named = |name: &str, end: fn(&Log) -> Result<()>| {
            let log = log.clone();
            std::thread::Builder::new().name(name.into()).spawn(move || end(&log)).unwrap()
        };
        log.append(&[1; 70_000]).unwrap(); // so that there is an index
        let leader = named("leader", |log| log.sync());
        arrives.recv().unwrap();
        log.append(b"two").unwrap();
        named("closer", |log| log.close()).join().unwrap().unwrap();
        leader.join().unwrap().unwrap();
        drop(log);
        assert_eq!(kind.open_as(Arc::new(disk), ACKNOWLEDGED).len(), 2, "{kind:?}");
    }
}

/// Found by a review: threads slept on until the end of their interval.
#[cfg(target_os = "linux")]
#[test]
fn no_thread_outlives_its_log() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let dir = tempfile::tempdir().unwrap();
    let durability = Durability::Interval(Duration::from_secs(600));
    for n in 0..100 {
        let path = dir.path().join(n.to_string());
        match n % 2 {
            0 => {
                let options = wal::Options::new().durability(durability);
                options.open(path, Mode::Create).unwrap().close().unwrap();
            }
            _ => {
                let options = book::Options::new().durability(durability);
                options.open(path, Mode::Create).unwrap().close().unwrap();
            }
        }
    }
    // Threads of other tests, and threads about to end.
    std::thread::sleep(Duration::from_millis(200));
    assert!(threads() < before + 50, "{} threads, {before} before", threads());
}
