//! `manifest.json` lists the segments of the store. Each change replaces the whole file durably.
//!
//! `.deedbook/manifest` is a copy of the manifest with a checksum. When the list of segments or the
//! history option changes, the store writes the copy first. If the manifest is missing, wrong or
//! outdated, the copy names the segments. The newer of the two files counts.

use std::path::Path;

use serde_json::{Map, Value, json};

mod listed;

pub use listed::{KeptDead, Listed};

use listed::number;

use super::options::settings::Settings;
use super::options::{History, Options};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32;
use crate::nostr::log::entry::Lsn;
use crate::saving::refuse_link;
use crate::sidecar::{PRIVATE_MODE, is_absence, sidecar_dir};
use crate::storage::{Access, Storage, read_full, replace};

const NAME: &str = "manifest.json";
/// The name of the copy in `.deedbook`.
const COPY_NAME: &str = "manifest";
const VERSION: u64 = 1;
const BYTES_MAX: u64 = 16 << 20;
/// Present if the store keeps replaced events; otherwise absent.
const HISTORY: &str = "history";
const KEPT: &str = "keep";
/// Set if a repair cut the write-ahead log after the last checkpoint.
const LOG_CUT: &str = "log_cut";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    pub created_at: u64,
    pub last_checkpoint_lsn: u64,
    pub next_segment_id: u32,
    pub segments: Vec<Listed>,
    pub last_compaction_time: u64,
    /// The number of compactions so far. The index belongs to one of them.
    pub compactions: u64,
    /// How many deleted events the compactions dropped.
    pub total_deleted: u64,
    /// How many replaced events the compactions dropped.
    pub total_replaced: u64,
    pub page_bytes: u32,
    /// The other settings of the store.
    pub settings: Settings,
    /// The history option, which also counts for openings that do not set the option.
    pub history: History,
    /// Whether a repair cut the write-ahead log, so that the log may lack events of the segments.
    pub is_log_cut: bool,
    /// Whether another program wrote the manifest: our earlier notes then say nothing about the
    /// store.
    pub is_foreign: bool,
    /// Whether this value was read from the copy.
    pub is_copy: bool,
    /// The content of the copy, if known.
    copied: Option<Copied>,
}

/// The segments and the number of compactions. Numbers of compactions and segments only grow.
pub type Generation = (u64, u32, Vec<u32>);

/// The fields that make the store rewrite the copy when they change.
type Copied = (Generation, History);

impl Manifest {
    /// Load the manifest; `None` for a missing or unreadable file. Another version is refused.
    pub fn load(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        let bytes = read(storage, &path)?;
        bytes.map_or(Ok(None), |bytes| Self::parse(&bytes, &path))
    }

    /// Load the copy; `None` also for a wrong checksum.
    pub fn load_copy(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        refuse_link(storage, &sidecar_dir(dir))?;
        let path = sidecar_dir(dir).join(COPY_NAME);
        let bytes = read(storage, &path)?;
        let text = bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let whole = text.and_then(|text| {
            let (text, sum) = text.trim_end_matches('\n').rsplit_once('\n')?;
            (sum == sum_of(text)).then_some(text)
        });
        let copy = whole.map_or(Ok(None), |text| Self::parse(text.as_bytes(), &path))?;
        Ok(copy.map(|copy| Self { copied: Some(copy.to_copy()), is_copy: true, ..copy }))
    }

    /// Replace the manifest; first replace the copy if its content differs.
    pub fn store(&mut self, options: &Options, dir: &Path) -> Result<()> {
        let text = format!("{:#}", self.encode(options));
        let to_copy = self.to_copy();
        let put = |path: &Path, text: String, mode| {
            replace(&*options.storage, path, text.as_bytes(), mode)
                .map_err(|e| Error::io("store the manifest", path, e))
        };
        if self.copied.as_ref() != Some(&to_copy) {
            let sum = sum_of(&text);
            put(&sidecar_dir(dir).join(COPY_NAME), format!("{text}\n{sum}\n"), PRIVATE_MODE)?;
            self.copied = Some(to_copy);
        }
        (self.is_foreign, self.is_copy) = (false, false);
        put(&dir.join(NAME), text + "\n", options.file_mode)
    }

    /// The last checkpoint. 0 if another program wrote the manifest, because it may keep no such
    /// log.
    pub fn checkpoint(&self) -> Lsn {
        Lsn(if self.is_foreign { 0 } else { self.last_checkpoint_lsn })
    }

