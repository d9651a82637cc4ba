//! Costs that stay small as a write-ahead log grows, and positions beyond 32 bits.

use std::sync::atomic::AtomicI64;

use super::*;

fn filled(storage: Arc<dyn Storage>, segment_bytes: u64, records: u64) -> Options {
    let layout = Some(Layout::Segmented { segment_bytes });
    let options = Options::new().layout(layout).storage(storage);
    let wal = options.open("/log", Mode::Create).unwrap();
    let mut batch = Batch::<WalFormat>::new(deedbook::wal::Options::RECORD_BYTES_MAX);
    for i in 0..records {
        batch.push(&i.to_le_bytes().repeat(7)).unwrap();
        if batch.len() == 1000 || i + 1 == records {
            wal.append_batch(&batch).unwrap();
            batch.clear();
        }
    }
    wal.close().unwrap();
    options
}

fn reads_counted(memory: Memory) -> (Arc<dyn Storage>, Arc<AtomicU64>) {
    let read = Arc::new(AtomicU64::new(0));
    let count = read.clone();
    let storage = watched(Arc::new(memory), move |seen| {
        if let Seen::Read(bytes) = seen {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    });
    (storage, read)
}

/// After a clean close, opening and finding a record by position read a few blocks, however large the log.
#[test]
fn opening_a_large_log_reads_few_bytes() {
    let mut read_by = Vec::new();
    for records in [10_000, 1_000_000] {
        let memory = Memory::new();
        let options = filled(Arc::new(memory.clone()), 64 << 20, records);
        let (storage, read) = reads_counted(memory);
        let options = options.storage(storage);
        for mode in [Mode::Read, Mode::Append] {
            read.store(0, Ordering::Relaxed);
            let wal = options.open("/log", mode).unwrap();
            assert_eq!(wal.len().unwrap(), records);
            let opened = read.load(Ordering::Relaxed);
            assert!(opened < 4096, "{records} records, {mode:?}: {opened} bytes read");
            read_by.push(opened);
            let Lsn(last) = wal.bounds().unwrap().unwrap().1;
            assert_eq!(wal.read(Lsn(last / 64 / 2 * 64)).unwrap().payload.len(), 56);
            let sought = read.load(Ordering::Relaxed) - opened;
            assert!(sought < 2 << 20, "{records} records, {mode:?}: {sought} bytes read");
        }
    }
    // Only a binary search in the index may grow.
    assert!(read_by[2] < read_by[0] + 1024 && read_by[3] < read_by[1] + 1024, "{read_by:?}");
}

#[test]
fn opening_a_crashed_log_reads_the_unsynced_tail() {
    for records in [100, 20_000] {
        let disk = Sim::new();
        let wal = LARGE.wal(&disk, MANUAL).unwrap();
        (0..records).for_each(|_| assert!(wal.append(&[7; 40]).is_ok()));
        wal.sync().unwrap();
        (0..10).for_each(|_| assert!(wal.append(&[8; 40]).is_ok()));
        let scanned = |disk: &Sim| {
            let wal = LARGE.options(disk, MANUAL).open(LARGE.path, Mode::Read).unwrap();
            assert_eq!(wal.len().unwrap(), records + 10);
            wal.recovery().scanned_records
        };
        assert_eq!(scanned(&disk.kill()), 10);
        wal.close().unwrap();
        assert_eq!(scanned(&disk), 0);
    }
}

/// The log has no sidecar, as wal-db leaves it. Reading a part costs only the part.
#[test]
fn reading_a_part_reads_only_its_bytes() {
    let memory = Memory::new();
    let options = filled(Arc::new(memory.clone()), 1 << 20, 100_000);
    for name in memory.list("/log/.deedbook".as_ref()).unwrap() {
        memory.remove(&Path::new("/log/.deedbook").join(name)).unwrap();
    }
    let (storage, read) = reads_counted(memory);
    let options = options.storage(storage);
    let splits = options.open("/log", Mode::Read).unwrap().splits(1 << 20, ..).unwrap();
    assert!(splits.len() > 5);
    let mut records = 0;
    for split in splits {
        read.store(0, Ordering::Relaxed);
        let mut cursor = Wal::read_split(&split, &options, OnCorrupt::Raise, true).unwrap();
        while cursor.next().unwrap().is_some() {
            records += 1;
        }
        let (read, bytes) = (read.load(Ordering::Relaxed), split.end - split.offset);
        assert!(read < bytes + 4096, "{split:?} of {bytes} bytes: {read} read");
    }
    assert_eq!(records, 100_000);
}

#[test]
fn few_segments_are_open_at_a_time() {
    let (open, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let counted = (open.clone(), most.clone());
    let storage = watched(Arc::new(Memory::new()), move |seen| {
        let (open, most) = &counted;
        match seen {
            Seen::Opened => {
                most.fetch_max(open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            Seen::Closed => drop(open.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    });
    let options = filled(storage, 256, 4000);
    let wal = options.open("/log", Mode::Append).unwrap();
    assert_eq!(wal.segment_paths().unwrap().len(), 1000);
    assert_eq!(wal.iter(..).unwrap().count(), 4000);
    wal.truncate_before(Lsn(64 * 1000)).unwrap();
    wal.truncate_from(Lsn(64 * 3000)).unwrap();
    drop(wal);
    assert!(options.verify("/log").unwrap().ok());
    // Sixteen segments, the mark, the index, the lock, and the segment being read.
    let most = most.load(Ordering::Relaxed);
    assert!(most <= 24, "{most} files were open at a time");
    assert_eq!(open.load(Ordering::Relaxed), 0);
}

/// A log of wal-db with a head just below 2^32: only the marker and the last segment, which is a hole.
// Promise: wal-large.
#[test]
fn records_lie_across_and_behind_four_gibibytes() {
    const HEAD: u64 = (1 << 32) - 100;
    const SEGMENT: u64 = 64 << 20;
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    std::fs::create_dir(&log).unwrap();
    let segment = std::fs::File::create_new(log.join(segment_name(HEAD / SEGMENT))).unwrap();
    segment.set_len(HEAD % SEGMENT).unwrap();
    std::fs::write(log.join(HEAD_NAME), head_marker(HEAD)).unwrap();
    let layout = Some(Layout::Segmented { segment_bytes: SEGMENT });
    let options = Options::new().layout(layout).storage(Arc::new(Disk));
    let wal = options.open(&log, Mode::Append).unwrap();
    let lsns: Vec<Lsn> = (0..20).map(|i| wal.append(&[i; 52]).unwrap()).collect();
    assert_eq!((lsns[0], lsns[19]), (Lsn(HEAD), Lsn(HEAD + 19 * 60)));
    wal.sync().unwrap();
    wal.set_consumer("far", lsns[10]).unwrap();
    let check = |wal: &Wal, first: usize, last: usize| {
        let all: Vec<_> = wal.iter(..).unwrap().map(|r| r.unwrap()).collect();
        let there: Vec<_> = (first..=last).map(|i| (lsns[i], vec![i as u8; 52])).collect();
        assert_eq!(all.iter().map(|r| (r.lsn, r.payload.clone())).collect::<Vec<_>>(), there);
        let mut back = wal.cursor_back(..).unwrap();
        assert_eq!(back.next().unwrap().unwrap().lsn, lsns[last]);
        assert_eq!(wal.read(lsns[last]).unwrap().payload, vec![last as u8; 52]);
    };
    check(&wal, 0, 19);
    // The second record lies across the border of two segments, and across 2^32.
    wal.truncate_before(lsns[1]).unwrap();
    wal.truncate_after(lsns[15]).unwrap();
    check(&wal, 1, 15);
    wal.close().unwrap();
    for without_sidecar in [false, true] {
        if without_sidecar {
            std::fs::remove_dir_all(log.join(".deedbook")).unwrap();
        }
        let wal = options.open(&log, Mode::Append).unwrap();
        check(&wal, 1, 15);
        assert!(options.verify(&log).unwrap().ok());
        assert_eq!(wal.consumers().unwrap().contains_key("far"), !without_sidecar);
        wal.close().unwrap();
    }
    let wal = options.open(&log, Mode::Append).unwrap();
    let all = Retention::new().bytes_max(0);
    assert_eq!(wal.retain(&all).unwrap().head, lsns[2]);
    check(&wal, 2, 15);
}

/// Records of zeros fill more than 4 GiB of a single file, and all are holes.
// Promise: wal-large.
#[cfg(unix)]
#[test]
fn a_single_file_may_exceed_four_gibibytes() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("wal");
    let payload = vec![0; (deedbook::wal::Options::RECORD_BYTES_MAX - 1000) as usize];
    let framed = deedbook::wal::Options::RECORD_BYTES_MAX - 1000 + 8;
    let count = (1 << 32) / framed + 1;
    let header = &Framing::Wal.encode(0, &payload)[..8];
    let file = std::fs::File::create_new(&log).unwrap();
    for i in 0..count {
        std::os::unix::fs::FileExt::write_all_at(&file, header, i * framed).unwrap();
    }
    file.set_len(count * framed).unwrap();
    let wal = Wal::append_to(&log).unwrap();
    assert_eq!((wal.len().unwrap(), wal.end().unwrap()), (count, Lsn(count * framed)));
    let lsn = wal.commit(b"beyond it").unwrap();
    assert!(lsn.0 > 1 << 32);
    wal.close().unwrap();
    let wal = Wal::append_to(&log).unwrap();
    assert_eq!(wal.recovery().scanned_records, 0);
    assert_eq!(wal.read(lsn).unwrap().payload, b"beyond it");
    assert_eq!(wal.read(Lsn(lsn.0 - framed)).unwrap().payload, payload);
    wal.truncate_after(Lsn(lsn.0 - framed)).unwrap();
    assert_eq!(wal.end().unwrap(), lsn);
}
