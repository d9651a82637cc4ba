//! Files that a store may not open, such as another user's in a shared directory. The promises for the store's own
//! records hold, and all other work goes on.

use crate::prelude::*;
use crate::support::crashes::worst;

/// A file that cannot be opened, and one that cannot be removed, as another user's in a directory with the sticky
/// bit.
#[derive(Clone, Default)]
struct Denied {
    opening: Arc<Mutex<Option<PathBuf>>>,
    removing: Arc<Mutex<Option<PathBuf>>>,
}

struct Shared {
    disk: Sim,
    storage: Around<Denied>,
}

impl Shared {
    fn new() -> Self {
        let disk = Sim::new();
        Self { storage: Around::on(disk.clone(), Denied::default()), disk }
    }

    /// With another user's file of four events.
    fn with_a_file_of_another() -> Self {
        let shared = Self::new();
        put(&shared.storage, 0, &file_of(&events(0..4, 0)));
        shared.deny("0-events");
        shared
    }

    fn deny(&self, name: &str) {
        *self.storage.by.opening.lock().unwrap() = Some(Path::new(DIR).join(name));
    }

    fn allow(&self) {
        *self.storage.by.opening.lock().unwrap() = None;
    }

    /// With files of four events, and a durability of none.
    fn open(&self) -> LedgerStore {
        on(self.storage.clone()).durability(Durability::None).open(small(DIR, 100)).unwrap()
    }

    fn after_a_power_cut(&self) -> Vec<Vec<u8>> {
        drain(&on(worst(&self.disk)).open(small(DIR, 100)).unwrap())
    }
}

impl Between for Denied {
    fn before(&self, call: Call, path: &Path) -> io::Result<()> {
        let refused = match call {
            Call::Open => &self.opening,
            Call::Remove => &self.removing,
            _ => return Ok(()),
        };
        match refused.lock().unwrap().as_deref() == Some(path) {
            true => Err(Io::PermissionDenied.into()),
            false => Ok(()),
        }
    }
}

/// One file of root's, with the mode 0600, made a sync and every later append fail.
#[test]
fn another_users_file_does_not_fail_a_sync() {
    let shared = Shared::with_a_file_of_another();
    let ledger = shared.open();
    ledger.append_many(events(4..13, 0)).unwrap();
    ledger.sync().unwrap();
    assert_eq!(shared.after_a_power_cut(), events(4..13, 0));
    ledger.append(&event(13, 0)).unwrap();
}

/// A process without its former rights could not open the file. A sync would have acknowledged the file.
#[test]
fn sync_fails_until_the_store_opens_its_file() {
    let shared = Shared::with_a_file_of_another();
    let ledger = shared.open();
    ledger.append_many(events(4..13, 0)).unwrap();
    shared.deny("1-events");
    let error = refused(ledger.sync(), ErrorKind::Io);
    assert_eq!(error.path().unwrap(), Path::new("/spool/1-events"));
    assert_eq!(error.durable(), Some(Durable::Unknown));
    // No sync has failed: the store goes on, and the opened files are durable.
    ledger.append(&event(13, 0)).unwrap();
    assert_eq!(shared.after_a_power_cut(), [events(0..4, 0), events(8..13, 0)].concat());
    shared.allow();
    ledger.sync().unwrap();
    assert_eq!(shared.after_a_power_cut(), events(0..14, 0));
}

/// Linux reports a failed sync once. A second sync would have acknowledged the unsynced records.
#[test]
fn failed_sync_refuses_later_appends_without_durability() {
    let shared = Shared::new();
    let ledger = shared.open();
    ledger.append_many(events(0..4, 0)).unwrap();
    shared.disk.inject(Fault::once(1, What::Error(Io::Other)).of(Call::Sync));
    refused(ledger.sync(), ErrorKind::Io);
    refused(ledger.append(&event(4, 0)), ErrorKind::Poisoned);
    refused(ledger.sync(), ErrorKind::Poisoned);
}

/// If the oldest file was another user's, the store dropped no later file, and every append at the limit failed.
#[test]
fn a_full_ledger_drops_what_it_can() {
    let shared = Shared::with_a_file_of_another();
    let options = on(shared.storage.clone()).bytes_total_max(1000).when_full(WhenFull::DropOldest);
    let ledger = options.open(small(DIR, 100)).unwrap();
    append_each(&ledger, &events(4..60, 0));
    let left = drain(&ledger);
    let first = number_of(&left[0]);
    assert_eq!(left, events(first..60, 0), "the newest are kept");
    assert_eq!(ledger.stats().dropped_records, first - 4);
    assert_eq!(listing(&shared.disk, Path::new(DIR))["0-events"], file_of(&events(0..4, 0)));
}

/// A file that could not be removed took nearly all of the limit. The store dropped its own events one after the other,
/// and the append failed all the same.
#[test]
fn full_ledger_drops_nothing_if_not_enough() {
    let shared = Shared::new();
    let large = file_of(&events(0..28, 0));
    put(&shared.storage, 0, &large);
    let bytes = |events: Vec<Vec<u8>>| file_of(&events).len() as u64;
    let (own, more) = (bytes(events(28..30, 0)), bytes(events(30..34, 0)));
    // One byte short, even if the store drops all of its own files.
    let limit = large.len() as u64 + more - 1;
    assert!(own < more);
    let options = on(shared.storage.clone()).bytes_total_max(limit).when_full(WhenFull::DropOldest);
    let ledger = options.open(small(DIR, 100)).unwrap();
    append_each(&ledger, &events(28..30, 0));
    *shared.storage.by.removing.lock().unwrap() = Some(Path::new(DIR).join("0-events"));
    let error = refused(ledger.append_many(events(30..34, 0)), ErrorKind::Io);
    assert_eq!(error.path().unwrap(), Path::new("/spool/0-events"));
    // Otherwise the caller could not know whether a retry stores the records twice.
    assert_eq!(error.durable(), Some(Durable::No), "{error}");
    assert_eq!(error.io_source().unwrap().kind(), Io::PermissionDenied, "{error}");
    assert_eq!(ledger.stats().dropped_records, 0);
    *shared.storage.by.removing.lock().unwrap() = None;
    assert_eq!(drain(&ledger), events(0..30, 0));
}

/// A reset stopped at the denied file, and left all later files.
#[test]
fn a_reset_removes_all_that_it_can() {
    let shared = Shared::with_a_file_of_another();
    let ledger = shared.open();
    ledger.append_many(events(4..13, 0)).unwrap();
    let error = refused(ledger.reset(), ErrorKind::Io);
    assert_eq!(error.path().unwrap(), Path::new("/spool/0-events"));
    assert_eq!(names(&shared.disk, DIR), ["0-events"]);
}

/// A store that could not read the limit of its ledger took a longer record for damage, and moved an intact file to the
/// quarantine.
#[test]
fn store_denied_its_limit_changes_no_file() {
    let (shared, long) = (Shared::new(), vec![b'x'; (1 << 20) + 1]);
    let options = on(shared.storage.clone()).record_bytes_max(2 << 20);
    options.open(small(DIR, 100)).unwrap().append(&long).unwrap();
    shared.deny(".deedbook/settings");
    let ledger = shared.open();
    let error = refused(ledger.fetch(None, None), ErrorKind::Io);
    assert_eq!(error.path().unwrap(), Path::new("/spool/.deedbook/settings"));
    shared.allow();
    assert_eq!(drain(&ledger), [long]);
}
