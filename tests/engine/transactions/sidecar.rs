//! Damage of the small files beside a log that transactions need, on the real disk.
#![cfg(unix)]

use std::fs::{self, File};
use std::path::Path;

use deedbook::wal::Wal;
use deedbook::{Error, ErrorKind};

/// More than any memory, and none of it on the disk.
const SPARSE_BYTES: u64 = 1 << 40;

/// Put a file there that is too long.
fn put(log: &Path, name: &str) {
    let file = File::create(log.join(".deedbook").join(name)).unwrap();
    file.set_len(SPARSE_BYTES).unwrap();
}

fn is_refused(error: &Error, name: &str) {
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {said}");
    let expected = format!("is damaged: {SPARSE_BYTES} bytes, limit ");
    assert!(said.contains(&expected) && said.contains(name), "{name}: {said}");
}

/// As much memory was asked for as the file said it had bytes: the process was aborted, at every opening for
/// writing.
#[test]
fn a_file_of_transactions_that_is_too_long_is_damaged_and_aborts_no_process() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    Wal::create(&log).unwrap().close().unwrap();
    put(&log, "transaction");
    is_refused(&Wal::append_to(&log).unwrap_err(), "transaction");
    Wal::open(&log).unwrap().abandon_transaction().unwrap();
    put(&log, "transactions");
    is_refused(&Wal::open(&log).unwrap().transactions().unwrap_err(), "transactions");
    fs::remove_file(log.join(".deedbook/transactions")).unwrap();
    assert!(Wal::append_to(&log).unwrap().transactions().unwrap().is_empty());

    #[cfg(feature = "nostr")]
    {
        use deedbook::nostr::EventStore;
        let store = place.path().join("store");
        EventStore::create(&store).unwrap().close().unwrap();
        put(&store, "transaction");
        is_refused(&EventStore::append_to(&store).unwrap_err(), "transaction");
        EventStore::open(&store).unwrap().abandon_transaction().unwrap();
        EventStore::append_to(&store).unwrap();
    }
}
