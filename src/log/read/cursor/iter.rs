//! The records of a range as an iterator.

use super::Cursor;
use crate::error::Result;
use crate::log::Log;
use crate::log::format::Format;
use crate::scan::OnCorrupt;

/// Records of a range as an iterator; ends after the first error.
#[derive(Debug)]
pub struct Iter<F: Format> {
    walk: Option<Result<Cursor<F>>>,
}

impl<F: Format> Iter<F> {
    pub(crate) fn new(cursor: Cursor<F>) -> Self {
        Self::of(Ok(cursor))
    }

    /// Over a walk, or just the error of its beginning.
    pub(crate) fn of(walk: Result<Cursor<F>>) -> Self {
        Self { walk: Some(walk) }
    }
}

impl<F: Format> Iterator for Iter<F> {
    type Item = Result<F::Owned>;

    fn next(&mut self) -> Option<Self::Item> {
        let error = match self.walk.as_mut()? {
            Ok(cursor) => match cursor.next() {
                Ok(record) => return record.map(|record| Ok(F::own(record))),
                Err(error) => Some(error),
            },
            Err(_) => None,
        };
        let begun = self.walk.take()?;
        error.or(begun.err()).map(Err)
    }
}

/// All records that are there now.
impl<F: Format> IntoIterator for &Log<F> {
    type Item = Result<F::Owned>;
    type IntoIter = Iter<F>;

    fn into_iter(self) -> Iter<F> {
        Iter::of(match F::NUMBERED {
            true => self.cursor_by_ordinal(0, None, OnCorrupt::Raise),
            false => self.cursor_by_offset(None, None, OnCorrupt::Raise),
        })
    }
}
