//! Transactions of a pier: the last epoch takes them, and a roll forgets none.

use crate::pier::support::*;
use crate::support::crashes::recorded_images;

fn of(job: &str, version: u64, query: Option<&str>) -> Transaction {
    let query = query.map(str::to_owned);
    let id = Some(TransactionId { app: "etl".into(), query, version });
    Transaction { job: job.into(), id }
}

fn staged(pier: &Pier, job: &str, jams: &[&str]) -> Part {
    let mut stage = pier.stage(job, 0, 1, None).unwrap();
    for jam in jams {
        stage.push(7, jam.as_bytes()).unwrap();
    }
    stage.finish().unwrap()
}

fn write(pier: &Pier, of: &Transaction, jams: &[&str]) -> Result<Committed> {
    let part = staged(pier, &of.job, jams);
    let done = pier.commit_staged(of, &[part]);
    if done.is_err() {
        assert!(pier.discard_staged(&of.job).unwrap());
    }
    done
}

fn read(disk: &Sim) -> Vec<(u64, String)> {
    let deeds = reading(disk).iter(..).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    let shown =
        |deed: deedbook::book::Deed| (deed.event.unwrap(), String::from_utf8(deed.jam).unwrap());
    deeds.into_iter().map(shown).collect()
}

/// The record of transactions was lost with its epoch: a repeat was appended again.
#[test]
fn retention_forgets_no_transaction_even_after_a_crash() {
    let disk = three_epochs();
    let pier = appending(&disk);
    write(&pier, &of("one", 4, None), &["a", "b"]).unwrap();
    pier.roll().unwrap();
    append(&pier, 12..=12);
    disk.record();
    assert_eq!(dropped(pier.retain(&Retention::new().bytes_max(0))), [0, 3, 5]);
    assert!(write(&pier, &of("two", 4, None), &["a", "b"]).unwrap().repeated);
    assert_eq!(all(&pier), [12]);
    let mut tried = 0;
    for image in recorded_images(&disk, 50) {
        tried += 1;
        assert_eq!(reading(&image).transactions().unwrap()["etl"].version, 4);
        let pier = appending(&image);
        assert!(write(&pier, &of("three", 4, None), &["a", "b"]).unwrap().repeated);
        assert!(!write(&pier, &of("four", 5, None), &["c"]).unwrap().repeated);
    }
    assert!(tried > 100, "{tried} images");
}

/// The record of transactions belongs to an epoch, and a new epoch has none.
#[test]
fn a_roll_forgets_no_transaction_and_detects_gaps() {
    let disk = three_epochs();
    let pier = appending(&disk);
    let query = Some("first");
    for batch in 0..=1 {
        write(&pier, &of("one", batch, query), &["x"]).unwrap();
    }
    for _ in 0..2 {
        pier.roll().unwrap();
        assert!(write(&pier, &of("two", 1, query), &["again"]).unwrap().repeated);
        refused(write(&pier, &of("two", 0, query), &["again"]), ErrorKind::Contiguity);
        append(&pier, pier.last().unwrap() + 1..=pier.last().unwrap() + 1);
    }
    pier.roll().unwrap();
    refused(write(&pier, &of("two", 3, query), &["early"]), ErrorKind::Contiguity);
    refused(
        write(&pier, &of("two", 2, Some("second")), &["of another"]),
        ErrorKind::InvalidArgument,
    );
    assert!(!write(&pier, &of("two", 2, query), &["next"]).unwrap().repeated);
    assert_eq!(pier.transactions().unwrap()["etl"].version, 2);
    drop(pier);
    assert_eq!(reading(&disk).transactions().unwrap()["etl"].version, 2);
    let found = read(&disk);
    let added = |text: &str| found.iter().filter(|(_, jam)| jam == text).count();
    assert_eq!((added("x"), added("next"), added("again"), added("early")), (2, 1, 0, 0));
}

#[test]
fn a_part_staged_before_a_roll_commits_later() {
    let disk = three_epochs();
    let (pier, task) = (appending(&disk), reading(&disk));
    let part = staged(&task, "one", &["late"]);
    let lost = staged(&task, "dead", &["of nobody"]);
    pier.roll().unwrap();
    let jobs: Vec<_> = pier.staged().unwrap().into_iter().map(|job| job.job).collect();
    assert_eq!(jobs, ["dead", "one"]);
    let done = pier.commit_staged(&of("one", 1, None), &[part]).unwrap();
    assert_eq!(done.first, Some(10));
    assert_eq!(pier.staged().unwrap()[0].bytes, lost.bytes);
    assert!(pier.discard_staged("dead").unwrap());
    assert_eq!(pier.staged().unwrap(), []);
    drop((pier, task));
    assert_eq!(read(&disk)[9..], [(10, "late".into())]);
}

