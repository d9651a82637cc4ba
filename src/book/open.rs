//! Opening: resolve, lock, look, decide, mend.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use super::cursor::corrupt;
use super::format::{
    FORMAT, HEADER_BYTES, LOG_NAME, Layout, Packed, encode_header, looks_padded, looks_slots,
    parse_header,
};
use super::mend::save_tail;
use super::options::{Mode, Options, Recovery};
use super::recover::{Findings, MarkUse, Tip, blocks, look};
use super::report::RecoveryReport;
use super::{Book, Shared, State, background};
use crate::commit::GroupCommit;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Verdict;
use crate::sidecar::{Entry, Found, Index, Mark, MarkFile, WriterLock, sidecar_dir};
use crate::storage::{Access, File, fork_generation, read_full, replace};

/// An index that lags further behind is made up for by walking the log once.
const INDEX_LAG_BYTES_MAX: u64 = 4 << 20;

/// A log's directory and file, however the caller named it.
pub(super) fn resolve(path: &Path, options: &Options) -> (PathBuf, PathBuf) {
    let names_log = path.file_name().is_some_and(|name| name == LOG_NAME);
    let dir = match path.parent() {
        Some(parent) if names_log && !options.storage.is_dir(path) => parent,
        _ => path,
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    (dir.to_path_buf(), dir.join(LOG_NAME))
}

/// A log that was looked at, before anything is decided.
pub(super) struct Looked {
    pub file: Arc<dyn File>,
    pub findings: Findings,
    pub header_first: u64,
    pub mark: Option<Mark>,
}

/// Open the file and look at it; changes nothing.
pub(super) fn look_at(options: &Options, dir: &Path, log: &Path, access: Access) -> Result<Looked> {
    let storage = &*options.storage;
    let fail = |doing: &str, e: io::Error| Error::io(doing, log, e).of(FORMAT);
    let file: Arc<dyn File> = match storage.open(log, access) {
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            return Err(Error::new(ErrorKind::NotALog, e.to_string()).of(FORMAT).at(log));
        }
        opened => Arc::from(opened.map_err(|e| fail("open the log", e))?),
    };
    let loaded =
        MarkFile::load(storage, &sidecar_dir(dir)).map_err(|e| fail("read the mark", e))?;
    let mark = match loaded {
        Found::Mark(mark) => Some(mark),
        Found::Missing | Found::Damaged => None,
    };
    let header = read_header(&*file, log, mark.as_ref())?;
    let codec = Packed::new(options.deed_bytes_max);
    let findings = look(&*file, codec, header, mark, loaded == Found::Damaged)
        .map_err(|e| fail("read the log", e))?;
    let known = matches!(findings.mark, MarkUse::Used | MarkUse::Lost);
    if !known && findings.tip.records == 0 {
        detect_other_layouts(&*file, &findings).map_err(|e| e.at(log))?;
    }
    let mark = mark.filter(|_| known);
    Ok(Looked { file, findings, header_first: header, mark })
}

fn read_header(file: &dyn File, log: &Path, mark: Option<&Mark>) -> Result<u64> {
    let fail = |e| Error::io("read the header", log, e).of(FORMAT);
    let mut header = [0; HEADER_BYTES as usize];
    let read = read_full(file, &mut header, 0).map_err(fail)?;
    if let Some(mark) = mark.filter(|mark| mark.records > 0 && read < header.len()) {
        return Err(lost_file(log, &format!("{read} bytes are left"), mark));
    }
    let slot = |at: u64| -> Result<bool> {
        let mut slot = [0; 48];
        let read = read_full(file, &mut slot, at).map_err(fail)?;
        Ok(looks_slots(slot.get(..read).unwrap_or_default()))
    };
    if file.len().map_err(fail)? >= 8192 && (slot(0)? || slot(4096)?) {
        return Err(unsupported(Layout::Slots).at(log));
    }
    parse_header(header.get(..read).unwrap_or_default()).map_err(|e| e.at(log))
}

fn unsupported(layout: Layout) -> Error {
    let message = format!("layout {}: this version reads and writes packed only", layout.name());
    Error::new(ErrorKind::Unsupported, message).of(FORMAT)
}

/// Without a single packed deed and without a mark, the file may be of another layout.
fn detect_other_layouts(file: &dyn File, findings: &Findings) -> Result<()> {
    let mut start = vec![0; 1 << 20];
    let read = read_full(file, &mut start, HEADER_BYTES).unwrap_or(0);
    if looks_padded(start.get(..read).unwrap_or_default()) {
        return Err(unsupported(Layout::Padded));
    }
    if findings.verdict == Verdict::Torn && findings.data_end > HEADER_BYTES {
        let why = findings.damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
        let message =
            format!("no deed at byte {HEADER_BYTES}; tried packed ({why}), padded, slots");
        let error = Error::new(ErrorKind::NotALog, message).of(FORMAT);
        return Err(error.offset_at(HEADER_BYTES));
    }
    Ok(())
}

