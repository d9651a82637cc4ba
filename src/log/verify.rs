//! The full check: every record, every damaged stretch, nothing changed.

use std::path::Path;

use crate::error::{Error, Result};
use crate::log::cursor::{Cursor, Range, Source};
use crate::log::evidence::Evidence;
use crate::log::find_end::end_of;
use crate::log::format::{Format, Inspected};
use crate::log::framing::Frame;
use crate::log::index::index_of;
use crate::log::open::{inspect_patiently, place_of};
use crate::log::options::Common;
use crate::log::report::VerifyReport;
use crate::log::space::Place;
use crate::mode::Depth;
use crate::scan::{Damage, OnCorrupt, Verdict};
use crate::sidecar::Loss;

/// Checked or copied between two calls of a progress function.
pub const PROGRESS_BYTES: u64 = 4 << 20;

/// Check every record of a log. `progress` is called with bytes done and bytes in all, and what it
/// fails with ends the check.
pub fn verify<F: Format>(
    path: &Path,
    options: &F::Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let (place, common) = place_of::<F>(path, options)?;
    let found = inspect_patiently::<F>(options, &place, Depth::Quick)?;
    let loss = Loss::load(&*common.storage, &place.sidecar).map_err(|e: Error| e.of(F::NAME))?;
    let findings = &found.findings;
    let start = findings.extent.start;
    let (_, file_end) = found.space.whole();
    let mut records = cursor(&common, &place, &found);
    let mut prefix = findings.extent;
    (prefix.records, prefix.end) = (0, start);
    let (mut count, mut uncertain, mut bytes) = (0, 0, 0);
    let mut next_progress = start;
    progress(0, file_end - start)?;
    while let Some((_, offset, frame)) = records.advance()? {
        count += 1;
        bytes += frame.len();
        uncertain += u64::from(!records.is_proved());
        let end = offset + frame.len();
        if end >= next_progress {
            progress(end - start, file_end - start)?;
            next_progress = end + PROGRESS_BYTES;
        }
        if records.damages().is_empty() {
            prefix.push(offset, frame);
        }
    }
    progress(file_end - start, file_end - start)?;
    let damages = all_damages(&found, records.damages());
    let durable_end = findings.durable_end;
    let lost = durable_end.is_some_and(|end| prefix.end < end);
    Ok(VerifyReport {
        verdict: verdict(&found, &damages, prefix.end, lost),
        records: count,
        uncertain,
        bytes,
        bounds: (prefix.records > 0 && findings.numbered).then(|| F::bounds_of(&prefix)),
        valid_end: prefix.end,
        file_end: found.findings.file_end.max(file_end),
        durable_end,
        lost_acknowledged: lost,
        loss,
        damages,
    })
}

/// How a log ends, by what a look at its files found and the damage that a walk over it met.
pub fn verdict<F: Format>(
    found: &Inspected<F>,
    damages: &[Damage],
    valid_end: u64,
    lost: bool,
) -> Verdict {
    let findings = &found.findings;
    if lost || findings.verdict == Verdict::Corrupt || !found.mended.is_empty() {
        return Verdict::Corrupt;
    }
    match damages {
        [] if valid_end < findings.file_end => Verdict::Open,
        [] => Verdict::Clean,
        // Nothing after it was acknowledged, and opening for writing may drop it.
        [first, ..] if findings.unacknowledged_from.is_some_and(|end| first.offset >= end) => {
            Verdict::Torn
        }
        damages if damages.iter().any(|damage| damage.next_intact.is_some()) => Verdict::Corrupt,
        _ => Verdict::Torn,
    }
}

/// The damage that a walk met, and what no record shows: damage before the records, a log that ends
/// below its mark, files after a gap.
pub fn all_damages<F: Format>(found: &Inspected<F>, seen: &[Damage]) -> Vec<Damage> {
    let findings = &found.findings;
    let mut damages = seen.to_vec();
    let unseen = findings
        .damage
        .clone()
        .filter(|damage| damage.offset < findings.extent.start || damages.is_empty());
    damages.extend(unseen);
    damages.extend_from_slice(&found.mended);
    damages.sort_by_key(|damage| damage.offset);
    damages
}

/// A cursor over all of an inspected log, which passes over damage.
pub fn cursor<F: Format>(common: &Common, place: &Place, found: &Inspected<F>) -> Cursor<F> {
    let findings = &found.findings;
    let known = found
        .mark
        .as_ref()
        .map(|mark| end_of(mark, findings.numbered && findings.numbered_by_mark));
    let index = index_of(common, place, found);
    let (file, end) = found.space.whole();
    let range = Range { offset: findings.extent.start, end, ordinal: findings.first(), stop: None };
    let source = Source {
        file: file.clone(),
        path: place.log.clone(),
        format: found.format.clone(),
        framing: found.format.framing(),
        evidence: Evidence::new(index, known, findings.unacknowledged_from),
    };
    Cursor::new(source, range, OnCorrupt::Skip)
}
