//! Logs to break: the files, the appended records, and the acknowledged records.

use std::cell::OnceCell;

use crate::support::formats::framing::crc32;
use crate::support::formats::oracle::{Answer, Evidence, answer};
use crate::support::formats::subject::Event;
use crate::support::prelude::*;

pub const DIR: &str = "/log";

pub fn in_memory(format: &dyn Format) -> (Memory, At) {
    let (memory, path) = (Memory::new(), format.path_in(Path::new(DIR)));
    path.parent().into_iter().for_each(|dir| memory.create_dir(dir).unwrap());
    let at = At::memory(&memory, path);
    (memory, at)
}

/// Files of a file system in memory, with their inodes: a mark notes the log's inode.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub bytes: BTreeMap<PathBuf, Vec<u8>>,
    inodes: BTreeMap<PathBuf, u64>,
}

impl Files {
    pub fn of(memory: &Memory) -> Self {
        let mut files = Self::default();
        files.collect(memory, Path::new(DIR));
        files
    }

    fn collect(&mut self, memory: &Memory, dir: &Path) {
        for name in memory.list(dir).unwrap_or_default() {
            let path = dir.join(name);
            if memory.is_dir(&path) {
                self.collect(memory, &path);
            } else {
                let inode = memory.open(&path, Access::Read).unwrap().id().unwrap().inode;
                self.inodes.insert(path.clone(), inode);
                self.bytes.insert(path.clone(), read_file(memory, &path));
            }
        }
    }

    pub fn restore(&self) -> Memory {
        let (memory, spare) = (Memory::new(), Path::new("/spare"));
        let inode = |path: &PathBuf| self.inodes.get(path).copied().unwrap_or(u64::MAX);
        let mut paths: Vec<_> = self.bytes.keys().collect();
        paths.sort_by_key(|path| inode(path));
        let mut next = 1;
        for path in paths {
            let dirs: Vec<_> = path.ancestors().skip(1).collect();
            dirs.iter().rev().for_each(|dir| memory.create_dir(dir).unwrap());
            while next < inode(path) && inode(path) < u64::MAX {
                memory.create_new(spare, 0o600).unwrap();
                memory.remove(spare).unwrap();
                next += 1;
            }
            write_file(&memory, path, &self.bytes[path]);
            next += 1;
        }
        memory
    }

    pub fn without_sidecar(&self) -> Self {
        let mut files = self.clone();
        files.bytes.retain(|path, _| !is_beside(path));
        files
    }

    /// The same with new inodes of the log's files: the log was copied together with its sidecar.
    pub fn copied(mut self) -> Self {
        self.inodes.retain(|path, _| is_beside(path));
        self
    }

    /// The same with a sidecar file of the others.
    pub fn with_beside(&self, others: &Self, name: &str) -> Self {
        let mut files = self.clone();
        for (path, bytes) in &others.bytes {
            if is_beside(path) && path.ends_with(name) {
                files.bytes.insert(path.clone(), bytes.clone());
            }
        }
        files
    }

    /// All but the lock, which a refused writer leaves, and the note of a check.
    pub fn unlocked(memory: &Memory) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut bytes = Self::of(memory).bytes;
        let is_note = |path: &Path| is_beside(path) && path.ends_with("damage");
        bytes.retain(|path, _| !path.ends_with("lock") && !is_note(path));
        bytes
    }

    pub fn named(&self, name: &str) -> Option<&Vec<u8>> {
        let mut found = self.bytes.iter().filter(|(path, _)| is_beside(path));
        found.find(|(path, _)| path.ends_with(name)).map(|(_, bytes)| bytes)
    }

    /// The log's bytes in one piece; zeros if a segment is missing or short.
    pub fn space(&self, format: &dyn Format) -> Vec<u8> {
        let path = format.path_in(Path::new(DIR));
        let Some(size) = format.segment_bytes().map(|size| size as usize) else {
            return self.bytes.get(&format.first_file(&path)).cloned().unwrap_or_default();
        };
        let mut space = Vec::new();
        for (path, bytes) in &self.bytes {
            // A segment with an impossible name holds no bytes of the log.
            if let Some(index) = segment_index(path).filter(|&index| index < 1 << 32) {
                space.resize(space.len().max(index * size), 0);
                space.truncate(index * size);
                space.extend(&bytes[..bytes.len().min(size)]);
            }
        }
        space
    }

    pub fn with_space(&self, format: &dyn Format, space: &[u8]) -> Self {
        let (mut files, path) = (self.clone(), format.path_in(Path::new(DIR)));
        let first = format.first_file(&path);
        let Some(size) = format.segment_bytes().map(|size| size as usize) else {
            files.bytes.insert(first, space.to_vec());
            return files;
        };
        let lowest = files.bytes.keys().filter_map(|path| segment_index(path)).min().unwrap_or(0);
        files.bytes.retain(|path, _| segment_index(path).is_none());
        for (index, piece) in space.chunks(size).enumerate().skip(lowest) {
            files.bytes.insert(path.join(format!("{index:020}.wal")), piece.to_vec());
        }
        if space.len() <= lowest * size {
            files.bytes.insert(path.join(format!("{lowest:020}.wal")), Vec::new());
        }
        files
    }
}

