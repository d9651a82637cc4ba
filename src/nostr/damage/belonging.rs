//! Decide which segments belong to the store.
//!
//! The manifest lists the segments; a newer copy overrides the manifest. An unlisted segment with
//! pages joins the store. Without both manifests, all segments belong to the store. The names of
//! the files and the intent of a compaction say which segments a compaction copied, and which it
//! replaced (`pages/compacted.rs`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::nostr::bytes::page::Header;
use crate::nostr::pages::compacted::Compacted;
use crate::nostr::pages::manifest::{Generation, Manifest};
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, Segment};
use crate::nostr::pages::segments::{Open, Segments};
use crate::sidecar::sidecar_dir;

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
    /// The intent of a compaction.
    compacted: Option<Compacted>,
    /// The files of an unfinished compaction that no reader needs.
    leftovers: Vec<PathBuf>,
}

/// The source of the list of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Manifest,
    Copy,
    /// The existing files.
    Files,
}

impl Belonging {
    /// Read manifest and copy, then the intent of a compaction, then list the files. In this order,
    /// the list misses no existing segment of a store under change, and doubles none.
    pub fn load(options: &Options, dir: &Path) -> Result<(Self, BTreeMap<u32, PathBuf>)> {
        let (mut manifest, mut copy) = manifests(options, dir)?;
        // Another program that wrote the manifest does not know of the compaction.
        let is_foreign = manifest.as_ref().is_some_and(|manifest| manifest.is_foreign);
        let mut compacted = Compacted::load(&*options.storage, dir)?;
        if is_foreign {
            compacted = compacted.map(|_| Compacted::default());
        }
        apply(compacted.as_ref(), &mut manifest, &mut copy);
        let found = Segments::new(dir, options.storage.clone()).list(compacted.as_ref())?;
        let mut belonging = Self::choose(manifest, copy, &found.files);
        (belonging.compacted, belonging.leftovers) = (compacted, found.leftovers);
        Ok((belonging, found.files))
    }

    /// Read manifest and copy for known files, given the intent of a compaction.
    pub fn of(
        options: &Options,
        dir: &Path,
        files: &BTreeMap<u32, PathBuf>,
        compacted: Option<&Compacted>,
    ) -> Result<Self> {
        let (mut manifest, mut copy) = manifests(options, dir)?;
        apply(compacted, &mut manifest, &mut copy);
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
        let (compacted, leftovers) = (None, Vec::new());
        Self { manifest, source, is_proved, is_corrected, is_current, compacted, leftovers }
    }

    /// Finish a compaction that counts, or delete the files of another one. Also delete segments
    /// that a writer began and no manifest lists. Returns the deleted files.
    pub fn finish_compaction(
        &mut self,
        options: &Options,
        dir: &Path,
        segments: &mut Segments,
        begun: Vec<PathBuf>,
    ) -> Result<Vec<PathBuf>> {
        let compacted = self.compacted.take();
        if compacted.as_ref().is_some_and(|compacted| !compacted.is_void()) {
            segments.finish()?;
            // Without any manifest, the segments decide.
            if !self.is_unnamed() {
                self.manifest.store(options, dir)?;
            }
        }
        let gone = [std::mem::take(&mut self.leftovers), begun].concat();
        if compacted.is_some() || !gone.is_empty() {
            segments.delete(&gone)?;
        }
        if compacted.is_some() {
            Compacted::forget(&*options.storage, &sidecar_dir(dir))?;
        }
        Ok(gone)
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
    pub fn check_no_gap(&self, segments: &Segments, is_whole: bool) -> Result<()> {
        let Some((id, last)) = self.gap(segments, is_whole) else { return Ok(()) };
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
    pub fn gap(&self, segments: &Segments, is_whole: bool) -> Option<(u32, u32)> {
        if self.source != Source::Files {
            return None;
        }
        let there = || segments.by_id.iter();
        let compacted = there().rev().find(|(_, open)| open.segment.header().compacted_at != 0);
        let first = match compacted {
            Some((&id, _)) => id,
            None if is_whole => 0,
            None => *there().next()?.0,
        };
        let last = *there().next_back()?.0;
        let missing = (first..last).find(|id| !segments.by_id.contains_key(id))?;
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

    /// The segments that a writer began and no manifest lists: they have no page.
    pub fn begun(&self, segments: &Segments) -> Vec<u32> {
        let is_begun = |(id, open): &(&u32, &Open)| {
            self.source != Source::Files && !self.manifest.names(**id) && !open.has_pages()
        };
        segments.by_id.iter().filter(is_begun).map(|(id, _)| *id).collect()
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

/// Make manifests from before a compaction list its segments.
fn apply(compacted: Option<&Compacted>, one: &mut Option<Manifest>, other: &mut Option<Manifest>) {
    for manifest in [one, other].into_iter().flatten() {
        compacted.into_iter().for_each(|compacted| compacted.apply(manifest));
    }
}

/// The order of manifests: newer is higher. Between equals, the manifest with all its segments
/// wins.
fn rank(manifest: &Manifest, files: &BTreeMap<u32, PathBuf>) -> (u64, u32, bool, usize) {
    let (compactions, next, ids): Generation = manifest.generation();
    (compactions, next, ids.iter().all(|id| files.contains_key(id)), ids.len())
}

fn lost(message: String, path: &Path) -> Error {
    let advice = "a backup may have it; repair with accept_loss goes on without it";
    Error::new(ErrorKind::LostRecords, message).at(path).with_advice(advice)
}
