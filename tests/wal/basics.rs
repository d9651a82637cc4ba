//! Write-ahead logs through the public API: what a caller sees in both layouts.

use deedbook::ErrorKind;
use deedbook::wal::{Batch, Layout, Lsn, Mode, OnCorrupt, Options, Wal};
use tempfile::TempDir;

const LAYOUTS: [Layout; 3] = [
    Layout::Single,
    Layout::Segmented { segment_bytes: 64 },
    Layout::Segmented { segment_bytes: 1 << 20 },
];

fn options(layout: Layout) -> Options {
    Options::new().layout(layout)
}

fn all(wal: &Wal) -> Vec<(u64, Vec<u8>)> {
    wal.iter(None).unwrap().map(|r| r.unwrap()).map(|r| (r.lsn.0, r.payload)).collect()
}

fn payload(i: u64) -> Vec<u8> {
    vec![i as u8; (i * 7 % 90) as usize]
}

#[test]
fn what_is_appended_is_read_back_before_and_after_reopening() {
    for layout in LAYOUTS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let wal = options(layout).open(&path, Mode::Create).unwrap();
        let mut expected = Vec::new();
        for i in 0..200 {
            let lsn = wal.append(&payload(i)).unwrap();
            expected.push((lsn.0, payload(i)));
        }
        let mut batch = Batch::new(1000);
        for i in 200..400 {
            expected.push((batch.push(&payload(i)).unwrap(), payload(i)));
        }
        let base = wal.append_batch(&batch).unwrap();
        expected.iter_mut().skip(200).for_each(|(lsn, _)| *lsn += base.0);
        assert_eq!(all(&wal), expected);
        wal.close().unwrap();
        let wal = Wal::open(&path).unwrap();
        assert_eq!(wal.layout(), layout);
        assert!(wal.recovery().by_mark());
        assert_eq!(wal.recovery().scanned_records, 0);
        assert_eq!(all(&wal), expected);
        for (lsn, payload) in expected.iter().step_by(37) {
            assert_eq!(&wal.read(Lsn(*lsn)).unwrap().payload, payload);
        }
        assert_eq!(wal.read(Lsn(expected[5].0 + 1)).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(wal.len().unwrap(), 400);
    }
}

#[test]
fn a_dropped_prefix_and_a_cut_end_stay_dropped() {
    for layout in LAYOUTS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let wal = options(layout).open(&path, Mode::Create).unwrap();
        let lsns: Vec<_> = (0..100).map(|i| wal.append(&payload(i)).unwrap()).collect();
        let refused = wal.truncate_after(lsns[50]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        wal.sync().unwrap();
        wal.truncate_after(lsns[80]).unwrap();
        assert_eq!(wal.len().unwrap(), 81);
        wal.truncate_from(lsns[80]).unwrap();
        assert_eq!(wal.end().unwrap(), lsns[80]);
        let mut kept = 0;
        if layout != Layout::Single {
            wal.truncate_before(lsns[30]).unwrap();
            assert_eq!(wal.head().unwrap(), lsns[30]);
            assert_eq!(wal.read(lsns[29]).unwrap_err().kind(), ErrorKind::OutOfRange);
            kept = 30;
        }
        assert_eq!(wal.append(&payload(80)).unwrap(), lsns[80]);
        assert_eq!(wal.append(&payload(81)).unwrap(), lsns[81]);
        let expected: Vec<_> = (kept..82).map(|i| (lsns[i as usize].0, payload(i))).collect();
        assert_eq!(all(&wal), expected);
        wal.close().unwrap();
        for mode in [Mode::Read, Mode::Append] {
            let wal = Options::default().open(&path, mode).unwrap();
            assert_eq!(all(&wal), expected);
            assert_eq!(wal.len().unwrap(), 82 - kept);
        }
        std::fs::remove_dir_all(dir.path().join(".deedbook")).ok();
        std::fs::remove_dir_all(path.join(".deedbook")).ok();
        assert_eq!(all(&Wal::open(&path).unwrap()), expected);
    }
}

#[test]
fn dropping_everything_leaves_an_empty_log_that_goes_on() {
    let dir = TempDir::new().unwrap();
    let wal = options(LAYOUTS[1]).open(dir.path(), Mode::Create).unwrap();
    wal.append(&[7; 56]).unwrap();
    wal.sync().unwrap();
    wal.truncate_before(Lsn(64)).unwrap();
    wal.close().unwrap();
    let wal = Wal::append_to(dir.path()).unwrap();
    assert!(wal.is_empty().unwrap());
    assert_eq!(wal.append(b"on").unwrap(), Lsn(64));
    wal.close().unwrap();
    assert_eq!(all(&Wal::open(dir.path()).unwrap()), [(64, b"on".to_vec())]);
}

