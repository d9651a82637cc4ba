//! The full check: every record, every damaged stretch, nothing changed.

use std::path::Path;

use super::cursor::{Cursor, OnCorrupt};
use super::format::{FORMAT, Lsn};
use super::look::Looked;
use super::mend::PROGRESS_BYTES;
use super::open::{look_patiently, place_of, vouched};
use super::options::Options;
use super::place::Place;
use super::report::VerifyReport;
use super::survey::Borders;
use crate::error::Result;
use crate::locks::Mutex;
use crate::mode::Depth;
use crate::scan::{Damage, Verdict};
use crate::sidecar::MarkUse;
use crate::storage::Access;
use std::sync::Arc;

/// Check every record of a log. `progress` is called with bytes done and bytes in all, and what it
/// fails with ends the check. A log whose files do not tell where it begins, or what belongs to it,
/// is an error.
pub fn verify(
    path: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<VerifyReport> {
    let place = place_of(path.as_ref(), options)?;
    let looked = look_patiently(options, &place, Depth::Quick).map_err(|e| e.of(FORMAT))?;
    let findings = &looked.findings;
    let (start, file_end) = (findings.tip.start, findings.file_end);
    let mut records = cursor(options, &place, &looked);
    let (mut count, mut bytes, mut prefix, mut valid_end) = (0, 0, 0, start);
    let mut next_progress = start;
    while let Some(record) = records.next()? {
        count += 1;
        bytes += record.framed_len();
        let Lsn(end) = record.next_lsn();
        if end >= next_progress {
            progress(end - start, file_end - start)?;
            next_progress = end + PROGRESS_BYTES;
        }
        if records.damages().is_empty() {
            (prefix, valid_end) = (count, end);
        }
    }
    progress(file_end - start, file_end - start)?;
    let mut damages = records.damages().to_vec();
    damages.extend(unseen(&looked, &damages));
    let durable_end = findings.durable_end;
    let lost = durable_end.is_some_and(|end| valid_end < end) || findings.mark == MarkUse::Lost;
    let above_mark = durable_end.is_some_and(|end| valid_end >= end);
    let behind = damages.first().is_some_and(|damage| damage.next_intact.is_some());
    let verdict = match damages.is_empty() {
        _ if lost || looked.head_lost || findings.verdict == Verdict::Corrupt => Verdict::Corrupt,
        true if valid_end < file_end => Verdict::Torn,
        true => Verdict::Clean,
        false if !above_mark && (behind || damages.len() > 1) => Verdict::Corrupt,
        false => Verdict::Torn,
    };
    Ok(VerifyReport {
        verdict,
        records: count,
        bytes,
        bounds: (prefix > 0).then_some((Lsn(start), Lsn(valid_end))),
        valid_end,
        file_end,
        durable_end,
        lost_acknowledged: lost,
        damages,
    })
}

/// A cursor over all of a log that was looked at, which goes on behind damage.
pub fn cursor(options: &Options, place: &Place, looked: &Looked) -> Cursor {
    let index = vouched(options, place, looked.mark.as_ref(), Access::Read);
    let borders = Borders {
        index: Arc::new(Mutex::new(index)),
        known_end: looked.mark.map(|mark| mark.end),
        durable_end: looked.findings.durable_end,
    };
    let (start, end) = (looked.findings.tip.start, looked.findings.file_end);
    let file = looked.file.clone();
    Cursor::new(file, &place.log, looked.codec, start, end, OnCorrupt::Skip, borders)
}

/// Damage that no record shows: a log that ends below its mark, segments behind a gap, a head
/// marker that only the mark still knows.
fn unseen(looked: &Looked, seen: &[Damage]) -> Vec<Damage> {
    let findings = &looked.findings;
    let mut unseen: Vec<_> = findings.damage.iter().filter(|_| seen.is_empty()).cloned().collect();
    if looked.head_lost {
        let start = findings.tip.start;
        unseen.push(Damage {
            offset: start,
            end: start,
            reason: format!("the head marker is missing or damaged, the mark says {start}"),
            next_intact: Some(start),
            first_lost: None,
            records_lost: None,
        });
    }
    unseen
}
