//! Copying intact records to a new log. The source never changes.

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::asking;
use crate::log::Log;
use crate::log::extent::Extent;
use crate::log::format::{Format, FrameOf, Inspected, TagOf};
use crate::log::look::conclude::loss;
use crate::log::look::inspect::{inspect_patiently, place_of};
use crate::log::mend::carry::{self, Carry};
use crate::log::mend::whole::{Steps, all_damages, cursor_over};
use crate::log::read::cursor::Cursor;
use crate::log::report::{SalvageReport, SalvageRun};
use crate::log::write::append::Wanted;
use crate::log::write::batch::Batch;
use crate::mode::{Depth, Mode};
use crate::scan::Damage;
use crate::scan::framing::{Frame, Framing};
use crate::sidecar::Loss;

const SALVAGE_BATCH_BYTES: usize = 4 << 20;

/// A record in place of a lost record.
#[derive(Clone, Copy, Debug)]
pub struct Stub {
    pub tag: u32,
    pub payload: &'static [u8],
}

/// Copy every intact record to the log that `target` creates; from an unacknowledged tail only the
/// records before the first damage. `tag` gives the value stored with a payload. With a `stub`,
/// records keep their numbers: a stub replaces each record lost before an intact record. Then a
/// record with an unproved number is an error, and the copy leaves out records that may lie inside
/// damaged records. `progress` is called with bytes done and bytes in all, and an error of
/// `progress` ends the copying.
pub fn salvage<F: Format>(
    source: &Path,
    options: &F::Options,
    target: impl FnOnce(&Inspected<F>) -> Result<Log<F>>,
    tag: impl Fn(u32) -> TagOf<F>,
    stub: Option<Stub>,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<SalvageReport> {
    let (place, common) = place_of::<F>(source, options)?;
    asking(common.lock_timeout.check(), &place.log, || {
        let found = inspect_patiently::<F>(options, &place, Depth::Quick)?;
        let start = found.findings.extent.start;
        let records = cursor_over(&common, &place, &found);
        let records = if stub.is_some() { records } else { records.rescuing() };
        let copy = target(&found)?;
        let copied = Some(copy.shared.place.log.clone());
        let path = place.log.clone();
        let mut report = SalvageReport { path, copy: copied, ..SalvageReport::default() };
        let lost = loss(&found);
        let mut noted = Loss::load(&*common.storage, &place.sidecar).map_err(|e| e.of(F::NAME));
        if lost.is_none() {
            noted = Ok(noted?);
        }
        let mut carry = Carry::load::<F>(&common, &place, &mut report);
        let mut target = Target {
            into: copy.extent()?,
            batch: Batch::with_framing(copy.shared.appending),
            log: &copy,
        };
        let (mut last_end, mut last_ordinal) = (start, None);
        copy_intact(&found, records, &mut report, &mut progress, |report, run, frame, payload| {
            let (ordinal, offset) = (run.source_ordinal, run.source_offset);
            let end = offset + frame.len();
            if let Some(stub) = stub {
                let bytes_lost = offset.saturating_sub(last_end);
                let lost = target.lost_before(ordinal.filter(|_| run.proved), bytes_lost);
                for number in lost.map_err(|e| e.at(&place.log).offset_at(offset))? {
                    target.push(tag(stub.tag), stub.payload)?;
                    report.stubs.push(number);
                }
            }
            (run.ordinal, run.offset) = target.push(tag(frame.tag()), payload)?;
            carry.met((offset, end), run.offset, report);
            (last_end, last_ordinal) = (end, ordinal);
            Ok(())
        })?;
        target.flush()?;
        let durable_end = found.findings.durable_end.unwrap_or(u64::MAX);
        let is_lost = |damage: &Damage| (last_end..durable_end).contains(&damage.offset);
        let short = lost.and_then(|loss| behind(loss, (last_end, last_ordinal), durable_end));
        report.loss = if short.is_some() { short } else { noted? };
        let ends_whole = short.is_none() && !report.damages.iter().any(is_lost);
        carry.store(Some(last_end).filter(|_| ends_whole), &copy, &mut report)?;
        carry::transactions(&common, &place, &copy, &mut report)?;
        copy.close()?;
        let (_, end) = found.space.whole();
        Steps::new(start, end).end(&mut progress)?;
        Ok(report)
    })
}

/// Give every intact record to `put`, as a run with its frame and its payload, and add the record
/// to the report. `put` sets the record's number and byte in the copy.
pub fn copy_intact<F: Format>(
    found: &Inspected<F>,
    mut records: Cursor<F>,
    report: &mut SalvageReport,
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
    mut put: impl FnMut(&mut SalvageReport, &mut SalvageRun, FrameOf<F>, &[u8]) -> Result<()>,
) -> Result<()> {
    let (findings, (_, file_end)) = (&found.findings, found.space.whole());
    let start = findings.extent.start;
    report.source_bytes = findings.data_end.max(findings.extent.end).saturating_sub(start);
    let (mut steps, mut before) = (Steps::new(start, file_end), None);
    while let Some((ordinal, offset, frame)) = records.advance()? {
        let proved = records.is_proved() && !findings.is_in_damage(offset);
        let end = offset + frame.len();
        let (source_ordinal, source_offset) = (ordinal, offset);
        let mut run =
            SalvageRun { source_ordinal, source_offset, ordinal: 0, offset: 0, records: 1, proved };
        put(report, &mut run, frame, frame.payload(records.bytes()))?;
        let goes_on = before == Some((offset, proved));
        before = Some((end, proved));
        report.records += 1;
        report.uncertain += u64::from(!proved);
        match report.runs.last_mut().filter(|_| goes_on) {
            Some(run) => run.records += 1,
            None => report.runs.push(run),
        }
        steps.at(end, progress)?;
    }
    report.damages = all_damages(found, records.damages());
    Ok(())
}

/// The new log, and the copies that wait for the next write.
struct Target<'a, F: Format> {
    log: &'a Log<F>,
    batch: Batch<F>,
    into: Extent,
}

