//! The files of the segments: the directories, the names, and the end of a file.

use std::io;
use std::path::PathBuf;

use super::{Listing, Segments};
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::pages::compacted::{Compacted, number_of};
use crate::nostr::pages::file_names::{finished, parse_name, parse_unfinished};
use crate::saving::{make_own_dir, refuse_link, sync_names};
use crate::storage::segmented::remove;
use crate::storage::{above, sync_dir};

impl Segments {
    /// Create the directories and their names, durably.
    pub fn make_dirs(&self, file_mode: u32) -> Result<()> {
        let data = above(&self.dir);
        for dir in [data, &self.dir] {
            make_own_dir(&*self.storage, dir, file_mode)?;
        }
        sync_names(&*self.storage, &self.dir, data)
    }

    /// The files named like a segment, given the intent of a compaction.
    pub fn list(&self, compacted: Option<&Compacted>) -> Result<Listing> {
        for dir in [above(&self.dir), &self.dir] {
            refuse_link(&*self.storage, dir)?;
        }
        let names = match self.storage.list(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
            names => names.map_err(|e| Error::io("list the segments", &self.dir, e))?,
        };
        let mut found = Listing::default();
        for name in names.iter().filter_map(|name| name.to_str()) {
            let path = self.dir.join(name);
            let Some(id) = number_of(name, compacted) else {
                let is_leftover = parse_name(name).or(parse_unfinished(name)).is_some();
                found.leftovers.extend(is_leftover.then_some(path));
                continue;
            };
            if let Some(twin) = found.files.insert(id, path.clone()) {
                let message =
                    format!("segment {id} has two files, the other one is {}", twin.display());
                return Err(Error::new(ErrorKind::Corrupt, message).at(&path));
            }
        }
        Ok(found)
    }

    /// Stop reading these segments; returns their files.
    pub fn forget(&mut self, ids: &[u32]) -> Vec<PathBuf> {
        let gone = ids.iter().filter_map(|id| self.by_id.remove(id));
        gone.map(|open| open.segment.path().to_path_buf()).collect()
    }

    /// The sizes of these segments' files.
    pub fn sizes_of(&self, ids: &[u32]) -> Result<Vec<(u32, u64)>> {
        let open = ids.iter().filter_map(|id| self.by_id.get_key_value(id));
        open.map(|(id, open)| {
            let len = open.segment.file().len().map_err(|e| open.segment.failed(e))?;
            Ok((*id, len))
        })
        .collect()
    }

    /// Give the new segments of a compaction their final names. The caller syncs the directory.
    pub fn finish(&mut self) -> Result<()> {
        for open in self.by_id.values_mut() {
            if let Some(name) = finished(open.segment.path()) {
                let renamed = self.storage.rename(open.segment.path(), &name);
                renamed.map_err(|e| Error::io("rename the segment", &name, e))?;
                open.segment.set_path(name);
            }
        }
        Ok(())
    }

    /// Delete files, and make the new and the deleted names durable.
    pub fn delete(&self, files: &[PathBuf]) -> Result<()> {
        for path in files {
            let gone = remove(&*self.storage, path);
            gone.map_err(|e| Error::io("delete the segment", path, e))?;
        }
        self.sync_names()
    }

    /// Make the names durable.
    pub fn sync_names(&self) -> Result<()> {
        sync_dir(&*self.storage, &self.dir)
    }
}
