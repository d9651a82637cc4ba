//! Deeds as Arrow columns.

use std::str::FromStr;

use super::names::FORMAT;
use crate::error::{Error, Result};
use crate::log::{Columns, Value};

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
    /// The jam, under the name that other formats use.
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
    const ALL: &'static [(Self, &'static str, Value)] = &[
        (Self::Event, "event", Value::Ordinal),
        (Self::Mug, "mug", Value::Tag),
        (Self::Jam, "jam", Value::Payload),
        (Self::Payload, "payload", Value::Payload),
        (Self::Offset, "offset", Value::Offset),
        (Self::Length, "length", Value::Length),
    ];
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::named(name, FORMAT)
    }
}
