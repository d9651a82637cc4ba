//! Opening: lock, inspect, settle, assemble.

mod settle;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::commit::GroupCommit;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::asking;
use crate::ground::locks::Mutex;
use crate::ground::locks::atomic::{AtomicBool, AtomicU64};
use crate::log::format::{Done, Format, Inspected, Owner};
use crate::log::look::find_end::end_of;
use crate::log::look::index::{build_index, keep_index};
use crate::log::look::inspect::{CHANGING, inspect_settled, patiently};
use crate::log::mend::noted;
use crate::log::mend::verify::check_rest;
use crate::log::notice::corrupt;
use crate::log::open::settle::settle;
use crate::log::options::Common;
use crate::log::report::OpenReport;
use crate::log::space::Place;
use crate::log::stats::Counters;
use crate::log::write::durable;
use crate::log::{Log, Shared, State};
use crate::mode::{Depth, Mode};
use crate::saving::make_dir;
use crate::scan::Verdict;
use crate::sidecar::{Loss, MarkFile, WriterLock, make_sidecar, refuse_other_format};
use crate::storage::{Access, Closable, Storage, fork_generation, located};

impl<F: Format> Log<F> {
    /// Open a log.
    pub fn open_with(path: &Path, mode: Mode, options: F::Options) -> Result<Self> {
        let open = || {
            let common = F::common(&options)?;
            let path = located(&*common.storage, path)?;
            if mode != Mode::Read {
                common.durability.check_of_log().map_err(|error| error.at(&path))?;
            }
            let place = F::place(&options, &path)?;
            if common.check_all {
                check_all::<F>(&path, &place.log, &options)?;
            }
            let (options, path) = (options.clone(), place.log.clone());
            let timeout = common.lock_timeout.clone();
            let log = asking(timeout.check(), &path, || match mode {
                Mode::Read => Self::open_reader(place, options, common),
                Mode::Append | Mode::Create => {
                    let (beside, shared) = (place.clone(), common.clone());
                    let refuse = |_: &_| noted::refuse::<F>(&shared, &beside);
                    Self::open_writer(place, mode, options, common, Depth::Quick, refuse)
                }
            })?;
            if mode != Mode::Read {
                log.finish_transaction()?;
            }
            Ok(log)
        };
        open().map_err(|error: Error| error.of(F::NAME))
    }

    fn open_reader(place: Place, options: F::Options, common: Common) -> Result<Self> {
        patiently::<F, _>(&CHANGING, || {
            let found = inspect_settled::<F>(&options, &place, Depth::Quick)?;
            F::check_found(&options, &place, Some(&found), Access::Read)?;
            let loss = Loss::load(&*common.storage, &place.sidecar)?;
            let report = OpenReport::new(&found.findings, loss);
            let (place, options, common) = (place.clone(), options.clone(), common.clone());
            Self::assemble(place, Mode::Read, options, common, found, report, None)
        })
    }

    /// `check` may refuse the log found under the lock, before any cut.
    pub(super) fn open_writer(
        place: Place,
        mode: Mode,
        options: F::Options,
        common: Common,
        depth: Depth,
        check: impl FnOnce(&Inspected<F>) -> Result<()>,
    ) -> Result<Self> {
        let storage = &*common.storage;
        place.refuse_tail()?;
        look_first::<F>(&options, storage, &place, mode)?;
        make_dir(storage, &place.dir, common.file_mode)?;
        make_sidecar(storage, &place.sidecar)?;
        let (log, timeout) = (place.locked(), &common.lock_timeout);
        let mut lock = WriterLock::acquire(storage, &place.sidecar, log, timeout)?;
        lock.add_log(storage, log)?;
        let look = || F::inspect(&options, &place, Access::Write, depth);
        let mut found = match look() {
            Err(e) if e.kind() == ErrorKind::Missing && !F::exists(&options, &place)? => {
                F::check_found(&options, &place, None, Access::Write)?;
                F::create(&options, &place)?;
                lock.add_log(storage, log)?;
                look()?
            }
            Ok(_) if mode == Mode::Create => return Err(already_exists(&place)),
            found => found?,
        };
        // Before anything is cut.
        if let Some(why) = found.only_readable {
            return Err(Error::new(ErrorKind::Corrupt, why).at(&place.log));
        }
        F::check_found(&options, &place, Some(&found), Access::Write)?;
        check(&found)?;
        let (report, mark_file) = settle(&mut found, &common, &place)?;
        let settings = found.format.settings();
        if found.settings != Some(settings) {
            settings.store(storage, &place.sidecar)?;
        }
        Self::assemble(place, mode, options, common, found, report, Some((mark_file, lock)))
    }

