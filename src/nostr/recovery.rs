//! What the write-ahead log has and the segments lost is appended again.
//!
//! After the last checkpoint, the log has what the last segment got, in the same order. So the two are
//! walked side by side: where the segment has another record than the log, or damage, it is cut, and
//! gets the rest of the log. What is cut is saved beside it. What the segment has beyond the log was
//! never acknowledged, or the log lost it. It stays as far as it is intact; where records have no checksum,
//! as far as id and signature are true.
//!
//! This program makes a checkpoint before it begins a segment. Another one may not: then segments before the
//! last one have events of the log, too. They are looked for where another program may have written last,
//! and what stands there as the log has it is left out of the walk.
//!
//! What is found in the segments may be in the cache only, if a process died and not the machine. After
//! a sync that failed, the cache takes it for written, and no further sync writes it. So all that was
//! not checkpointed is written again.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::entry::Entry;
use super::event::{Flags, Id, Location};
use super::manifest::Manifest;
use super::names::{Names, may_be_lost, recover};
use super::options::Options;
use super::record::{self, FLAGS_AT};
use super::segment::{Found, Record};
use super::segments::Segments;
use super::signature;
use super::wal::EventWal;
use super::walk::Forward;
use crate::error::Result;
use crate::lines;
use crate::scan::OnCorrupt;

/// What opening a store found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opening {
    /// Entries of the write-ahead log after the last checkpoint.
    pub replayed: u64,
    /// Events among them that the segments had lost.
    pub appended_again: u64,
    /// Flags among them that were set again.
    pub flags_set_again: u64,
    /// Files in which the cut end of a segment, or of the write-ahead log, was saved.
    pub saved: Vec<PathBuf>,
    /// Files of segments that no manifest names and that hold nothing else: removed.
    pub removed: Vec<PathBuf>,
    /// Whether the manifest was missing, wrong or older than its copy, and is made again: from the copy,
    /// or else from the segments.
    pub manifest_rebuilt: bool,
    /// Events that the index did not have yet.
    pub indexed: u64,
    /// With [`Recovery::Spec`](crate::Recovery::Spec): bytes of the write-ahead log that were cut.
    pub cut_bytes: u64,
    /// Intact events that went with them, and that no segment has.
    pub cut_events: u64,
    /// Whether acknowledged events are missing, as a repair or such a cut noted.
    pub is_loss: bool,
}

/// What the log and the segments had after the last checkpoint.
#[derive(Debug, Default)]
pub struct Tail {
    /// The events after which the log may have lost the flags of those that they replace or delete.
    pub last: Vec<Location>,
    /// The flags that the log had, of events that can be read.
    pub flagged: Vec<(Location, Flags)>,
}

