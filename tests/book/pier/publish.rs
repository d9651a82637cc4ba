//! Large transactions: each part becomes an epoch; a crash at any step leaves none of them or all.

use crate::pier::support::*;
use crate::support::crashes::images;

/// States tried per power cut.
const STATES: u64 = 60;
/// Events of the pier before, and deeds of each part.
const BEFORE: u64 = 5;
const PARTS: [u64; 3] = [4, 1, 3];
const LAST: u64 = BEFORE + 8;
const EPOCHS: [u64; 5] = [0, 3, 5, 9, 10];

fn publishing(disk: &Sim) -> Options {
    options(disk).epoch_part_bytes(1)
}

fn opened(disk: &Sim) -> Pier {
    publishing(disk).open_pier(PIER, Mode::Append).unwrap()
}

/// A pier with the epochs 0i0 (1 to 3) and 0i3 (4 and 5). The last deed of 0i3 is unsynced.
fn two_epochs() -> (Sim, Pier) {
    two_epochs_with(Durability::Manual, Recovery::Valid)
}

fn two_epochs_with(durability: Durability, recovery: Recovery) -> (Sim, Pier) {
    let disk = Sim::new();
    let options = publishing(&disk).durability(durability).recovery(recovery);
    let pier = options.open_pier(PIER, Mode::Append).unwrap();
    append(&pier, 1..=3);
    pier.roll().unwrap();
    append(&pier, 4..=4);
    pier.sync().unwrap();
    append(&pier, 5..=5);
    (disk, pier)
}

fn transaction(job: &str, version: u64) -> Transaction {
    let id = Some(TransactionId { app: "etl".into(), query: None, version });
    Transaction { job: job.into(), id }
}

/// Stage the events after `before` in three parts, the last part first, as tasks may end in any order.
fn staged(pier: &Pier, job: &str, before: u64) -> Vec<Part> {
    let (mut parts, mut event) = (Vec::new(), before);
    for (partition, deeds) in PARTS.into_iter().enumerate() {
        let mut stage = pier.stage(job, partition as u32 * 2, 7, Some(event + 1)).unwrap();
        for _ in 0..deeds {
            event += 1;
            stage.push(event as u32, &jam(event)).unwrap();
        }
        parts.insert(0, stage.finish().unwrap());
    }
    // A task without rows may stage an empty file.
    parts.push(pier.stage(job, 9, 7, None).unwrap().finish().unwrap());
    parts
}

fn write(pier: &Pier, job: &str, version: u64, before: u64) -> Result<Committed> {
    let parts = staged(pier, job, before);
    pier.commit_staged(&transaction(job, version), &parts)
}

fn sizes(disk: &Sim) -> Vec<u64> {
    reading(disk).epochs().unwrap().iter().map(|epoch| epoch.deeds).collect()
}

#[test]
fn each_part_becomes_an_epoch_by_partition_order() {
    let (disk, pier) = two_epochs();
    put(&disk, epoch(3).join("vere.txt"), b"3.5");
    let mut reader = reading(&disk).follow(Some(1)).unwrap();
    let before = pier.stats().unwrap();
    let parts = staged(&pier, "one", BEFORE);
    let done = pier.commit_staged(&transaction("one", 4), &parts).unwrap();
    assert_eq!((done.records, done.first, done.repeated), (8, Some(6), false));
    let after = pier.stats().unwrap();
    assert_eq!((after.appends, after.records), (before.appends + 1, LAST));
    assert_eq!(after.bytes, before.bytes + parts.iter().map(|part| part.bytes).sum::<u64>());
    assert_eq!((numbers(&pier), sizes(&disk)), (EPOCHS.to_vec(), vec![3, 2, 4, 1, 3]));
    assert_eq!(all(&pier), (1..=LAST).collect::<Vec<_>>());
    for number in [5, 9, 10] {
        assert_eq!(read_file(&disk, &epoch(number).join("epoc.txt")), b"3");
        assert_eq!(read_file(&disk, &epoch(number).join("vere.txt")), b"3.5");
    }
    append(&pier, LAST + 1..=LAST + 1);
    assert_eq!(pier.roll().unwrap(), LAST + 1);
    for event in 1..=LAST + 1 {
        assert_eq!(reader.next(std::time::Duration::ZERO).unwrap().unwrap().event, Some(event));
    }
    assert_eq!((pier.staged().unwrap(), pier.transactions().unwrap()["etl"].version), (vec![], 4));
    let left = disk.list(&Path::new(LOG).join(".deedbook")).unwrap();
    assert!(!left.iter().any(|name| name == "transaction"), "{left:?}");
    pier.close().unwrap();
    assert!(options(&disk).verify_pier(PIER).unwrap().ok());
    assert_eq!(numbers(&opened(&disk)).len(), 6);
    assert!(!disk.is_dir(&Path::new(LOG).join(".deedbook/begun")));
}