fn lost_file(log: &Path, what: &str, mark: &Mark) -> Error {
    let message = format!(
        "lost acknowledged records: {what}, {} deeds up to byte {} were acknowledged; if the log \
         was removed on purpose, remove .deedbook beside it",
        mark.records, mark.end
    );
    Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(log).offset_at(0)
}

impl Book {
    pub(super) fn open_with(path: &Path, mode: Mode, options: Options) -> Result<Self> {
        let (dir, log) = resolve(path, &options);
        match mode {
            Mode::Read => Self::open_reader(dir, log, options),
            Mode::Append | Mode::Create => Self::open_writer(dir, log, mode, options),
        }
    }

    fn open_reader(dir: PathBuf, log: PathBuf, options: Options) -> Result<Self> {
        let looked = look_at(&options, &dir, &log, Access::Read)?;
        let report = RecoveryReport::new(&looked.findings);
        Self::assemble(dir, log, Mode::Read, options, looked, report, None)
    }

    fn open_writer(dir: PathBuf, log: PathBuf, mode: Mode, options: Options) -> Result<Self> {
        let storage = &*options.storage;
        let sidecar = sidecar_dir(&dir);
        if let Ok(file) = storage.open(&log, Access::Read) {
            // Refuse what is no log before anything is put beside it.
            if mode == Mode::Create {
                return Err(already_exists(&log));
            }
            if file.len().map_err(|e| Error::io("open the log", &log, e))? > 0 {
                look_at_header_only(&*file, &log, storage, &sidecar)?;
            }
        }
        make_dir(&options, &dir)?;
        make_dir(&options, &sidecar)?;
        let mut lock = WriterLock::acquire(storage, &sidecar, options.file_mode)?;
        match storage.open(&log, Access::Write) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => create_log(&options, &dir, &log)?,
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(Error::new(ErrorKind::NotALog, e.to_string()).at(&log));
            }
            Err(e) => return Err(Error::io("open the log for writing", &log, e)),
            Ok(_) if mode == Mode::Create => return Err(already_exists(&log)),
            Ok(file) if file.is_empty().unwrap_or(false) => create_log(&options, &dir, &log)?,
            Ok(_) => {}
        }
        lock.add_log(storage, &log)?;
        let mut looked = look_at(&options, &dir, &log, Access::Write)?;
        let (report, mark_file) = mend(&mut looked, &options, &sidecar, &log)?;
        Self::assemble(dir, log, mode, options, looked, report, Some((mark_file, lock)))
    }

    fn assemble(
        dir: PathBuf,
        log_path: PathBuf,
        mode: Mode,
        options: Options,
        looked: Looked,
        recovery: RecoveryReport,
        writer: Option<(MarkFile, WriterLock)>,
    ) -> Result<Self> {
        let Looked { file, findings, header_first, mark } = looked;
        let tip = findings.tip;
        let file_id = file.id().map_err(|e| Error::io("look at", &log_path, e))?;
        let epoch = epoch_of(&dir, &options, &findings, header_first, mark.as_ref());
        check_epoch(&dir, &options, &findings, epoch).map_err(|e| e.at(&log_path))?;
        let mut index = build_index(&options, &dir, &findings, mark.as_ref(), writer.is_some());
        if writer.is_some() {
            catch_up(&mut index, &*file, Packed::new(options.deed_bytes_max), tip);
        }
        let durable_records = match &writer {
            Some(_) => tip.records,
            None => mark.map_or(0, |mark| mark.records.min(tip.records)),
        };
        let state = State {
            tip,
            epoch,
            header_first,
            file_end: tip.end,
            allocates: true,
            scratch: Vec::new(),
            block_start: index.last_offset().max(HEADER_BYTES),
            block_sum: (index.last_offset().max(HEADER_BYTES) == tip.end).then_some(0),
            damage: findings.damage.filter(|_| findings.verdict == Verdict::Corrupt),
        };
        let durability = options.durability;
        let (mark_file, lock) = writer.unzip();
        let shared = Arc::new(Shared {
            codec: Packed::new(options.deed_bytes_max),
            options,
            mode,
            dir,
            log_path,
            file,
            file_id,
            born: fork_generation(),
            closed: AtomicBool::new(false),
            state: Mutex::new(state),
            index: Mutex::new(index),
            commits: GroupCommit::new(tip.end),
            durable_records: AtomicU64::new(durable_records),
            durability_known: AtomicBool::new(mode != Mode::Read || mark.is_some()),
            mark_file: Mutex::new(mark_file),
            lock: Mutex::new(lock),
            recovery,
        });
        if let (Durability::Interval(interval), true) = (durability, mode != Mode::Read) {
            background::start(&shared, interval)
                .map_err(|e| Error::io("start the sync thread", &shared.log_path, e))?;
        }
        Ok(Self { shared })
    }
}

