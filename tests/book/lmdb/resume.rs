//! Migrations that continue an earlier run, the comparison with the source, and the progress.

use crate::lmdb::support::*;

// Promise: migrate-killed.
#[test]
fn an_interrupted_migration_goes_on_and_doubles_nothing() {
    let (_dir, source, dest) = space();
    let long = vec![7; 3 << 20];
    let values: Vec<(u64, &[u8])> = (1..=12).map(|event| (event, &long[..])).collect();
    make(&source, &values, &[]);
    let mut calls = 0;
    let stop = |_, _| {
        calls += 1;
        let stop = || Error::new(ErrorKind::InvalidArgument, "enough");
        (calls < 3).then_some(()).ok_or_else(stop)
    };
    refused(Options::default().migrate(&source, &dest, stop), ErrorKind::InvalidArgument, "enough");
    let held = deeds(&dest).len() as u64;
    assert!(0 < held && held < 12, "{held}");
    assert_eq!(look(&source, &dest).unwrap().resumed_from, Some(held + 1));
    let report = bring(&source, &dest).unwrap();
    assert_eq!((report.found, report.resumed_from), (held, Some(held + 1)));
    assert_eq!(deeds(&dest).len(), 12);
}

/// The layout `slots` has no checksum for a deed: only the comparison with the source finds the difference.
#[test]
fn a_migration_fails_on_a_differing_written_event() {
    let says = [(Layout::Packed, "deed 2"), (Layout::Slots, "event 2 is another one")];
    for (layout, says) in says {
        let (_dir, source, dest) = space();
        make(&source, &[(1, b"\0\0\0\0first"), (2, b"\0\0\0\0second"), (3, b"\0\0\0\0third")], &[]);
        let storage = Arc::new(flips("book.log", b"second"));
        let book = book::Options::new().layout(layout).storage(storage);
        let options = Options::new().book(book);
        let brought = options.migrate(&source, &dest, |_, _| Ok(()));
        refused(brought, ErrorKind::Corrupt, says);
    }
}

// Promise: migrate-killed.
#[test]
fn a_migration_continues_after_any_failed_call() {
    let (_dir, source, _) = space();
    make_numbered(&source, 1..=20);
    let wanted = deeds_of(&numbered(1..=20));
    for layout in [Layout::Packed, Layout::Slots] {
        for dead in [false, true] {
            let (mut failed, mut begun, mut call) = (0, 0, 1);
            loop {
                let (_dest, _, dest) = space();
                let disk = Watched::failing(call, dead);
                let storage = Arc::new(disk.clone());
                let book = book::Options::new().layout(layout).storage(storage);
                let failing = Options::new().book(book);
                let brought = failing.migrate(&source, &dest, |_, _| Ok(()));
                let struck = disk.calls() >= call;
                if brought.is_ok() {
                    assert_eq!(deeds(&dest), wanted, "call {call}");
                }
                failed += u64::from(brought.is_err());

                let storage = Arc::new(Watched::idle());
                let book = book::Options::new().layout(layout).storage(storage);
                let options = Options::new().book(book);
                let again = options.migrate(&source, &dest, |_, _| Ok(())).unwrap();
                assert_eq!(again.events, 20, "call {call}");
                begun += u64::from(again.found > 0);
                assert_eq!(deeds(&dest), wanted, "call {call}");
                let held = Book::open(&dest).unwrap();
                assert_eq!((held.layout(), held.meta().unwrap().life), (layout, Some(1)));
                if !struck {
                    break;
                }
                call += 1;
            }
            assert!(failed > 30 && begun > 5, "{failed} of {call} failed, {begun} had events");
        }
    }
}

/// A killed run may have created the directories, and a power cut lost their entries in the directories above.
#[test]
fn a_migration_syncs_existing_pier_directories() {
    let (dir, _, dest) = space();
    let log = dest.join(".urb").join("log");
    fs::create_dir_all(&log).unwrap();
    let disk = Watched::idle();
    let book = book::Options::new().storage(Arc::new(disk.clone()));
    let options = Options::new().book(book);
    options.migrate(data("pier-lmdb"), &dest, |_, _| Ok(())).unwrap();
    for above in [dir.path().to_path_buf(), dest.clone(), dest.join(".urb"), log] {
        assert!(disk.has_synced(&above), "{}", above.display());
    }
}

