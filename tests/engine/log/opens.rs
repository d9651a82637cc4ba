//! An opening opens each of the log's files once.

use deedbook::book::Options;

use crate::support::common::watched::Watched;
use crate::support::formats::toy::TOY;

use super::*;

#[derive(Clone, Default)]
struct Opened(Arc<Mutex<BTreeMap<PathBuf, u64>>>);

impl Between for Opened {
    fn opened(&self, path: &Path) {
        *self.0.lock().unwrap().entry(path.to_path_buf()).or_default() += 1;
    }
}

impl Opened {
    /// The files opened since the last call, except those in a sidecar.
    fn take(&self) -> BTreeMap<PathBuf, u64> {
        let mut opened = std::mem::take(&mut *self.0.lock().unwrap());
        opened.retain(|path, _| !path.to_string_lossy().contains(".deedbook"));
        opened
    }
}

fn counting() -> Around<Opened> {
    Around::on(Memory::new(), Opened::default())
}

/// A closed log, a log whose writer was killed, and an empty log; by the path of the log and of its file.
#[test]
fn opening_a_log_opens_each_file_once() {
    let toy: &dyn Format = &TOY;
    for format in FORMATS.into_iter().chain([toy]) {
        for (events, closes) in [(5, true), (5, false), (0, true)] {
            let disk = counting();
            disk.create_dir(Path::new("/log")).unwrap();
            let path = format.path_in(Path::new("/log"));
            let at = At { storage: Arc::new(disk.clone()), path: path.clone() };
            let log = format.create(&at, &[]);
            for _ in 0..events {
                log.append(1, &[7; 30]).unwrap();
            }
            log.sync().unwrap();
            match closes {
                true => log.close().unwrap(),
                false => std::mem::forget(log),
            }
            let files: Vec<_> =
                format.files(&*disk.storage, &path).into_iter().map(|(file, _)| file).collect();
            let paths = match format.segment_bytes() {
                None => vec![path.clone(), files[0].clone()],
                Some(_) => vec![path.clone()],
            };
            for (path, mode) in paths.iter().flat_map(|path| {
                let writes = closes.then_some((path, Mode::Append));
                [Some((path, Mode::Read)), writes].into_iter().flatten()
            }) {
                let at = At { storage: Arc::new(disk.clone()), path: path.clone() };
                disk.by.take();
                let log = format.open(&at, mode, MANUAL).unwrap();
                let what = format!("{}, {}, {mode:?}, {events}", format.name(), path.display());
                let mut opened = disk.by.take();
                opened.retain(|file, _| files.contains(file));
                assert!(opened.values().all(|&times| times == 1), "{what}: {opened:?}");
                assert_eq!(opened.len(), files.len(), "{what}: {opened:?}");
                log.close().unwrap();
            }
        }
    }
}

#[test]
fn a_file_of_a_ledger_is_opened_once() {
    let disk = counting();
    disk.create_dir(Path::new("/ledger")).unwrap();
    let options = ledger::Options::new().storage(Arc::new(disk.clone()));
    let store = options.open(ledger::LedgerConfig::lines("/ledger", "events")).unwrap();
    store.append(b"one").unwrap();
    store.close().unwrap();
    let names = disk.list(Path::new("/ledger")).unwrap();
    let file = names.iter().find(|name| *name != ".deedbook").unwrap();
    let file = Path::new("/ledger").join(file);
    disk.by.take();
    let log = options.open_file(&file).unwrap();
    assert_eq!(disk.by.take(), BTreeMap::from([(file, 1)]));
    assert_eq!(log.iter().unwrap().count(), 1);
}

/// Without `.deedbook`, an opening for writing read a book twice: once to recognise the book, and once under the lock.
#[test]
fn a_book_without_sidecar_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let calls_of = |mode: Mode| {
        let _ = fs::remove_dir_all(dir.path().join(".deedbook"));
        let disk = Watched::idle();
        let options = Options::new().storage(Arc::new(disk.clone()));
        let book = options.open(dir.path(), mode).unwrap();
        let calls = disk.calls();
        assert_eq!(book.len().unwrap(), 64);
        book.close().unwrap();
        calls
    };
    let book =
        Options::new().durability(Durability::Manual).open(dir.path(), Mode::Create).unwrap();
    for _ in 0..64 {
        book.append(1, &[7; 256 << 10]).unwrap();
    }
    book.close().unwrap();
    let [read, written] = [Mode::Read, Mode::Append].map(calls_of);
    assert!(read > 64 && written < read + 60, "{read} calls to read, {written} to write");
}