impl<F: Format> Target<'_, F> {
    /// Add a record; returns number and byte.
    fn push(&mut self, tag: TagOf<F>, payload: &[u8]) -> Result<(u64, u64)> {
        let at = self.batch.push_tagged(tag, payload)?;
        let to = (self.next() - 1, self.into.end + at);
        if self.batch.bytes_len() >= SALVAGE_BATCH_BYTES {
            self.flush()?;
        }
        Ok(to)
    }

    /// Number of the next record.
    fn next(&self) -> u64 {
        self.into.next() + self.batch.len()
    }

    /// Numbers of the records lost before the record `number`, within so many bytes.
    fn lost_before(&self, number: Option<u64>, bytes_lost: u64) -> Result<Range<u64>> {
        let (next, noun) = (self.next(), F::NOUN);
        let records_max = bytes_lost / F::Framing::RECORD_BYTES_MIN;
        let is_known = |number: &u64| number.checked_sub(next).is_some_and(|n| n <= records_max);
        let number = number.filter(is_known).ok_or_else(|| {
            let message = format!(
                "how many {noun}s are lost in the {bytes_lost} bytes before this {noun} is not \
                 known: the copy goes on with {next} and cannot keep the numbers"
            );
            Error::new(ErrorKind::Corrupt, message).of(F::NAME)
        })?;
        Ok(next..number)
    }

    fn flush(&mut self) -> Result<()> {
        self.log.shared.append_batch_at(&self.batch, Wanted::default())?;
        self.batch.clear();
        self.into = self.log.extent()?;
        Ok(())
    }
}

/// Open the log that gets the copies.
pub fn create_copy<F: Format>(target: &Path, options: F::Options) -> Result<Log<F>> {
    Log::open_with(target, Mode::Create, options)
}

/// The part of a loss after the last copied record, which ends at `end`. `None` if the copy reaches
/// the end of the durable bytes. If the last record has no number, the number of lost records is
/// unknown.
fn behind(loss: Loss, (end, last): (u64, Option<u64>), durable_end: u64) -> Option<Loss> {
    if end <= loss.offset {
        return Some(loss);
    }
    if end >= durable_end {
        return None;
    }
    let Some(first) = last.map(|ordinal| ordinal + 1) else {
        return Some(Loss { records: 0, offset: end, ..loss });
    };
    let records = (loss.first + loss.records).saturating_sub(first);
    Some(Loss { records, first, offset: end })
}
