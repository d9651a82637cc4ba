//! The columns of an event in Arrow.

use crate::nostr::bytes::format::FORMAT;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, ErrorKind, Result};

/// Bytes of an id and of a key.
pub(super) const KEY_BYTES: i32 = 32;
/// Bytes of a signature.
pub(crate) const SIG_BYTES: i32 = 64;
/// The time zone of times.
pub(super) const UTC: &str = "UTC";

/// A column of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Id: 32 bytes.
    Id,
    /// Public key of the author: 32 bytes.
    Pubkey,
    /// When it was created: microseconds in UTC, because Parquet and Spark have no seconds.
    CreatedAt,
    /// Kind: int32.
    Kind,
    /// Tags: lists of lists of texts, without loss, because every value of a tag is text.
    Tags,
    /// Content: text.
    Content,
    /// Signature: 64 bytes.
    Sig,
    /// The store's notes, as an int32: 1 deleted, 2 replaced, and 64 for a lossy event.
    Flags,
    /// Number of the event's segment: int64.
    Segment,
    /// The first byte of the event's first page in the segment: int64.
    Offset,
    /// Size of the event's pages in bytes: int64.
    Length,
}

impl Column {
    /// All columns.
    const ALL: [Self; 11] = [
        Self::Id,
        Self::Pubkey,
        Self::CreatedAt,
        Self::Kind,
        Self::Tags,
        Self::Content,
        Self::Sig,
        Self::Flags,
        Self::Segment,
        Self::Offset,
        Self::Length,
    ];

    /// Name and type.
    pub fn field(self) -> Field {
        let data_type = match self {
            Self::Id | Self::Pubkey => DataType::FixedSizeBinary(KEY_BYTES),
            Self::CreatedAt => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::Kind | Self::Flags => DataType::Int32,
            Self::Tags => DataType::List(tag_field()),
            Self::Content => DataType::Utf8,
            Self::Sig => DataType::FixedSizeBinary(SIG_BYTES),
            Self::Segment | Self::Offset | Self::Length => DataType::Int64,
        };
        Field::new(self.name(), data_type, false)
    }

    /// The Arrow schema of some columns.
    pub fn schema(columns: &[Self]) -> SchemaRef {
        Arc::new(Schema::new(columns.iter().map(|column| column.field()).collect::<Vec<_>>()))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Pubkey => "pubkey",
            Self::CreatedAt => "created_at",
            Self::Kind => "kind",
            Self::Tags => "tags",
            Self::Content => "content",
            Self::Sig => "sig",
            Self::Flags => "flags",
            Self::Segment => "segment",
            Self::Offset => "offset",
            Self::Length => "length",
        }
    }
}

/// A tag in the list of tags.
pub(super) fn tag_field() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::List(text_field()), false))
}

/// A text in a tag.
pub(super) fn text_field() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Utf8, false))
}

impl Column {
    /// The columns of these names.
    pub fn all_of(names: &[impl AsRef<str>]) -> Result<Vec<Self>> {
        names.iter().map(|name| Self::named(name.as_ref())).collect()
    }

    fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            let message = format!("column {name:?}, must be one of {known}");
            Error::new(ErrorKind::InvalidArgument, message).of(FORMAT)
        })
    }
}