fn already_exists(log: &Path) -> Error {
    Error::io("create the log", log, io::ErrorKind::AlreadyExists.into())
}

fn look_at_header_only(
    file: &dyn File,
    log: &Path,
    storage: &dyn crate::storage::Storage,
    sidecar: &Path,
) -> Result<()> {
    let found = MarkFile::load(storage, sidecar).map_err(|e| Error::io("read the mark", log, e))?;
    let mark = match found {
        Found::Mark(mark) => Some(mark),
        Found::Missing | Found::Damaged => None,
    };
    read_header(file, log, mark.as_ref()).map(drop)
}

fn make_dir(options: &Options, dir: &Path) -> Result<()> {
    let storage = &*options.storage;
    if storage.is_dir(dir) {
        return Ok(());
    }
    storage.create_dir(dir).map_err(|e| Error::io("create the directory", dir, e))?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    storage.sync_dir(parent).map_err(|e| Error::io("sync the directory", parent, e))
}

/// A new log appears whole or not at all, and only if no mark says that there was one.
fn create_log(options: &Options, dir: &Path, log: &Path) -> Result<()> {
    let storage = &*options.storage;
    let sidecar = sidecar_dir(dir);
    let found =
        MarkFile::load(storage, &sidecar).map_err(|e| Error::io("read the mark", log, e))?;
    match found {
        Found::Mark(mark) if mark.records > 0 => {
            return Err(lost_file(log, "the log is missing or empty", &mark));
        }
        _ => {}
    }
    replace(storage, log, &encode_header(0), options.file_mode)
        .map_err(|e| Error::io("create the log", log, e))
}

/// Cut what may be cut, or refuse; then make durable what was found, and mark it.
fn mend(
    looked: &mut Looked,
    options: &Options,
    sidecar: &Path,
    log: &Path,
) -> Result<(RecoveryReport, MarkFile)> {
    let storage = &*options.storage;
    let fail = |doing: &str, e: io::Error| Error::io(doing, log, e).of(FORMAT);
    let mut report = RecoveryReport::new(&looked.findings);
    let findings = &mut looked.findings;
    if findings.verdict == Verdict::Corrupt {
        let Some(damage) = &findings.damage else {
            return Err(Error::new(ErrorKind::Corrupt, "damaged").at(log));
        };
        // A damaged header cannot be mended by cutting.
        if options.recovery != Recovery::Spec || damage.offset < HEADER_BYTES {
            let lost = findings.mark == MarkUse::Lost;
            let kind = if lost { ErrorKind::LostRecords } else { ErrorKind::Corrupt };
            return Err(corrupt(log, damage, kind));
        }
        report.saved_to = save_tail(options, &*looked.file, log, findings.tip.end)?;
    }
    if let (Recovery::Acknowledged, MarkUse::Used, Some(mark)) =
        (options.recovery, findings.mark, looked.mark)
    {
        report.cut_deeds = findings.tip.records - mark.records;
        findings.tip.records = mark.records;
        findings.tip.end = mark.end;
        findings.tip.last_offset = mark.last_offset;
        findings.tip.last_sum = mark.last_sum;
        findings.tip.first_sum = mark.first_sum;
        findings.blocks.retain(|&(_, offset)| offset <= mark.end);
    }
    let tip = findings.tip;
    let cut = findings.file_end > tip.end;
    let unmarked =
        looked.mark.is_none_or(|mark| mark.end != tip.end || mark.records != tip.records);
    let first = match tip.records {
        0 => epoch_of(parent(log), options, findings, looked.header_first, looked.mark.as_ref())
            .saturating_add(1),
        _ => tip.first,
    };
    let mark = Mark {
        first,
        records: tip.records,
        end: tip.end,
        last_offset: tip.last_offset,
        first_sum: tip.first_sum,
        last_sum: tip.last_sum,
        file: looked.file.id().map_err(|e| fail("look at", e))?,
        ..Mark::default()
    };
    if looked.mark.is_some_and(|mark| mark.end > tip.end) {
        // Before the cut: a mark above the end would say that acknowledged deeds are lost.
        MarkFile::reset(storage, sidecar, &mark, options.file_mode)
            .map_err(|e| fail("lower the mark", e))?;
    }
    if cut {
        looked.file.set_len(tip.end).map_err(|e| fail("cut the tail", e))?;
        report.cut_bytes = findings.file_end - tip.end;
    }
    if cut || unmarked {
        // What survived a crash in the page cache is durable only from here on.
        looked.file.sync_data().map_err(|e| fail("sync", e))?;
    }
    let keeps = looked.mark.filter(|mark| !unmarked && mark.file == looked_id(looked));
    let mark_file = match keeps {
        Some(_) => MarkFile::open(storage, sidecar).map_err(|e| fail("open the mark", e))?,
        None => {
            let (index_entries, index_chain) = match looked.mark {
                Some(old) if old.end <= tip.end => (old.index_entries, old.index_chain),
                _ => (0, 0),
            };
            let mark = Mark { index_entries, index_chain, ..mark };
            MarkFile::reset(storage, sidecar, &mark, options.file_mode)
                .map_err(|e| fail("store the mark", e))?
        }
    };
    Ok((report, mark_file))
}

