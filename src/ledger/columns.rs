//! Records of a file as Arrow columns.

use std::str::FromStr;

use arrow_schema::{DataType, Field};

use super::record::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::log::arrow::{Columns, Value};

/// A column of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Number of the record in its file, from 0 on: int64, null after damage that hid the count.
    Number,
    /// Byte at which the record begins: int64.
    Offset,
    /// Payload: binary.
    Payload,
    /// Bytes of the record with its header: int64.
    Length,
}

impl Column {
    /// The columns given by default.
    pub const DEFAULT: [Self; 2] = [Self::Number, Self::Payload];
}

impl Columns for Column {
    fn field(self) -> Field {
        match self {
            Self::Number => Field::new("record", DataType::Int64, true),
            Self::Offset => Field::new("offset", DataType::Int64, false),
            Self::Payload => Field::new("payload", DataType::Binary, false),
            Self::Length => Field::new("length", DataType::Int64, false),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Number => Value::Ordinal,
            Self::Offset => Value::Offset,
            Self::Payload => Value::Payload,
            Self::Length => Value::Length,
        }
    }
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "record" => Ok(Self::Number),
            "offset" => Ok(Self::Offset),
            "payload" => Ok(Self::Payload),
            "length" => Ok(Self::Length),
            _ => {
                let message =
                    format!("column {name:?}, must be one of record, offset, payload, length");
                Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
            }
        }
    }
}
