//! The full check: every record, every damaged stretch. The check never changes the log. Damage
//! that an opening would miss goes into a note next to the log.
//!
//! Several readers can share a check. [`Log::splits_over`] cuts the log into parts, and each reader checks parts with
//! [`check`]. Consecutive intact parts from the log's first record on are the beginning of the log, because each part
//! ends at the next part's first byte: a walk over the log would meet just the parts' records, without damage, and go
//! on at the end of the parts. So [`check_rest`] reads only the rest again, and reports on the whole log. The rest
//! begins at the first damaged part; without a damaged part, at the last part, after which the log ends.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::asking;
use crate::ground::locks::lock;
use crate::log::Log;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::look::beyond_limit::begins_beyond_limit;
use crate::log::look::index::index_of;
use crate::log::look::inspect::{READER_TRIES, inspect_patiently, place_of};
use crate::log::mend::noted;
use crate::log::mend::whole::{Steps, all_damages, cursor_from, verdict};
use crate::log::options::Common;
use crate::log::report::VerifyReport;
use crate::log::space::Place;
use crate::log::split::Split;
use crate::mode::Depth;
use crate::scan::framing::{Frame, Framing};
use crate::scan::{Damage, OnCorrupt, Verdict};
use crate::sidecar::{LoadedMark, Loss, MarkFile};

/// Check every record of a log, except the parts `intact`: splits from the log's first record on, found intact by
/// [`check`]. Parts that are not the beginning of the present log are read again.
pub fn check_rest<F: Format>(
    path: &Path,
    options: &F::Options,
    intact: &[Split],
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let (place, common) = place_of::<F>(path, options)?;
    asking(common.lock_timeout.check(), &place.log, || {
        check_patiently::<F>((&place, &common), options, intact, &mut progress)
    })
}

fn check_patiently<F: Format>(
    (place, common): (&Place, &Common),
    options: &F::Options,
    intact: &[Split],
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let load = || MarkFile::load(&*common.storage, &place.sidecar).ok();
    for _ in 0..READER_TRIES {
        let (mark, mut stopped) = (load(), false);
        let mut progress = |done, all| progress(done, all).inspect_err(|_| stopped = true);
        let done = check_once::<F>((place, common), options, intact, &mut progress);
        let is_sound = done.as_ref().is_ok_and(|(report, _)| report.verdict != Verdict::Corrupt);
        // Records that a writer dropped or cut meanwhile are neither damaged nor lost.
        if is_sound || stopped || !was_truncated(mark, load()) {
            let (mut report, is_seen) = done?;
            report.noted = noted::keep(common, place, &report, is_seen);
            return Ok(report);
        }
    }
    let message = "the log was truncated while it was checked, again and again: check it once more";
    Err(Error::new(ErrorKind::OutOfRange, message).of(F::NAME).at(&place.log))
}

/// Whether a writer truncated the log between two looks at the mark. The mark changes before the log.
fn was_truncated(before: Option<LoadedMark>, now: Option<LoadedMark>) -> bool {
    match (before, now) {
        (Some(LoadedMark::Mark(before)), Some(LoadedMark::Mark(now))) => {
            now.start != before.start || now.end < before.end
        }
        _ => false,
    }
}

