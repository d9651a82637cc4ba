//! The records of a range as an iterator.

use super::Chained;
use crate::error::Result;
use crate::log::Log;
use crate::log::format::Format;
use crate::scan::OnCorrupt;

/// Records of a range as an iterator; ends after the first error.
#[derive(Debug)]
pub struct Iter<F: Format> {
    walk: Chained<F>,
}

impl<F: Format> Iter<F> {
    pub(crate) fn new(walk: impl Into<Chained<F>>) -> Self {
        Self { walk: walk.into() }
    }
}

impl<F: Format> Iterator for Iter<F> {
    type Item = Result<F::Owned>;

    fn next(&mut self) -> Option<Self::Item> {
        self.walk.step(|cursor| Ok(cursor.next()?.map(F::own))).transpose()
    }
}

impl<F: Format> Log<F> {
    /// All records that are there now.
    pub fn all(&self) -> Iter<F> {
        Iter::new(match F::NUMBERED {
            true => self.cursor_by_ordinal(0, None, OnCorrupt::Raise),
            false => self.cursor_by_offset(None, None, OnCorrupt::Raise),
        })
    }
}
