//! Verifying a store without changing it, and counting what it holds.

use std::collections::{BTreeMap, HashSet};

use super::event::{EventRef, Flags, Id, Location};
use super::import::Check;
use super::names::{Names, recover};
use super::segment::{Found, PageDamage};
use super::signature;
use super::store::EventStore;
use crate::error::Result;

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
        let (mut ids, mut scratch) = (HashSet::new(), Vec::new());
        let segments = self.snapshot()?;
        let total = segments.iter().map(|segment| u64::from(segment.end())).sum();
        let mut reported = 0;
        for segment in segments {
            let id = segment.header().segment;
            let before = report.bytes;
            report.segments += 1;
            report.bytes += u64::from(segment.end());
            let mut scan = segment.scan(0);
            while let Some(found) = scan.next()? {
                let end = match found {
                    Found::Record(found) => {
                        let at = Location { segment: id, offset: found.offset };
                        report.look(at, found.end, &found.event, check, &mut ids, &mut scratch);
                        found.end
                    }
                    Found::Damage(PageDamage { offset, end, reason }) => {
                        report.add(Location { segment: id, offset }, end, reason);
                        end
                    }
                };
                let done = before + u64::from(end);
                if done >= reported + PROGRESS_BYTES {
                    reported = done;
                    progress(done, total)?;
                }
            }
        }
        progress(total, total)?;
        Ok(report)
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

impl StoreReport {
    fn look(
        &mut self,
        at: Location,
        end: u32,
        event: &EventRef<'_>,
        check: Check,
        ids: &mut HashSet<Id>,
        scratch: &mut Vec<u8>,
    ) {
        if event.flags.contains(Flags::DELETED) {
            self.deleted += 1;
        } else if event.flags.contains(Flags::REPLACED) {
            self.replaced += 1;
        } else {
            self.live += 1;
            if !ids.insert(event.id) {
                self.add(at, end, format!("event {} is stored twice", event.id));
            }
        }
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