    fn assemble(
        place: Place,
        mode: Mode,
        options: F::Options,
        common: Common,
        mut found: Inspected<F>,
        recovery: OpenReport,
        mut writer: Option<(MarkFile, WriterLock)>,
    ) -> Result<Self> {
        let mut index = build_index(&common, &place, &found, writer.is_some());
        if let (Some((mark_file, _)), Some(mark)) = (&mut writer, &mut found.mark) {
            keep_index(&mut index, &common, mark_file, mark);
        }
        let Inspected { format, space, seal, findings, mark, .. } = found;
        let extent = findings.extent;
        // A writer's is cut off by now.
        let damage = findings.corruption().filter(|_| writer.is_none());
        let durable =
            mark.as_ref().map(|mark| end_of(mark, findings.numbered && findings.numbered_by_mark));
        let is_outdated = match (&mark, &writer) {
            (Some(mark), None) => {
                MarkFile::is_outdated(&*common.storage, &place.sidecar, mark, extent.end)
            }
            _ => false,
        };
        let durable_records = match &writer {
            Some(_) => extent.records,
            None => mark.map_or(0, |mark| mark.records.min(extent.records)),
        };
        let file_id = space.file.id().map_err(|e| Error::io("look at the log", &place.log, e))?;
        let file = Arc::new(Closable::new(space.file));
        let mut open_files = vec![file.clone()];
        let beyond = space.beyond.filter(|_| writer.is_none());
        let beyond = beyond.map(|beyond| beyond.closable(&mut open_files));
        let state = State {
            extent,
            numbered: findings.numbered,
            file_id,
            file_end: extent.end,
            allocates: !seal.counts(),
            mark_is_open: !mark.is_some_and(|mark| mark.closed),
            scratch: Vec::new(),
            block_start: index.last_offset().max(extent.start),
            durable,
            durable_records,
            is_outdated,
            unacknowledged_from: findings.unacknowledged_from,
            damage,
            beyond,
            after: findings.after.clone().filter(|_| writer.is_none()),
        };
        let durability = common.durability;
        let (mark_file, lock) = writer.unzip();
        let shared = Arc::new(Shared {
            framing: format.framing(),
            appending: format.appending(&options),
            format,
            options,
            common,
            mode,
            place,
            file,
            files: space.files,
            turn: seal.counts().then(Mutex::default),
            seal,
            open_files: Mutex::new(open_files),
            piece_bytes: space.piece_bytes,
            fork_generation: fork_generation(),
            closed: AtomicBool::new(false),
            state: Mutex::new(state),
            index: Arc::new(Mutex::new(index)),
            commits: GroupCommit::new(extent.end),
            durable_records: AtomicU64::new(durable_records),
            mark_file: Mutex::new(mark_file),
            lock: Mutex::new(lock),
            cuts: AtomicU64::new(0),
            cut_ends: Mutex::new(Vec::new()),
            exclusive: Mutex::new(()),
            background: OnceLock::new(),
            counters: Counters::default(),
            recovery,
        });
        let log = Self { _owner: Arc::new(Owner(shared.clone())), shared };
        if mode != Mode::Read {
            F::tend(&log.shared, Done::Opening)?;
        }
        if let (Durability::Interval(interval), true) = (durability, mode != Mode::Read) {
            durable::sync_every(&log.shared, interval)
                .map_err(|e| Error::io("start the sync thread", &log.shared.place.log, e))?;
        }
        Ok(log)
    }
}

/// Refuse files of another kind before this format creates a sidecar next to them. If a sidecar
/// exists, the inspection under the lock decides.
pub(crate) fn look_first<F: Format>(
    options: &F::Options,
    storage: &dyn Storage,
    place: &Place,
    mode: Mode,
) -> Result<()> {
    let exists = || F::exists(options, place);
    if mode == Mode::Create {
        // An empty file is no log, and yet not to be replaced.
        if exists()? || (place.single && storage.open(&place.log, Access::Read).is_ok()) {
            return Err(already_exists(place));
        }
        F::check_found(options, place, None, Access::Write)?;
    } else if !storage.is_dir(&place.sidecar) || storage.is_link(&place.log) {
        match F::inspect(options, place, Access::Write, F::PROVED_BY) {
            Err(e) if e.kind() == ErrorKind::Missing => {
                F::check_found(options, place, None, Access::Write)?;
            }
            found => F::check_found(options, place, Some(&found?), Access::Write)?,
        }
    }
    if shares_directory(place) {
        return Ok(());
    }
    match refuse_other_format(storage, &place.dir, F::NAME) {
        Err(e) if !exists()? => Err(e),
        _ => Ok(()),
    }
}

fn shares_directory(place: &Place) -> bool {
    place.sidecar != crate::sidecar::sidecar_dir(&place.dir)
}

fn already_exists(place: &Place) -> Error {
    let exists = std::io::ErrorKind::AlreadyExists.into();
    Error::io("create the log", &place.log, exists)
}

/// Read all of a log before it is opened. A torn end is no damage: opening for writing cuts it.
fn check_all<F: Format>(path: &Path, log: &Path, options: &F::Options) -> Result<()> {
    let report = match check_rest::<F>(path, options, &[], |_, _| Ok(())) {
        Err(error) if error.kind() == ErrorKind::Missing => return Ok(()),
        report => report?,
    };
    if report.verdict != Verdict::Corrupt {
        return Ok(());
    }
    let damage = report.damages.into_iter().next().unwrap_or_default();
    // The end of the log is missing: nothing comes after it.
    let kind = match report.lost_acknowledged && damage.next_intact.is_none() {
        true => ErrorKind::LostRecords,
        false => ErrorKind::Corrupt,
    };
    Err(corrupt::<F>(log, &damage, kind))
}
