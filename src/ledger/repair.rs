//! Repairing the files of a ledger where they lie. Only on request.
//!
//! A repair saves and cuts a torn end. A file with damage inside is replaced by its intact records:
//!
//! 1. copy the damaged file to `.deedbook/quarantine`, durably
//! 2. write the intact records to a file aside, and sync it
//! 3. rename this file to the damaged file's name, durably
//!
//! A crash leaves the damaged or the repaired file, and the next repair may keep a second copy of step 1.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::codec::{FORMAT, file_name};
use super::directory::look::{Looking, Run, Seen, look};
use super::directory::{Directory, Finished, Gate};
use super::offline::contents::Contents;
use super::offline::files::FileInfo;
use super::options::{OnCorrupt, Options};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{part, part_mut};
use crate::log::{Repair, RepairReport};
use crate::saving::save_tail;
use crate::scan::{Damage, Verdict};
use crate::sidecar::Loss;
use crate::storage::segmented::remove;
use crate::storage::{Access, File, move_to, read_full, write_full};

const COPY_BYTES: usize = 1 << 20;

impl Options {
    /// Repair the files of a ledger. A torn end is cut, and its bytes are saved to `.deedbook/quarantine`. With
    /// `accept_loss`, a file with damage before intact records is replaced by these records. The damaged file goes to
    /// the quarantine, and records after the damage get lower numbers. An unfinished file of a store stays unchanged.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) if intact records may lie inside a damaged record, unless the
    /// repair is forced to leave them out, and with [`Locked`](crate::ErrorKind::Locked) for a damaged file in a
    /// sender's lease; see [Errors](crate#errors). Earlier files may be repaired by then.
    pub fn repair(
        &self,
        location: impl AsRef<Path>,
        base_filename: &str,
        how: Repair,
    ) -> Result<Vec<(FileInfo, RepairReport)>> {
        self.contents(location, Some(base_filename))?.repair(self, how)
    }
}

impl Contents {
    /// As [`Options::repair`], of these files.
    ///
    /// # Errors
    ///
    /// As [`Options::repair`].
    pub fn repair(&self, options: &Options, how: Repair) -> Result<Vec<(FileInfo, RepairReport)>> {
        let mend = || -> Result<Vec<(FileInfo, RepairReport)>> {
            let directory = self.directory(options)?;
            let record_bytes_max = options.record_bytes_max.max(directory.kept_limit()?);
            let looking = Looking { record_bytes_max, on_corrupt: OnCorrupt::Skip };
            let mut repairs = Vec::new();
            for file in &self.files {
                let report = repair_file(&directory, &looking, file, how)?;
                repairs.extend(report.map(|report| (file.clone(), report)));
            }
            Ok(repairs)
        };
        mend().map_err(|e| e.of(FORMAT))
    }

    /// The damaged files of the ledger that a sender or a repair put into the quarantine, by name.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read; see [Errors](crate#errors).
    pub fn quarantined(&self) -> Result<Vec<PathBuf>> {
        let found = self.directory(&self.options).and_then(|directory| directory.quarantined());
        found.map_err(|e| e.of(FORMAT))
    }
}

/// Repair a finished file. `None` for a file that was sent meanwhile.
fn repair_file(
    directory: &Directory,
    looking: &Looking,
    file: &FileInfo,
    how: Repair,
) -> Result<Option<RepairReport>> {
    let found = directory.finished(&directory.gate()?, file.index)?;
    let Some(found) = found else {
        let is_there = directory.indexes()?.contains(&file.index);
        return Ok(is_there.then(|| report_of(file, &Seen::untouched(looking), file.bytes)));
    };
    let seen = look(looking, &found)?;
    let mut report = report_of(file, &seen, found.len);
    if seen.beyond_limit {
        let damage = seen.damages.first().cloned().unwrap_or_default();
        let error = Error::new(ErrorKind::Corrupt, damage.reason).at(&found.path);
        return Err(error.offset_at(damage.offset));
    }
    let is_torn = seen.verdict == Verdict::Torn;
    if how.dry_run {
        return Ok(Some(report));
    }
    if seen.damages.is_empty() {
        report.mended = true;
        return Ok(Some(report));
    }
    if seen.withheld && !how.force {
        return Err(refused(&found, &seen));
    }
    if !is_torn && !how.accept_loss {
        (report.cut_bytes, report.cut_records, report.valid_end) = (0, 0, found.len);
        return Ok(Some(report));
    }
    let kept = match is_torn {
        true => cut(directory, &found, report.valid_end)?,
        false => Some(replace(directory, &found, &seen.runs)?),
    };
    (report.saved, report.mended) = (kept.into_iter().collect(), true);
    Ok(Some(report))
}

