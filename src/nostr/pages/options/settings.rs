//! The settings of a store, kept in the manifest. An opening that names another value changes a
//! setting.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{CHECKPOINT_INTERVAL_MS, Options, RATIOS, segment_sizes};
use crate::nostr::bytes::page::is_page_bytes;
use crate::nostr::log::wal_options::{BATCH_BYTES, BATCH_INTERVAL_MS};

const SEGMENT_SIZE: &str = "segment_size";
const COMPACTION_RATIO: &str = "compaction_ratio";
/// The object with the settings of the write-ahead log.
const WAL: &str = "wal_config";
const BATCH_INTERVAL: &str = "batch_interval_ms";
const BATCH_SIZE: &str = "batch_size_bytes";
const CHECKPOINT_INTERVAL: &str = "checkpoint_interval_ms";
const CHECKPOINT_SIZE: &str = "checkpoint_size_bytes";

/// The known settings of a manifest. The page size has a field of its own there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    segment_bytes: Option<u64>,
    compaction_ratio: Option<f64>,
    batch_interval: Option<Duration>,
    batch_bytes: Option<u64>,
    checkpoint_bytes: Option<u64>,
    checkpoint_interval: Option<Duration>,
}

impl Settings {
    /// The settings of a manifest.
    pub fn decode(manifest: &Map<String, Value>) -> Self {
        let wal = manifest.get(WAL).and_then(Value::as_object);
        let of_wal = |name| wal.and_then(|wal| wal.get(name)).and_then(Value::as_u64);
        Self {
            segment_bytes: manifest.get(SEGMENT_SIZE).and_then(Value::as_u64),
            compaction_ratio: manifest.get(COMPACTION_RATIO).and_then(Value::as_f64),
            batch_interval: of_wal(BATCH_INTERVAL).map(Duration::from_millis),
            batch_bytes: of_wal(BATCH_SIZE),
            checkpoint_bytes: of_wal(CHECKPOINT_SIZE),
            checkpoint_interval: of_wal(CHECKPOINT_INTERVAL).map(Duration::from_millis),
        }
    }
}

impl Options {
    /// Add the settings in force to a manifest with earlier settings.
    pub(crate) fn encode_settings(&self, kept: &Settings, manifest: &mut Map<String, Value>) {
        let options = self.with_settings_of(self.page_size(), kept);
        let wal = json!({
            BATCH_INTERVAL: millis(&options.batch_time()),
            BATCH_SIZE: options.batch_size(),
            CHECKPOINT_INTERVAL: millis(&options.checkpoint_time()),
            CHECKPOINT_SIZE: options.checkpoint_size(),
        });
        manifest.insert(SEGMENT_SIZE.into(), options.segment_size().into());
        manifest.insert(COMPACTION_RATIO.into(), options.ratio().into());
        manifest.insert(WAL.into(), wal);
    }

    /// Fill in the store's own settings where the caller names none: the page size of the last
    /// segment, else of the manifest, and the settings of the manifest. Unknown settings and
    /// values out of range become the defaults.
    #[must_use]
    pub(crate) fn with_settings_of(&self, page_bytes: u32, kept: &Settings) -> Self {
        let pages = Some(page_bytes).filter(|&size| is_page_bytes(size));
        let mut options = Self { page_bytes: self.page_bytes.or(pages), ..self.clone() };
        let sizes = segment_sizes(options.page_size());
        let in_range = |value, range| self.accepted(range).contains(&value);
        let is_time = |time: &Duration| in_range(millis(time), &BATCH_INTERVAL_MS);
        let is_later =
            |time: &Duration| self.small || CHECKPOINT_INTERVAL_MS.contains(&millis(time));
        let checkpoint_interval = kept.checkpoint_interval.filter(is_later);
        let ratio = kept.compaction_ratio.filter(|ratio| RATIOS.contains(ratio));
        let segment_bytes = kept.segment_bytes.filter(|&size| in_range(size, &sizes));
        let batch_bytes = kept.batch_bytes.filter(|&size| in_range(size, &BATCH_BYTES));
        options.compaction_ratio = options.compaction_ratio.or(ratio);
        options.segment_bytes = options.segment_bytes.or(segment_bytes);
        options.batch_interval = options.batch_interval.or(kept.batch_interval.filter(is_time));
        options.batch_bytes = options.batch_bytes.or(batch_bytes);
        options.checkpoint_bytes = options.checkpoint_bytes.or(kept.checkpoint_bytes);
        options.checkpoint_interval = options.checkpoint_interval.or(checkpoint_interval);
        Self {
            segment_bytes: Some(options.segment_size()),
            compaction_ratio: Some(options.ratio()),
            batch_interval: Some(options.batch_time()),
            batch_bytes: Some(options.batch_size()),
            checkpoint_bytes: Some(options.checkpoint_size()),
            checkpoint_interval: Some(options.checkpoint_time()),
            ..options
        }
    }
}

fn millis(time: &Duration) -> u64 {
    time.as_millis() as u64
}
