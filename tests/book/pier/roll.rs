//! Rolling: the contents of the new epoch, refusals, and the single writer.

use std::sync::Barrier;

use crate::pier::support::*;

#[test]
fn a_new_epoch_inherits_metadata_and_texts() {
    let disk = epochs(&[(0, 2)]);
    put(&disk, epoch(0).join("vere.txt"), b"3.5");
    put(&disk, epoch(0).join("epoc.txt"), b"3");
    let pier = appending(&disk);
    let meta = Meta { who: Some(7), version: Some(3), life: Some(1), fake: Some(true) };
    pier.save_meta(&meta).unwrap();
    let file = epoch(0).join("meta.bin");
    // The roll also copies the reserved bytes.
    let mut bytes = read_file(&disk, &file);
    bytes[100] = 9;
    put(&disk, &file, &bytes);
    assert_eq!(pier.roll().unwrap(), 2);
    assert_eq!(pier.meta().unwrap(), meta);
    assert_eq!(read_file(&disk, &epoch(2).join("meta.bin")), bytes);
    assert_eq!(read_file(&disk, &epoch(2).join("vere.txt")), b"3.5");
    assert_eq!(read_file(&disk, &epoch(2).join("epoc.txt")), b"3");
    drop(pier);
    let book = options(&disk).open(epoch(2), Mode::Append).unwrap();
    assert_eq!((book.epoch().unwrap(), book.append(0, b"").unwrap()), (2, 3));
}

/// The header has the number: a directory may be copied, and another program reads only the header.
#[test]
fn a_renamed_new_epoch_keeps_its_number() {
    for layout in [Layout::Packed, Layout::Slots] {
        let disk = Sim::new();
        let pier = options(&disk).layout(layout).open_pier(PIER, Mode::Append).unwrap();
        append(&pier, 1..=700);
        assert_eq!(pier.roll().unwrap(), 700);
        pier.close().unwrap();
        disk.rename(&epoch(700), Path::new("/renamed")).unwrap();
        let book = options(&disk).open("/renamed", Mode::Append).unwrap();
        assert_eq!((book.epoch().unwrap(), book.append(0, b"").unwrap()), (700, 701));
    }
}

#[test]
fn a_new_epoch_inherits_the_layout() {
    use Layout::{Packed, Slots};
    let disk = Sim::new();
    let named = |layout| options(&disk).layout(layout);
    let mut made = Vec::new();
    for (pier, layout) in [
        (named(Slots), Slots),
        (options(&disk), Slots),
        (named(Packed), Packed),
        (options(&disk), Packed),
        (named(Slots), Slots),
    ] {
        // Existing epochs keep their layout: only a roll and a new pier use the caller's layout.
        let pier = pier.open_pier(PIER, Mode::Append).unwrap();
        let begun = pier.last().unwrap();
        if !made.is_empty() {
            assert_eq!(layouts(&pier), made);
            append(&pier, begun + 1..=begun + 1);
            assert_eq!(pier.roll().unwrap(), begun + 1);
        }
        made.push(layout);
        let last = pier.last().unwrap();
        append(&pier, last + 1..=last + 3);
        assert_eq!((layouts(&pier), pier.batch().is_empty()), (made.clone(), true));
        pier.close().unwrap();
    }
    let pier = reading(&disk);
    assert_eq!((layouts(&pier), numbers(&pier)), (made, vec![0, 4, 8, 12, 16]));
    assert_eq!(all(&pier), (1..=19).collect::<Vec<_>>());
    let mut back = pier.cursor_back(..).unwrap();
    for event in (1..=19).rev() {
        assert_eq!(back.next().unwrap().unwrap().jam, jam(event));
        assert_eq!(pier.read(event).unwrap().jam, jam(event));
    }
    assert!(back.next().unwrap().is_none());
    let report = options(&disk).verify_pier(PIER).unwrap();
    assert!(report.ok() && report.epochs.len() == 5);
}

