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

// Promise: migrate-refused.
#[test]
fn a_gap_is_named_with_both_numbers() {
    let (_dir, source, dest) = space();
    let values = [(1, &b"\0\0\0\0a"[..]), (2, b"\0\0\0\0b"), (5, b"\0\0\0\0c")];
    make(&source, &values, &[]);
    refused(bring(&source, &dest), ErrorKind::Contiguity, "event 2 is followed by event 5");
    assert!(!dest.exists());
}

// Promise: migrate-refused.
#[test]
fn a_value_without_a_mug_is_named() {
    let (_dir, source, dest) = space();
    make(&source, &[(1, b"\0\0\0\0a"), (2, b"\0\0\0")], &[]);
    refused(bring(&source, &dest), ErrorKind::Corrupt, "event 2 has 3 bytes");
    make(&source, &[(2, b"\0\0\0\0")], &[]);
    assert_eq!(bring(&source, &dest).unwrap().events, 2);
    assert_eq!(deeds(&dest)[1], (2, (0, Vec::new())));
}

#[test]
fn metadata_beyond_its_size_or_domain_is_refused() {
    let (_dir, source, dest) = space();
    make(&source, &[], &[("who", b""), ("version", b""), ("life", b"\0\0\0\0\0"), ("fake", b"")]);
    assert_eq!(Environment::open(&source).unwrap().meta().unwrap(), FAKE);
    make(&source, &[], &[("life", b"\0\0\0\0\x01")]);
    refused(bring(&source, &dest), ErrorKind::Unsupported, "metadata life of 5 bytes, at most 4");
    make(&source, &[], &[("life", b""), ("fake", b"\x02")]);
    refused(bring(&source, &dest), ErrorKind::Unsupported, "metadata fake is 2");
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

// Promise: migrate-refused.
#[test]
fn an_environment_that_is_written_meanwhile_is_noticed() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=10);
    let write = |_, _| {
        let path = source.join("data.mdb");
        let mut bytes = fs::read(&path).unwrap();
        bytes[16 + 128] += 8; // a later transaction in the first meta page
        fs::write(&path, bytes).unwrap();
        Ok(())
    };
    let says = "written while it was read";
    refused(Options::default().migrate(&source, &dest, write), ErrorKind::Locked, says);
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
