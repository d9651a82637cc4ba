//! Opening: resolve, lock, look, decide, mend.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::format::{FORMAT, RECORD_BYTES_MAX, segment_name};
use super::intent::Intent;
use super::look::{Looked, look_at, lost_log, missing};
use super::options::{Layout, Mode, Options};
use super::place::{Head, Place};
use super::recover::blocks;
use super::report::RecoveryReport;
use super::settings::Settings;
use super::stats::Counters;
use super::tail::settle;
use super::tip::Tip;
use super::{Owner, Shared, State, Wal, background};
use crate::commit::GroupCommit;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::locks::Mutex;
use crate::locks::atomic::{AtomicBool, AtomicU64};
use crate::mend::make_dir;
use crate::mode::Depth;
use crate::sidecar::{
    Entry, Found, Index, Mark, MarkFile, SIDECAR_NAME, WriterLock, refuse_other_format,
};
use crate::storage::{Access, fork_generation, replace};

/// The index's entries are byte positions, which the mark's chain ties to the log.
const INDEX_SEED: u32 = u32::from_le_bytes(*b"WAL1");
/// An index that lags further behind is made up for by walking the log once.
const INDEX_LAG_BYTES_MAX: u64 = 4 << 20;
/// A reader may look while a writer drops a prefix or cuts the end.
const READER_TRIES: u32 = 5;

impl Wal {
    pub(super) fn open_with(path: &Path, mode: Mode, options: Options) -> Result<Self> {
        let place = Place::of(path, &options)?;
        match mode {
            Mode::Read => Self::open_reader(place, options),
            Mode::Append | Mode::Create => Self::open_writer(place, mode, options, Depth::Quick),
        }
    }

    fn open_reader(place: Place, options: Options) -> Result<Self> {
        let looked = look_patiently(&options, &place, Depth::Quick)?;
        let report = RecoveryReport::new(&looked.findings);
        Self::assemble(place, Mode::Read, options, looked, report, None)
    }

    pub(super) fn open_writer(
        place: Place,
        mode: Mode,
        options: Options,
        depth: Depth,
    ) -> Result<Self> {
        let storage = &*options.storage;
        match exists(&place, &options)? {
            true if mode == Mode::Create => return Err(already_exists(&place)),
            false if !place.single => refuse_other_format(storage, &place.dir, FORMAT)?,
            _ => {}
        }
        make_dir(storage, &place.dir)?;
        for sidecar in [&place.dir.join(SIDECAR_NAME), &place.sidecar] {
            if storage.is_link(sidecar) {
                let message = "a symbolic link, must be a directory: nothing is written outside";
                return Err(Error::new(ErrorKind::NotALog, message).at(sidecar));
            }
            make_dir(storage, sidecar)?;
        }
        let mut lock = WriterLock::acquire(storage, &place.sidecar, options.file_mode)?;
        if !place.single {
            // Who deletes the sidecar deletes its lock. Logs in a single file share a directory, and
            // are locked themselves.
            lock.add_log(storage, &place.dir)?;
        }
        match exists(&place, &options)? {
            true if mode == Mode::Create => return Err(already_exists(&place)),
            true => {}
            false => create_log(&options, &place)?,
        }
        if place.single {
            lock.add_log(storage, &place.log)?;
        }
        let mut looked = look_at(&options, &place, Access::Write, depth)?;
        let (report, mark_file) = settle(&mut looked, &options, &place)?;
        let settings = Settings {
            segment_bytes: looked.layout.segment_bytes(),
            record_bytes_max: looked.codec.record_bytes_max,
        };
        if looked.settings != Some(settings) {
            settings.store(&options, &place.sidecar)?;
        }
        Self::assemble(place, mode, options, looked, report, Some((mark_file, lock)))
    }

    fn assemble(
        place: Place,
        mode: Mode,
        options: Options,
        looked: Looked,
        recovery: RecoveryReport,
        writer: Option<(MarkFile, WriterLock)>,
    ) -> Result<Self> {
        if writer.is_some() && looked.foreign_cut {
            // Before anything is appended that it might come to fit.
            Intent::clear(&options, &place.sidecar)?;
        }
        let index = build_index(&options, &place, &looked, writer.is_some());
        let damage = looked.damage();
        let Looked { file, segments, layout, codec, findings, mark, .. } = looked;
        let tip = findings.tip;
        let state = State {
            tip,
            file_id: file.id().map_err(|e| Error::io("look at", &place.log, e))?,
            file_end: tip.end,
            allocates: true,
            scratch: Vec::new(),
            block_start: index.last_offset().max(tip.start),
            // A writer's is cut off by now.
            damage: damage.filter(|_| writer.is_none()),
        };
        let durability = options.durability;
        let record_bytes_max = options.record_bytes_max.unwrap_or(codec.record_bytes_max);
        let durable_seen = match &writer {
            Some(_) => u64::MAX,
            None => mark.map_or(u64::MAX, |mark| mark.end.min(tip.end)),
        };
        let (mark_file, lock) = writer.unzip();
        let shared = Arc::new(Shared {
            codec,
            record_bytes_max,
            options,
            mode,
            place,
            layout,
            file,
            segments,
            born: fork_generation(),
            closed: AtomicBool::new(false),
            state: Mutex::new(state),
            index: Arc::new(Mutex::new(index)),
            commits: GroupCommit::new(tip.end),
            durable_seen: AtomicU64::new(durable_seen),
            mark_file: Mutex::new(mark_file),
            lock: Mutex::new(lock),
            cuts: AtomicU64::new(0),
            consumers: Mutex::new(()),
            background: OnceLock::new(),
            counters: Counters::default(),
            recovery,
        });
        let wal = Self { _owner: Arc::new(Owner(shared.clone())), shared };
        if mode != Mode::Read {
            // A crash or a repair may have taken records that a consumer had seen.
            match wal.shared.lower_consumers(tip.end) {
                // Truncations refuse it; appending and reading go on.
                Err(e) if e.kind() == ErrorKind::Corrupt => {}
                lowered => lowered?,
            }
        }
        if let (Durability::Interval(interval), true) = (durability, mode != Mode::Read) {
            background::start(&wal.shared, interval)
                .map_err(|e| Error::io("start the sync thread", &wal.shared.place.log, e))?;
        }
        Ok(wal)
    }
}