/// Staging created the directory of the dropped epoch again, without a log, and nobody could open the pier.
#[test]
fn late_staging_does_not_recreate_a_dropped_epoch() {
    let disk = three_epochs();
    let (pier, task) = (appending(&disk), reading(&disk));
    let book = options(&disk).open(epoch(5), Mode::Read).unwrap();
    pier.roll().unwrap();
    append(&pier, 10..=10);
    assert_eq!(dropped(pier.retain(&Retention::new().bytes_max(0))), [0, 3, 5]);
    let part = staged(&task, "one", &["late"]);
    refused(book.stage("two", 0, 1, None), ErrorKind::Missing);
    assert!(!disk.is_dir(&epoch(5)));
    let done = pier.commit_staged(&of("one", 1, None), &[part]).unwrap();
    assert_eq!((done.records, done.first), (1, Some(11)));
    drop((pier, task, book));
    assert_eq!(numbers(&reading(&disk)), [9]);
    assert_eq!(read(&disk)[1..], [(11, "late".into())]);
}

/// A job's staged files were lost with the epoch, and the commit found nothing.
#[test]
fn parts_of_a_dropped_epoch_commit_once() {
    let one = of("one", 1, None);
    for layout in [Layout::Packed, Layout::Slots] {
        let disk = Sim::new();
        let pier = options(&disk).layout(layout).open_pier(PIER, Mode::Append).unwrap();
        append(&pier, 1..=5);
        let parts = [staged(&pier, "one", &["late"])];
        pier.roll().unwrap();
        append(&pier, 6..=6);
        disk.record();
        assert_eq!(dropped(pier.retain(&Retention::new().bytes_max(0))), [0]);
        let left = recorded_images(&disk, 20);
        let done = pier.commit_staged(&one, &parts).unwrap();
        assert_eq!((done.records, done.first), (1, Some(7)));
        assert_eq!(pier.staged().unwrap(), []);
        drop(pier);
        assert_eq!(read(&disk)[1..], [(7, "late".into())]);
        let mut tried = 0;
        for image in left {
            tried += 1;
            let pier = appending(&image);
            pier.commit_staged(&one, &parts).unwrap();
            drop(pier);
            let found = read(&image);
            assert_eq!(found.iter().filter(|(_, jam)| jam == "late").count(), 1, "{found:?}");
        }
        assert!(tried > 10, "{tried} images");
    }
}

/// A reader that did not know the new epoch of the staged files reported them as gone.
#[test]
fn a_reader_discards_parts_moved_by_retention() {
    let disk = Sim::new();
    let pier = appending(&disk);
    append(&pier, 1..=3);
    let (one, other) = (reading(&disk), reading(&disk));
    staged(&one, "one", &["late"]);
    pier.roll().unwrap();
    append(&pier, 4..=4);
    assert_eq!(dropped(pier.retain(&Retention::new().bytes_max(0))), [0]);
    assert_eq!(one.staged().unwrap().len(), 1);
    assert!(other.discard_staged("one").unwrap());
    assert_eq!(pier.staged().unwrap(), []);
}

/// The stage could not be finished, and its file stayed in the directory that the retention had chosen.
#[test]
fn an_open_stage_survives_its_dropped_epoch() {
    let disk = Sim::new();
    let pier = appending(&disk);
    append(&pier, 1..=3);
    let task = reading(&disk);
    let mut stage = task.stage("one", 0, 1, None).unwrap();
    stage.push(7, b"early").unwrap();
    pier.roll().unwrap();
    append(&pier, 4..=4);
    assert_eq!(dropped(pier.retain(&Retention::new().bytes_max(0))), [0]);
    stage.push(7, b"late").unwrap();
    let part = stage.finish().unwrap();
    let done = pier.commit_staged(&of("one", 1, None), &[part]).unwrap();
    assert_eq!((done.records, done.first), (2, Some(5)));
    drop((pier, task));
    assert_eq!(read(&disk)[1..], [(5, "early".into()), (6, "late".into())]);
}

/// Deeds of one layout are no deeds of the other.
#[test]
fn a_roll_moves_no_parts_of_another_layout() {
    let disk = three_epochs();
    let part = staged(&reading(&disk), "one", &["late"]);
    let slots = options(&disk).layout(Layout::Slots);
    let pier = slots.open_pier(PIER, Mode::Append).unwrap();
    pier.roll().unwrap();
    assert_eq!(pier.epochs().unwrap()[3].layout, Layout::Slots);
    refused(pier.commit_staged(&of("one", 1, None), &[part]), ErrorKind::Missing);
    assert_eq!(pier.len().unwrap(), 9);
    assert_eq!(write(&pier, &of("one", 1, None), &["again"]).unwrap().first, Some(10));
}
