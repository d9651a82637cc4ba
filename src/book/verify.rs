//! The full check: every deed, every damaged stretch, nothing changed.

use std::path::Path;

use super::cursor::{Cursor, OnCorrupt, Range};
use super::format::{HEADER_BYTES, Packed};
use super::look::{look_at, resolve};
use super::mend::PROGRESS_BYTES;
use super::options::Options;
use super::recover::{Depth, MarkUse};
use super::report::VerifyReport;
use super::survey::Borders;
use crate::error::Result;
use crate::scan::Verdict;
use crate::storage::Access;

/// Check every deed of a log. `progress` is called with bytes done and bytes in all, and what it
/// fails with ends the check.
pub fn verify(
    path: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let (dir, log) = resolve(path.as_ref(), options);
    let looked = look_at(options, &dir, &log, Access::Read, Depth::Quick)?;
    let findings = &looked.findings;
    let first = Some(findings.tip.first).filter(|_| findings.tip.records > 0);
    let range = Range { offset: HEADER_BYTES, end: findings.file_end, event: first, stop: None };
    let borders = Borders::of(options, &dir, &looked);
    let codec = Packed::new(options.deed_bytes_max);
    let mut deeds = Cursor::new(looked.file.clone(), log, codec, range, OnCorrupt::Skip, borders);

    let (mut count, mut bytes, mut prefix, mut valid_end) = (0, 0, 0, HEADER_BYTES);
    let mut next_progress = 0;
    while let Some(deed) = deeds.next()? {
        count += 1;
        bytes += deed.framed_len();
        let end = deed.offset + deed.framed_len();
        if end >= next_progress {
            progress(end, findings.file_end)?;
            next_progress = end + PROGRESS_BYTES;
        }
        if deeds.damages().is_empty() {
            (prefix, valid_end) = (count, end);
        }
    }
    progress(findings.file_end, findings.file_end)?;
    let mut damages = deeds.damages().to_vec();
    // Damage that no deed shows: in the header, or a log that ends below its mark.
    let unseen = findings.damage.clone().filter(|damage| {
        damage.offset < HEADER_BYTES || (findings.verdict == Verdict::Corrupt && damages.is_empty())
    });
    damages.splice(0..0, unseen);
    let durable_end = findings.durable_end;
    let lost = durable_end.is_some_and(|end| valid_end < end) || findings.mark == MarkUse::Lost;
    let in_header = damages.first().is_some_and(|damage| damage.offset < HEADER_BYTES);
    let behind = damages.first().is_some_and(|damage| damage.next_intact.is_some());
    let verdict = match damages.is_empty() {
        _ if lost || in_header || findings.verdict == Verdict::Corrupt => Verdict::Corrupt,
        true if valid_end < findings.file_end => Verdict::Torn,
        true => Verdict::Clean,
        false if above_mark(durable_end, valid_end) => Verdict::Torn,
        false if behind || damages.len() > 1 => Verdict::Corrupt,
        false => Verdict::Torn,
    };
    let bounds = first.filter(|_| prefix > 0).map(|first| first..=first.saturating_add(prefix - 1));
    Ok(VerifyReport {
        verdict,
        deeds: count,
        bytes,
        bounds,
        valid_end,
        file_end: findings.file_end,
        durable_end,
        lost_acknowledged: lost,
        damages,
    })
}

/// Above a mark everything is unacknowledged, and opening for write may drop it.
fn above_mark(durable_end: Option<u64>, valid_end: u64) -> bool {
    durable_end.is_some_and(|end| valid_end >= end)
}
