//! Rules by which a log drops whole segments: on request, or automatically.

use super::*;

fn moved(dropped: deedbook::Result<Dropped>) -> Option<Lsn> {
    dropped.map(|dropped| (dropped.records > 0).then_some(dropped.head)).unwrap()
}

/// A reader failed with "segment is gone" when it opened the log during the removal of the first segments.
#[test]
fn a_reader_opens_during_a_prefix_truncation() {
    for round in 0..60 {
        let (dir, wal, lsns) = filled(&options());
        let path = dir.path().to_owned();
        let opening = std::thread::spawn(move || {
            (0..20).try_for_each(|_| Wal::open(&path).map(|reader| drop(reader.head())))
        });
        std::thread::sleep(Duration::from_micros(20 * round));
        for lsn in lsns.iter().skip(5).step_by(7) {
            wal.truncate_before(*lsn).unwrap();
        }
        opening.join().unwrap().unwrap();
    }
}

#[test]
fn wal_retention_drops_only_allowed_whole_segments() {
    let by_size = Retention::new().bytes_max(1000);
    let consumed = Retention::new().consumed(true);
    let (dir, wal, lsns) = filled(&options());
    assert_eq!(moved(wal.retain(&consumed)), None, "no consumers");
    wal.set_consumer("one", lsns[50]).unwrap();
    // Byte 2,000 lies in segment 7, which begins at 1,792, in the record at 1,760.
    let reader = Wal::open(dir.path()).unwrap();
    assert_eq!(moved(reader.retainable(&consumed)), Some(lsns[45]), "asked beside the writer");
    assert_eq!(reader.retain(&consumed).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!((moved(wal.retainable(&consumed)), wal.head().unwrap()), (Some(lsns[45]), Lsn(0)));
    let would = wal.retainable(&consumed).unwrap();
    assert_eq!(wal.retain(&consumed).unwrap(), would);
    assert_eq!((would.records, would.bytes, would.head), (45, lsns[45].0, lsns[45]));
    let stats = wal.stats().unwrap();
    let dropped = (stats.dropped_files, stats.dropped_records, stats.dropped_bytes);
    assert_eq!(dropped, (7, 45, lsns[45].0));
    assert_eq!(wal.head().unwrap(), lsns[45]);
    assert_eq!(moved(wal.retainable(&consumed)), None);
    assert_eq!(moved(wal.retain(&consumed)), None);
    assert_eq!(moved(wal.retain(&by_size)), None, "the consumer needs it");
    wal.remove_consumer("one").unwrap();
    let head = moved(wal.retain(&by_size)).unwrap();
    assert!(wal.end().unwrap().0 - head.0 >= 1000);
    assert_eq!(wal.read(head).unwrap().payload, [(head.0 / 40) as u8; 32]);
    let first = &wal.segment_paths().unwrap()[0];
    assert!(first.ends_with(deedbook::wal::segment_name(head.0 / 256)), "{first:?}");
    let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let segments = files.filter(|path| path.extension().is_some_and(|ending| ending == "wal"));
    assert_eq!(segments.min().as_ref(), Some(first));
    // Unsynced records stay, however old or large.
    let all = Retention::new().bytes_max(0);
    (0..100).for_each(|i| assert!(wal.append(&[i; 32]).is_ok()));
    let head = moved(wal.retain(&all)).unwrap();
    assert!(head.0 <= 4000);
}

/// Random histories found a search for the new head in only two segments: a longer record kept all records before it.
#[test]
fn a_long_record_keeps_no_earlier_segments() {
    let dir = TempDir::new().unwrap();
    let layout = Some(Layout::Segmented { segment_bytes: 64 });
    let options = Options::new().layout(layout);
    let wal = options.open(dir.path().join("log"), Mode::Create).unwrap();
    (0..25).for_each(|_| assert!(wal.append(b"").is_ok()));
    wal.append(&[1; 300]).unwrap();
    wal.append(b"").unwrap();
    wal.sync().unwrap();
    let most = |bytes| Retention::new().bytes_max(bytes);
    assert_eq!(moved(wal.retain(&most(100))), Some(Lsn(192)));
    assert_eq!((wal.head().unwrap(), wal.len().unwrap()), (Lsn(192), 3));
}

#[test]
fn retention_by_age_drops_old_segments() {
    let (_dir, wal, _) = filled(&options());
    let old = |hours: u64| Retention::new().age_max(Duration::from_secs(3600 * hours));
    assert_eq!(moved(wal.retain(&old(1))), None);
    let segments = wal.segment_paths().unwrap();
    let now = std::time::SystemTime::now();
    let age = |path: &std::path::Path, at| {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    };
    age(&segments[3], now - Duration::from_secs(7200));
    assert_eq!(moved(wal.retain(&old(1))), None, "older ones before it are young");
    (0..3).for_each(|i| age(&segments[i], now - Duration::from_secs(7200)));
    // The clock was wrong once: a file from the future is not old.
    age(&segments[2], now + Duration::from_secs(7200));
    let head = moved(wal.retain(&old(1))).unwrap();
    assert_eq!(head.0 / 256, 2);
    age(&segments[2], now - Duration::from_secs(7200));
    assert_eq!(moved(wal.retain(&old(3))), None);
    assert_eq!(moved(wal.retain(&old(1))).unwrap().0 / 256, 4);
}

/// Stores through a map leave a file's time alone, so a segment without syncs seemed as old as its reservation.
#[test]
fn a_segments_age_counts_from_its_last_record() {
    let dir = TempDir::new().unwrap();
    let layout = Some(Layout::Segmented { segment_bytes: 80 << 10 });
    let options = Options::new().layout(layout).durability(Durability::None);
    let wal = options.open(dir.path().join("log"), Mode::Create).unwrap();
    // After the first 64 KiB, which are written differently; two records in the segment's last page.
    (0..79).for_each(|_| assert!(wal.append(&[1; 1016]).is_ok()));
    wal.append(&[2; 500]).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    wal.append(&[3; 600]).unwrap();
    let age_max = Duration::from_millis(300);
    assert_eq!(wal.end().unwrap().0 / (80 << 10), 1);
    wal.sync().unwrap();
    assert_eq!(moved(wal.retain(&Retention::new().age_max(age_max))), None);
}

fn kept(dir: &TempDir, retention: Retention) -> (Wal, Arc<AtomicU64>) {
    let archived = Arc::new(AtomicU64::new(0));
    let count = archived.clone();
    let archive = move |_: u64, _: &Path| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let options = options().retention(retention).archive(archive);
    (options.open(dir.path(), Mode::Append).unwrap(), archived)
}

#[test]
fn a_writer_applies_its_retention_automatically() {
    let dir = filled(&options()).0;
    let by_size = Retention::new().bytes_max(1000);
    // At opening, and no segment twice.
    let (wal, archived) = kept(&dir, by_size);
    let head = wal.head().unwrap().0;
    assert!(head > 0 && wal.end().unwrap().0 - head >= 1000);
    let stats = wal.stats().unwrap();
    assert_eq!((stats.dropped_files, stats.dropped_bytes), (head / 256, head), "counted");
    assert_eq!(archived.load(Ordering::SeqCst), head / 256);
    // Also after the first sync in each segment. Without a sync nothing is durable, so nothing is dropped.
    for _ in 0..100 {
        wal.append(&[7; 32]).unwrap();
    }
    assert_eq!(wal.head().unwrap().0, head);
    for _ in 0..100 {
        wal.commit(&[7; 32]).unwrap();
        let left = wal.end().unwrap().0 - wal.head().unwrap().0;
        assert!((1000..1000 + 3 * 256).contains(&left), "{left} bytes left");
    }
    // Once a reader sets a consumer, the log keeps the consumer's records.
    let reader = Wal::open(dir.path()).unwrap();
    let needed = reader.head().unwrap();
    reader.set_consumer("slow", needed).unwrap();
    (0..100).for_each(|_| assert!(wal.commit(&[7; 32]).is_ok()));
    assert_eq!(wal.head().unwrap(), needed);
    reader.remove_consumer("slow").unwrap();
    (0..20).for_each(|_| assert!(wal.commit(&[7; 32]).is_ok()));
    assert!(wal.head().unwrap() > needed);
    assert_eq!(archived.load(Ordering::SeqCst), wal.head().unwrap().0 / 256);
}

#[test]
fn blocked_retention_runs_at_a_later_sync() {
    let dir = TempDir::new().unwrap();
    let by_size = Retention::new().bytes_max(300);
    let (wal, _) = kept(&dir, by_size);
    wal.commit(&[1; 32]).unwrap();
    // As if another process were setting its consumer.
    let LockAttempt::Held(busy) = Disk.lock(&dir.path().join(".deedbook"), false).unwrap() else {
        panic!("locked by another");
    };
    (0..52).for_each(|_| assert!(wal.commit(&[1; 32]).is_ok()));
    assert_eq!(wal.head().unwrap(), Lsn(0));
    drop(busy);
    // In the same segment as the record before.
    wal.commit(&[1; 32]).unwrap();
    assert!(wal.head().unwrap() > Lsn(0));
}
