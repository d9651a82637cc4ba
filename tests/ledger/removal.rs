//! Removal takes the named files, and no others.

use deedbook::ledger::Removable;

use crate::prelude::*;

#[test]
fn each_file_is_removed_alone_even_twice() {
    let (memory, options) = memory();
    for index in 0..4 {
        put(&memory, index, &file_of(&events(0..2, 0)));
    }
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let removable = ledger.fetch(None, None).unwrap().unwrap().removable.unwrap();
    ledger.remove(&removable[1..2]).unwrap();
    assert_eq!(names(&memory, DIR), ["0-events", "2-events", "3-events"]);
    ledger.remove(&removable[..3]).unwrap();
    ledger.remove(&removable[..3]).unwrap();
    assert_eq!(names(&memory, DIR), ["3-events"]);
    ledger.remove(&[]).unwrap();
    assert!(ledger.has_data().unwrap());
}

/// A removable with only a path would have removed the new file of the same name.
// Promise: ledger-several.
#[test]
fn new_file_with_a_removed_name_stays() {
    let (memory, options) = memory();
    put(&memory, 0, &file_of(&events(0..2, 0)));
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let removable = ledger.fetch(None, None).unwrap().unwrap().removable.unwrap();
    memory.remove(&Path::new(DIR).join("0-events")).unwrap();
    put(&memory, 0, &file_of(&events(7..8, 0)));
    ledger.remove(&removable).unwrap();
    assert_eq!(fetch_all(&ledger), [(0, events(7..8, 0))]);
}

// Promise: ledger-several.
#[test]
fn indexes_never_repeat_after_all_files_were_removed() {
    let (memory, options) = memory();
    let mut seen = Vec::new();
    for life in 0..5u64 {
        // Two handles at once, each with its own next index.
        let (one, two) =
            (options.open(small(DIR, 1000)).unwrap(), options.open(small(DIR, 1000)).unwrap());
        for round in 0..3 {
            one.append(&event(life, 0)).unwrap();
            two.append(&event(round, 0)).unwrap();
            for ledger in [&two, &one] {
                let fetched = ledger.fetch(None, None).unwrap().unwrap();
                let removable = fetched.removable.unwrap();
                seen.extend(removable.iter().map(|removable| removable.index()));
                ledger.remove(&removable).unwrap();
            }
            assert!(names(&memory, DIR).is_empty());
        }
        if life == 3 {
            one.append(&event(life, 0)).unwrap();
            one.reset().unwrap();
            seen.push(30 - 6);
        }
    }
    let expected: Vec<_> = (0..31).collect();
    seen.sort_unstable();
    assert_eq!(seen, expected);
}

#[test]
fn indexes_continue_without_an_intact_counter() {
    for damaged in [None, Some(&b"next 99\ncrc 00000000\n"[..])] {
        let (memory, options) = memory();
        put(&memory, 4, &file_of(&events(0..2, 0)));
        let ledger = options.open(small(DIR, 1000)).unwrap();
        ledger.append(&event(1, 0)).unwrap();
        fetch_all(&ledger);
        let counter = Path::new(DIR).join(".deedbook/next-events");
        memory.remove(&counter).unwrap();
        if let Some(bytes) = damaged {
            memory.create_new(&counter, 0o600).unwrap().write_at(bytes, 0).unwrap();
        }
        let again = options.open(small(DIR, 1000)).unwrap();
        again.append(&event(2, 0)).unwrap();
        assert_eq!(fetch_all(&again).last().unwrap().0, 6);
    }
}

#[test]
fn reset_keeps_the_counter_and_others_files() {
    let (memory, options) = memory();
    for index in 0..3 {
        put(&memory, index, &file_of(&events(0..2, 0)));
    }
    let (ledger, other) =
        (options.open(small(DIR, 1000)).unwrap(), options.open(small(DIR, 1000)).unwrap());
    ledger.append(&event(1, 0)).unwrap();
    other.append(&event(2, 0)).unwrap();
    ledger.reset().unwrap();
    assert_eq!(names(&memory, DIR), ["4-events"]);
    other.append(&event(3, 0)).unwrap();
    assert_eq!(fetch_all(&other), [(4, events(2..4, 0))]);
    ledger.append(&event(5, 0)).unwrap();
    assert_eq!(fetch_all(&ledger), [(5, events(5..6, 0))]);
}

