//! Opening: resolve, lock, look, decide, mend.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use super::blocks::{build_index, catch_up};
use super::epoch::{check_epoch, epoch_in_name, epoch_of};
use super::format::{FORMAT, HEADER_BYTES, Packed, encode_header};
use super::look::{Looked, look_at, look_at_header_only, lost_file, resolve};
use super::options::{Mode, Options};
use super::recover::Depth;
use super::report::RecoveryReport;
use super::tail::settle;
use super::{Book, Owner, Shared, State, background};
use crate::commit::GroupCommit;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::mend::make_dir;
use crate::scan::Verdict;
use crate::sidecar::{Found, MarkFile, WriterLock, refuse_other_format, sidecar_dir};
use crate::storage::{Access, fork_generation, replace};

impl Book {
    pub(super) fn open_with(path: &Path, mode: Mode, options: Options) -> Result<Self> {
        let (dir, log) = resolve(path, &options);
        match mode {
            Mode::Read => Self::open_reader(dir, log, options),
            Mode::Append | Mode::Create => Self::open_writer(dir, log, mode, options, Depth::Quick),
        }
    }

    fn open_reader(dir: PathBuf, log: PathBuf, options: Options) -> Result<Self> {
        let looked = look_at(&options, &dir, &log, Access::Read, Depth::Quick)?;
        check_epoch(&options, &looked.findings).map_err(|e| e.at(&log))?;
        let report = RecoveryReport::new(&looked.findings);
        Self::assemble(dir, log, Mode::Read, options, looked, report, None)
    }

    pub(super) fn open_writer(
        dir: PathBuf,
        log: PathBuf,
        mode: Mode,
        options: Options,
        depth: Depth,
    ) -> Result<Self> {
        let storage = &*options.storage;
        let sidecar = sidecar_dir(&dir);
        if let (Some(asked), Some(named)) = (options.epoch, epoch_in_name(&dir)) {
            // What was written under another epoch could not be opened again.
            if asked != named {
                let message = format!("epoch {asked}, but the directory says {named}");
                return Err(Error::new(ErrorKind::Contiguity, message).at(&log));
            }
        }
        // Refuse what is no log before anything is put beside it.
        match storage.open(&log, Access::Read) {
            Ok(_) if mode == Mode::Create => return Err(already_exists(&log)),
            Ok(file) => {
                if file.len().map_err(|e| Error::io("open the log", &log, e))? > 0 {
                    look_at_header_only(&*file, &log, &options, &sidecar)?;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(Error::new(ErrorKind::NotALog, e.to_string()).at(&log));
            }
            Err(_) => refuse_other_format(storage, &dir, FORMAT)?,
        }
        make_dir(storage, &dir)?;
        if storage.is_link(&sidecar) {
            let message = "a symbolic link, must be a directory: nothing is written outside";
            return Err(Error::new(ErrorKind::NotALog, message).at(&sidecar));
        }
        make_dir(storage, &sidecar)?;
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
        let mut looked = look_at(&options, &dir, &log, Access::Write, depth)?;
        // Before anything is cut.
        check_epoch(&options, &looked.findings).map_err(|e| e.at(&log))?;
        let (report, mark_file) = settle(&mut looked, &options, &sidecar, &log)?;
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
            // A writer's is cut off by now.
            damage: findings
                .damage
                .filter(|_| findings.verdict == Verdict::Corrupt && writer.is_none()),
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
            index: Arc::new(Mutex::new(index)),
            commits: GroupCommit::new(tip.end),
            durable_records: AtomicU64::new(durable_records),
            durability_known: AtomicBool::new(mode != Mode::Read || mark.is_some()),
            mark_file: Mutex::new(mark_file),
            lock: Mutex::new(lock),
            meta: Mutex::new(()),
            background: OnceLock::new(),
            recovery,
        });
        let book = Self { _owner: Arc::new(Owner(shared.clone())), shared };
        if let (Durability::Interval(interval), true) = (durability, mode != Mode::Read) {
            background::start(&book.shared, interval)
                .map_err(|e| Error::io("start the sync thread", &book.shared.log_path, e))?;
        }
        Ok(book)
    }
}

fn already_exists(log: &Path) -> Error {
    Error::io("create the log", log, io::ErrorKind::AlreadyExists.into())
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
