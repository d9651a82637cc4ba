//! Decide which segments belong to the store.
//!
//! The manifest lists the segments; a newer copy overrides the manifest. Without both, all segments
//! belong to the store except copies. The store never keeps an event twice, so two segments with
//! the same events come from an interrupted compaction. Copies without events of their own are
//! deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::lines;
use crate::nostr::bytes::event::{EventRef, Id};
use crate::nostr::bytes::page::Header;
use crate::nostr::bytes::policy::expires_at;
use crate::nostr::pages::manifest::{Generation, Manifest};
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, Segment};
use crate::nostr::pages::segments::{Open, Segments};

/// The knowledge of the segments.
#[derive(Debug)]
pub struct Belonging {
    /// The manifest in force.
    pub manifest: Manifest,
    pub(super) source: Source,
    /// Whether manifest and copy list the same segments, in the same generation.
    is_proved: bool,
    /// Whether manifest and copy disagree about replaced events; the copy wins.
    is_corrected: bool,
    /// Whether the manifest is the last that this program stored. After a crash between the two
    /// writes, the copy is.
    pub(super) is_current: bool,
}

/// The source of the list of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Manifest,
    Copy,
    /// The existing files.
    Files,
}

/// The role of a segment in a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A finished compaction replaced the segment, and dropped the events missing from the new
    /// segments.
    Old,
    /// An unfinished compaction began the segment.
    New,
}

impl Belonging {
    /// Read manifest and copy, then list the files. In this order, the list misses no existing
    /// segment of a store under change.
    pub fn load(options: &Options, dir: &Path) -> Result<(Self, BTreeMap<u32, PathBuf>)> {
        let (manifest, copy) = manifests(options, dir)?;
        let files = Segments::new(dir, options.storage.clone()).list()?;
        Ok((Self::choose(manifest, copy, &files), files))
    }

    /// Read manifest and copy for known files.
    pub fn of(options: &Options, dir: &Path, files: &BTreeMap<u32, PathBuf>) -> Result<Self> {
        let (manifest, copy) = manifests(options, dir)?;
        Ok(Self::choose(manifest, copy, files))
    }

    fn choose(
        manifest: Option<Manifest>,
        copy: Option<Manifest>,
        files: &BTreeMap<u32, PathBuf>,
    ) -> Self {
        let is_proved = match (&manifest, &copy) {
            (Some(manifest), Some(copy)) => manifest.generation() == copy.generation(),
            _ => false,
        };
        let is_current = manifest.as_ref().is_some_and(|manifest| {
            let checkpoint = manifest.last_checkpoint_lsn;
            // If a newer copy lists the same segments, the log has all events in between.
            copy.as_ref().is_none_or(|copy| is_proved || copy.last_checkpoint_lsn <= checkpoint)
        });
        let mut is_corrected = false;
        let (manifest, source) = match (manifest, copy) {
            (Some(manifest), Some(copy))
                if !manifest.is_foreign && rank(&copy, files) > rank(&manifest, files) =>
            {
                (copy, Source::Copy)
            }
            // A foreign manifest does not say whether the store keeps replaced events.
            (Some(mut manifest), Some(copy)) if manifest.is_foreign => {
                manifest.history = copy.history;
                (manifest, Source::Manifest)
            }
            // The copy has a checksum, and a change of the setting stores the copy first. So a
            // later manifest with another setting is damaged. An earlier manifest has the setting
            // under which the log's events were appended.
            (Some(mut manifest), Some(copy))
                if is_proved && copy.last_checkpoint_lsn <= manifest.last_checkpoint_lsn =>
            {
                is_corrected = manifest.history != copy.history;
                manifest.history = copy.history;
                (manifest, Source::Manifest)
            }
            (Some(manifest), _) => (manifest, Source::Manifest),
            (None, Some(copy)) => (copy, Source::Copy),
            (None, None) => (Manifest::default(), Source::Files),
        };
        let is_current = is_current && !manifest.is_foreign;
        Self { manifest, source, is_proved, is_corrected, is_current }
    }

