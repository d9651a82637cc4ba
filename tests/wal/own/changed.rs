//! Changes by a truncation or a second thread, seen by followers, the index and consumers.

use super::*;
use crate::support::harness::limit::within;

const SUBJECTS: [&WalSubject; 4] = [&SINGLE, &SEGMENTS, &TINY, &LARGE];

fn next(
    follow: &mut deedbook::Follow<deedbook::wal::WalFormat>,
) -> Result<Option<Vec<u8>>, ErrorKind> {
    let next = follow.next(Duration::ZERO).map_err(|error| error.kind())?;
    Ok(next.map(|record| record.payload.to_vec()))
}

/// A follower on the writer's handle waited forever after a cut below its place, or called unread records damaged.
#[test]
fn a_follower_sharing_the_handle_reports_truncation() {
    within(|| {
        for subject in SUBJECTS {
            // At the end, or with more records left than a single read covers; records of the same size are appended again.
            for (seen, size, again) in
                [(6, 40, 0), (2, 40, 0), (2, 400_000, 0), (6, 40, 1), (6, 40, 5), (6, 40, 7)]
            {
                if size > 1000 && subject.border_bytes < 512 {
                    continue;
                }
                let (_disk, wal, lsns) = synced(subject, MANUAL, 6, size);
                let mut follow = wal.follow(None).unwrap();
                for n in 0..seen {
                    assert_eq!(next(&mut follow), Ok(Some(vec![n; size])));
                }
                wal.truncate_after(lsns[0]).unwrap();
                (0..again).for_each(|n| assert!(wal.append(&vec![100 + n; size]).is_ok()));
                // The follower may still return records from memory.
                let mut n = seen;
                let ended = loop {
                    match next(&mut follow) {
                        Ok(Some(payload)) => assert_eq!(payload, vec![n; size]),
                        ended => break ended,
                    }
                    n += 1;
                };
                assert_eq!(
                    ended,
                    Err(ErrorKind::OutOfRange),
                    "{} {seen} {size} {again}",
                    subject.name
                );
                wal.append(b"on").unwrap();
                assert_eq!(next(&mut follow), Err(ErrorKind::OutOfRange), "{}", subject.name);
            }
        }
    });
}

/// A truncation left index entries for removed records: reads by position failed among new ones.
#[test]
fn a_truncation_also_truncates_the_index() {
    for subject in [&SINGLE, &SEGMENTS, &LARGE] {
        for cut in [1, 4, 7] {
            let disk = Sim::new();
            let log = subject.open(&disk, MANUAL).unwrap();
            for n in 0..9u8 {
                log.append(0, &[n; 41_000]).unwrap();
            }
            log.sync().unwrap();
            let records = log.read_all().unwrap();
            log.truncate_from(records[cut].number()).unwrap();
            views::check_all(subject, &*log, &records[..cut]).unwrap();
            for n in 0..12u8 {
                log.append(0, &[100 + n; 29_000]).unwrap();
                if n % 5 == 0 {
                    log.sync().unwrap();
                }
                let there = log.read_all().unwrap();
                assert_eq!(there.len(), cut + usize::from(n) + 1);
                views::check_all(subject, &*log, &there).unwrap();
            }
            let expected = log.read_all().unwrap();
            log.close().unwrap();
            let again = subject.open(&disk, ALWAYS).unwrap();
            views::check_all(subject, &*again, &expected).unwrap();
        }
    }
}

/// Positions beyond 2^32 in a stored index: in 32 bits they lie before the log, and a search finds nothing.
#[test]
fn an_index_knows_positions_beyond_four_gibibytes() {
    const HEAD: u64 = (1 << 32) - 100_000;
    let Some(size) = LARGE.layout.segment_bytes() else { panic!("segments") };
    let disk = Sim::new();
    let dir = Path::new(LARGE.path);
    disk.create_dir(dir).unwrap();
    let segment = disk.create_new(&dir.join(segment_name(HEAD / size)), 0o600).unwrap();
    segment.set_len(HEAD % size).unwrap();
    write_file(&disk, &dir.join(HEAD_NAME), &head_marker(HEAD));
    let log = LARGE.open(&disk, MANUAL).unwrap();
    for n in 0..60u8 {
        log.append(0, &[n; 40_000]).unwrap();
    }
    let records = log.read_all().unwrap();
    assert_eq!((records[0].number(), records.len()), (HEAD, 60));
    log.close().unwrap();
    let log = LARGE.open(&disk, MANUAL).unwrap();
    views::check_all(&LARGE, &*log, &records).unwrap();
    log.close().unwrap();
    let wal = LARGE.wal(&disk, MANUAL).unwrap();
    let parts = wal.splits(1, ..).unwrap().len();
    assert!(parts >= 25, "{parts} parts of 2.4 MB");
}

/// Two threads set a consumer each. The thread that had read the file before the other wrote it deleted the other's
/// consumer, whose records could then be dropped.
#[test]
fn consumers_set_by_two_threads_are_kept() {
    within(|| {
        for at in 1.. {
            let disk = Sim::new();
            // The second thread begins at call `at` of the first thread.
            let second: Arc<Mutex<Option<Wal>>> = Arc::default();
            let (calls, threads) = (AtomicU64::new(0), Arc::new(Mutex::new(Vec::new())));
            let hook = {
                let (second, threads) = (second.clone(), threads.clone());
                move |seen| {
                    let mut second = second.lock().unwrap();
                    if seen != Seen::Calling || second.is_none() {
                        return;
                    }
                    if calls.fetch_add(1, Ordering::Relaxed) + 1 == at {
                        let wal = second.take().unwrap();
                        drop(second);
                        let (done, is_done) = channel();
                        threads.lock().unwrap().push(std::thread::spawn(move || {
                            wal.set_consumer("second", Lsn(0)).unwrap();
                            let _ = done.send(());
                        }));
                        // With a limit: the second thread may have to wait for the first.
                        let _ = is_done.recv_timeout(Duration::from_millis(50));
                    }
                }
            };
            let storage = watched(Arc::new(disk.clone()), hook);
            let options = TINY.options(&disk, MANUAL).storage(storage);
            let wal = options.open(TINY.path, Mode::Append).unwrap();
            wal.append(b"first").unwrap();
            let lsn = wal.append(b"second").unwrap();
            wal.sync().unwrap();
            *second.lock().unwrap() = Some(wal.clone());
            wal.set_consumer("first", lsn).unwrap();
            if second.lock().unwrap().is_some() {
                assert!(at > 3, "{at} calls only");
                break;
            }
            threads.lock().unwrap().drain(..).for_each(|thread| thread.join().unwrap());
            let consumers: Vec<_> = wal.consumers().unwrap().into_iter().collect();
            assert_eq!(consumers, [("first".into(), lsn), ("second".into(), Lsn(0))], "call {at}");
        }
    });
}
