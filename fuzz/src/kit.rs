//! Input, log images, an independent oracle, and a file system that limits the size of requests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::book::{Layout, Options};
use deedbook::report::{Verdict, VerifyReport};
use deedbook::storage::{Access, File, FileId, LockAttempt, Memory, Storage};
use deedbook::{Durability, Result};

pub const HEADER: usize = 16;
/// Longer images cost time without finding more: three blocks of the index fit.
pub const IMAGE_MAX: usize = 208 << 10;
/// The largest read of a small file: the scanner's blocks.
const FIXED_READ_MAX: u64 = 1 << 20;

/// Mug and jam.
pub type Event = (u32, Vec<u8>);

/// Takes numbers from the front of the fuzzer's bytes, and zeros after the end.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    fn number(&mut self, len: usize) -> u64 {
        let mut bytes = [0; 8];
        let taken = self.bytes(len);
        bytes[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(bytes)
    }

    pub fn u8(&mut self) -> u8 {
        self.number(1) as u8
    }

    pub fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    pub fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    pub fn u64(&mut self) -> u64 {
        self.number(8)
    }

    /// A number of three bytes below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.number(3) as usize % bound.max(1)
    }

    /// A u64 near an interesting number, or any u64.
    pub fn edge(&mut self) -> u64 {
        let near = self.u8();
        let base = match near & 7 {
            0 => return self.u64(),
            1 => 0,
            2 => u64::MAX,
            3 => 1 << 63,
            4 => 1 << 32,
            5 => 1 << 31,
            6 => 16,
            _ => u64::from(self.u16()),
        };
        base.wrapping_add(u64::from(near >> 3)).wrapping_sub(16)
    }
}

const fn crc_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut at = 256;
    while at < 8 * 256 {
        let before = tables[at / 256 - 1][at % 256];
        tables[at / 256][at % 256] = (before >> 8) ^ tables[0][(before & 255) as usize];
        at += 1;
    }
    tables
}

static CRC: [[u32; 256]; 8] = crc_tables();

