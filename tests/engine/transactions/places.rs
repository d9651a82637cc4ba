//! Names and places in a file next to a log lead nowhere outside the log.
#![cfg(unix)]

use super::*;
use crate::files::hostile::{FORMATS, make, spool};
use crate::support::common::watched::Watched;

/// The bytes named in the intents below: a ledger record with one byte of payload.
const RECORD: &[u8] = b"\x01\0\0\0\x83\x16\xdc\x8cx";

/// Opens the log for writing through a storage; a ledger also appends and sends.
fn write(format: &str, path: &Path, storage: Arc<Watched>) -> deedbook::Result<()> {
    match format {
        "book" => {
            deedbook::book::Options::new().storage(storage).open(path, Mode::Append).map(drop)
        }
        "wal" => deedbook::wal::Options::new().storage(storage).open(path, Mode::Append).map(drop),
        "pier" => {
            let options = deedbook::book::Options::new().storage(storage);
            options.open_pier(path, Mode::Append).map(drop)
        }
        "ledger" => {
            let store = deedbook::ledger::Options::new()
                .storage(storage)
                .open(LedgerConfig::lines(path, "events"))?;
            store.append(b"y")?;
            store.fetch(None, None).map(drop)
        }
        _ => deedbook::nostr::Options::new().storage(storage).open(path, Mode::Append).map(drop),
    }
}

fn desk(format: &str, path: &Path) -> PathBuf {
    match format {
        "ledger" => path.join(".deedbook/jobs-events"),
        "pier" => path.join(".urb/log/.deedbook"),
        _ => path.join(".deedbook"),
    }
}

fn place(format: &str) -> &'static str {
    if format == "pier" { "epochs 1" } else { "7" }
}

/// Found by a security review: an intent of a hundred bytes moved `libz.so.1.2.13` from outside
/// into a ledger, and the ledger sent the file. Now the job is checked as a caller's job is.
#[test]
fn an_intent_with_a_path_opens_nothing_outside() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim.1.2.13");
    for (number, format) in FORMATS.iter().enumerate() {
        let outside = victim.with_extension("").with_extension("").with_extension("");
        let outside = outside.display().to_string();
        for job in [&*outside, "../../../victim", "../../victim", "a/b", "", "a\0b", "."] {
            let path = dir.path().join(format!("{format}-{number}"));
            make(format, &path).unwrap();
            fs::write(&victim, RECORD).unwrap();
            let desk = desk(format, &path);
            fs::create_dir_all(desk.join("staged")).unwrap();
            let part = format!("part 1 2 13 {} 1 {:08x} -\n", RECORD.len(), crc32(RECORD));
            let lines = format!("job {job}\nplace {}\n{part}", place(format));
            let text = format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()));
            fs::write(desk.join("transaction"), text).unwrap();
            let asked = Arc::new(Mutex::new(Vec::new()));
            let seen = asked.clone();
            let storage = Watched::new(move |_, path| {
                seen.lock().unwrap().push(path.to_path_buf());
                Ok(())
            });
            let opened = write(format, &path, Arc::new(storage));
            match *format {
                // The ledger appends and sends, with a warning.
                "ledger" => opened.unwrap(),
                _ => {
                    let kind = opened.err().map(|error| error.kind());
                    assert_eq!(kind, Some(ErrorKind::Corrupt), "{format} {job:?}");
                }
            }
            for asked in asked.lock().unwrap().iter() {
                let is_inside = asked.starts_with(&path) || path.starts_with(asked);
                let leads_out = asked.components().any(|part| part.as_os_str() == "..");
                assert!(is_inside && !leads_out, "{format} {job:?}: {}", asked.display());
            }
            assert_eq!(fs::read(&victim).unwrap(), RECORD, "{format} {job:?}");
            fs::remove_dir_all(&path).unwrap();
        }
    }
}

