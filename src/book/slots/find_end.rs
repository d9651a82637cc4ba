//! Finds the end of a log in the layout `slots` by the slots, with the help of the mark.

use std::io;
use std::sync::Arc;

use super::committed::{Boundary, Committed, Followed, Held, committed, deed_follows, sum_more};
use crate::book::format::BookFormat;
use crate::book::layouts::codec::Codec;
use crate::book::slots::{DEEDS_AT, Slot};
use crate::ground::checksum::crc32_more;
use crate::log::{Beyond, Findings, Format as _, Known, Space, anchored, find_end};
use crate::mode::Depth;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{Mark, MarkUse};
use crate::storage::File;
use crate::storage::end_of_data;

/// The findings, and the slot that proves the end.
pub struct FoundBySlots {
    /// The bytes of the log.
    pub space: Space,
    /// Where it ends.
    pub findings: Findings,
    /// The slot with all deeds present; `None` if no slot holds.
    pub slot: Option<usize>,
}

/// Find the end of a log by its slots.
pub fn find_by_slots(
    format: &BookFormat,
    file: &Arc<dyn File>,
    slots: &[Option<Slot>; 2],
    known: Known,
    followed: &Followed,
) -> io::Result<FoundBySlots> {
    let file_end = file.len()?;
    let space_to = |end| Space { files_end: file_end, ..Space::new(file.clone(), DEEDS_AT, end) };
    if known.depth == Depth::Begin {
        let space = space_to(file_end.max(DEEDS_AT));
        let findings = find_end(format, &space, known)?;
        return Ok(FoundBySlots { space, findings, slot: None });
    }
    let marked = match known.mark {
        Some(mark) if anchored(format, &space_to(file_end), &mark)? => {
            // A mark with other numbers would count other deeds.
            let same = known.first.is_none_or(|first| first == mark.first);
            Some(Boundary { records: mark.records, offset: mark.end }).filter(|_| same)
        }
        _ => None,
    };
    let known_place = marked.unwrap_or(Boundary::START);
    let committed = committed(&**file, format.framing(), slots, known_place, file_end, followed)?;
    // Deeds in `slots` have no checksums, so a changed first deed does not show that the mark
    // belongs to another log. The mark belongs to this log if a slot counts the same deeds as the
    // mark, and some deeds are missing. A damaged slot may have counted the missing deeds.
    let (Committed::Up { newest, .. } | Committed::Not { newest }) = committed;
    let id = file.id()?;
    let is_lost = |mark: Mark| newest.is_some_and(|(slot, _)| counts_the_same(&slot, &mark));
    let is_of_file = |mark: Mark| slots.contains(&None) && mark.file.is_still(id);
    let is_said = known.mark.is_some_and(|mark| is_lost(mark) || is_of_file(mark));
    let known = Known { is_ours: marked.is_some() || is_said, ..known };
    match committed {
        Committed::Up { at, end, newest } => {
            let space = space_to(seeded!(end, "uncounted-deeds-return" => file_end));
            let mut findings = find_end(format, &space, known)?;
            if findings.mark == MarkUse::Lost {
                return match newest {
                    Some((_, Held::Differs { .. })) => {
                        differs(format, known, newest, file_end, &space_to)
                    }
                    _ => lost(format, known, file_end, &space_to),
                };
            }
            after_end(&mut findings, &**file, end, newest)?;
            Ok(FoundBySlots { space, findings, slot: Some(at) })
        }
        Committed::Not { newest } => {
            let FoundBySlots { space, findings, .. } = match slots.iter().flatten().next() {
                None => differs(format, known, newest, file_end, &space_to)?,
                Some(_) => not_committed(format, file, known, newest, &space_to)?,
            };
            // The next write takes the slot that counts missing deeds.
            let empty = slots.iter().position(|slot| slot.is_some_and(|slot| slot.records() == 0));
            let slot = empty.filter(|_| findings.extent.records == 0);
            Ok(FoundBySlots { space, findings, slot })
        }
    }
}

/// Whether a slot counts the deeds that a mark counts.
fn counts_the_same(slot: &Slot, mark: &Mark) -> bool {
    let first = slot.fir.checked_add(1);
    mark.records > 0 && (first, slot.records()) == (Some(mark.first), mark.records)
}

/// The log ends below its mark: read the mark's deeds as far as they exist. No slot vouches for
/// later deeds, which have no checksums.
fn lost(
    format: &BookFormat,
    known: Known,
    file_end: u64,
    space_to: &dyn Fn(u64) -> Space,
) -> io::Result<FoundBySlots> {
    let marked = known.mark.map_or(file_end, |mark| mark.end.min(file_end));
    let space = bounded(space_to(marked.max(DEEDS_AT)));
    let mut findings = find_end(format, &space, known)?;
    findings.file_end = file_end;
    Ok(FoundBySlots { space, findings, slot: None })
}