/// Look at a log that others may be changing: what is refused may have been half of a change.
pub fn look_patiently(options: &Options, place: &Place, depth: Depth) -> Result<Looked> {
    let mut tries = 1;
    loop {
        match look_at(options, place, Access::Read, depth) {
            Err(e) if tries < READER_TRIES && e.kind() != ErrorKind::Missing => {
                std::thread::sleep(Duration::from_millis(1 << tries));
                tries += 1;
            }
            looked => return looked,
        }
    }
}

fn exists(place: &Place, options: &Options) -> Result<bool> {
    let storage = &*options.storage;
    if place.single {
        return match storage.open(&place.log, Access::Read) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::io("open the log", &place.log, e)),
        };
    }
    Ok(!place.indices(storage)?.is_empty() || place.head(storage)? != Head::Absent)
}

fn already_exists(place: &Place) -> Error {
    Error::io("create the log", &place.log, io::ErrorKind::AlreadyExists.into())
}

/// A new log appears whole or not at all, and only if no mark says that there was one.
fn create_log(options: &Options, place: &Place) -> Result<()> {
    let storage = &*options.storage;
    let found = MarkFile::load(storage, &place.sidecar)
        .map_err(|e| Error::io("read the mark", &place.log, e))?;
    match found {
        Found::Mark(mark) if mark.end > 0 => return Err(lost_log(place, &mark)),
        _ => {}
    }
    let layout = match place.single {
        true => Layout::Single,
        false => options.layout.unwrap_or_default(),
    };
    let settings = Settings {
        segment_bytes: layout.segment_bytes(),
        record_bytes_max: options.record_bytes_max.unwrap_or(RECORD_BYTES_MAX),
    };
    settings.store(options, &place.sidecar)?;
    let first = match place.single {
        true => place.log.clone(),
        false => place.dir.join(segment_name(0)),
    };
    replace(storage, &first, &[], options.file_mode)
        .map_err(|e| Error::io("create the log", &first, e))
}

/// The index that the mark vouches for.
pub fn vouched(options: &Options, place: &Place, mark: Option<&Mark>, access: Access) -> Index {
    match mark.filter(|mark| mark.index_entries > 0) {
        None => {
            let mut index = Index::empty(&place.sidecar);
            index.start(INDEX_SEED);
            index
        }
        Some(mark) => {
            let (entries, chain) = (mark.index_entries, mark.index_chain);
            Index::load(&*options.storage, &place.sidecar, INDEX_SEED, entries, chain, access)
        }
    }
}

/// The index that the mark vouches for, and what was noticed since.
pub fn build_index(options: &Options, place: &Place, looked: &Looked, writes: bool) -> Index {
    let tip = looked.findings.tip;
    let access = if writes { Access::Write } else { Access::Read };
    // Ordinals of another numbering count wrongly: the index is filled anew.
    let mark = looked.mark.as_ref().filter(|_| looked.findings.numbered_by_mark);
    let mut index = vouched(options, place, mark, access);
    index.cut(tip.end);
    for &(ordinal, offset) in &looked.findings.blocks {
        if offset > index.last_offset() && offset <= tip.end {
            index.push(Entry { ordinal, offset, sum: 0 });
        }
    }
    if writes {
        catch_up(&mut index, looked, tip);
    }
    index
}

fn catch_up(index: &mut Index, looked: &Looked, tip: Tip) {
    fill(index, &*looked.file, looked.codec, tip);
}

/// Make up for an index that was lost, by hopping over the records that it misses. Advisory.
pub fn fill(
    index: &mut Index,
    file: &dyn crate::storage::File,
    codec: super::format::Codec,
    tip: Tip,
) {
    if tip.end.saturating_sub(index.last_offset().max(tip.start)) <= INDEX_LAG_BYTES_MAX {
        return;
    }
    let last = index.len().checked_sub(1).and_then(|i| index.entry(i));
    let from = match last.filter(|entry| entry.offset >= tip.start) {
        Some(entry) => Tip {
            first: tip.first,
            records: entry.ordinal.saturating_sub(tip.first),
            end: entry.offset,
            start: tip.start,
            ..Tip::default()
        },
        None => Tip { first: tip.first, ..Tip::empty(tip.start) },
    };
    for (ordinal, offset) in blocks(file, codec, from, tip.end).unwrap_or_default() {
        index.push(Entry { ordinal, offset, sum: 0 });
    }
}

/// The log's place, for calls that open it by themselves.
pub fn place_of(path: &Path, options: &Options) -> Result<Place> {
    let place = Place::of(path, options).map_err(|e| e.of(FORMAT))?;
    match exists(&place, options)? {
        true => Ok(place),
        false => Err(missing(&place).of(FORMAT)),
    }
}