/// CRC-32 as of zlib, so that the crate is not checked against itself.
pub fn crc32(bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let crc = eights.iter().fold(!0u32, |crc, eight| {
        let [a, b, c, d, e, f, g, h] = *eight;
        let [i, j, k, l] = (crc ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        let look = |table: usize, byte: u8| CRC[table][usize::from(byte)];
        let front = look(7, i) ^ look(6, j) ^ look(5, k) ^ look(4, l);
        front ^ look(3, e) ^ look(2, f) ^ look(1, g) ^ look(0, h)
    });
    let step = |crc: u32, byte: &u8| CRC[0][usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    !rest.iter().fold(crc, step)
}

pub fn header(first: u64) -> Vec<u8> {
    [&b"KOOB\x01\0\0\0"[..], &first.to_le_bytes()].concat()
}

/// A deed of the `packed` layout.
pub fn deed(mug: u32, jam: &[u8]) -> Vec<u8> {
    let len = (jam.len() as u64 + 4).to_le_bytes();
    let mut out = Vec::with_capacity(jam.len() + 24);
    out.extend_from_slice(&len);
    out.extend_from_slice(&mug.to_le_bytes());
    out.extend_from_slice(jam);
    let sum = crc32(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(&len);
    out
}

/// The byte after the deed at byte `at` of a log in `layout`, if the deed has this mug and jam.
pub fn end_of_deed(layout: Layout, log: &[u8], at: u64, mug: u32, jam: &[u8]) -> Option<u64> {
    let len = (jam.len() as u64 + 4).to_le_bytes();
    let sum = crc32(&[&len[..], &mug.to_le_bytes(), jam].concat()).to_le_bytes();
    let any = None;
    let mug = mug.to_le_bytes();
    let fields: &[Option<&[u8]>] = match layout {
        Layout::Packed => &[Some(&len), Some(&mug), Some(jam), Some(&sum), Some(&len)],
        Layout::Slots => &[Some(&len), Some(&mug), Some(jam), Some(&len)],
        Layout::Padded => &[Some(&len), Some(&mug), any, Some(jam), Some(&sum), any, Some(&len)],
        other => unreachable!("layout {other:?}"),
    };
    let mut at = at as usize;
    for field in fields {
        // Padding between fields, from the compiler of the reference implementation.
        let end = at + field.map_or(4, <[u8]>::len);
        let there = log.get(at..end)?;
        if field.is_some_and(|field| field != there) {
            return None;
        }
        at = end;
    }
    Some(at as u64)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// An intact deed of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub at: usize,
    pub end: usize,
    pub sum: u32,
}

/// The intact deed at a byte of a log, if any. A second implementation of the specification.
pub fn deed_at(log: &[u8], at: usize, limit: u64) -> Option<Place> {
    let len = u64_at(log, at)?;
    if len < 4 || len > limit || len > log.len() as u64 {
        return None;
    }
    let body_end = at + 8 + len as usize;
    let sum = u32_at(log, body_end)?;
    let intact = u64_at(log, body_end + 4)? == len && crc32(&log[at..body_end]) == sum;
    intact.then_some(Place { at, end: body_end + 12, sum })
}

/// The intact deeds from byte 16 up to the first damage.
pub fn strict(log: &[u8], limit: u64) -> Vec<Place> {
    let mut places = Vec::new();
    let mut at = HEADER;
    while let Some(place) = deed_at(log, at, limit) {
        at = place.end;
        places.push(place);
    }
    places
}

/// Mug and jam of an intact deed.
pub fn event_at(log: &[u8], place: Place) -> (u32, &[u8]) {
    (u32_at(log, place.at + 8).unwrap(), &log[place.at + 12..place.end - 12])
}

/// `len` repeating bytes without a 0.
pub fn filler(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed) | 1).collect()
}

/// A log as the input describes it.
pub fn image(input: &mut Input) -> Vec<u8> {
    let kind = input.u8();
    if kind & 7 == 0 {
        return input.rest().iter().take(IMAGE_MAX).copied().collect();
    }
    let mut log = match kind & 7 {
        1..=4 => header(1),
        5 => header(input.edge()),
        6 => header(0),
        _ => input.bytes(HEADER).to_vec(),
    };
    pieces(input, &mut log);
    log.truncate(IMAGE_MAX);
    log
}

/// The records of a format in bytes.
pub struct Records {
    /// Encodes an intact record. A format without tags ignores the number.
    pub encode: fn(u32, &[u8]) -> Vec<u8>,
    /// A byte of a field, chosen by the first number, in a record with the second number of bytes.
    pub field: fn(u8, usize) -> usize,
    /// Longer images get no more records.
    pub bytes_max: usize,
}

const DEEDS: Records = Records {
    encode: deed,
    field: |field, end| match field % 5 {
        0 => usize::from(field >> 3) % 8,
        1 => 8,
        2 => 12 + usize::from(field >> 3) % 8,
        3 => end - 12,
        _ => end - 8 + usize::from(field >> 3) % 8,
    },
    bytes_max: IMAGE_MAX,
};

/// Write deeds and damage after the end of a log, until the input says 0.
pub fn pieces(input: &mut Input, log: &mut Vec<u8>) {
    DEEDS.pieces(input, log);
}

impl Records {
    /// Write records and damage after the end of a log, until the input says 0.
    pub fn pieces(&self, input: &mut Input, log: &mut Vec<u8>) {
        let record = self.encode;
        while !input.is_empty() && log.len() < self.bytes_max {
            let piece = input.u8();
            let seed = piece >> 4;
            match piece & 15 {
                0 => return,
                1..=3 => {
                    let len = usize::from(input.u8());
                    let (mug, jam) = (input.u32(), input.bytes(len));
                    log.extend(record(mug, jam));
                }
                4 => {
                    let len = usize::from(input.u16());
                    log.extend(record(7, &filler(len >> if seed < 14 { 5 } else { 0 }, seed)));
                }
                5 => (0..input.u8()).for_each(|i| log.extend(record(i.into(), &[i]))),
                6 => {
                    let len = usize::from(input.u8());
                    log.extend_from_slice(input.bytes(len));
                }
                7 => log.resize(log.len() + usize::from(input.u16() & 0x3fff), 0),
                // A record with whole records in the payload.
                8 => {
                    let inner: Vec<u8> =
                        (0..seed).flat_map(|i| record(i.into(), &[i, 1, 2])).collect();
                    log.extend(record(1, &inner));
                }
                // The same, torn or damaged.
                9 => {
                    let inner: Vec<u8> =
                        (0..=seed).flat_map(|i| record(i.into(), &[i, 1, 2])).collect();
                    let mut outer = record(1, &inner);
                    let cut = 1 + input.below(outer.len());
                    outer.truncate(cut);
                    log.extend(outer);
                }
                // One field altered: length, mug, payload, checksum, trailer.
                10 | 11 => {
                    let mut bytes = record(3, &filler(8 + usize::from(seed), seed));
                    let end = bytes.len();
                    let (field, with) = (input.u8(), input.u8() | 1);
                    bytes[(self.field)(field, end)] ^= with;
                    log.extend(bytes);
                }
                // A length with nothing after it.
                12 => log.extend(input.edge().to_le_bytes()),
                // Duplicated bytes of the log so far.
                13 => {
                    let from = input.below(log.len());
                    let to = (from + usize::from(input.u16())).min(log.len());
                    log.extend_from_within(from..to);
                }
                14 => {
                    let to = log.len().saturating_sub(usize::from(input.u8()));
                    log.truncate(to);
                }
                _ => {
                    let at = input.below(log.len());
                    if let Some(byte) = log.get_mut(at) {
                        *byte ^= input.u8() | 1;
                    }
                }
            }
        }
    }
}

/// The fields of a mark, and its slot's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    pub flags: u16,
    pub seq: u64,
    pub first: u64,
    pub records: u64,
    pub end: u64,
    pub last_offset: u64,
    pub first_sum: u32,
    pub last_sum: u32,
    pub index_entries: u64,
    pub index_chain: u32,
    pub file: FileId,
}