    /// The file's name in messages.
    pub fn name(&self) -> &'static str {
        if self.is_copy { "the copy of the manifest" } else { "the manifest" }
    }

    /// The listed segments, and the generation to which they belong.
    pub fn generation(&self) -> Generation {
        let ids = self.segments.iter().map(|segment| segment.id).collect();
        (self.compactions, self.next_segment_id, ids)
    }

    fn to_copy(&self) -> Copied {
        (self.generation(), self.history)
    }

    /// List only these segments, as a new generation.
    pub fn name_only(&mut self, ids: impl Iterator<Item = u32>) {
        let before = std::mem::take(&mut self.segments);
        let listed = |id| {
            let (created_at, size_bytes, record_count) = (0, 0, 0);
            let (is_compacted, dead) = (false, None);
            let unknown = Listed { id, created_at, size_bytes, record_count, is_compacted, dead };
            before.iter().find(|named| named.id == id).copied().unwrap_or(unknown)
        };
        self.segments = ids.map(listed).collect();
        let last = self.segments.iter().map(|segment| segment.id.saturating_add(1)).max();
        self.next_segment_id = self.next_segment_id.max(last.unwrap_or(0));
        self.compactions += 1;
    }

    /// Take the number of a new segment.
    pub fn take_segment_id(&mut self) -> Result<u32> {
        let id = self.next_segment_id;
        self.next_segment_id = after(id)?;
        Ok(id)
    }

    /// Whether the manifest lists a segment.
    pub fn names(&self, id: u32) -> bool {
        self.segments.iter().any(|segment| segment.id == id)
    }

    /// The listed size of a segment: a hint.
    pub fn size_of(&self, id: u32) -> Option<u64> {
        self.segments.iter().find(|segment| segment.id == id).map(|segment| segment.size_bytes)
    }

    /// The listed number of records of a segment.
    pub fn records_of(&self, id: u32) -> Option<u32> {
        let listed = self.segments.iter().find(|segment| segment.id == id)?;
        listed.record_count.try_into().ok()
    }

    /// The dead bytes of a segment.
    pub fn dead_of(&self, id: u32) -> Option<KeptDead> {
        self.segments.iter().find(|segment| segment.id == id)?.dead
    }

    /// The least end of a segment's pages: this program stores the size after a sync of the
    /// segments. A size other than whole pages is damage of the manifest, and returns `None`.
    pub fn pages_end(&self, id: u32, page_bytes: u32) -> Option<u32> {
        let size: u32 = self.size_of(id).filter(|_| !self.is_foreign)?.try_into().ok()?;
        (size >= page_bytes && size.is_multiple_of(page_bytes)).then_some(size)
    }

    fn encode(&self, options: &Options) -> Value {
        let segments: Vec<Value> = self.segments.iter().map(Listed::encode).collect();
        let records = self.segments.iter().map(|segment| segment.record_count);
        let records = records.fold(0, u64::saturating_add);
        let mut value = json!({
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
        });
        let Some(object) = value.as_object_mut() else { return value };
        options.encode_settings(&self.settings, object);
        if self.is_log_cut {
            object.insert(LOG_CUT.into(), true.into());
        }
        if self.history == History::Keep {
            object.insert(HISTORY.into(), KEPT.into());
        }
        value
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Option<Self>> {
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        let Some(object) = value.as_ref().and_then(Value::as_object) else { return Ok(None) };
        match object.get("version").and_then(Value::as_u64) {
            Some(VERSION) => Ok(Self::decode(object)),
            None => Ok(None),
            // An opening would overwrite the other version's manifest and lose its fields.
            Some(version) => {
                let message = format!("a manifest of version {version}, known is {VERSION}");
                let error = Error::new(ErrorKind::Unsupported, message).at(path);
                Err(error.with_advice("use the version of the program that wrote the store"))
            }
        }
    }

    fn decode(object: &Map<String, Value>) -> Option<Self> {
        let number = |name| number(object, name);
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
            last_compaction_time: count(object, "last_compaction_time")?,
            is_foreign: object.get("compactions").and_then(Value::as_u64).is_none(),
            compactions: count(object, "compactions")?,
            total_deleted: count(object, "total_deleted")?,
            total_replaced: count(object, "total_replaced")?,
            page_bytes: number("page_size")?.try_into().ok()?,
            settings: Settings::decode(object),
            // An unknown word drops no events.
            history: match object.get(HISTORY) {
                None => History::Drop,
                Some(_) => History::Keep,
            },
            is_log_cut: object.contains_key(LOG_CUT),
            is_copy: false,
            copied: None,
        })
    }
}

