//! Results of opening, checking and repairing, as values. One set for all formats.

use std::path::PathBuf;

use crate::log::look::findings::Findings;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{Loss, MarkUse};

/// The result of opening a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// How the log ended.
    pub verdict: Verdict,
    /// How the opening used the high-water mark.
    pub mark: MarkUse,
    /// Bytes of records that opening read.
    pub scanned_bytes: u64,
    /// Number of records read by the opening.
    pub scanned_records: u64,
    /// Byte after the last intact record that is kept.
    pub valid_end: u64,
    /// Byte after the last one as found, over all files.
    pub file_end: u64,
    /// Bytes cut, unwritten zeros included.
    pub cut_bytes: u64,
    /// Bytes after the last intact record, kept or cut, up to the last that is not zero.
    pub torn_bytes: u64,
    /// Intact but unacknowledged records cut.
    pub cut_records: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// The first damage.
    pub damage: Option<Damage>,
    /// File with the saved bytes of the cut.
    pub saved_to: Option<PathBuf>,
    /// Segments after a gap, by their new names: no reader takes a renamed segment for a part of
    /// the log.
    pub set_aside: Vec<PathBuf>,
    /// Acknowledged records that earlier repairs went on without, together.
    pub loss: Option<Loss>,
    /// Segments below the head that were removed again.
    pub removed_segments: Vec<u64>,
    /// Whether the opening finished a truncation that a crash had interrupted.
    pub finished_truncation: bool,
}

impl OpenReport {
    pub(super) fn new(findings: &Findings, loss: Option<Loss>) -> Self {
        Self {
            verdict: findings.verdict,
            mark: findings.mark,
            scanned_bytes: findings.scanned_bytes,
            scanned_records: findings.scanned_records,
            valid_end: findings.extent.end,
            file_end: findings.file_end,
            cut_bytes: 0,
            torn_bytes: findings.data_end.saturating_sub(findings.extent.end),
            cut_records: 0,
            durable_end: findings.durable_end,
            damage: findings.damage.clone(),
            saved_to: None,
            set_aside: Vec::new(),
            loss,
            removed_segments: Vec::new(),
            finished_truncation: false,
        }
    }

    /// Whether opening cut the log at its end.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut_bytes > 0 || self.finished_truncation
    }

    /// Whether the opening found the end of the log by the mark. If not, it scanned the whole log.
    pub fn by_mark(&self) -> bool {
        self.mark == MarkUse::Used
    }
}

/// The result of a full check. A log, a file of a ledger, an epoch of a pier and a part have one each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The log: a file, or the directory of a write-ahead log's segments.
    pub path: PathBuf,
    /// How the log ends.
    pub verdict: Verdict,
    /// Intact records. An unacknowledged tail counts up to its first damage.
    pub records: u64,
    /// Records among these that may lie inside a damaged record's payload.
    pub uncertain: u64,
    /// Bytes of intact records.
    pub bytes: u64,
    /// First and last record of the valid prefix: by number, or by byte in a write-ahead log.
    pub bounds: Option<(u64, u64)>,
    /// Byte after the valid prefix.
    pub valid_end: u64,
    /// Byte after the last one there is, over all files.
    pub file_end: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Whether the valid prefix ends below the mark, or a part has fewer or other records than at its cut.
    pub lost_acknowledged: bool,
    /// Acknowledged records that earlier repairs went on without, together.
    pub loss: Option<Loss>,
    /// Every damaged stretch, in log order. Unwritten zeros at the end are not damage.
    pub damages: Vec<Damage>,
    /// Whether the check noted damage next to the log, because opening does not see it: opening for writing is
    /// refused until a repair, or a check without a find.
    pub noted: bool,
}

impl VerifyReport {
    /// Whether the log has no damage, torn tail or loss. A loss that the caller of an earlier
    /// repair accepted does not count. A part is ok if it is unchanged since its cut.
    pub fn ok(&self) -> bool {
        self.damages.is_empty() && !self.lost_acknowledged
    }
}

