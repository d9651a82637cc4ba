//! Translate filters to ranges of keys, and return their entries newest first.
//!
//! A filter can be answered by several sets of ranges. The query counts the entries of all sets in
//! turns, and chooses the first set to end: the smallest. A heap merges the ranges, so an answer of
//! 100 events reads about 100 entries, plus one from each range.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::files::damaged;
use super::filter::Filter;
use super::keys::{self, HINT_BYTES, Hint, Newest};
use super::moved::Moved;
use super::table::{Entries, View};
use crate::error::Result;
use crate::nostr::bytes::event::{Id, Location};

/// The number of entries counted of each set in a turn, and in all.
const TURN: usize = 64;
const COUNT_MAX: usize = 1_024;
/// The limit of ranges by author and kind; beyond the limit, ranges by author are used.
const RANGES_MAX: usize = 1_024;

/// The index at the beginning of a query.
pub(super) struct Seen {
    pub view: View,
    /// From this segment on, the locations in ranges are right.
    pub unmoved_from: u32,
    /// The moves of a compaction that the view has in part.
    pub moving: Option<Arc<Moved>>,
    /// Events from here on do not count.
    pub until: Option<Location>,
}

impl Seen {
    fn knows(&self, at: Location) -> bool {
        self.until.is_none_or(|until| at < until)
    }

    /// The location and the time of an event; `None` for an event that the index does not have.
    fn place(&self, id: &Id) -> Result<Option<(Location, u32)>> {
        let Some(place) = self.view.get(&keys::id(id))? else { return Ok(None) };
        let (at, created_at) =
            keys::place_of(&place).ok_or_else(|| damaged("location too short"))?;
        let now = self.moving.as_ref().map_or(Some(at), |moved| moved.place_now(at));
        Ok(now.filter(|at| self.knows(*at)).map(|at| (at, created_at)))
    }
}

/// The locations of events, newest first. The query ends after the first error.
pub struct Query {
    seen: Seen,
    runs: Vec<Reading>,
    /// The next entry of each unfinished run.
    heads: BinaryHeap<Reverse<(Newest, usize, Location)>>,
    last: Option<Newest>,
    failed: bool,
    read: u64,
}

impl Query {
    pub(super) fn new(seen: Seen, filters: &[Filter]) -> Result<Self> {
        let (runs, heads, last, failed, read) = (Vec::new(), BinaryHeap::new(), None, false, 0);
        let mut query = Self { seen, runs, heads, last, failed, read };
        for filter in filters {
            query.add(filter)?;
        }
        Ok(query)
    }

    /// The number of index entries read so far: the cost of the query.
    pub fn entries_read(&self) -> u64 {
        self.read + self.runs.iter().map(|run| run.read).sum::<u64>()
    }

    pub(super) fn versions(
        seen: Seen,
        pubkey: &[u8; 32],
        kind: u16,
        d: &str,
        until: u32,
    ) -> Result<Self> {
        let mut query = Self::new(seen, &[])?;
        let mut prefix = Vec::new();
        keys::versions(pubkey, kind, d, &mut prefix);
        query.run(&prefix, (0, until), &Accept::default())?;
        Ok(query)
    }

    fn add(&mut self, filter: &Filter) -> Result<()> {
        let Some(times) = filter.times() else { return Ok(()) };
        if let Some(ids) = &filter.ids {
            return self.add_ids(ids, times);
        }
        let prefixes = self.choose(filter, times)?;
        let accept = Accept::of(filter);
        for prefix in prefixes {
            self.run(&prefix, times, &accept)?;
        }
        Ok(())
    }