/// The report, and whether a look at opening sees damage, too.
fn check_once<F: Format>(
    (place, common): (&Place, &Common),
    options: &F::Options,
    intact: &[Split],
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<(VerifyReport, bool)> {
    let found = inspect_patiently::<F>(options, place, Depth::Quick)?;
    let loss = Loss::load(&*common.storage, &place.sidecar).map_err(|e: Error| e.of(F::NAME))?;
    let findings = &found.findings;
    let (_, file_end) = found.space.whole();
    let known = beginning(place, &found, intact)?;
    let readable = if findings.headless { known.end } else { file_end };
    let mut records = cursor_from(common, place, &found, &known, readable).of_frames();
    let mut prefix = known;
    let (mut count, mut uncertain, mut bytes) = (known.records, 0, known.end - known.start);
    let mut steps = Steps::new(known.end, file_end);
    steps.begin(progress)?;
    while let Some((_, offset, frame)) = records.advance()? {
        count += 1;
        bytes += frame.len();
        uncertain += u64::from(!records.is_proved() || findings.is_in_damage(offset));
        steps.at(offset + frame.len(), progress)?;
        if records.damages().is_empty() {
            prefix.push(offset, frame);
        }
    }
    if known.records > 0 && prefix.records == known.records {
        // Only a walk that meets the damage knows the last record before the damage.
        let fewer = intact.split_last().map_or(&[][..], |(_, fewer)| fewer);
        return check_once::<F>((place, common), options, fewer, progress);
    }
    steps.end(progress)?;
    let mut damages = all_damages(&found, records.damages());
    damages.extend(rotten_blocks(common, place, &found)?);
    damages.sort_by_key(|damage| damage.offset);
    let durable_end = findings.durable_end;
    let misses = durable_end.is_some_and(|end| prefix.end < end);
    let beyond_limit = misses
        && begins_beyond_limit(&found.format, &found.space, prefix.end)
            .map_err(|e| Error::io("read the log", &place.log, e).of(F::NAME))?;
    let lost = misses && !beyond_limit;
    let report = VerifyReport {
        path: place.log.clone(),
        verdict: verdict(&found, &damages, prefix.end, misses),
        records: count,
        uncertain,
        bytes,
        bounds: (prefix.records > 0 && findings.numbered).then(|| bounds::<F>(&prefix)),
        valid_end: prefix.end,
        file_end: found.findings.file_end.max(file_end),
        durable_end,
        lost_acknowledged: lost,
        loss,
        damages,
        noted: false,
    };
    Ok((report, findings.verdict == Verdict::Corrupt))
}

/// Check every record of a part. The log is not opened.
pub fn check<F: Format>(
    split: &Split,
    options: &F::Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let common = F::common(options)?;
    asking(common.lock_timeout.check(), Path::new(&split.path), || {
        check_frames::<F>(split, options, &mut progress)
    })
}

fn check_frames<F: Format>(
    split: &Split,
    options: &F::Options,
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let cursor = Log::<F>::cursor_of_split(split, options, OnCorrupt::Skip, true, None)?;
    let mut cursor = cursor.of_frames();
    let (mut records, mut uncertain, mut bytes) = (0, 0, 0);
    let mut steps = Steps::new(split.offset, split.end);
    steps.begin(progress)?;
    while let Some((_, offset, frame)) = cursor.advance()? {
        records += 1;
        bytes += frame.len();
        uncertain += u64::from(!cursor.is_proved());
        steps.at(offset + frame.len(), progress)?;
    }
    steps.end(progress)?;
    let (end, damages) = (cursor.offset(), cursor.damages().to_vec());
    let is_as_cut = end == split.end && split.records.is_none_or(|cut| cut == records);
    let is_intact = damages.is_empty() && is_as_cut;
    Ok(VerifyReport {
        path: split.path.clone(),
        verdict: if is_intact { Verdict::Clean } else { Verdict::Corrupt },
        records,
        uncertain,
        bytes,
        bounds: None,
        valid_end: end,
        file_end: split.end,
        durable_end: None,
        lost_acknowledged: !is_as_cut,
        loss: None,
        damages,
        noted: false,
    })
}

/// The beginning of a log covered by the parts, by their state at the cut. Empty if the parts are not consecutive from
/// the log's first record on, or belong to another log.
fn beginning<F: Format>(place: &Place, found: &Inspected<F>, intact: &[Split]) -> Result<Extent> {
    let findings = &found.findings;
    let none = Extent { records: 0, end: findings.extent.start, ..findings.extent };
    if F::Framing::LINKED {
        // The check of a part compares no record before the part.
        return Ok(none);
    }
    let mut known = none;
    for part in intact {
        match part.records {
            Some(records) if part.offset == known.end && part.end > part.offset => {
                (known.records, known.end) = (known.records.saturating_add(records), part.end);
            }
            _ => return Ok(none),
        }
    }
    if known.end > findings.extent.end {
        return Ok(none);
    }
    let (file, end) = found.space.whole();
    let framing = found.format.framing();
    if let Some(identity) = intact.last().and_then(|part| part.identity) {
        let (there, mark) = ((findings.extent.start, end), found.mark.as_ref());
        match identity.check((&**file, framing), there, mark, &place.log) {
            Err(e) if e.kind() == ErrorKind::NotALog => return Ok(none),
            checked => checked.map_err(|e| e.of(F::NAME))?,
        }
    }
    Ok(known)
}

/// First and last record, by number or byte.
fn bounds<F: Format>(prefix: &Extent) -> (u64, u64) {
    match F::NUMBERED {
        true => (prefix.first, prefix.next().saturating_sub(1)),
        false => (prefix.start, prefix.last_offset),
    }
}

/// The blocks with another sum than in the index, for formats without checksums in records. The index has the sum of
/// every complete block; the last, open block has no sum.
fn rotten_blocks<F: Format>(
    common: &Common,
    place: &Place,
    found: &Inspected<F>,
) -> Result<Vec<Damage>> {
    let index = index_of(common, place, found);
    let index = lock(&index);
    let file = &*found.space.file;
    let (mut damages, mut from) = (Vec::new(), found.findings.extent.start);
    for entry in (0..index.len()).filter_map(|i| index.entry(i)) {
        let block = from..entry.offset;
        from = entry.offset;
        if entry.sum == 0 || entry.offset > found.findings.extent.end {
            continue;
        }
        let sum = found.seal.block_sum(file, block.clone());
        let sum = sum.map_err(|e| Error::io("read the log", &place.log, e).of(F::NAME))?;
        if let Some(sum) = sum.filter(|&sum| sum != entry.sum) {
            let name = F::name_of(None, block.start);
            damages.push(Damage {
                offset: block.start,
                end: block.end,
                reason: format!(
                    "{name}, or another one up to byte {}: checksum {sum:08x} of the block, the index \
                     has {:08x}",
                    block.end, entry.sum
                ),
                next_intact: Some(block.end),
                next_proved: true,
                ..Damage::default()
            });
        }
    }
    Ok(damages)
}