/// A ledger published a staged file on the word of the intent alone, and sent bytes no task had written.
#[test]
fn a_ledger_publishes_no_altered_staged_file() {
    let changes: [(&str, &[u8]); 3] = [
        ("other bytes", b"\x01\0\0\0\0\0\0\0z"),
        ("more", b"\x01\0\0\0\x83\x16\xdc\x8cx!"),
        ("less", b"\x01"),
    ];
    for (what, bytes) in changes {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("spool");
        make("ledger", &path).unwrap();
        let staged = path.join(".deedbook/jobs-events/staged");
        fs::create_dir_all(&staged).unwrap();
        fs::write(staged.join("job.1.0.13"), bytes).unwrap();
        let part = format!("part 1 0 13 {} 1 {:08x} -\n", RECORD.len(), crc32(RECORD));
        let lines = format!("job job\nplace 7\n{part}");
        let text = format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()));
        fs::write(path.join(".deedbook/jobs-events/transaction"), text).unwrap();
        spool(&path).unwrap().append(b"y").unwrap();
        assert!(!path.join("7-events").exists(), "{what}");
        assert!(staged.join("job.1.0.13").exists(), "{what}");
    }
}

/// Found by a security review: `.deedbook/staged` led to a folder of documents, and a vacuum removed those older than a
/// week. Now no directory below a log may be a link, and only staged files are removed.
#[test]
fn a_vacuum_removes_only_real_staged_files() {
    for format in ["book", "wal", "ledger"] {
        for linked in ["staged", "sidecar"] {
            let dir = tempfile::tempdir().unwrap();
            let (path, outside) = (dir.path().join("log"), dir.path().join("Documents"));
            make(format, &path).unwrap();
            fs::create_dir_all(outside.join("staged")).unwrap();
            for name in ["thesis.0.0.1", "staged/thesis.0.0.1"] {
                fs::write(outside.join(name), b"years of work").unwrap();
            }
            let desk = desk(format, &path);
            let link = if linked == "staged" { desk.join("staged") } else { desk.clone() };
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = fs::remove_dir_all(&link);
            symlink(&outside, &link).unwrap();
            let error = vacuum(format, &path, "thesis").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotALog, "{format}: {error}");
            for name in ["thesis.0.0.1", "staged/thesis.0.0.1"] {
                assert_eq!(fs::read(outside.join(name)).unwrap(), b"years of work");
            }
            fs::remove_file(&link).unwrap();
            fs::create_dir_all(desk.join("staged")).unwrap();
            let others =
                ["thesis.pdf", "thesis.1.2", "thesis.1.2.3.4", "thesis.01.2.3", "thesis.1.2.x"];
            for name in others {
                fs::write(desk.join("staged").join(name), b"x").unwrap();
            }
            fs::write(desk.join("staged/thesis.1.2.3"), b"x").unwrap();
            vacuum(format, &path, "thesis").unwrap();
            assert!(others.iter().all(|name| desk.join("staged").join(name).exists()), "{format}");
            assert!(!desk.join("staged/thesis.1.2.3").exists(), "{format}");
        }
    }
}

fn vacuum(format: &str, path: &Path, job: &str) -> deedbook::Result<bool> {
    match format {
        "book" => Book::open(path)?.discard_staged(job),
        "wal" => Wal::open(path)?.discard_staged(job),
        _ => spool(path)?.discard_staged(job),
    }
}

/// More than any memory, and none of the bytes on the disk.
const SPARSE_BYTES: u64 = 1 << 40;

fn put(log: &Path, name: &str) {
    let file = fs::File::create(log.join(".deedbook").join(name)).unwrap();
    file.set_len(SPARSE_BYTES).unwrap();
}

fn is_refused(error: &Error, name: &str) {
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {said}");
    let expected = format!("is damaged: {SPARSE_BYTES} bytes, limit ");
    assert!(said.contains(&expected) && said.contains(name), "{name}: {said}");
}

/// The engine asked for as much memory as the file claimed: every opening for writing aborted the process.
#[test]
fn an_oversized_transaction_file_aborts_no_process() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    Wal::create(&log).unwrap().close().unwrap();
    put(&log, "transaction");
    is_refused(&Wal::append_to(&log).unwrap_err(), "transaction");
    Wal::open(&log).unwrap().abandon_transaction().unwrap();
    put(&log, "transactions");
    is_refused(&Wal::open(&log).unwrap().transactions().unwrap_err(), "transactions");
    fs::remove_file(log.join(".deedbook/transactions")).unwrap();
    assert!(Wal::append_to(&log).unwrap().transactions().unwrap().is_empty());

    let store = place.path().join("store");
    EventStore::create(&store).unwrap().close().unwrap();
    put(&store, "transaction");
    is_refused(&EventStore::append_to(&store).unwrap_err(), "transaction");
    EventStore::open(&store).unwrap().abandon_transaction().unwrap();
    EventStore::append_to(&store).unwrap();
}
