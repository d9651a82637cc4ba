//! Two senders on one ledger. A newcomer gave each of four processes a sender, as the page about
//! processes said: 14,874 events arrived for 8,000, and the server was healthy throughout.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use crate::prelude::*;

fn indexes(ledger: &LedgerStore, count: Option<usize>) -> (Vec<u32>, bool) {
    let fetched = ledger.fetch(count, None).unwrap();
    let more = fetched.as_ref().is_some_and(|fetched| fetched.more);
    let removable = fetched.and_then(|fetched| fetched.removable).unwrap_or_default();
    (removable.iter().map(|item| item.index()).collect(), more)
}

fn two_senders(options: &Options) -> (LedgerStore, LedgerStore) {
    let writer = options.open(small(DIR, 1000)).unwrap();
    for number in 0..4 {
        writer.append(&event(number, 0)).unwrap();
        assert!(!indexes(&writer, None).0.is_empty());
    }
    writer.close().unwrap();
    (options.open(small(DIR, 1000)).unwrap(), options.open(small(DIR, 1000)).unwrap())
}

#[test]
fn fetch_skips_files_that_another_store_leased() {
    let (_, options) = memory();
    let (one, two) = two_senders(&options);
    assert_eq!(indexes(&one, Some(2)), (vec![0, 1], true));
    assert_eq!(indexes(&two, None), (vec![2, 3], false));
    assert_eq!(indexes(&one, None), (vec![0, 1], false));
    assert!(one.has_data().unwrap() && two.has_data().unwrap());
    assert_eq!(drain(&one), events(0..2, 0));
    send(&one);
    assert_eq!(indexes(&one, None), (vec![], false));
    assert_eq!(drain(&two), events(2..4, 0));
}

#[test]
fn releasing_closing_or_dropping_gives_leases_back() {
    let (_, options) = memory();
    let (one, two) = two_senders(&options);
    let fetched = one.fetch(Some(3), None).unwrap().unwrap();
    one.release(&fetched.removable.unwrap()[..2]).unwrap();
    assert_eq!(indexes(&two, None), (vec![0, 1, 3], false));
    one.close().unwrap();
    assert_eq!(indexes(&two, None), (vec![0, 1, 2, 3], false));
    drop(two);
    let three = options.open(small(DIR, 1000)).unwrap();
    assert_eq!(indexes(&three, None).0.len(), 4);
}

#[test]
fn lease_ends_with_its_file_or_a_reset() {
    let (_, options) = memory();
    let (one, two) = two_senders(&options);
    assert_eq!(indexes(&one, None).0.len(), 4);
    two.reset().unwrap();
    assert!(!one.has_data().unwrap());
    two.append(&event(9, 0)).unwrap();
    assert_eq!(fetch_all(&two), [(4, events(9..10, 0))]);
    assert_eq!(indexes(&one, None), (vec![], false));
}

#[test]
fn lease_is_private_and_removed_on_close() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().file_mode(0o644);
    let ledger = options.open(small(dir.path(), 1000)).unwrap();
    ledger.append(&event(0, 0)).unwrap();
    assert_eq!(fetch_all(&ledger).len(), 1);
    let lease = dir.path().join(".deedbook/leases-events/0");
    assert_eq!(lease.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read(&lease).unwrap(), b"0\n");
    ledger.close().unwrap();
    assert!(!lease.exists());
}

/// Neither a lease that was left by a dead process, nor bytes that are none, may stop a sender.
#[test]
fn an_old_lease_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = LedgerStore::new(small(dir.path(), 1000)).unwrap();
    let leases = dir.path().join(".deedbook/leases-events");
    std::fs::create_dir_all(&leases).unwrap();
    std::fs::write(leases.join("7"), "0\n1\n").unwrap();
    std::fs::write(leases.join("8"), [0xff; 100]).unwrap();
    ledger.append(&event(0, 0)).unwrap();
    assert_eq!(fetch_all(&ledger).len(), 1);
    assert!(!leases.join("7").exists() && !leases.join("8").exists());
}