fn deeds_of(values: &[(u64, Vec<u8>)]) -> Vec<(u64, Event)> {
    let deed = |(event, value): &(u64, Vec<u8>)| {
        (*event, (u32::from_le_bytes(*value.first_chunk().unwrap()), value[4..].to_vec()))
    };
    values.iter().map(deed).collect()
}

/// A kill between the two steps left an empty file, and every further run was refused.
#[test]
fn a_migration_continues_from_an_empty_environment() {
    let (_dir, source, dest) = space();
    fs::create_dir_all(&dest).unwrap();
    make_numbered(&source, 1..=50);
    bring(&source, &dest.join("book")).unwrap();
    let environment = dest.join("environment");
    fs::create_dir(&environment).unwrap();
    fs::write(environment.join("data.mdb"), b"").unwrap();
    let options = Options::new().dry_run(true);
    options.export(dest.join("book"), &environment, |_, _| Ok(())).unwrap();
    assert_eq!(back(&dest.join("book"), &environment).unwrap().events, 50);

    let pier = data("pier-lmdb");
    let log = dest.join("pier").join(".urb/log");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join("data.mdb"), b"").unwrap();
    bring(&pier, &dest.join("pier")).unwrap();
    assert!(fs::metadata(log.join("data.mdb")).unwrap().len() > 0);
}

// Promise: migrate-refused.
#[test]
fn an_event_with_another_mug_is_another_event() {
    let (_dir, source, dest) = space();
    make(&source, &[(1, b"\x01\0\0\0first"), (2, b"\x02\0\0\0second")], &[]);
    let book = Book::create(&dest).unwrap();
    book.append(1, b"first").unwrap();
    book.append(7, b"second").unwrap();
    book.close().unwrap();
    let before = deeds(&dest);
    for attempt in [bring, look] {
        let error =
            refused(attempt(&source, &dest), ErrorKind::AlreadyExists, "event 2 is another");
        let text = error.to_string();
        assert!(text.contains("mug 00000002, 6 bytes"), "{text}");
        assert!(text.contains("mug 00000007, 6 bytes"), "{text}");
        assert_eq!(deeds(&dest), before);
    }
}

fn steps(
    travel: impl FnOnce(&mut dyn FnMut(u64, u64) -> Result<()>) -> Result<Report>,
) -> Vec<u64> {
    let mut steps = Vec::new();
    travel(&mut |done, all| {
        assert!(done <= all, "{done} of {all}");
        steps.push(done);
        Ok(())
    })
    .unwrap();
    steps
}

#[test]
fn migration_progress_comes_once_per_batch() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=40_000);
    let (options, dry) = (Options::default(), Options::new().dry_run(true));
    let compared = [16_384, 32_768, 40_000];
    // In order: counted, written, compared with the book, compared in a dry run.
    assert_eq!(steps(|noted| dry.migrate(&source, &dest, noted)), compared);
    assert_eq!(steps(|noted| options.migrate(&source, &dest, noted)), [40_000]);
    assert_eq!(steps(|noted| options.migrate(&source, &dest, noted)), compared);
    assert_eq!(steps(|noted| dry.migrate(&source, &dest, noted)), compared);
    let returned = dest.with_file_name("returned");
    assert_eq!(steps(|noted| options.export(&dest, &returned, noted)), [40_000]);
    assert_eq!(steps(|noted| options.export(&dest, &returned, noted)), compared);
    // That of long events comes by their bytes.
    let (_dir, source, dest) = space();
    let long = vec![7; 3 << 20];
    let values: Vec<(u64, &[u8])> = (1..=8).map(|event| (event, &long[..])).collect();
    make(&source, &values, &[]);
    let again = || steps(|noted| Options::default().migrate(&source, &dest, noted));
    assert_eq!(again(), [3, 6, 8]);
    assert_eq!(again(), [3, 6, 8]);
}
