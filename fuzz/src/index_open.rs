//! A good index of an event store with any bytes changed. If the index was made at this place, opening succeeds or
//! reports damage, and requests no more memory than the bytes explain. An index from elsewhere is never opened. A
//! request for too much memory ends the process, which is a finding.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use deedbook::ErrorKind;
use deedbook::engine::nostr::{encode, parse};
use deedbook::nostr::{Change, Event, Filter, Flags, Id, Index, Location};

use super::index_files::vouch_for;
use super::kit::Input;

/// A file of an index: name, bytes without the zeros at the end, and size.
type Named = (PathBuf, Vec<u8>, u64);

/// A good index: some events are in tables, some in the journal.
static GOOD: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let dir = scratch("good");
    let index = Index::open(&dir).unwrap();
    for events in [0..1_400, 1_400..1_420] {
        let records: Vec<Vec<u8>> = events.map(|number| record(&event(number))).collect();
        let at = |n: usize| Location { segment: 0, offset: 4096 * (n as u32 + 1) };
        let events: Vec<_> = records.iter().map(|record| parse(record).unwrap()).collect();
        let changes: Vec<_> =
            events.iter().enumerate().map(|(n, event)| Change::Insert(event, at(n))).collect();
        index.apply(&changes, Some(b"covered")).unwrap();
    }
    index.sync().unwrap();
    drop(index);
    let mut files = Vec::new();
    read_all(&dir, &dir, &mut files);
    files.sort();
    fs::remove_dir_all(&dir).unwrap();
    files
});

/// The target: whether the index counts as made here, then changes of a few bytes each.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let is_own = input.u8() & 3 != 0;
    let mut files = GOOD.clone();
    while !input.is_empty() {
        let which = input.below(files.len());
        let bytes = &mut files[which].1;
        let used = bytes.len();
        let low = usize::from(input.u16());
        // Trailers and tables of contents are at the end.
        let at = match input.u8() % 4 {
            0 => low % (used + 1),
            1 => used.saturating_sub(low % 256),
            2 => used.saturating_sub(low % 32),
            _ => low % 64,
        };
        for place in at..(at + 1 + usize::from(input.u8() % 8)).min(bytes.len()) {
            bytes[place] = input.u8();
        }
        if input.u8() == 0 {
            bytes.truncate(at);
            files[which].2 = at as u64;
        }
    }
    let dir = scratch("index");
    for (name, bytes, size) in &files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::File::create(path).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(*size).unwrap();
    }
    if is_own {
        vouch_for(&dir);
    }
    match Index::open(&dir) {
        Ok(index) => {
            assert!(is_own, "an index from elsewhere was opened");
            let _ = index.contains(&event(7).id);
            let found = index.query(&Filter::default());
            let _ = found.and_then(|mut found| found.try_for_each(|each| each.map(drop)));
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
    }
    fs::remove_dir_all(&dir).unwrap();
}

fn event(number: u32) -> Event {
    let mut id = [number as u8; 32];
    id[..4].copy_from_slice(&number.to_be_bytes());
    Event {
        id: Id(id),
        pubkey: [number as u8 % 5; 32],
        created_at: number,
        kind: 1,
        tags: vec![vec!["t".into(), format!("{}", number % 7)]],
        content: String::new(),
        sig: [0; 64],
    }
}

fn record(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(event, Flags::default(), false, 4096, &mut bytes).unwrap();
    bytes
}

/// An empty directory of this thread.
fn scratch(name: &str) -> PathBuf {
    let thread = std::thread::current().id();
    let name = format!("deedbook-{name}-{}-{thread:?}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn read_all(root: &Path, dir: &Path, files: &mut Vec<Named>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            read_all(root, &path, files);
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        let (size, used) = (bytes.len(), bytes.iter().rposition(|&byte| byte != 0));
        bytes.truncate(used.map_or(0, |last| last + 1));
        files.push((path.strip_prefix(root).unwrap().into(), bytes, size as u64));
    }
}