    /// Whether to rebuild the manifest.
    pub fn is_rebuilt(&self) -> bool {
        self.source != Source::Manifest || self.is_corrected
    }

    /// Whether only the files themselves show which segments belong to the store.
    pub fn is_unnamed(&self) -> bool {
        self.source == Source::Files
    }

    /// Whether no file of this program vouches for the segments: another program may have written
    /// them last.
    pub fn may_be_of_others(&self) -> bool {
        self.is_unnamed() || self.manifest.is_foreign
    }

    /// Whether opening may skip a segment that no manifest lists.
    pub fn passes_over(&self, id: u32) -> bool {
        self.is_proved && !self.manifest.names(id)
    }

    /// The missing segments of the list.
    pub fn missing(&self, files: &BTreeMap<u32, PathBuf>) -> Vec<u32> {
        let named = self.manifest.segments.iter().map(|named| named.id);
        named.filter(|id| !files.contains_key(id)).collect()
    }

    /// Refuse a store with a missing segment.
    pub fn check_none_missing(&self, files: &BTreeMap<u32, PathBuf>, dir: &Path) -> Result<()> {
        let what = self.manifest.name();
        let missing = self.manifest.segments.iter().find(|named| !files.contains_key(&named.id));
        missing.map_or(Ok(()), |missing| {
            let (id, count) = (missing.id, missing.record_count);
            Err(lost(format!("segment {id} is missing, {what} says {count} events"), dir))
        })
    }

    /// Count the missing pages of a segment as damage, by the manifest.
    pub fn expect_pages(&self, segment: &mut Segment) {
        let Header { segment: id, page_bytes, .. } = segment.header();
        if let Some(end) = self.manifest.pages_end(id, page_bytes) {
            segment.expect_pages(end);
        }
    }

    /// Count the missing pages of every segment as damage.
    pub fn expect_all_pages(&self, segments: &mut Segments) {
        segments.by_id.values_mut().for_each(|open| self.expect_pages(&mut open.segment));
    }

    /// Refuse a store with a segment that lost pages.
    pub fn check_no_pages_missing(&self, segments: &Segments) -> Result<()> {
        let found = segments.by_id.iter().find(|(_, open)| !open.segment.missing().is_empty());
        let Some((id, open)) = found else { return Ok(()) };
        let Range { start, end } = open.segment.missing();
        let (what, path) = (self.manifest.name(), open.segment.path());
        let message = format!("segment {id} ends at byte {start}, {what} says {end}");
        Err(lost(message, path).offset_at(start.into()))
    }

    /// Refuse a store without a manifest if a number is missing. Numbers follow each other, and a
    /// compaction removes lower numbers than it writes. `is_whole` says that the first number is 0.
    /// Copies do not count, because some may be removed already.
    pub fn check_no_gap(&self, segments: &Segments, copies: &[u32], is_whole: bool) -> Result<()> {
        let Some((id, last)) = self.gap(segments, copies, is_whole) else { return Ok(()) };
        let message = format!(
            "segment {id} is missing: there is no manifest, segment {last} is there, and no \
             compaction came after it"
        );
        Err(lost(message, &segments.dir))
    }

    /// The file of a segment other than the listed segment, and the message. The time of creation
    /// reveals the exchange.
    pub fn foreign(&self, segments: &Segments) -> Option<(PathBuf, String)> {
        if self.manifest.is_foreign {
            return None;
        }
        let named = |open: &Open| {
            let header = open.segment.header();
            let listed =
                self.manifest.segments.iter().find(|listed| listed.id == header.segment)?;
            // A rebuilt header does not know the time.
            let is_known = header.created_at != 0 && listed.created_at != 0;
            let differs = is_known && header.created_at != listed.created_at;
            differs.then_some((header, listed.created_at))
        };
        let (open, (header, named)) =
            segments.by_id.values().find_map(|open| Some((open, named(open)?)))?;
        let Header { segment, created_at, .. } = header;
        let reason = format!(
            "segment {segment} was created at {created_at}, {} says {named}: it is of another store",
            self.manifest.name()
        );
        Some((open.segment.path().to_owned(), reason))
    }

