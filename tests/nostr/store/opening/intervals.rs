//! A checkpoint bounds what an opening replays, by time, too: after `checkpoint_interval`, by default 300 s.

use crate::store::prelude::*;

fn replayed(disk: &Sim, options: &Options) -> u64 {
    open(&on_disk(options, &disk.kill())).opening().replayed
}

fn last_checkpoint(disk: &Sim) -> u64 {
    manifest(disk)["last_checkpoint_lsn"].as_u64().unwrap()
}

#[test]
fn opening_replays_appends_of_one_interval() {
    for durability in [Durability::Manual, Durability::Always, Durability::None] {
        for (interval, expected) in [(Duration::ZERO, 1), (Duration::from_secs(300), 10)] {
            let disk = Sim::new();
            let on = on(&disk).checkpoint_interval(interval).durability(durability);
            let store = open(&on);
            one_by_one(&store, &(0..10).map(short).collect::<Vec<_>>());
            assert_eq!(replayed(&disk, &on), expected, "{durability}");
        }
    }
}

#[test]
fn the_oldest_append_decides_about_a_timed_checkpoint() {
    let (disk, store) = fresh();
    let (on, begun) = (on(&disk), last_checkpoint(&disk));
    store.checkpoint_after(Duration::from_secs(3000)).unwrap();
    assert_eq!(last_checkpoint(&disk), begun, "there was nothing to replay");
    store.append_many(&[short(1), short(2)]).unwrap();
    store.checkpoint_after(Duration::from_secs(200)).unwrap();
    assert_eq!((replayed(&disk, &on), last_checkpoint(&disk)), (2, begun));
    store.checkpoint_after(Duration::from_secs(300)).unwrap();
    assert_eq!(replayed(&disk, &on), 0);
    assert!(last_checkpoint(&disk) > begun);
}

#[test]
fn the_thread_of_syncs_makes_checkpoints() {
    for durability in [None, Some(Durability::Interval(Duration::from_millis(1)))] {
        let disk = Sim::new();
        let mut on = on(&disk).batch_interval(Duration::from_millis(1));
        on = on.checkpoint_interval(Duration::ZERO);
        on.durability = durability;
        let store = open(&on);
        let begun = last_checkpoint(&disk);
        store.append(&short(1)).unwrap();
        while last_checkpoint(&disk) == begun {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The manifest comes last, and then files of the log go.
        store.sync().unwrap();
        assert_eq!(replayed(&disk, &on), 0);
    }
}
