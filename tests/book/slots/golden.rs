//! The bytes of other implementations: read, written and extended.

use crate::slots::support::*;

#[test]
fn the_same_batches_give_the_golden_bytes() {
    let all = golden_events();
    let written: [(&str, &str, &[usize]); 5] = [
        ("head-3x1", "0i0", &[3]),
        ("head-5x3", "0i0", &[2, 1, 2]),
        ("head-epoch100", "0i100", &[3]),
        ("head-empty", "0i0", &[]),
        ("head-empty100", "0i100", &[]),
    ];
    for (name, dir, batches) in written {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(dir);
        let book = options().open(&path, Mode::Create).unwrap();
        append(&book, &all, batches);
        book.close().unwrap();
        let count = batches.iter().sum::<usize>();
        assert_eq!(bytes(&path), golden_log(name, &all[..count]), "{name}");
        assert_eq!(events_of(&path), all[..count]);
        assert!(check(&path, &Options::default()).ok());
        if let Some(golden) = golden() {
            assert_eq!(bytes(&path), bytes(&golden.join(name).join(dir)), "{name}");
        }
    }
}

/// A golden log, the directory of the epoch below it, the epoch, how many deeds count, and a golden log in the layout
/// `packed` with the same events.
type Golden = (&'static str, &'static str, u64, usize, Option<&'static str>);

/// All readable logs; `uip-packed-midcorrupt` is refused.
const SOURCES: [Golden; 16] = [
    ("head-3x1", "0i0", 0, 3, Some("uip-packed-3")),
    ("head-5x3", "0i0", 0, 5, Some("uip-packed-5")),
    ("head-badnewest", "0i0", 0, 3, Some("uip-packed-3")),
    ("head-badolder", "0i0", 0, 5, Some("uip-packed-5")),
    ("head-empty", "0i0", 0, 0, Some("uip-packed-empty")),
    ("head-empty100", "0i100", 100, 0, Some("uip-packed-empty")),
    ("head-epoch100", "0i100", 100, 3, Some("uip-packed-epoch100")),
    ("head-torn", "0i0", 0, 3, Some("uip-packed-3")),
    ("specC-3", "0i0", 0, 3, Some("uip-packed-3")),
    ("specC-5", "0i0", 0, 5, Some("uip-packed-5")),
    ("specC-epoch100", "0i100", 100, 3, Some("uip-packed-epoch100")),
    ("uip-packed-3", "", 0, 3, Some("uip-packed-3")),
    ("uip-packed-5", "", 0, 5, Some("uip-packed-5")),
    ("uip-packed-empty", "", 0, 0, Some("uip-packed-empty")),
    ("uip-packed-epoch100", "", 100, 3, Some("uip-packed-epoch100")),
    ("uip-packed-torn", "", 0, 2, None),
];

/// The log's bytes, from the files of the tests.
fn own_bytes(name: &str) -> Vec<u8> {
    let all = golden_events();
    match name {
        "head-torn" => golden_log(name, &all)[..8673].to_vec(),
        "head-3x1" | "head-epoch100" => golden_log(name, &all[..3]),
        "head-empty" | "head-empty100" => golden_log(name, &[]),
        _ if name.starts_with("head-") => golden_log(name, &all),
        _ => bytes(&data(name)),
    }
}

fn converts((name, _, epoch, count, packed): Golden, log: &[u8], meta: &[u8]) {
    // In its own directory, whose name may be the only place of the epoch.
    let (base, source) = place(if epoch == 0 { "0i0" } else { "0i100" }, log);
    fs::write(source.join("meta.bin"), meta).unwrap();
    let events = &golden_events()[..count];
    let bounds = (count > 0).then(|| (epoch + 1, epoch + count as u64));
    for to in [Layout::Packed, Layout::Slots] {
        let target = base.path().join(to.name());
        let report = Options::default().convert(&source, &target, to, |_, _| Ok(())).unwrap();
        assert_eq!((report.to, report.deeds, report.bounds), (to, count as u64, bounds), "{name}");
        assert_eq!(report.from, Book::open(&source).unwrap().layout());
        assert_eq!(report.jam_bytes, events.iter().map(|(_, jam)| jam.len() as u64).sum::<u64>());
        assert_eq!(report.target_bytes, bytes(&target).len() as u64);
        let book = Book::open(&target).unwrap();
        assert_eq!((book.layout(), book.epoch().unwrap()), (to, epoch), "{name}");
        assert_eq!(book.bounds().unwrap(), bounds.map(|(first, last)| first..=last));
        assert_eq!(book.recovery().verdict, Verdict::Clean);
        assert_eq!(events_of(&target), events, "{name} to {to:?}");
        assert!(check(&target, &Options::default()).ok(), "{name}");
        assert_eq!(fs::read(target.join("meta.bin")).unwrap(), meta);
        if to == Layout::Packed {
            let first = if count == 0 { 0 } else { epoch + 1 };
            assert_eq!(bytes(&target), crate::support::common::log(first, events), "{name}");
            if let Some(packed) = packed {
                assert_eq!(bytes(&target), bytes(&data(packed)), "{name}");
            }
        }
    }
    assert!(bytes(&source) == log, "{name}");
    let padded =
        Options::default()
            .convert(&source, base.path().join("padded"), Layout::Padded, |_, _| Ok(()));
    refused(padded, ErrorKind::Unsupported);
}

// Promise: convert, slots-header.
#[test]
fn every_golden_log_is_converted_to_both_layouts() {
    let meta = fs::read(data("uip-packed-3").join("meta.bin")).unwrap();
    for one in SOURCES {
        let (name, dir, ..) = one;
        converts(one, &own_bytes(name), &meta);
        let Some(golden) = golden() else { continue };
        let whole = golden.join(name).join(dir);
        assert!(bytes(&whole) == own_bytes(name), "{name}");
        let meta = fs::read(whole.join("meta.bin")).unwrap();
        converts(one, &bytes(&whole), &meta);
    }
}

// Promise: slots-first-batch.
#[test]
fn a_golden_log_damaged_inside_is_not_converted() {
    let log = own_bytes("uip-packed-midcorrupt");
    let (base, source) = place("0i0", &log);
    for to in [Layout::Packed, Layout::Slots] {
        let target = base.path().join(to.name());
        let done = Options::default().convert(&source, &target, to, |_, _| Ok(()));
        let error = refused(done, ErrorKind::Corrupt);
        assert_eq!((error.offset(), error.next_intact()), (Some(41), Some(68)), "{error}");
    }
    assert_eq!(bytes(&source), log);
    // By its slots, the log has no event that counts: without a refusal the copy would be empty.
    let mut log = own_bytes("head-3x1");
    let last = log.len() - 10;
    log[last] ^= 1;
    let (base, source) = place("0i0", &log);
    let target = base.path().join("copy");
    let done = Options::default().convert(&source, &target, Layout::Packed, |_, _| Ok(()));
    let error = refused(done, ErrorKind::Corrupt);
    assert!(error.message().contains("salvage copies what is intact"), "{error}");
    assert!(!target.exists());
    // Each golden log is in one of the two tests.
    let Some(golden) = golden() else { return };
    for entry in fs::read_dir(&golden).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        let is_book = ["head-", "specC-", "uip-packed-"].iter().any(|set| name.starts_with(set));
        let known = SOURCES.iter().any(|one| one.0 == name) || name == "uip-packed-midcorrupt";
        assert!(!is_book || known, "{name}");
    }
}
