//! Sources and targets that a backup refuses, and leaves unchanged.

use super::*;

/// A file, or all files below a directory, but those of the backup itself.
fn files(sim: &Sim, path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if !sim.is_dir(path) {
        return [(path.to_owned(), read_file(sim, path))].into();
    }
    let mut found = snapshot(sim, path);
    found.retain(|path, _| ["lock", "backup", "damage"].iter().all(|own| !path.ends_with(own)));
    found
}

fn flip(sim: &Sim, path: &Path, at: u64) {
    let file = sim.open(path, Access::Write).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 1], at).unwrap();
}

fn backed_up(kind: &Kind) -> Sim {
    let sim = disk();
    write(&sim, kind, 0);
    back_up(on(&sim)).unwrap();
    sim
}

fn refused(sim: &Sim, what: &str, kind: ErrorKind) -> String {
    let error = back_up(on(sim)).expect_err(what);
    assert_eq!(error.kind(), kind, "{what}: {error:?}");
    error.to_string()
}

fn to(sim: &Sim, target: &str) -> Result<BackupReport> {
    BackupOptions::new().storage(on(sim)).backup(LOG, target, |_| Ok(()))
}

// Promise: backup-damage.
#[test]
fn a_damaged_source_leaves_the_last_backup_unchanged() {
    for kind in KINDS {
        let sim = backed_up(&kind);
        let kept = read(&sim, &kind, COPY).unwrap();
        write(&sim, &kind, 1);
        // A byte in the middle of a payload of the new round.
        let all = files(&sim, Path::new(LOG));
        // In slots, only the newest batch has a checksum.
        let needle = if kind.name == "slots" { b"1.4 " } else { b"1.1 " };
        let find = |bytes: &[u8]| bytes.windows(4).rposition(|part| part == needle);
        let mut damaged = 0;
        for (path, bytes) in &all {
            if let Some(at) = find(bytes).filter(|_| !path.to_string_lossy().contains(".deedbook"))
            {
                flip(&sim, path, at as u64 + 5);
                damaged += 1;
            }
        }
        assert!(damaged > 0, "{}: {:?}", kind.name, all.keys());
        for _ in 0..2 {
            let said = refused(&sim, kind.name, ErrorKind::Corrupt);
            assert!(said.contains("damaged"), "{}: {said}", kind.name);
            let found = read(&sim, &kind, COPY).unwrap_or_else(|e| panic!("{}: {e:?}", kind.name));
            assert!(kept.iter().all(|one| found.contains(one)), "{}", kind.name);
        }
    }
}

// Promise: backup-damage.
#[test]
fn a_damaged_target_is_refused_and_stays_unchanged() {
    for kind in KINDS.into_iter().filter(|kind| kind.name != "store") {
        let sim = backed_up(&kind);
        write(&sim, &kind, 1);
        let copy = files(&sim, Path::new(COPY));
        for (path, bytes) in copy {
            if path.to_string_lossy().contains(".deedbook") || bytes.len() < 30 {
                continue;
            }
            let Some(at) = bytes.windows(4).rposition(|part| part == b"0.1 ") else { continue };
            let source = PathBuf::from(path.to_string_lossy().replace(COPY, LOG).as_str());
            if sim.open(&source, Access::Read).is_err() {
                continue; // it was sent
            }
            flip(&sim, &path, at as u64 + 5);
            let before = files(&sim, Path::new("/there"));
            for _ in 0..2 {
                let said = refused(&sim, kind.name, ErrorKind::InvalidArgument);
                for part in ["is no beginning of", "One of them is damaged (verify both)"] {
                    assert!(said.contains(part), "{}: {said}", kind.name);
                }
                assert_eq!(files(&sim, Path::new("/there")), before, "{}", kind.name);
            }
            flip(&sim, &path, at as u64 + 5);
        }
        back_up(on(&sim)).unwrap_or_else(|e| panic!("{}: {e:?}", kind.name));
    }
}

/// A store compares all of its files: the next backup repairs damage in the copy.
#[test]
fn the_next_backup_repairs_a_damaged_store_copy() {
    let kind = Kind::named("store");
    let sim = backed_up(&kind);
    for (path, bytes) in files(&sim, Path::new(COPY)) {
        if path.extension().is_some_and(|ending| ending == "seg" || ending == "log") {
            flip(&sim, &path, bytes.len() as u64 / 3);
        }
    }
    back_up(on(&sim)).unwrap();
    assert_eq!(read(&sim, &kind, COPY).unwrap(), read(&sim, &kind, LOG).unwrap());
}

