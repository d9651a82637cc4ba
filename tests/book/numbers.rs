//! Contiguity, epochs, and the operations that each mode of a handle allows.

use crate::prelude::*;

fn batch(jams: &[&[u8]]) -> Batch<BookFormat> {
    let mut batch = Batch::<BookFormat>::new(1 << 20);
    for jam in jams {
        batch.push(1, jam).unwrap();
    }
    batch
}

fn in_epoch(options: &Options, epoch: u64) -> Options {
    options.clone().epoch(epoch)
}

#[test]
fn a_batch_with_gap_or_repetition_is_refused() {
    let (storage, options) = memory();
    let book = options.open("/book", Mode::Append).unwrap();
    assert_eq!(book.append_batch(&batch(&[b"a", b"b"]), Some(1), Some(0)).unwrap(), 1);
    let before = read_file(&storage, Path::new("/book/book.log"));
    for event in [0, 1, 2, 4, 5, u64::MAX] {
        refused(book.append_batch(&batch(&[b"c"]), Some(event), None), ErrorKind::Contiguity);
    }
    refused(book.append_batch(&batch(&[b"c"]), Some(3), Some(1)), ErrorKind::Contiguity);
    assert_eq!(read_file(&storage, Path::new("/book/book.log")), before);
    assert_eq!(book.append_batch(&batch(&[b"c"]), Some(3), Some(0)).unwrap(), 3);
    assert_eq!(book.append_batch(&batch(&[]), None, None).unwrap(), 4);
    assert_eq!(book.len().unwrap(), 3);
}

#[test]
fn the_first_number_follows_every_kind_of_epoch() {
    let (_, options) = memory();
    let named = in_epoch(&options, 100).open("/named", Mode::Append).unwrap();
    assert_eq!((named.epoch().unwrap(), named.last().unwrap()), (100, 100));
    assert_eq!(named.append(1, b"x").unwrap(), 101);
    let named = options.open("/0i60", Mode::Append).unwrap();
    assert_eq!(named.append(1, b"x").unwrap(), 61);
    let by_batch = options.open("/batch", Mode::Append).unwrap();
    assert_eq!(by_batch.append_batch(&batch(&[b"x"]), None, Some(7)).unwrap(), 8);
    for (path, epoch) in [("/named", 100), ("/0i60", 60), ("/batch", 7)] {
        assert_eq!(
            options.open(path, Mode::Read).unwrap().bounds().unwrap(),
            Some(epoch + 1..=epoch + 1)
        );
        let other = in_epoch(&options, epoch + 1);
        refused(other.open(path, Mode::Read), ErrorKind::Contiguity);
    }
}

#[test]
fn only_canonical_names_are_epochs() {
    let (_, options) = memory();
    assert_eq!(options.open("/0i12", Mode::Append).unwrap().epoch().unwrap(), 12);
    for name in
        ["/0i0", "/0i012", "/0i+5", "/0i", "/1i5", "/0ix", "/0i3.tmp", "/0i99999999999999999999"]
    {
        assert_eq!(options.open(name, Mode::Append).unwrap().epoch().unwrap(), 0, "{name}");
    }
}

/// A log could be created with another epoch than the name of its directory. The log took events and could then never
/// be opened again.
#[test]
fn an_epoch_contradicting_its_directory_writes_nothing() {
    let (storage, options) = memory();
    refused(in_epoch(&options, 7).open("/0i5", Mode::Append), ErrorKind::Contiguity);
    refused(in_epoch(&options, 7).open("/0i5", Mode::Create), ErrorKind::Contiguity);
    assert!(snapshot(&storage, Path::new("/0i5")).is_empty());
    let book = options.open("/0i5", Mode::Append).unwrap();
    refused(book.append_batch(&batch(&[b"x"]), None, Some(7)), ErrorKind::Contiguity);
    assert_eq!(book.append(1, b"x").unwrap(), 6);
    book.close().unwrap();
    assert_eq!(options.open("/0i5", Mode::Append).unwrap().last().unwrap(), 6);
}

/// The same for an empty log in a renamed directory: the mark kept the old epoch.
#[test]
fn a_renamed_empty_log_takes_the_names_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("0i0"), dir.path().join("0i100"));
    make(&old, &Options::default(), &[]);
    std::fs::rename(&old, &new).unwrap();
    let book = Options::default().open(&new, Mode::Append).unwrap();
    assert_eq!(book.append(1, b"x").unwrap(), 101);
    book.close().unwrap();
    assert_eq!(Options::default().open(&new, Mode::Append).unwrap().last().unwrap(), 101);
}

/// The refusal came after the torn tail had been removed.
#[test]
fn a_misnamed_log_is_refused_unchanged() {
    let (storage, options) = memory();
    make(Path::new("/book"), &options, &events(3, 30));
    let mut bytes = read_file(&storage, Path::new("/book/book.log"));
    bytes.extend(b"torn");
    storage.create_dir(Path::new("/0i9")).unwrap();
    common::write_file(&storage, Path::new("/0i9/book.log"), &bytes);
    refused(options.open("/0i9", Mode::Append), ErrorKind::Corrupt);
    assert_eq!(read_file(&storage, Path::new("/0i9/book.log")), bytes);
    // A reader reports the error before the first deed, and returns the deeds only if it passes over damage.
    let reader = options.open("/0i9", Mode::Read).unwrap();
    refused(reader.iter(..), ErrorKind::Corrupt);
    assert_eq!(common::read_past_damage(&reader).len(), 3);
    assert_eq!(
        common::check(Path::new("/0i9"), &options).verdict,
        deedbook::report::Verdict::Corrupt
    );
}

/// The fuzzer found this: the first event in a header had rotted to almost 2^64. Salvage, which also copies deeds
/// inside a damaged deed, counted beyond 2^64 and panicked.
#[test]
fn salvage_renumbers_from_1_instead_of_overflowing() {
    let (storage, options) = memory();
    let inner = [common::deed(2, b"two"), common::deed(3, b"three")].concat();
    let outer = [&[7; 9], &inner[..], &[7; 9]].concat();
    let mut bytes = common::log(u64::MAX - 1, &[(1, b"one".to_vec()), (9, outer)]);
    bytes[16 + 27 + 8] ^= 1;
    storage.create_dir(Path::new("/book")).unwrap();
    common::write_file(&storage, Path::new("/book/book.log"), &bytes);
    let report = common::rescue(Path::new("/book"), Path::new("/copy"), &options);
    let runs: Vec<_> = report.runs.iter().map(|run| (run.ordinal, run.records)).collect();
    assert_eq!((report.records, runs), (3, vec![(1, 1), (2, 2)]));
    let copy = options.open("/copy", Mode::Read).unwrap();
    let copied = common::contents(&common::read_past_damage(&copy));
    let jams: Vec<_> = copied.iter().map(|(_, jam)| &jam[..]).collect();
    assert_eq!(jams, [&b"one"[..], b"two", b"three"]);
}

/// Both batches found the log empty, and the second batch was appended after the first batch's epoch.
#[test]
fn concurrent_first_batches_set_the_epoch_once() {
    for round in 0..500 {
        let (_, options) = memory();
        let book = options.open("/book", Mode::Create).unwrap();
        let start = std::sync::Barrier::new(2);
        let append = |epoch| {
            start.wait();
            book.append_batch(&batch(&[b"x"]), None, Some(epoch))
        };
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(|| append(5));
            let other = append(7);
            (one.join().unwrap(), other)
        });
        assert!(one.is_ok() != other.is_ok(), "round {round}: {one:?}, {other:?}");
        refused(one.and(other), ErrorKind::Contiguity);
    }
}
