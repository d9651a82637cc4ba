//! Read the intact parts of a store that is not open: segments, write-ahead log, and the saved
//! bytes of earlier cuts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::log::{Findings, Format, all_damages, cursor_over, inspect_patiently, loss, place_of};
use crate::mode::Depth;
use crate::nostr::bytes::page::Header;
use crate::nostr::log::codec::Codec;
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::log::entry::{Entry, HEADER_BYTES, Lsn, Tag, file_number};
use crate::nostr::log::files::FileFormat;
use crate::nostr::pages::compacted::{Compacted, number_of};
use crate::nostr::pages::file_names::{parse_name, segments_dir};
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, PageDamage, Segment};
use crate::nostr::pages::walk::Forward;
use crate::scan::framing::Frame as _;
use crate::scan::search::find_intact;
use crate::scan::{Damage, Scanned, Scanner, Verdict};
use crate::sidecar::Loss;
use crate::storage::{Access, File};

/// The number of bytes to read for a guess of the page size, if the header is lost.
const GUESS_BYTES: u32 = 4 << 20;
/// Possible page sizes, the likelier first.
const PAGE_BYTES: [u32; 7] = [4096, 8192, 16_384, 2048, 1024, 32_768, 65_536];
/// The mark in the name of a file with cut bytes.
const CUT: &str = ".cut-";

/// A file of pages.
#[derive(Debug)]
pub struct Pages {
    pub id: u32,
    pub segment: Segment,
    /// The error of an invalid header.
    pub header_damage: Option<Damage>,
    /// Whether the file is the cut end of a segment.
    is_cut: bool,
}

/// A file of the write-ahead log.
#[derive(Debug)]
pub struct LogFile {
    /// `None` for a file with cut bytes.
    pub number: Option<u64>,
    pub path: PathBuf,
}

/// The facts about a file of the write-ahead log apart from its entries.
#[derive(Debug, Default)]
pub struct LogState {
    pub damages: Vec<Damage>,
    /// The state of the file's end, if the file has a header.
    pub verdict: Option<Verdict>,
    /// The byte after the entries before any damage.
    pub valid_end: u64,
    /// Acknowledged entries missing at the file's end.
    pub loss: Option<Loss>,
    pub bytes: u64,
    /// The last checkpoint in the header. The log writes the header after the entry, and the header
    /// counts if the entry is damaged.
    pub named: Lsn,
}

/// An entry, and the place of the entry.
pub struct Entered<'a> {
    pub lsn: Lsn,
    pub offset: u64,
    pub entry: Entry<'a>,
    /// Whether the entry is certainly no part of a damaged entry.
    pub is_proved: bool,
}

/// The files of a store that may hold events.
#[derive(Debug, Default)]
pub struct Files {
    pub segments: Vec<(u32, PathBuf)>,
    pub cut_segments: Vec<(u32, PathBuf)>,
    /// The oldest first; then the files with cut bytes.
    pub logs: Vec<LogFile>,
    /// The intent of a compaction that counts.
    pub compacted: Option<Compacted>,
}

impl Files {
    pub fn list(options: &Options, dir: &Path) -> Result<Self> {
        let compacted = match Compacted::load(&*options.storage, dir) {
            // Without the intent, old and new segments count, and each event counts once.
            Err(e) if e.kind() == ErrorKind::Corrupt => None,
            loaded => loaded?,
        };
        let mut files = Self::default();
        for (base, path) in names(options, &segments_dir(dir))? {
            if !is_named(&path, &base) {
                files.cut_segments.extend(parse_name(&base).map(|id| (id, path)));
            } else if let Some(id) = number_of(&base, compacted.as_ref()) {
                files.segments.push((id, path));
            }
        }
        files.compacted = compacted;
        files.segments.sort();
        files.cut_segments.sort();
        for (base, path) in names(options, &dir.join(WAL_NAME))? {
            let Some(number) = file_number(base.as_ref()) else { continue };
            let number = is_named(&path, &base).then_some(number);
            files.logs.push(LogFile { number, path });
        }
        files.logs.sort_by_key(|log| (log.number.is_none(), log.number, log.path.clone()));
        Ok(files)
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.cut_segments.is_empty() && self.logs.is_empty()
    }
}

