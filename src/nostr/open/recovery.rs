//! What the write-ahead log has and the segments lost is appended again.
//!
//! After the last checkpoint, the log has what the last segment got, in the same order. So the two are
//! walked side by side: where the segment has another record than the log, or damage, it is cut, and
//! gets the rest of the log. What is cut is saved beside it. What the segment has beyond the log was
//! never acknowledged, or the log lost it. It stays as far as it is intact; where records have no checksum,
//! as far as id and signature are true. That holds after damage, too: the damage is cut, and the intact events
//! after it are logged before and appended again after it (`rest.rs`).
//!
//! This program makes a checkpoint before it begins a segment. Another one may not: then segments before the
//! last one have events of the log, too. They are looked for where another program may have written last,
//! and what stands there as the log has it is left out of the walk.
//!
//! What is found in the segments may be in the cache only, if a process died and not the machine. After
//! a sync that failed, the cache takes it for written, and no further sync writes it. So all that was
//! not checkpointed is written again.

use std::collections::{HashMap, HashSet};

use super::rest::{append_rest, log_rest};
use crate::error::Result;
use crate::lines;
use crate::nostr::bytes::event::{Flags, Id, Location};
use crate::nostr::bytes::names::{Names, may_be_lost, recover};
use crate::nostr::bytes::record::{self, FLAGS_AT};
use crate::nostr::bytes::signature;
use crate::nostr::damage::checked_log::events_of;
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, Record};
use crate::nostr::pages::segments::Segments;
use crate::nostr::pages::walk::Forward;
use crate::nostr::store::opened::{Opening, Tail};
use crate::scan::OnCorrupt;

/// Bring the segments to what the log says. `may_be_of_others` says that another program may have written
/// them last, `is_mended` that the log was cut, and may lack what they have.
pub fn replay(
    wal: &EventWal,
    manifest: &Manifest,
    (may_be_of_others, is_mended): (bool, bool),
    segments: &mut Segments,
    options: &Options,
    opening: &mut Opening,
) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut group_is_whole = false;
    // Read to its end before anything changes: a damaged log is refused, and the files stay as they are.
    let logged = events_of(wal, segments.active()?.segment.header().page_bytes)?;
    let mut earlier = match may_be_of_others {
        true => Earlier::find(segments, &logged)?,
        false => Earlier::default(),
    };
    let active = &segments.active()?.segment;
    let (header, end) = (active.header(), active.end());
    // The manifest is replaced as a whole after a checkpoint; the header may miss the last ones.
    let noted = manifest.size_of(header.segment).and_then(|size| size.try_into().ok());
    let noted =
        noted.filter(|at| at % header.page_bytes == 0 && (header.page_bytes..=end).contains(at));
    let is_last = manifest.last_checkpoint_lsn == wal.last_checkpoint().0;
    // The manifest and the header are written after a checkpoint: if the log lost its entry, they are ahead.
    let is_ours = manifest.pages_end(header.segment, header.page_bytes).is_some();
    let is_proved = is_last && (is_ours || noted == Some(header.next_free));
    let at = noted.unwrap_or(header.page_bytes);
    // A repair goes on without lost pages. Where the events of the log lay after them, only the manifest of the
    // last checkpoint says: else they come to lie elsewhere, and the log's flags are of other places.
    let moved = if is_last || !is_ours { None } else { active.lost_before(at)? };
    let ids = logged.keys().copied().collect();
    let logged = if is_proved { HashMap::new() } else { logged };
    let mut walk = Walk {
        scan: Some(active.scan(at)),
        segment: header.segment,
        at,
        is_noted: noted.is_some(),
        is_last,
        is_proved,
        is_of_others: may_be_of_others,
        logged,
        wal,
        ids,
        rest: None,
        met: false,
        passed: None,
        moved,
        asks_signatures: !is_mended && (!may_be_of_others || !options.checksums),
        file_mode: options.file_mode,
        scratch: Vec::new(),
    };
    let mut entries = wal.replay(OnCorrupt::Raise)?;
    while let Some(found) = entries.next()? {
        opening.replayed += 1;
        match found.entry {
            Entry::Insert { record } => {
                if std::mem::take(&mut group_is_whole) && walk.moved.is_none() {
                    tail.last.clear();
                }
                let at = match earlier.place_of(segments, record)? {
                    Some(at) => {
                        segments.write_again(at)?;
                        at
                    }
                    None => walk.expect(segments, record, opening)?,
                };
                tail.last.push(at);
            }
            // The flags come after the records that ask for them.
            Entry::UpdateFlags { at, flags } => {
                group_is_whole = true;
                tail.flagged.push((at, Flags(flags).of_event()));
            }
            Entry::IndexUpdate { .. } | Entry::Checkpoint => {}
        }
    }
    walk.finish(segments, &mut tail.last, opening)?;
    // Only a repair goes on without a segment that the log speaks of. What lay after its end is lost.
    tail.flagged.retain(|&(at, _)| {
        let open = segments.by_id.get(&at.segment);
        open.is_some_and(|open| at.offset < open.segment.end()) && !walk.has_moved(at)
    });
    let mut buf = Vec::new();
    for (at, flags) in std::mem::take(&mut tail.flagged) {
        let Some(found) = segments.read_intact(at, &mut buf)? else { continue };
        if found.event.flags.of_event() != flags {
            opening.flags_set_again += 1;
        }
        // Also where they are there: perhaps in the cache only.
        segments.set_flags(at, flags)?;
        tail.flagged.push((at, flags));
    }
    Ok(tail)
}

