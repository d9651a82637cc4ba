//! Verify a store without changing it, and count its events.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::log::{Split, note_check};
use crate::nostr::bulk::import::Check;
use crate::nostr::bulk::split::{open_part, ranges};
use crate::nostr::bytes::event::{EventRef, Flags, Id};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::signature;
use crate::nostr::pages::on_all_cores::on_all_cores;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::{Found, PageDamage, Record, Segment};
use crate::nostr::store::handle::EventStore;
use crate::nostr::store::read::{Include, with_segment};
use crate::scan::{Damage, OnCorrupt};
use crate::sidecar::sidecar_dir;

/// The number of errors to keep in detail; later errors are counted only.
const FAULTS_KEPT: usize = 1000;
/// The number of bytes in one task of a core.
const PART_BYTES: u64 = 8 << 20;
/// The number of events between two progress reports of a count.
const PROGRESS_EVENTS: u64 = 1024;
/// A day, seconds.
const DAY: u32 = 86_400;

/// The result of verifying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Segments read.
    pub segments: u64,
    /// Size of the segments, bytes.
    pub bytes: u64,
    /// Events that are neither deleted nor replaced, expired events included.
    pub live: u64,
    /// Deleted events that are still stored.
    pub deleted: u64,
    /// Replaced events that are still stored.
    pub replaced: u64,
    /// Events whose writer lost tag names, with known names that match the id.
    pub recovered: u64,
    /// Events without matching names for their id: each is a fault.
    pub lossy: u64,
    /// Damaged places and wrong events.
    pub faults: u64,
    /// The first 1,000 faults in the segments: damaged pages, and wrong events.
    pub first_faults: Vec<Damage>,
    /// Damage in the write-ahead log. It may prevent an opening for writing until a repair removes
    /// the damage.
    pub log_damages: Vec<Damage>,
    /// Whether acknowledged events are missing. A repair or an opening with `Recovery::Spec` noted
    /// the loss, or pages are missing. A noted loss is no fault of the remaining events; missing
    /// pages are a fault.
    pub is_loss: bool,
    /// Whether the check noted a damaged page next to the store. Opening for writing is then
    /// refused until a repair, or until a check finds no damage. A check of a part notes nothing.
    pub noted: bool,
    /// The first 8 bytes of each current event's id in a part, as a big-endian number. If no number repeats
    /// across all parts, no event is stored twice. A check of a whole store leaves this empty.
    pub ids: Vec<u64>,
    /// The first damaged page, during the check.
    damaged_page: Option<Damage>,
}

impl VerifyReport {
    /// Whether there is no error.
    pub fn ok(&self) -> bool {
        self.faults == 0
    }

    /// Add the result of the next part.
    fn join(&mut self, next: Self) {
        self.live += next.live;
        self.deleted += next.deleted;
        self.replaced += next.replaced;
        self.recovered += next.recovered;
        self.lossy += next.lossy;
        self.faults += next.faults;
        self.damaged_page = self.damaged_page.take().or(next.damaged_page);
        let room = FAULTS_KEPT - self.first_faults.len();
        self.first_faults.extend(next.first_faults.into_iter().take(room));
    }

    fn add(&mut self, segment: u32, fault: PageDamage) {
        self.faults += 1;
        if self.first_faults.len() < FAULTS_KEPT {
            self.first_faults.push(fault.of(segment));
        }
    }
}

/// Counts of a store's current events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// Events.
    pub events: u64,
    /// Events by kind.
    pub kinds: BTreeMap<u16, u64>,
    /// Events by author.
    pub authors: BTreeMap<Id, u64>,
    /// Events by day: days from 1970 on.
    pub days: BTreeMap<u32, u64>,
    /// Tags by name.
    pub tags: BTreeMap<String, u64>,
    /// The skipped damage.
    pub damage: Vec<Damage>,
}

impl EventStore {
    /// Read every page, and check every record, every id and, on request, every signature, on all
    /// cores. Also check the [write-ahead log](Self::verify_log). The store's files stay unchanged;
    /// a note next to the store lists damaged pages.
    ///
    /// # Errors
    ///
    /// Fails where there is no log that can be read. Damage is no error: the report has it.
    pub fn verify(&self, check: Check) -> Result<VerifyReport> {
        self.verify_with(check, &mut |_, _| Ok(()))
    }

