//! Reading: an event by id or location, all events in either direction, the events of a filter.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::handle::EventStore;
use crate::error::{Error, Result};
use crate::ground::lines;
use crate::ground::locks::atomic::{AtomicBool, Ordering};
use crate::nostr::bytes::event::{Event, EventRef, Flags, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::policy::{counts, is_over};
use crate::nostr::bytes::record::Parts;
use crate::nostr::pages::segment::{PageDamage, Record, Segment};
use crate::nostr::pages::walk::{Forward, Looker, Reverse as Backward, Seen, Step};
use crate::scan::{Damage, OnCorrupt};

#[cfg(feature = "arrow")]
mod parts;
mod queries;

/// An event with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The event.
    pub event: Event,
    /// The event's location, which a compaction changes.
    pub location: Location,
    /// Whether the event is deleted or replaced, or lacks tag names.
    pub flags: Flags,
}

/// The events that a walk returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Include {
    /// Current events: not deleted, not replaced, and not expired at the beginning of the walk.
    #[default]
    Live,
    /// All stored events.
    All,
}

impl EventStore {
    /// The event with this id, if the event is stored and current.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where the event is damaged; see [Errors](crate#errors).
    pub fn find(&self, id: &Id) -> Result<Option<StoredEvent>> {
        let shared = self.usable()?;
        let mut state = shared.state();
        if shared.wal.is_none() {
            state.ask_for_index(&shared.options, &shared.dir);
        }
        if state.index.is_none() {
            drop(state);
            return self.find_by_scan(id);
        }
        let found = shared.asking_index(&mut state, |state| {
            let mut buf = Vec::new();
            let found = state.read_by_id(id, &mut buf)?;
            Ok(found.and_then(|(at, Record { event, .. })| {
                counts(&event, shared.options.now()).then(|| stored(at, &event))
            }))
        });
        if found.is_err() && state.index.is_none() {
            drop(state);
            return self.find_by_scan(id);
        }
        found.map_err(|e| e.of(FORMAT))
    }

    /// The event at a location, whatever its flags.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where the event is damaged; see [Errors](crate#errors).
    pub fn read(&self, location: Location) -> Result<StoredEvent> {
        let state = self.usable()?.state();
        let mut buf = Vec::new();
        let found = state.segments.read(location, &mut buf).map_err(|e| e.of(FORMAT))?;
        Ok(stored(location, &found.event))
    }

    /// A snapshot of all events in the order of storage.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn iter(&self, include: Include, on_corrupt: OnCorrupt) -> Result<Events> {
        let segments = self.snapshot()?.into();
        Ok(Events::new(segments, include, on_corrupt, false, self.options().now()))
    }

    /// A snapshot of all events from the last to the first.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn iter_reverse(&self, include: Include, on_corrupt: OnCorrupt) -> Result<Events> {
        let segments = self.snapshot()?.into_iter().rev().collect();
        Ok(Events::new(segments, include, on_corrupt, true, self.options().now()))
    }

    /// A snapshot of the segments, without later appends.
    pub(crate) fn snapshot(&self) -> Result<Vec<Segment>> {
        let shared = self.usable()?;
        let state = shared.state();
        Ok(state.segments.by_id.values().map(|open| open.segment.clone()).collect())
    }
}

fn stored(location: Location, event: &EventRef<'_>) -> StoredEvent {
    StoredEvent { event: event.to_event(), location, flags: event.flags }
}

/// Log the first damage that a walk or a query skips; the answer has all of it.
fn log_skipped(error: &Error) {
    lines::warn(format_args!("damage passed over: {error}"));
}

/// The damage of a segment's pages with the segment in its reason.
pub(crate) fn with_segment(damage: Damage) -> Damage {
    let segment = damage.segment.unwrap_or_default();
    Damage { reason: format!("segment {segment}: {}", damage.reason), ..damage }
}

/// A walk over all events. Ends after the first error.
pub struct Events {
    segments: VecDeque<Segment>,
    scan: Option<(Segment, Scan)>,
    include: Include,
    on_corrupt: OnCorrupt,
    reverse: bool,
    /// The walk judges expiry by one time, its beginning.
    now: u64,
    /// The start of the walk in a segment.
    from: u32,
    /// Whether the walk covers the whole store.
    is_whole: bool,
    sums: bool,
    searches: Searches,
    damage: Vec<Damage>,
    /// Whether the walk, or a part of it, has logged damage.
    is_logged: Arc<AtomicBool>,
    /// The error that the walk begins with.
    failed: Option<Error>,
}

impl Debug for Events {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("include", &self.include)
            .field("is_whole", &self.is_whole)
            .field("reverse", &self.reverse)
            .field("segments_left", &self.segments.len())
            .finish_non_exhaustive()
    }
}

