//! Walking forwards over records, without an allocation per record.

mod pass_over;

use std::fmt::{self, Debug, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ground::locks::atomic::Ordering;
use crate::log::Shared;
use crate::log::evidence::Evidence;
use crate::log::format::{Format, Stepped};
use crate::log::notice;
use crate::log::resync::{After, Learnt};
use crate::scan::framing::Framing;
use crate::scan::{Damage, OnCorrupt, Scanned, Scanner, Step};
use crate::storage::File;

/// The bytes and the numbers that a cursor reads.
#[derive(Clone, Debug)]
pub struct Range {
    /// Byte of the first record.
    pub offset: u64,
    /// Byte after the end.
    pub end: u64,
    /// Number of the first record, where it is known.
    pub ordinal: Option<u64>,
    /// Stop before the record with this number.
    pub stop: Option<u64>,
}

/// A cursor's source.
#[derive(Clone, Debug)]
pub struct Source<F: Format> {
    /// The log's bytes.
    pub file: Arc<dyn File>,
    /// The log, for errors.
    pub path: PathBuf,
    /// The format.
    pub format: F,
    /// How records lie in the bytes.
    pub framing: F::Framing,
    /// Facts about the log from outside its records.
    pub evidence: Evidence,
}

/// Walks forwards over a snapshot, without later appends.
pub struct Cursor<F: Format> {
    source: Source<F>,
    scanner: Scanner<F::Framing>,
    ordinal: Option<u64>,
    stop: Option<u64>,
    on_corrupt: OnCorrupt,
    /// Take records that may lie inside damaged records, too.
    rescue: bool,
    damages: Vec<Damage>,
    /// Whether damage is logged; and how many of these are by now.
    logs: bool,
    logged: usize,
    /// Whether the records since the last damage are proved.
    proved: bool,
    /// Whether they may lie inside a damaged record.
    inside: bool,
    /// The place to continue at, after the damaged record that a rescue reads inside.
    resume: Option<After>,
    /// Facts learnt from the damage met up to now.
    learnt: Learnt<F::Framing>,
    /// Damage that no record of the range shows, reported at the end.
    trailing: Option<Damage>,
    finished: bool,
    /// The log, and how often its end was cut before the walk began. The log may change under the
    /// walk.
    log: Option<(Arc<Shared<F>>, u64)>,
}

impl<F: Format> Cursor<F> {
    pub(crate) fn new(source: Source<F>, range: Range, on_corrupt: OnCorrupt) -> Self {
        let scanner = Scanner::new(source.framing, range.offset, range.end);
        Self {
            source,
            scanner,
            ordinal: range.ordinal,
            stop: range.stop,
            on_corrupt,
            rescue: false,
            damages: Vec::new(),
            logs: false,
            logged: 0,
            proved: true,
            inside: false,
            resume: None,
            learnt: Learnt::default(),
            trailing: None,
            finished: false,
            log: None,
        }
    }

    /// Report a drop or a cut under the walk by its own error, and not as damage.
    #[must_use]
    pub(super) fn of(mut self, log: Arc<Shared<F>>) -> Self {
        let cuts = log.cuts.load(Ordering::Acquire);
        self.log = Some((log, cuts));
        self.logging()
    }

    /// Log the damage, including damage met already.
    #[must_use]
    pub(in crate::log) fn logging(mut self) -> Self {
        self.logs = true;
        self.log_passed_over();
        self
    }

    /// Check lengths only.
    #[must_use]
    pub fn without_checksums(mut self) -> Self {
        self.source.framing = self.source.framing.by_lengths();
        let (at, end) = (self.scanner.position(), self.scanner.end());
        self.scanner = Scanner::new(self.source.framing, at, end);
        self
    }

    /// Give frames only: [`Cursor::bytes`] is empty for long records.
    #[must_use]
    pub(crate) fn of_frames(mut self) -> Self {
        let (at, end) = (self.scanner.position(), self.scanner.end());
        self.scanner = Scanner::of_frames(self.source.framing, at, end);
        self
    }

    /// Also give intact records that may lie inside a damaged record's payload.
    #[must_use]
    pub(crate) fn rescuing(mut self) -> Self {
        self.rescue = true;
        self
    }

    /// The records before any damage are not known to be the log's, either.
    #[must_use]
    pub(in crate::log) fn unproved(mut self) -> Self {
        self.proved = false;
        self
    }

    /// Raise `damage` at the end of the range, or note it there.
    #[must_use]
    pub(in crate::log) fn with_trailing(mut self, damage: Option<Damage>) -> Self {
        self.trailing = damage;
        self
    }

    /// Note `damage`, which lies before all records.
    #[must_use]
    pub(super) fn with_leading(mut self, damage: Option<Damage>) -> Self {
        self.damages.extend(damage);
        self.log_passed_over();
        self
    }

    /// The damaged stretches passed over so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Whether the records since the last damage are proved to be records of the log. Unproved
    /// records may lie inside a damaged record's payload.
    pub fn is_proved(&self) -> bool {
        self.proved
    }

    /// Whether the records since the last damage may lie inside the bytes that a damaged record
    /// claims. Other records may be unproved only because of damage after them.
    pub(crate) fn may_be_inside(&self) -> bool {
        self.inside
    }

    /// Whether the search for intact records ended before the end of the range, because it would have
    /// been quadratic.
    pub(crate) fn gave_up(&self) -> bool {
        self.learnt.search.is_spent
    }

    /// Whether the next record lies in memory already. Then [`Cursor::next`] will not read.
    pub fn ready(&self) -> bool {
        let framing = self.source.framing.by_lengths();
        self.finished || matches!(framing.parse(self.scanner.ahead()), Step::Record { .. })
    }

    /// Bytes of the log before the end of the range.
    #[cfg(feature = "arrow")]
    pub(in crate::log) fn bytes_left(&self) -> u64 {
        self.scanner.end().saturating_sub(self.scanner.position())
    }

    /// Byte after the last record given.
    pub fn offset(&self) -> u64 {
        self.scanner.position()
    }

    /// The next record.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<F::Ref<'_>>> {
        if let Some((ordinal, offset, frame)) = self.advance_in_memory() {
            return Ok(Some(F::show(ordinal, offset, frame, self.scanner.bytes())));
        }
        Ok(self
            .advance_after_reading()?
            .map(|(ordinal, offset, frame)| F::show(ordinal, offset, frame, self.scanner.bytes())))
    }

    /// Pass over the records below `start`, and forget damage that hid only these records.
    pub(crate) fn skip_to(&mut self, start: u64) -> Result<()> {
        let logs = std::mem::take(&mut self.logs);
        while self.ordinal.is_some_and(|ordinal| ordinal < start) {
            let Some((ordinal, offset, _)) = self.advance()? else { break };
            if ordinal.is_none_or(|ordinal| ordinal >= start) {
                // After damage that reached beyond `start`: the next to give.
                self.scanner.seek(offset);
                self.ordinal = ordinal;
                break;
            }
        }
        self.damages.retain(|damage| {
            let lost = damage.first_lost.zip(damage.records_lost);
            lost.is_none_or(|(first, lost)| first.saturating_add(lost) > start)
        });
        self.logs = logs;
        self.log_passed_over();
        Ok(())
    }

    /// Pass over the records that begin before byte `start`, and forget damage before `start`.
    pub(super) fn skip_to_offset(&mut self, start: u64) -> Result<()> {
        while self.scanner.position() < start {
            let Some((ordinal, offset, _)) = self.advance()? else { break };
            if offset >= start {
                self.scanner.seek(offset);
                self.ordinal = ordinal;
                break;
            }
        }
        self.damages.retain(|damage| damage.end > start);
        Ok(())
    }

    /// Step to the next record: its number, byte and frame. [`Cursor::bytes`] has the record's
    /// bytes.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Stepped<F>>> {
        match self.advance_in_memory() {
            Some(stepped) => Ok(Some(stepped)),
            None => self.advance_after_reading(),
        }
    }

    /// The next record, if wanted, whole in memory and intact. Most records take only this path.
    #[inline(always)]
    fn advance_in_memory(&mut self) -> Option<Stepped<F>> {
        if self.is_done() || self.resume.is_some() {
            return None;
        }
        let (offset, frame) = self.scanner.next_in_memory()?;
        Some((self.count(), offset, frame))
    }

    #[inline(never)]
    fn advance_after_reading(&mut self) -> Result<Option<Stepped<F>>> {
        let at = self.scanner.position();
        self.step().map_err(|error| self.explained(at, error))
    }

    #[cold]
    fn explained(&self, at: u64, error: Error) -> Error {
        let error = match &self.log {
            Some((log, cuts)) => log.explain(at, *cuts, error),
            None => error,
        };
        if self.logs {
            notice::raised(&error);
        }
        error
    }

    fn log_passed_over(&mut self) {
        if self.logs {
            for damage in self.damages.iter().skip(self.logged) {
                notice::passed_over::<F>(&self.source.path, damage);
            }
            self.logged = self.damages.len();
        }
    }

    fn step(&mut self) -> Result<Option<Stepped<F>>> {
        loop {
            if self.is_done() {
                self.finished = true;
                return Ok(None);
            }
            if self.resume.is_some_and(|after| self.scanner.position() >= after.place.0) {
                self.resume();
            }
            let scanned = self.scanner.next(&*self.source.file).map_err(|e| self.read_error(e))?;
            match scanned {
                Scanned::Record { offset, frame } => {
                    return Ok(Some((self.count(), offset, frame)));
                }
                Scanned::End => return self.finish(),
                Scanned::Stop { offset, why } => self.pass_over(offset, &why)?,
            }
        }
    }

    #[inline]
    fn is_done(&self) -> bool {
        let reached = self.stop.zip(self.ordinal).is_some_and(|(stop, ordinal)| ordinal >= stop);
        self.finished || reached
    }

    /// The number of the record stepped to.
    #[inline]
    fn count(&mut self) -> Option<u64> {
        let ordinal = self.ordinal;
        self.ordinal = ordinal.and_then(|ordinal| ordinal.checked_add(1));
        ordinal
    }

    /// The whole bytes of the record stepped to last.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.scanner.bytes()
    }

    fn read_error(&self, source: std::io::Error) -> Error {
        let error = Error::io("read the log", &self.source.path, source).of(F::NAME);
        error.offset_at(self.scanner.position())
    }
}

impl<F: Format> Debug for Cursor<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("format", &F::NAME)
            .field("path", &self.source.path)
            .field("offset", &self.offset())
            .finish_non_exhaustive()
    }
}
