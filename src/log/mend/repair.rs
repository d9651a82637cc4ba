//! Cutting a damaged log where its valid prefix ends. Only on request.

use std::path::{Path, PathBuf};

use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::asking;
use crate::log::Log;
use crate::log::format::{Format, Inspected};
use crate::log::look::conclude::loss;
use crate::log::look::inspect::{inspect_patiently, place_of};
use crate::log::mend::whole::cursor_over;
use crate::log::notice::corrupt;
use crate::log::options::Common;
use crate::log::report::{Repair, RepairReport};
use crate::log::space::Place;
use crate::mode::{Depth, Mode, Recovery};
use crate::scan::Verdict;
use crate::scan::framing::Frame;
use crate::sidecar::{Loss, forget_damage};

/// Save the bytes after a log's valid prefix next to the log, then cut. A clean log stays
/// unchanged.
pub fn repair<F: Format>(
    path: &Path,
    options: &F::Options,
    repair: Repair,
) -> Result<RepairReport> {
    let (place, common) = place_of::<F>(path, options)?;
    let check = common.lock_timeout.check();
    asking(check, &place.log, || cut_and_reopen::<F>(&place, &common, options, repair))
        .map_err(|e| e.of(F::NAME))
}

fn cut_and_reopen<F: Format>(
    place: &Place,
    common: &Common,
    options: &F::Options,
    repair: Repair,
) -> Result<RepairReport> {
    // The log must exist. A refusal and a dry run change nothing.
    let found = inspect_patiently::<F>(options, place, Depth::Full)?;
    let mut report = plan::<F>(common, place, &found, repair)?;
    if repair.dry_run {
        return Ok(report);
    }
    if loss(&found).is_some() && !repair.accept_loss {
        report.cut_bytes = 0;
        report.cut_records = 0;
        report.set_aside.clear();
        return Ok(report);
    }
    // A writer may have been at work: decide by the findings under the lock.
    let decide = |found: &Inspected<F>| {
        let cut_records = report.cut_records;
        report = plan::<F>(common, place, found, repair)?;
        // A look for writing stops at a gap.
        report.cut_records = report.cut_records.max(cut_records);
        if loss(found).is_some() && !repair.accept_loss {
            let damage = found.findings.damage.clone().unwrap_or_default();
            return Err(corrupt::<F>(&place.log, &damage, ErrorKind::LostRecords));
        }
        Ok(())
    };
    // The repair syncs by itself.
    let durability = Durability::Manual;
    let spec = Common { recovery: Recovery::Spec, durability, ..common.clone() };
    let (mode, depth) = (Mode::Append, Depth::Full);
    let log: Log<F> = Log::open_writer(place.clone(), mode, options.clone(), spec, depth, decide)?;
    let recovery = log.recovery().clone();
    report.records = log.len()?;
    log.close()?;
    forget_damage(&*common.storage, &place.sidecar)?;
    report.valid_end = recovery.valid_end;
    report.cut_bytes = recovery.cut_bytes;
    report.saved = recovery.saved_to.into_iter().collect();
    report.set_aside = recovery.set_aside;
    report.damages = recovery.damage.into_iter().collect();
    report.mended = true;
    Ok(report)
}

/// The steps of a repair after the given findings, or the reason to refuse.
fn plan<F: Format>(
    common: &Common,
    place: &Place,
    found: &Inspected<F>,
    repair: Repair,
) -> Result<RepairReport> {
    let noted = Loss::load(&*common.storage, &place.sidecar)?;
    let findings = &found.findings;
    let is_corrupt = findings.verdict == Verdict::Corrupt;
    if let Some(damage) = findings.damage.as_ref().filter(|_| findings.beyond_limit) {
        return Err(corrupt::<F>(&place.log, damage, ErrorKind::Corrupt));
    }
    let report = RepairReport {
        path: place.log.clone(),
        records: findings.extent.records,
        valid_end: findings.extent.end,
        cut_bytes: found.space.files_end.saturating_sub(findings.extent.end),
        cut_records: if is_corrupt { intact_after(common, place, found)? } else { 0 },
        saved: Vec::new(),
        set_aside: orphans(place, found)?,
        damages: findings.damage.clone().into_iter().collect(),
        lost_segments: Vec::new(),
        loss: loss(found),
        earlier_loss: noted,
        mended: false,
    };
    if let Some(damage) =
        findings.damage.as_ref().filter(|damage| damage.offset < findings.extent.start)
    {
        let error = corrupt::<F>(&place.log, damage, ErrorKind::Corrupt);
        return Err(error.with_advice("cutting does not mend it; salvage copies what is intact"));
    }
    if report.cut_records > 0 && !repair.force && !repair.dry_run {
        let (lie, them) = if report.cut_records > 1 { ("s lie", "them") } else { (" lies", "it") };
        let message = format!(
            "{} intact {}{lie} after the damage at byte {} and would go with the cut; salvage \
             copies {them} to a new log, or force the repair",
            report.cut_records,
            F::NOUN,
            findings.extent.end
        );
        return Err(Error::new(ErrorKind::Corrupt, message).at(&place.log));
    }
    Ok(report)
}

/// The files after a gap that a cut sets aside. An unfinished truncation removes the files instead.
fn orphans<F: Format>(place: &Place, found: &Inspected<F>) -> Result<Vec<PathBuf>> {
    match found.space.files.segments() {
        Some(segments) if !found.cut_begun() => segments
            .orphans()
            .map_err(|e| Error::io("look at the files after a gap", &place.log, e)),
        _ => Ok(Vec::new()),
    }
}

/// How many intact records lie after the valid prefix.
fn intact_after<F: Format>(common: &Common, place: &Place, found: &Inspected<F>) -> Result<u64> {
    let end = found.findings.extent.end;
    let mut records = cursor_over(common, place, found).rescuing();
    let mut intact = 0;
    while let Some((_, offset, frame)) = records.advance()? {
        intact += u64::from(offset + frame.len() > end);
    }
    Ok(intact)
}
