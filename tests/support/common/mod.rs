//! Shared by the tests: small logs to break, and the contents of logs.

pub mod flips;
pub mod hooked;
pub mod index_files;
pub mod lmdb_pages;
#[cfg(unix)]
pub mod places;
pub mod skip;
pub mod watched;

use deedbook::book::{Deed, Options};

use super::mix::mix;

use crate::support::prelude::*;

/// A repair that also removes intact records and accepts a loss.
pub const FORCED: Repair = Repair { force: true, accept_loss: true, dry_run: false };

#[allow(unused_imports)] // not in every program
pub use super::formats::subject::refused;
#[allow(unused_imports)]
pub use super::plain::{crc32, read_file, write_file};

/// Mug and jam.
pub type Event = (u32, Vec<u8>);

/// A deed of the `packed` layout.
pub fn deed(mug: u32, jam: &[u8]) -> Vec<u8> {
    Framing::Book.encode(mug, jam)
}

pub fn header(first: u64) -> Vec<u8> {
    Framing::Book.file_header(first)
}

pub fn log(first: u64, events: &[Event]) -> Vec<u8> {
    let deeds = events.iter().map(|(mug, jam)| deed(*mug, jam));
    std::iter::once(header(first)).chain(deeds).collect::<Vec<_>>().concat()
}

/// The starts of the deeds of a log, and the end of the last deed.
pub fn borders(events: &[Event]) -> Vec<u64> {
    let mut borders = vec![16];
    for (_, jam) in events {
        borders.push(borders[borders.len() - 1] + jam.len() as u64 + 24);
    }
    borders
}

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        number
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The event with a number: the same in writers and checkers, without zeros at its ends.
pub fn event_of(number: u64, longest: u64) -> Event {
    let mut random = Random(number);
    let len = random.below(longest + 1);
    let jam = (0..len).map(|_| random.next() as u8 | 1).collect();
    (random.next() as u32, jam)
}

pub fn events(count: u64, longest: u64) -> Vec<Event> {
    (1..=count).map(|number| event_of(number, longest)).collect()
}

pub fn memory() -> (Memory, Options) {
    let memory = Memory::new();
    let options = Options::new().durability(Durability::Manual).storage(Arc::new(memory.clone()));
    (memory, options)
}

pub fn snapshot(storage: &dyn Storage, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in storage.list(dir).unwrap_or_default() {
        let path = dir.join(name);
        if storage.is_dir(&path) {
            files.extend(snapshot(storage, &path));
        } else {
            files.insert(path.clone(), read_file(storage, &path));
        }
    }
    files
}

pub fn read_all(book: &Book) -> (Vec<Deed>, Option<deedbook::Error>) {
    let (mut deeds, mut failed) = (Vec::new(), None);
    let iter = match book.iter(..) {
        Ok(iter) => iter,
        Err(error) => return (deeds, Some(error)),
    };
    for deed in iter {
        match deed {
            Ok(deed) => deeds.push(deed),
            Err(error) => failed = Some(error),
        }
    }
    (deeds, failed)
}

pub fn contents(deeds: &[Deed]) -> Vec<Event> {
    deeds.iter().map(|deed| (deed.mug, deed.jam.clone())).collect()
}

pub fn read_past_damage(book: &Book) -> Vec<Deed> {
    let mut cursor = book.cursor(.., OnCorrupt::Skip).unwrap();
    let mut deeds = Vec::new();
    loop {
        match cursor.next() {
            Ok(Some(deed)) => deeds.push(deed.into_owned()),
            Ok(None) => return deeds,
            // The end of the log is lost: nothing follows the damage.
            Err(error) if error.offset() == Some(book.end().unwrap()) => return deeds,
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn check(path: impl AsRef<Path>, options: &Options) -> VerifyReport {
    options.verify(path).unwrap()
}

pub fn rescue(from: &Path, to: &Path, options: &Options) -> SalvageReport {
    options.salvage(from, to).unwrap()
}

pub fn make(path: &Path, options: &Options, events: &[Event]) {
    let book = options.open(path, Mode::Create).unwrap();
    for (mug, jam) in events {
        book.append(*mug, jam).unwrap();
    }
    book.close().unwrap();
}

/// This test binary again, in a role: the process runs a single test, which reads the role.
pub fn in_role(test: &str, role: &str, path: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env("DEEDBOOK_ROLE", role).env("DEEDBOOK_PATH", path);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::piped());
    command
}

pub fn role() -> Option<(String, PathBuf)> {
    let role = std::env::var("DEEDBOOK_ROLE").ok()?;
    Some((role, PathBuf::from(std::env::var_os("DEEDBOOK_PATH")?)))
}

/// Kill a process that prints numbers on stderr, 8 bytes each. Returns the last number, if any.
#[cfg(unix)]
pub fn killed(mut child: std::process::Child) -> Option<u64> {
    child.kill().unwrap();
    let printed = child.wait_with_output().unwrap().stderr;
    let text = String::from_utf8_lossy(&printed);
    assert!(!text.contains("panicked"), "{text}");
    printed.chunks_exact(8).next_back().map(|last| u64::from_le_bytes(last.try_into().unwrap()))
}

/// Run a function that must not hang.
pub fn quickly<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(what()));
    wait.recv_timeout(std::time::Duration::from_secs(20)).expect("hangs, or panicked")
}

pub fn golden() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden/book");
    if path.is_dir() {
        return Some(path);
    }
    skip::skipped("no golden files at ../shared/golden/book");
    None
}

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/book").join(name)
}

pub fn golden_events() -> Vec<Event> {
    let text = fs::read_to_string(data("events.hex")).unwrap();
    text.lines()
        .map(hex)
        .map(|bytes| (u32::from_le_bytes(*bytes.first_chunk().unwrap()), bytes[4..].to_vec()))
        .collect()
}

pub fn hex(digits: &str) -> Vec<u8> {
    let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}
