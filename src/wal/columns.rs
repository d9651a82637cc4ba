//! Records as Arrow columns.

use std::str::FromStr;

use super::codec::FORMAT;
use crate::error::{Error, Result};
use crate::log::{Columns, Value};

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
    const ALL: &'static [(Self, &'static str, Value)] = &[
        (Self::Lsn, "lsn", Value::Offset),
        (Self::Payload, "payload", Value::Payload),
        (Self::Length, "length", Value::Length),
    ];
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::named(name, FORMAT)
    }
}
