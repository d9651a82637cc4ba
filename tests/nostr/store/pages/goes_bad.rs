//! Pages that go bad between two reads of the same job, which must notice the new damage.

use crate::store::prelude::*;
use crate::store::writing::large_compaction::{EVENTS, is_left, on, stored};

/// Change a byte of an event in the first segment, or change it back.
fn flip(disk: &Sim, at: Location) {
    let file = disk.open(Path::new(FIRST), Access::Write).unwrap();
    let (mut byte, place) = ([0], u64::from(at.offset) + 80);
    assert_eq!(file.read_at(&mut byte, place).unwrap(), 1);
    assert_eq!(file.write_at(&[byte[0] ^ 1], place).unwrap(), 1);
}

/// A page was intact when a compaction checked it, and bad when it was copied. The compaction skipped its event,
/// deleted the old segment, and reported no error.
#[test]
fn compaction_fails_if_a_page_goes_bad_meanwhile() {
    // Read in the same thread, and in another thread.
    for count in [300, EVENTS] {
        let disk = Sim::new();
        let (store, left) = stored(&disk, count, |number| number % 4 == 0);
        let at = place(&store, &left[0]);
        assert_eq!(at.segment, 0);
        store.close().unwrap();
        let (by, is_due) = (disk.clone(), Arc::new(AtomicBool::new(false)));
        let due = is_due.clone();
        // The check is over, and the checkpoint before the copies begins.
        let storage = watched(Arc::new(disk.clone()), move |seen| {
            if seen == Seen::Syncing && due.swap(false, Ordering::SeqCst) {
                flip(&by, at);
            }
        });
        let store = open(&on(&disk).storage(storage).durability(Durability::Manual));
        is_due.store(true, Ordering::SeqCst);
        let error = store.compact(0.0, false).unwrap_err();
        assert!(!is_due.load(Ordering::SeqCst), "{error:?}");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corrupt, Some(Path::new(FIRST))));
        assert_eq!(error.offset(), Some(at.offset.into()), "{error:?}");
        // All other events are there. If only the read was bad, the event is there, too.
        assert_eq!(skipping(&store).0.len(), count as usize - 1);
        flip(&disk, at);
        assert_eq!(store.compact(0.0, false).unwrap().kept, left.len() as u64);
        is_left(&store, &left);
    }
}

/// The same for a repair that had saved other pages: the repair did not even save the event.
#[test]
fn repair_fails_if_a_page_goes_bad_meanwhile() {
    for count in [300, EVENTS] {
        let disk = Sim::new();
        let (store, mut left) = stored(&disk, count, |_| false);
        // An event between the two separates the damages.
        let [known, later] = [&left[1], &left[3]].map(|event| place(&store, event));
        store.close().unwrap();
        flip(&disk, known);
        let saved = format!("{FIRST}.cut-{}", known.offset);
        let (by, is_due) = (disk.clone(), AtomicBool::new(true));
        let storage = watched(Arc::new(disk.clone()), move |seen| {
            let is_saved = || by.open(Path::new(&saved), Access::Read).is_ok();
            if seen == Seen::Syncing && is_saved() && is_due.swap(false, Ordering::SeqCst) {
                flip(&by, later);
            }
        });
        let options = on(&disk).durability(Durability::Manual);
        let mend = |options: &Options| options.repair(Path::new(DIR), ACCEPT);
        let error = mend(&options.clone().storage(storage)).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corrupt, Some(Path::new(FIRST))));
        assert_eq!(error.offset(), Some(later.offset.into()), "{error:?}");
        flip(&disk, later);
        assert!(mend(&options).unwrap().mended);
        left.remove(1);
        // The rewritten segment comes after the others.
        let store = open(&options);
        assert!(sorted(&store) == left, "other events");
        assert!(store.verify(Check::Id).unwrap().ok());
    }
}