    fn add_ids<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a Id>,
        (since, until): (u32, u32),
    ) -> Result<()> {
        let mut found = Vec::new();
        for id in ids {
            let place = self.seen.place(id)?;
            if let Some((at, time)) = place.filter(|(_, time)| (since..=until).contains(time)) {
                found.push((keys::newest(time, *id), at));
            }
        }
        found.sort_unstable();
        self.start(Reading {
            source: Source::Ids(found.into_iter()),
            accept: Accept::default(),
            read: 0,
        })
    }

    /// The prefixes of the ranges with the fewest entries.
    fn choose(&mut self, filter: &Filter, times: (u32, u32)) -> Result<Vec<Vec<u8>>> {
        let mut ways = ways(filter);
        if ways.len() == 1 {
            return Ok(ways.swap_remove(0));
        }
        let view = &self.seen.view;
        let range = |prefix: &Vec<u8>| {
            let (from, end) = keys::range(prefix, times.0, times.1);
            view.range(from, end)
        };
        let mut counted: Vec<_> =
            ways.iter().map(|prefixes| prefixes.iter().flat_map(range)).collect();
        for _ in 0..COUNT_MAX / TURN {
            for (way, entries) in counted.iter_mut().enumerate() {
                for _ in 0..TURN {
                    self.read += 1;
                    match entries.next() {
                        Some(entry) => drop(entry?),
                        None => {
                            drop(counted);
                            return Ok(ways.swap_remove(way));
                        }
                    }
                }
            }
        }
        drop(counted);
        Ok(ways.swap_remove(0))
    }

    fn run(&mut self, prefix: &[u8], (since, until): (u32, u32), accept: &Accept) -> Result<()> {
        let (from, end) = keys::range(prefix, since, until);
        let source = Source::Range(Box::new(self.seen.view.range(from, end)));
        self.start(Reading { source, accept: accept.clone(), read: 0 })
    }

    fn start(&mut self, mut run: Reading) -> Result<()> {
        if let Some((newest, location)) = run.next()? {
            self.heads.push(Reverse((newest, self.runs.len(), location)));
            self.runs.push(run);
        }
        Ok(())
    }

    /// The same locations, each with the event's id.
    pub(crate) fn named(mut self) -> impl Iterator<Item = Result<(Id, Location)>> {
        std::iter::from_fn(move || self.next_named())
    }

    fn next_named(&mut self) -> Option<Result<(Id, Location)>> {
        if self.failed {
            return None;
        }
        let next = self.step();
        self.failed = next.is_err();
        next.transpose()
    }

    fn step(&mut self) -> Result<Option<(Id, Location)>> {
        while let Some(Reverse((newest, number, location))) = self.heads.pop() {
            let next = self.runs.get_mut(number).map(Reading::next).transpose()?.flatten();
            if let Some((next, location)) = next {
                self.heads.push(Reverse((next, number, location)));
            }
            if self.last.replace(newest) != Some(newest) {
                let id = keys::id_of(&newest);
                if location.segment >= self.seen.unmoved_from {
                    match self.seen.knows(location) {
                        true => return Ok(Some((id, location))),
                        false => continue,
                    }
                }
                match self.seen.place(&id)? {
                    Some((location, _)) => return Ok(Some((id, location))),
                    // A compaction dropped the event, or a reader does not know it.
                    None if self.seen.moving.is_some() || self.seen.until.is_some() => {}
                    None => return Err(damaged(&format!("no location of {id}"))),
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Query {
    type Item = Result<Location>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_named()?.map(|(_, location)| location))
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("ranges", &self.runs.len()).finish_non_exhaustive()
    }
}

/// The sets of range prefixes that can answer a filter; never empty.
fn ways(filter: &Filter) -> Vec<Vec<Vec<u8>>> {
    let made = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut prefix = Vec::new();
        write(&mut prefix);
        prefix
    };
    let kinds = filter.kinds.iter().flatten().copied();
    let mut ways = Vec::new();
    if let Some(authors) = &filter.authors {
        let kinds_of_each = filter.kinds.as_ref().map_or(0, |kinds| kinds.len());
        ways.push(match authors.len().saturating_mul(kinds_of_each) {
            ranges if filter.kinds.is_some() && ranges <= RANGES_MAX => authors
                .iter()
                .flat_map(|author| kinds.clone().map(move |kind| (author, kind)))
                .map(|(author, kind)| made(&|key| keys::author_kind(author, kind, key)))
                .collect(),
            _ => authors.iter().map(|author| made(&|key| keys::author(author, key))).collect(),
        });
    }
    for (&letter, values) in &filter.tags {
        ways.push(values.iter().map(|value| made(&|key| keys::tag(letter, value, key))).collect());
    }
    if ways.is_empty() {
        ways.push(match filter.kinds {
            Some(_) => kinds.map(|kind| made(&|key| keys::kind(kind, key))).collect(),
            None => vec![made(&|key| keys::time(key))],
        });
    }
    ways
}

/// The conditions of a filter that hints can check without the event. Each part is sorted, because
/// it comes from a set.
#[derive(Clone, Default)]
struct Accept {
    kinds: Option<Vec<u16>>,
    authors: Option<Vec<[u8; HINT_BYTES - 2]>>,
}

impl Accept {
    fn of(filter: &Filter) -> Self {
        let part = |author: &[u8; 32]| author.first_chunk().copied().unwrap_or_default();
        Self {
            kinds: filter.kinds.as_ref().map(|kinds| kinds.iter().copied().collect()),
            authors: filter.authors.as_ref().map(|all| all.iter().map(part).collect()),
        }
    }

    fn accepts(&self, hint: &Hint) -> bool {
        let Some((&kind, author)) = hint.split_first_chunk() else { return true };
        let kind = u16::from_be_bytes(kind);
        let Some(author) = author.first_chunk() else { return true };
        self.kinds.as_ref().is_none_or(|kinds| kinds.binary_search(&kind).is_ok())
            && self.authors.as_ref().is_none_or(|authors| authors.binary_search(author).is_ok())
    }
}

/// The entries of one range, or some ids.
struct Reading {
    source: Source,
    accept: Accept,
    read: u64,
}

enum Source {
    Range(Box<Entries>),
    Ids(std::vec::IntoIter<(Newest, Location)>),
}

impl Reading {
    fn next(&mut self) -> Result<Option<(Newest, Location)>> {
        let entries = match &mut self.source {
            Source::Ids(ids) => return Ok(ids.next()),
            Source::Range(entries) => entries,
        };
        for entry in entries {
            self.read += 1;
            let (key, value) = entry?;
            // Ranges by kind and author have no hints.
            let accepted = keys::hint_of(&value).is_none_or(|hint| self.accept.accepts(&hint));
            if accepted {
                let newest = keys::newest_of(&key).ok_or_else(|| damaged("key too short"))?;
                let location = keys::location_of(&value);
                let location = location.ok_or_else(|| damaged("location too short"))?;
                return Ok(Some((newest, location)));
            }
        }
        Ok(None)
    }
}
