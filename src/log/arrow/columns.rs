//! The columns of a format's records in Arrow.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, ErrorKind, Result};

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

/// A column: its name, and its value of a record.
pub type Column = (&'static str, Value);

/// The columns of these names, among all columns.
pub fn columns_of(all: &[Column], names: &[impl AsRef<str>]) -> Result<Vec<Column>> {
    let named = |name: &str| {
        let known = all.iter().find(|(known, _)| *known == name);
        known.copied().ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
            let message = format!("column {name:?}, must be one of {}", names.join(", "));
            Error::new(ErrorKind::InvalidArgument, message)
        })
    };
    names.iter().map(|name| named(name.as_ref())).collect()
}

/// The schema of some columns.
pub fn schema(columns: &[Column]) -> SchemaRef {
    let field = |&(name, value): &Column| {
        let data_type = match value {
            Value::Tag => DataType::Int32,
            Value::Payload => DataType::Binary,
            Value::Ordinal | Value::Offset | Value::Length => DataType::Int64,
        };
        Field::new(name, data_type, value == Value::Ordinal)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}
