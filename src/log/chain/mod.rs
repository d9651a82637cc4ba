//! Logs that follow each other, read as one: epochs of a pier, files of a ledger.

mod iter;

use std::fmt::{self, Debug, Formatter};

use crate::error::Result;
use crate::log::format::Format;
use crate::log::read::cursor::Cursor;
use crate::scan::Damage;

pub use self::iter::Iter;

/// Walks forwards over the records of logs that follow each other, and ends after the first error: the
/// next log would leave a gap. A snapshot: later appends are not given.
pub struct Chained<F: Format> {
    /// The logs still to be walked, by their numbers. Each is opened when it is its turn.
    left: Box<dyn Iterator<Item = Result<(u64, Cursor<F>)>> + Send + Sync>,
    /// The log that is being walked.
    at: Option<(u64, Cursor<F>)>,
    /// Of the logs before it.
    damages: Vec<Damage>,
}

impl<F: Format> Chained<F> {
    pub(crate) fn new(
        logs: impl Iterator<Item = Result<(u64, Cursor<F>)>> + Send + Sync + 'static,
    ) -> Self {
        Self { left: Box::new(logs), at: None, damages: Vec::new() }
    }

    /// Check lengths only.
    #[must_use]
    pub fn without_checksums(mut self) -> Self {
        let unchecked = |(number, cursor): (u64, Cursor<F>)| (number, cursor.without_checksums());
        self.at = self.at.map(unchecked);
        Self { left: Box::new(self.left.map(move |log| log.map(unchecked))), ..self }
    }

    /// The next record.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<F::Ref<'_>>> {
        Ok(self.next_numbered()?.map(|(_, record)| record))
    }

    /// The next record, and the number of its log: of an epoch, or of a file.
    pub fn next_numbered(&mut self) -> Result<Option<(u64, F::Ref<'_>)>> {
        let Some((ordinal, offset, frame)) = self.step(Cursor::advance)? else { return Ok(None) };
        let Some((number, cursor)) = &self.at else { return Ok(None) };
        Ok(Some((*number, F::show(ordinal, offset, frame, cursor.bytes()))))
    }

    /// Take a step in the log whose turn it is, or else in the next one.
    pub(super) fn step<T>(
        &mut self,
        step: impl Fn(&mut Cursor<F>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        while let Some(cursor) = self.now()? {
            match step(cursor) {
                Ok(None) => self.pass(),
                Ok(given) => return Ok(given),
                Err(error) => {
                    self.end();
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// The damaged stretches passed over so far, each by its bytes in its log.
    pub fn damages(&self) -> Vec<Damage> {
        self.each_damage().cloned().collect()
    }

    pub(crate) fn each_damage(&self) -> impl Iterator<Item = &Damage> {
        let now = self.at.iter().flat_map(|(_, cursor)| cursor.damages());
        self.damages.iter().chain(now)
    }

    /// Whether the next record lies in memory already, so that [`Self::next`] will not read.
    pub fn ready(&self) -> bool {
        self.at.as_ref().is_some_and(|(_, cursor)| cursor.ready())
    }

    /// Number of the log that is being walked.
    pub fn number(&self) -> Option<u64> {
        self.at.as_ref().map(|(number, _)| *number)
    }

    /// The cursor over the log whose turn it is; `None` after the last one.
    pub(crate) fn now(&mut self) -> Result<Option<&mut Cursor<F>>> {
        if self.at.is_none() {
            match self.left.next().transpose() {
                Ok(log) => self.at = log,
                Err(error) => {
                    self.end();
                    return Err(error);
                }
            }
        }
        Ok(self.at.as_mut().map(|(_, cursor)| cursor))
    }

    /// Let go of the log that is being walked.
    pub(crate) fn pass(&mut self) {
        if let Some((_, cursor)) = self.at.take() {
            self.damages.extend_from_slice(cursor.damages());
        }
    }

    fn end(&mut self) {
        self.pass();
        self.left = Box::new(std::iter::empty());
    }
}

/// One log.
impl<F: Format> From<Cursor<F>> for Chained<F> {
    fn from(cursor: Cursor<F>) -> Self {
        Self { at: Some((0, cursor)), ..Self::new(std::iter::empty()) }
    }
}

/// The error of its beginning is given first.
impl<F: Format, C: Into<Self>> From<Result<C>> for Chained<F> {
    fn from(begun: Result<C>) -> Self {
        begun.map_or_else(|error| Self::new(std::iter::once(Err(error))), C::into)
    }
}

impl<F: Format> Debug for Chained<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chained").field("at", &self.at).finish_non_exhaustive()
    }
}
