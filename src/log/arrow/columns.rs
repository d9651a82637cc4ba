//! The columns of a format's records in Arrow.

use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, ErrorKind, Result};
use crate::slice::there;

/// A column's value of a record.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The record's number: int64, null after damage that hid the count.
    Ordinal,
    /// Its byte in the log: int64.
    Offset,
    /// The record's size with framing: int64.
    Length,
    /// The number stored with the payload: int32, with the stored bits.
    Tag,
    /// The payload: binary.
    Payload,
}

/// The columns of a format.
#[doc(hidden)]
pub trait Columns: Copy + Debug + Eq + FromStr<Err = Error> + Send + 'static {
    /// Each column, its name, and its value.
    const ALL: &'static [(Self, &'static str, Value)];

    /// Name and type.
    fn field(self) -> Field {
        let (_, name, value) = self.entry();
        let data_type = match value {
            Value::Tag => DataType::Int32,
            Value::Payload => DataType::Binary,
            Value::Ordinal | Value::Offset | Value::Length => DataType::Int64,
        };
        Field::new(*name, data_type, *value == Value::Ordinal)
    }

    /// The column's value.
    fn value(self) -> Value {
        self.entry().2
    }

    #[doc(hidden)]
    fn entry(self) -> &'static (Self, &'static str, Value) {
        // Every column is in the table.
        there(Self::ALL.iter().find(|(column, ..)| *column == self))
    }

    /// The column of a name, of records of a format.
    #[doc(hidden)]
    fn named(name: &str, format: &'static str) -> Result<Self> {
        let known = Self::ALL.iter().find(|(_, known, _)| *known == name);
        known.map(|(column, ..)| *column).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name, _)| *name).collect();
            let message = format!("column {name:?}, must be one of {}", names.join(", "));
            Error::new(ErrorKind::InvalidArgument, message).of(format)
        })
    }

    /// The Arrow schema of some columns.
    fn schema(columns: &[Self]) -> SchemaRef {
        Arc::new(Schema::new(columns.iter().map(|column| column.field()).collect::<Vec<_>>()))
    }
}
