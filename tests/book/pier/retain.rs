//! Dropping the first epochs: the rules, the consumers, and crashes, power cuts and failing calls at every step.

use std::time::SystemTime;

use crate::pier::support::*;
use crate::support::crashes;

const NONE: [u64; 0] = [];
const CONSUMED: fn() -> Retention = || Retention::new().consumed(true);

fn most(bytes: u64) -> Retention {
    Retention::new().bytes_max(bytes)
}

/// A closed pier with the epochs 0i0 (1 to 3), 0i3 (4 and 5), 0i5 (6 to 9), 0i9 (10).
fn four_epochs() -> Sim {
    let disk = three_epochs();
    let pier = appending(&disk);
    assert_eq!(pier.roll().unwrap(), 9);
    append(&pier, 10..=10);
    pier.close().unwrap();
    disk
}

#[test]
fn pier_retention_drops_only_allowed_whole_epochs() {
    let disk = four_epochs();
    let pier = appending(&disk);
    let sizes: Vec<u64> = pier.epochs().unwrap().iter().map(|epoch| epoch.bytes).collect();
    assert_eq!(dropped(pier.retain(&CONSUMED())), NONE, "no consumers");
    assert_eq!(dropped(pier.retain(&Retention::new())), NONE, "no rules");
    let kept: u64 = sizes[1..].iter().sum();
    assert_eq!(dropped(pier.retain(&most(kept + 1))), NONE);
    let reader = reading(&disk);
    assert_eq!(reader.retain(&most(0)).unwrap_err().kind(), ErrorKind::ReadOnly);
    let would = reader.retainable(&most(kept)).unwrap();
    let [epoch] = &would[..] else { panic!("{would:?}") };
    assert_eq!((epoch.number, epoch.deeds, epoch.bounds), (0, 3, Some((1, 3))));
    assert_eq!(numbers(&pier), [0, 3, 5, 9]);
    assert_eq!(dropped(pier.retain(&most(kept))), [0]);
    assert_eq!((numbers(&pier), epoch.bytes), (vec![3, 5, 9], sizes[0]));
    assert_eq!((pier.epoch().unwrap(), pier.bounds().unwrap()), (3, Some(4..=10)));
    assert_eq!(pier.read(3).unwrap_err().kind(), ErrorKind::OutOfRange);
    assert_eq!(dropped(pier.retain(&most(0))), [3, 5]);
    append(&pier, 11..=12);
    assert_eq!(all(&pier), [10, 11, 12]);
    let stats = pier.stats().unwrap();
    assert_eq!((stats.dropped_files, stats.dropped_records), (3, 9));
    assert_eq!(stats.dropped_bytes, sizes[..3].iter().sum::<u64>());
    pier.close().unwrap();
    assert_eq!(pier.retain(&most(0)).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(all(&reading(&disk)), [10, 11, 12]);
    assert!(options(&disk).verify_pier(PIER).unwrap().ok());
}

#[test]
fn a_consumer_keeps_its_epochs_until_it_passes() {
    let disk = four_epochs();
    let pier = appending(&disk);
    let reader = reading(&disk);
    // 0i3 ends with event 5, which the consumer needs.
    reader.set_consumer("slow", 5).unwrap();
    pier.set_consumer("fast", 11).unwrap();
    assert_eq!(pier.consumers().unwrap(), [("fast".into(), 11), ("slow".into(), 5)].into());
    for rules in [most(0), CONSUMED(), most(0).age_max(Duration::ZERO)] {
        assert_eq!(dropped(pier.retainable(&rules)), [0], "{rules:?}");
    }
    assert_eq!(dropped(pier.retain(&CONSUMED())), [0]);
    // The reader did not look again since the retention. Its next call looks.
    for (event, known) in [(3, false), (4, true), (11, true), (12, false)] {
        let set = reader.set_consumer("slow", event);
        assert_eq!(
            set.map_err(|error| error.kind()).err(),
            (!known).then_some(ErrorKind::OutOfRange)
        );
    }
    reader.set_consumer("slow", 6).unwrap();
    assert_eq!(dropped(pier.retain(&CONSUMED())), [3]);
    reader.remove_consumer("slow").unwrap();
    assert_eq!(dropped(pier.retain(&CONSUMED())), [5]);
    assert_eq!(pier.set_consumer("two words", 10).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // A damaged file never means "no consumers".
    disk.remove(&Path::new(LOG).join(".deedbook/consumers")).unwrap();
    put(&disk, Path::new(LOG).join(".deedbook/consumers"), b"fast 11\n");
    append(&pier, 11..=11);
    pier.roll().unwrap();
    assert_eq!(pier.retain(&most(0)).unwrap_err().kind(), ErrorKind::Corrupt);
    pier.close().unwrap();
    assert_eq!(numbers(&appending(&disk)), [9, 11]);
}

/// A position above the end would hide later events.
#[test]
fn a_consumer_above_the_end_is_lowered() {
    let disk = Sim::new();
    let pier = manual(&disk).open_pier(PIER, Mode::Append).unwrap();
    append(&pier, 1..=3);
    pier.sync().unwrap();
    append(&pier, 4..=6);
    pier.set_consumer("eager", 7).unwrap();
    pier.set_consumer("slow", 2).unwrap();
    let image = crashes::worst(&disk);
    let pier = appending(&image);
    let last = pier.last().unwrap();
    assert!(last < 6, "the power cut took nothing");
    let expected = [("eager".into(), last + 1), ("slow".into(), 2)].into();
    assert_eq!(pier.consumers().unwrap(), expected);
}

#[test]
fn retention_by_age_counts_from_an_epochs_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zod");
    let pier = Pier::append_to(&path).unwrap();
    for event in 1..=4 {
        append(&pier, event..=event);
        pier.roll().unwrap();
    }
    let hour = Duration::from_secs(3600);
    let old = Retention::new().age_max(hour);
    let age = |number: u64, at: SystemTime| {
        let log = path.join(format!(".urb/log/0i{number}/book.log"));
        std::fs::File::options().write(true).open(log).unwrap().set_modified(at).unwrap();
    };
    assert_eq!(dropped(pier.retain(&old)), NONE);
    age(1, SystemTime::now() - 2 * hour);
    assert_eq!(dropped(pier.retain(&old)), NONE, "the one before it is young");
    age(0, SystemTime::now() - 2 * hour);
    age(2, SystemTime::now() + 2 * hour);
    age(3, SystemTime::now() - 2 * hour);
    assert_eq!(dropped(pier.retain(&old)), [0, 1], "the future is not old");
    let mut names = Disk.list(&path.join(".urb/log")).unwrap();
    names.sort();
    assert_eq!(names, [".deedbook", "0i2", "0i3", "0i4"]);
    assert_eq!(Disk.list(&path.join(".urb/log/.deedbook")).unwrap(), ["lock"]);
}

/// A reader keeps its open epochs, and a slow follower does not skip events. A follower of a reader with an old list of
/// epochs got an error about a missing log.
#[test]
fn readers_continue_or_are_refused_during_retention() {
    let disk = four_epochs();
    let pier = appending(&disk);
    let reader = reading(&disk);
    let mut walk = reader.iter(..).unwrap();
    let mut first = reader.follow(None).unwrap();
    let mut stale = reading(&disk).follow(None).unwrap();
    let mut second = reading(&disk).follow(Some(6)).unwrap();
    let next = |follow: &mut deedbook::book::pier::Follow| {
        follow.next(Duration::ZERO).map(|deed| deed.unwrap().event.unwrap())
    };
    assert_eq!((next(&mut first).unwrap(), next(&mut second).unwrap()), (1, 6));
    assert_eq!(next(&mut stale).unwrap(), 1);
    assert_eq!(dropped(pier.retain(&most(0))), [0, 3, 5]);
    let events: Vec<_> = walk.by_ref().map(|deed| deed.unwrap().event.unwrap()).collect();
    assert_eq!(events, (1..=10).collect::<Vec<_>>());
    // Until the reader looks again, it has its open epochs. Then it has the epochs of the pier.
    assert_eq!(reader.refresh().unwrap(), 10);
    assert_eq!((numbers(&reader), all(&reader)), (vec![9], vec![10]));
    for follow in [&mut first, &mut stale] {
        assert_eq!([2, 3].map(|event| next(follow).unwrap() == event), [true; 2]);
        let error = refused(next(follow), ErrorKind::OutOfRange);
        assert_eq!(error.message(), "the events after 3, up to 9, were dropped");
    }
    // The follower's epoch is whole, and the next epoch is there.
    assert_eq!([7, 8, 9, 10].map(|event| next(&mut second).unwrap() == event), [true; 4]);
}

/// A follower at the end skipped dropped events that it had not returned yet.
#[test]
fn an_unstarted_follower_skips_no_dropped_events() {
    let disk = Sim::new();
    let pier = appending(&disk);
    append(&pier, 1..=3);
    for knows_the_next in [false, true] {
        let from = pier.last().unwrap();
        let reader = reading(&disk);
        let mut follow = reader.follow(Some(from + 1)).unwrap();
        pier.roll().unwrap();
        append(&pier, from + 1..=from + 6);
        if knows_the_next {
            reader.refresh().unwrap();
        }
        pier.roll().unwrap();
        append(&pier, from + 7..=from + 7);
        assert_eq!(dropped(pier.retain(&most(0))).len(), 2);
        let error = refused(follow.next(Duration::ZERO), ErrorKind::OutOfRange);
        let expected = format!("the events after {from}, up to {}, were dropped", from + 6);
        assert_eq!(error.message(), expected);
    }
}

/// A new follower began at the first event left, although an older follower is refused.
#[test]
fn a_new_follower_skips_no_dropped_events() {
    let disk = four_epochs();
    let before = reading(&disk);
    assert_eq!(dropped(appending(&disk).retain(&most(0))), [0, 3, 5]);
    for pier in [reading(&disk), before] {
        let next = |start| pier.follow(start).unwrap().next(Duration::ZERO);
        for start in [1, 4, 9] {
            let error = refused(next(Some(start)), ErrorKind::OutOfRange);
            let expected = format!("the events after {}, up to 9, were dropped", start - 1);
            assert_eq!(error.message(), expected);
        }
        for start in [None, Some(0), Some(10)] {
            assert_eq!(next(start).unwrap().unwrap().event, Some(10), "{start:?}");
        }
        assert_eq!(next(Some(11)).unwrap(), None);
    }
    // Also before the last epoch has an event.
    let pier = appending(&disk);
    pier.roll().unwrap();
    assert_eq!(dropped(pier.retain(&most(0))), [9]);
    let mut follow = reading(&disk).follow(Some(10)).unwrap();
    assert_eq!(follow.next(Duration::ZERO).unwrap_err().kind(), ErrorKind::OutOfRange);
}

/// A check reported ok although every epoch was dropped in the meantime and nothing was checked.
#[test]
fn a_check_that_could_check_nothing_says_so() {
    let mut refused = 0;
    for at in 1..60 {
        let disk = Sim::new();
        let pier = appending(&disk);
        append(&pier, 1..=3);
        let (storage, _) = before_call(Arc::new(disk.clone()), at, move || {
            pier.roll().unwrap();
            append(&pier, 4..=4);
            pier.retain(&most(0)).unwrap();
        });
        match Options::new().storage(storage).verify_pier(PIER) {
            Ok(report) => assert!(!report.epochs.is_empty(), "dropped at call {at}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

/// The check reported epochs as missing that were dropped during the check of the first epoch.
#[test]
fn verify_skips_epochs_dropped_during_the_check() {
    let disk = four_epochs();
    let pier = appending(&disk);
    let (mut calls, mut seen) = (0, (0, 0));
    let report = options(&disk).verify_pier_with(PIER, |done, total| {
        calls += 1;
        if calls == 1 {
            assert_eq!(dropped(pier.retain(&most(0))), [0, 3, 5]);
        }
        seen = (done, total);
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.ok(), "{report:?}");
    let checked: Vec<u64> = report.epochs.iter().map(|(number, _)| *number).collect();
    assert_eq!((checked, seen.0), (vec![0, 9], seen.1));
}

#[test]
fn a_failed_call_during_retention_leaves_no_gap() {
    let (mut failed, mut closed) = (0, 0);
    for call in 1.. {
        let disk = four_epochs();
        let pier = appending(&disk);
        disk.inject(Fault::once(call, What::Error(Io::Other)));
        let dropped = pier.retain(&most(0));
        let struck = disk.fired() > 0;
        disk.heal();
        failed += u64::from(dropped.is_err());
        let mut last = 10;
        match pier.append(11, &jam(11)) {
            Ok(event) => {
                last = event;
                assert_eq!(numbers(&pier).last(), Some(&9), "call {call}");
                let first = pier.epoch().unwrap();
                assert_eq!(all(&pier), (first + 1..=last).collect::<Vec<_>>(), "call {call}");
                pier.retain(&most(0)).unwrap();
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Closed, "call {call}: {dropped:?}");
                closed += 1;
            }
        }
        drop(pier);
        let pier = appending(&disk);
        let first = pier.epoch().unwrap();
        assert_eq!(all(&pier), (first + 1..=last).collect::<Vec<_>>(), "call {call}");
        assert!(!disk.is_dir(&Path::new(LOG).join(".deedbook/dropped")), "call {call}");
        if !struck {
            assert!(dropped.is_ok());
            break;
        }
    }
    assert!(failed > 15 && closed > 0, "{failed} failed, {closed} closed");
}
