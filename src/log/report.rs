//! What opening, checking and repairing found and did, as values. One set for all formats.

use std::path::PathBuf;

use crate::log::findings::Findings;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{Loss, MarkUse};

/// What opening a log found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// How the log ended.
    pub verdict: Verdict,
    /// What became of the high-water mark.
    pub mark: MarkUse,
    /// Bytes of records that opening read.
    pub scanned_bytes: u64,
    /// Records that opening read.
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
    /// File in which the bytes cut were saved.
    pub saved_to: Option<PathBuf>,
    /// Segments after a gap, by the names that they were given so that none is read as a part of the
    /// log.
    pub set_aside: Vec<PathBuf>,
    /// Acknowledged records that earlier repairs went on without, together.
    pub loss: Option<Loss>,
    /// Segments below the head that were removed again.
    pub removed_segments: Vec<u64>,
    /// Whether a truncation that a crash interrupted was brought to its end.
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

    /// Whether the end of the log came from the mark; else from a scan of the whole log.
    pub fn by_mark(&self) -> bool {
        self.mark == MarkUse::Used
    }
}

/// What a full check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// How the log ends.
    pub verdict: Verdict,
    /// Intact records; of an unacknowledged tail those before its first damage.
    pub records: u64,
    /// Of these, records that may lie inside a damaged record's payload.
    pub uncertain: u64,
    /// Bytes of intact records.
    pub bytes: u64,
    /// First and last record of the valid prefix: their numbers, or their bytes in a write-ahead
    /// log.
    pub bounds: Option<(u64, u64)>,
    /// Byte after the valid prefix.
    pub valid_end: u64,
    /// Byte after the last one there is, over all files.
    pub file_end: u64,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Whether the valid prefix ends below the mark.
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
    /// Whether nothing is damaged, torn or lost. What an earlier repair found missing, and its
    /// caller accepted, does not count.
    pub fn ok(&self) -> bool {
        self.damages.is_empty() && !self.lost_acknowledged
    }
}

/// What a check of a part found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartReport {
    /// Whether the part is what it was when it was cut: it has no damage, as many records, and the
    /// last one ends where the part does.
    pub intact: bool,
    /// Intact records.
    pub records: u64,
    /// Of these, records that may lie inside a damaged record's payload.
    pub uncertain: u64,
    /// Bytes of intact records.
    pub bytes: u64,
    /// Byte after the last one.
    pub end: u64,
    /// Every damaged stretch.
    pub damages: Vec<Damage>,
}

/// What a repair may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Cut even if intact records go with the cut. They are saved beside the log like all that is
    /// cut; `salvage` copies them to a log.
    pub force: bool,
    /// Change nothing; report what a repair would do.
    pub dry_run: bool,
    /// Go on although acknowledged records are missing: lower the mark. The loss stays noted.
    pub accept_loss: bool,
}

/// What a repair cut, and where it saved it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The log.
    pub path: PathBuf,
    /// Byte at which it ends now.
    pub valid_end: u64,
    /// Bytes removed; of a dry run, bytes to be removed.
    pub cut_bytes: u64,
    /// Intact records among them.
    pub cut_records: u64,
    /// File beside the log that holds them.
    pub saved_to: Option<PathBuf>,
    /// Segments after a gap, by the names that they were given so that none is read as a part of the
    /// log; of a dry run, by those that they have.
    pub set_aside: Vec<PathBuf>,
    /// The damage at which the log was cut.
    pub damage: Option<Damage>,
    /// Acknowledged records that are missing, or else those that earlier repairs went on without. What a
    /// repair goes on without stays noted beside the log.
    pub loss: Option<Loss>,
    /// Whether the log can be opened for writing now.
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
    /// Whether they are proved to be records of the log; else they may lie inside a damaged
    /// record's payload.
    pub proved: bool,
}

/// What a salvage copied, and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Records copied.
    pub records: u64,
    /// Of these, records that may lie inside a damaged record's payload.
    pub uncertain: u64,
    /// The runs, with old and new positions.
    pub runs: Vec<SalvageRun>,
    /// The stretches left out.
    pub damages: Vec<Damage>,
    /// Acknowledged records that are missing behind the last record that was copied. `damages` has those
    /// before it.
    pub loss: Option<Loss>,
    /// Bytes of the source, without its header.
    pub source_bytes: u64,
    /// Numbers of the records that stand in the new log for lost ones, where numbers are kept.
    pub stubs: Vec<u64>,
    /// Consumers that the new log has from the source.
    pub consumers: u64,
    /// Consumers whose record is lost. In the new log they are at the first intact record after it, or at the
    /// end.
    pub moved_consumers: Vec<String>,
    /// Applications of which the new log knows, from the source, the last transaction.
    pub transactions: u64,
    /// Transactions that were staged or begun in the source and not ended; they are not in the new log.
    pub unfinished_transactions: u64,
    /// Errors of files next to the source that could not be read: the new log lacks them.
    pub not_carried: Vec<String>,
}

impl SalvageReport {
    /// Whether any record has another number in the new log than in the source.
    pub fn renumbered(&self) -> bool {
        self.runs.iter().any(|run| run.source_ordinal != Some(run.ordinal))
    }
}