enum Scan {
    Forward(Forward),
    Backward(Backward),
}

impl Scan {
    #[inline]
    fn step(&mut self) -> Result<Option<Step>> {
        match self {
            Self::Forward(scan) => scan.step(),
            Self::Backward(scan) => scan.step(),
        }
    }

    #[inline]
    fn looker(&self) -> &Looker {
        match self {
            Self::Forward(scan) => scan.looker(),
            Self::Backward(scan) => scan.looker(),
        }
    }
}

impl Events {
    fn new(
        segments: VecDeque<Segment>,
        include: Include,
        on_corrupt: OnCorrupt,
        reverse: bool,
        now: u64,
    ) -> Self {
        Self {
            segments,
            scan: None,
            include,
            on_corrupt,
            reverse,
            now,
            from: 0,
            is_whole: true,
            sums: true,
            searches: Searches::default(),
            damage: Vec::new(),
            is_logged: Arc::default(),
            failed: None,
        }
    }

    /// Walk one segment from an offset on.
    pub(crate) fn of_part(
        segment: Segment,
        from: u32,
        (include, on_corrupt): (Include, OnCorrupt),
        now: u64,
    ) -> Self {
        let part = Self::new([segment].into(), include, on_corrupt, false, now);
        Self { from, is_whole: false, ..part }
    }

    /// The same walk, without a check of checksums.
    #[must_use]
    pub fn without_checksums(self) -> Self {
        Self { sums: false, ..self }
    }

    /// The next event, borrowed without a copy.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk skips damage.
    /// The walk ends after an error.
    pub fn next_with<T>(
        &mut self,
        take: impl FnOnce(Location, &EventRef<'_>) -> T,
    ) -> Result<Option<T>> {
        let Some(seen) = self.step()? else { return Ok(None) };
        let found = self.at(seen).map(|(at, looker)| take(at, &looker.record(seen).event));
        Ok(found)
    }

    /// Step onto the next event, which stays until the next step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<Seen>> {
        loop {
            let Some((segment, scan)) = &mut self.scan else {
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                if !self.begin_segment() {
                    return Ok(None);
                }
                continue;
            };
            match scan.step()? {
                Some(Step::Record(seen)) => {
                    if self.include == Include::All {
                        return Ok(Some(seen));
                    }
                    let Parts { kind, tags, .. } = scan.looker().parts(seen);
                    if seen.flags().is_live() && !is_over(kind, tags, self.now) {
                        return Ok(Some(seen));
                    }
                }
                Some(Step::Damage(damage)) => {
                    let segment = segment.clone();
                    self.pass(&segment, damage)?;
                }
                None => self.scan = None,
            }
        }
    }

    /// Begin the next segment, if any.
    fn begin_segment(&mut self) -> bool {
        let Some(segment) = self.segments.pop_front() else { return false };
        let (sums, searches) = (self.sums, &self.searches);
        let scan = match self.reverse {
            true => Scan::Backward(segment.reverse().with_checksums(sums).with_names(searches)),
            false => {
                Scan::Forward(segment.scan(self.from).with_checksums(sums).with_names(searches))
            }
        };
        self.scan = Some((segment, scan));
        true
    }

    fn pass(&mut self, segment: &Segment, damage: PageDamage) -> Result<()> {
        if self.on_corrupt == OnCorrupt::Raise {
            return Err(segment.damaged(&damage));
        }
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            log_skipped(&segment.damaged(&damage));
        }
        self.damage.push(damage.of(segment.header().segment));
        Ok(())
    }

    /// The location of the current event, and the owner of its bytes.
    #[inline]
    pub(crate) fn at(&self, seen: Seen) -> Option<(Location, &Looker)> {
        let (segment, scan) = self.scan.as_ref()?;
        let segment = segment.header().segment;
        Some((Location { segment, offset: seen.offset }, scan.looker()))
    }

    /// The skipped damage so far.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

impl Iterator for Events {
    type Item = Result<StoredEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.next_with(stored);
        if found.is_err() {
            self.segments.clear();
            self.scan = None;
        }
        found.transpose()
    }
}

/// A snapshot of the current events, in the order of storage.
impl IntoIterator for &EventStore {
    type Item = Result<StoredEvent>;
    type IntoIter = Events;

    fn into_iter(self) -> Events {
        let (include, on_corrupt) = (Include::Live, OnCorrupt::Raise);
        self.iter(include, on_corrupt).unwrap_or_else(|error| Events {
            failed: Some(error),
            ..Events::new(VecDeque::new(), include, on_corrupt, false, 0)
        })
    }
}
