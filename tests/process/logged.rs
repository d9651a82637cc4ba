//! Messages to the `log` facade: damage met by readers, unclean recoveries, marks and indexes that
//! could not be stored, dropped segments. Each process has a single logger, hence a separate
//! binary; each test reads the lines about its own path.

use std::sync::Once;

use deedbook::book::Options;
use deedbook::nostr::{Batches, Check, Events, Filter, Include};
use log::Level;

use crate::support::common;
use crate::support::formats::{book, subject, views, wal};
use crate::support::prelude::*;
use crate::support::store::events::{event, notes, on_storage};

const FORMATS: [&dyn Format; 3] = [&book::BOOK, &wal::SINGLE, &wal::TINY];
const LARGE: wal::WalFormat = wal::WalFormat::segmented("wal-large", 1 << 20);
/// With several blocks of an index in each segment.
const LARGE_FORMATS: [&dyn Format; 3] = [&book::BOOK, &wal::SINGLE, &LARGE];

static LOGGED: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());
static HANDLERS: Mutex<Vec<Handler>> = Mutex::new(Vec::new());

/// Handles a line, after the logger has kept it.
type Handler = Arc<dyn Fn(&str) + Send + Sync>;

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        assert_eq!(record.target(), "deedbook");
        let line = record.args().to_string();
        LOGGED.lock().unwrap().push((record.level(), line.clone()));
        let handlers = HANDLERS.lock().unwrap().clone();
        handlers.iter().for_each(|handler| handler(&line));
    }
    fn flush(&self) {}
}

