//! The ways of reading: walks, ids and places, and the ways that `judge` takes only sometimes: queries with filters,
//! parts, Arrow columns and counts. Each way must agree with the walk over all events.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use deedbook::OnCorrupt;
use deedbook::nostr::{EventStore, Filter, Id, Include, StoredEvent};

use super::events::mix;

/// Every so many looks take all ways.
const EVERY: u64 = 24;
const PAGE: u64 = 4096;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

type Outcome = Result<(), String>;

/// All stored events. The store returns the same from both ends, by a query, by place, and by these ids.
pub fn stored(
    store: &EventStore,
    ids: impl IntoIterator<Item = Id>,
) -> Result<Vec<StoredEvent>, String> {
    let said = |error| format!("{error:?}");
    let walk = |include| -> Result<Vec<StoredEvent>, String> {
        store.iter(include, OnCorrupt::Raise).map_err(said)?.collect::<Result<_, _>>().map_err(said)
    };
    let stored = walk(Include::All)?;
    let back = store.iter_reverse(Include::All, OnCorrupt::Raise).map_err(said)?;
    let mut back: Vec<_> = back.collect::<Result<_, _>>().map_err(said)?;
    back.reverse();
    if back != stored {
        return Err("other events the other way round".into());
    }
    let live: Vec<_> = stored.iter().filter(|found| found.flags.is_live()).cloned().collect();
    if walk(Include::Live)? != live {
        return Err("what counts is not all with such flags".into());
    }
    let mut newest: Vec<&StoredEvent> = live.iter().collect();
    newest.sort_by_key(|found| (Reverse(found.event.created_at), found.event.id));
    same(store, &[Filter::default()], &newest)?;
    for found in &stored {
        if store.read(found.location).map_err(said)? != *found {
            return Err(format!("another event at {}", found.location));
        }
    }
    for id in ids {
        let found = store.find(&id).map_err(said)?;
        if found.as_ref() != live.iter().find(|found| found.event.id == id) {
            return Err(format!("{id} is found by its id: {}", found.is_some()));
        }
    }
    Ok(stored)
}

/// Sometimes take all ways; `stored` is the result of the walk.
pub fn now_and_then(store: &EventStore, stored: &[StoredEvent]) -> Outcome {
    let look = LOOKS.replace(LOOKS.get() + 1);
    if !mix(look).is_multiple_of(EVERY) {
        return Ok(());
    }
    all(store, stored)
}

pub fn everything(store: &EventStore) -> Vec<StoredEvent> {
    let ids = super::events::all(store).into_iter().map(|event| event.id);
    let stored = stored(store, ids).unwrap();
    all(store, &stored).unwrap();
    stored
}

fn all(store: &EventStore, stored: &[StoredEvent]) -> Outcome {
    queries(store, stored)?;
    parts(store, stored)?;
    #[cfg(feature = "arrow")]
    super::columns::as_walked(store, stored)?;
    counts(store, stored)
}

/// A filter, and the same condition in other words.
type Asked<'a> = (Filter, Box<dyn Fn(&StoredEvent) -> bool + 'a>);

fn filters(stored: &[StoredEvent]) -> Vec<Asked<'_>> {
    let middle = stored.get(stored.len() / 2).map_or(0, |found| found.event.created_at);
    let author = stored.first().map_or([1; 32], |found| found.event.pubkey);
    let requests = stored.iter().filter(|found| found.event.kind == 5);
    let target = requests.map(|found| found.event.tags[0][1].clone()).next();
    let target = target.unwrap_or_else(|| "ab".repeat(32));
    let ids: BTreeSet<Id> = stored.iter().step_by(2).map(|found| found.event.id).collect();
    let kinds = |kinds: &[u16]| Filter {
        kinds: Some(kinds.iter().copied().collect()),
        ..Filter::default()
    };
    let (since, of) = (u64::from(middle), Some(BTreeSet::from([author])));
    let tags = BTreeMap::from([(b'e', BTreeSet::from([target.clone()]))]);
    vec![
        (kinds(&[0]), Box::new(|found| found.event.kind == 0)),
        (kinds(&[5, 1]), Box::new(|found| [1, 5].contains(&found.event.kind))),
        (kinds(&[]), Box::new(|_| false)),
        (
            Filter { authors: of.clone(), ..kinds(&[1]) },
            Box::new(move |found| found.event.kind == 1 && found.event.pubkey == author),
        ),
        (
            Filter { authors: of, ..Filter::default() },
            Box::new(move |found| found.event.pubkey == author),
        ),
        (
            Filter { tags, ..Filter::default() },
            Box::new(move |found| {
                found.event.tags.iter().any(|tag| tag[0] == "e" && tag[1] == target)
            }),
        ),
        (
            Filter { since: Some(since), ..Filter::default() },
            Box::new(move |found| found.event.created_at >= middle),
        ),
        (
            Filter { until: Some(since), ..kinds(&[1]) },
            Box::new(move |found| found.event.kind == 1 && found.event.created_at <= middle),
        ),
        (
            Filter { ids: Some(ids.clone()), ..Filter::default() },
            Box::new(move |found| ids.contains(&found.event.id)),
        ),
    ]
}