impl Slot {
    /// The true mark of a log after `count` deeds.
    pub fn of(first: u64, places: &[Place], count: usize, file: FileId) -> Self {
        let last = count.checked_sub(1).map(|i| places[i]);
        Self {
            first,
            records: count as u64,
            end: last.map_or(HEADER, |place| place.end) as u64,
            last_offset: last.map_or(0, |place| place.at) as u64,
            first_sum: last.map_or(0, |_| places[0].sum),
            last_sum: last.map_or(0, |place| place.sum),
            file,
            ..Self::default()
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"DBMK\x01\0".to_vec();
        out.extend(self.flags.to_le_bytes());
        for number in [self.seq, self.first, self.records, self.end, self.last_offset] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.first_sum.to_le_bytes());
        out.extend(self.last_sum.to_le_bytes());
        out.extend(self.index_entries.to_le_bytes());
        out.extend(u64::from(self.index_chain).to_le_bytes());
        for number in [self.file.device, self.file.inode, self.file.created_ns] {
            out.extend(number.to_le_bytes());
        }
        out.resize(124, 0);
        out.extend(crc32(&out).to_le_bytes());
        out
    }

    /// Set one field to any value.
    pub fn lie(&mut self, input: &mut Input) {
        let (field, value) = (input.u8(), input.edge());
        match field % 11 {
            0 => self.flags = value as u16,
            1 => self.seq = value,
            2 => self.first = value,
            3 => self.records = value,
            4 => self.end = value,
            5 => self.last_offset = value,
            6 => self.first_sum = value as u32,
            7 => self.last_sum = value as u32,
            8 => self.index_entries = value,
            9 => self.index_chain = value as u32,
            _ => self.file.inode = value,
        }
    }
}

/// Whether a mark's file has an intact slot.
pub fn has_intact_slot(mark: &[u8]) -> bool {
    let intact = |at: usize| {
        let slot = mark.get(at..at + 128)?;
        Some(slot.starts_with(b"DBMK\x01\0") && u32_at(slot, 124)? == crc32(&slot[..124]))
    };
    [0, 512].into_iter().any(|at| intact(at).unwrap_or(false))
}

/// A file system in memory that panics for requests beyond a file's size.
#[derive(Clone, Debug, Default)]
pub struct Watch(pub Memory);

#[derive(Debug)]
struct WatchFile(Box<dyn File>);

