//! The full check: every deed, every damaged stretch, nothing changed.

use std::path::Path;

use super::cursor::{Cursor, OnCorrupt, Range};
use super::format::{HEADER_BYTES, Packed};
use super::mend::PROGRESS_BYTES;
use super::open::{Looked, look_at, resolve};
use super::options::Options;
use super::recover::MarkUse;
use super::report::VerifyReport;
use super::survey::Borders;
use crate::error::Result;
use crate::scan::Verdict;
use crate::sidecar::{Index, sidecar_dir};
use crate::storage::Access;

/// Check every deed of a log. `progress` is called with bytes done and bytes in all, and what it
/// fails with ends the check.
pub fn verify(
    path: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let (dir, log) = resolve(path.as_ref(), options);
    let looked = look_at(options, &dir, &log, Access::Read)?;
    let findings = &looked.findings;
    let first = Some(findings.tip.first).filter(|_| findings.tip.records > 0);
    let range = Range { offset: HEADER_BYTES, end: findings.file_end, event: first, stop: None };
    let borders = borders_of(options, &dir, &looked);
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
    let behind = damages.first().is_some_and(|damage| damage.next_intact.is_some());
    let tail_is_dropped = damages.is_empty() && valid_end < findings.file_end;
    let verdict = match damages.is_empty() {
        _ if lost || damages.len() > 1 => Verdict::Corrupt,
        false if behind && !above_mark(durable_end, valid_end) => Verdict::Corrupt,
        false => Verdict::Torn,
        true if tail_is_dropped => Verdict::Torn,
        true => Verdict::Clean,
    };
    let bounds = first.filter(|_| prefix > 0).map(|first| first..=first + (prefix - 1));
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

/// Places known to lie between deeds, for going on behind damage.
pub(super) fn borders_of(options: &Options, dir: &Path, looked: &Looked) -> Borders {
    let sidecar = sidecar_dir(dir);
    let index = match looked.mark {
        Some(mark) => Index::load(
            &*options.storage,
            &sidecar,
            mark.first_sum,
            mark.index_entries,
            mark.index_chain,
            Access::Read,
        ),
        None => Index::empty(&sidecar),
    };
    Borders { index, mark: looked.mark }
}
