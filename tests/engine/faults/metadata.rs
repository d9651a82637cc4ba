//! Only a Book has metadata next to the log.

use super::*;
use crate::support::formats::book::options;
use crate::support::harness::subjects::BOOK;

fn book(disk: &Sim) -> Book {
    let at = BOOK.at(Arc::new(disk.clone()));
    options(&at, ALWAYS).open(&at.path, Mode::Append).unwrap()
}

// Promise: create-fails.
#[test]
fn metadata_is_replaced_whole_or_not_at_all() {
    let meta = |life| Meta { who: Some(7), version: Some(1), life: Some(life), fake: Some(false) };
    for kind in &HONEST {
        for at in 1..20 {
            let disk = Sim::new();
            let log = book(&disk);
            log.save_meta(&meta(1)).unwrap();
            disk.inject(Fault::once(at, kind.what(at)));
            let saved = log.save_meta(&meta(2));
            for cut in states(&disk, 100) {
                let after = book(&cut).meta().unwrap();
                let old = saved.is_err() && after == meta(1);
                assert!(old || after == meta(2), "{kind:?} at {at}: {after:?}");
            }
            disk.heal();
            let disk = disk.kill();
            let log = book(&disk);
            log.save_meta(&meta(3)).unwrap();
            assert_eq!(log.meta().unwrap(), meta(3));
        }
    }
}
