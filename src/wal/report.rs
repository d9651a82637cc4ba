//! What opening, checking and mending found and did, as values.

use std::path::PathBuf;

use super::format::Lsn;
use super::recover::Findings;
use crate::scan::{Damage, Verdict};
use crate::sidecar::MarkUse;

/// What opening a log found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// How the log ended.
    pub verdict: Verdict,
    /// What became of the high-water mark.
    pub mark: MarkUse,
    /// Bytes of records that opening looked at.
    pub scanned_bytes: u64,
    /// Records that opening looked at.
    pub scanned_records: u64,
    /// Byte behind the last intact record.
    pub valid_end: u64,
    /// Byte behind the last one as found, over all segments.
    pub file_end: u64,
    /// Bytes cut, unwritten zeros included.
    pub cut_bytes: u64,
    /// Bytes behind the last intact record, up to the last that is not zero.
    pub torn_bytes: u64,
    /// Intact but unacknowledged records cut.
    pub cut_records: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// The first damage.
    pub damage: Option<Damage>,
    /// File in which the bytes cut were saved.
    pub saved_to: Option<PathBuf>,
    /// Segments below the head that were removed again.
    pub removed_segments: Vec<u64>,
    /// Whether a truncation that a crash interrupted was brought to its end.
    pub finished_truncation: bool,
}

impl RecoveryReport {
    pub(crate) fn new(findings: &Findings) -> Self {
        Self {
            verdict: findings.verdict,
            mark: findings.mark,
            scanned_bytes: findings.scanned_bytes,
            scanned_records: findings.scanned_records,
            valid_end: findings.tip.end,
            file_end: findings.file_end,
            cut_bytes: 0,
            torn_bytes: findings.data_end.saturating_sub(findings.tip.end),
            cut_records: 0,
            durable_end: findings.durable_end,
            damage: findings.damage.clone(),
            saved_to: None,
            removed_segments: Vec::new(),
            finished_truncation: false,
        }
    }

    /// Whether the end of the log came from the mark; else from a scan of the whole log.
    pub fn by_mark(&self) -> bool {
        self.mark == MarkUse::Used
    }
}

/// What a full check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// How the log ends.
    pub verdict: Verdict,
    /// Intact records.
    pub records: u64,
    /// Bytes of intact records.
    pub bytes: u64,
    /// First record and byte behind the last of the valid prefix.
    pub bounds: Option<(Lsn, Lsn)>,
    /// Byte behind the valid prefix.
    pub valid_end: u64,
    /// Byte behind the last one there is.
    pub file_end: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Whether the valid prefix ends below the mark.
    pub lost_acknowledged: bool,
    /// Every damaged stretch, in log order. Unwritten zeros at the end are not damage.
    pub damages: Vec<Damage>,
}

impl VerifyReport {
    /// Whether nothing is damaged, torn or lost.
    pub fn ok(&self) -> bool {
        self.damages.is_empty() && !self.lost_acknowledged
    }
}

/// What a repair cut, and where it saved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// The log.
    pub path: PathBuf,
    /// Byte at which it ends now.
    pub valid_end: u64,
    /// Bytes removed.
    pub cut_bytes: u64,
    /// File beside the log that holds them.
    pub saved_to: Option<PathBuf>,
    /// The damage at which the log was cut.
    pub damage: Option<Damage>,
}

/// Consecutive intact records copied by a salvage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SalvageRun {
    /// LSN of the first record in the source.
    pub source_lsn: Lsn,
    /// LSN of the first record in the new log.
    pub lsn: Lsn,
    /// Number of records.
    pub records: u64,
}

/// What a salvage copied, and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Records copied.
    pub records: u64,
    /// The runs, with old and new positions.
    pub runs: Vec<SalvageRun>,
    /// The stretches left out.
    pub damages: Vec<Damage>,
}
