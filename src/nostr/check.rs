//! Verifying a store without changing it, and counting what it holds.

use std::collections::{BTreeMap, HashSet};

use super::FORMAT;
use super::event::{EventRef, Flags, Id, Location};
use super::import::Check;
use super::names::{Names, recover};
use super::options::Options;
use super::segment::{Found, PageDamage, Segment};
use super::signature;
use super::split::open_part;
use super::store::EventStore;
use crate::error::Result;
use crate::log::split::Split;

/// Damage and wrong events beyond this are counted only.
const FAULTS_KEPT: usize = 1000;
/// Progress is reported this often.
const PROGRESS_BYTES: u64 = 1 << 20;
const PROGRESS_EVENTS: u64 = 1024;
/// A day, seconds.
const DAY: u32 = 86_400;

/// Something that is not as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it begins.
    pub location: Location,
    /// The byte of the segment's file after it.
    pub end: u32,
    /// What is wrong, with both values.
    pub reason: String,
}

/// What verifying found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreReport {
    /// Segments read.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events that count.
    pub live: u64,
    /// Deleted events that are still stored.
    pub deleted: u64,
    /// Replaced events that are still stored.
    pub replaced: u64,
    /// Events of which the program that wrote them lost names of tags, where known names meet the id;
    /// where none do, the event is a fault.
    pub lossy: u64,
    /// Damaged places and wrong events.
    pub faults: u64,
    /// The first 1,000 of them.
    pub first_faults: Vec<Fault>,
    /// Whether a repair noted that acknowledged events are missing. It is no fault of what is there.
    pub is_loss: bool,
}

/// What verifying a part found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorePartReport {
    /// Of the part: its bytes, its events, and what is wrong with them.
    pub report: StoreReport,
    /// The first 8 bytes of the id of each event that counts, a big-endian number. Where none is
    /// there twice in all parts, no event is stored twice.
    pub ids: Vec<u64>,
}

impl StoreReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.faults == 0
    }

    fn add(&mut self, location: Location, end: u32, reason: String) {
        self.faults += 1;
        if self.first_faults.len() < FAULTS_KEPT {
            self.first_faults.push(Fault { location, end, reason });
        }
    }
}

/// How many events of what a store holds, of those that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// Events.
    pub events: u64,
    /// By kind.
    pub kinds: BTreeMap<u16, u64>,
    /// By author.
    pub authors: BTreeMap<Id, u64>,
    /// By day: days from 1970 on.
    pub days: BTreeMap<u32, u64>,
    /// By the name of a tag: how many tags.
    pub tags: BTreeMap<String, u64>,
}

impl EventStore {
    /// Read every page, and check every record, id and, if asked for, signature. Nothing is changed.
    pub fn verify(&self, check: Check) -> Result<StoreReport> {
        self.verify_with(check, &mut |_, _| Ok(()))
    }

    /// The same; `progress` is called with bytes done and bytes in all, and an error of it ends the
    /// work.
    pub fn verify_with(
        &self,
        check: Check,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<StoreReport> {
        let is_loss = self.opening().is_loss;
        let mut report = StoreReport { is_loss, ..StoreReport::default() };
        let mut ids = HashSet::new();
        let segments = self.snapshot()?;
        let total = segments.iter().map(|segment| u64::from(segment.end())).sum();
        let mut reported = 0;
        for segment in segments {
            let before = report.bytes;
            report.segments += 1;
            report.bytes += u64::from(segment.end());
            report.walk(&segment, 0, check, &mut |id| ids.insert(id), &mut |end| {
                let done = before + u64::from(end);
                if done >= reported + PROGRESS_BYTES {
                    reported = done;
                    progress(done, total)?;
                }
                Ok(())
            })?;
        }
        progress(total, total)?;
        Ok(report)
    }

    /// The same of one of the [splits](Self::splits), without an open store, so that several
    /// processes share the work: the reports of all parts make that of the store. Whether an event is
    /// stored twice is seen by their ids.
    pub fn verify_part(
        split: &Split,
        options: &Options,
        check: Check,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<StorePartReport> {
        let (segment, from, to) = open_part(split, options).map_err(|e| e.of(FORMAT))?;
        let bytes = u64::from(segment.end().saturating_sub(from));
        let mut report = StoreReport { segments: 1, bytes, ..StoreReport::default() };
        let total = u64::from(to.saturating_sub(from));
        let (mut ids, mut reported) = (Vec::new(), 0);
        let mut add = |id: Id| {
            ids.push(short(id));
            true
        };
        report.walk(&segment, from, check, &mut add, &mut |end| {
            let done = u64::from(end.saturating_sub(from));
            if done >= reported + PROGRESS_BYTES {
                reported = done;
                progress(done.min(total), total)?;
            }
            Ok(())
        })?;
        progress(total, total)?;
        Ok(StorePartReport { report, ids })
    }

    /// The number of each segment, and its bytes.
    pub fn segments(&self) -> Result<Vec<(u32, u64)>> {
        let segments = self.snapshot()?;
        let of = |segment: Segment| (segment.header().segment, u64::from(segment.end()));
        Ok(segments.into_iter().map(of).collect())
    }

    /// Count the events by kind, author, day and names of tags.
    pub fn census(&self) -> Result<Census> {
        self.census_with(&mut |_| Ok(()))
    }

    /// The same; `progress` is called with the number of events so far, and an error of it ends the
    /// work.
    pub fn census_with(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Census> {
        let mut census = Census::default();
        let mut events = self.iter(super::Include::Live, crate::OnCorrupt::Raise)?;
        while events.next_with(|_, event| census.add(event))?.is_some() {
            if census.events.is_multiple_of(PROGRESS_EVENTS) {
                progress(census.events)?;
            }
        }
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

/// The first 8 bytes of an id.
fn short(id: Id) -> u64 {
    id.0.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl StoreReport {
    /// Check a segment from a byte on. `is_new` is asked for each event that counts; `step` gets the
    /// byte at which each event ends.
    fn walk(
        &mut self,
        segment: &Segment,
        from: u32,
        check: Check,
        is_new: &mut dyn FnMut(Id) -> bool,
        step: &mut dyn FnMut(u32) -> Result<()>,
    ) -> Result<()> {
        let (id, mut scratch) = (segment.header().segment, Vec::new());
        let mut scan = segment.scan(from);
        while let Some(found) = scan.next()? {
            let end = match found {
                Found::Record(found) => {
                    let at = Location { segment: id, offset: found.offset };
                    if self.count(&found.event) && !is_new(found.event.id) {
                        let reason = format!("event {} is stored twice", found.event.id);
                        self.add(at, found.end, reason);
                    }
                    self.check(at, found.end, &found.event, check, &mut scratch);
                    found.end
                }
                Found::Damage(PageDamage { offset, end, reason }) => {
                    self.add(Location { segment: id, offset }, end, reason);
                    end
                }
            };
            step(end)?;
        }
        Ok(())
    }

    /// Whether the event counts.
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

    fn check(
        &mut self,
        at: Location,
        end: u32,
        event: &EventRef<'_>,
        check: Check,
        scratch: &mut Vec<u8>,
    ) {
        if check == Check::None {
            return;
        }
        if let Err(error) = event.check_id(scratch) {
            match recover(event) {
                Names::Recovered(_) => self.lossy += 1,
                Names::Intact | Names::Lossy => {
                    return self.add(at, end, error.message().to_owned());
                }
            }
        }
        if check == Check::Signature
            && let Err(error) = signature::check(event.id, &event.pubkey, &event.sig)
        {
            self.add(at, end, error.message().to_owned());
        }
    }
}
