//! Backups of every kind of log: whole, incremental, resumed, refused; after every crash and every failing call.

/// A test for each kind, so that they run side by side.
macro_rules! of_each_kind {
    ($what:ident) => { of_each_kind! { $what: packed slots segments single pier ledger store } };
    ($what:ident: $($kind:ident)*) => {
        mod $what { $(#[test] fn $kind() { super::$what(stringify!($kind)); })* }
    };
}

mod beside;
mod commits;
mod crash;
mod kinds;
mod refused;

use deedbook::BackupOptions;
use deedbook::report::BackupReport;

use kinds::{KINDS, Kind};

use crate::support::prelude::*;

const LOG: &str = "/here/log";
const COPY: &str = "/there/copy";

fn disk() -> Sim {
    let sim = Sim::new();
    for dir in ["/here", "/there"] {
        sim.create_dir(Path::new(dir)).unwrap();
    }
    sim.sync_dir(Path::new("/")).unwrap();
    sim
}

fn on(sim: &Sim) -> Arc<dyn Storage> {
    Arc::new(sim.clone())
}

/// A backup that notes after few bytes how far it is.
fn back_up(storage: Arc<dyn Storage>) -> Result<BackupReport> {
    let options = BackupOptions::new().storage(storage).noted_every(300);
    options.backup(LOG, COPY, |_| Ok(()))
}

fn write(sim: &Sim, kind: &Kind, round: u32) {
    (kind.write)(&on(sim), Path::new(LOG), round)
        .unwrap_or_else(|e| panic!("{}: {e:?}", kind.name));
}

fn read(sim: &Sim, kind: &Kind, log: &str) -> Result<Vec<Vec<u8>>> {
    (kind.read)(&on(sim), Path::new(log))
}

#[test]
fn the_next_backup_copies_only_new_records() {
    for kind in KINDS {
        let sim = disk();
        let mut before = None;
        for round in 0..4 {
            write(&sim, &kind, round);
            let report =
                back_up(on(&sim)).unwrap_or_else(|e| panic!("{}, {round}: {e:?}", kind.name));
            let (log, copy) = (read(&sim, &kind, LOG).unwrap(), read(&sim, &kind, COPY).unwrap());
            assert!(log.len() >= 5, "{}: {} records", kind.name, log.len());
            assert_eq!(copy, log, "{}, round {round}", kind.name);
            let what = format!("{}, round {round}: {report:?}", kind.name);
            assert!(report.copied_files > 0 && report.copied_bytes > 0, "{what}");
            let new = report.new_records.filter(|_| kind.is_ordered);
            assert_eq!(new, Some(5).filter(|_| kind.is_ordered), "{what}");
            let had = before.replace(report.bounds).flatten();
            assert!(report.bounds.is_none() || report.bounds != had, "{}: {had:?}", kind.name);
            let before = sim.fingerprint();
            let report = back_up(on(&sim)).unwrap();
            assert_eq!((report.copied_files, report.copied_bytes), (0, 0), "{what}");
            assert_eq!(sim.fingerprint(), before, "{}: something was written", kind.name);
        }
        (kind.append)(&on(&sim), Path::new(COPY))
            .unwrap_or_else(|e| panic!("{}: {e:?}", kind.name));
        let copy = read(&sim, &kind, COPY).unwrap();
        assert!(copy.contains(&b"more".to_vec()), "{}", kind.name);
    }
}

#[test]
fn a_backup_copies_ledger_records_above_the_default() {
    let (sim, long) = (disk(), vec![b'x'; (ledger::Options::RECORD_BYTES_MAX + 1) as usize]);
    let options = ledger::Options::default()
        .storage(on(&sim))
        .record_bytes_max(2 * ledger::Options::RECORD_BYTES_MAX);
    let ledger = options.open(LedgerConfig::lines(LOG, "events")).unwrap();
    ledger.append(&long).unwrap();
    ledger.close().unwrap();
    back_up(on(&sim)).unwrap();
    assert_eq!(read(&sim, &Kind::named("ledger"), COPY).unwrap(), [long]);
}
