//! The archive hook, which gets each segment before it goes.

use super::*;

type Archived = Arc<Mutex<Vec<(u64, Vec<u8>)>>>;

#[test]
fn the_archive_gets_segments_once_despite_a_failure() {
    let got = Archived::default();
    let broken = Arc::new(AtomicBool::new(true));
    let archive = {
        let (got, broken) = (got.clone(), broken.clone());
        move |index: u64, path: &Path| {
            if broken.load(Ordering::Relaxed) {
                return Err(std::io::Error::other("no room in the archive"));
            }
            got.lock().unwrap().push((index, std::fs::read(path)?));
            Ok(())
        }
    };
    let options = options().archive(archive);
    let (_dir, wal, lsns) = filled(&options);
    let error = wal.truncate_before(lsns[50]).unwrap_err();
    assert!(error.to_string().contains("archive segment 00000000000000000000.wal"), "{error}");
    assert_eq!((wal.head().unwrap(), wal.iter(..).unwrap().count()), (Lsn(0), 100));
    wal.append(b"the handle goes on").unwrap();
    broken.store(false, Ordering::Relaxed);
    wal.truncate_before(lsns[20]).unwrap();
    wal.truncate_before(lsns[50]).unwrap();
    let got = got.lock().unwrap();
    let indices: Vec<_> = got.iter().map(|(index, _)| *index).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6]);
    let archived: Vec<u8> = got.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(archived.len(), 7 * 256);
    assert_eq!(archived[8..40], [0; 32]);
    assert_eq!(archived[48..80], [1; 32]);
}

/// Archiving takes long. Found by reading: no thread could append meanwhile.
#[test]
fn while_the_archive_works_appends_go_on() {
    let slot: Arc<Mutex<Option<Wal>>> = Arc::default();
    let archive = {
        let slot = slot.clone();
        move |_: u64, _: &Path| {
            let wal = slot.lock().unwrap();
            wal.as_ref().unwrap().commit(b"from the archive").map_err(std::io::Error::other)?;
            Ok(())
        }
    };
    let (_dir, wal, lsns) = filled(&options().archive(archive));
    *slot.lock().unwrap() = Some(wal.clone());
    wal.truncate_before(lsns[50]).unwrap();
    assert_eq!(wal.len().unwrap(), 50 + lsns[50].0 / 256);
    assert_eq!(wal.iter(..).unwrap().last().unwrap().unwrap().payload, b"from the archive");
    slot.lock().unwrap().take();
}

/// A hook panicked on the thread that syncs, which ended, and nothing was synced from then on.
// Promise: panic.
#[test]
fn background_syncs_survive_a_panicking_archive_hook() {
    let dir = TempDir::new().unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let archive = {
        let calls = calls.clone();
        move |_: u64, _: &Path| {
            assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "the first call of the hook panics");
            Ok(())
        }
    };
    let every = Durability::Interval(Duration::from_millis(1));
    let options = options().archive(archive).retention(Retention::new().bytes_max(0));
    let wal = options.durability(every).open(dir.path(), Mode::Create).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while calls.load(Ordering::SeqCst) < 2 {
        wal.append(&[1; 200]).unwrap();
        let end = wal.end().unwrap();
        while wal.durable_end().unwrap() != Some(end) {
            assert!(Instant::now() < until, "nothing is synced any more");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