/// Where segments before the last one have events of the log.
#[derive(Debug, Default)]
struct Earlier {
    places: HashMap<Id, Location>,
    buf: Vec<u8>,
}

impl Earlier {
    fn find(segments: &Segments, logged: &HashMap<Id, u64>) -> Result<Self> {
        let (last, mut places) = (segments.last(), HashMap::new());
        let before = segments.by_id.iter().filter(|(id, _)| Some(**id) != last);
        for (&segment, open) in before.filter(|_| !logged.is_empty()) {
            let mut scan = open.segment.scan(0);
            while let Some(found) = scan.next()? {
                if let Found::Record(found) = found
                    && logged.contains_key(&found.event.id)
                {
                    places.insert(found.event.id, Location { segment, offset: found.offset });
                }
            }
        }
        Ok(Self { places, buf: Vec::new() })
    }

    /// Where one of them has this record. Another one of the same event may be torn: without a checksum,
    /// only the comparison tells.
    fn place_of(&mut self, segments: &Segments, record: &[u8]) -> Result<Option<Location>> {
        if self.places.is_empty() {
            return Ok(None);
        }
        let place = record::parse(record).ok().and_then(|event| self.places.get(&event.id));
        let Some((&at, open)) = place.and_then(|at| Some((at, segments.by_id.get(&at.segment)?)))
        else {
            return Ok(None);
        };
        let stored = open.segment.read(at.offset, &mut self.buf)?.bytes;
        Ok(is_same(stored, record).then_some(at))
    }
}

/// Where the walk along the last segment is.
struct Walk<'a> {
    /// `None` once the segment was cut.
    scan: Option<Forward>,
    /// The number of the segment.
    segment: u32,
    /// The byte after the last record that stays.
    at: u32,
    /// Whether it began where a checkpoint ended, as the manifest says.
    is_noted: bool,
    /// Whether the manifest knows the last checkpoint. If not, what comes next may be older than that, and
    /// synced.
    is_last: bool,
    /// Whether the log has the checkpoint after which the manifest was stored: by this program, or else the
    /// header says the same.
    is_proved: bool,
    /// Whether another program may have written the segment last.
    is_of_others: bool,
    /// The events of the log, if it does not, and how many bytes of pages those before each take.
    logged: HashMap<Id, u64>,
    wal: &'a EventWal,
    /// The events of the log after the last checkpoint.
    ids: HashSet<Id>,
    /// The first entry of the events that the segment had after the byte at which it was cut.
    rest: Option<Lsn>,
    /// Whether a record of the log was found.
    met: bool,
    /// The damage after `at` that the last checkpoint may cover: then it stays, for a repair.
    passed: Option<(u32, u32)>,
    /// The byte from which on nobody knows where the events of the log lay.
    moved: Option<u32>,
    /// Whether a record without a checksum that the log lacks needs a true signature. Another program, whose
    /// records never have a checksum, may have acknowledged what it did not log.
    asks_signatures: bool,
    file_mode: u32,
    scratch: Vec<u8>,
}

