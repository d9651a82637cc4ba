//! Verify and salvage the files of a ledger, without a store.

use std::io;
use std::path::Path;

use super::contents::Contents;
use super::files::FileInfo;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Batch;
use crate::ledger::codec::{FORMAT, RECORD_BYTES_WRITTEN};
use crate::ledger::format::LedgerFormat;
use crate::ledger::options::{LedgerConfig, Options};
use crate::log::{Format, Place, SalvageReport, Split, VerifyReport, copy_intact, cursor_over};
use crate::mode::Depth;
use crate::scan::framing::Frame;
use crate::storage::{Access, located};

const SALVAGE_BATCH_BYTES: usize = 4 << 20;

impl Options {
    /// Check every record of every file of a ledger. Records are numbered from 0 on in each file.
    ///
    /// # Errors
    ///
    /// Fails without a readable log. Damage is no error: the report has it.
    pub fn verify(
        &self,
        location: impl AsRef<Path>,
        base_filename: &str,
    ) -> Result<Vec<(FileInfo, VerifyReport)>> {
        self.verify_with(location, base_filename, |_, _| Ok(()))
    }

    /// As [`verify`](Self::verify). `progress` gets the bytes done and the total, and its error ends the check.
    ///
    /// # Errors
    ///
    /// Fails without a readable log. Damage is no error: the report has it. An error of `progress` ends the work and is
    /// returned.
    pub fn verify_with(
        &self,
        location: impl AsRef<Path>,
        base_filename: &str,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<(FileInfo, VerifyReport)>> {
        verify_files(self.files(location, base_filename)?, self, progress)
    }

    /// Check every record of one file, except the records of the parts `intact`, found intact by
    /// [`verify_part`](Self::verify_part): see [`verify_rest`](crate::book::Options::verify_rest) of a book.
    ///
    /// # Errors
    ///
    /// Fails without a readable log. Damage is no error: the report has it. An error of `progress` ends the work and is
    /// returned.
    pub fn verify_file(
        &self,
        path: impl AsRef<Path>,
        intact: &[Split],
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<VerifyReport> {
        crate::log::check_rest::<LedgerFormat>(path.as_ref(), self, intact, progress)
    }

    /// Copy every intact record to a new ledger, whose directory must have no files of that base: each
    /// file to one of its own, [`SalvageReport::copy`]. The quarantine, `.deedbook/quarantine`, can be copied in the same way.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors).
    pub fn salvage(
        &self,
        location: impl AsRef<Path>,
        base_filename: &str,
        target: impl AsRef<Path>,
    ) -> Result<Vec<(FileInfo, SalvageReport)>> {
        self.salvage_with(location, base_filename, target, |_, _| Ok(()))
    }

    /// As [`salvage`](Self::salvage). `progress` gets the bytes done and the total, and its error ends the copying.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn salvage_with(
        &self,
        location: impl AsRef<Path>,
        base_filename: &str,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<(FileInfo, SalvageReport)>> {
        let found = self.files(location, base_filename)?;
        salvage_files(found, base_filename, target.as_ref(), self, progress)
    }
}

impl Contents {
    /// As [`Options::verify_with`], for these files.
    ///
    /// # Errors
    ///
    /// Fails without a readable log. Damage is no error: the report has it.
    pub fn verify(
        &self,
        options: &Options,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<(FileInfo, VerifyReport)>> {
        verify_files(self.files.clone(), options, progress)
    }

    /// As [`Options::salvage_with`], for these files.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors).
    pub fn salvage(
        &self,
        target: impl AsRef<Path>,
        options: &Options,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<(FileInfo, SalvageReport)>> {
        salvage_files(self.files.clone(), &self.base, target.as_ref(), options, progress)
    }
}

fn verify_files(
    found: Vec<FileInfo>,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<Vec<(FileInfo, VerifyReport)>> {
    let all = found.iter().map(|file| file.bytes).sum();
    let (mut reports, mut done) = (Vec::new(), 0);
    for file in found {
        let step = |bytes: u64, _| progress((done + bytes).min(all), all);
        match options.verify_file(&file.path, &[], step) {
            Ok(report) => {
                done += file.bytes;
                reports.push((file, report));
            }
            // Sent meanwhile.
            Err(e) if e.kind() == ErrorKind::Missing => {}
            Err(e) => return Err(e),
        }
    }
    Ok(reports)
}

fn salvage_files(
    found: Vec<FileInfo>,
    base_filename: &str,
    target: &Path,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<Vec<(FileInfo, SalvageReport)>> {
    if !options.files(target, base_filename)?.is_empty() {
        let exists = Error::io("create the ledger", target, io::ErrorKind::AlreadyExists.into());
        return Err(exists.of(FORMAT));
    }
    let all = found.iter().map(|file| file.bytes).sum();
    let (mut copied, mut done) = (Vec::new(), 0);
    for file in found {
        let place = Place::file(&located(&*options.storage, &file.path)?);
        let inspected = match LedgerFormat::inspect(options, &place, Access::Read, Depth::Full) {
            // Sent meanwhile.
            Err(e) if e.kind() == ErrorKind::Missing => continue,
            inspected => inspected.map_err(|e| e.of(FORMAT))?,
        };
        let copying = Options {
            durability: Durability::Rotate,
            file_records_max: None,
            bytes_total_max: None,
            // The sidecar may name a larger limit than one write takes.
            record_bytes_max: inspected.format.framing().record_bytes_max.min(RECORD_BYTES_WRITTEN),
            ..options.clone()
        };
        let config = LedgerConfig::lines(target, base_filename);
        let store = copying.open(LedgerConfig { max_file_size: usize::MAX, ..config })?;
        let mut step = |bytes: u64, _| progress((done + bytes).min(all), all);
        let records = cursor_over(&LedgerFormat::common(options)?, &place, &inspected).rescuing();
        let (mut report, mut copied_bytes) = (SalvageReport::default(), 0);
        report.path.clone_from(&file.path);
        let mut batch = Batch::new(inspected.format.framing().record_bytes_max);
        copy_intact(&inspected, records, &mut report, &mut step, |report, run, frame, payload| {
            batch.push(payload)?;
            if batch.bytes_len() >= SALVAGE_BATCH_BYTES {
                store.append_batch(&batch)?;
                batch.clear();
            }
            (run.ordinal, run.offset) = (report.records, copied_bytes);
            copied_bytes += frame.len();
            Ok(())
        })?;
        store.append_batch(&batch)?;
        report.copy = store.active_path();
        store.close()?;
        done += file.bytes;
        copied.push((file, report));
    }
    Ok(copied)
}
