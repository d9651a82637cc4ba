//! Records as Arrow columns.

use std::str::FromStr;

use arrow_schema::{DataType, Field};

use super::record::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::log::arrow::{Columns, Value};

/// A column of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Byte at which the record begins: int64.
    Lsn,
    /// Payload: binary.
    Payload,
    /// Bytes of the record with its header: int64.
    Length,
}

impl Column {
    /// The columns given by default.
    pub const DEFAULT: [Self; 2] = [Self::Lsn, Self::Payload];
}

impl Columns for Column {
    fn field(self) -> Field {
        match self {
            Self::Lsn => Field::new("lsn", DataType::Int64, false),
            Self::Payload => Field::new("payload", DataType::Binary, false),
            Self::Length => Field::new("length", DataType::Int64, false),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Lsn => Value::Offset,
            Self::Payload => Value::Payload,
            Self::Length => Value::Length,
        }
    }
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "lsn" => Ok(Self::Lsn),
            "payload" => Ok(Self::Payload),
            "length" => Ok(Self::Length),
            _ => {
                let message = format!("column {name:?}, must be one of lsn, payload, length");
                Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
            }
        }
    }
}