    /// Verify the store, and call `progress` with the bytes done and the total. An error of
    /// `progress` ends the work.
    ///
    /// # Errors
    ///
    /// Fails where there is no log that can be read. Damage is no error: the report has it. An error of `progress`
    /// ends the work and is returned.
    pub fn verify_with(
        &self,
        check: Check,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<VerifyReport> {
        let segments = self.snapshot()?;
        let there = |segment: &Segment| u64::from(segment.bytes_there(0..segment.end()));
        let bytes = segments.iter().map(there).sum();
        let (segment_count, is_loss) = (segments.len() as u64, self.opening().is_loss);
        let mut report =
            VerifyReport { segments: segment_count, bytes, is_loss, ..VerifyReport::default() };
        let mut progress = Progress::new(progress);
        progress.expect(bytes);
        let mut parts = Vec::new();
        for segment in &segments {
            let ranges = ranges(segment, PART_BYTES)?;
            parts.extend(ranges.into_iter().map(|range| (segment, range)));
        }
        let work = |&(segment, range): &(&Segment, _), step: &mut dyn FnMut(u64) -> Result<()>| {
            let (mut found, mut ids) = (VerifyReport::default(), Vec::new());
            let mut add = |id| {
                ids.push(short(id));
                true
            };
            found.walk(segment, range, check, &mut add, step)?;
            Ok(VerifyReport { ids, ..found })
        };
        let found = on_all_cores(parts.iter(), work, &mut progress)?;
        let mut ids: Vec<u64> = found.iter().flat_map(|part| &part.ids).copied().collect();
        ids.sort_unstable();
        if ids.windows(2).all(|pair| pair.first() != pair.last()) {
            found.into_iter().for_each(|part| report.join(part));
        } else {
            // Only one walk along all events finds an event stored twice, and both locations.
            let mut ids = HashSet::new();
            for segment in &segments {
                let whole = (0, segment.end());
                progress.expect(segment.end().into());
                report.walk(segment, whole, check, &mut |id| ids.insert(id), &mut |bytes| {
                    progress.add(bytes)
                })?;
            }
        }
        report.log_damages = self.verify_log()?;
        report.faults += report.log_damages.len() as u64;
        progress.end()?;
        let damaged = report.damaged_page.take();
        report.noted = self.note(damaged);
        Ok(report)
    }

    fn note(&self, found: Option<Damage>) -> bool {
        let found = found.map(with_segment);
        let (storage, sidecar) = (&*self.shared.options.storage, sidecar_dir(&self.shared.dir));
        note_check(storage, &sidecar, found.as_ref(), false)
    }

    /// Verify one of the [splits](Self::splits) without an open store, to share the work between
    /// processes. The reports of all parts and [`verify_log`](Self::verify_log) together make the
    /// report of the store. [`VerifyReport::ids`] reveals events stored twice.
    ///
    /// # Errors
    ///
    /// Fails where there is no log that can be read. Damage is no error: the report has it. An error of `progress`
    /// ends the work and is returned.
    pub fn verify_part(
        split: &Split,
        options: &Options,
        check: Check,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<VerifyReport> {
        let (segment, from, to) = open_part(split, options).map_err(|e| e.of(FORMAT))?;
        let bytes = u64::from(segment.bytes_there(from..segment.end().max(from)));
        let mut report = VerifyReport { segments: 1, bytes, ..VerifyReport::default() };
        let mut progress = Progress::new(progress);
        progress.expect(to.saturating_sub(from).into());
        let mut ids = Vec::new();
        let mut add = |id: Id| {
            ids.push(short(id));
            true
        };
        let range = (from, segment.end());
        report.walk(&segment, range, check, &mut add, &mut |bytes| progress.add(bytes))?;
        progress.end()?;
        Ok(VerifyReport { ids, damaged_page: None, ..report })
    }

    /// The number and the size of each segment.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn segments(&self) -> Result<Vec<(u32, u64)>> {
        let segments = self.snapshot()?;
        let bytes = |segment: &Segment| u64::from(segment.bytes_there(0..segment.end()));
        let of = |segment: Segment| (segment.header().segment, bytes(&segment));
        Ok(segments.into_iter().map(of).collect())
    }

    /// Count the events by kind, author, day and tag names.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn census(&self) -> Result<Census> {
        self.census_with(OnCorrupt::Raise, &mut |_| Ok(()))
    }