/// Bring the segments to what the log says. `may_be_of_others` says that another program may have written
/// them last.
pub fn replay(
    wal: &EventWal,
    manifest: &Manifest,
    may_be_of_others: bool,
    segments: &mut Segments,
    options: &Options,
    opening: &mut Opening,
) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut group_is_whole = false;
    // Read to its end before anything changes: a damaged log is refused, and the files stay as they are.
    let logged = ids_of(wal)?;
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
    // A repair goes on without them. Where the events of the log lay after them, only the manifest of the last
    // checkpoint says: else they come to lie elsewhere, and the log's flags are of other places.
    let missing = active.missing();
    let moved = Some(missing.start).filter(|_| !missing.is_empty() && !is_last);
    let is_moved =
        |at: Location| at.segment == header.segment && moved.is_some_and(|from| at.offset >= from);
    let logged = if is_proved { HashSet::new() } else { logged };
    let at = noted.unwrap_or(header.page_bytes);
    let mut walk = Walk {
        scan: Some(active.scan(at)),
        segment: header.segment,
        at,
        is_noted: noted.is_some(),
        is_last,
        is_proved,
        logged,
        met: false,
        asks_signatures: !may_be_of_others || !options.checksums,
        file_mode: options.file_mode,
        scratch: Vec::new(),
    };
    let mut entries = wal.replay(OnCorrupt::Raise)?;
    while let Some(found) = entries.next()? {
        opening.replayed += 1;
        match found.entry {
            Entry::Insert { record } => {
                if std::mem::take(&mut group_is_whole) && moved.is_none() {
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
    // Only a repair goes on without a segment that the log speaks of.
    tail.flagged.retain(|(at, _)| segments.by_id.contains_key(&at.segment) && !is_moved(*at));
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

/// The events of the log after the last checkpoint.
fn ids_of(wal: &EventWal) -> Result<HashSet<Id>> {
    let (mut ids, mut entries) = (HashSet::new(), wal.replay(OnCorrupt::Raise)?);
    while let Some(found) = entries.next()? {
        if let Entry::Insert { record } = found.entry
            && let Ok(event) = record::parse(record)
        {
            ids.insert(event.id);
        }
    }
    Ok(ids)
}

/// Where segments before the last one have events of the log.
#[derive(Debug, Default)]
struct Earlier {
    places: HashMap<Id, Location>,
    buf: Vec<u8>,
}

impl Earlier {
    fn find(segments: &Segments, logged: &HashSet<Id>) -> Result<Self> {
        let (last, mut places) = (segments.last(), HashMap::new());
        let before = segments.by_id.iter().filter(|(id, _)| Some(**id) != last);
        for (&segment, open) in before.filter(|_| !logged.is_empty()) {
            let mut scan = open.segment.scan(0);
            while let Some(found) = scan.next()? {
                if let Found::Record(found) = found
                    && logged.contains(&found.event.id)
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
struct Walk {
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
    /// The events of the log, if it does not.
    logged: HashSet<Id>,
    /// Whether a record of the log was found.
    met: bool,
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
    /// A record of the log, of which those before are not there.
    Later,
    /// Pages without a record, and there may be records after them.
    Damage,
    End,
}

impl Walk {
    /// Have the segment hold this record next; returns where.
    fn expect(
        &mut self,
        segments: &mut Segments,
        record: &[u8],
        opening: &mut Opening,
    ) -> Result<Location> {
        loop {
            match self.next(record)? {
                Next::Same(offset, end) => {
                    (self.met, self.at) = (true, end);
                    let at = Location { segment: self.segment, offset };
                    segments.write_again(at)?;
                    return Ok(at);
                }
                // These stand before the last checkpoint, of which the hints did not know.
                Next::Other(_, end, _) if !self.met => self.at = end,
                Next::Damage if self.may_be_older() => {}
                // The manifest says too much: it is looked for in the whole segment.
                Next::Later | Next::End if self.may_begin_earlier() => {
                    self.is_noted = false;
                    let active = &segments.active()?.segment;
                    self.at = active.header().page_bytes;
                    self.scan = Some(active.scan(self.at));
                }
                Next::Other(..) | Next::Later | Next::Damage | Next::End => break,
            }
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

    /// Whether what the manifest says may be too much.
    fn may_begin_earlier(&self) -> bool {
        self.scan.is_some() && self.is_noted && !self.is_proved && !self.met
    }

    /// Whether what comes next was appended after the last checkpoint. If not, it may be older, and synced.
    fn is_newer(&self) -> bool {
        self.met || self.is_last
    }

    fn next(&mut self, record: &[u8]) -> Result<Next> {
        let may_be_synced = self.may_be_older() || !self.is_newer();
        let Some(scan) = &mut self.scan else { return Ok(Next::End) };
        let found = match scan.next()? {
            Some(Found::Record(found)) => found,
            Some(Found::Damage(_)) => return Ok(Next::Damage),
            None => return Ok(Next::End),
        };
        if is_same(found.bytes, record) {
            return Ok(Next::Same(found.offset, found.end));
        }
        if !is_whole(&found, may_be_synced, &mut self.scratch) {
            return Ok(Next::Damage);
        }
        // Of the record itself, only the signature may be torn.
        let is_expected = record::parse(record).is_ok_and(|event| event.id == found.event.id);
        match !self.met && (is_expected || self.logged.contains(&found.event.id)) {
            true => Ok(Next::Later),
            false => Ok(Next::Other(found.offset, found.end, found.has_sum)),
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
                        let may_be_torn = self.is_newer() && self.asks_signatures && !has_sum;
                        if may_be_torn && !is_signed(segments, at)? {
                            break;
                        }
                        segments.write_again(at)?;
                        kept.push(at);
                    }
                    self.at = end;
                }
                Next::Damage if self.may_be_older() => {}
                Next::Same(..) | Next::Later | Next::Damage | Next::End => break,
            }
        }
        self.cut(segments, opening)
    }

    fn cut(&mut self, segments: &mut Segments, opening: &mut Opening) -> Result<()> {
        if self.scan.take().is_none() {
            return Ok(());
        }
        // What follows lost pages keeps its place.
        let at = self.at.max(segments.active()?.segment.missing().end);
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