impl File for WatchFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn id(&self) -> io::Result<FileId> {
        self.0.id()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (asked, there) = (buf.len() as u64, self.0.len()?);
        assert!(asked <= there.max(FIXED_READ_MAX), "room for {asked} bytes, the file has {there}");
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(buf.len() as u64);
        assert!(end <= 64 << 20, "write up to byte {end}");
        self.0.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        assert!(len <= 64 << 20, "set to {len} bytes");
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        assert!(len <= 64 << 20, "reserve {len} bytes");
        self.0.allocate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Storage for Watch {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(Box::new(WatchFile(self.0.open(path, access)?)))
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Ok(Box::new(WatchFile(self.0.create_new(path, mode)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(dir)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.0.is_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.0.lock(path, sign)
    }
}

/// A book's directory in a separate file system.
#[derive(Debug)]
pub struct World {
    pub storage: Watch,
    pub options: Options,
    pub dir: PathBuf,
}

impl World {
    pub fn new(dir: &str) -> Self {
        let storage = Watch::default();
        let options =
            Options::new().durability(Durability::Manual).storage(Arc::new(storage.clone()));
        let world = Self { storage, options, dir: dir.into() };
        world.storage.create_dir(&world.dir).unwrap();
        world
    }

    /// Whether the directory's name tells the epoch.
    pub fn is_numbered(&self) -> bool {
        self.dir.to_str().is_some_and(|dir| dir.starts_with("/0i"))
    }

    pub fn log_path(&self) -> PathBuf {
        self.dir.join("book.log")
    }

    pub fn sidecar(&self, name: &str) -> PathBuf {
        self.dir.join(".deedbook").join(name)
    }

    pub fn log(&self) -> Vec<u8> {
        self.read(&self.log_path()).unwrap_or_default()
    }

    pub fn log_id(&self) -> FileId {
        self.storage
            .open(&self.log_path(), Access::Read)
            .map_or(FileId::default(), |file| file.id().unwrap())
    }

    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let file = self.storage.open(path, Access::Read).ok()?;
        let mut bytes = vec![0; file.len().unwrap() as usize];
        let read = file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(read, bytes.len());
        Some(bytes)
    }

    pub fn put(&self, path: &Path, bytes: &[u8]) {
        self.storage.create_dir(path.parent().unwrap()).unwrap();
        let file = match self.storage.open(path, Access::Write) {
            Ok(file) => file,
            Err(_) => self.storage.create_new(path, 0o644).unwrap(),
        };
        file.set_len(bytes.len() as u64).unwrap();
        if !bytes.is_empty() {
            file.write_at(bytes, 0).unwrap();
        }
    }

    /// Check the book, and remove the note of damage, which would refuse the next writer.
    pub fn check(&self) -> Result<VerifyReport> {
        let report = self.options.verify(&self.dir)?;
        let note = self.dir.join(".deedbook/damage");
        let is_noted = self.read(&note).is_some();
        assert_eq!(is_noted, report.noted, "{report:?}");
        assert!(!is_noted || report.verdict == Verdict::Corrupt, "{report:?}");
        if is_noted {
            self.storage.remove(&note).unwrap();
        }
        Ok(report)
    }

    /// All files of the book, without the lock, which a refused writer leaves behind.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for dir in [self.dir.clone(), self.dir.join(".deedbook")] {
            for name in self.storage.list(&dir).unwrap() {
                let path = dir.join(&name);
                if name != "lock" && !self.storage.is_dir(&path) {
                    files.insert(path.clone(), self.read(&path).unwrap());
                }
            }
        }
        files
    }

    /// The same files with the same identities in a file system without open files, as after a
    /// crash of the process.
    pub fn after_death(&self) -> Self {
        let twin = Self::new(self.dir.to_str().unwrap());
        let mut files: Vec<_> = self
            .files()
            .into_iter()
            .map(|(path, bytes)| {
                let file = self.storage.open(&path, Access::Read).unwrap();
                (file.id().unwrap().inode, path, bytes)
            })
            .collect();
        files.sort();
        let (mut next, spare) = (1, Path::new("/spare"));
        for (inode, path, bytes) in files {
            while next < inode {
                twin.storage.create_new(spare, 0o600).unwrap();
                twin.storage.remove(spare).unwrap();
                next += 1;
            }
            twin.put(&path, &bytes);
            next += 1;
        }
        assert_eq!(twin.log_id(), self.log_id());
        let storage = Arc::new(twin.storage.clone());
        Self { options: self.options.clone().storage(storage), ..twin }
    }
}