fn place(format: &dyn Format, test: &str) -> (Sim, At) {
    static LOGGING: Once = Once::new();
    LOGGING.call_once(|| {
        log::set_logger(&Logger).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
    let disk = Sim::new();
    let dir = PathBuf::from(format!("/{}-{test}", format.name()));
    disk.create_dir(&dir).unwrap();
    (disk.clone(), At { storage: Arc::new(disk), path: format.path_in(&dir) })
}

fn lines(at: &At) -> Vec<(Level, String)> {
    let top: PathBuf = at.path.components().take(2).collect();
    let path = top.to_str().unwrap();
    let (mine, others) =
        std::mem::take(&mut *LOGGED.lock().unwrap()).into_iter().partition(|(_, line)| {
            let after = line.split_once(path).map(|(_, after)| after.chars().next());
            after.is_some_and(|after| !matches!(after, Some('a'..='z' | '-')))
        });
    *LOGGED.lock().unwrap() = others;
    mine
}

fn only_warning(at: &At) -> String {
    let mut logged = lines(at);
    assert!(logged.len() == 1 && logged[0].0 == Level::Warn, "{logged:?}");
    logged.remove(0).1
}

fn line_of(walk: &Walk) -> (Level, String) {
    (Level::Warn, format!("damage met: {}", walk.error.as_ref().unwrap()))
}

fn damaged(format: &dyn Format, test: &str) -> At {
    let (disk, at) = place(format, test);
    let events = views::plain(5, 40);
    format.create(&at, &events).close().unwrap();
    let (around, start) = (format.framing().around() as u64, format.framing().start() as u64);
    for record in [1, 3] {
        let byte = start + record * (40 + around) + around + 3;
        let (path, byte) = match format.segment_bytes() {
            None => (format.first_file(&at.path), byte),
            Some(size) => (at.path.join(segment_name(byte / size)), byte % size),
        };
        let file = disk.open(&path, Access::Write).unwrap();
        let mut was = [0];
        file.read_at(&mut was, byte).unwrap();
        file.write_at(&[was[0] ^ 1], byte).unwrap();
    }
    // Without a mark, only the records show the damage, so a reader can open the log.
    for name in ["mark", "index"] {
        let _ = disk.remove(&format.sidecar(&at.path).join(name));
    }
    assert_eq!(lines(&at), []);
    at
}

#[test]
fn each_cursor_logs_damage_once() {
    for format in FORMATS {
        let at = damaged(format, "readers");
        let log = format.read(&at).unwrap();
        assert_eq!(lines(&at), [], "{}: nothing was read yet", format.name());
        let forward = log.forward(None, None, false);
        assert_eq!(lines(&at), [line_of(&forward)]);
        let follow = log.follow();
        if follow.error.is_some() {
            assert_eq!(lines(&at), [line_of(&follow)]);
        }
        let arrow = log.arrow(false);
        assert_eq!(lines(&at), [line_of(&arrow)]);
        let back = log.backward(None, None);
        assert_eq!(lines(&at), [line_of(&back)]);
        let second = format.ordinal_after(format.first_ordinal(), 40);
        if let Err(error) = log.read(second)
            && error.kind() == deedbook::ErrorKind::Corrupt
        {
            assert_eq!(lines(&at), [(Level::Warn, format!("damage met: {error}"))]);
        }
        // Twice as many damages as cursors, each logged once.
        let skipped = log.forward(None, None, true);
        assert_eq!((skipped.records.len(), skipped.damages.len()), (3, 2), "{}", format.name());
        let logged = lines(&at);
        assert_eq!(logged.len(), 2, "{logged:?}");
        for ((level, line), damage) in logged.iter().zip(&skipped.damages) {
            assert!(*level == Level::Warn && line.starts_with("damage passed over: "), "{line}");
            let place = format!("(byte {} of {}", damage.offset, at.path.display());
            assert!(line.contains(&place) && line.contains(&damage.reason), "{line}");
        }
        let parts = log.splits(1 << 20, None, None, true).unwrap();
        let damages: usize = parts.iter().map(|part| part.damages.len()).sum();
        assert!(damages >= 2 && lines(&at).len() == damages, "{}", format.name());
        // The reader walks over the damage to a range after the damage, and the range has none.
        let last = (0..3).fold(second, |ordinal, _| format.ordinal_after(ordinal, 40));
        let walk = log.forward(Some(last), None, true);
        assert_eq!(lines(&at).len(), walk.damages.len(), "{}", format.name());
    }
}

/// These calls report each damage themselves.
#[test]
fn verify_and_salvage_log_no_damage() {
    for format in FORMATS {
        let at = damaged(format, "checks");
        format.verify(&at, MANUAL).unwrap();
        at.storage.create_dir(Path::new("/copy")).unwrap();
        format.salvage(&at, &format.path_in(Path::new("/copy")), MANUAL).unwrap();
        format.repair(&at, MANUAL).unwrap_err();
        assert_eq!(lines(&at), [], "{}", format.name());
    }
}

/// A store with several damaged pages logs a line for each walk and each query, not for each page.
#[test]
fn event_store_logs_first_skipped_damage() {
    let (disk, at) = place(&book::BOOK, "events");
    let dir = at.path.join("store");
    let options = on_storage(Arc::new(disk.clone()));
    let store = options.open(&dir, Mode::Append).unwrap();
    store.append_many(&notes(0..20)).unwrap();
    store.checkpoint().unwrap();
    let segment = disk.open(&dir.join("data/segments/data.0.seg"), Access::Write).unwrap();
    for page in [2, 6] {
        segment.write_at(b"damage", page * 4096 + 70).unwrap();
    }
    assert_eq!(lines(&at), []);
    let once = |damage: &[Damage]| {
        let line = only_warning(&at);
        assert!(
            damage.len() == 2 && line.starts_with("damage passed over: "),
            "{line}, {damage:?}"
        );
        assert!(line.contains(&damage[0].reason), "{line}");
        let place = format!("(byte {} of {}", damage[0].offset, dir.display());
        assert!(line.replace(',', "").contains(&place), "{line}");
    };
    let reader = options.open(&dir, Mode::Read).unwrap();
    lines(&at);
    let walks: [fn(&EventStore) -> Events; 2] = [
        |store| store.iter(Include::All, OnCorrupt::Skip).unwrap(),
        |store| store.iter_reverse(Include::All, OnCorrupt::Skip).unwrap(),
    ];
    for walk in walks {
        let mut walk = walk(&reader);
        assert_eq!(walk.by_ref().map(Result::unwrap).count(), 18);
        once(walk.damage());
    }
    for store in [&reader, &store] {
        let filters = [Filter::default()];
        let (found, damage) = store.query_with(&filters, OnCorrupt::Skip, &mut || Ok(())).unwrap();
        assert_eq!(found.len(), 18);
        once(&damage);
    }
    store.verify(Check::Id).unwrap();
    assert_eq!(lines(&at), [], "the report lists the damage");
}

/// The columns of a large store are made in parts of 8 MiB, by several threads.
#[test]
fn columns_of_events_log_skipped_damage_once() {
    let (disk, at) = place(&book::BOOK, "columns");
    let dir = at.path.join("store");
    let options = on_storage(Arc::new(disk.clone())).segment_bytes(64 << 20);
    let store = options.open(&dir, Mode::Append).unwrap();
    let content = "x".repeat(400_000);
    for number in 0..80 {
        store.append(&event(1, number, 1, &[], &content)).unwrap();
    }
    store.checkpoint().unwrap();
    let segment = disk.open(&dir.join("data/segments/data.0.seg"), Access::Write).unwrap();
    for part in 1..8 {
        segment.write_at(&[1; 8192], part << 22).unwrap();
    }
    lines(&at);
    let walk = store.iter(Include::All, OnCorrupt::Skip).unwrap();
    let mut batches = Batches::new(walk, &["id"], 1000, 1 << 20).unwrap();
    assert_eq!(batches.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 73);
    assert_eq!((batches.damages().len(), lines(&at).len()), (7, 1));
}

#[test]
fn pages_that_the_reference_cannot_read_are_logged() {
    let (disk, at) = place(&book::BOOK, "pages");
    let open = |bytes| {
        let options = on_storage(Arc::new(disk.clone())).page_bytes(bytes);
        options.open(at.path.join("store"), Mode::Append).unwrap().close().unwrap();
        lines(&at).len()
    };
    assert_eq!([1024, 1024, 4096, 2048, 8192].map(open), [1, 0, 0, 1, 0]);
}

/// A prefix or an end dropped under a cursor is no damage.
#[test]
fn a_truncation_under_a_cursor_logs_no_damage() {
    let (_, at) = place(&wal::TINY, "truncated");
    let writer = wal::TINY.options(&at, MANUAL).open(&at.path, Mode::Create).unwrap();
    let lsns: Vec<_> = (0..900u64).map(|n| writer.append(&[n as u8; 56]).unwrap()).collect();
    writer.sync().unwrap();
    let reader = wal::TINY.options(&at, MANUAL).open(&at.path, Mode::Read).unwrap();
    let mut records = reader.iter(..).unwrap();
    assert!(records.next().unwrap().is_ok());
    writer.truncate_before(lsns[800]).unwrap();
    let dropped = |lines: Vec<(Level, String)>| {
        let is_drop = |(level, line): &(Level, String)| {
            *level == Level::Info && line.starts_with("segments dropped: ")
        };
        assert!(lines.len() == 1 && lines.iter().all(is_drop), "{lines:?}");
    };
    dropped(lines(&at));
    assert!(records.any(|record| record.is_err()));
    writer.truncate_after(lsns[850]).unwrap();
    reader.refresh().unwrap_err();
    dropped(lines(&at));
}

#[test]
fn a_recovery_that_was_not_clean_is_logged() {
    for format in FORMATS {
        let (disk, at) = place(format, "recovery");
        let log = format.create(&at, &views::plain(3, 40));
        log.sync().unwrap();
        log.append(1, &[7; 30]).unwrap();
        let end = log.end().unwrap();
        let killed = disk.kill();
        drop(log);
        let (path, end) = match format.segment_bytes() {
            None => (format.first_file(&at.path), end),
            Some(size) => (at.path.join(segment_name(end / size)), end % size),
        };
        killed.open(&path, Access::Write).unwrap().set_len(end - 3).unwrap();
        let at = At { storage: Arc::new(killed.clone()), path: at.path };
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        let line = only_warning(&at);
        assert!(line.contains("recovered: torn, "), "{line}");
        let saved = log.recovery().saved_to.clone().unwrap();
        assert!(line.contains(&format!("saved to {}", saved.display())), "{line}");
        log.close().unwrap();
        drop(log);
        let sidecar = format.sidecar(&at.path);
        let mark = killed.open(&sidecar.join("mark"), Access::Write).unwrap();
        [30, 512 + 30].iter().for_each(|&byte| assert!(mark.write_at(&[0xee], byte).is_ok()));
        format.open(&at, Mode::Append, MANUAL).unwrap();
        let line = only_warning(&at);
        assert!(line.contains("its mark is damaged"), "{line}");
    }
}

#[test]
fn a_segment_that_opening_sets_aside_is_logged() {
    let (disk, at) = place(&wal::TINY, "aside");
    let log = wal::TINY.create(&at, &views::plain(1, 40));
    log.sync().unwrap();
    (0..9).for_each(|n| assert!(log.append(1, &[n; 40]).is_ok()));
    let killed = disk.kill();
    drop(log);
    killed.remove(&at.path.join(segment_name(3))).unwrap();
    let at = At { storage: Arc::new(killed), path: at.path };
    let log = wal::TINY.open(&at, Mode::Append, MANUAL).unwrap();
    let aside = &log.recovery().set_aside;
    assert_eq!(aside[0], at.path.join(format!("{}.cut", segment_name(4))));
    let logged = lines(&at);
    assert_eq!(logged.len(), 1, "{logged:?}");
    for to in aside {
        let named = format!(", set aside as {}", to.display());
        assert!(logged[0].1.contains(&named), "{}", logged[0].1);
    }
}

/// Opening finished an interrupted truncation silently.
#[test]
fn a_truncation_finished_on_opening_is_logged() {
    for format in [&wal::SINGLE, &wal::TINY] {
        let (disk, at) = place(format, "finished");
        let writer = format.options(&at, MANUAL).open(&at.path, Mode::Create).unwrap();
        let lsns: Vec<_> = (0..9).map(|n| writer.append(&[n; 40]).unwrap()).collect();
        writer.sync().unwrap();
        disk.inject(Fault::ever(1, What::Error(io::ErrorKind::Other)).of(Call::SetLen));
        writer.truncate_after(lsns[4]).unwrap_err();
        disk.heal();
        let killed = disk.kill();
        drop(writer);
        lines(&at);
        let at = At { storage: Arc::new(killed), path: at.path };
        let writer = format.options(&at, MANUAL).open(&at.path, Mode::Append).unwrap();
        assert!(writer.recovery().finished_truncation, "{}", format.name);
        let logged = lines(&at);
        let finished = logged.len() == 1 && logged[0].1.contains("by finishing a truncation");
        assert!(finished, "{logged:?}");
    }
}

#[test]
fn finishing_a_commit_logs_the_missing_records() {
    let (disk, at) = place(&book::BOOK, "finished");
    let open = |disk: &Sim| {
        let options = Options::new().storage(Arc::new(disk.clone())).epoch_part_bytes(1);
        options.open_pier(at.path.join("pier"), Mode::Append).unwrap()
    };
    let pier = open(&disk);
    pier.append(0, b"before").unwrap();
    let parts: Vec<_> = [2, 3]
        .map(|deeds| {
            let mut stage = pier.stage("etl", deeds, 1, None).unwrap();
            (0..deeds).for_each(|deed| stage.push(deed, b"staged").unwrap());
            stage.finish().unwrap()
        })
        .into();
    disk.record();
    pier.commit_staged(&Transaction { job: "etl".into(), id: None }, &parts).unwrap();
    let mut missing = Vec::new();
    for moment in disk.recorded() {
        lines(&at);
        assert!([1, 6].contains(&open(&moment.kill()).last().unwrap()));
        for (level, line) in lines(&at) {
            assert_eq!(level, Level::Warn, "{line}");
            let (_, count) = line.split_once("which had begun, is done: ").unwrap();
            missing.push(count.split_once(" records were missing").unwrap().0.to_string());
        }
    }
    missing.dedup();
    assert_eq!(missing, ["5", "3", "0"]);
}

#[test]
fn an_unstorable_mark_or_index_is_logged() {
    for format in LARGE_FORMATS {
        let (disk, at) = place(format, "sidecar");
        let log = format.open(&at, Mode::Create, MANUAL).unwrap();
        // An index block is 64 KiB.
        (0..4).for_each(|_| assert!(log.append(1, &[7; 40_000]).is_ok()));
        lines(&at);
        // The first sync creates the index.
        disk.inject(Fault::ever(1, What::Error(io::ErrorKind::Other)).of(Call::Create));
        log.sync().unwrap();
        let index = format.sidecar(&at.path).join("index");
        let line = format!("cannot store the index: injected ({})", index.display());
        assert_eq!(only_warning(&at), line, "{}", format.name());
        disk.heal();
        // At the close, the log has nothing to write, but the mark has.
        disk.inject(Fault::ever(1, What::Error(io::ErrorKind::Other)).of(Call::Write));
        log.close().unwrap();
        let logged = lines(&at);
        let line = |what: &str| format!("cannot store the {what}: injected (");
        assert!(logged.iter().any(|(_, said)| said.starts_with(&line("mark"))), "{logged:?}");
    }
}

#[test]
fn only_slow_syncs_are_logged() {
    let (_, at) = place(&wal::SINGLE, "slow");
    let delay = Arc::new(AtomicU64::new(0));
    let hook = {
        let delay = delay.clone();
        move |seen| {
            if seen == Seen::Synced {
                std::thread::sleep(Duration::from_millis(delay.load(Ordering::Relaxed)));
            }
        }
    };
    let storage = watched(at.storage.clone(), hook);
    let options = deedbook::wal::Options::new().storage(storage);
    let options = options.slow_sync(Duration::from_millis(500));
    let wal = options.open(&at.path, Mode::Create).unwrap();
    wal.commit(b"fast").unwrap();
    assert_eq!(lines(&at), []);
    delay.store(600, Ordering::Relaxed);
    wal.commit(b"slow").unwrap();
    delay.store(0, Ordering::Relaxed);
    wal.commit(b"fast again").unwrap();
    wal.close().unwrap();
    let text = only_warning(&at);
    assert!(text.starts_with("slow sync: "), "{text}");
    assert!(text.contains("limit 500.0ms"), "{text}");
}

/// The engine logged these lines under the log's lock: a handler that kept them in the same log waited for itself.
#[test]
fn a_log_handler_may_commit_to_its_log() {
    common::quickly(|| {
        for format in LARGE_FORMATS {
            let (disk, at) = place(format, "handler");
            let log: Arc<dyn subject::Log> = format.open(&at, Mode::Create, MANUAL).unwrap().into();
            let (about, keeper) = (format.sidecar(&at.path), log.clone());
            let keep = move |line: &str| {
                if line.contains(about.to_str().unwrap()) {
                    keeper.commit(2, line.as_bytes()).unwrap();
                }
            };
            HANDLERS.lock().unwrap().push(Arc::new(keep));
            (0..4).for_each(|_| assert!(log.append(1, &[7; 40_000]).is_ok()));
            disk.inject(Fault::ever(1, What::Error(io::ErrorKind::Other)).of(Call::Create));
            log.sync().unwrap();
            disk.heal();
            let kept = lines(&at);
            assert!(!kept.is_empty(), "{}", format.name());
            let read: Vec<_> = log.forward(None, None, false).events().split_off(4);
            let read = read.into_iter().map(|(_, line)| String::from_utf8(line).unwrap());
            assert!(read.eq(kept.into_iter().map(|(_, line)| line)), "{}", format.name());
            log.close().unwrap();
        }
    });
}

/// The same for the events dropped by a full ledger.
#[test]
fn a_log_handler_may_append_to_its_ledger() {
    common::quickly(|| {
        let (_, at) = place(FORMATS[0], "full");
        let config = ledger::LedgerConfig::lines(at.path.join("spool"), "events");
        let options = ledger::Options::new()
            .storage(at.storage.clone())
            .bytes_total_max(2000)
            .when_full(ledger::WhenFull::DropOldest);
        let store =
            Arc::new(options.open(ledger::LedgerConfig { max_file_size: 500, ..config }).unwrap());
        let keeper = store.clone();
        let keep = move |line: &str| {
            if line.contains("/spool/") {
                keeper.append(line.as_bytes()).unwrap();
            }
        };
        HANDLERS.lock().unwrap().push(Arc::new(keep));
        (0..20).for_each(|_| {
            store.append(&[b'x'; 200]).unwrap();
        });
        assert!(lines(&at).iter().all(|(_, line)| line.starts_with("the ledger is full: dropped")));
        assert!(store.stats().dropped_records > 5);
        store.close().unwrap();
    });
}
