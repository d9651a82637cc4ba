//! Progress of long work on segments.

use crate::error::Result;

/// The caller's function is called every so many bytes.
pub const REPORT_BYTES: u64 = 1 << 20;

/// Bytes done, of those in all.
pub(crate) struct Progress<'a> {
    done: u64,
    total: u64,
    reported: u64,
    report: Option<&'a mut dyn FnMut(u64, u64) -> Result<()>>,
}

impl<'a> Progress<'a> {
    pub fn new(report: &'a mut dyn FnMut(u64, u64) -> Result<()>) -> Self {
        Self { report: Some(report), ..Self::silent() }
    }

    /// Of work whose caller has no function.
    pub fn silent() -> Self {
        Self { done: 0, total: 0, reported: 0, report: None }
    }

    /// There is more to do.
    pub fn expect(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// So much is done; an error ends the work.
    pub fn add(&mut self, bytes: u64) -> Result<()> {
        self.done = (self.done + bytes).min(self.total);
        if self.done - self.reported < REPORT_BYTES {
            return Ok(());
        }
        self.call()
    }

    /// All that was expected is done: headers and damaged pages count, too.
    pub fn end(&mut self) -> Result<()> {
        self.done = self.total;
        self.call()
    }

    fn call(&mut self) -> Result<()> {
        self.reported = self.done;
        self.report.as_mut().map_or(Ok(()), |report| report(self.done, self.total))
    }
}
