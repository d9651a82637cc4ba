//! `manifest.json`: which segments are the store's. It is replaced as a whole, durably.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::options::Options;
use crate::error::{Error, Result};
use crate::storage::{Access, Storage, read_full, replace};

const NAME: &str = "manifest.json";
const VERSION: u64 = 1;
const BYTES_MAX: u64 = 16 << 20;

/// A segment as the manifest names it. What it says of sizes and counts are hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: u32,
    /// Seconds from 1970.
    pub created_at: u64,
    pub size_bytes: u64,
    pub record_count: u64,
    /// Whether a compaction wrote it.
    pub is_compacted: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    pub created_at: u64,
    pub last_checkpoint_lsn: u64,
    pub next_segment_id: u32,
    pub segments: Vec<Listed>,
    pub last_compaction_time: u64,
    /// How many compactions there were: the index is of one of them.
    pub compactions: u64,
    pub total_deleted: u64,
    pub total_replaced: u64,
    pub page_bytes: u32,
}

impl Manifest {
    /// `None` if there is none, or one that cannot be understood: it is made from the segments then.
    pub fn load(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        let failed = |e| Error::io("read the manifest", &path, e);
        let file = match storage.open(&path, Access::Read) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let len = file.len().map_err(failed)?.min(BYTES_MAX);
        let mut bytes = vec![0; len as usize];
        let read = read_full(&*file, &mut bytes, 0).map_err(failed)?;
        bytes.truncate(read);
        Ok(serde_json::from_slice(&bytes).ok().as_ref().and_then(Self::decode))
    }

    pub fn store(&self, options: &Options, dir: &Path) -> Result<()> {
        let path = dir.join(NAME);
        let mut text = format!("{:#}", self.encode(options));
        text.push('\n');
        replace(&*options.storage, &path, text.as_bytes(), options.file_mode)
            .map_err(|e| Error::io("store the manifest", &path, e))
    }

    /// Whether it names a segment.
    pub fn names(&self, id: u32) -> bool {
        self.segments.iter().any(|segment| segment.id == id)
    }

    /// What it says of the size of a segment: a hint.
    pub fn size_of(&self, id: u32) -> Option<u64> {
        self.segments.iter().find(|segment| segment.id == id).map(|segment| segment.size_bytes)
    }

    fn encode(&self, options: &Options) -> Value {
        let segments: Vec<Value> = self.segments.iter().map(Listed::encode).collect();
        let records: u64 = self.segments.iter().map(|segment| segment.record_count).sum();
        json!({
            "version": VERSION,
            "created_at": self.created_at,
            "last_checkpoint_lsn": self.last_checkpoint_lsn,
            "next_segment_id": self.next_segment_id,
            "active_segments": segments,
            "last_compaction_time": self.last_compaction_time,
            "compactions": self.compactions,
            "total_records": records,
            "total_deleted": self.total_deleted,
            "total_replaced": self.total_replaced,
            "page_size": self.page_bytes,
            "wal_config": {
                "batch_interval_ms": options.batch_interval.as_millis() as u64,
                "batch_size_bytes": options.batch_bytes,
                "checkpoint_size_bytes": options.checkpoint_bytes,
            },
        })
    }

    fn decode(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let number = |name| number(object, name);
        if number("version")? != VERSION {
            return None;
        }
        let listed = object.get("active_segments")?.as_array()?;
        let segments: Option<Vec<Listed>> = listed.iter().map(Listed::decode).collect();
        let (mut segments, next_segment_id) = (segments?, number("next_segment_id")?);
        segments.sort_by_key(|segment| segment.id);
        let twice = segments.windows(2).any(|pair| matches!(pair, [a, b] if a.id == b.id));
        let beyond = segments.iter().any(|segment| u64::from(segment.id) >= next_segment_id);
        if twice || beyond {
            return None;
        }
        Some(Self {
            created_at: number("created_at")?,
            last_checkpoint_lsn: number("last_checkpoint_lsn")?,
            next_segment_id: next_segment_id.try_into().ok()?,
            segments,
            last_compaction_time: number("last_compaction_time").unwrap_or(0),
            compactions: number("compactions").unwrap_or(0),
            total_deleted: number("total_deleted").unwrap_or(0),
            total_replaced: number("total_replaced").unwrap_or(0),
            page_bytes: number("page_size")?.try_into().ok()?,
        })
    }
}

impl Listed {
    fn encode(&self) -> Value {
        json!({
            "id": self.id,
            "created_at": self.created_at,
            "size_bytes": self.size_bytes,
            "record_count": self.record_count,
            "is_compacted": self.is_compacted,
        })
    }

    fn decode(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        Some(Self {
            id: number(object, "id")?.try_into().ok()?,
            created_at: number(object, "created_at")?,
            size_bytes: number(object, "size_bytes")?,
            record_count: number(object, "record_count")?,
            is_compacted: object.get("is_compacted")?.as_bool()?,
        })
    }
}

fn number(object: &Map<String, Value>, name: &str) -> Option<u64> {
    object.get(name)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use std::sync::Arc;

    fn options() -> Options {
        let memory = Memory::new();
        memory.create_dir(Path::new("/s")).unwrap();
        Options { storage: Arc::new(memory), ..Options::default() }
    }

    fn manifest() -> Manifest {
        let listed = |id| Listed {
            id,
            created_at: 1_655_000_000,
            size_bytes: 49_152,
            record_count: 8,
            is_compacted: id == 4,
        };
        Manifest {
            created_at: 1_655_000_000,
            last_checkpoint_lsn: 1024,
            next_segment_id: 5,
            segments: vec![listed(0), listed(4)],
            page_bytes: 4096,
            ..Manifest::default()
        }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let options = options();
        assert_eq!(Manifest::load(&*options.storage, Path::new("/s")).unwrap(), None);
        manifest().store(&options, Path::new("/s")).unwrap();
        let loaded = Manifest::load(&*options.storage, Path::new("/s")).unwrap();
        assert_eq!(loaded, Some(manifest()));
    }

    #[test]
    fn a_manifest_that_contradicts_itself_counts_as_missing() {
        let twice = Manifest { segments: vec![manifest().segments[0]; 2], ..manifest() };
        let beyond = Manifest { next_segment_id: 4, ..manifest() };
        for wrong in [twice, beyond] {
            let options = options();
            wrong.store(&options, Path::new("/s")).unwrap();
            assert_eq!(Manifest::load(&*options.storage, Path::new("/s")).unwrap(), None);
        }
        let options = options();
        let torn = b"{\"version\": 1, \"created_at\": 16";
        replace(&*options.storage, Path::new("/s/manifest.json"), torn, 0o600).unwrap();
        assert_eq!(Manifest::load(&*options.storage, Path::new("/s")).unwrap(), None);
    }
}