fn looked_id(looked: &Looked) -> crate::storage::FileId {
    looked.file.id().unwrap_or_default()
}

fn parent(log: &Path) -> &Path {
    log.parent().unwrap_or(Path::new("."))
}

/// The N of a directory named `0iN`.
fn epoch_in_name(dir: &Path) -> Option<u64> {
    let name = dir.file_name()?.to_str()?.strip_prefix("0i")?;
    let canonical = name == "0" || !name.starts_with('0');
    name.parse().ok().filter(|_| canonical && name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn epoch_of(
    dir: &Path,
    options: &Options,
    findings: &Findings,
    header_first: u64,
    mark: Option<&Mark>,
) -> u64 {
    if findings.tip.records > 0 {
        return findings.tip.first.saturating_sub(1);
    }
    let told = mark.filter(|mark| mark.records == 0).map(|mark| mark.first.saturating_sub(1));
    let header = header_first.checked_sub(1);
    options.epoch.or(told).or(header).or_else(|| epoch_in_name(dir)).unwrap_or(0)
}

fn check_epoch(dir: &Path, options: &Options, findings: &Findings, epoch: u64) -> Result<()> {
    if findings.tip.records == 0 {
        return Ok(());
    }
    let wrong = |kind, whose: &str, other: u64| {
        let message = format!("first event {}, {whose} {other}", findings.tip.first);
        Err(Error::new(kind, message).of(FORMAT).offset_at(8))
    };
    match (options.epoch, epoch_in_name(dir)) {
        (Some(asked), _) if asked != epoch => {
            wrong(ErrorKind::Contiguity, "but asked for epoch", asked)
        }
        (_, Some(named)) if named != epoch => {
            wrong(ErrorKind::Corrupt, "but the directory says epoch", named)
        }
        _ => Ok(()),
    }
}

/// The index that the mark vouches for, and what was noticed since.
fn build_index(
    options: &Options,
    dir: &Path,
    findings: &Findings,
    mark: Option<&Mark>,
    writes: bool,
) -> Index {
    let (sidecar, tip) = (sidecar_dir(dir), findings.tip);
    let access = if writes { Access::Write } else { Access::Read };
    let mut index = match mark.filter(|mark| mark.records > 0) {
        Some(mark) => Index::load(
            &*options.storage,
            &sidecar,
            mark.first_sum,
            mark.index_entries,
            mark.index_chain,
            access,
        ),
        None => Index::empty(&sidecar),
    };
    if index.is_empty() {
        index.start(tip.first_sum);
    }
    index.cut(tip.end);
    for &(records, offset) in &findings.blocks {
        if offset > index.last_offset() && offset <= tip.end {
            index.push(Entry { ordinal: tip.first + records, offset, sum: 0 });
        }
    }
    index
}

/// Make up for an index that was lost, by hopping over the deeds that it misses. Advisory.
pub(super) fn catch_up(index: &mut Index, file: &dyn File, codec: Packed, tip: Tip) {
    if tip.end.saturating_sub(index.last_offset()) <= INDEX_LAG_BYTES_MAX {
        return;
    }
    let last = index.len().checked_sub(1).and_then(|i| index.entry(i));
    let from = match last {
        Some(entry) => Tip { records: entry.ordinal - tip.first, end: entry.offset, ..tip },
        None => Tip { first: tip.first, ..Tip::empty() },
    };
    for (records, offset) in blocks(file, codec, from, tip.end).unwrap_or_default() {
        index.push(Entry { ordinal: tip.first + records, offset, sum: 0 });
    }
}