/// No slot with deeds holds, though a slot counts some, or deeds lie in the log.
fn not_committed(
    format: &BookFormat,
    file: &Arc<dyn File>,
    known: Known,
    newest: Option<(Slot, Held)>,
    space_to: &dyn Fn(u64) -> Space,
) -> io::Result<FoundBySlots> {
    let file_end = file.len()?;
    let empty = space_to(DEEDS_AT);
    let mut findings = find_end(format, &empty, known)?;
    let was_empty = known.mark.is_some_and(|mark| mark.records == 0 && mark.is_open());
    if was_empty && findings.mark == MarkUse::Used {
        // The first commit never returned.
        after_end(&mut findings, &**file, DEEDS_AT, newest)?;
        return Ok(FoundBySlots { space: empty, findings, slot: None });
    }
    let marked = find_end(format, &space_to(file_end.max(DEEDS_AT)), known)?;
    if marked.mark == MarkUse::Lost {
        return lost(format, known, file_end, space_to);
    }
    if let Some((slot, Held::Short(place))) = newest
        && slot.bat == slot.records()
        && !hides_deeds(&**file, format.framing(), &slot, place)?
    {
        // The first batch was cut: the rest of the batch counts, as for the reference
        // implementation.
        let space = space_to(place.offset);
        let mut findings = find_end(format, &space, known)?;
        after_end(&mut findings, &**file, place.offset, newest)?;
        return Ok(FoundBySlots { space, findings, slot: None });
    }
    differs(format, known, newest, file_end, space_to)
}

/// The newest batch has another checksum than its slot, or no slot gives the end of the log.
fn differs(
    format: &BookFormat,
    known: Known,
    newest: Option<(Slot, Held)>,
    file_end: u64,
    space_to: &dyn Fn(u64) -> Space,
) -> io::Result<FoundBySlots> {
    // The valid prefix ends before a differing batch, but the deeds of the batch can be read.
    let (valid_end, end) = match newest {
        Some((_, Held::Differs { from, end, .. })) => (from, end),
        _ => (file_end.max(DEEDS_AT), file_end.max(DEEDS_AT)),
    };
    let mut findings = find_end(format, &space_to(valid_end), known)?;
    // The header may belong to another log with fewer deeds: the mark vouches for more.
    let vouched = known.mark.filter(|_| findings.mark == MarkUse::Lost);
    let end = end.max(vouched.map_or(DEEDS_AT, |mark| mark.end.min(file_end)));
    let space = bounded(space_to(end));
    findings.verdict = Verdict::Corrupt;
    findings.file_end = file_end;
    let damage = match newest {
        Some(newest) => not_held(newest, file_end),
        None => Damage {
            offset: findings.extent.end,
            end: file_end,
            reason: "no header slot says how far the log is committed".into(),
            ..Damage::default()
        },
    };
    if matches!(newest, Some((_, Held::Differs { .. }))) {
        // Report the batch, even if the log therefore ends below the mark.
        findings.damage = Some(damage);
    } else {
        findings.damage.get_or_insert(damage);
    }
    Ok(FoundBySlots { space, findings, slot: None })
}

/// Whether deeds of the first batch lie after the last length that fits. A damaged length leaves later deeds, but a
/// power cut that loses deeds also loses all later deeds.
fn hides_deeds(file: &dyn File, codec: Codec, slot: &Slot, place: Boundary) -> io::Result<bool> {
    let end = file.len()?;
    if deed_follows(file, codec, place.offset, end)? {
        return Ok(true);
    }
    // The last deed reaches to the end: with its corrected length the batch has the slot's
    // checksum.
    let framing = codec.layout.framing_bytes();
    let len = end.checked_sub(place.offset).and_then(|whole| whole.checked_sub(framing));
    let Some(len) = len.filter(|_| place.records + 1 == slot.records()) else { return Ok(false) };
    let sum = sum_more(file, 0, DEEDS_AT, place.offset)?;
    let sum = sum_more(file, crc32_more(sum, &len.to_le_bytes()), place.offset + 8, end - 8)?;
    Ok(crc32_more(sum, &len.to_le_bytes()) == slot.sum)
}

/// A space without reads after the end, not even past damage.
fn bounded(space: Space) -> Space {
    let beyond = Beyond { file: space.file.clone(), end: space.end };
    Space { beyond: Some(beyond), ..space }
}

/// Bytes after the end of the log were never a part of the log.
fn after_end(
    findings: &mut Findings,
    file: &dyn File,
    end: u64,
    newest: Option<(Slot, Held)>,
) -> io::Result<()> {
    let file_end = file.len()?;
    findings.file_end = file_end;
    findings.data_end = end_of_data(file, end, file_end)?;
    findings.unacknowledged_from.get_or_insert(end);
    if findings.verdict == Verdict::Corrupt || (file_end <= end && newest.is_none()) {
        return Ok(());
    }
    if findings.data_end <= end && newest.is_none() {
        findings.verdict = Verdict::Open;
        return Ok(());
    }
    findings.verdict = Verdict::Torn;
    findings.damage = Some(match newest {
        Some(newest) => Damage { offset: end, ..not_held(newest, file_end.max(end)) },
        None => Damage {
            offset: end,
            end: file_end,
            reason: format!(
                "deed {}: the header ends with event {}",
                findings.extent.next(),
                findings.extent.next().saturating_sub(1)
            ),
            ..Damage::default()
        },
    });
    Ok(())
}

/// The damage of a slot without its deeds.
fn not_held((slot, held): (Slot, Held), file_end: u64) -> Damage {
    let Slot { fir, las, bat, sum, .. } = slot;
    let (offset, end, reason) = match held {
        Held::Short(Boundary { records, offset }) => {
            let there = fir + records;
            (offset, file_end, format!("the header ends with event {las}, the deeds with {there}"))
        }
        Held::Differs { from, end, sum: found } => {
            let first = las - bat + 1;
            let reason = format!(
                "the batch of events {first} to {las}: checksum {found:08x}, the header has {sum:08x}"
            );
            (from, end, reason)
        }
        Held::Whole(end) => (end, file_end, "committed".into()),
    };
    Damage { offset, end, reason, ..Damage::default() }
}