/// The files in a directory, each with its name from before the cut.
fn names(options: &Options, dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    let names = match options.storage.list(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        names => names.map_err(|e| Error::io("list the directory", dir, e))?,
    };
    let base_of = |name: &str| name.split_once(CUT).map_or(name, |(base, _)| base).to_owned();
    let found = names.iter().filter_map(|name| Some((base_of(name.to_str()?), dir.join(name))));
    Ok(found.collect())
}

fn is_named(path: &Path, base: &str) -> bool {
    path.file_name().is_some_and(|name| name == base)
}

impl Pages {
    /// Open a segment. If its header is damaged, the page size that fits the most records is used;
    /// `None` if no size fits.
    pub fn open(options: &Options, id: u32, path: &Path) -> Result<Option<Self>> {
        let reason = match Segment::open(&*options.storage, path, Access::Read) {
            Ok(segment) if segment.header().segment == id => {
                return Ok(Some(Self { id, segment, header_damage: None, is_cut: false }));
            }
            Ok(segment) => format!("segment {}, its name says {id}", segment.header().segment),
            Err(e) if [ErrorKind::NotALog, ErrorKind::Unsupported].contains(&e.kind()) => {
                e.message().to_owned()
            }
            Err(e) => return Err(e),
        };
        let Some(segment) = guess(options, id, path, false)? else { return Ok(None) };
        let end = segment.header().page_bytes.into();
        let header_damage = Some(Damage::of_file(path, 0..end, reason));
        Ok(Some(Self { id, segment, header_damage, is_cut: false }))
    }

    /// Open the cut end of a segment; `None` without a record.
    pub fn open_cut(options: &Options, id: u32, path: &Path) -> Result<Option<Self>> {
        let segment = guess(options, id, path, true)?;
        Ok(segment.map(|segment| Self { id, segment, header_damage: None, is_cut: true }))
    }

    pub fn scan(&self) -> Forward {
        match self.is_cut {
            true => self.segment.scan_pages(),
            false => self.segment.scan(0),
        }
    }

    pub fn damaged(&self, damage: PageDamage) -> Damage {
        Damage { path: Some(self.segment.path().into()), ..damage.of(self.id) }
    }
}

/// Open a file with the page size that gives the most records and the least damage.
fn guess(options: &Options, id: u32, path: &Path, is_cut: bool) -> Result<Option<Segment>> {
    let mut best: Option<(i64, Segment)> = None;
    for page_bytes in PAGE_BYTES {
        let header = Header {
            page_bytes,
            created_at: 0,
            segment: id,
            records: 0,
            next_free: page_bytes,
            compacted_at: 0,
        };
        let segment = match Segment::open_as(&*options.storage, path, Access::Read, header) {
            Err(e) if e.kind() == ErrorKind::NotALog => return Ok(None),
            opened => opened?,
        };
        let mut scan = if is_cut { segment.scan_pages() } else { segment.scan(0) };
        let (mut records, mut score) = (0, 0);
        while let Some(found) = scan.next()? {
            let end = match found {
                Found::Record(record) => {
                    (records, score) = (records + 1, score + 1);
                    record.end
                }
                Found::Damage(damage) => {
                    score -= 1;
                    damage.end
                }
            };
            if end > GUESS_BYTES {
                break;
            }
        }
        if records > 0 && best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, segment));
        }
    }
    Ok(best.map(|(_, segment)| segment))
}

