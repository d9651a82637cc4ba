//! The verdict from the place where a walk stopped: a clean end, a torn tail, damage, or a loss.

use std::io;

use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::look::beyond_limit::is_beyond_limit;
use crate::log::look::findings::Findings;
use crate::log::look::walk::Walk;
use crate::log::space::Space;
use crate::scan::framing::Framing;
use crate::scan::search::find_intact;
use crate::scan::{Damage, Stop, Verdict};
use crate::sidecar::{Loss, Mark, MarkUse};
use crate::storage::end_of_data;

impl<F: Format> Walk<'_, F> {
    /// Judge the bytes after a mark. Under an open mark, all of them are unacknowledged, and
    /// anything but a record is a torn tail. Under a closed mark, or if a newer mark may have been
    /// lost, the careful rule holds.
    pub fn after_mark(mut self, from: Extent, mark: &Mark) -> io::Result<Findings> {
        let (extent, stop) = self.check(from, self.space.end)?;
        let mut findings = match mark.is_open() {
            true => self.conclude_torn(extent, stop, from.end)?,
            false => self.conclude_carefully(extent, stop, MarkUse::Used, from.end)?,
        };
        findings.durable_end = Some(mark.end);
        findings.unacknowledged_from = Some(mark.end).filter(|_| mark.is_open());
        Ok(findings)
    }

    fn conclude_torn(
        mut self,
        extent: Extent,
        stop: Option<Stop>,
        from: u64,
    ) -> io::Result<Findings> {
        let mut findings = self.findings(extent, MarkUse::Used, from)?;
        if extent.end < self.space.end || self.space.gap.is_some() {
            self.judge(&mut findings, stop.as_ref(), None, false)?;
        }
        Ok(findings)
    }

    /// The careful rule, if the end of the acknowledged bytes is unknown: an intact record after
    /// the damage means a corrupt log, and so do files after a gap.
    pub fn conclude_carefully(
        mut self,
        extent: Extent,
        stop: Option<Stop>,
        mark: MarkUse,
        from: u64,
    ) -> io::Result<Findings> {
        let mut findings = self.findings(extent, mark, from)?;
        let Space { file, end, gap, .. } = self.space;
        if extent.end == *end && gap.is_none() {
            return Ok(findings);
        }
        let reach = findings.data_end.saturating_add(F::Framing::TRAILING_ZEROS_MAX).min(*end);
        // Search from the damage itself on: a record may be intact without being the successor of
        // the last record.
        let next = match findings.data_end > extent.end {
            true => find_intact(&**file, &self.format.framing(), extent.end, reach)?,
            false => None,
        };
        let corrupt = next.is_some() || gap.is_some();
        self.judge(&mut findings, stop.as_ref(), next, corrupt)?;
        Ok(findings)
    }

    /// The verdict on the bytes after the valid prefix. A record beyond the limit is never torn.
    fn judge(
        &self,
        findings: &mut Findings,
        stop: Option<&Stop>,
        next: Option<u64>,
        corrupt: bool,
    ) -> io::Result<()> {
        let extent = findings.extent;
        let beyond_limit = self.is_beyond_limit(&extent, stop)?;
        let corrupt = corrupt || beyond_limit;
        // Zeros alone were reserved and never written: nothing is damaged.
        let written = corrupt || self.space.gap.is_some() || findings.data_end > extent.end;
        findings.verdict = match (corrupt, written) {
            (true, _) => Verdict::Corrupt,
            (false, true) => Verdict::Torn,
            (false, false) => Verdict::Open,
        };
        findings.damage = written.then(|| self.damage(&extent, stop, next));
        findings.note_beyond_limit::<F>(beyond_limit);
        Ok(())
    }

    /// The mark is this log's own, and the records that it vouches for are missing.
    pub fn lost(self, extent: Extent, stop: Option<Stop>, mark: &Mark) -> io::Result<Findings> {
        let (end, gap) = (self.space.end, self.space.gap.clone());
        let copied = is_of_another_file(self.space, mark)?;
        let mut findings = self.conclude_carefully(extent, stop, MarkUse::Lost, extent.start)?;
        findings.verdict = seeded!(Verdict::Corrupt, "loss-accepted" => findings.verdict);
        findings.durable_end = Some(mark.end);
        findings.unacknowledged_from = Some(mark.end).filter(|_| mark.is_open());
        if mark.start == extent.start {
            // The mark has the same head, and therefore the same numbers.
            findings.renumber(mark.first);
            findings.numbered_by_mark = true;
        }
        let gap = gap.map(|gap| format!("; {gap}")).unwrap_or_default();
        let of = if copied { " in the log that this is a copy of" } else { "" };
        let damage = findings.damage.get_or_insert_with(|| Damage {
            offset: extent.end,
            end: end.max(extent.end),
            reason: format!(
                "the log ends at byte {}, acknowledged up to {}{of}{gap}",
                extent.end, mark.end
            ),
            ..Damage::default()
        });
        damage.first_lost = mark.first.checked_add(extent.records).filter(|_| F::NUMBERED);
        if damage.next_intact.is_none() {
            damage.records_lost = missing(&extent, mark);
        }
        Ok(findings)
    }

    fn is_beyond_limit(&self, extent: &Extent, stop: Option<&Stop>) -> io::Result<bool> {
        let (file, at, end) = (self.file(), extent.end, self.space.end);
        stop.map_or(Ok(false), |why| is_beyond_limit(self.format, file, at, why, end))
    }

    /// The findings of a walk. The caller notes damage.
    pub fn findings(&mut self, extent: Extent, mark: MarkUse, from: u64) -> io::Result<Findings> {
        Ok(Findings {
            scanned_bytes: extent.end.saturating_sub(from),
            scanned_records: self.scanned_records,
            data_end: end_of_data(self.file(), extent.end, self.space.end)?,
            blocks: std::mem::take(&mut self.blocks),
            ..self.unread(extent, mark)
        })
    }

    /// Nothing but where the log begins.
    pub fn unread(&self, extent: Extent, mark: MarkUse) -> Findings {
        Findings {
            extent,
            numbered: true,
            headless: false,
            verdict: Verdict::Clean,
            damage: None,
            after: None,
            beyond_limit: false,
            mark,
            numbered_by_mark: mark == MarkUse::Used,
            durable_end: None,
            unacknowledged_from: None,
            scanned_bytes: 0,
            scanned_records: 0,
            data_end: self.space.end,
            file_end: self.space.end,
            blocks: Vec::new(),
        }
    }

    fn damage(&self, extent: &Extent, stop: Option<&Stop>, next: Option<u64>) -> Damage {
        let why = match (stop, &self.space.gap) {
            (Some(stop), _) => stop.reason(),
            (None, Some(gap)) => gap.clone(),
            (None, None) => "unreadable".into(),
        };
        let number = Some(extent.next()).filter(|_| extent.records > 0);
        let name = F::name_of(number, extent.end);
        Damage {
            offset: extent.end,
            end: next.unwrap_or(self.space.end),
            reason: format!("{name}: {why}"),
            next_intact: next,
            first_lost: number.filter(|_| F::NUMBERED),
            ..Damage::default()
        }
    }
}

/// How many records of the mark are missing in the log. `None` if records were dropped in front
/// since, because the mark counts them, too.
fn missing(extent: &Extent, mark: &Mark) -> Option<u64> {
    (mark.start == extent.start).then(|| mark.records.saturating_sub(extent.records))
}

/// Whether the mark of this log was made for another file: the log was copied, and the copy may
/// never have had the mark's last records.
pub fn is_of_another_file(space: &Space, mark: &Mark) -> io::Result<bool> {
    Ok(mark.start == space.start && !mark.file.is_still(space.file.id()?))
}

/// The missing records of a log that ends below its mark.
pub fn loss<F: Format>(found: &Inspected<F>) -> Option<Loss> {
    let Findings { extent, beyond_limit, mark, .. } = found.findings;
    let mark = found.mark.filter(|_| mark == MarkUse::Lost && !beyond_limit)?;
    let records = missing(&extent, &mark).unwrap_or(0);
    Some(Loss { records, first: extent.next(), offset: extent.end })
}