#[test]
fn damage_in_the_middle_is_refused_and_read_around() {
    for layout in LAYOUTS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let wal = options(layout).open(&path, Mode::Create).unwrap();
        let lsns: Vec<_> = (0..20).map(|i| wal.append(&[i; 20]).unwrap().0).collect();
        wal.close().unwrap();
        let files = Wal::open(&path).unwrap().segment_paths().unwrap();
        let size = layout.segment_bytes().unwrap_or(u64::MAX);
        let at = lsns[10] + 12;
        let file = &files[(at / size) as usize];
        let mut bytes = std::fs::read(file).unwrap();
        bytes[(at % size) as usize] ^= 1;
        std::fs::write(file, bytes).unwrap();
        let wal = Wal::open(&path).unwrap();
        let read: Vec<_> = wal.iter(None).unwrap().collect();
        assert_eq!(read.iter().filter(|r| r.is_ok()).count(), 10);
        assert_eq!(read[10].as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
        let mut skipping = wal.cursor(None, None, OnCorrupt::Skip).unwrap();
        let mut count = 0;
        while skipping.next().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 19);
        assert_eq!(skipping.damages().len(), 1);
        // Without the mark all of the log is read, and intact records lie after the damage.
        std::fs::remove_dir_all(dir.path().join(".deedbook")).ok();
        std::fs::remove_dir_all(path.join(".deedbook")).ok();
        let error = Wal::append_to(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(error.offset(), Some(lsns[10]));
    }
}

#[test]
fn a_directory_holds_a_log_of_one_format() {
    use deedbook::book::Book;
    let (books, wals) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    Book::create(books.path()).unwrap().close().unwrap();
    Wal::create(wals.path()).unwrap().close().unwrap();
    let error = Wal::append_to(books.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
    let error = Book::append_to(wals.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
    assert!(error.to_string().contains("00000000000000000000.wal"), "{error}");
}

#[test]
fn salvage_copies_what_lies_after_a_missing_segment() {
    let dir = TempDir::new().unwrap();
    let (path, copy) = (dir.path().join("log"), dir.path().join("copy"));
    let wal = options(LAYOUTS[1]).open(&path, Mode::Create).unwrap();
    let lsns: Vec<_> = (0..30).map(|i| wal.append(&[i; 20]).unwrap().0).collect();
    wal.close().unwrap();
    std::fs::remove_file(path.join(deedbook::wal::segment_name(4))).unwrap();
    let error = Wal::append_to(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
    let report = deedbook::wal::salvage(&path, &copy, &Options::default(), |_, _| Ok(())).unwrap();
    // Of bytes 256 up to 320 three records are gone, or four.
    let lost: Vec<_> = lsns.iter().filter(|&&lsn| lsn + 28 > 256 && lsn < 320).collect();
    assert_eq!(report.records as usize, 30 - lost.len());
    assert_eq!((report.runs.len(), report.runs[1].source_offset), (2, *lost[lost.len() - 1] + 28));
    let copied = all(&Wal::open(&copy).unwrap());
    assert_eq!(copied.last().unwrap().1, [29; 20]);
}

/// Opening reads what was not synced, whatever lies before it.
#[test]
fn opening_after_a_crash_reads_only_the_unsynced_tail() {
    for records in [100, 20_000] {
        let dir = TempDir::new().unwrap();
        let (path, copy) = (dir.path().join("log"), dir.path().join("copy"));
        let wal = options(LAYOUTS[2]).open(&path, Mode::Create).unwrap();
        (0..records).for_each(|i| assert!(wal.append(&payload(i)).is_ok()));
        wal.sync().unwrap();
        (0..10).for_each(|i| assert!(wal.append(&payload(i)).is_ok()));
        // The files as they are now are what a crash leaves.
        copy_dir(&path, &copy);
        let crashed = Wal::open(&copy).unwrap();
        assert_eq!(
            (crashed.recovery().scanned_records, crashed.len().unwrap()),
            (10, records + 10)
        );
        wal.close().unwrap();
        let closed = Wal::open(&path).unwrap();
        assert_eq!((closed.recovery().scanned_records, closed.len().unwrap()), (0, records + 10));
    }
}

fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match from.is_dir() {
            true => copy_dir(&from, &to),
            false => drop(std::fs::copy(&from, &to).unwrap()),
        }
    }
}
