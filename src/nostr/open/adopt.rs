//! Adopting: the segments and the log of a store that no manifest of ours vouches for. Another program wrote last, or the
//! manifest is lost, or it is of another time than the log.
//!
//! The log's last checkpoint covers all entries before it. Adopting looks for the later events of the log in all segments:
//! a record that is there stays, and the others are appended. Events that only the segments have stay, too: another
//! program may have acknowledged them. Adopting cuts a torn record at the end, after saving it. Damage after a
//! record of the log, or after the byte up to which the checkpoint covers the segment, is of a crash: it is cut as well,
//! and the intact events after it are logged before, so that they are appended again.
//!
//! The checkpoint that ends the opening stores a manifest that vouches for all of it.

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

/// Bring the segments to what the log says. `covered` is the byte of the last segment up to which the last checkpoint
/// covers it, if that is known. `is_mended` says that this opening cut the log. `keeps_damage` says that the checkpoint of
/// this program may cover damage at the end, if nothing says how far it goes.
pub fn adopt(
    wal: &EventWal,
    segments: &mut Segments,
    options: &Options,
    (covered, is_mended, keeps_damage): (Option<u32>, bool, bool),
    opening: &mut OpenReport,
) -> Result<Tail> {
    // The log first: a power cut could keep pages or flags that are written below, and take the log's end.
    wal.sync()?;
    let logged = events_of(wal, segments.active()?.segment.header().page_bytes)?;
    let whole = Whole { asks_signatures: !is_mended && !options.checksums };
    let mut places = Places::find(segments, &logged, covered, &whole)?;
    if keeps_damage && places.is_damaged {
        places.end = segments.active()?.segment.end();
    }
    // Pages that follow lost ones keep their place.
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
        // The events lie elsewhere than the log says, so the tail names them: the caller hides the events they replace.
        tail.last = appended;
        tail.flagged.retain(|(at, _)| Some(at.segment) != last || at.offset < moved);
    }
    tail.last.extend(places.unlogged.into_iter().filter(stays));
    set_flags(segments, &mut tail, opening)?;
    Ok(tail)
}

/// The places at which the segments have the log's events after its last checkpoint.
#[derive(Debug, Default)]
struct Places {
    by_id: HashMap<Id, Location>,
    /// Events after the first of these, in the last segment, that the log lacks.
    unlogged: Vec<Location>,
    /// The byte at which the last segment ends, before damage at its end.
    end: u32,
    /// Whether it ends with damage, of which nothing says that a crash left it.
    is_damaged: bool,
    /// The byte from which on nobody knows where the events of the log lay.
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
                        // The damage has the log's first events. Earlier records stay.
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

/// Tells whether the record of an event that the log lacks is whole.
struct Whole {
    /// Whether a record without a checksum needs a true signature. Another program, whose records never have a checksum,
    /// may have acknowledged what it did not log.
    asks_signatures: bool,
}

impl Whole {
    /// The checksum says so, or the id of the event. The reference implementation loses names of tags. If the known
    /// names do not meet the id, a synced record looks like a torn one. Such a record stays before the log's events, and
    /// is torn after them.
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

/// Log the intact events that a segment has from a byte on and the log lacks, so that they are appended again.
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
