//! Damaged stores of every kind that a repair handles.

use super::mend::Outcome;
use crate::store::prelude::*;

pub const HEADER_BYTES: usize = 24;

/// A damaged store, and the result of its repair.
pub struct Damaged {
    pub name: &'static str,
    pub disk: Sim,
    /// The losses that the repair may accept.
    pub may: Repair,
    pub left: Events,
    /// The events of `left` that survive the damage and a power cut together. If only the cache has the page of an
    /// event, the damaged log may have had the only durable copy.
    pub safe: BTreeSet<Id>,
    pub is_loss: bool,
    pub cut: Vec<Vec<u8>>,
}

impl Damaged {
    /// Repair a copy without any fault, and check that only the damaged events are lost.
    fn new(name: &'static str, disk: Sim, may: Repair, all: &Events, lost: &[Id]) -> Self {
        let calm = disk.kill();
        let dry = mended(&calm, DRY).unwrap();
        let report = mended(&calm, may).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(report.mended && report.loss.is_some() == dry.loss.is_some(), "{name}: {report:?}");
        let left = events(&writer(&calm));
        // Writing a segment again drops flagged events.
        let counts =
            |(id, (_, flags)): &(&Id, &(_, Flags))| flags.is_live() && !left.contains_key(id);
        let gone: Vec<Id> = all.iter().filter(counts).map(|(id, _)| *id).collect();
        assert_eq!(gone, lost, "{name}");
        let worst = worst(&disk);
        copied(&worst, COPY_DIR).unwrap();
        let copy = events(&on(&worst).open(COPY_DIR, Mode::Append).unwrap());
        let safe: BTreeSet<Id> = left.keys().filter(|id| copy.contains_key(id)).copied().collect();
        assert!(safe.len() + 1 >= left.len(), "{name}: {} of {}", safe.len(), left.len());
        let cut = saved(&calm);
        assert!(cut.is_empty() == report.saved.is_empty(), "{name}: {report:?}");
        Self { name, disk, may, left, safe, is_loss: report.loss.is_some(), cut }
    }
}

pub fn saved(disk: &Sim) -> Vec<Vec<u8>> {
    let files = listed(disk, Path::new(DIR)).into_iter();
    files.filter(|(path, _)| is_cut(path)).map(|(_, bytes)| bytes).collect()
}

fn settle(disk: &Sim, dir: &Path) {
    for name in disk.list(dir).unwrap() {
        let path = dir.join(&name);
        match disk.is_dir(&path) {
            true => settle(disk, &path),
            false => disk.open(&path, Access::Write).unwrap().sync_data().unwrap(),
        }
    }
    disk.sync_dir(dir).unwrap();
}

pub fn damage(disk: &Sim, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    changed(disk, path, change);
    disk.open(Path::new(path), Access::Write).unwrap().sync_data().unwrap();
    disk.sync_dir(Path::new(path).parent().unwrap()).unwrap();
}

pub fn settled() -> (Sim, Events) {
    let (disk, all) = world();
    settle(&disk, Path::new("/"));
    (disk, all)
}

fn gone(disk: &Sim, path: &str) {
    remove(disk, path);
    disk.sync_dir(Path::new(path).parent().unwrap()).unwrap();
}

fn first(disk: &Sim) -> u32 {
    ids(disk)[0]
}

fn last(disk: &Sim) -> u32 {
    *ids(disk).last().unwrap()
}

fn last_pages(disk: &Sim, segment: u32) -> Range<u32> {
    let manifest = manifest(disk);
    let named = manifest["active_segments"].as_array().unwrap();
    let named = named.iter().find(|named| named["id"] == segment).unwrap();
    let end = named["size_bytes"].as_u64().unwrap() as u32;
    end - 2 * PAGE as u32..end
}

/// The live events with pages of a segment in the given range.
fn live_between(disk: &Sim, segment: u32, bytes: Range<u32>) -> Vec<Id> {
    let mut all = walked(&reader(disk), Include::Live);
    all.retain(|found| found.location.segment == segment);
    let ends = all.iter().skip(1).map(|next| next.location.offset).chain([u32::MAX]);
    let is_there = |at: Location, end: u32| at.offset < bytes.end && end > bytes.start;
    let there = all.iter().zip(ends).filter(|(found, end)| is_there(found.location, *end));
    let ids: BTreeSet<Id> = there.map(|(found, _)| found.event.id).collect();
    ids.into_iter().collect()
}

fn in_first_page(disk: &Sim) -> Vec<Id> {
    live_between(disk, first(disk), PAGE as u32..2 * PAGE as u32)
}

fn in_last_pages(disk: &Sim, segment: u32) -> Vec<Id> {
    live_between(disk, segment, last_pages(disk, segment))
}

fn flip(disk: &Sim, path: &str, at: usize) {
    damage(disk, path, |bytes| bytes[at] ^= 1);
}

pub fn flip_first_page(disk: &Sim) {
    flip(disk, &segment(first(disk)), PAGE + 80);
}

pub fn flip_newest_log(disk: &Sim) {
    flip(disk, &newest_log(disk), HEADER_BYTES + 60);
}

fn lose_header(disk: &Sim) {
    damage(disk, &last_segment(disk), |bytes| bytes[..PAGE].fill(0xEE));
}

fn cut_last_pages(disk: &Sim, id: u32) {
    let kept = last_pages(disk, id).start as usize;
    damage(disk, &segment(id), |bytes| bytes.truncate(kept));
}

