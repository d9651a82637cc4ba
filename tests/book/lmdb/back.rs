//! Exports of books to LMDB.

use crate::lmdb::support::*;

#[test]
fn an_exported_environment_equals_its_source() {
    for name in ["lmdb-100", "lmdb-100-rawmeta"] {
        let (dir, _, dest) = space();
        bring(&data(name), &dest).unwrap();
        let returned = dir.path().join("returned");
        let report = back(&dest, &returned).unwrap();
        assert_eq!((report.events, report.found), (100, 0));
        assert_eq!(
            contents(&returned),
            contents(&data("lmdb-100")),
            "stripped, as Urbit writes it"
        );
        let again = back(&dest, &returned).unwrap();
        assert_eq!(again.found, 100);
        refused(back(&dest, &dest), ErrorKind::AlreadyExists, "the destination holds a book.log");
    }
}

#[test]
fn a_pier_goes_back_as_a_pier() {
    let (dir, _, dest) = space();
    bring(&data("pier-lmdb"), &dest).unwrap();
    let returned = dir.path().join("returned");
    back(&dest, &returned).unwrap();
    for part in ["", "0i0", "0i60"] {
        let (from, to) = (data("pier-lmdb").join(".urb/log").join(part), returned.join(".urb/log"));
        let to = to.join(part);
        assert_eq!(contents(&to), contents(&from), "{part}");
        if !part.is_empty() {
            assert_eq!(fs::read(to.join("epoc.txt")).unwrap(), b"2");
        }
    }
}

#[test]
fn an_export_refuses_an_environment_with_other_events() {
    let (dir, source, dest) = space();
    make_numbered(&source, 1..=10);
    bring(&source, &dest).unwrap();
    let other = dir.path().join("other");
    make(&other, &[(1, b"\x01\0\0\0xx")], &[]);
    refused(back(&dest, &other), ErrorKind::AlreadyExists, "event 1 is another");
}

/// An export ended before the damage and succeeded, with the events before it.
// Promise: migrate-refused.
#[test]
fn a_damaged_book_is_not_partly_exported() {
    for sidecar in [true, false] {
        let (_dir, source, dest) = space();
        let book = Book::create(&source).unwrap();
        for n in 0..9 {
            book.append(n, &[n as u8; 40]).unwrap();
        }
        book.close().unwrap();
        let log = source.join("book.log");
        let mut bytes = fs::read(&log).unwrap();
        bytes[16 + 4 * 60 + 20] ^= 1;
        fs::write(&log, &bytes).unwrap();
        if !sidecar {
            fs::remove_dir_all(source.join(".deedbook")).unwrap();
            // The length, too: without a mark nothing else says that more follows.
            bytes[16 + 4 * 60] ^= 1;
            fs::write(&log, &bytes).unwrap();
        }
        refused(back(&source, &dest), ErrorKind::Corrupt, "salvage copies what is intact");
    }
}

/// A chunk has 8 MiB, and is a transaction.
#[test]
fn an_export_of_many_chunks_has_every_event() {
    let (_dir, source, dest) = space();
    let book = Book::create(&source).unwrap();
    let jam = |event: u64| vec![event as u8; (event as usize % 5) << 20];
    let mut batch = book.batch();
    (1..=14).for_each(|event| batch.push(event as u32, &jam(event)).unwrap());
    book.append_batch(&batch, None, None).unwrap();
    book.close().unwrap();
    let mut steps = Vec::new();
    let report = Options::default().export(&source, &dest, |done, _| {
        steps.push(done);
        Ok(())
    });
    assert_eq!(report.unwrap().events, 14);
    assert!(steps.len() > 2, "{steps:?}");
    let held = Environment::open(&dest).unwrap();
    let mut events = 0;
    held.each(1, &mut |event, mug, found| {
        events += 1;
        assert!((event, mug) == (events, events as u32) && found == jam(event), "event {event}");
        Ok(std::ops::ControlFlow::Continue(()))
    })
    .unwrap();
    assert_eq!(events, 14);
}

/// The counted events came over, and the report named no others.
#[test]
fn an_export_notices_a_growing_book() {
    let (_dir, source, dest) = space();
    let book = Book::create(&source).unwrap();
    (1..=3).for_each(|n| assert_eq!(book.append(0, &[n]).unwrap(), u64::from(n)));
    let mut grown = false;
    let exported = Options::default().export(&source, &dest, |_, _| {
        if !std::mem::replace(&mut grown, true) {
            book.append(0, b"more").unwrap();
        }
        Ok(())
    });
    refused(exported, ErrorKind::Locked, "written since its events were counted; end the");
    book.close().unwrap();
    assert_eq!(back(&source, &dest).unwrap().events, 4);
}

/// LMDB opened `lock.mdb` through a link, and cut the file that the link named.
#[test]
fn an_export_never_writes_through_a_link() {
    for name in ["data.mdb", "lock.mdb"] {
        let (dir, source, dest) = space();
        let book = Book::create(&source).unwrap();
        book.append(1, b"one").unwrap();
        book.close().unwrap();
        drop(book);
        make(&dest, &[], &[]);
        let canary = dir.path().join("canary");
        fs::write(&canary, b"own").unwrap();
        fs::remove_file(dest.join(name)).unwrap();
        symlink(&canary, dest.join(name)).unwrap();
        back(&source, &dest).unwrap_err();
        assert_eq!(fs::read(&canary).unwrap(), b"own");
    }
}