/// The pier's record of transactions and the epochs' records count as one record.
#[test]
fn repeats_of_appended_and_published_transactions_are_recognised() {
    let (disk, pier) = two_epochs();
    drop(pier);
    let mut last = BEFORE;
    for version in 1..=6 {
        let large = version % 3 != 0;
        let options = if large { publishing(&disk) } else { options(&disk) };
        let pier = options.open_pier(PIER, Mode::Append).unwrap();
        let epochs = pier.epochs().unwrap().len();
        assert!(!write(&pier, "new", version, last).unwrap().repeated, "{version}");
        assert_eq!(pier.epochs().unwrap().len() - epochs, if large { 3 } else { 0 });
        last += 8;
        drop(pier);
        for again in [publishing(&disk), crate::pier::support::options(&disk)] {
            let pier = again.open_pier(PIER, Mode::Append).unwrap();
            for known in 1..=version {
                assert!(write(&pier, "again", known, last).unwrap().repeated, "{known} {version}");
            }
            assert_eq!((pier.last().unwrap(), pier.staged().unwrap()), (last, vec![]));
        }
    }
    assert_eq!(all(&reading(&disk)), (1..=last).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_an_epoch_is_appended() {
    // The average part is smaller than the option says.
    let (disk, pier) = two_epochs();
    drop(pier);
    let bytes: u64 = {
        let pier = reading(&disk);
        let parts = staged(&pier, "measure", BEFORE);
        assert!(pier.discard_staged("measure").unwrap());
        parts.iter().map(|part| part.bytes).sum()
    };
    for (least, epochs) in [(bytes / 3 + 1, 2), (bytes / 3, 5)] {
        let image = disk.kill();
        let pier = options(&image).epoch_part_bytes(least).open_pier(PIER, Mode::Append).unwrap();
        assert_eq!(write(&pier, "one", 1, BEFORE).unwrap().records, 8);
        assert_eq!(numbers(&pier).len(), epochs);
        assert_eq!(all(&pier), (1..=LAST).collect::<Vec<_>>());
    }
    // An epoch without events; and an epoch in slots, whose file has a header of its own.
    for layout in [Layout::Packed, Layout::Slots] {
        let disk = Sim::new();
        let options = publishing(&disk).layout(layout);
        let pier = options.open_pier(PIER, Mode::Append).unwrap();
        assert_eq!(write(&pier, "one", 1, 0).unwrap().first, Some(1));
        assert_eq!(numbers(&pier), [0]);
        let epochs = if layout == Layout::Packed { vec![0, 8, 12, 13] } else { vec![0] };
        assert_eq!(write(&pier, "two", 2, 8).unwrap().first, Some(9));
        assert_eq!((numbers(&pier), all(&pier)), (epochs, (1..=16).collect::<Vec<_>>()));
    }
}

#[test]
fn an_empty_commit_is_recognised_without_an_epoch() {
    let (disk, pier) = two_epochs();
    for repeated in [false, true] {
        let parts = [pier.stage("none", 1, 7, None).unwrap().finish().unwrap()];
        let done = pier.commit_staged(&transaction("none", 1), &parts).unwrap();
        assert_eq!((done.records, done.repeated), (0, repeated));
        assert_eq!((numbers(&pier), pier.last().unwrap()), (vec![0, 3], BEFORE));
    }
    append(&pier, BEFORE + 1..=BEFORE + 1);
    pier.close().unwrap();
    assert_eq!(all(&reading(&disk)), (1..=BEFORE + 1).collect::<Vec<_>>());
}

/// No event has the highest number: a commit that would reach the number is refused, as an append is.
#[test]
fn no_epoch_reaches_the_highest_number() {
    for (room, fits) in [(8, false), (9, true)] {
        let disk = epochs(&[(u64::MAX - room - 1, 1)]);
        let pier = opened(&disk);
        let last = u64::MAX - room;
        let done = write(&pier, "one", 1, last);
        let refused = done.err().map(|error| (error.kind(), error.durable()));
        let too_many = Some((ErrorKind::TooLarge, Some(deedbook::Durable::No)));
        assert_eq!(refused, too_many.filter(|_| !fits));
        assert_eq!(numbers(&pier).len(), if fits { 4 } else { 1 });
        assert_eq!(pier.last().unwrap(), if fits { last + 8 } else { last });
    }
}

/// A refused commit leaves the pier and the staged parts unchanged: the caller may commit the parts in another way.
#[test]
fn what_is_refused_stays_staged() {
    let (disk, pier) = two_epochs();
    let mut parts = staged(&pier, "one", BEFORE);
    let refused = |parts: &[Part], kind: ErrorKind| {
        let error = pier.commit_staged(&transaction("one", 1), parts).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (kind, Some(deedbook::Durable::No)), "{error}");
        assert_eq!((numbers(&pier), pier.last().unwrap()), (vec![0, 3], BEFORE));
    };
    let first = parts[0].first;
    parts[0].first = Some(99);
    refused(&parts, ErrorKind::Contiguity);
    parts[0].first = first;
    parts[0].sum ^= 1;
    refused(&parts, ErrorKind::Corrupt);
    parts[0].sum ^= 1;
    assert_eq!(pier.staged().unwrap()[0].files, 4);
    assert_eq!(pier.commit_staged(&transaction("one", 1), &parts).unwrap().records, 8);
    assert_eq!(all(&pier), (1..=LAST).collect::<Vec<_>>());
    drop(pier);
    assert_eq!(numbers(&reading(&disk)), EPOCHS);
}

/// Open the pier after a crash: a reader finds whole parts, a writer finds all of them or none, and a repeat adds the
/// missing events. Returns whether the commit was there.
fn judge(image: &Sim) -> bool {
    let seen = all(&reading(image));
    let pier = opened(image);
    let found = all(&pier);
    let last = found.last().copied().unwrap_or(0);
    assert_eq!(found, (1..=last).collect::<Vec<_>>());
    assert!(found.starts_with(&seen), "{seen:?} went again: {found:?}");
    let is_there = last == LAST;
    assert!(is_there || (4..=BEFORE).contains(&last), "last event {last}");
    if is_there {
        assert_eq!(numbers(&pier), EPOCHS);
    }
    assert_eq!(pier.staged().unwrap().iter().filter(|job| job.is_committing).count(), 0);
    let again = write(&pier, "again", 1, last).unwrap();
    assert_eq!(again.repeated, is_there);
    let last = if is_there { LAST } else { last + 8 };
    append(&pier, last + 1..=last + 1);
    pier.close().unwrap();
    assert_eq!(all(&reading(image)), (1..=last + 1).collect::<Vec<_>>());
    assert!(options(image).verify_pier(PIER).unwrap().ok());
    is_there
}

#[test]
fn a_crash_during_publishing_is_all_or_nothing() {
    let (disk, pier) = two_epochs();
    let parts = staged(&pier, "one", BEFORE);
    disk.record();
    pier.commit_staged(&transaction("one", 1), &parts).unwrap();
    let found = RefCell::new(BTreeSet::new());
    let counts = crash_each(&disk, STATES, |image| {
        found.borrow_mut().insert(judge(image));
    });
    assert!(counts.moments > 130 && counts.states > 1000 && counts.second > 1000, "{counts:?}");
    assert_eq!(found.into_inner(), BTreeSet::from([false, true]));
    assert!(images(&disk, STATES).iter().all(judge));
}

/// The durability of a handle is for appends: the epochs of a commit are durable with any.
#[test]
fn a_published_commit_is_durable_with_any_options() {
    use Recovery::{Acknowledged, Spec, Valid};
    for recovery in [Valid, Acknowledged, Spec] {
        for durability in [Durability::None, Durability::Manual, Durability::Always] {
            let (disk, pier) = two_epochs_with(durability, recovery);
            write(&pier, "one", 1, BEFORE).unwrap();
            assert!(images(&disk, STATES).iter().all(judge), "{durability:?} {recovery:?}");
        }
    }
}

#[test]
fn a_failed_call_during_publishing_loses_nothing() {
    let (mut failed, mut went_on, mut closed) = (0, 0, 0);
    for call in 1.. {
        let (disk, pier) = two_epochs();
        let parts = staged(&pier, "one", BEFORE);
        disk.inject(Fault::once(call, What::Error(Io::Other)));
        let done = pier.commit_staged(&transaction("one", 1), &parts);
        let struck = disk.fired() > 0;
        disk.heal();
        let is_refused =
            done.as_ref().is_err_and(|error| error.durable() == Some(deedbook::Durable::No));
        failed += u64::from(done.is_err());
        match pier.is_closed() {
            true => closed += 1,
            false if is_refused => {
                // The staged parts are still there, and a repeat commits them unless a sync failed.
                let again = pier.commit_staged(&transaction("one", 1), &parts);
                went_on += u64::from(again.is_ok_and(|done| done.records == 8));
            }
            false => {}
        }
        // A handle must not append before epochs that exist or will exist.
        assert!(pier.is_closed() || is_refused || done.is_ok(), "call {call}: {done:?}");
        drop(pier);
        let (is_there, is_done) = (judge(&disk), done.is_ok());
        assert!(is_there || !is_done, "call {call}: {done:?}");
        if !struck {
            assert!(is_done);
            break;
        }
    }
    assert!(failed > 60 && went_on > 40 && closed > 5, "{failed} {went_on} {closed}");
}

/// Another program appended to the last epoch, as a book, before the commit finished. The numbers of its events are
/// those of the new epochs, so the pier is refused until the commit is abandoned.
#[test]
fn a_commit_that_cannot_end_is_given_up() {
    let (disk, pier) = two_epochs();
    let parts = staged(&pier, "one", BEFORE);
    disk.record();
    pier.commit_staged(&transaction("one", 1), &parts).unwrap();
    let intent = Path::new(LOG).join(".deedbook/transaction");
    let begun = |moment: &Sim| moment.open(&intent, deedbook::storage::Access::Read).is_ok();
    let image = disk.recorded().into_iter().find(begun).unwrap().kill();
    let book = options(&image).open(epoch(3), Mode::Append).unwrap();
    assert_eq!(book.append(6, &jam(6)).unwrap(), 6);
    drop(book);
    let error = publishing(&image).open_pier(PIER, Mode::Append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contiguity);
    let message = "a commit began after event 5, and epoch 0i3 ends with event 6 now";
    assert!(
        error.to_string().contains(message) && error.to_string().contains("--abandon"),
        "{error}"
    );
    let given_up = reading(&image).abandon_transaction().unwrap();
    assert_eq!(given_up, Some(transaction("one", 1)));
    let pier = opened(&image);
    assert_eq!((numbers(&pier), all(&pier)), (vec![0, 3], (1..=6).collect::<Vec<_>>()));
    assert!(!write(&pier, "again", 1, 6).unwrap().repeated);
}