/// The name of the damage, the losses that the repair may accept, the damage itself, and the lost events.
type Case = (&'static str, Repair, fn(&Sim), fn(&Sim) -> Vec<Id>);

const NOTHING: fn(&Sim) -> Vec<Id> = |_| vec![];

const SEGMENTS: [Case; 6] = [
    ("a damaged page", ACCEPT, flip_first_page, in_first_page),
    ("a lost header", PLAIN, lose_header, NOTHING),
    (
        "a missing segment",
        ACCEPT,
        |disk| gone(disk, &segment(first(disk))),
        |disk| live_between(disk, first(disk), 0..u32::MAX),
    ),
    (
        "a segment without its last pages",
        ACCEPT,
        |disk| cut_last_pages(disk, first(disk)),
        |disk| in_last_pages(disk, first(disk)),
    ),
    (
        "the last segment without pages",
        ACCEPT,
        |disk| cut_last_pages(disk, last(disk)),
        |disk| in_last_pages(disk, last(disk)),
    ),
    (
        "a page, a header and the log",
        ACCEPT,
        |disk| [flip_first_page, lose_header, flip_newest_log].iter().for_each(|each| each(disk)),
        in_first_page,
    ),
];

const LOGS: [Case; 3] = [
    ("a damaged log", ACCEPT, flip_newest_log, NOTHING),
    // The checkpoint is in the first file, after other entries.
    (
        "a log damaged from its beginning",
        ACCEPT,
        |disk| flip(disk, &logs(disk)[0], HEADER_BYTES + 40),
        NOTHING,
    ),
    (
        "a log damaged at a file's end",
        ACCEPT,
        |disk| flip(disk, &logs(disk)[0], last_byte(&read(disk, &logs(disk)[0])) - 300),
        NOTHING,
    ),
];

const LOST_LOGS: [Case; 4] = [
    ("a log without its first file", ACCEPT, |disk| gone(disk, &logs(disk)[0]), NOTHING),
    ("a log without its last file", ACCEPT, |disk| gone(disk, &newest_log(disk)), NOTHING),
    (
        "no log",
        ACCEPT,
        |disk| {
            remove_log(disk);
            settle(disk, Path::new("/"));
        },
        NOTHING,
    ),
    // Only the log has the events, after its damage: the repair removes and saves them.
    (
        "events of the log alone",
        ALL,
        |disk| {
            damage(disk, &last_segment(disk), |bytes| {
                let len = bytes.len();
                bytes[len - 2 * PAGE..].fill(0);
            });
            flip_newest_log(disk);
        },
        |disk| {
            let len = read(disk, &last_segment(disk)).len() as u32;
            let lost = live_between(disk, last(disk), len - 2 * PAGE as u32..len);
            assert_eq!(lost.len(), 2);
            lost
        },
    ),
];

fn made(make: fn() -> (Sim, Events), &(name, may, damage, lost): &Case) -> Damaged {
    let (disk, all) = make();
    let lost = lost(&disk);
    damage(&disk);
    Damaged::new(name, disk, may, &all, &lost)
}

/// All damaged stores, on durable disks, and on disks that have the killed writer's last pages only in the cache.
pub fn worlds() -> Vec<Damaged> {
    let segments = SEGMENTS.iter().map(|case| made(settled, case));
    segments.chain(of_logs()).collect()
}

pub fn of_logs() -> Vec<Damaged> {
    let settled = LOGS.iter().chain(&LOST_LOGS).map(|case| made(settled, case));
    settled.chain(LOGS.iter().map(|case| made(world, case))).collect()
}

/// The events of a whole store, equal in every way to read.
pub fn given(store: &EventStore) -> Outcome<Events> {
    let report = store.verify(Check::Id).map_err(|e| format!("verify: {e:?}"))?;
    if !report.ok() {
        return Err(format!("{report:?}"));
    }
    let all = events(store);
    let live = live_in(&all);
    let queried = store.query(&[Filter::default()]).map_err(|e| format!("query: {e:?}"))?;
    let queried: BTreeSet<Id> = queried.into_iter().map(|found| found.event.id).collect();
    match queried.len() == live {
        true => Ok(all),
        false => Err(format!("a query gives {}, of {live}", queried.len())),
    }
}

pub struct Left {
    pub call: usize,
    pub is_over: bool,
    /// How the process ended: by a kill or a power cut.
    pub ended: String,
    pub disk: Sim,
}

/// The disks that each call of some work may leave, and the disks after its end.
pub fn at_every_call(disk: &Sim, work: impl FnOnce(&Sim)) -> impl Iterator<Item = Left> {
    let disk = disk.kill();
    disk.record();
    work(&disk);
    let mut recorded = disk.recorded();
    recorded.push(disk.kill());
    let last = recorded.len() - 1;
    recorded.into_iter().enumerate().flat_map(move |(call, moment)| {
        let crashes = moment.crashes();
        let choices = (0..of_tier("DEEDBOOK_NOSTR_STATES").div_ceil(24))
            .map(|each| crashes.sample(mix(call as u64 ^ mix(each))));
        let cut = [crashes.nth(0)].into_iter().chain(choices);
        let cut = cut.map(|choice| (format!("{choice:?}"), crashes.build(&choice)));
        let all: Vec<_> = [("killed".to_owned(), moment.kill())].into_iter().chain(cut).collect();
        let is_over = call == last;
        all.into_iter().map(move |(ended, disk)| Left { call, is_over, ended, disk })
    })
}
