//! Staged files: each has the encoded records of one task, in `.deedbook/staged`, durable before
//! the commit.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::desk::{Desk, Part, StagingLock, check_job};
use super::intent::Intent;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::checksum::crc32_more;
use crate::saving::{make_dir, refuse_link};
use crate::sidecar::{PRIVATE_MODE, is_absence, lock_within, make_sidecar, refuse_linked};
use crate::storage::segmented::remove;
use crate::storage::{Access, File, above, write_full};

const STAGED_NAME: &str = "staged";
/// A commit holds the lock from its look at the staged files until the intent is stored.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// A job's staged and uncommitted files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedJob {
    /// Its name.
    pub job: String,
    /// Files.
    pub files: u64,
    /// Their size, bytes.
    pub bytes: u64,
    /// The time of the last write, if known.
    pub modified: Option<SystemTime>,
    /// Whether a commit of the job has begun. The next opening for writing finishes the commit.
    pub is_committing: bool,
}

/// The job in a staged file's name; `None` for other names.
fn job_of(name: &OsStr) -> Option<String> {
    let mut words = name.to_str()?.split('.');
    let job = words.next().filter(|job| check_job(job).is_ok())?;
    let [partition, sequence, attempt] = [words.next()?, words.next()?, words.next()?];
    let is_number = |number: u64, word: &str| number.to_string() == word;
    let fits = is_number(partition.parse::<u32>().ok()?.into(), partition)
        && is_number(sequence.parse::<u32>().ok()?.into(), sequence)
        && is_number(attempt.parse().ok()?, attempt)
        && words.next().is_none();
    fits.then(|| job.to_string())
}

/// The parts by partition and sequence; partitions without a number come last, in the order of their first parts. Refuses
/// parts of one partition from several attempts of a task, and a partition with a missing part.
pub fn in_order(parts: &[Part], job: &str) -> Result<Vec<Part>> {
    let mut parts = parts.to_vec();
    let mut places = HashMap::new();
    for part in &parts {
        let next = places.len();
        places.entry(part.partition).or_insert(next);
    }
    let order = |partition: u32| match partition < Part::UNNUMBERED {
        true => (partition, None),
        false => (Part::UNNUMBERED, places.get(&partition)),
    };
    parts.sort_by_key(|part| (order(part.partition), part.sequence));
    let refused =
        |message| Err(Error::new(ErrorKind::InvalidArgument, message).with_durable(Durable::No));
    let mut last: Option<&Part> = None;
    for part in &parts {
        let Part { partition, sequence, attempt, .. } = *part;
        let before = last.replace(part).filter(|before| before.partition == partition);
        if let Some(before) = before
            && (before.sequence == sequence || before.attempt != attempt)
        {
            return refused(format!(
                "partition {partition} of job {job} is there twice, by attempts {} and {attempt}",
                before.attempt
            ));
        }
        let next = before.map_or(0, |before| before.sequence + 1);
        if sequence != next {
            return refused(format!(
                "part {next} of partition {partition} of job {job} is missing"
            ));
        }
    }
    Ok(parts)
}

/// A staged file that is being written.
#[derive(Debug)]
pub struct StagedFile {
    path: PathBuf,
    file: Box<dyn File>,
    /// Byte of the first record.
    from: u64,
    bytes: u64,
    sum: u32,
}

impl StagedFile {
    pub(crate) fn create(desk: &Desk<'_>, job: &str, part: &Part) -> Result<Self> {
        check_job(job)?;
        let dir = desk.staged_dir()?;
        make_sidecar(desk.storage, desk.sidecar)?;
        make_dir(desk.storage, &dir, PRIVATE_MODE)?;
        let path = dir.join(part.file_name(job));
        let created = desk.storage.create_new(&path, desk.file_mode);
        let file = created.map_err(|e| Error::io("create the staged file", &path, e))?;
        Ok(Self { path, file, from: desk.staged_from, bytes: 0, sum: 0 })
    }

