//! The segments that are the store's.
//!
//! The manifest names them, or its copy where that is newer. Without both, all are the store's, but for
//! copies: no event is stored twice, so that two segments with the same events are of a compaction that
//! a crash interrupted. Copies that hold nothing of their own are deleted.

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
    /// The manifest that counts.
    pub manifest: Manifest,
    pub(super) source: Source,
    /// Whether manifest and copy name the same segments, of the same time.
    is_proved: bool,
    /// Whether the manifest says of replaced events otherwise than the copy, which is believed.
    is_corrected: bool,
    /// Whether it is of the last time at which this program stored one: the copy is, if a crash came between the two.
    pub(super) is_current: bool,
}

/// By what the segments are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Manifest,
    Copy,
    /// By what is there.
    Files,
}

/// The role of a segment in a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A compaction was done with it, and dropped the events that the new ones lack.
    Old,
    /// A compaction had begun it.
    New,
}

impl Belonging {
    /// Read manifest and copy. The files are listed after them, so that of a store that is being written
    /// no segment is missing that was there.
    pub fn load(options: &Options, dir: &Path) -> Result<(Self, BTreeMap<u32, PathBuf>)> {
        let (manifest, copy) = manifests(options, dir)?;
        let files = Segments::new(dir, options.storage.clone()).list()?;
        Ok((Self::choose(manifest, copy, &files), files))
    }

    /// The same where the files are known.
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
            // If a newer copy names the same segments, the log has all events in between.
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
            // The copy has a checksum, and is stored first where that changes: a manifest that was stored after it
            // and says otherwise is damaged. One that was stored before it says what the log's events came under.
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

    /// Whether the manifest is to be made again.
    pub fn is_rebuilt(&self) -> bool {
        self.source != Source::Manifest || self.is_corrected
    }

    /// Whether only the files themselves say which are the store's.
    pub fn is_unnamed(&self) -> bool {
        self.source == Source::Files
    }

    /// Whether nothing of this program vouches for the segments: another one may have written them last.
    pub fn may_be_of_others(&self) -> bool {
        self.is_unnamed() || self.manifest.is_foreign
    }

    /// Whether what no manifest names need not be looked at.
    pub fn passes_over(&self, id: u32) -> bool {
        self.is_proved && !self.manifest.names(id)
    }

    /// The segments that are named and missing.
    pub fn missing(&self, files: &BTreeMap<u32, PathBuf>) -> Vec<u32> {
        let named = self.manifest.segments.iter().map(|named| named.id);
        named.filter(|id| !files.contains_key(id)).collect()
    }

    /// Refuse a store of which a segment is missing.
    pub fn check_none_missing(&self, files: &BTreeMap<u32, PathBuf>, dir: &Path) -> Result<()> {
        let what = self.manifest.name();
        let missing = self.manifest.segments.iter().find(|named| !files.contains_key(&named.id));
        missing.map_or(Ok(()), |missing| {
            let (id, count) = (missing.id, missing.record_count);
            Err(lost(format!("segment {id} is missing, {what} says {count} events"), dir))
        })
    }

    /// Have pages count as damage that a segment had, by the manifest, and that are missing.
    pub fn expect_pages(&self, segment: &mut Segment) {
        let Header { segment: id, page_bytes, .. } = segment.header();
        if let Some(end) = self.manifest.pages_end(id, page_bytes) {
            segment.expect_pages(end);
        }
    }

    /// The same for each segment.
    pub fn expect_all_pages(&self, segments: &mut Segments) {
        segments.by_id.values_mut().for_each(|open| self.expect_pages(&mut open.segment));
    }

    /// Refuse a store of which a segment lost pages.
    pub fn check_no_pages_missing(&self, segments: &Segments) -> Result<()> {
        let found = segments.by_id.iter().find(|(_, open)| !open.segment.missing().is_empty());
        let Some((id, open)) = found else { return Ok(()) };
        let Range { start, end } = open.segment.missing();
        let (what, path) = (self.manifest.name(), open.segment.path());
        let message = format!("segment {id} ends at byte {start}, {what} says {end}");
        Err(lost(message, path).offset_at(start.into()))
    }

    /// Refuse a store without a manifest of which a number is missing. Numbers follow each other, and
    /// a compaction removes lower numbers than it writes. `is_whole` says that the first is 0.
    /// Copies do not count: some of them may be removed already.
    pub fn check_no_gap(&self, segments: &Segments, copies: &[u32], is_whole: bool) -> Result<()> {
        let Some((id, last)) = self.gap(segments, copies, is_whole) else { return Ok(()) };
        let message = format!(
            "segment {id} is missing: there is no manifest, segment {last} is there, and no \
             compaction came after it"
        );
        Err(lost(message, &segments.dir))
    }

    /// The file of a segment that is another one than the manifest names, and what is said of it. Its time of creation
    /// says it.
    pub fn foreign(&self, segments: &Segments) -> Option<(PathBuf, String)> {
        if self.manifest.is_foreign {
            return None;
        }
        let named = |open: &Open| {
            let header = open.segment.header();
            let listed =
                self.manifest.segments.iter().find(|listed| listed.id == header.segment)?;
            // A header that was made again does not know it.
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

    /// Refuse a store with such a segment.
    pub fn check_none_foreign(&self, segments: &Segments) -> Result<()> {
        let Some((path, reason)) = self.foreign(segments) else { return Ok(()) };
        let error = Error::new(ErrorKind::Corrupt, reason).at(&path).offset_at(0);
        Err(error.with_advice(
            "put the store's own segment there, or repair: it goes on without the lost events",
        ))
    }

    /// The first number that is missing, and the last that is there.
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

    /// The segments whose events that count stand in others.
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
                    // The compaction had just begun these, or a power cut took their pages.
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

    /// The segments that the manifest does not name, and that hold nothing beyond those it names.
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
    /// Whether an event must not be lost with a segment.
    fn must_stay(self, event: &EventRef<'_>) -> bool {
        // Its time may have been over when the segment was compacted.
        event.flags.is_live() && (self == Self::New || expires_at(event.kind, event.tags).is_none())
    }
}

/// Whether this program never wrote segments: no record has a checksum, and nothing is next to the log. The reference
/// implementation leaves gaps in the numbers where it compacts, without a marker.
fn is_of_another_program(segments: &Segments) -> bool {
    let has_none = |segment: &Segment| {
        let mut scan = segment.scan(0);
        while let Some(found) = scan.next()? {
            if let Found::Record(found) = found {
                // Recovering the names of tags adds a checksum in memory.
                return Ok::<_, Error>(!found.has_sum || found.is_recovered);
            }
        }
        Ok(true)
    };
    !segments.had_our_log()
        && segments.by_id.values().all(|open| has_none(&open.segment).unwrap_or(false))
}

/// The manifest and its copy, as far as they are there and can be understood.
fn manifests(options: &Options, dir: &Path) -> Result<(Option<Manifest>, Option<Manifest>)> {
    let storage = &*options.storage;
    Ok((Manifest::load(storage, dir)?, Manifest::load_copy(storage, dir)?))
}

/// Newer is higher. Of two manifests of one age, the higher is the one whose segments are all there.
fn rank(manifest: &Manifest, files: &BTreeMap<u32, PathBuf>) -> (u64, u32, bool, usize) {
    let (compactions, next, ids): Generation = manifest.generation();
    (compactions, next, ids.iter().all(|id| files.contains_key(id)), ids.len())
}

/// The segments that have events which a later one has, too, and those later ones.
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

/// Whether no unnamed segment that stays has an event in common with another one, and those that go have
/// none that must stay. Named segments may have an event twice.
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