    /// Refuse a store with an exchanged segment.
    pub fn check_none_foreign(&self, segments: &Segments) -> Result<()> {
        let Some((path, reason)) = self.foreign(segments) else { return Ok(()) };
        let error = Error::new(ErrorKind::Corrupt, reason).at(&path).offset_at(0);
        Err(error.with_advice(
            "put the store's own segment there, or repair: it goes on without the lost events",
        ))
    }

    /// The first missing number, and the last existing number.
    pub fn gap(&self, segments: &Segments, copies: &[u32], is_whole: bool) -> Option<(u32, u32)> {
        if self.source != Source::Files {
            return None;
        }
        let there = || segments.by_id.iter().filter(|(id, _)| !copies.contains(id));
        let compacted = there().rev().find(|(_, open)| open.segment.header().compacted_at != 0);
        let first = match compacted {
            Some((&id, _)) => id,
            None if is_whole => 0,
            None => *there().next()?.0,
        };
        let last = *there().next_back()?.0;
        let missing =
            (first..last).find(|id| !segments.by_id.contains_key(id) || copies.contains(id))?;
        if is_of_another_program(segments) {
            lines::warn(format_args!(
                "segment {missing} is missing: there is no manifest, and no segment is of this program, so the program \
                 that wrote them removed it ({})",
                segments.dir.display()
            ));
            return None;
        }
        Some((missing, last))
    }

    /// The segments whose current events are also in other segments.
    pub fn copies(&self, segments: &Segments) -> Result<Vec<u32>> {
        let named = |id: &u32| self.source != Source::Files && self.manifest.names(*id);
        let unnamed: BTreeSet<u32> =
            segments.by_id.keys().copied().filter(|id| !named(id)).collect();
        if unnamed.is_empty() || segments.by_id.len() < 2 && self.source == Source::Files {
            return Ok(Vec::new());
        }
        let mut copies = match self.source {
            Source::Files => BTreeSet::new(),
            _ => self.held_by_named(segments, &unnamed)?,
        };
        let (old, new) = doubled(segments, &copies)?;
        for (role, ids) in [(Role::New, &new), (Role::Old, &old)] {
            let more: BTreeSet<u32> = ids.intersection(&unnamed).copied().collect();
            let dropped: BTreeSet<u32> = copies.union(&more).copied().collect();
            if holds_rest_once(segments, &unnamed, &dropped, &more, role)? {
                copies = dropped;
                if let Some(&first) = more.first().filter(|_| role == Role::New) {
                    // An interrupted compaction had just begun these segments, or a power cut lost
                    // their pages.
                    for &id in unnamed.range(first..) {
                        if !segments.has_record(id)? {
                            copies.insert(id);
                        }
                    }
                }
                let more: Vec<u32> = unnamed.difference(&copies).copied().collect();
                if self.source != Source::Files && !more.is_empty() {
                    lines::warn(format_args!(
                        "no manifest names segments {more:?}, which have events of their own"
                    ));
                }
                return Ok(copies.into_iter().collect());
            }
        }
        let message = format!(
            "segments {old:?} and {new:?} have the same events, and each has some of its own: a \
             compaction was interrupted, and what is left is damaged"
        );
        let error = Error::new(ErrorKind::Corrupt, message).at(&segments.dir);
        Err(error.with_advice("salvage copies each event once"))
    }

    /// The unlisted segments whose events are all in listed segments.
    fn held_by_named(&self, segments: &Segments, unnamed: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
        let mut own: BTreeMap<u32, HashSet<Id>> = BTreeMap::new();
        for &id in unnamed {
            let role = if id < self.manifest.next_segment_id { Role::Old } else { Role::New };
            let ids = own.entry(id).or_default();
            each_event(segments, id, |event| {
                if role.must_stay(event) {
                    ids.insert(event.id);
                }
            })?;
        }
        for &id in segments.by_id.keys().filter(|id| !unnamed.contains(id)) {
            each_event(segments, id, |event| {
                own.values_mut().for_each(|ids| {
                    ids.remove(&event.id);
                });
            })?;
        }
        own.retain(|_, ids| ids.is_empty());
        Ok(own.into_keys().collect())
    }
}