fn report_of(file: &FileInfo, seen: &Seen, len: u64) -> RepairReport {
    let valid_end = match seen.damages.is_empty() {
        true => len,
        false => seen.runs.iter().map(|run| run.end - run.start).sum(),
    };
    let loss = |damage: &Damage| Loss {
        records: damage.records_lost.unwrap_or(0),
        first: damage.first_lost.unwrap_or(0),
        offset: damage.offset,
    };
    RepairReport {
        path: file.path.clone(),
        records: seen.records,
        valid_end,
        cut_bytes: len.saturating_sub(valid_end),
        cut_records: seen.left_out,
        damages: seen.damages.first().cloned().into_iter().collect(),
        loss: seen.damages.first().filter(|_| seen.verdict == Verdict::Corrupt).map(loss),
        ..RepairReport::default()
    }
}

fn refused(found: &Finished, seen: &Seen) -> Error {
    let at = seen.damages.first().map_or(0, |damage| damage.offset);
    let what = match seen.left_out {
        0 => "intact records may lie after the damage, unsearched".into(),
        1 => "1 intact record may lie inside the damage".into(),
        many => format!("{many} intact records may lie inside the damage"),
    };
    let message = format!(
        "{what} at byte {at}, and the repair would leave out what it cannot prove; salvage copies \
         the intact records to a new ledger, or force the repair"
    );
    Error::new(ErrorKind::Corrupt, message).at(&found.path).offset_at(at)
}

/// Save the bytes from a place on to the quarantine, and cut them.
fn cut(directory: &Directory, found: &Finished, end: u64) -> Result<Option<PathBuf>> {
    let storage = &*directory.storage;
    let name = directory.make_quarantine()?.join(file_name(found.index, &directory.base));
    let saved = save_tail(storage, &*found.file, &name, directory.file_mode, end)?;
    let gate = directory.gate()?;
    check_free(directory, &gate, found)?;
    storage
        .open(&found.path, Access::Write)
        .and_then(|file| file.set_len(end).and_then(|()| file.sync_data()))
        .map_err(|e| Error::io("cut the file", &found.path, e))?;
    Ok(saved)
}

/// Copy the damaged file to the quarantine, and put a file with the runs into its place.
fn replace(directory: &Directory, found: &Finished, runs: &[Run]) -> Result<PathBuf> {
    let (storage, mode) = (&*directory.storage, directory.file_mode);
    let fail = |path: &Path, e| Error::io("repair the file", path, e);
    let kept = directory.free_in_quarantine(found.index)?;
    let whole = [Run { start: 0, end: found.len }];
    let create = |path: &Path, runs: &[Run]| -> io::Result<()> {
        let copy = storage.create_new(path, mode)?;
        let mut at = 0;
        for run in runs {
            at += copy_part(&*found.file, run.start..run.end, &*copy, at)?;
        }
        copy.sync_data()
    };
    create(&kept, &whole).map_err(|e| fail(&kept, e))?;
    storage.sync_dir(crate::storage::above(&kept)).map_err(|e| fail(&kept, e))?;
    let aside = directory.sidecar().join(format!(".repair-{}.tmp", directory.base));
    remove(storage, &aside).map_err(|e| fail(&aside, e))?;
    create(&aside, runs).map_err(|e| fail(&aside, e))?;
    let gate = directory.gate()?;
    check_free(directory, &gate, found)?;
    move_to(storage, &aside, &found.path).map_err(|e| fail(&found.path, e))?;
    Ok(kept)
}

/// Refuse a leased file, and a file that changed during the repair.
fn check_free(directory: &Directory, gate: &Gate, found: &Finished) -> Result<()> {
    let refused = |why: &str| Err(Error::new(ErrorKind::Locked, why).at(&found.path));
    if directory.leased(gate, None)?.contains(&found.index) {
        return refused("a sender has leased the damaged file: repair it when it was sent");
    }
    match directory.finished(gate, found.index)? {
        Some(now) if now.id == found.id && now.len == found.len => Ok(()),
        _ => refused("the file changed during the repair: repair it once more"),
    }
}

/// Copy bytes to a place of another file; returns how many.
fn copy_part(from: &dyn File, bytes: Range<u64>, to: &dyn File, at: u64) -> io::Result<u64> {
    let mut block = vec![0; COPY_BYTES.min((bytes.end - bytes.start) as usize)];
    let mut done = bytes.start;
    while done < bytes.end {
        let want = (bytes.end - done).min(block.len() as u64) as usize;
        let read = read_full(from, part_mut(&mut block, ..want), done)?;
        if read < want {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_full(to, part(&block, ..want), at + (done - bytes.start))?;
        done += want as u64;
    }
    Ok(bytes.end - bytes.start)
}