#[test]
fn a_target_with_foreign_files_is_refused() {
    for kind in KINDS {
        for other in KINDS.into_iter().filter(|other| other.name != kind.name) {
            let is_book = |kind: &Kind| ["packed", "slots"].contains(&kind.name);
            if is_book(&kind) && is_book(&other) {
                continue;
            }
            let sim = disk();
            write(&sim, &kind, 0);
            (other.write)(&on(&sim), Path::new(COPY), 0).unwrap();
            let before = files(&sim, Path::new("/there"));
            let what = format!("{} to {}", kind.name, other.name);
            refused(&sim, &what, ErrorKind::NotALog);
            assert_eq!(files(&sim, Path::new("/there")), before, "{what}");
        }
        let sim = disk();
        write(&sim, &kind, 0);
        sim.create_dir(Path::new("/there/files")).unwrap();
        sim.create_new(Path::new("/there/files/text"), 0o600).unwrap();
        let error = to(&sim, "/there/files").expect_err(kind.name);
        let says = if kind.name == "single" { "is a directory" } else { "other files and no log" };
        assert!(error.to_string().contains(says), "{}: {error}", kind.name);
        assert_eq!(to(&sim, LOG).expect_err(kind.name).kind(), ErrorKind::InvalidArgument);
        assert_eq!(to(&sim, "/nowhere/copy").expect_err(kind.name).kind(), ErrorKind::Missing);
        if kind.name != "single" {
            let inside = to(&sim, "/here/log/copy").expect_err(kind.name);
            assert!(inside.to_string().contains("lie in each other"), "{}: {inside}", kind.name);
        }
    }
}

#[test]
fn log_files_and_saved_ends_are_refused_sources() {
    let refused_source = |sim: &Sim, source: &Path| {
        let options = BackupOptions::new().storage(on(sim));
        let error = options.backup(source, COPY, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert!(sim.list(Path::new("/there")).unwrap().is_empty());
        error.to_string()
    };
    for (name, file, title) in [("packed", "book.log", "book"), ("ledger", "0-events", "ledger")] {
        let sim = disk();
        write(&sim, &Kind::named(name), 0);
        let said = refused_source(&sim, &Path::new(LOG).join(file));
        assert!(said.contains(&format!("is a file of a {title}: name its directory")), "{said}");
    }
    let (sim, saved) = (disk(), Path::new("/here/log.cut-9"));
    sim.create_new(saved, 0o600).unwrap();
    let said = refused_source(&sim, saved);
    assert!(said.contains("is what was cut off a write-ahead log and saved"), "{said}");
}

#[test]
fn an_unlistable_target_is_refused_with_its_error() {
    let sim = disk();
    write(&sim, &Kind::named("packed"), 0);
    (Kind::named("store").write)(&on(&sim), Path::new(COPY), 0).unwrap();
    let before = files(&sim, Path::new("/there"));
    let mut denied = 0;
    for at in 1.. {
        let fault = Fault::once(at, What::Error(std::io::ErrorKind::PermissionDenied));
        sim.inject(Fault { of: Some(Call::List), ..fault });
        let (error, fired) = (back_up(on(&sim)).unwrap_err(), sim.fired());
        sim.heal();
        let said = error.to_string();
        let is_named = said.contains("holds a Nostr event store");
        assert!(is_named || said.contains("list the"), "{said}");
        denied += u32::from(!is_named);
        if fired < at {
            break;
        }
    }
    assert!(denied > 1);
    assert_eq!(files(&sim, Path::new("/there")), before);
}

#[test]
fn a_target_in_use_is_refused() {
    let kind = Kind::named("packed");
    let sim = backed_up(&kind);
    let options = BackupOptions::new().storage(on(&sim));
    let inner = options.backup(LOG, COPY, |_| Ok(()));
    assert!(inner.is_ok());
    write(&sim, &kind, 1);
    let mut refused = None;
    options
        .backup(LOG, COPY, |_| {
            refused = options.backup(LOG, COPY, |_| Ok(())).err().map(|e| e.kind());
            Ok(())
        })
        .unwrap();
    assert_eq!(refused, Some(ErrorKind::Locked));
    let writer = book::Options::new().storage(on(&sim)).open(COPY, Mode::Append).unwrap();
    let error = back_up(on(&sim)).unwrap_err();
    assert_eq!((error.kind(), error.holder()), (ErrorKind::Locked, Some(std::process::id())));
    drop(writer);
    back_up(on(&sim)).unwrap();
}

#[test]
fn a_written_or_foreign_store_backup_is_refused() {
    let kind = Kind::named("store");
    let sim = backed_up(&kind);
    (kind.append)(&on(&sim), Path::new(COPY)).unwrap();
    (kind.write)(&on(&sim), Path::new(COPY), 1).unwrap();
    let before = read(&sim, &kind, COPY).unwrap();
    let said = refused(&sim, kind.name, ErrorKind::InvalidArgument);
    assert!(said.contains("is no earlier state of"), "{said}");
    assert_eq!(read(&sim, &kind, COPY).unwrap(), before);
}

/// A backup removed foreign files in the directory of the copy together with the files the store no longer had.
#[test]
fn a_backup_removes_only_files_of_its_kind() {
    for (name, gone) in [
        ("store", &["data/segments/data.7.seg", "wal/x", ".manifest.json.new"][..]),
        ("ledger", &["7-events", ".0-events.new"][..]),
    ] {
        let sim = backed_up(&Kind::named(name));
        sim.create_dir(&Path::new(COPY).join("older")).unwrap();
        let kept = ["README", "older/data.7.seg", "older/7-events", ".mine.new"];
        let there = |file: &&str| sim.open(&Path::new(COPY).join(file), Access::Read).is_ok();
        for file in kept.iter().chain(gone) {
            drop(sim.create_new(&Path::new(COPY).join(file), 0o600).unwrap());
        }
        back_up(on(&sim)).unwrap();
        assert!(kept.iter().all(there), "{name}");
        assert!(!gone.iter().any(there), "{name}");
    }
}
