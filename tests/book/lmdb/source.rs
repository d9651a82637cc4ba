//! Environments of Urbit, and environments that the reader refuses.

use crate::lmdb::support::*;

#[test]
fn an_environment_is_read_without_write_permission() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=500);
    fs::remove_file(source.join("lock.mdb")).unwrap();
    let before = tree(&source);
    let allow = |mode| fs::set_permissions(&source, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    let report = bring(&source, &dest);
    allow(0o755);
    assert_eq!(report.unwrap().events, 500);
    assert_eq!(tree(&source), before, "no lock file, and not a byte changed");
}

/// The migration took a missing `fake` for 0, which means that the ship is fake.
// Promise: migrate-refused.
#[test]
fn metadata_without_a_field_is_refused_by_name() {
    let (_dir, source, dest) = space();
    let all: [(&str, &[u8]); 4] =
        [("who", b"\x01"), ("version", b"\x03"), ("life", b"\x01"), ("fake", b"\x01")];
    for (missing, (name, _)) in all.iter().enumerate() {
        let rest: Vec<_> = (0..4).filter(|at| *at != missing).map(|at| all[at]).collect();
        let source = source.with_file_name(name);
        make(&source, &[(1, b"\0\0\0\0a")], &rest);
        for attempt in [bring, look] {
            let says = format!("but lacks {name}, which would be 0 in a book");
            refused(attempt(&source, &dest), ErrorKind::Corrupt, &says);
        }
        assert!(!dest.exists());
    }
    make(&source, &[(1, b"\0\0\0\0a")], &[("other", b"\x01")]);
    assert_eq!(bring(&source, &dest).unwrap().meta, Meta::default());
    assert!(!dest.join("meta.bin").exists());
}

/// The migration copied only the counted events, and reported them as all.
#[test]
fn a_migration_notices_a_growing_later_epoch() {
    for in_lmdb in [true, false] {
        let (_dir, source, dest) = space();
        let log = source.join(".urb/log");
        let last = log.join("0i10");
        make(&log, &[], &[("who", b"\x05"), ("version", b""), ("life", b""), ("fake", b"")]);
        make_numbered(&log.join("0i0"), 1..=10);
        fs::write(log.join("0i0/epoc.txt"), "2").unwrap();
        let grow = |event: u64| match in_lmdb {
            true => make_numbered(&last, event..=event),
            false => {
                let book = book::Options::new().epoch(10).open(&last, Mode::Append).unwrap();
                assert_eq!(book.append(0, b"more").unwrap(), event);
                book.close().unwrap();
            }
        };
        grow(11);
        fs::write(last.join("epoc.txt"), if in_lmdb { "2" } else { "3" }).unwrap();
        let mut grown = false;
        let write = |_, _| {
            if !std::mem::replace(&mut grown, true) {
                grow(12);
            }
            Ok(())
        };
        let brought = Options::default().migrate(&source, &dest, write);
        refused(brought, ErrorKind::Locked, "written since its events were counted; end the");
        assert_eq!(bring(&source, &dest).unwrap().events, 12);
    }
}
