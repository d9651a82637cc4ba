//! The golden files of the layout `packed`: written byte for byte, and read. `slots.rs` has the others.

use crate::prelude::*;

const META: Meta =
    Meta { who: Some(0x1122_3344_5566_7788), version: Some(3), life: Some(7), fake: Some(false) };

/// Directory, epoch and number of events of the vectors to be written.
const WRITTEN: [(&str, u64, usize); 4] = [
    ("uip-packed-3", 0, 3),
    ("uip-packed-5", 0, 5),
    ("uip-packed-epoch100", 100, 3),
    ("uip-packed-empty", 0, 0),
];

fn assert_same(found: &Path, expected: &Path) {
    for name in ["book.log", "meta.bin"] {
        let (found, expected) = (found.join(name), expected.join(name));
        assert_eq!(
            fs::read(found).unwrap(),
            fs::read(&expected).unwrap(),
            "{}",
            expected.display()
        );
    }
}

fn writes(vectors: &Path) {
    for (name, epoch, count) in WRITTEN {
        let events = &golden_events()[..count];
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().epoch(epoch);
        make(&dir.path().join("single"), &options, events);
        let batched = Book::create(dir.path().join("batched")).unwrap();
        let mut batch = deedbook::Batch::<deedbook::book::BookFormat>::new(1 << 20);
        for (mug, jam) in events {
            batch.push(*mug, jam).unwrap();
        }
        assert_eq!(batched.append_batch(&batch, Some(epoch + 1), Some(epoch)).unwrap(), epoch + 1);
        batched.close().unwrap();
        for path in ["single", "batched"].map(|path| dir.path().join(path)) {
            let book = Book::append_to(&path).unwrap();
            book.save_meta(&META).unwrap();
            book.close().unwrap();
            assert_same(&path, &vectors.join(name));
        }
    }
}

/// Read without a sidecar, by a reader and by a writer.
fn reads(vectors: &Path) {
    for (name, epoch, count) in WRITTEN {
        let dir = copy(&vectors.join(name));
        for mode in [Mode::Read, Mode::Append] {
            let book = Options::default().open(dir.path(), mode).unwrap();
            assert_eq!(book.meta().unwrap(), META);
            let bounds = (count > 0).then(|| epoch + 1..=epoch + count as u64);
            assert_eq!(book.bounds().unwrap(), bounds, "{name}");
            assert_eq!(book.epoch().unwrap(), epoch);
            let (deeds, failed) = read_all(&book);
            assert!(failed.is_none());
            assert_eq!(contents(&deeds), golden_events()[..count], "{name}");
            assert_eq!(book.recovery().verdict, Verdict::Clean);
        }
        assert_same(dir.path(), &vectors.join(name));
        assert!(check(dir.path(), &Options::default()).ok());
    }
}

fn copy(from: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["book.log", "meta.bin"] {
        if from.join(name).exists() {
            fs::write(dir.path().join(name), fs::read(from.join(name)).unwrap()).unwrap();
        }
    }
    dir
}

#[test]
fn golden_logs_are_written_byte_for_byte() {
    writes(&data(""));
}

#[test]
fn golden_logs_are_read() {
    reads(&data(""));
}

#[test]
fn the_whole_golden_set_is_written_and_read() {
    let Some(golden) = golden() else { return };
    writes(&golden);
    reads(&golden);
    for name in ["uip-packed-torn", "uip-packed-midcorrupt"] {
        assert_same(&golden.join(name), &data(name));
    }
}

#[test]
fn metadata_survives_and_a_wrong_size_is_refused() {
    let dir = copy(&data("uip-packed-3"));
    let book = Book::append_to(dir.path()).unwrap();
    let fake = Meta { fake: Some(true), ..Meta::default() };
    book.save_meta(&fake).unwrap();
    assert_eq!(book.meta().unwrap(), Meta { fake: Some(true), ..META });
    assert_eq!(book.read_meta("fake").unwrap(), Some(vec![0]));
    assert_eq!(book.read_meta("life").unwrap(), Some(vec![7, 0, 0, 0]));
    refused(book.read_meta("hate"), ErrorKind::InvalidArgument);
    let meta = dir.path().join("meta.bin");
    for size in [0, 25, 255, 257, 4096] {
        fs::write(&meta, vec![1; size]).unwrap();
        refused(book.meta(), ErrorKind::NotALog);
        refused(book.save_meta(&fake), ErrorKind::NotALog);
        assert_eq!(fs::read(&meta).unwrap(), vec![1; size]);
    }
}