#[test]
fn a_padded_last_epoch_is_read_only() {
    let padded = std::fs::read("tests/data/book/specC-epoch100/book.log").unwrap();
    let disk = epochs(&[(90, 10)]);
    disk.create_dir(&epoch(100)).unwrap();
    put(&disk, epoch(100).join("book.log"), &padded);
    let pier = reading(&disk);
    assert_eq!(layouts(&pier), [Layout::Packed, Layout::Padded]);
    assert_eq!(pier.bounds().unwrap(), Some(91..=103));
    assert_eq!(pier.iter(95..).unwrap().filter(Result::is_ok).count(), 9);
    assert!(options(&disk).verify_pier(PIER).unwrap().ok());
    for layout in [None, Some(Layout::Packed), Some(Layout::Padded)] {
        let writing = options(&disk).layout(layout);
        let refused = refused(writing.open_pier(PIER, Mode::Append), ErrorKind::Unsupported);
        assert!(refused.message().contains("padded"), "{refused}");
        assert_eq!(refused.path(), Some(&*epoch(100).join("book.log")));
    }
    assert_eq!(read_file(&disk, &epoch(100).join("book.log")), padded);
    // After a conversion, the copy is the last epoch of the pier and takes appends.
    options(&disk).convert(epoch(100), "/copy", Layout::Slots, |_, _| Ok(())).unwrap();
    for name in ["book.log", ".deedbook"] {
        assert!(disk.list(Path::new("/copy")).unwrap().iter().any(|found| found == name));
    }
    put(&disk, epoch(100).join("book.log"), &read_file(&disk, Path::new("/copy/book.log")));
    let pier = appending(&disk);
    assert_eq!(pier.append(7, b"more").unwrap(), 104);
    assert_eq!(pier.roll().unwrap(), 104);
    let all = [Layout::Packed, Layout::Slots, Layout::Slots];
    assert_eq!((layouts(&pier), numbers(&pier)), (all.to_vec(), vec![90, 100, 104]));
}

/// With a lock for each epoch, two writers could begin epochs at once.
#[test]
fn one_pier_has_one_writer_whatever_its_epoch() {
    let disk = three_epochs();
    let pier = appending(&disk);
    pier.roll().unwrap();
    refused(options(&disk).open_pier(PIER, Mode::Append), ErrorKind::Locked);
    refused(options(&disk).open(epoch(9), Mode::Append), ErrorKind::Locked);
    // The files next to the epochs may always be deleted, even the lock.
    disk.remove(&Path::new(LOG).join(".deedbook/lock")).unwrap();
    let second = options(&disk).open_pier(PIER, Mode::Append).unwrap_err();
    assert_eq!((second.kind(), second.path()), (ErrorKind::Locked, Some(Path::new(LOG))));
    pier.close().unwrap();
    append(&appending(&disk), 10..=10);
}

#[test]
fn batches_obey_the_last_epochs_rules() {
    let disk = three_epochs();
    let pier = manual(&disk).open_pier(PIER, Mode::Append).unwrap();
    let mut batch = Batch::<BookFormat>::new(1000);
    (10..=12).for_each(|event| batch.push(event as u32, &jam(event)).unwrap());
    refused(pier.append_batch(&batch, Some(11), None), ErrorKind::Contiguity);
    refused(pier.append_batch(&batch, Some(10), Some(4)), ErrorKind::Contiguity);
    assert_eq!(pier.append_batch(&batch, Some(10), Some(5)).unwrap(), 10);
    // A roll syncs all appended events, whatever the durability.
    assert_eq!(pier.durable_last().unwrap(), Some(9));
    assert_eq!(pier.roll().unwrap(), 12);
    assert_eq!(pier.durable_last().unwrap(), Some(12));
    assert_eq!(all(&pier), (1..=12).collect::<Vec<_>>());
}

#[test]
fn concurrent_appends_and_rolls_keep_each_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zod");
    let options = Options::new().durability(Durability::None);
    let pier = options.open_pier(&path, Mode::Append).unwrap();
    let begin = Arc::new(Barrier::new(5));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (pier, begin) = (pier.clone(), begin.clone());
            std::thread::spawn(move || {
                begin.wait();
                (0..500).map(|_| pier.append(1, b"deed").unwrap()).collect::<Vec<u64>>()
            })
        })
        .collect();
    begin.wait();
    let mut rolled = 0;
    while rolled < 20 {
        match pier.roll() {
            Ok(_) => rolled += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Contiguity),
        }
        if rolled > 0 && threads.iter().all(|thread| thread.is_finished()) {
            break;
        }
    }
    let mut events: Vec<u64> =
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    events.sort_unstable();
    assert_eq!(events, (1..=2000).collect::<Vec<_>>());
    pier.close().unwrap();
    let pier = Pier::open(&path).unwrap();
    assert_eq!(pier.epochs().unwrap().len(), rolled + 1);
    assert_eq!(pier.len().unwrap(), 2000);
}
