//! Damage of a pier: the newest epoch is repaired in place, and a salvage copies the rest under its numbers.

use crate::pier::support::*;

const NOTHING: Repair = Repair { force: false, dry_run: false, accept_loss: false };
const DRY_RUN: Repair = Repair { dry_run: true, ..NOTHING };
const ALL: Repair = Repair { force: true, accept_loss: true, ..NOTHING };

fn damage(disk: &Sim, number: u64, change: impl Fn(&mut Vec<u8>)) {
    let path = epoch(number).join("book.log");
    let mut log = read_file(disk, &path);
    change(&mut log);
    put(disk, &path, &log);
}

fn log(disk: &Sim, number: u64) -> Vec<u8> {
    read_file(disk, &epoch(number).join("book.log"))
}

fn logs(disk: &Sim) -> Vec<Vec<u8>> {
    [0, 3, 5].map(|number| log(disk, number)).into()
}

fn copied(disk: &Sim) -> Pier {
    options(disk).open_pier(COPY, Mode::Read).unwrap()
}

/// The events of a copy that are no stubs.
fn intact(copy: &Pier) -> Vec<u64> {
    let deeds = copy.iter(..).unwrap().map(Result::unwrap);
    let (stubs, deeds): (Vec<_>, Vec<_>) = deeds.partition(|deed| deed.jam == [2]);
    assert!(stubs.iter().all(|stub| stub.mug == 0x79ff_04e8));
    let event = |deed: &deedbook::book::Deed| {
        let event = deed.event.unwrap();
        assert_eq!((deed.mug, &deed.jam), (event as u32, &jam(event)));
        event
    };
    deeds.iter().map(event).collect()
}

#[test]
fn a_pier_without_damage_needs_no_repair() {
    let disk = three_epochs();
    let before = logs(&disk);
    for how in [DRY_RUN, NOTHING] {
        let report = options(&disk).repair_pier(PIER, how).unwrap();
        assert_eq!(report.path, epoch(5).join("book.log"));
        assert_eq!((report.cut_bytes, report.damages, report.loss), (0, vec![], None));
        assert_eq!(report.mended, !how.dry_run);
    }
    assert_eq!(logs(&disk), before);
    refused(options(&disk).repair_pier("/nowhere", NOTHING), ErrorKind::Missing);
    assert!(!disk.is_dir(Path::new("/nowhere")));
}

#[test]
fn repair_saves_a_torn_newest_epochs_end() {
    let disk = three_epochs();
    let whole = log(&disk, 5);
    damage(&disk, 5, |log| log.extend(b"half of a deed"));
    let torn = log(&disk, 5);
    let planned = options(&disk).repair_pier(PIER, DRY_RUN).unwrap();
    assert_eq!((planned.cut_bytes, planned.mended, log(&disk, 5)), (14, false, torn));
    let report = options(&disk).repair_pier(PIER, NOTHING).unwrap();
    assert_eq!((report.cut_bytes, report.mended, log(&disk, 5)), (14, true, whole));
    assert_eq!(read_file(&disk, &report.saved[0]), b"half of a deed");
    let pier = appending(&disk);
    append(&pier, 10..=10);
    assert_eq!(all(&pier), (1..=10).collect::<Vec<_>>());
}

/// A cut of a sealed epoch would leave a gap before the next epoch.
#[test]
fn a_damaged_sealed_epoch_is_refused() {
    let changes: [fn(&mut Vec<u8>); 4] = [
        |log| log[16 + 12] ^= 1,
        |log| log[0] ^= 1,
        |log| log.truncate(log.len() - 5),
        |log| log.extend(b"half of a deed"),
    ];
    for (number, change) in [0, 3].into_iter().flat_map(|number| changes.map(|how| (number, how))) {
        let disk = three_epochs();
        damage(&disk, number, change);
        let before = logs(&disk);
        for how in [DRY_RUN, NOTHING, ALL] {
            let error = refused(options(&disk).repair_pier(PIER, how), ErrorKind::Corrupt);
            assert_eq!(error.path(), Some(&*epoch(number).join("book.log")), "{error}");
            assert!(error.to_string().contains("salvage copies the pier"), "{error}");
            assert_eq!(logs(&disk), before);
        }
    }
}

#[test]
fn a_repair_refuses_gaps_and_overlaps() {
    for (second, salvage) in [(5, true), (2, false)] {
        let disk = epochs(&[(0, 3), (second, 2)]);
        let error = refused(options(&disk).repair_pier(PIER, NOTHING), ErrorKind::Contiguity);
        assert_eq!(error.to_string().contains("salvage"), salvage, "{error}");
    }
}

#[test]
fn a_pier_with_a_writer_is_not_repaired() {
    let disk = three_epochs();
    let pier = appending(&disk);
    refused(options(&disk).repair_pier(PIER, NOTHING), ErrorKind::Locked);
    pier.close().unwrap();
    options(&disk).repair_pier(PIER, NOTHING).unwrap();
}

