//! The full check of every epoch, and of the joints between epochs.

use std::path::{Path, PathBuf};

use crate::book::pier::open::while_dropping;
use crate::book::pier::part::of_part;
use crate::book::pier::places::{Named, check_joint, list, log_dir};
use crate::book::{LOG_NAME, Options};
use crate::error::{Error, ErrorKind, Result};
use crate::log::VerifyReport;
use crate::scan::Verdict;
use crate::storage::{Access, Storage, located};

/// The result of a full check of a pier, or with a [`SalvageReport`](crate::report::SalvageReport) for each epoch, of a
/// salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report<R = VerifyReport> {
    /// The number and the report of each epoch, in the order of the events.
    pub epochs: Vec<(u64, R)>,
    /// Gaps and overlaps between epochs, in words. In a copy, stubs replace the missing deeds.
    pub gaps: Vec<String>,
    /// The reports of all epochs together: counts and bytes are sums.
    pub total: R,
}

impl Report {
    /// Whether nothing is damaged, torn, lost or missing between epochs.
    pub fn ok(&self) -> bool {
        self.gaps.is_empty() && self.total.ok()
    }
}

impl Options {
    /// Check every deed of every epoch of a pier. Epochs that a retention drops meanwhile are passed over.
    ///
    /// # Errors
    ///
    /// Fails where there is no log that can be read. Damage is no error: the report has it.
    pub fn verify_pier(&self, path: impl AsRef<Path>) -> Result<Report> {
        self.verify_pier_with(path, |_, _| Ok(()))
    }

    /// As [`verify_pier`](Self::verify_pier). `progress` is called with bytes done and bytes in all, and its error
    /// ends the check.
    ///
    /// # Errors
    ///
    /// Fails where there is no log that can be read. Damage is no error: the report has it. An error of `progress`
    /// ends the work and is returned.
    pub fn verify_pier_with(
        &self,
        path: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Report> {
        check(path.as_ref(), self, progress).map_err(|e| e.of(crate::book::pier::FORMAT))
    }
}

fn check(
    path: &Path,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<Report> {
    let storage = &*options.storage;
    let dir = log_dir(storage, &located(storage, path)?)?;
    let (named, sizes) = sized(storage, &dir)?;
    let is_dropped = |number: u64| -> Result<bool> {
        let now = while_dropping(|| list(storage, &dir))?;
        Ok(now.first().is_some_and(|first| number < first.number))
    };
    let total = sizes.iter().sum();
    let (mut epochs, mut gaps, mut done): (Vec<(u64, VerifyReport)>, Vec<String>, u64) =
        (Vec::new(), Vec::new(), 0);
    let mut after_dropped = false;
    for (named, size) in named.iter().zip(sizes) {
        let before = epochs.last().filter(|_| !after_dropped);
        if let Some(Err(gap)) = before.and_then(|before| joint(before, named)) {
            gaps.push(gap.message().into());
        }
        let each = of_part(options);
        let checked = each.verify_with(&named.dir, |at, _| {
            // An epoch that grows meanwhile has no more of the whole.
            progress(done + at.min(size), total)
        });
        done += size;
        after_dropped = match &checked {
            Err(e) if e.kind() == ErrorKind::Missing => is_dropped(named.number)?,
            _ => false,
        };
        if !after_dropped {
            epochs.push((named.number, checked?));
        }
        progress(done, total)?;
    }
    if epochs.is_empty() {
        let message = "every epoch was dropped while it was checked: check again";
        return Err(Error::new(ErrorKind::Missing, message).at(&dir));
    }
    let total = together(dir, &epochs);
    Ok(Report { epochs, gaps, total })
}

/// The reports of all epochs of a pier, one at least.
fn together(path: PathBuf, epochs: &[(u64, VerifyReport)]) -> VerifyReport {
    let reports = || epochs.iter().map(|(_, report)| report);
    let sum = |of: fn(&VerifyReport) -> u64| reports().map(of).sum();
    let ends = reports().filter_map(|report| report.bounds);
    VerifyReport {
        path,
        verdict: reports().map(|report| report.verdict).max().unwrap_or(Verdict::Clean),
        records: sum(|report| report.records),
        uncertain: sum(|report| report.uncertain),
        bytes: sum(|report| report.bytes),
        bounds: ends.reduce(|(first, _), (_, last)| (first, last)),
        valid_end: sum(|report| report.valid_end),
        file_end: sum(|report| report.file_end),
        durable_end: reports().map(|report| report.durable_end).sum(),
        lost_acknowledged: reports().any(|report| report.lost_acknowledged),
        loss: reports().find_map(|report| report.loss),
        damages: reports().flat_map(|report| report.damages.clone()).collect(),
        noted: reports().any(|report| report.noted),
    }
}

/// The epochs in a directory, one at least, and the bytes of the log of each.
pub(super) fn sized(storage: &dyn Storage, dir: &Path) -> Result<(Vec<Named>, Vec<u64>)> {
    let bytes = |named: &Named| {
        let log = named.dir.join(LOG_NAME);
        let file = storage.open(&log, Access::Read);
        file.and_then(|file| file.len()).map_err(|e| Error::io("look at the log", &log, e))
    };
    let (named, sizes) = while_dropping(|| {
        let named = list(storage, dir)?;
        let sizes = named.iter().map(bytes).collect::<Result<Vec<u64>>>()?;
        Ok((named, sizes))
    })?;
    match named.is_empty() {
        true => Err(Error::new(ErrorKind::Missing, "no epoch 0iN of a pier there").at(dir)),
        false => Ok((named, sizes)),
    }
}

/// `None` where the last event before is not known: the report says why.
fn joint((number, report): &(u64, VerifyReport), after: &Named) -> Option<Result<()>> {
    let known = report.verdict != Verdict::Corrupt;
    let last = report.bounds.map_or(*number, |(_, last)| last);
    known.then(|| check_joint(*number, last.saturating_add(1), after))
}