impl LogFile {
    /// Call `take` with every intact entry.
    pub fn each(
        &self,
        options: &Options,
        take: &mut dyn FnMut(Entered<'_>) -> Result<()>,
    ) -> Result<LogState> {
        let file = options.wal().file(Lsn(1), Lsn(0));
        let (place, common) = place_of::<FileFormat>(&self.path, &file)?;
        let found = match self.number {
            Some(_) => inspect_patiently::<FileFormat>(&file, &place, Depth::Full),
            None => Err(Error::new(ErrorKind::NotALog, "saved")),
        };
        let found = match found {
            Ok(found) => found,
            Err(e) if [ErrorKind::NotALog, ErrorKind::LostRecords].contains(&e.kind()) => {
                return self.each_raw(options, &e, take);
            }
            Err(e) => return Err(e),
        };
        let mut records = cursor_over(&common, &place, &found).rescuing();
        while let Some((_, offset, frame)) = records.advance()? {
            let is_proved = records.is_proved();
            let raw = FileFormat::show(None, offset, frame, records.bytes());
            give(raw.tag, raw.data, offset, is_proved, take)?;
        }
        let Findings { verdict, extent, .. } = &found.findings;
        let damages = all_damages(&found, records.damages()).into_iter();
        let damages = damages.map(|damage| Damage { path: Some(self.path.clone()), ..damage });
        Ok(LogState {
            damages: damages.collect(),
            verdict: Some(*verdict),
            valid_end: extent.end,
            loss: loss(&found),
            bytes: found.space.whole().1,
            named: found.format.checkpoint,
        })
    }

    fn begins_with_header(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let cut_at = name.split_once(CUT).map(|(_, at)| at.split('.').next() == Some("0"));
        self.number.is_some() || cut_at == Some(true)
    }

    /// Call `take` with the entries of a file without a header. Entries after damage are not
    /// proved.
    fn each_raw(
        &self,
        options: &Options,
        why: &Error,
        take: &mut dyn FnMut(Entered<'_>) -> Result<()>,
    ) -> Result<LogState> {
        let failed = |e| Error::io("read the log", &self.path, e);
        let file: Arc<dyn File> =
            options.storage.open(&self.path, Access::Read).map_err(failed)?.into();
        let end = file.len().map_err(failed)?;
        let mut state = LogState { bytes: end, ..LogState::default() };
        if self.number.is_some() {
            let (path, reason) = (self.path.clone(), why.message().to_owned());
            let acknowledged = why.kind() == ErrorKind::LostRecords;
            state.loss = acknowledged.then_some(Loss { records: 0, first: 0, offset: 0 });
            state.damages.push(Damage::of_file(path, 0..end, reason));
        }
        let codec = Codec::new(options.wal().data_bytes_max);
        // A file with cut bytes may begin with an entry.
        let start = if self.begins_with_header() { HEADER_BYTES as u64 } else { 0 };
        let mut scanner = Scanner::new(codec, start, end);
        let mut is_proved = true;
        loop {
            match scanner.next(&*file).map_err(failed)? {
                Scanned::Record { offset, frame } => {
                    let data = frame.payload(scanner.bytes());
                    give(frame.tag, data, offset, is_proved, take)?;
                }
                Scanned::Stop { offset, .. } => {
                    is_proved = false;
                    let next = find_intact(&*file, &codec, offset + 1, end).map_err(failed)?;
                    match next {
                        Some(next) => scanner.seek(next),
                        None => return Ok(state),
                    }
                }
                Scanned::End => return Ok(state),
            }
        }
    }
}

fn give(
    tag: Tag,
    data: &[u8],
    offset: u64,
    is_proved: bool,
    take: &mut dyn FnMut(Entered<'_>) -> Result<()>,
) -> Result<()> {
    match Entry::parse(tag.op, data) {
        Ok(entry) => take(Entered { lsn: tag.lsn, offset, entry, is_proved }),
        // The checksum of the entry is right, and its meaning is unknown.
        Err(_) => Ok(()),
    }
}
