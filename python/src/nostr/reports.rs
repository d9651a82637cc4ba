//! Reports of an event store's work, as values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deedbook::nostr::{
    BadLine, Census, CompactionReport, ExportReport, ImportReport, OpenReport, Outcome,
    SalvageReport, VerifyReport,
};
use deedbook::report::{Damage, RepairReport};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::fs_path::FsPath;
use crate::common::reports::{PyLoss, check_known, field, plain, report};
use crate::nostr::event::{Place, place_of};

fn paths(paths: &[PathBuf]) -> Vec<FsPath> {
    paths.iter().map(|path| path.clone().into()).collect()
}

fn name_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Stored(_) => "stored",
        Outcome::Duplicate(_) => "duplicate",
        Outcome::Superseded(_) => "superseded",
        Outcome::Deleted => "deleted",
        Outcome::Expired => "expired",
        Outcome::Ephemeral => "ephemeral",
        _ => "other",
    }
}

fn location_in(outcome: &Outcome) -> Option<Place> {
    match outcome {
        Outcome::Stored(at) | Outcome::Duplicate(at) | Outcome::Superseded(at) => {
            Some(place_of(*at))
        }
        _ => None,
    }
}

report!(PyEventOutcome, "EventOutcome", Outcome, {
    what: String = |outcome| name_of(outcome).into(),
    stored: bool = |outcome| outcome.is_stored(),
    location: Option<Place> = |outcome| location_in(outcome),
});

report!(PyBadLine, "BadLine", BadLine, {
    line: u64 = |bad| bad.line,
    reason: String = |bad| bad.reason.clone(),
});

report!(PyImportReport, "ImportReport", ImportReport, {
    lines: u64 = |report| report.lines,
    bytes: u64 = |report| report.bytes,
    stored: u64 = |report| report.stored,
    superseded: u64 = |report| report.superseded,
    duplicates: u64 = |report| report.duplicates,
    deleted: u64 = |report| report.deleted,
    expired: u64 = |report| report.expired,
    ephemeral: u64 = |report| report.ephemeral,
    bad: u64 = |report| report.bad,
    bad_lines: Vec<PyBadLine> = |report| report.bad_lines.iter().map(PyBadLine::from).collect(),
});

impl PyImportReport {
    /// The report in Rust's form.
    pub fn into_report(self) -> ImportReport {
        let bad = |bad: PyBadLine| BadLine { line: bad.line, reason: bad.reason };
        let mut report = ImportReport::default();
        report.lines = self.lines;
        report.bytes = self.bytes;
        report.stored = self.stored;
        report.superseded = self.superseded;
        report.duplicates = self.duplicates;
        report.deleted = self.deleted;
        report.expired = self.expired;
        report.ephemeral = self.ephemeral;
        report.bad = self.bad;
        report.bad_lines = self.bad_lines.into_iter().map(bad).collect();
        report
    }
}

report!(PyExportReport, "ExportReport", ExportReport, {
    events: u64 = |report| report.events,
    lossy: u64 = |report| report.lossy,
});

report!(PyEventFault, "EventFault", Damage, {
    location: Place = |fault| (fault.segment.unwrap_or_default(), fault.offset as u32),
    end: u32 = |fault| fault.end as u32,
    reason: String = |fault| fault.reason.clone(),
});

/// Damage skipped by a walk.
pub fn passed_over(damage: &[Damage]) -> Vec<PyEventFault> {
    damage.iter().map(PyEventFault::from).collect()
}

/// As for logs that note a loss: the size of a store's loss is unknown.
fn loss(is_loss: bool) -> Option<PyLoss> {
    is_loss.then(PyLoss::of_unknown_size)
}

fn verdict(ok: bool) -> String {
    if ok { "clean".into() } else { "corrupt".into() }
}

report!(PyEventStoreReport, "EventStoreReport", VerifyReport, {
    ok: bool = |report| report.ok(),
    verdict: String = |report| verdict(report.ok()),
    records: u64 = |report| report.live + report.deleted + report.replaced,
    loss: Option<PyLoss> = |report| loss(report.is_loss),
    segments: u64 = |report| report.segments,
    bytes: u64 = |report| report.bytes,
    live: u64 = |report| report.live,
    deleted: u64 = |report| report.deleted,
    replaced: u64 = |report| report.replaced,
    recovered: u64 = |report| report.recovered,
    lossy: u64 = |report| report.lossy,
    faults: u64 = |report| report.faults,
    damages: Vec<PyEventFault> =
        |report| passed_over(&report.first_faults),
    log_damages: Vec<PyDamagedPart> = |report| damaged(&report.log_damages),
    is_loss: bool = |report| report.is_loss,
    noted: bool = |report| report.noted,
});