#[test]
fn files_without_a_record_are_in_nobodys_way() {
    let (memory, options) = memory();
    put(&memory, 0, b"");
    put(&memory, 1, &[0; 700]);
    put(&memory, 2, &file_of(&events(0..1, 0))[..20]);
    put(&memory, 3, &file_of(&events(1..2, 0)));
    let ledger = options.open(small(DIR, 1000)).unwrap();
    assert!(ledger.has_data().unwrap());
    assert_eq!(fetch_all(&ledger), [(3, events(1..2, 0))]);
    assert_eq!(names(&memory, DIR), ["3-events"], "no empty batch, and no file for ever");
    assert_eq!(names(&memory, "/spool/.deedbook/quarantine"), ["2-events"]);
    assert_eq!(ledger.stats().quarantined_files, 1);
    send(&ledger);
    assert!(ledger.fetch(None, None).unwrap().is_none());
    assert!(!ledger.has_data().unwrap());
}

// Promise: ledger-damage.
#[test]
fn what_went_to_the_quarantine_can_be_salvaged() {
    let (memory, options) = memory();
    let mut bytes = file_of(&events(0..20, 50));
    let second = file_of(&events(0..1, 50)).len();
    bytes[second + 12] ^= 1;
    put(&memory, 0, &bytes);
    let ledger = options.open(small(DIR, 100_000)).unwrap();
    // The same name again: neither file may replace the other in the quarantine.
    for round in 0..2 {
        let fetched = ledger.fetch(None, None).unwrap().unwrap();
        let removable = fetched.removable.unwrap();
        assert!(removable[0].is_quarantined());
        assert_eq!(payloads(&fetched.data.unwrap()[0]), events(0..1, 50));
        ledger.remove(&removable).unwrap();
        if round == 0 {
            put(&memory, 0, &bytes);
        }
    }
    let dir = "/spool/.deedbook/quarantine";
    assert_eq!(names(&memory, dir), ["0-events", "0-events.2"]);
    let copied = options.salvage(dir, BASE, "/rescued").unwrap();
    assert_eq!(copied.len(), 1);
    let (_, report) = &copied[0];
    assert_eq!((report.records, report.uncertain, report.damages.len()), (19, 0, 1));
    assert_eq!(report.runs.len(), 2);
    let copy = options.open_file(report.copy.as_ref().unwrap()).unwrap();
    let rescued: Vec<_> = copy.iter().unwrap().map(|record| record.unwrap().payload).collect();
    assert_eq!(rescued, [events(0..1, 50), events(2..20, 50)].concat());
    let again = options.salvage(dir, BASE, "/rescued");
    refused(again, ErrorKind::AlreadyExists);
}

#[test]
fn files_are_listed_without_a_store() {
    let (memory, options) = memory();
    assert_eq!(options.files(DIR, BASE).unwrap(), []);
    put(&memory, 3, &file_of(&events(0..2, 0)));
    let ledger = options.open(small(DIR, 1000)).unwrap();
    ledger.append(&event(5, 0)).unwrap();
    let before = listing(&memory, Path::new(DIR));
    let found = on(memory.clone()).files(DIR, BASE).unwrap();
    let shown: Vec<_> = found.iter().map(|file| (file.index, file.bytes, file.active)).collect();
    assert_eq!(shown, [(3, 64, false), (4, 32, true)]);
    // Readers can read a file during writing.
    let active = on(memory.clone()).open_file(&found[1].path).unwrap();
    assert_eq!(active.iter().unwrap().next().unwrap().unwrap().payload, event(5, 0));
    assert_eq!(listing(&memory, Path::new(DIR)), before);
}

/// A sender may note its removables before a crash.
#[test]
fn rebuilt_removable_removes_the_same_file() {
    let (memory, options) = memory();
    let mut damaged = file_of(&events(0..3, 0));
    damaged[32 + 20] ^= 1;
    put(&memory, 0, &damaged);
    put(&memory, 1, &file_of(&events(3..5, 0)));
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let fetched = ledger.fetch(None, None).unwrap().unwrap().removable.unwrap();
    let quarantined: Vec<_> = fetched.iter().map(Removable::is_quarantined).collect();
    assert_eq!(quarantined, [true, false]);
    let again = |item: &Removable| Removable::new(item.index(), item.file(), item.is_quarantined());
    let again: Vec<_> = fetched.iter().map(again).collect();
    assert_eq!(again, fetched);
    ledger.remove(&again).unwrap();
    assert_eq!(names(&memory, DIR), Vec::<String>::new());
    assert_eq!(names(&memory, "/spool/.deedbook/quarantine"), ["0-events"]);
}
