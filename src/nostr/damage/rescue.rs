//! What is intact in the files of a store that is not opened: in its segments, its write-ahead log, and
//! what was cut off them and saved.

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
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, PageDamage, Segment};
use crate::nostr::pages::segments::{Segments, parse_name};
use crate::nostr::pages::walk::Forward;
use crate::scan::framing::Frame as _;
use crate::scan::search::find_intact;
use crate::scan::{Scanned, Scanner, Verdict};
use crate::sidecar::Loss;
use crate::storage::{Access, File};

/// Of pages whose header is lost, those that are looked at for their size.
const GUESS_BYTES: u32 = 4 << 20;
/// The likelier come first.
const PAGE_BYTES: [u32; 7] = [4096, 8192, 16_384, 2048, 1024, 32_768, 65_536];
/// What is cut off a file is saved with this in its name.
const CUT: &str = ".cut-";

/// A stretch of a file without anything intact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedPart {
    /// The file.
    pub path: PathBuf,
    /// The first byte.
    pub offset: u64,
    /// The byte after the last one.
    pub end: u64,
    /// What is wrong, with both values.
    pub reason: String,
}

/// A file of pages.
#[derive(Debug)]
pub struct Pages {
    pub id: u32,
    pub segment: Segment,
    /// Why its header was not believed.
    pub header_damage: Option<DamagedPart>,
    /// Whether it is the end of a segment, that was cut off.
    is_cut: bool,
}

/// A file of the write-ahead log.
#[derive(Debug)]
pub struct LogFile {
    /// None of what was cut off and saved.
    pub number: Option<u64>,
    pub path: PathBuf,
}

/// What a file of the write-ahead log holds besides its entries.
#[derive(Debug, Default)]
pub struct LogState {
    pub damages: Vec<DamagedPart>,
    /// How it ends, if it has a header.
    pub verdict: Option<Verdict>,
    /// The byte after the entries before any damage.
    pub valid_end: u64,
    /// Acknowledged entries that are missing at its end.
    pub loss: Option<Loss>,
    pub bytes: u64,
    /// The last checkpoint by the header: it is written after the entry, and counts where that is damaged.
    pub named: Lsn,
}

/// An entry, and where it was found.
pub struct Entered<'a> {
    pub lsn: Lsn,
    pub offset: u64,
    pub entry: Entry<'a>,
    /// Whether it is no part of a damaged one.
    pub is_proved: bool,
}

/// The files of a store that may hold events.
#[derive(Debug, Default)]
pub struct Files {
    pub segments: Vec<(u32, PathBuf)>,
    pub cut_segments: Vec<(u32, PathBuf)>,
    /// The oldest first; then what was cut off.
    pub logs: Vec<LogFile>,
}

impl Files {
    pub fn list(options: &Options, dir: &Path) -> Result<Self> {
        let mut files = Self::default();
        let segments = Segments::new(dir, options.storage.clone()).dir;
        for (base, path) in names(options, &segments)? {
            let Some(id) = parse_name(&base) else { continue };
            match is_named(&path, &base) {
                true => files.segments.push((id, path)),
                false => files.cut_segments.push((id, path)),
            }
        }
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

/// The files in a directory, each with the name that it had before it was cut off and saved.
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
    /// Open a segment. One whose header is damaged is read with the size of pages that most records fit;
    /// `None` if none do.
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
        let header_damage = Some(DamagedPart { path: path.into(), offset: 0, end, reason });
        Ok(Some(Self { id, segment, header_damage, is_cut: false }))
    }

    /// Open what was cut off a segment; `None` if it holds no record.
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

    pub fn damaged(&self, damage: PageDamage) -> DamagedPart {
        let PageDamage { offset, end, reason } = damage;
        let path = self.segment.path().into();
        DamagedPart { path, offset: offset.into(), end: end.into(), reason }
    }
}

/// A file of pages of the size that gives the most records and the least damage.
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
    /// Give every intact entry to `take`.
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
        let damages = damages.map(|damage| DamagedPart {
            path: self.path.clone(),
            offset: damage.offset,
            end: damage.end,
            reason: damage.reason,
        });
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

    /// The same of a file without a header: what comes after damage is not proved.
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
            state.damages.push(DamagedPart { path, offset: 0, end, reason });
        }
        let codec = Codec::new(options.wal().data_bytes_max);
        // What was cut off later begins with an entry.
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
        // Its checksum holds, and its meaning is not known.
        Err(_) => Ok(()),
    }
}
