//! A user's open log: its facts about itself, and closing.

use std::fmt::{self, Debug, Formatter};
use std::path::Path;

use super::evidence::{Border, Evidence};
use super::extent::Extent;
use super::format::State;
use super::format::{Format, Log, Owner, Shared};
use super::report::OpenReport;
use super::stats::Stats;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines::{self, Locked, locked};
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::mode::Mode;
use crate::sidecar::Index;
use crate::storage::fork_generation;

impl<F: Format> Debug for Log<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl<F: Format> Debug for Shared<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let closed = self.closed.load(Ordering::Acquire);
        f.debug_struct("Log")
            .field("format", &F::NAME)
            .field("path", &self.place.log)
            .field("mode", &self.mode)
            .field("closed", &closed)
            .finish_non_exhaustive()
    }
}

impl<F: Format> Shared<F> {
    /// The valid prefix, also of a closed log.
    pub fn extent(&self) -> Extent {
        self.state().extent
    }

    pub(super) fn state(&self) -> Locked<'_, State> {
        locked(&self.state)
    }

    pub fn index(&self) -> Locked<'_, Index> {
        locked(&self.index)
    }

    #[inline]
    pub(super) fn turn(&self) -> Option<Locked<'_, ()>> {
        self.turn.as_ref().map(locked)
    }

    /// A dropped handle does not: its cursors read on.
    pub(super) fn give_back(&self) {
        lock(&self.open_files).drain(..).for_each(|file| file.close());
        if let Some(segments) = self.files.segments() {
            segments.give_back();
        }
        self.index().give_back();
    }

    pub(super) fn is_forked(&self) -> bool {
        self.fork_generation != fork_generation()
    }

    pub fn fail(&self, doing: &str, error: std::io::Error) -> Error {
        Error::io(doing, &self.place.log, error).of(F::NAME)
    }

    pub fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).of(F::NAME).at(&self.place.log)
    }

    /// The evidence about the log from elsewhere than its records.
    pub(super) fn evidence(&self, state: &State) -> Evidence {
        let Extent { end, .. } = state.extent;
        let ordinal = Some(state.extent.next()).filter(|_| state.numbered);
        let (known, unacknowledged) = match self.mode {
            // The end of the extent was scanned or hopped to: a border if no damage follows it.
            Mode::Read => {
                let scanned = Border { offset: end, ordinal };
                let known = state.durable.filter(|durable| durable.offset > end);
                (known.unwrap_or(scanned), state.unacknowledged_from)
            }
            // The look or this handle has checked all of the log.
            _ => (Border { offset: end, ordinal }, Some(end)),
        };
        let durable = state.durable.filter(|_| self.mode == Mode::Read);
        Evidence::new(self.index.clone(), Some(known), unacknowledged).with_durable(durable)
    }
}

impl<F: Format> Drop for Owner<F> {
    fn drop(&mut self) {
        if let Err(error) = self.0.finish() {
            // Every acknowledged record is durable already.
            lines::warn(format_args!("closing a dropped handle failed: {error}"));
        }
    }
}

impl<F: Format> Log<F> {
    /// Sync, cut the space reserved ahead, release the lock, and give back all files and maps.
    pub fn close(&self) -> Result<()> {
        if self.shared.is_forked() {
            return Err(self.forked_error());
        }
        let finished = self.shared.finish();
        self.shared.give_back();
        finished
    }

    /// As [`Self::close`], but the files stay open while cursors use them: another handle continues
    /// the log, or the C interface promises open files.
    pub fn close_keeping_files(&self) -> Result<()> {
        match self.shared.is_forked() {
            true => Err(self.forked_error()),
            false => self.shared.finish(),
        }
    }

    /// Whether the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// The mode of the handle.
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The options it was opened with.
    pub fn options(&self) -> &F::Options {
        &self.shared.options
    }

    /// The report of the opening.
    pub fn recovery(&self) -> &OpenReport {
        &self.shared.recovery
    }

    /// Counts since the opening of the handle.
    pub fn stats(&self) -> Result<Stats> {
        Ok(self.usable()?.counters.read())
    }

    /// The log's directory `.deedbook`.
    pub fn sidecar(&self) -> &Path {
        &self.shared.place.sidecar
    }

    /// For every call: refuses a closed handle, and one of before a fork.
    pub fn usable(&self) -> Result<&Shared<F>> {
        if self.shared.is_forked() {
            return Err(self.forked_error());
        }
        if self.is_closed() {
            return Err(self.shared.refused(ErrorKind::Closed, "the log is closed"));
        }
        Ok(&self.shared)
    }

    fn forked_error(&self) -> Error {
        let message = "opened before a fork, by the parent; open it again in this process";
        self.shared.refused(ErrorKind::Forked, message)
    }
}
