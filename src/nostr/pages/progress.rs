//! Progress of long work on segments.

use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::atomic::{AtomicBool, Ordering};
use crate::nostr::bytes::format::FORMAT;

/// The interval of calls to the caller's function, bytes.
pub const REPORT_BYTES: u64 = 1 << 20;

/// The bytes done, and the total.
pub(crate) struct Progress<'a> {
    done: u64,
    total: u64,
    reported: u64,
    report: Option<&'a mut dyn FnMut(u64, u64) -> Result<()>>,
    /// Whether the work must end, because the handle closes.
    closing: Option<&'a AtomicBool>,
}

impl<'a> Progress<'a> {
    pub fn new(report: &'a mut dyn FnMut(u64, u64) -> Result<()>) -> Self {
        Self { report: Some(report), ..Self::silent() }
    }

    /// Progress without a function of the caller.
    pub fn silent() -> Self {
        Self { done: 0, total: 0, reported: 0, report: None, closing: None }
    }

    /// End the work once the handle closes.
    pub fn until(mut self, closing: &'a AtomicBool) -> Self {
        self.closing = Some(closing);
        self
    }

    /// Add to the total.
    pub fn expect(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// All bytes of the work.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Count bytes as done; an error of the caller's function ends the work.
    pub fn add(&mut self, bytes: u64) -> Result<()> {
        if self.closing.is_some_and(|closing| closing.load(Ordering::Acquire)) {
            return Err(Error::new(ErrorKind::Closed, "the store closes").of(FORMAT));
        }
        self.done = (self.done + bytes).min(self.total);
        if self.done - self.reported < REPORT_BYTES {
            return Ok(());
        }
        self.call()
    }

    /// Report everything expected as done: headers and damaged pages count, too.
    pub fn end(&mut self) -> Result<()> {
        self.done = self.total;
        match self.reported < self.total || self.total == 0 {
            true => self.call(),
            false => Ok(()),
        }
    }

    /// Report the bytes done by now.
    pub fn report(&mut self) -> Result<()> {
        match self.reported < self.done {
            true => self.call(),
            false => Ok(()),
        }
    }

    /// Report the same bytes: the work goes on.
    pub fn again(&mut self) -> Result<()> {
        self.call()
    }

    fn call(&mut self) -> Result<()> {
        self.reported = self.done;
        self.report.as_mut().map_or(Ok(()), |report| report(self.done, self.total))
    }
}
