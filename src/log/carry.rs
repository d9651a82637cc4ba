//! What a salvage takes along from beside a log: consumers, each at the place that its record has in
//! the copy, and which transactions are committed. What cannot be read is named in the report.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::log::Log;
use crate::log::format::Format;
use crate::log::framing::Framing as _;
use crate::log::options::Common;
use crate::log::report::SalvageReport;
use crate::log::space::Place;
use crate::sidecar::{CONSUMERS_WAIT, Consumers, Positions};
use crate::transaction::{Desk, Intent};

/// The consumers of a source, while its records are copied.
pub(super) struct Carry {
    /// Those whose record was not met yet, the lowest position last.
    waiting: Vec<(u64, String)>,
    /// In the copy.
    found: Positions,
}

impl Carry {
    /// The consumers of the source. Of all logs a write-ahead log alone has some.
    pub(super) fn load<F: Format>(
        common: &Common,
        place: &Place,
        report: &mut SalvageReport,
    ) -> Self {
        let mut waiting = Vec::new();
        if !F::NUMBERED {
            let (storage, sidecar) = (&*common.storage, &*place.sidecar);
            match (Consumers { storage, sidecar, format: F::NAME }).load() {
                Ok(positions) => waiting.extend(positions.into_iter().map(|(name, at)| (at, name))),
                Err(error) => report.not_carried.push(error.to_string()),
            }
        }
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        Self { waiting, found: Positions::new() }
    }

    /// The record from `offset` to `end` lies at byte `to` in the copy: consumers up to there need it
    /// next.
    pub(super) fn met(&mut self, (offset, end): (u64, u64), to: u64, report: &mut SalvageReport) {
        while self.waiting.last().is_some_and(|(position, _)| *position < end) {
            let Some((position, name)) = self.waiting.pop() else { return };
            self.place(name, to, position == offset, report);
        }
    }

    /// Store them beside the copy. Those that are left go to its end, where those belong that were at
    /// `end`, after the last record of the source.
    pub(super) fn store<F: Format>(
        mut self,
        end: Option<u64>,
        copy: &Log<F>,
        report: &mut SalvageReport,
    ) -> Result<()> {
        let to = copy.extent()?.end;
        while let Some((position, name)) = self.waiting.pop() {
            self.place(name, to, Some(position) == end, report);
        }
        report.consumers = self.found.len() as u64;
        if self.found.is_empty() {
            return Ok(());
        }
        let (common, place) = (&copy.shared.common, &copy.shared.place);
        let (storage, sidecar) = (&*common.storage, &*place.sidecar);
        let consumers = Consumers { storage, sidecar, format: F::NAME };
        let _lock = consumers.lock(CONSUMERS_WAIT)?;
        consumers.store(&self.found)
    }

    fn place(&mut self, name: String, to: u64, is_same: bool, report: &mut SalvageReport) {
        if !is_same {
            report.moved_consumers.push(name.clone());
        }
        self.found.insert(name, to);
    }
}

/// Note in the copy which transactions the source has. What was staged and not committed stays where it
/// is, and is counted.
pub(super) fn transactions<F: Format>(
    common: &Common,
    place: &Place,
    copy: &Log<F>,
    report: &mut SalvageReport,
) -> Result<()> {
    let (storage, sidecar, file_mode) = (&*common.storage, &*place.sidecar, common.file_mode);
    let staged_from = copy.shared.appending.staged_from();
    let source = Desk { storage, sidecar, file_mode, staged_from };
    match source.noted() {
        Ok(noted) => {
            report.transactions = noted.len() as u64;
            if !noted.is_empty() {
                copy.desk()?.note_all(noted).map_err(|e| e.of(F::NAME))?;
            }
        }
        Err(error) => report.not_carried.push(error.of(F::NAME).to_string()),
    }
    match unfinished(&source) {
        Ok(jobs) => report.unfinished_transactions = jobs,
        Err(error) => report.not_carried.push(error.of(F::NAME).to_string()),
    }
    Ok(())
}

/// How many jobs have staged something, or began a commit.
fn unfinished(desk: &Desk<'_>) -> Result<u64> {
    let begun = Intent::load(desk)?.map(|intent| intent.transaction.job);
    let staged = desk.staged()?.into_iter().map(|staged| staged.job);
    Ok(staged.chain(begun).collect::<BTreeSet<_>>().len() as u64)
}
