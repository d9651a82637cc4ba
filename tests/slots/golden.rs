//! The bytes of other implementations: read, written, and gone on with.

use crate::support::*;

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

/// Opened by its directory alone, and with its own sidecar.
#[test]
fn a_log_of_the_reference_goes_on_as_the_reference_would() {
    let all = golden_events();
    for reopen in [false, true] {
        let (_dir, path) = place("0i0", &golden_log("head-empty", &[]));
        for (from, to) in [(0, 2), (2, 3), (3, 5)] {
            let book = Options::default().open(&path, Mode::Append).unwrap();
            assert_eq!((book.layout(), book.last().unwrap()), (Layout::Slots, from as u64));
            append(&book, &all[from..to], &[to - from]);
            book.close().unwrap();
            if reopen {
                fs::remove_dir_all(path.join(".deedbook")).unwrap();
            }
        }
        assert_eq!(bytes(&path), golden_log("head-5x3", &all));
    }
}

#[test]
fn the_padded_layout_is_read_and_not_written() {
    let all = golden_events();
    for (name, dir, first, count) in [("specC-3", "0i0", 1, 3), ("specC-epoch100", "0i100", 101, 3)]
    {
        let log = fs::read(data(name).join("book.log")).unwrap();
        let (base, path) = place(dir, &log);
        let book = Book::open(&path).unwrap();
        assert_eq!(book.layout(), Layout::Padded);
        assert_eq!(book.bounds().unwrap(), Some(first..=first + count - 1));
        assert_eq!(events_of(&path), all[..count as usize]);
        assert!(check(&path, &Options::default()).ok());
        refused(Book::append_to(&path), ErrorKind::Unsupported);
        let to = base.path().join("copy").join(dir);
        fs::create_dir(base.path().join("copy")).unwrap();
        salvage(&path, &to, &Options::default(), |_, _| Ok(())).unwrap();
        assert_eq!(events_of(&to), all[..count as usize]);
        assert_eq!(Book::open(&to).unwrap().layout(), Layout::Packed);
        assert_eq!(bytes(&path), log);
    }
    let padded = Options { layout: Some(Layout::Padded), ..Options::default() };
    let base = tempfile::tempdir().unwrap();
    refused(padded.open(base.path().join("new"), Mode::Create), ErrorKind::Unsupported);
}

#[test]
fn the_whole_golden_set_of_other_layouts_is_read() {
    let Some(golden) = golden() else { return };
    let all = golden_events();
    let expected = [
        ("head-3x1/0i0", 0, 3),
        ("head-5x3/0i0", 0, 5),
        ("head-badnewest/0i0", 0, 3),
        ("head-badolder/0i0", 0, 5),
        ("head-empty/0i0", 0, 0),
        ("head-empty100/0i100", 100, 0),
        ("head-epoch100/0i100", 100, 3),
        ("head-torn/0i0", 0, 3),
        ("specC-3/0i0", 0, 3),
        ("specC-5/0i0", 0, 5),
        ("specC-epoch100/0i100", 100, 3),
    ];
    for (name, epoch, count) in expected {
        let from = golden.join(name);
        let (_dir, path) = place(from.file_name().unwrap().to_str().unwrap(), &bytes(&from));
        let book = Book::open(&path).unwrap();
        assert_eq!(book.epoch().unwrap(), epoch, "{name}");
        assert_eq!(contents(&read_all(&book).0), all[..count], "{name}");
    }
}
