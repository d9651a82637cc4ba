//! Segments behind a gap: no part of the log, and yet somebody's records.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;

use super::{Extent, Segments};
use crate::locks::lock;
use crate::storage::Access;
use crate::wal::format::segment_name;

impl Segments {
    /// Whether segments lie behind a gap.
    pub fn has_stray(&self) -> bool {
        !lock(&self.state).stray.is_empty()
    }

    /// The segments behind gaps, in runs without gaps: a segment that is too short ends its run.
    pub fn stray_runs(&self) -> io::Result<Vec<std::ops::Range<u64>>> {
        let mut runs: Vec<std::ops::Range<u64>> = Vec::new();
        let mut whole = false;
        for &index in &lock(&self.state).stray {
            match runs.last_mut().filter(|run| whole && run.end == index) {
                Some(run) => run.end = index + 1,
                None => runs.push(index..index.saturating_add(1)),
            }
            let bytes = self.storage.open(&self.path(index), Access::Read)?.len()?;
            whole = bytes == self.segment_bytes;
        }
        Ok(runs)
    }

    /// Other segments of the directory, for reading.
    pub fn over(&self, run: std::ops::Range<u64>) -> Self {
        let extent = Extent { first: run.start, next: run.end, stray: Vec::new() };
        let storage = self.storage.clone();
        Self::new(storage, &self.dir, self.segment_bytes, Access::Read, self.file_mode, extent)
    }

    /// Rename the segments behind a gap, so that no reader takes them for a part of the log and
    /// nothing is lost: not what an earlier repair saved under that name either.
    pub fn set_stray_aside(&self) -> io::Result<()> {
        let _syncing = lock(&self.syncing);
        let mut state = lock(&self.state);
        let stray = std::mem::take(&mut state.stray);
        if stray.is_empty() {
            return Ok(());
        }
        // Nobody else renames here: we have the log's lock.
        let taken: BTreeSet<_> = self.storage.list(&self.dir)?.into_iter().collect();
        for index in stray.iter().rev() {
            let plain = format!("{}.cut", segment_name(*index));
            let numbered = (2..).map(|number| format!("{plain}.{number}"));
            let mut names = std::iter::once(plain.clone()).chain(numbered).map(OsString::from);
            let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
            self.storage.rename(&self.path(*index), &self.dir.join(name))?;
        }
        self.storage.sync_dir(&self.dir)
    }
}