    /// Size in bytes, up to now.
    pub(crate) fn bytes_len(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        write_full(&*self.file, bytes, self.from + self.bytes)
            .map_err(|e| Error::io("write the staged file", &self.path, e))?;
        self.sum = crc32_more(self.sum, bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Make the file durable; returns size and checksum.
    pub(crate) fn finish(&self, desk: &Desk<'_>) -> Result<(u64, u32)> {
        let named = || match desk.storage.sync_dir(above(&self.path)) {
            // A retention took the file along to another epoch, and synced its name there.
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.file.is_unlinked()? => Ok(()),
            named => named,
        };
        self.file
            .sync_data()
            .and_then(|()| named())
            .map_err(|e| Error::io("sync the staged file", &self.path, e))?;
        Ok((self.bytes, self.sum))
    }

    /// Remove it.
    pub(crate) fn discard(&self, desk: &Desk<'_>) -> Result<()> {
        remove(desk.storage, &self.path)
            .map_err(|e| Error::io("remove the staged file", &self.path, e))
    }
}

impl Desk<'_> {
    /// The directory of staged files. Refuses a link there, and above.
    fn staged_dir(&self) -> Result<PathBuf> {
        let dir = self.sidecar.join(STAGED_NAME);
        refuse_linked(self.storage, self.sidecar)?;
        refuse_link(self.storage, &dir)?;
        Ok(dir)
    }

    /// Keep others from removing or committing staged files; `None` if nobody ever staged a file.
    pub(crate) fn lock(&self) -> Result<StagingLock> {
        let dir = self.staged_dir()?;
        match self.storage.is_dir(&dir) {
            true => lock_within(self.storage, &dir, LOCK_WAIT).map(Some),
            false => Ok(None),
        }
    }

    /// The path of a staged file. Refuses a job's name that would lead elsewhere.
    pub(crate) fn part_path(&self, job: &str, part: &Part) -> Result<PathBuf> {
        check_job(job)?;
        Ok(self.staged_dir()?.join(part.file_name(job)))
    }

    /// Open a staged file for reading.
    pub(crate) fn open_part(&self, job: &str, part: &Part) -> Result<(PathBuf, Box<dyn File>)> {
        let path = self.part_path(job, part)?;
        let file = self
            .storage
            .open(&path, Access::Read)
            .map_err(|e| Error::io("open the staged file", &path, e).with_durable(Durable::No))?;
        Ok((path, file))
    }

    /// Refuse parts that are not there whole.
    pub(crate) fn check_parts(&self, job: &str, parts: &[Part]) -> Result<()> {
        for part in parts {
            let (path, file) = self.open_part(job, part)?;
            let len = file.len().map_err(|e| Error::io("look at the staged file", &path, e))?;
            // Nothing was written to that of a task without records.
            let is_empty = part.bytes == 0 && len == 0;
            let whole = self.staged_from + part.bytes;
            if len != whole && !is_empty {
                let message = format!("the staged file has {len} bytes, not {whole}");
                let error = Error::new(ErrorKind::Corrupt, message).at(&path);
                return Err(error.with_durable(Durable::No));
            }
        }
        Ok(())
    }

    /// Move the parts of a job from another desk on the same disk.
    pub(crate) fn adopt(&self, from: &Desk<'_>, job: &str, parts: &[Part]) -> Result<()> {
        let _lock = from.lock()?;
        let lies_there = |part: &&Part| from.open_part(job, part).is_ok();
        let there = parts.iter().filter(lies_there);
        let paths: Result<Vec<_>> = there.map(|part| from.part_path(job, part)).collect();
        self.take_along(paths?.into_iter())
    }

    /// Move all staged files from another desk on the same disk.
    pub(crate) fn adopt_all(&self, from: &Desk<'_>) -> Result<()> {
        let _lock = from.lock()?;
        self.take_along(from.files()?.into_iter().map(|(_, path)| path))
    }

    /// Rename another desk's staged files into this desk, durably.
    fn take_along(&self, paths: impl Iterator<Item = PathBuf>) -> Result<()> {
        let (here, mut moved) = (self.staged_dir()?, false);
        for path in paths {
            make_sidecar(self.storage, self.sidecar)?;
            make_dir(self.storage, &here, PRIVATE_MODE)?;
            let place = here.join(path.file_name().unwrap_or_default());
            match self.storage.rename(&path, &place) {
                // The task gave its file up.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                renamed => {
                    renamed.map_err(|e| Error::io("take the staged file along", &place, e))?;
                    moved = true;
                }
            }
        }
        if moved {
            let sync = self.storage.sync_dir(&here);
            sync.map_err(|e| Error::io("sync the directory", &here, e))?;
        }
        Ok(())
    }

    /// The staged files, by job.
    pub(crate) fn staged(&self) -> Result<Vec<StagedJob>> {
        let committing = Intent::load(self)?.map(|intent| intent.transaction.job);
        let mut jobs: Vec<StagedJob> = Vec::new();
        for (job, path) in self.files()? {
            let file = match self.storage.open(&path, Access::Read) {
                Err(e) if is_absence(&e) => continue,
                file => file.map_err(|e| Error::io("look at the staged file", &path, e))?,
            };
            let bytes = file.len().unwrap_or(0).saturating_sub(self.staged_from);
            let modified = file.modified().ok().flatten();
            if jobs.last().is_none_or(|last| last.job != job) {
                let is_committing = committing.as_ref() == Some(&job);
                jobs.push(StagedJob { job, files: 0, bytes: 0, modified: None, is_committing });
            }
            if let Some(last) = jobs.last_mut() {
                last.files += 1;
                last.bytes += bytes;
                last.modified = last.modified.max(modified);
            }
        }
        Ok(jobs)
    }

    /// Remove a job's staged files, unless a commit of the job has begun. Returns whether the files
    /// are removed.
    pub(crate) fn discard(&self, job: &str) -> Result<bool> {
        check_job(job)?;
        let _lock = self.lock()?;
        if Intent::load(self)?.is_some_and(|intent| intent.transaction.job == job) {
            return Ok(false);
        }
        self.remove_files(job)?;
        Ok(true)
    }

    /// Remove all staged files of a job.
    pub(super) fn remove_files(&self, job: &str) -> Result<()> {
        for (_, path) in self.files()?.into_iter().filter(|(of, _)| of == job) {
            remove(self.storage, &path)
                .map_err(|e| Error::io("remove the staged file", &path, e))?;
        }
        Ok(())
    }

    /// The staged files with their jobs, sorted by name.
    fn files(&self) -> Result<Vec<(String, PathBuf)>> {
        let dir = self.staged_dir()?;
        let mut names = match self.storage.list(&dir) {
            Err(e) if is_absence(&e) => Vec::new(),
            names => names.map_err(|e| Error::io("list the directory", &dir, e))?,
        };
        names.sort();
        Ok(names.iter().filter_map(|name| Some((job_of(name)?, dir.join(name)))).collect())
    }
}