    /// Count the events with options. `on_corrupt` chooses the effect of damage. `progress` gets
    /// the number of events so far, and an error of `progress` ends the work.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn census_with(
        &self,
        on_corrupt: OnCorrupt,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Census> {
        let mut census = Census::default();
        let mut events = self.iter(Include::Live, on_corrupt)?;
        while events.next_with(|_, event| census.add(event))?.is_some() {
            if census.events.is_multiple_of(PROGRESS_EVENTS) {
                progress(census.events)?;
            }
        }
        census.damage = events.damage().to_vec();
        Ok(census)
    }
}

impl Census {
    fn add(&mut self, event: &EventRef<'_>) {
        self.events += 1;
        *self.kinds.entry(event.kind).or_default() += 1;
        *self.authors.entry(Id(event.pubkey)).or_default() += 1;
        *self.days.entry(event.created_at / DAY).or_default() += 1;
        for tag in event.tags.iter() {
            let name = tag.name();
            match self.tags.get_mut(&*name) {
                Some(count) => *count += 1,
                None => drop(self.tags.insert(name.into_owned(), 1)),
            }
        }
    }
}

/// A wrong event, as damage of its pages.
fn of_event(found: &Record<'_>, reason: String) -> PageDamage {
    PageDamage { offset: found.offset, end: found.end, reason }
}

/// The first 8 bytes of an id.
fn short(id: Id) -> u64 {
    id.0.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl VerifyReport {
    /// Check the records that begin in a part of a segment. `is_new` runs for each current event;
    /// `step` gets the bytes of each event.
    fn walk(
        &mut self,
        segment: &Segment,
        (from, to): (u32, u32),
        check: Check,
        is_new: &mut dyn FnMut(Id) -> bool,
        step: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let (id, mut scratch) = (segment.header().segment, Vec::new());
        let mut scan = segment.scan(from).with_names(&Searches::default());
        while let Some(found) = scan.next()? {
            let (begin, end) = match found {
                Found::Record(found) if found.offset >= to => break,
                Found::Record(found) => {
                    if self.count(&found.event) && !is_new(found.event.id) {
                        let reason = format!("event {} is stored twice", found.event.id);
                        self.add(id, of_event(&found, reason));
                    }
                    self.check(id, &found, check, &mut scratch);
                    (found.offset, found.end)
                }
                Found::Damage(damage) => {
                    let (offset, end) = (damage.offset, damage.end);
                    self.damaged_page.get_or_insert_with(|| damage.clone().of(id));
                    self.add(id, damage);
                    (offset, end)
                }
            };
            step((end - begin).into())?;
        }
        Ok(())
    }

    /// Whether the event is current.
    fn count(&mut self, event: &EventRef<'_>) -> bool {
        if event.flags.contains(Flags::DELETED) {
            self.deleted += 1;
        } else if event.flags.contains(Flags::REPLACED) {
            self.replaced += 1;
        } else {
            self.live += 1;
        }
        event.flags.is_live()
    }

    fn check(&mut self, id: u32, found: &Record<'_>, check: Check, scratch: &mut Vec<u8>) {
        let event = &found.event;
        if check == Check::None {
            return;
        }
        self.recovered += u64::from(found.is_recovered);
        self.lossy += u64::from(event.flags.contains(Flags::LOSSY));
        if let Err(error) = event.check_id(scratch) {
            return self.add(id, of_event(found, error.message().to_owned()));
        }
        if check == Check::Signature
            && let Err(error) = signature::check(event.id, &event.pubkey, &event.sig)
        {
            self.add(id, of_event(found, error.message().to_owned()));
        }
    }
}

impl EventStore {
    /// Read the whole store in a directory, and refuse any damage.
    pub(crate) fn refuse_damage(&self, dir: &Path) -> Result<()> {
        let report = self.verify(Check::Id)?;
        let of_log = |damage: Damage| {
            let path = damage.path.clone().unwrap_or_default();
            Damage { reason: format!("{}: {}", path.display(), damage.reason), ..damage }
        };
        let mut faults = report.first_faults.into_iter().map(with_segment);
        let mut damages = report.log_damages.into_iter().map(of_log);
        match faults.next().or_else(|| damages.next()) {
            None => Ok(()),
            Some(Damage { offset, reason, .. }) => {
                Err(Error::new(ErrorKind::Corrupt, reason).at(dir).offset_at(offset))
            }
        }
    }
}