/// The permissions of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Cut even if intact records go with the cut. The repair saves all cut bytes next to the log;
    /// `salvage` copies the records to a log.
    pub force: bool,
    /// Change nothing; report the steps of a repair.
    pub dry_run: bool,
    /// Go on although acknowledged records are missing: lower the mark. The loss stays noted.
    pub accept_loss: bool,
}

/// The result of a repair: the cut, and the files with the saved bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The log.
    pub path: PathBuf,
    /// Intact records that stay: the records before the new end.
    pub records: u64,
    /// The log's new end.
    pub valid_end: u64,
    /// Bytes removed; in a dry run, bytes to be removed.
    pub cut_bytes: u64,
    /// Intact records among them. An event store counts the events that its segments lack.
    pub cut_records: u64,
    /// Files with the removed bytes, next to the log.
    pub saved: Vec<PathBuf>,
    /// Segments after a gap, by their new names: no reader takes a renamed segment for a part of
    /// the log. In a dry run, by their present names.
    pub set_aside: Vec<PathBuf>,
    /// The damage at which the log was cut. An event store names the damaged parts of its files, and the
    /// parts of its write-ahead log that a cut removes with them.
    pub damages: Vec<Damage>,
    /// Missing segments of an event store.
    pub lost_segments: Vec<u32>,
    /// Missing acknowledged records: with segments, with damaged bytes, or at the log's end. A repair
    /// that continues without them notes the loss next to the log.
    pub loss: Option<Loss>,
    /// Losses that earlier repairs noted.
    pub earlier_loss: Option<Loss>,
    /// Whether the log can be opened for writing now, and has no damage.
    pub mended: bool,
}

/// Consecutive intact records copied by a salvage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageRun {
    /// Number of the first record in the source, where it is known.
    pub source_ordinal: Option<u64>,
    /// Byte of the first record in the source.
    pub source_offset: u64,
    /// Number of the first record in the new log.
    pub ordinal: u64,
    /// Byte of the first record in the new log.
    pub offset: u64,
    /// Number of records.
    pub records: u64,
    /// Whether the records are proved to be records of the log. Unproved records may lie inside a
    /// damaged record's payload.
    pub proved: bool,
}

/// The result of a salvage: the copied records, and the losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The log that was read.
    pub path: PathBuf,
    /// The new log: a file, or a directory of segments. `None` for a file of a ledger without records to copy.
    pub copy: Option<PathBuf>,
    /// Records copied.
    pub records: u64,
    /// Records among these that may lie inside a damaged record's payload.
    pub uncertain: u64,
    /// The runs, with old and new positions.
    pub runs: Vec<SalvageRun>,
    /// The stretches left out.
    pub damages: Vec<Damage>,
    /// Acknowledged records missing after the last copied record. `damages` has the losses before.
    pub loss: Option<Loss>,
    /// Bytes of the source, without its header.
    pub source_bytes: u64,
    /// Numbers of the stubs for lost records in the new log, if numbers are kept.
    pub stubs: Vec<u64>,
    /// Consumers that the new log has from the source.
    pub consumers: u64,
    /// Consumers whose record is lost. In the new log they stand at the next intact record, or at
    /// the end.
    pub moved_consumers: Vec<String>,
    /// Applications whose last transaction the new log knows from the source.
    pub transactions: u64,
    /// Unfinished transactions of the source, staged or begun; the new log lacks them.
    pub unfinished_transactions: u64,
    /// Errors of unreadable files next to the source: the new log lacks the files.
    pub not_carried: Vec<String>,
}

impl SalvageReport {
    /// Whether any record has another number in the new log than in the source.
    pub fn renumbered(&self) -> bool {
        self.runs.iter().any(|run| run.source_ordinal != Some(run.ordinal))
    }
}
