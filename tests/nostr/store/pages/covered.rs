//! Events before a checkpoint that the manifest does not know: no opening cuts such events, and no flag of the log
//! hides another event.

use crate::store::prelude::*;

fn at(number: u32) -> usize {
    (1 + number as usize) * PAGE
}

fn flip(disk: &Sim, number: u32) {
    flip_page(disk, FIRST, 1 + number as usize);
}

fn check(found: &Events, numbers: Range<u32>, gone: &[u32], flagged: &[u32]) {
    for number in numbers {
        let flags = found.get(&short(number).id).map(|(_, flags)| *flags);
        let expected = match flagged.contains(&number) {
            true => Flags::DELETED,
            false => Flags::default(),
        };
        let expected = Some(expected).filter(|_| !gone.contains(&number));
        assert_eq!(flags, expected, "note {number}, gone {gone:?}");
    }
}

/// Without the manifest, opening took its size of the segment from the copy. After a flipped bit before the last
/// checkpoint, opening cut all later events, even acknowledged ones. The log's events moved, and the log's flag named a
/// byte after the end, so opening and repair never ended.
#[test]
fn opening_without_manifest_cuts_no_damage_before_checkpoint() {
    let (disk, store) = fresh();
    append(&store, 0..20);
    store.checkpoint().unwrap();
    append(&store, 20..23);
    delete(&store, &short(22));
    store.sync().unwrap();
    let disk = disk.kill();
    remove(&disk, MANIFEST);
    // The second-last note is the log's first event, so the log can restore it. If every note of the log is damaged,
    // nobody knows the old places of the notes.
    let cases: [(&[u32], &[u32], &[u32]); 5] = [
        (&[4], &[4], &[22]),
        (&[4, 19], &[4, 19], &[22]),
        (&[4, 19, 20], &[4, 19], &[22]),
        (&[4, 20], &[4], &[22]),
        (&[19, 20, 21, 22], &[19], &[]),
    ];
    for (damaged, gone, flagged) in cases {
        let disk = disk.kill();
        damaged.iter().for_each(|number| flip(&disk, *number));
        let store = writer(&disk);
        check(&events(&store), 0..23, gone, flagged);
        assert!(store.verify(Check::Id).unwrap().faults > 0, "{damaged:?}: it is still there");
        store.close().unwrap();
        assert!(mended(&disk, ACCEPT).unwrap().mended);
        let store = writer(&disk);
        // Writing a segment again drops flagged events.
        check(&events(&store), 0..23, &[gone, flagged].concat(), &[]);
        assert!(store.verify(Check::Id).unwrap().ok());
    }
    // The segment is shorter than the log's flags require, and no manifest reports the loss: the log has the rest.
    changed(&disk, FIRST, |bytes| bytes.truncate(at(10)));
    refused(on(&disk).open(DIR, Mode::Append), ErrorKind::LostRecords, "");
    assert!(mended(&disk, ACCEPT).unwrap().mended);
    check(&events(&writer(&disk)), 0..23, &[], &[]);
}

/// A process crashed between a checkpoint and its manifest. Opening cut a damaged event between the two sizes with all
/// later events, and reported a whole store. The log has the events.
#[test]
fn damage_between_manifest_and_later_checkpoint_is_restored() {
    for checksums in [true, false] {
        let disk = Sim::new();
        let on = on(&disk).checksums(checksums);
        let store = open(&on);
        append(&store, 0..5);
        store.checkpoint().unwrap();
        let (older, header) = (read(&disk, MANIFEST), read(&disk, FIRST)[..PAGE].to_vec());
        append(&store, 5..7);
        // Without a checksum, only its id could distinguish the event from a torn one.
        let mut stranger = short(7);
        stranger.id.0[0] ^= 1;
        let unchecked = ImportOptions::new().check(Check::None);
        import(&store, &stranger.to_json(), &unchecked);
        append(&store, 8..20);
        store.checkpoint().unwrap();
        let disk = disk.kill();
        write(&disk, MANIFEST, &older);
        changed(&disk, FIRST, |bytes| bytes[..PAGE].copy_from_slice(&header));
        let cases: [&[u32]; 5] = [&[], &[8], &[9], &[9, 10], &[18, 19]];
        for damaged in cases {
            let disk = disk.kill();
            damaged.iter().for_each(|number| flip(&disk, *number));
            let store = open(&on_disk(&on, &disk));
            let saved = store.opening().saved.len();
            assert_eq!(saved, usize::from(!damaged.is_empty()), "{:?}", store.opening());
            let found = events(&store);
            check(&found, 0..7, &[], &[]);
            check(&found, 8..20, &[], &[]);
            assert!(found.contains_key(&stranger.id));
            assert_eq!(store.verify(Check::Id).unwrap().faults, 1, "{damaged:?}");
            append(&store, 30..32);
            assert!(events(&store).contains_key(&short(31).id));
        }
    }
}

/// A repair of lost pages was killed after it had appended the log's events again. The next opening looked for the
/// events at the end of the manifest's checkpoint, and set their old flags on other events.
#[test]
fn killed_repair_of_lost_pages_hides_no_event() {
    let (disk, store) = fresh();
    append(&store, 0..2);
    store.checkpoint().unwrap();
    let older = read(&disk, MANIFEST);
    append(&store, 2..4);
    store.checkpoint().unwrap();
    append(&store, 10..16);
    delete(&store, &short(10));
    store.sync().unwrap();
    let disk = disk.kill();
    write(&disk, MANIFEST, &older);
    changed(&disk, FIRST, |bytes| {
        let mut logged = bytes[at(4)..at(10)].to_vec();
        logged.iter_mut().skip(4).step_by(PAGE).for_each(|flags| *flags = 0);
        bytes.truncate(at(1));
        bytes.resize(at(2), 0);
        bytes.extend(logged);
    });
    for was_tried in [true, false] {
        let disk = disk.kill();
        if was_tried {
            writer(&disk).close().unwrap();
        }
        // The log has all events after the first checkpoint.
        assert!(mended(&disk, ACCEPT).unwrap().mended);
        let found = events(&writer(&disk));
        check(&found, 0..4, &[1], &[]);
        check(&found, 10..16, &[10], &[]);
    }
}

/// A repair cut the log, the only proof that an event with a wrong signature was acknowledged. The next opening cut the
/// event and all later events, without a word from the repair.
#[test]
fn repair_that_cut_the_log_needs_no_signature() {
    let disk = Sim::new();
    let on = |disk: &Sim| -> Options { on(disk).checksums(false) };
    let store = open(&on(&disk));
    append(&store, 0..3);
    store.checkpoint().unwrap();
    append(&store, 3..9);
    store.sync().unwrap();
    let disk = disk.kill();
    let damages: [fn(&Sim); 2] = [remove_log, |disk| {
        let used = last_byte(&read(disk, &newest_log(disk)));
        changed(disk, &newest_log(disk), |bytes| bytes[used - 100] ^= 1);
    }];
    for (number, damage) in damages.into_iter().enumerate() {
        for by_repair in [true, false] {
            let disk = disk.kill();
            damage(&disk);
            let on = on(&disk);
            let store = match by_repair {
                true => {
                    let report = on.repair(Path::new(DIR), ACCEPT).unwrap();
                    assert!(report.mended && report.cut_records == 0, "{report:?}");
                    open(&on)
                }
                false => on.recovery(Recovery::Spec).open(DIR, Mode::Append).unwrap(),
            };
            assert_eq!(store.opening().cut_events, 0, "{number}, {by_repair}");
            check(&events(&store), 0..9, &[], &[]);
        }
    }
}
