//! What opening, checking and mending found and did, as values.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::recover::{Findings, MarkUse};
use crate::scan::{Damage, Verdict};

/// What opening a book found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// How the log ended.
    pub verdict: Verdict,
    /// What became of the high-water mark.
    pub mark: MarkUse,
    /// Bytes of deeds that opening looked at.
    pub scanned_bytes: u64,
    /// Deeds that opening looked at.
    pub scanned_deeds: u64,
    /// Byte behind the last intact deed.
    pub valid_end: u64,
    /// Size of the file as found.
    pub file_end: u64,
    /// Bytes cut from the file, unwritten zeros included.
    pub cut_bytes: u64,
    /// Bytes behind the last intact deed, up to the last that is not zero.
    pub torn_bytes: u64,
    /// Intact but unacknowledged deeds cut.
    pub cut_deeds: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// The first damage.
    pub damage: Option<Damage>,
    /// File in which the bytes cut were saved.
    pub saved_to: Option<PathBuf>,
}

impl RecoveryReport {
    pub(crate) fn new(findings: &Findings) -> Self {
        Self {
            verdict: findings.verdict,
            mark: findings.mark,
            scanned_bytes: findings.scanned_bytes,
            scanned_deeds: findings.scanned_records,
            valid_end: findings.tip.end,
            file_end: findings.file_end,
            cut_bytes: 0,
            torn_bytes: findings.data_end.saturating_sub(findings.tip.end),
            cut_deeds: 0,
            durable_end: findings.durable_end,
            damage: findings.damage.clone(),
            saved_to: None,
        }
    }

    /// Whether the end of the log came from the mark; else from a scan of the whole file.
    pub fn by_mark(&self) -> bool {
        self.mark == MarkUse::Used
    }
}

/// What a full check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// How the log ends.
    pub verdict: Verdict,
    /// Intact deeds; of an unacknowledged tail those before its first damage.
    pub deeds: u64,
    /// Bytes of intact deeds.
    pub bytes: u64,
    /// First and last event of the valid prefix.
    pub bounds: Option<RangeInclusive<u64>>,
    /// Byte behind the valid prefix.
    pub valid_end: u64,
    /// Size of the file.
    pub file_end: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Whether the valid prefix ends below the mark.
    pub lost_acknowledged: bool,
    /// Every damaged stretch, in file order. Unwritten zeros at the end are not damage.
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
    /// The log file.
    pub path: PathBuf,
    /// Its new size.
    pub valid_end: u64,
    /// Bytes removed.
    pub cut_bytes: u64,
    /// File beside the log that holds them.
    pub saved_to: Option<PathBuf>,
    /// The damage at which the log was cut.
    pub damage: Option<Damage>,
}

/// Consecutive intact deeds copied by a salvage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SalvageRun {
    /// Number of the first deed in the source, where it is known.
    pub source_event: Option<u64>,
    /// Number of the first deed in the new log.
    pub event: u64,
    /// Number of deeds.
    pub deeds: u64,
    /// Byte of the first deed in the source.
    pub source_offset: u64,
}

/// What a salvage copied, and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Deeds copied.
    pub deeds: u64,
    /// The runs, with old and new numbers.
    pub runs: Vec<SalvageRun>,
    /// The stretches left out.
    pub damages: Vec<Damage>,
}

impl SalvageReport {
    /// Whether any deed has another number in the new log than in the source.
    pub fn renumbered(&self) -> bool {
        self.runs.iter().any(|run| run.source_event != Some(run.event))
    }
}
