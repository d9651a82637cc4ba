//! The places of logs: a second writer is refused, repairs keep removed bytes, and no log acknowledges records before
//! they are on disk.

use super::*;

fn on(storage: impl Storage + 'static, segment_bytes: u64) -> Options {
    of_size(segment_bytes).storage(Arc::new(storage))
}

/// Only a log of segments has its directory for itself.
#[test]
fn single_file_logs_share_a_directory() {
    let dir = TempDir::new().unwrap();
    let single = Options::new().layout(Layout::Single);
    let logs = ["a", "b"].map(|name| single.open(dir.path().join(name), Mode::Create).unwrap());
    let around = Options::default().open(dir.path(), Mode::Append).unwrap();
    logs.iter().chain([&around]).for_each(|wal| assert!(wal.commit(b"mine").is_ok()));
    assert_eq!(Wal::append_to(dir.path()).unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn directories_are_locked_by_every_storage() {
    let sim = Sim::new();
    let storages: [Arc<dyn Storage>; 2] = [Arc::new(sim.clone()), Arc::new(Memory::new())];
    for storage in storages {
        let options = of_size(600).storage(storage.clone());
        let wal = options.open("/log", Mode::Append).unwrap();
        let sidecar = Path::new("/log/.deedbook");
        for name in storage.list(sidecar).unwrap() {
            storage.remove(&sidecar.join(name)).unwrap();
        }
        let error = options.open("/log", Mode::Append).unwrap_err();
        assert_eq!((error.kind(), error.holder()), (ErrorKind::Locked, Some(std::process::id())));
        drop(wal);
        options.open("/log", Mode::Append).unwrap();
    }
    // A dead process holds no lock.
    let _wal = on(sim.clone(), 600).open("/log", Mode::Append).unwrap();
    on(sim.kill(), 600).open("/log", Mode::Append).unwrap();
}

/// Found by a review: a second repair renamed segments over the segments saved by the first.
#[test]
fn a_second_repair_keeps_earlier_saved_segments() {
    let disk = Sim::new();
    let options = on(disk.clone(), 600);
    for round in 1..=3 {
        let wal = options.open("/log", Mode::Append).unwrap();
        while wal.end().unwrap().0 < 2400 {
            wal.append(&[round; 92]).unwrap();
        }
        wal.close().unwrap();
        drop(wal);
        disk.remove(&Path::new("/log").join(segment_name(2))).unwrap();
        let how = Repair { force: true, accept_loss: true, dry_run: false };
        options.repair("/log", how).unwrap();
        let cut = format!("{}.cut", segment_name(3));
        let names = [cut.clone(), format!("{cut}.2"), format!("{cut}.3")];
        for (name, by) in names.iter().zip(1..=round) {
            let saved = read_file(&disk, &Path::new("/log").join(name));
            assert_eq!(saved[308], by, "round {round}, {name}");
        }
    }
}

/// A segment was gone after a whole record: repair renamed the segments after it, and reported 0 removed bytes.
#[test]
fn a_repair_reports_segments_it_sets_aside() {
    let disk = Sim::new();
    let options = on(disk.clone(), 600);
    let wal = options.open("/log", Mode::Append).unwrap();
    (0..28).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    drop(wal);
    disk.remove(Path::new("/log/.deedbook/mark")).unwrap();
    [2, 4].iter().for_each(|&n| disk.remove(&Path::new("/log").join(segment_name(n))).unwrap());
    let segment = Path::new("/log").join(segment_name(3));
    let mut how = Repair { force: true, accept_loss: true, dry_run: true };
    let would = options.repair("/log", how).unwrap();
    assert_eq!((would.valid_end, &would.set_aside), (1200, &vec![segment.clone()]));
    how.dry_run = false;
    let report = options.repair("/log", how).unwrap();
    let aside = segment.with_file_name(format!("{}.cut", segment_name(3)));
    assert_eq!((report.cut_bytes, report.saved.len(), &report.set_aside), (0, 0, &vec![aside]));
    assert_eq!(disk.open(&report.set_aside[0], Access::Read).unwrap().len().unwrap(), 600);
    assert!(options.repair("/log", how).unwrap().set_aside.is_empty());
}

/// A review found a sync that checked the last segment's name only, and not an older, unsynced and removed one.
#[test]
fn a_missing_unsynced_segment_fails_the_sync() {
    let dir = TempDir::new().unwrap();
    // Most of the 40 segments are synced and closed to keep few files open.
    for (records, gone) in [(20, 1), (230, 30)] {
        let path = dir.path().join(records.to_string());
        let wal = of_size(600).open(&path, Mode::Create).unwrap();
        (0..records).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
        fs::remove_file(path.join(segment_name(gone))).unwrap();
        let error = wal.sync().unwrap_err().to_string();
        assert!(error.contains(&segment_name(gone)), "{error}");
        assert!(wal.append(b"more").is_err());
    }
}

#[test]
fn a_directory_holds_a_log_of_one_format() {
    let (books, wals) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    Book::create(books.path()).unwrap().close().unwrap();
    Wal::create(wals.path()).unwrap().close().unwrap();
    assert_eq!(Wal::append_to(books.path()).unwrap_err().kind(), ErrorKind::NotALog);
    assert_eq!(Book::append_to(wals.path()).unwrap_err().kind(), ErrorKind::NotALog);
}