report!(PyEventStorePartReport, "EventStorePartReport", VerifyReport, {
    report: PyEventStoreReport = |part| part.into(),
    ids: Vec<u8> = |part| part.ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
});

report!(PyCompactionReport, "CompactionReport", CompactionReport, {
    segments: Vec<u32> = |report| report.segments.clone(),
    written: Vec<u32> = |report| report.written.clone(),
    kept: u64 = |report| report.kept,
    deleted: u64 = |report| report.deleted,
    replaced: u64 = |report| report.replaced,
    expired: u64 = |report| report.expired,
    bytes_before: u64 = |report| report.bytes_before,
    bytes_after: u64 = |report| report.bytes_after,
});

report!(PyFragmentation, "Fragmentation", CompactionReport, {
    segment: u32 = |found| found.segments.first().copied().unwrap_or_default(),
    kept: u64 = |found| found.kept,
    deleted: u64 = |found| found.deleted,
    replaced: u64 = |found| found.replaced,
    expired: u64 = |found| found.expired,
    live_bytes: u64 = |found| found.bytes_after,
    dead_bytes: u64 = |found| found.bytes_before - found.bytes_after,
    share: f64 = |found| found.share(),
});

report!(PyEventStoreOpening, "EventStoreOpening", OpenReport, {
    replayed: u64 = |opening| opening.replayed,
    appended_again: u64 = |opening| opening.appended_again,
    flags_set_again: u64 = |opening| opening.flags_set_again,
    saved: Vec<FsPath> = |opening| paths(&opening.saved),
    removed: Vec<FsPath> = |opening| paths(&opening.removed),
    manifest_rebuilt: bool = |opening| opening.manifest_rebuilt,
    indexed: u64 = |opening| opening.indexed,
    cut_bytes: u64 = |opening| opening.cut_bytes,
    cut_events: u64 = |opening| opening.cut_events,
    is_loss: bool = |opening| opening.is_loss,
});

report!(PyDamagedPart, "DamagedPart", Damage, {
    path: FsPath = |damage| damage.path.clone().unwrap_or_default().into(),
    offset: u64 = |damage| damage.offset,
    end: u64 = |damage| damage.end,
    reason: String = |damage| damage.reason.clone(),
});

pub fn damaged(damages: &[Damage]) -> Vec<PyDamagedPart> {
    damages.iter().map(PyDamagedPart::from).collect()
}

/// Repaired, or found without damage by a dry run.
fn is_whole(report: &RepairReport) -> bool {
    let found =
        report.damages.is_empty() && report.lost_segments.is_empty() && report.loss.is_none();
    report.mended || found
}

report!(PyEventStoreRepair, "EventStoreRepair", RepairReport, {
    ok: bool = |report| is_whole(report),
    verdict: String = |report| verdict(is_whole(report)),
    records: u64 = |report| report.records,
    loss: Option<PyLoss> = |report| loss(report.loss.is_some()),
    path: FsPath = |report| report.path.clone().into(),
    damages: Vec<PyDamagedPart> = |report| damaged(&report.damages),
    cut_bytes: u64 = |report| report.cut_bytes,
    cut_events: u64 = |report| report.cut_records,
    lost_segments: Vec<u32> = |report| report.lost_segments.clone(),
    is_loss: bool = |report| report.loss.is_some(),
    was_loss: bool = |report| report.earlier_loss.is_some(),
    saved: Vec<FsPath> = |report| paths(&report.saved),
    mended: bool = |report| report.mended,
});

report!(PyEventStoreSalvage, "EventStoreSalvage", SalvageReport, {
    ok: bool = |report| report.is_complete(),
    verdict: String = |report| verdict(report.is_complete()),
    records: u64 = |report| report.events,
    loss: Option<PyLoss> = |report| loss(!report.lost_segments.is_empty()),
    hidden: u64 = |report| report.hidden,
    from_log: u64 = |report| report.from_log,
    from_saved: u64 = |report| report.from_saved,
    uncertain: u64 = |report| report.uncertain,
    copies: u64 = |report| report.copies,
    left_out: u64 = |report| report.left_out,
    lost_segments: Vec<u32> = |report| report.lost_segments.clone(),
    damages: Vec<PyDamagedPart> = |report| damaged(&report.damages),
    source_bytes: u64 = |report| report.source_bytes,
});

report!(PyEventCensus, "EventCensus", Census, {
    events: u64 = |census| census.events,
    kinds: BTreeMap<u16, u64> = |census| census.kinds.clone(),
    authors: BTreeMap<String, u64> =
        |census| census.authors.iter().map(|(id, &count)| (id.to_string(), count)).collect(),
    days: BTreeMap<u32, u64> = |census| census.days.clone(),
    tags: BTreeMap<String, u64> = |census| census.tags.clone(),
    damages: Vec<PyEventFault> = |census| passed_over(&census.damage),
});