#[test]
fn a_salvage_copies_everything_of_a_pier() {
    let disk = three_epochs();
    put(&disk, epoch(5).join("vere.txt"), b"3.5");
    let pier = appending(&disk);
    pier.save_meta(&Meta { life: Some(7), ..Meta::default() }).unwrap();
    for (name, event) in [("mirror", 4), ("next", 10)] {
        pier.set_consumer(name, event).unwrap();
    }
    let id = Some(TransactionId { app: "etl".into(), query: None, version: 4 });
    let transaction = Transaction { job: "one".into(), id };
    let mut stage = pier.stage("one", 0, 1, None).unwrap();
    stage.push(10, &jam(10)).unwrap();
    pier.commit_staged(&transaction, &[stage.finish().unwrap()]).unwrap();
    pier.stage("two", 0, 1, None).unwrap().finish().unwrap();
    pier.close().unwrap();
    let before = logs(&disk);
    let mut steps = Vec::new();
    let report = options(&disk).salvage_pier_with(PIER, COPY, |done, all| {
        steps.push((done, all));
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.ok(), "{report:?}");
    assert_eq!((report.total.records, &report.total.stubs[..]), (10, &[][..]));
    assert_eq!((report.total.consumers, report.total.transactions), (2, 1));
    assert_eq!(report.total.unfinished_transactions, 1);
    assert_eq!(report.total.not_carried, [""; 0]);
    let bytes = before.iter().map(|log| log.len() as u64).sum();
    assert!(steps.is_sorted() && steps.ends_with(&[(bytes, bytes)]), "{steps:?}");
    let copy = options(&disk).open_pier(COPY, Mode::Append).unwrap();
    assert_eq!((numbers(&copy), all(&copy)), (vec![0, 3, 5], (1..=10).collect()));
    assert_eq!(copy.meta().unwrap().life, Some(7));
    assert_eq!(copy.consumers().unwrap(), [("mirror".into(), 4), ("next".into(), 10)].into());
    assert!(copy.commit_staged(&transaction, &[]).unwrap().repeated);
    for (name, text) in [("vere.txt", &b"3.5"[..]), ("epoc.txt", b"3")] {
        assert_eq!(read_file(&disk, &Path::new(COPY).join(".urb/log/0i5").join(name)), text);
    }
    assert_eq!(logs(&disk), before);
    refused(options(&disk).salvage_pier(PIER, COPY), ErrorKind::AlreadyExists);
    refused(options(&disk).salvage_pier(PIER, PIER), ErrorKind::AlreadyExists);
}

/// Without stubs, the events of the next epoch would get other numbers, or the copy would not open.
#[test]
fn stubs_fill_a_gap_before_an_epoch() {
    let cut = |number| {
        let disk = three_epochs();
        damage(&disk, number, |log| log.truncate(log.len() - 5));
        disk
    };
    let gap = "epoch 0i5 begins with event 6, but epoch 0i3 ends with event 4: event 5 is missing";
    let missing =
        "epoch 0i5 begins with event 6, but epoch 0i0 ends with event 3: events 4 to 5 are missing";
    // A sealed epoch without its end, the newest one without its end, and no epoch.
    for (disk, loss, stubs, gaps, left) in [
        (cut(3), Some(5), &[5][..], &[gap][..], &[1, 2, 3, 4, 6, 7, 8, 9][..]),
        (cut(5), Some(9), &[], &[], &[1, 2, 3, 4, 5, 6, 7, 8]),
        (epochs(&[(0, 3), (5, 2)]), None, &[4, 5], &[missing], &[1, 2, 3, 6, 7]),
    ] {
        let report = options(&disk).salvage_pier(PIER, COPY).unwrap();
        let lost = report.epochs.iter().find_map(|(_, epoch)| epoch.loss);
        assert_eq!((report.ok(), lost.map(|loss| loss.first)), (false, loss), "{report:?}");
        assert_eq!(report.gaps, gaps);
        assert_eq!(report.total.records, left.len() as u64);
        let copy = copied(&disk);
        assert_eq!((intact(&copy), report.total.stubs), (left.to_vec(), stubs.to_vec()));
        assert_eq!(copy.len().unwrap(), (left.len() + stubs.len()) as u64);
    }
}

/// A directory with a high number would fill the disk with stubs.
#[test]
fn overlaps_and_huge_gaps_end_the_copy() {
    for second in [2, 1_000_000] {
        let disk = epochs(&[(0, 3), (second, 2)]);
        refused(options(&disk).salvage_pier(PIER, COPY), ErrorKind::Contiguity);
        refused(options(&disk).open_pier(COPY, Mode::Read), ErrorKind::Missing);
    }
}

/// Without mark and index, nothing tells how many deeds lie in the damage.
#[test]
fn an_unproved_number_ends_the_copy() {
    let disk = three_epochs();
    for file in ["mark", "index"] {
        let _ = disk.remove(&epoch(5).join(".deedbook").join(file));
    }
    // The lengths of the second and the third deed.
    damage(&disk, 5, |log| {
        let second = 16 + 24 + jam(6).len();
        let third = second + 24 + jam(7).len();
        for length in [second, third] {
            log[length] ^= 1;
        }
    });
    let error = refused(options(&disk).salvage_pier(PIER, COPY), ErrorKind::Corrupt);
    assert!(error.to_string().contains("is not known"), "{error}");
    assert_eq!((numbers(&copied(&disk)), intact(&copied(&disk))), (vec![0, 3], (1..=5).collect()));
}