impl Role {
    /// Whether the removal of a segment must not lose an event.
    fn must_stay(self, event: &EventRef<'_>) -> bool {
        // The event may have expired before the compaction of the segment.
        event.flags.is_live() && (self == Self::New || expires_at(event.kind, event.tags).is_none())
    }
}

/// Whether this program never wrote the segments: no record has a checksum, and the log has no
/// sidecar. The reference implementation leaves gaps in the numbers after a compaction, without a
/// marker.
fn is_of_another_program(segments: &Segments) -> bool {
    let has_none = |segment: &Segment| {
        let mut scan = segment.scan(0);
        while let Some(found) = scan.next()? {
            if let Found::Record(found) = found {
                // A recovery of tag names adds a checksum in memory.
                return Ok::<_, Error>(!found.has_sum || found.is_recovered);
            }
        }
        Ok(true)
    };
    !segments.had_our_log()
        && segments.by_id.values().all(|open| has_none(&open.segment).unwrap_or(false))
}

/// The manifest and its copy, if readable.
fn manifests(options: &Options, dir: &Path) -> Result<(Option<Manifest>, Option<Manifest>)> {
    let storage = &*options.storage;
    Ok((Manifest::load(storage, dir)?, Manifest::load_copy(storage, dir)?))
}

/// The order of manifests: newer is higher. Between equals, the manifest with all its segments
/// wins.
fn rank(manifest: &Manifest, files: &BTreeMap<u32, PathBuf>) -> (u64, u32, bool, usize) {
    let (compactions, next, ids): Generation = manifest.generation();
    (compactions, next, ids.iter().all(|id| files.contains_key(id)), ids.len())
}

/// The segments with events that a later segment repeats, and the later segments.
fn doubled(segments: &Segments, without: &BTreeSet<u32>) -> Result<(BTreeSet<u32>, BTreeSet<u32>)> {
    let (mut old, mut new) = (BTreeSet::new(), BTreeSet::new());
    let mut first: HashMap<Id, u32> = HashMap::new();
    for &id in segments.by_id.keys().filter(|id| !without.contains(id)) {
        each_event(segments, id, |event| {
            let before = *first.entry(event.id).or_insert(id);
            if before != id {
                old.insert(before);
                new.insert(id);
            }
        })?;
    }
    Ok((old, new))
}

/// Whether the remaining unlisted segments share no event with another segment, and the removed
/// segments have no event that must stay. Listed segments may have an event twice.
fn holds_rest_once(
    segments: &Segments,
    unnamed: &BTreeSet<u32>,
    dropped: &BTreeSet<u32>,
    more: &BTreeSet<u32>,
    role: Role,
) -> Result<bool> {
    let mut kept: HashMap<Id, u32> = HashMap::new();
    let mut holds = true;
    for &id in segments.by_id.keys().filter(|id| !dropped.contains(id)) {
        each_event(segments, id, |event| {
            let first = *kept.entry(event.id).or_insert(id);
            holds &= first == id || !unnamed.contains(&first) && !unnamed.contains(&id);
        })?;
    }
    for &id in more {
        each_event(segments, id, |event| {
            holds &= !role.must_stay(event) || kept.contains_key(&event.id);
        })?;
    }
    Ok(holds)
}

fn each_event(segments: &Segments, id: u32, mut take: impl FnMut(&EventRef<'_>)) -> Result<()> {
    let Some(open) = segments.by_id.get(&id) else { return Ok(()) };
    let mut scan = open.segment.scan(0);
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found {
            take(&found.event);
        }
    }
    Ok(())
}

fn lost(message: String, path: &Path) -> Error {
    let advice = "a backup may have it; repair with accept_loss goes on without it";
    Error::new(ErrorKind::LostRecords, message).at(path).with_advice(advice)
}