fn queries(store: &EventStore, stored: &[StoredEvent]) -> Outcome {
    let mut newest: Vec<&StoredEvent> =
        stored.iter().filter(|found| found.flags.is_live()).collect();
    newest.sort_by_key(|found| (Reverse(found.event.created_at), found.event.id));
    let asked = filters(stored);
    let mut unions = Vec::new();
    for (number, (filter, wanted)) in asked.iter().enumerate() {
        for limit in [None, Some(1), Some(2)] {
            let filter = Filter { limit, ..filter.clone() };
            let most = limit.unwrap_or(u64::MAX) as usize;
            let expected: Vec<&StoredEvent> =
                newest.iter().copied().filter(|found| wanted(found)).take(most).collect();
            same(store, std::slice::from_ref(&filter), &expected)?;
            if limit.is_none() || number % 2 == 0 {
                unions.push((filter, expected));
            }
        }
    }
    // With several filters, an event needs to match only one, and comes once.
    for two in unions.windows(2) {
        let met = |found: &&&StoredEvent| two.iter().any(|(_, of)| of.contains(*found));
        let expected: Vec<&StoredEvent> = newest.iter().filter(met).copied().collect();
        same(store, &[two[0].0.clone(), two[1].0.clone()], &expected)?;
    }
    Ok(())
}

fn same(store: &EventStore, filters: &[Filter], expected: &[&StoredEvent]) -> Outcome {
    let found = store.query(filters).map_err(|e| format!("{filters:?}: {e:?}"))?;
    match found.iter().eq(expected.iter().copied()) {
        true => Ok(()),
        false => {
            let of = |found: &StoredEvent| (found.event.kind, found.event.created_at);
            let (found, expected): (Vec<_>, Vec<_>) =
                (found.iter().map(of).collect(), expected.iter().map(|one| of(one)).collect());
            Err(format!("{filters:?} gives {found:?}, expected {expected:?}"))
        }
    }
}

fn parts(store: &EventStore, stored: &[StoredEvent]) -> Outcome {
    for bytes in [PAGE, 3 * PAGE] {
        let splits = store.splits(bytes).map_err(|e| format!("splits: {e:?}"))?;
        let mut found = Vec::new();
        for split in &splits {
            let walk =
                EventStore::read_split(split, store.options(), Include::All, OnCorrupt::Raise);
            for each in walk.map_err(|e| format!("part {split:?}: {e:?}"))? {
                found.push(each.map_err(|e| format!("part {split:?}: {e:?}"))?);
            }
        }
        if found != stored {
            return Err(format!(
                "{} parts give {}, of {}",
                splits.len(),
                found.len(),
                stored.len()
            ));
        }
    }
    Ok(())
}

fn counts(store: &EventStore, stored: &[StoredEvent]) -> Outcome {
    let census = store.census().map_err(|e| format!("census: {e:?}"))?;
    let (mut kinds, mut authors) = (BTreeMap::new(), BTreeMap::new());
    let live = stored.iter().filter(|found| found.flags.is_live());
    for found in live.clone() {
        *kinds.entry(found.event.kind).or_insert(0) += 1;
        *authors.entry(Id(found.event.pubkey)).or_insert(0) += 1;
    }
    match (census.events, &census.kinds, &census.authors) == (live.count() as u64, &kinds, &authors)
    {
        true => Ok(()),
        false => Err(format!("{census:?}, expected {kinds:?}, {authors:?}")),
    }
}
