//! Discovery of the ledgers at a path.

use deedbook::ledger::{LedgerFile, Removable, bases, is_ledger_file};

use crate::prelude::*;

fn put(memory: &Memory, name: &str, bytes: &[u8]) {
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(memory, &Path::new(DIR).join(name), bytes);
}

fn found(files: &[(&str, &[u8])]) -> Vec<String> {
    let (memory, options) = memory();
    memory.create_dir(Path::new(DIR)).unwrap();
    for (name, bytes) in files {
        put(&memory, name, bytes);
    }
    let found = bases(DIR, &options).unwrap();
    let single =
        files.iter().any(|(name, _)| is_ledger_file(Path::new(DIR).join(name), &options).unwrap());
    assert_eq!(single, !found.is_empty(), "{files:?}");
    found
}

#[test]
fn records_prove_a_ledger_and_names_do_not() {
    let whole = file_of(&events(0..3, 40));
    assert_eq!(found(&[("0-events", &whole)]), ["events"]);
    assert_eq!(found(&[("4-a-b", &whole), ("0-events", &whole)]), ["a-b", "events"]);
    assert_eq!(found(&[("0-events", b""), ("1-events", &whole)]), ["events"]);
    let nothing: [&[(&str, &[u8])]; 7] = [
        &[],
        &[("0-events", b"")],
        &[("0-events", &[0; 4096])],
        &[("2024-report.txt", &b"up and down\n".repeat(99))],
        &[("07-events", &whole), ("-events", &whole), ("4294967296-events", &whole)],
        &[("events", &whole), ("0-", &whole)],
        &[("0-events", &whole[..11])],
    ];
    for files in nothing {
        assert_eq!(found(files), [""; 0], "{files:?}");
    }
}

/// Damage in the first record must not hide the ledger.
#[test]
fn a_record_after_damage_proves_it_as_well() {
    let whole = file_of(&events(0..3, 40));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert_eq!(found(&[("0-events", &damaged)]), ["events"], "byte {at}");
    }
}

#[test]
fn counter_proves_a_ledger_without_files() {
    let (memory, options) = memory();
    let ledger = options.clone().open(small(DIR, 1000)).unwrap();
    ledger.append(b"1").unwrap();
    assert_eq!(bases(DIR, &options).unwrap(), ["events"]);
    send(&ledger);
    let found = options.contents(DIR, None).unwrap();
    assert_eq!((&*found.base, found.files.len()), ("events", 0));
    assert_eq!(found.next_index().unwrap(), Some(1));
    let counter = Path::new(DIR).join(".deedbook/next-events");
    memory.remove(&counter).unwrap();
    put(&memory, ".deedbook/next-events", b"next 1\ncrc 00000000\n");
    assert!(bases(DIR, &options).unwrap().is_empty());
    assert_eq!(options.contents(DIR, None).unwrap_err().kind(), ErrorKind::Missing);
}

/// A kill while the counter was stored left a temporary file. Discovery reported a second ledger `events.tmp`, and
/// every reader asked for the base.
#[test]
fn temporary_counter_file_is_no_second_ledger() {
    for k in 1.. {
        let disk = Sim::new();
        disk.inject(Fault::once(k, What::Crash));
        let send = || -> Result<()> {
            let ledger = on(disk.clone()).open(small(DIR, 1000))?;
            ledger.append(b"1")?;
            let fetched = ledger.fetch(None, None)?.unwrap();
            ledger.remove(&fetched.removable.unwrap())
        };
        let sent = send();
        let found = bases(DIR, &on(disk.kill())).unwrap();
        assert!(found.is_empty() || found == ["events"], "killed at call {k}: {found:?}");
        if sent.is_ok() {
            assert!(k > 10, "{k} calls");
            break;
        }
    }
}

/// Storing the counter of `events` removed the counter of `events.tmp`, whose indexes began again at 0.
#[test]
fn base_ending_in_tmp_keeps_its_counter() {
    let (_, options) = memory();
    let send = |base: &str| {
        let ledger = options.clone().open(LedgerConfig::lines(DIR, base)).unwrap();
        ledger.append(b"1").unwrap();
        let sent = ledger.fetch(None, None).unwrap().unwrap().removable.unwrap();
        ledger.remove(&sent).unwrap();
        sent.iter().map(Removable::index).collect::<Vec<_>>()
    };
    assert_eq!((send("events.tmp"), send("events")), (vec![0], vec![0]));
    assert_eq!((send("events.tmp"), send("events")), (vec![1], vec![1]));
    assert_eq!(bases(DIR, &options).unwrap(), ["events", "events.tmp"]);
}

