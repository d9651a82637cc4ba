//! Deeds as Arrow columns.

use std::str::FromStr;

use arrow_schema::{DataType, Field};

use super::codec::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::log::arrow::{Columns, Value};

/// A column of a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Event number: int64, null after damage that hid the count.
    Event,
    /// Mug: int32, its bits as stored.
    Mug,
    /// Payload: binary.
    Jam,
    /// The same under the name that other formats use.
    Payload,
    /// Byte of the deed in the log: int64.
    Offset,
    /// Bytes of the deed with its framing: int64.
    Length,
}

impl Column {
    /// The columns given by default.
    pub const DEFAULT: [Self; 3] = [Self::Event, Self::Mug, Self::Jam];
}

impl Columns for Column {
    fn field(self) -> Field {
        match self {
            Self::Event => Field::new("event", DataType::Int64, true),
            Self::Mug => Field::new("mug", DataType::Int32, false),
            Self::Jam => Field::new("jam", DataType::Binary, false),
            Self::Payload => Field::new("payload", DataType::Binary, false),
            Self::Offset => Field::new("offset", DataType::Int64, false),
            Self::Length => Field::new("length", DataType::Int64, false),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Event => Value::Ordinal,
            Self::Mug => Value::Tag,
            Self::Jam | Self::Payload => Value::Payload,
            Self::Offset => Value::Offset,
            Self::Length => Value::Length,
        }
    }
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "event" => Ok(Self::Event),
            "mug" => Ok(Self::Mug),
            "jam" => Ok(Self::Jam),
            "payload" => Ok(Self::Payload),
            "offset" => Ok(Self::Offset),
            "length" => Ok(Self::Length),
            _ => {
                let message = format!(
                    "column {name:?}, must be one of event, mug, jam (or payload), offset, length"
                );
                Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
            }
        }
    }
}
