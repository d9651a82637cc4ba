//! Damaged pages that a check found are remembered: opening does not read what a checkpoint covers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use deedbook::nostr::{Options, repair};
use deedbook::storage::Disk;
use deedbook::{ErrorKind, Mode, Repair};

use crate::support::store::events::{note, notes, options};

fn on() -> Options {
    options(Arc::new(Disk))
}

/// Change a byte of the second event, or change it back.
fn flip(dir: &Path) {
    let path = dir.join("data/segments/data.0.seg");
    let mut bytes = fs::read(&path).unwrap();
    bytes[2 * 4096 + 60] ^= 1;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn a_store_with_known_damage_is_not_opened_for_writing() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("events");
    let store = on().open(&dir, Mode::Create).unwrap();
    store.append_many(&notes(0..5)).unwrap();
    store.close().unwrap();
    flip(&dir);
    on().open(&dir, Mode::Append).unwrap().close().unwrap();
    for mode in [Mode::Read, Mode::Append] {
        let error = on().check_all(true).open(&dir, mode).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(8192)), "{error}");
    }

    let refused = || {
        let error = on().open(&dir, Mode::Append).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(8192)), "{error}");
        assert!(error.message().contains("an earlier check found this damage"), "{error}");
    };
    refused();
    let reader = on().open(&dir, Mode::Read).unwrap();
    assert!(reader.verify(Default::default()).unwrap().noted);
    refused();

    // Put the right byte back.
    flip(&dir);
    refused();
    let report = on().open(&dir, Mode::Read).unwrap().verify(Default::default()).unwrap();
    assert!(report.is_ok() && !report.noted, "{report:?}");
    on().check_all(true).open(&dir, Mode::Append).unwrap().close().unwrap();

    flip(&dir);
    assert!(on().open(&dir, Mode::Read).unwrap().verify(Default::default()).unwrap().noted);
    let may = Repair { force: true, accept_loss: true, dry_run: false };
    assert!(repair(&dir, &on(), may).unwrap().mended);
    let store = on().open(&dir, Mode::Append).unwrap();
    store.append(&note(9)).unwrap();
}
