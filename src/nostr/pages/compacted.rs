//! The intent of a compaction, `.deedbook/compaction`: the new segments, and the old segments that
//! they replace.
//!
//! 1. A compaction fills its new segments under unfinished names, `data.N.seg.compacting`, and
//!    syncs files and names.
//! 2. It stores the intent. From here on the compaction counts: the store has the new segments
//!    under either name, and no longer has the old segments.
//! 3. It renames the new segments, stores the manifest, and deletes the old segments. After a sync
//!    of the directory it removes the intent.
//!
//! After a crash, opening for writing repeats step 3, or deletes the unfinished files if there is
//! no intent. The removal of the intent is not synced: a power cut may bring the intent back, and
//! then step 3 finds nothing to do.

use std::path::Path;

use super::file_names::{parse_name, parse_unfinished, path_of, segments_dir, unfinished};
use super::manifest::{Listed, Manifest};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::saving::refuse_link;
use crate::sidecar::note::value;
use crate::sidecar::{Found, Note, is_absence, sidecar_dir};
use crate::storage::segmented::remove;
use crate::storage::{Access, Storage};

/// The name of the intent in `.deedbook`.
pub const INTENT_NAME: &str = "compaction";

/// A compaction that counts and may be unfinished. The default says nothing.
#[derive(Debug, Default)]
pub struct Compacted {
    /// The old segments, and the sizes of their files.
    pub old: Vec<(u32, u64)>,
    pub new: Vec<Listed>,
    /// The manifest's number of compactions afterwards.
    pub compactions: u64,
    pub next_segment_id: u32,
    pub time: u64,
    pub total_deleted: u64,
    pub total_replaced: u64,
}

impl Compacted {
    /// The intent of a compaction. An intent that the files no longer fit says nothing.
    ///
    /// # Errors
    ///
    /// Fails for a damaged intent.
    pub fn load(storage: &dyn Storage, store: &Path) -> Result<Option<Self>> {
        let sidecar = sidecar_dir(store);
        refuse_link(storage, &sidecar)?;
        let note = note(storage, &sidecar);
        let found = match note.find(is_absence)? {
            Found::Absent => return Ok(None),
            Found::Damaged => None,
            Found::Lines(lines) => Self::parse(&lines),
        };
        let Some(found) = found else {
            let error = note.error(ErrorKind::Corrupt, "is damaged");
            return Err(error.with_advice("salvage copies each event once"));
        };
        let dir = segments_dir(store);
        let is_whole = found.is_whole(storage, &dir)?;
        if !is_whole {
            lines::warn(format_args!(
                "another program wrote to the segments of an unfinished compaction, or removed some: they stay as \
                 they are ({})",
                dir.display()
            ));
        }
        Ok(Some(if is_whole { found } else { Self::default() }))
    }

    /// Whether all new segments exist, and no other program appended to an old segment.
    fn is_whole(&self, storage: &dyn Storage, dir: &Path) -> Result<bool> {
        let len = |path: &Path| match storage.open(path, Access::Read) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            file => Ok(Some(
                file.and_then(|file| file.len())
                    .map_err(|e| Error::io("look at the segment", path, e))?,
            )),
        };
        for new in &self.new {
            let path = path_of(dir, new.id);
            // In this order: a writer may rename the file meanwhile.
            if len(&unfinished(&path))?.is_none() && len(&path)?.is_none() {
                return Ok(false);
            }
        }
        for (id, bytes) in &self.old {
            let path = path_of(dir, *id);
            for path in [path.with_extension(""), path] {
                if len(&path)?.is_some_and(|len| len > *bytes) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Store the intent, durably.
    pub fn store(&self, storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        note(storage, sidecar).store(&self.encode())
    }

    /// Whether the intent says nothing.
    pub fn is_void(&self) -> bool {
        self.new.is_empty()
    }

    /// Remove the intent of a finished compaction.
    pub fn forget(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(INTENT_NAME);
        remove(storage, &path).map_err(|e| Error::io("remove the intent", &path, e))
    }

    /// Make a manifest from before the compaction list the new segments.
    pub fn apply(&self, manifest: &mut Manifest) {
        if manifest.compactions >= self.compactions {
            return;
        }
        manifest.segments.retain(|listed| !self.is_old(listed.id));
        manifest.segments.extend(&self.new);
        manifest.segments.sort_by_key(|listed| listed.id);
        manifest.compactions = self.compactions;
        manifest.next_segment_id = manifest.next_segment_id.max(self.next_segment_id);
        manifest.last_compaction_time = self.time;
        manifest.total_deleted = self.total_deleted;
        manifest.total_replaced = self.total_replaced;
    }

    fn is_old(&self, id: u32) -> bool {
        self.old.iter().any(|(old, _)| *old == id)
    }

    fn encode(&self) -> String {
        let Self { compactions, next_segment_id, time, total_deleted, total_replaced, .. } = self;
        let mut lines = format!(
            "counts {compactions} {next_segment_id} {time} {total_deleted} {total_replaced}\n"
        );
        for Listed { id, created_at, size_bytes, record_count, .. } in &self.new {
            lines += &format!("new {id} {created_at} {size_bytes} {record_count}\n");
        }
        for (id, bytes) in &self.old {
            lines += &format!("old {id} {bytes}\n");
        }
        lines
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let [compactions, next, time, total_deleted, total_replaced] =
            numbers(value(lines.next(), "counts")?)?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for line in lines {
            if let Some(fields) = value(Some(line), "new") {
                let [id, created_at, size_bytes, record_count] = numbers(fields)?;
                let id = id.try_into().ok()?;
                let (is_compacted, dead) = (true, None);
                new.push(Listed { id, created_at, size_bytes, record_count, is_compacted, dead });
            } else {
                let [id, bytes] = numbers(value(Some(line), "old")?)?;
                old.push((id.try_into().ok()?, bytes));
            }
        }
        let next_segment_id = next.try_into().ok()?;
        Some(Self { old, new, compactions, next_segment_id, time, total_deleted, total_replaced })
    }
}

fn numbers<const COUNT: usize>(fields: &str) -> Option<[u64; COUNT]> {
    let found: Option<Vec<u64>> = fields.split(' ').map(|field| field.parse().ok()).collect();
    found?.try_into().ok()
}

fn note<'a>(storage: &'a dyn Storage, sidecar: &Path) -> Note<'a> {
    let path = sidecar.join(INTENT_NAME);
    Note { storage, path, what: "the intent of a compaction" }
}

/// The number of a segment that the store has by the name of the file, given the intent.
pub fn number_of(name: &str, compacted: Option<&Compacted>) -> Option<u32> {
    match parse_unfinished(name) {
        None => parse_name(name).filter(|id| !compacted.is_some_and(|found| found.is_old(*id))),
        Some(id) => {
            compacted.and_then(|found| found.new.iter().find(|new| new.id == id)).map(|_| id)
        }
    }
}