fn is_beside(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".deedbook")
}

pub fn segment_index(path: &Path) -> Option<usize> {
    path.file_name()?.to_str()?.strip_suffix(".wal")?.parse().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Left by a writer after a sync of so many records, appends of the rest, and a crash.
    Open(usize),
    /// The mark of a writer that closed the log with so many records; another program appended the rest.
    Closed(usize),
    Nothing,
}

pub fn besides(records: usize) -> [Beside; 6] {
    use Beside::{Closed, Nothing, Open};
    [Open(records), Open(records / 2), Open(0), Closed(records), Closed(records / 2), Nothing]
}

pub struct Specimen<'a> {
    pub format: &'a dyn Format,
    pub how: How,
    pub events: Vec<Event>,
    /// The starts of the records, and the end of the last record.
    pub edges: Vec<usize>,
    pub space: Vec<u8>,
    pub files: Files,
    pub beside: Beside,
    pub evidence: Evidence,
    pub part: OnceCell<Split>,
}

impl<'a> Specimen<'a> {
    pub fn new(format: &'a dyn Format, events: &[Event], beside: Beside) -> Self {
        Self::with(format, MANUAL, events, beside)
    }

    pub fn with(format: &'a dyn Format, how: How, events: &[Event], beside: Beside) -> Self {
        let framing = format.framing();
        let mut space = framing.file_header(format.first_ordinal());
        let mut edges = vec![space.len()];
        let mut events = events.to_vec();
        for (tag, bytes) in &mut events {
            if !format.framing().is_book() {
                *tag = 0;
            }
            space.extend(framing.encode(*tag, bytes));
            edges.push(space.len());
        }
        let (memory, at) = in_memory(format);
        let (own, synced, closes) = match beside {
            Beside::Open(synced) => (events.len(), synced, false),
            Beside::Closed(own) => (own, own, true),
            Beside::Nothing => (events.len(), events.len(), false),
        };
        let log = format.open(&at, Mode::Create, how).unwrap();
        for (i, (tag, bytes)) in events.iter().enumerate().take(own) {
            log.append(*tag, bytes).unwrap();
            if i + 1 == synced {
                log.sync().unwrap();
            }
        }
        if closes {
            log.close().unwrap();
        }
        let written = Files::of(&memory);
        if framing == Framing::Slots {
            let whole = match own == events.len() {
                true => written.space(format),
                false => Self::with(format, how, &events, Beside::Nothing).space,
            };
            space[..edges[0]].copy_from_slice(&whole[..edges[0]]);
        }
        let own_end = edges[own].min(written.space(format).len());
        let same = framing.foretold(&written.space(format)[..own_end])
            == framing.foretold(&space[..own_end]);
        assert!(same, "other bytes were written");
        let mut files = written.with_space(format, &space);
        let mut evidence = Evidence {
            limit: how.record_bytes_max.map_or(framing.limit(), |limit| limit as usize),
            ..Evidence::default()
        };
        if beside == Beside::Nothing {
            files = files.without_sidecar();
        } else {
            let end = edges[synced];
            evidence.acknowledged = Some(end);
            evidence.durable = (!closes).then_some(end);
            evidence.borders = index_entries(&files);
            evidence.borders.push(end);
        }
        Self { format, how, events, edges, space, files, beside, evidence, part: OnceCell::new() }
    }

    pub fn ordinal(&self, i: usize) -> u64 {
        match self.format.framing().is_book() {
            true => self.format.first_ordinal() + i as u64,
            false => self.edges[i] as u64,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.format.path_in(Path::new(DIR))
    }

    pub fn answer(&self, space: &[u8]) -> Answer {
        answer(self.format.framing(), space, self.edges[0], &self.edges, &self.evidence)
    }

    pub fn broken(&self, space: &[u8]) -> Files {
        self.files.with_space(self.format, space)
    }
}

/// Offsets in the index, as far as the mark vouches for them; tables in `src/sidecar`.
fn index_entries(files: &Files) -> Vec<usize> {
    let (Some(mark), Some(index)) = (files.named("mark"), files.named("index")) else {
        return Vec::new();
    };
    let number = |bytes: &[u8], at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
    };
    let slots = [0, 512].into_iter().filter_map(|at| mark.get(at..at + 128));
    let slots = slots.filter(|slot| slot[124..] == crc32(&slot[..124]).to_le_bytes());
    let newest = slots.max_by_key(|slot| number(slot, 8)).unwrap();
    let entries = number(newest, 56).unwrap() as usize;
    (0..entries).filter_map(|i| number(index, 16 + 24 * i + 8)).map(|at| at as usize).collect()
}
