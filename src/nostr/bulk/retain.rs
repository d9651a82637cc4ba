//! Retention: hide the events that are too old or too many. The next compaction drops them.
//!
//! A walk through the index finds the events, the newest first, and hides them in portions, like
//! events deleted by hand. Other calls go on between the portions.

use std::thread;
use std::time::Instant;

use super::moving::PAUSE;
use crate::error::Result;
use crate::ground::lines;
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::nostr::bytes::event::{EventRef, Flags, Id, Location};
use crate::nostr::bytes::policy::{Class, DELETION, class_of};
use crate::nostr::index::filter::Filter;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::check_retention;
use crate::nostr::pages::segments::Open;
use crate::nostr::store::handle::{EventStore, Shared, State};
use crate::nostr::store::hide::Flagged;
use crate::retention::Retention;

/// The number of events in a portion: some milliseconds of work.
const EVENTS_AT_ONCE: usize = 500;

impl EventStore {
    /// Hide the events of some kinds that `retention` lets go; returns their number. Each rule
    /// allows more. The age of an event comes from `created_at`. The bytes of its pages count, the
    /// newest event first.
    ///
    /// Without kinds, the rules are about the events of regular kinds, but deletion requests: a
    /// profile counts until its author replaces it, and without a request the deleted events could
    /// come back. Named kinds go, too.
    ///
    /// Queries and walks skip a hidden event, the next compaction drops it, and
    /// [`Options::archive`](crate::nostr::Options::archive) gets its segment before. A later append
    /// of a dropped event stores it again.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)), and with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a rule about consumers: a store has
    /// none. See [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use deedbook::Retention;
    /// use deedbook::nostr::EventStore;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("events");
    /// let store = EventStore::create(&path)?;
    /// let month = Retention::new().age_max(Duration::from_secs(30 * 24 * 3600));
    /// // Reactions, kind 7, of the last 30 days.
    /// assert_eq!(store.retain(&month, &[7])?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retain(&self, retention: &Retention, kinds: &[u16]) -> Result<u64> {
        self.retain_with(retention, kinds, false, &mut |_| Ok(()))
    }

    /// The same with options. A dry run hides nothing, and returns the number of events that would
    /// go. `progress` is called with the number of events read so far, and its error ends the work:
    /// the events hidden so far stay hidden. `progress` must not close or compact the store.
    ///
    /// # Errors
    ///
    /// The same as of [`EventStore::retain`].
    pub fn retain_with(
        &self,
        retention: &Retention,
        kinds: &[u16],
        dry_run: bool,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let (shared, wal) = self.writable()?;
        check_retention(retention)?;
        shared.retain(retention, kinds, (!dry_run).then_some(wal), progress)
    }
}

/// The events that a walk lets go.
struct Rules<'a> {
    kinds: &'a [u16],
    /// Events from before this second go.
    before: Option<u64>,
    bytes_max: Option<u64>,
    /// The bytes of the kept events so far.
    bytes: u64,
    /// The number of events read.
    read: u64,
}

impl Shared {
    /// Keep to the rules of the options, once an hour.
    pub(super) fn retain_in_time(&self, wal: &EventWal) -> Result<()> {
        {
            let mut state = self.state();
            let is_early =
                state.retained_at.is_some_and(|at| at.elapsed() < self.options.compaction_wait);
            if is_early || state.broken.is_some() {
                return Ok(());
            }
            state.retained_at = Some(Instant::now());
        }
        for (kinds, retention) in &self.options.retention {
            let hidden = self.retain(retention, kinds, Some(wal), &mut |_| Ok(()))?;
            if hidden > 0 {
                lines::info(format_args!(
                    "the retention hid {hidden} events ({})",
                    self.dir.display()
                ));
            }
        }
        Ok(())
    }

    /// Hide the events to let go; only count them if `wal` is `None`.
    fn retain(
        &self,
        retention: &Retention,
        kinds: &[u16],
        wal: Option<&EventWal>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        // A compaction would move events that the walk has yet to meet.
        let _compacting = lock(&self.compacting);
        let age = retention.age_max.map(|age| self.options.now().saturating_sub(age.as_secs()));
        let bytes_max = retention.bytes_max;
        let mut rules = Rules { kinds, before: age, bytes_max, bytes: 0, read: 0 };
        let mut places = {
            let mut state = self.state();
            state.check(self)?;
            if rules.bytes_max.is_some_and(|most| {
                kinds.is_empty() && state.live_bytes(self.options.now()) <= most
            }) {
                rules.bytes_max = None;
            }
            let until = match (rules.bytes_max, rules.before) {
                (Some(_), _) => None,
                // Earlier than all seconds, or nothing to do.
                (None, None | Some(0)) => return Ok(0),
                (None, Some(before)) => Some(u32::try_from(before - 1).unwrap_or(u32::MAX)),
            };
            let kinds = (!kinds.is_empty()).then(|| kinds.iter().copied().collect());
            let filter = Filter { kinds, until: until.map(u64::from), ..Filter::default() };
            self.asking_index(&mut state, |state| {
                state.catch_up_index()?;
                Ok(state.index()?.query(&filter)?.named())
            })?
        };
        let (mut hidden, mut is_more) = (0, true);
        while is_more && !self.closing.load(Ordering::Acquire) {
            let mut state = self.state();
            state.check(self)?;
            let mut going = Flagged::new();
            is_more = rules.walk(&state, &mut places, &mut going)?;
            hidden += going.len() as u64;
            if let Some(wal) = wal {
                self.flag_all(wal, &mut state, going)?;
            }
            drop(state);
            progress(rules.read)?;
            if is_more {
                thread::sleep(PAUSE);
            }
        }
        wal.map_or(Ok(()), |wal| self.keep_promise(wal))?;
        Ok(hidden)
    }
}

impl Rules<'_> {
    /// Collect the events to hide among the next events of the walk; false at the end.
    fn walk(
        &mut self,
        state: &State,
        places: &mut impl Iterator<Item = Result<(Id, Location)>>,
        going: &mut Flagged,
    ) -> Result<bool> {
        let mut buf = Vec::new();
        for _ in 0..EVENTS_AT_ONCE {
            let Some(next) = places.next() else { return Ok(false) };
            let (id, at) = next?;
            self.read += 1;
            let Some(found) = state.read_intact_at(&id, at, &mut buf)? else { continue };
            if found.event.flags.is_live() && self.lets_go(&found.event, found.end - found.offset) {
                going.insert(at, found.event.flags | Flags::DELETED);
            }
        }
        Ok(true)
    }

    fn lets_go(&mut self, event: &EventRef<'_>, bytes: u32) -> bool {
        let is_free = class_of(event.kind) == Class::Regular && event.kind != DELETION;
        if self.kinds.is_empty() && !is_free {
            return false;
        }
        let is_old = self.before.is_some_and(|before| u64::from(event.created_at) < before);
        let goes = is_old || self.bytes_max.is_some_and(|most| self.bytes >= most);
        if !goes {
            self.bytes += u64::from(bytes);
        }
        goes
    }
}

impl State {
    /// An upper bound of the bytes of live events.
    fn live_bytes(&mut self, now: u64) -> u64 {
        let open = self.segments.by_id.values_mut();
        let live = |open: &mut Open| match open.dead_and_all(now) {
            Some((dead, all)) => all.saturating_sub(dead),
            None => open.segment.end().into(),
        };
        open.map(live).sum()
    }
}