/// What the segment has next.
enum Next {
    /// The record, and where it begins and ends.
    Same(u32, u32),
    /// Another one, and whether it has a checksum.
    Other(u32, u32, bool),
    /// A record of the log, of which those before are not there, and where the first of them began.
    Later(u64),
    /// Pages without a record, and where they begin and end; there may be records after them.
    Damage(u32, u32),
    End,
}

impl Walk<'_> {
    /// Have the segment hold this record next; returns where.
    fn expect(
        &mut self,
        segments: &mut Segments,
        record: &[u8],
        opening: &mut Opening,
    ) -> Result<Location> {
        let next = loop {
            match self.next(record)? {
                Next::Same(offset, end) => {
                    (self.met, self.at, self.passed) = (true, end, None);
                    let at = Location { segment: self.segment, offset };
                    segments.write_again(at)?;
                    return Ok(at);
                }
                // These stand before the last checkpoint, of which the hints did not know.
                Next::Other(_, end, _) if !self.met => (self.at, self.passed) = (end, None),
                Next::Damage(from, to) if self.may_be_covered() => self.pass(from, to),
                // The manifest says too much: it is looked for in the whole segment.
                Next::Later(_) | Next::End if self.may_begin_earlier() => {
                    self.is_noted = false;
                    let active = &segments.active()?.segment;
                    (self.at, self.passed) = (active.header().page_bytes, None);
                    self.scan = Some(active.scan(self.at));
                }
                next => break next,
            }
        };
        match (next, self.passed.take()) {
            // The log's first records are damaged: what comes before them stays.
            (Next::Later(first), Some((_, to)))
                if (self.at.into()..=to.into()).contains(&first) =>
            {
                self.at = first as u32;
            }
            // It may be of the log's records, or of those before them.
            (Next::End, Some((from, to))) => {
                self.moved = Some(self.moved.map_or(from, |moved| moved.min(from)));
                self.at = to;
            }
            _ => {}
        }
        self.cut(segments, opening)?;
        let offset = segments.active()?.segment.end();
        segments.append(&[record])?;
        opening.appended_again += 1;
        Ok(Location { segment: self.segment, offset })
    }

    /// Whether what comes next may stand before the last checkpoint: then nothing of it is cut.
    fn may_be_older(&self) -> bool {
        !self.met && !self.is_noted
    }

    /// Whether the last checkpoint may cover what comes next: then damage is none of a crash.
    fn may_be_covered(&self) -> bool {
        self.may_be_older() || !self.is_newer()
    }

    /// Leave damage that the last checkpoint may cover. The end of another program's segment may be torn.
    fn pass(&mut self, from: u32, to: u32) {
        let from = self.passed.map_or(from, |(before, _)| before);
        self.passed = Some((from, to)).filter(|_| !self.is_of_others);
    }

    /// Whether an event of the log may lie elsewhere than the log says.
    fn has_moved(&self, at: Location) -> bool {
        at.segment == self.segment && self.moved.is_some_and(|from| at.offset >= from)
    }

    /// Whether what the manifest says may be too much.
    fn may_begin_earlier(&self) -> bool {
        self.scan.is_some() && self.is_noted && !self.is_proved && !self.met
    }

    /// Whether what comes next was appended after the last checkpoint. If not, it may be older, and synced.
    fn is_newer(&self) -> bool {
        self.met || self.is_last
    }

    fn next(&mut self, record: &[u8]) -> Result<Next> {
        let may_be_synced = self.may_be_covered();
        let Some(scan) = &mut self.scan else { return Ok(Next::End) };
        let found = match scan.next()? {
            Some(Found::Record(found)) => found,
            Some(Found::Damage(damage)) => return Ok(Next::Damage(damage.offset, damage.end)),
            None => return Ok(Next::End),
        };
        if is_same(found.bytes, record) {
            return Ok(Next::Same(found.offset, found.end));
        }
        if !is_whole(&found, may_be_synced, &mut self.scratch) {
            return Ok(Next::Damage(found.offset, found.end));
        }
        // Of the record itself, only the signature may be torn.
        let is_expected = record::parse(record).is_ok_and(|event| event.id == found.event.id);
        let before = self.logged.get(&found.event.id).copied().or(is_expected.then_some(0));
        match before.filter(|_| !self.met) {
            Some(before) => Ok(Next::Later(u64::from(found.offset).saturating_sub(before))),
            None => Ok(Next::Other(found.offset, found.end, found.has_sum)),
        }
    }

    /// Keep what is intact, and cannot be torn, after the last record of the log; say where it is.
    fn finish(
        &mut self,
        segments: &mut Segments,
        kept: &mut Vec<Location>,
        opening: &mut Opening,
    ) -> Result<()> {
        loop {
            match self.next(&[])? {
                Next::Other(offset, end, has_sum) => {
                    if !self.may_be_older() {
                        let at = Location { segment: self.segment, offset };
                        // No checksum or id covers its signature.
                        if self.may_be_torn(has_sum) && !is_signed(segments, at)? {
                            break;
                        }
                        segments.write_again(at)?;
                        kept.push(at);
                    }
                    (self.at, self.passed) = (end, None);
                }
                Next::Damage(from, to) if self.may_be_covered() => self.pass(from, to),
                Next::Same(..) | Next::Later(_) | Next::Damage(..) | Next::End => break,
            }
        }
        self.at = self.passed.take().map_or(self.at, |(_, to)| to);
        self.cut(segments, opening)?;
        if let Some(from) = self.rest {
            let again = append_rest(self.wal, from, segments)?;
            opening.appended_again += again.len() as u64;
            kept.extend(again);
        }
        Ok(())
    }

    /// Whether an event that the log lacks may be torn although its id is true.
    fn may_be_torn(&self, has_sum: bool) -> bool {
        self.is_newer() && self.asks_signatures && !has_sum
    }

    fn cut(&mut self, segments: &mut Segments, opening: &mut Opening) -> Result<()> {
        if self.scan.take().is_none() {
            return Ok(());
        }
        // What follows lost pages keeps its place.
        let at = self.at.max(segments.active()?.segment.missing().end);
        let may_be_synced = self.may_be_covered();
        let asks_signature = self.may_be_torn(false);
        let Self { wal, ids, scratch, .. } = self;
        self.rest = log_rest(wal, &segments.active()?.segment, at, ids, |found| {
            let (sum, event) = (found.has_sum, &found.event);
            is_whole(found, may_be_synced, scratch)
                && (sum
                    || !asks_signature
                    || signature::check(event.id, &event.pubkey, &event.sig).is_ok())
        })?;
        if let Some(saved) = segments.cut(at, self.file_mode)? {
            lines::warn(format_args!(
                "a segment goes on otherwise than the write-ahead log: cut at byte {}, the rest is \
                 saved ({})",
                at,
                saved.display()
            ));
            opening.saved.push(saved);
        }
        Ok(())
    }
}

/// Whether two records are of one event. Flags change in place.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.get(..FLAGS_AT) == other.get(..FLAGS_AT)
        && one.get(FLAGS_AT + 1..) == other.get(FLAGS_AT + 1..)
}

/// Whether a record is as it was written, but for its signature: its checksum says so, or the id of its event.
/// The reference implementation loses names of tags. Where the known ones do not meet the id, nothing tells a
/// torn record from one that was synced, so what may be synced stays.
fn is_whole(found: &Record<'_>, may_be_synced: bool, scratch: &mut Vec<u8>) -> bool {
    let event = &found.event;
    found.has_sum
        || event.check_id(scratch).is_ok()
        || may_be_lost(event) && (may_be_synced || matches!(recover(event), Names::Recovered(_)))
}

/// Whether the signature of an event is its author's.
fn is_signed(segments: &Segments, at: Location) -> Result<bool> {
    let mut buf = Vec::new();
    let event = segments.read(at, &mut buf)?.event;
    Ok(signature::check(event.id, &event.pubkey, &event.sig).is_ok())
}