/// A reader that tracks files by index skipped all files of a ledger whose numbers began again.
#[test]
fn next_index_follows_files_and_counter() {
    let (memory, options) = memory();
    memory.create_dir(Path::new(DIR)).unwrap();
    let next = |path: &str| options.contents(path, Some("events")).unwrap().next_index().unwrap();
    assert_eq!(next(DIR), None);
    put(&memory, "3-events", &file_of(&events(0..3, 40)));
    assert_eq!((next(DIR), next("/spool/3-events")), (Some(4), Some(4)));
    let ledger = options.clone().open(small(DIR, 1000)).unwrap();
    ledger.append(b"1").unwrap();
    assert_eq!(next(DIR), Some(5), "also of a file that is being written");
    while let Some(fetched) = ledger.fetch(None, None).unwrap() {
        ledger.remove(&fetched.removable.unwrap()).unwrap();
    }
    assert_eq!(next(DIR), Some(5));
    put(&memory, "0-events", &file_of(&events(0..3, 40)));
    assert_eq!(next("/spool/0-events"), Some(5), "of the directory, not of the file");
}

#[test]
fn a_path_names_a_directory_or_one_file() {
    let (memory, options) = memory();
    for index in [10, 9, 2] {
        put(&memory, &format!("{index}-events"), &file_of(&events(0..3, 40)));
    }
    put(&memory, "0-clicks", &record(b"1"));
    put(&memory, "notes", b"");
    let kind = |path: &str, base| options.contents(path, base).map_err(|e| e.kind());
    let indexes = |path: &str, base| -> Vec<u32> {
        kind(path, base).unwrap().files.iter().map(|file| file.index).collect()
    };
    assert_eq!(indexes(DIR, Some("events")), [2, 9, 10]);
    assert!(indexes(DIR, Some("nothing")).is_empty());
    assert_eq!(indexes("/spool/9-events", None), [9]);
    assert_eq!(indexes("/spool/9-events", Some("events")), [9]);
    let several = options.contents(DIR, None).unwrap_err();
    assert_eq!(several.kind(), ErrorKind::InvalidArgument);
    assert!(several.to_string().contains("clicks, events: say which"), "{several}");
    let refused = |path: &str, base| kind(path, base).unwrap_err();
    assert_eq!(refused("/spool/9-events", Some("clicks")), ErrorKind::InvalidArgument);
    assert_eq!(refused("/spool/notes", None), ErrorKind::NotALog);
    assert_eq!(refused("/spool/3-events", None), ErrorKind::Missing);
    assert_eq!(refused("/none", None), ErrorKind::Missing);
    // Checked and copied like a directory.
    let one = options.contents("/spool/9-events", None).unwrap();
    let reports = one.verify(&options, |_, _| Ok(())).unwrap();
    assert_eq!((reports.len(), reports[0].1.records), (1, 3));
    let copied = one.salvage("/copy", &options, |_, _| Ok(())).unwrap();
    assert_eq!((copied.len(), copied[0].1.records), (1, 3));
}

#[test]
fn parts_of_a_file_are_its_records() {
    let (memory, options) = memory();
    let payloads = events(0..5000, 400);
    put(&memory, "0-events", &file_of(&payloads));
    let splits = options.open_file("/spool/0-events").unwrap().splits(100_000).unwrap();
    assert!((4..20).contains(&splits.len()), "{}", splits.len());
    let read = |split| LedgerFile::read_split(split, &options, OnCorrupt::Raise, true);
    let mut found = Vec::new();
    for split in &splits {
        let mut cursor = read(split).unwrap();
        while let Some(record) = cursor.next().unwrap() {
            found.push(record.payload.to_vec());
        }
    }
    assert_eq!(found, payloads);
    // The split refuses another file under the same name.
    let file = memory.open(Path::new("/spool/0-events"), Access::Write).unwrap();
    file.write_at(&record(&events(7..8, 400)[0]), 0).unwrap();
    assert_eq!(read(&splits[0]).unwrap_err().kind(), ErrorKind::NotALog);
}

#[test]
fn cursor_walks_all_files_of_a_ledger() {
    let (memory, options) = memory();
    let whole = file_of(&events(0..3, 40));
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    for (name, bytes) in [("2", &whole), ("5", &damaged), ("7", &whole), ("9", &whole)] {
        put(&memory, &format!("{name}-events"), bytes);
    }
    let found = options.contents(DIR, None).unwrap();
    let named = options.contents("/spool/7-events", None).unwrap();
    memory.remove(&Path::new(DIR).join("7-events")).unwrap();
    let mut files = found.cursor(OnCorrupt::Skip);
    let mut seen = Vec::new();
    while let Some((file, record)) = files.next_numbered().unwrap() {
        seen.push((file, record.payload.to_vec()));
    }
    let of = |file, range| events(range, 40).into_iter().map(move |payload| (file, payload));
    let all: Vec<_> = of(2, 0..3).chain(of(5, 1..3)).chain(of(9, 0..3)).collect();
    assert_eq!(seen, all, "without the file that was sent meanwhile");
    assert_eq!(files.damages().len(), 1);
    let kinds: Vec<_> =
        found.into_iter().map(|record| record.map_err(|e| e.kind()).err()).collect();
    assert_eq!(kinds, [None, None, None, Some(ErrorKind::Corrupt)]);
    assert_eq!(named.cursor(OnCorrupt::Skip).next().unwrap_err().kind(), ErrorKind::Missing);
}