/// The bytes of a file, if the file exists.
fn read(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    let failed = |e| Error::io("read the manifest", path, e);
    let file = match storage.open(path, Access::Read) {
        Err(e) if is_absence(&e) => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let len = file.len().map_err(failed)?.min(BYTES_MAX);
    let mut bytes = vec![0; len as usize];
    let read = read_full(&*file, &mut bytes, 0).map_err(failed)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// The last line of the copy.
fn sum_of(text: &str) -> String {
    format!("crc {:08x}", crc32(text.as_bytes()))
}

/// Like `number`, with 0 for a missing number.
fn count(object: &Map<String, Value>, name: &str) -> Option<u64> {
    match object.get(name).and_then(Value::as_u64) {
        None => Some(0),
        Some(_) => number(object, name),
    }
}

/// The number after that of a segment.
pub fn after(id: u32) -> Result<u32> {
    let message = format!("segment {id} is the last number, no further segment can be made");
    id.checked_add(1).ok_or_else(|| Error::new(ErrorKind::TooLarge, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use std::sync::Arc;

    fn options() -> Options {
        let memory = Memory::new();
        memory.create_dir(Path::new("/s")).unwrap();
        memory.create_dir(&sidecar_dir(Path::new("/s"))).unwrap();
        Options { storage: Arc::new(memory), ..Options::default() }
    }

    fn manifest() -> Manifest {
        let listed = |id| Listed {
            id,
            created_at: 1_655_000_000,
            size_bytes: 49_152,
            record_count: 8,
            is_compacted: id == 4,
            dead: (id == 4).then_some(KeptDead { bytes: 8192, at: 1_655_000_000, until: u64::MAX }),
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

    /// The manifest with the default settings, which storing adds.
    fn with_settings() -> Manifest {
        let value = manifest().encode(&options());
        Manifest { settings: Settings::decode(value.as_object().unwrap()), ..manifest() }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let options = options();
        assert_eq!(Manifest::load(&*options.storage, Path::new("/s")).unwrap(), None);
        assert_eq!(Manifest::load_copy(&*options.storage, Path::new("/s")).unwrap(), None);
        manifest().store(&options, Path::new("/s")).unwrap();
        let loaded = Manifest::load(&*options.storage, Path::new("/s")).unwrap();
        assert_ne!(with_settings(), manifest());
        assert_eq!(loaded, Some(with_settings()));
        let copy = Manifest::load_copy(&*options.storage, Path::new("/s")).unwrap();
        let copied = Some(manifest().to_copy());
        assert_eq!(copy, Some(Manifest { copied, is_copy: true, ..with_settings() }));
    }

    #[test]
    fn a_changed_policy_renews_the_copy() {
        let (options, dir) = (options(), Path::new("/s"));
        let mut stored = manifest();
        for history in [History::Drop, History::Keep, History::Drop] {
            stored.history = history;
            stored.store(&options, dir).unwrap();
            let loaded = Manifest::load(&*options.storage, dir).unwrap().unwrap();
            let copy = Manifest::load_copy(&*options.storage, dir).unwrap().unwrap();
            assert_eq!((loaded.history, copy.history), (history, history));
        }
    }

    #[test]
    fn a_copy_with_a_changed_byte_is_missing() {
        let options = options();
        manifest().store(&options, Path::new("/s")).unwrap();
        let path = sidecar_dir(Path::new("/s")).join(COPY_NAME);
        let text = read(&*options.storage, &path).unwrap().unwrap();
        for at in 0..text.len() - 1 {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            replace(&*options.storage, &path, &damaged, 0o600).unwrap();
            let copy = Manifest::load_copy(&*options.storage, Path::new("/s")).unwrap();
            assert_eq!(copy, None, "byte {at}");
        }
    }

    #[test]
    fn a_manifest_that_contradicts_itself_counts_as_missing() {
        let twice = Manifest { segments: vec![manifest().segments[0]; 2], ..manifest() };
        let beyond = Manifest { next_segment_id: 4, ..manifest() };
        for mut wrong in [twice, beyond] {
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
