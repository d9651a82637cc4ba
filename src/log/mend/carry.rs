//! A salvage copies the files next to a log, too: consumers, each at the place of its record in the copy, and the
//! record of committed transactions. The report names each file that the salvage cannot read.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::log::Log;
use crate::log::format::Format;
use crate::log::options::Common;
use crate::log::report::SalvageReport;
use crate::log::space::Place;
use crate::scan::framing::Framing as _;
use crate::sidecar::{CONSUMERS_WAIT, Consumers, Positions};
use crate::transaction::{Desk, Intent};

/// The consumers of a source, while its records are copied.
pub(super) struct Carry {
    /// Consumers whose record is still to come, the lowest position last.
    waiting: Vec<(u64, String)>,
    /// Consumers and their positions in the copy.
    found: Positions,
}

impl Carry {
    /// The consumers of the source. Only a write-ahead log has consumers.
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

    /// The record from `offset` to `end` is at byte `to` of the copy: consumers before `end` need that record
    /// next.
    pub(super) fn met(&mut self, (offset, end): (u64, u64), to: u64, report: &mut SalvageReport) {
        while self.waiting.last().is_some_and(|(position, _)| *position < end) {
            let Some((position, name)) = self.waiting.pop() else { return };
            self.place(name, to, position == offset, report);
        }
    }

    /// Store the consumers next to the copy. Consumers after the last record go to the end of the copy; only those at
    /// `end`, the end of the source, lose nothing by that.
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

/// As [`carry_transactions`], of a log.
pub(super) fn transactions<F: Format>(
    common: &Common,
    place: &Place,
    copy: &Log<F>,
    report: &mut SalvageReport,
) -> Result<()> {
    let (storage, sidecar, file_mode) = (&*common.storage, &*place.sidecar, common.file_mode);
    let staged_from = copy.shared.appending.shape().staged_from;
    let source = Desk { storage, sidecar, file_mode, staged_from };
    carry_transactions(&source, &copy.desk()?, F::NAME, report)
}

/// Note in the copy the committed transactions of the source. The report counts unfinished transactions, which the
/// copy does not have.
pub fn carry_transactions(
    source: &Desk<'_>,
    copy: &Desk<'_>,
    format: &'static str,
    report: &mut SalvageReport,
) -> Result<()> {
    match source.noted() {
        Ok(noted) => {
            report.transactions += noted.len() as u64;
            if !noted.is_empty() {
                copy.note_all(noted).map_err(|e| e.of(format))?;
            }
        }
        Err(error) => report.not_carried.push(error.of(format).to_string()),
    }
    match unfinished(source) {
        Ok(jobs) => report.unfinished_transactions += jobs,
        Err(error) => report.not_carried.push(error.of(format).to_string()),
    }
    Ok(())
}

/// The number of jobs that staged records or began a commit.
fn unfinished(desk: &Desk<'_>) -> Result<u64> {
    let begun = Intent::load(desk)?.map(|intent| intent.transaction.job);
    let staged = desk.staged()?.into_iter().map(|staged| staged.job);
    Ok(staged.chain(begun).collect::<BTreeSet<_>>().len() as u64)
}
