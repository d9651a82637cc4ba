//! Records as Arrow columns: vectors that grow record by record and become arrays without a copy.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int32Array, Int64Array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

/// A column of 64-bit numbers. Some may be unknown.
#[derive(Debug, Default)]
pub struct Int64Column {
    values: Vec<i64>,
    /// Only once something is unknown.
    known: Option<Vec<bool>>,
}

impl Int64Column {
    /// Add a number. `false` if the number is 2^63 or more, because the column cannot hold it.
    #[inline]
    pub fn push(&mut self, value: Option<u64>) -> bool {
        let Ok(number) = i64::try_from(value.unwrap_or(0)) else { return false };
        if value.is_none() && self.known.is_none() {
            self.known = Some(vec![true; self.values.len()]);
        }
        if let Some(known) = &mut self.known {
            known.push(value.is_some());
        }
        self.values.push(number);
        true
    }

    /// The array.
    pub fn finish(self) -> ArrayRef {
        let nulls = self.known.map(NullBuffer::from);
        Arc::new(Int64Array::new(ScalarBuffer::from(self.values), nulls))
    }
}

/// A column of 32-bit numbers.
#[derive(Debug, Default)]
pub struct Int32Column {
    values: Vec<i32>,
}

impl Int32Column {
    /// Add a number by its bits.
    #[inline]
    pub fn push(&mut self, value: u32) {
        self.values.push(value as i32);
    }

    /// The array.
    pub fn finish(self) -> ArrayRef {
        self.finish_with(None)
    }

    /// The array. The numbers under the nulls count for nothing.
    pub fn finish_with(self, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(Int32Array::new(ScalarBuffer::from(self.values), nulls))
    }
}

/// A column of byte strings with 32-bit offsets.
#[derive(Debug)]
pub struct BinaryColumn {
    values: Vec<u8>,
    offsets: Vec<i32>,
}

impl BinaryColumn {
    /// An empty column with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { values: Vec::with_capacity(bytes), offsets: vec![0] }
    }

    /// Add a byte string; `false` if its end would lie beyond 2^31 - 1 bytes.
    #[inline]
    pub fn push(&mut self, value: &[u8]) -> bool {
        let Ok(end) = i32::try_from(self.values.len() + value.len()) else {
            return false;
        };
        self.values.extend_from_slice(value);
        self.offsets.push(end);
        true
    }

    /// The array.
    pub fn finish(self) -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Arc::new(BinaryArray::new(offsets, Buffer::from_vec(self.values), None))
    }
}
