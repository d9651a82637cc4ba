//! A segment in the manifest.

use serde_json::{Map, Value, json};

/// No store gets this far: a higher number is damage, and would wrap around to an older generation.
pub const NUMBER_MAX: u64 = 1 << 62;
/// The fields of [`KeptDead`].
const DEAD_BYTES: &str = "dead_bytes";
const DEAD_AT: &str = "dead_at";
const DEAD_UNTIL: &str = "dead_until";

/// A segment as listed in the manifest. Sizes and counts are hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: u32,
    /// Seconds from 1970.
    pub created_at: u64,
    pub size_bytes: u64,
    pub record_count: u64,
    /// Whether a compaction wrote it.
    pub is_compacted: bool,
    /// The dead bytes, unless unknown.
    pub dead: Option<KeptDead>,
}

/// The dead bytes of a segment as the manifest keeps them. The count is valid before the second `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptDead {
    pub bytes: u64,
    /// The count has the events expired up to this second.
    pub at: u64,
    pub until: u64,
}

impl Listed {
    pub fn encode(&self) -> Value {
        let mut value = json!({
            "id": self.id,
            "created_at": self.created_at,
            "size_bytes": self.size_bytes,
            "record_count": self.record_count,
            "is_compacted": self.is_compacted,
        });
        if let (Some(KeptDead { bytes, at, until }), Some(object)) =
            (self.dead, value.as_object_mut())
        {
            object.insert(DEAD_BYTES.into(), bytes.into());
            object.insert(DEAD_AT.into(), at.into());
            if until <= NUMBER_MAX {
                object.insert(DEAD_UNTIL.into(), until.into());
            }
        }
        value
    }

    pub fn decode(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let dead = || {
            let until = object.get(DEAD_UNTIL).map_or(Some(u64::MAX), Value::as_u64)?;
            Some(KeptDead {
                bytes: number(object, DEAD_BYTES)?,
                at: number(object, DEAD_AT)?,
                until,
            })
        };
        Some(Self {
            id: number(object, "id")?.try_into().ok()?,
            created_at: number(object, "created_at")?,
            size_bytes: number(object, "size_bytes")?,
            record_count: number(object, "record_count")?,
            is_compacted: object.get("is_compacted")?.as_bool()?,
            dead: dead(),
        })
    }
}

/// A number that grows without an end.
pub fn number(object: &Map<String, Value>, name: &str) -> Option<u64> {
    object.get(name)?.as_u64().filter(|number| *number <= NUMBER_MAX)
}
