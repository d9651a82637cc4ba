//! Adopt the segments and the log of a store without a vouching manifest. Another program wrote
//! last, or the manifest is lost, or the manifest and the log are of different times.
//!
//! The log's last checkpoint covers all earlier entries. Adopting searches all segments for the
//! log's later events: stored records stay, and the others are appended. Events that only the
//! segments have stay, too, because another program may have acknowledged them. Adopting saves and
//! cuts a torn record at the end. Damage after a record of the log, or after the byte covered by
//! the checkpoint, comes from a crash and is cut as well. Adopting first logs the intact events
//! after such damage, to append them again.
//!
//! The checkpoint at the end of the opening stores a manifest that vouches for everything.

use std::collections::{HashMap, HashSet};

use super::redo::{append, cut, each_entry, set_flags};
use crate::error::Result;
use crate::nostr::bytes::event::{Id, Location};
use crate::nostr::bytes::names::{Names, may_be_lost, recover};
use crate::nostr::bytes::record;
use crate::nostr::bytes::signature;
use crate::nostr::damage::checked_log::events_of;
use crate::nostr::log::entry::Entry;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::{Options, now};
use crate::nostr::pages::segment::{Found, Record, Segment};
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::opened::{OpenReport, Tail};
use crate::scan::OnCorrupt;

/// Bring the segments in line with the log. `covered` is the byte of the last segment covered by
/// the last checkpoint, if known. `is_mended` says whether this opening cut the log.
/// `keeps_damage` says whether damage at the end stays if `covered` is unknown: a checkpoint of
/// this program may cover the damage.
pub fn adopt(
    wal: &EventWal,
    segments: &mut Segments,
    options: &Options,
    (covered, is_mended, keeps_damage): (Option<u32>, bool, bool),
    opening: &mut OpenReport,
) -> Result<Tail> {
    // Sync the log first: a power cut could keep pages or flags written below, and lose the log's
    // end.
    wal.sync()?;
    let logged = events_of(wal, segments.active()?.segment.header().page_bytes)?;
    let whole = Whole { asks_signatures: !is_mended && !options.checksums };
    let mut places = Places::find(segments, &logged, covered, &whole)?;
    if keeps_damage && places.is_damaged {
        places.end = segments.active()?.segment.end();
    }
    // Pages after lost pages keep their place.
    let lost_end = segments.active()?.segment.missing().end;
    let at = places.end.max(seeded!(lost_end, "lost-pages-taken" => 0));
    log_rest(wal, &segments.active()?.segment, at, &logged, &whole)?;
    cut(segments, at, options.file_mode, opening)?;
    let (mut tail, last) = (Tail::default(), segments.last());
    let stays = |place: &Location| Some(place.segment) != last || place.offset < at;
    let (mut appended, mut entries) = (Vec::new(), wal.replay(OnCorrupt::Raise)?);
    opening.replayed = each_entry(&mut entries, &mut tail, &mut |record| {
        let id = record::parse(record).ok().map(|event| event.id);
        if let Some(&place) = id.and_then(|id| places.by_id.get(&id)).filter(|place| stays(place)) {
            seeded!(segments.write_over(place, record)?, "cached-pages-trusted" => ());
            return Ok(place);
        }
        opening.appended_again += 1;
        let place = append(segments, record)?;
        appended.push(place);
        Ok(place)
    })?;
    if let Some(moved) = places.moved {
        // The events have other locations than in the log, so the tail names them: the caller hides
        // the events they replace.
        tail.last = appended;
        tail.flagged.retain(|(at, _)| Some(at.segment) != last || at.offset < moved);
    }
    tail.last.extend(places.unlogged.into_iter().filter(stays));
    set_flags(segments, &mut tail, opening)?;
    Ok(tail)
}

/// The locations in the segments of the log's events after its last checkpoint.
#[derive(Debug, Default)]
struct Places {
    by_id: HashMap<Id, Location>,
    /// Events of the last segment that the log lacks, after the first of the log's events.
    unlogged: Vec<Location>,
    /// The byte at which the last segment ends, before damage at its end.
    end: u32,
    /// Whether the segment ends with damage that need not come from a crash.
    is_damaged: bool,
    /// The byte from which on the original locations of the log's events are unknown.
    moved: Option<u32>,
}

impl Places {
    fn find(
        segments: &Segments,
        logged: &HashMap<Id, u64>,
        covered: Option<u32>,
        whole: &Whole,
    ) -> Result<Self> {
        let (mut places, last) = (Self::default(), segments.last());
        for (&segment, open) in &segments.by_id {
            let is_last = Some(segment) == last;
            if is_last {
                places.end = open.segment.header().page_bytes;
            } else if logged.is_empty() {
                continue;
            }
            let (mut scan, mut met, mut damaged) = (open.segment.scan(0), false, None);
            while let Some(found) = scan.next()? {
                let (from, record) = match found {
                    Found::Record(found) => (found.offset, Some(found)),
                    Found::Damage(damage) => (damage.offset, None),
                };
                let at = Location { segment, offset: from };
                met |= is_last && covered.is_some_and(|covered| from >= covered);
                let Some(found) = record.filter(|found| {
                    logged.contains_key(&found.event.id) || !is_last || whole.is(found, met)
                }) else {
                    damaged.get_or_insert(from);
                    match met && is_last {
                        true => break,
                        false => continue,
                    }
                };
                if let Some(before) = logged.get(&found.event.id) {
                    let first = u64::from(from).saturating_sub(*before) as u32;
                    if is_last && !met && damaged.is_some() && first >= places.end && first < from {
                        // The damage holds the log's first events. Earlier records stay.
                        (met, places.end) = (true, first);
                        break;
                    }
                    met = true;
                    places.by_id.entry(found.event.id).or_insert(at);
                } else if met && is_last {
                    places.unlogged.push(at);
                }
                if is_last {
                    places.end = found.end;
                }
            }
            if is_last && !met {
                places.moved = damaged;
                places.is_damaged = damaged.is_some_and(|from| from >= places.end);
            }
        }
        Ok(places)
    }
}

/// Decides whether the record of an event outside the log is whole.
struct Whole {
    /// Whether a record without a checksum needs a valid signature. Another program writes no
    /// checksums, and may have acknowledged events that it did not log.
    asks_signatures: bool,
}

impl Whole {
    /// The checksum or the event's id decides. The reference implementation loses tag names. If no
    /// known names match the id, a synced record looks like a torn record. Such a record counts as
    /// whole before the log's events, and as torn after them.
    fn is(&self, found: &Record<'_>, is_after_crash: bool) -> bool {
        let event = &found.event;
        let signed = || {
            let asks = self.asks_signatures && is_after_crash;
            !asks || signature::check(event.id, &event.pubkey, &event.sig).is_ok()
        };
        let named = || {
            event.check_id(&mut Vec::new()).is_ok()
                || may_be_lost(event)
                    && (!is_after_crash || matches!(recover(event), Names::Recovered(_)))
        };
        found.has_sum || named() && signed()
    }
}

/// Log the intact events of a segment from a byte on that the log lacks, to append them again.
fn log_rest(
    wal: &EventWal,
    segment: &Segment,
    from: u32,
    logged: &HashMap<Id, u64>,
    whole: &Whole,
) -> Result<()> {
    let (mut seen, mut scan) = (HashSet::new(), segment.scan(from));
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found
            && !logged.contains_key(&found.event.id)
            && whole.is(&found, true)
            && seen.insert(found.event.id)
        {
            wal.append(&Entry::Insert { record: found.bytes }, now())?;
        }
    }
    if seen.is_empty() { Ok(()) } else { wal.sync() }
}
