//! A chain of logs, read as one: epochs of a pier, files of a ledger.

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
    /// The logs still to walk, with their numbers. The walk opens each log in its turn.
    left: Box<dyn Iterator<Item = Result<(u64, Cursor<F>)>> + Send + Sync>,
    /// The current log.
    at: Option<(u64, Cursor<F>)>,
    /// The gathered damages of the earlier logs, and the first damages of the current log.
    damages: Vec<Damage>,
    /// The number of damages that were gathered from the current log.
    gathered: usize,
}

impl<F: Format> Chained<F> {
    pub(crate) fn new(
        logs: impl Iterator<Item = Result<(u64, Cursor<F>)>> + Send + Sync + 'static,
    ) -> Self {
        Self { left: Box::new(logs), at: None, damages: Vec::new(), gathered: 0 }
    }

    /// Check lengths only.
    #[must_use]
    pub fn without_checksums(mut self) -> Self {
        let unchecked = |(number, cursor): (u64, Cursor<F>)| (number, cursor.without_checksums());
        self.at = self.at.map(unchecked);
        Self { left: Box::new(self.left.map(move |log| log.map(unchecked))), ..self }
    }

    /// The next record.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<F::Ref<'_>>> {
        Ok(self.next_numbered()?.map(|(_, record)| record))
    }

    /// The next record, and the number of its epoch or file.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    pub fn next_numbered(&mut self) -> Result<Option<(u64, F::Ref<'_>)>> {
        let Some((ordinal, offset, frame)) = self.step(Cursor::advance)? else { return Ok(None) };
        let Some((number, cursor)) = &self.at else { return Ok(None) };
        Ok(Some((*number, F::show(ordinal, offset, frame, cursor.bytes()))))
    }

    /// Take a step in the current log, or else in the next one.
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

    /// The damaged stretches passed over up to now, each by bytes of its log.
    pub fn damages(&self) -> Vec<Damage> {
        [&self.damages, self.ungathered()].concat()
    }

    /// The damages of [`Self::gather`].
    #[cfg(feature = "arrow")]
    pub(super) fn gathered(&self) -> &[Damage] {
        &self.damages
    }

    /// Gather the damages that the current log has got since the last call.
    pub(super) fn gather(&mut self) {
        let new = self.ungathered().to_vec();
        self.gathered += new.len();
        self.damages.extend(new);
    }

    fn ungathered(&self) -> &[Damage] {
        let of_log = self.at.as_ref().map_or(&[][..], |(_, cursor)| cursor.damages());
        of_log.get(self.gathered..).unwrap_or_default()
    }

    /// Whether the next record lies in memory already. Then [`Self::next`] will not read.
    pub fn ready(&self) -> bool {
        self.at.as_ref().is_some_and(|(_, cursor)| cursor.ready())
    }

    /// Number of the current log.
    pub fn number(&self) -> Option<u64> {
        self.at.as_ref().map(|(number, _)| *number)
    }

    /// The cursor over the current log; `None` after the last log.
    pub(super) fn now(&mut self) -> Result<Option<&mut Cursor<F>>> {
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

    /// Leave the current log.
    pub(super) fn pass(&mut self) {
        self.gather();
        (self.at, self.gathered) = (None, 0);
    }

    fn end(&mut self) {
        self.pass();
        self.left = Box::new(std::iter::empty());
    }
}

/// A walk over one log.
impl<F: Format> From<Cursor<F>> for Chained<F> {
    fn from(cursor: Cursor<F>) -> Self {
        Self { at: Some((0, cursor)), ..Self::new(std::iter::empty()) }
    }
}

/// A walk that begins with an error returns the error.
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
