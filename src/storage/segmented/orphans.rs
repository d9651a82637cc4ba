//! Segments after a gap: no part of the log, and yet records.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::gapped::Gapped;
use super::{Listing, Segmented};
use crate::ground::locks::lock;
use crate::storage::Access;
use crate::storage::end_of_data;

impl Segmented {
    /// Whether segments lie after a gap.
    pub fn has_orphans(&self) -> bool {
        !lock(&self.state).orphans.is_empty()
    }

    /// All segments as one file, whose gaps read as zeros, and the byte after the last segment.
    pub fn with_orphans(&self) -> io::Result<(Gapped, u64)> {
        let (first, next, orphans) = {
            let state = lock(&self.state);
            (state.first, state.next, state.orphans.clone())
        };
        let mut runs: Vec<std::ops::Range<u64>> = Vec::new();
        let mut parts = Vec::new();
        let mut whole = false;
        for index in (first..next).chain(orphans) {
            let bytes = self.storage.open(&self.path(index), Access::Read)?.len()?;
            match runs.last_mut().filter(|run| whole && run.end == index) {
                Some(run) => run.end = index + 1,
                None => runs.push(index..index + 1),
            }
            whole = bytes == self.segment_bytes;
            let end = index * self.segment_bytes + bytes.min(self.segment_bytes);
            // Make as many parts as runs: without a new run, the last part grows.
            if parts.len() < runs.len() {
                parts.push((index * self.segment_bytes, end));
            } else if let Some((_, last)) = parts.last_mut() {
                *last = end;
            }
        }
        let files = runs.into_iter().map(|run| self.over(run));
        let parts: Vec<_> =
            parts.into_iter().zip(files).map(|((start, end), file)| (start, end, file)).collect();
        let end = parts.last().map_or(first * self.segment_bytes, |&(_, end, _)| end);
        Ok((Gapped::new(parts), end))
    }

    /// Other segments of the directory, for reading.
    fn over(&self, run: std::ops::Range<u64>) -> Self {
        let extent = Listing { first: run.start, next: run.end, ..Listing::default() };
        let (storage, name) = (self.storage.clone(), self.name);
        let bytes = self.segment_bytes;
        Self::new(storage, &self.dir, name, bytes, Access::Read, self.file_mode, extent)
    }

    /// The segments after a gap that hold data. Segments of zeros were reserved and never written.
    pub fn orphans(&self) -> io::Result<Vec<PathBuf>> {
        let orphans = lock(&self.state).orphans.clone();
        let mut files = Vec::new();
        for index in orphans {
            if self.has_data(index)? {
                files.push(self.path(index));
            }
        }
        Ok(files)
    }

    fn has_data(&self, index: u64) -> io::Result<bool> {
        let file = self.storage.open(&self.path(index), Access::Read)?;
        Ok(end_of_data(&*file, 0, file.len()?)? > 0)
    }

    /// Rename the segments after a gap that hold data: no reader then takes them for a part of the
    /// log, and no byte is lost, not even bytes that an earlier repair saved under the same name. A
    /// cut removes the segments without data. Returns the new names, in the order of the log.
    pub fn set_orphans_aside(&self) -> io::Result<Vec<PathBuf>> {
        let _syncing = lock(&self.syncing);
        let mut state = lock(&self.state);
        let orphans = std::mem::take(&mut state.orphans);
        let mut aside = Vec::new();
        if orphans.is_empty() {
            return Ok(aside);
        }
        // No other process renames here: we have the log's lock.
        let taken: BTreeSet<_> = self.storage.list(&self.dir)?.into_iter().collect();
        for index in orphans.into_iter().rev() {
            if !self.has_data(index)? {
                state.orphans.push(index);
                continue;
            }
            let plain = format!("{}.cut", (self.name)(index));
            let numbered = (2..).map(|number| format!("{plain}.{number}"));
            let mut names = std::iter::once(plain.clone()).chain(numbered).map(OsString::from);
            let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
            let to = self.dir.join(name);
            self.storage.rename(&self.path(index), &to)?;
            aside.push(to);
        }
        self.storage.sync_dir(&self.dir)?;
        aside.reverse();
        Ok(aside)
    }
}
