//! A log in the layout `slots`, cut, flipped and zeroed: every way to read it gives one answer.
//!
//! The deeds have no checksums, so the oracle of the other layouts cannot judge the log. The tests
//! check the rules of every answer instead: each record lies at an appended place and has the
//! file's bytes, no acknowledged record is missing silently, and the writer keeps the records the
//! readers gave.

use deedbook::book::Layout;

use super::grid::TAILS;
use super::*;

const DEEDS_AT: usize = 8192;
const SLOTS: [std::ops::Range<usize>; 2] = [0..48, 4096..4144];
/// Deeds of each batch, each batch with a header of its own.
const BATCHES: [u64; 3] = [2, 3, 2];
/// A log with its first batch alone: the other slot belongs to an empty log.
const ONE_BATCH: [u64; 1] = [3];
const SECTOR: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// The mark of a writer killed before its first sync returned.
    Begun,
    /// The mark of a writer killed after it synced the second batch.
    Open,
    Closed,
    Nothing,
}

struct Whole {
    beside: Beside,
    files: Files,
    space: Vec<u8>,
    edges: Vec<usize>,
    acknowledged: usize,
    older: usize,
}

impl Whole {
    fn new(beside: Beside, batches: &[u64]) -> Self {
        let memory = Memory::new();
        let at = At::memory(&memory, DIR);
        let slots = Some(Layout::Slots);
        let with = options(&at, MANUAL).layout(slots);
        let book = with.open(&at.path, Mode::Create).unwrap();
        let mut edges = vec![DEEDS_AT];
        let (mut acknowledged, mut older) = (0, 0);
        for (round, &count) in (0..).zip(batches) {
            older = edges.len() - 1;
            let mut batch = book.batch();
            for i in 0..count {
                let (mug, jam) = event_of(10 * round + i, 60 + 7 * i);
                batch.push(mug, &jam).unwrap();
                edges.push(edges.last().unwrap() + jam.len() + 20);
            }
            book.append_batch(&batch, None, None).unwrap();
            if round < 2 && beside != Beside::Begun {
                book.sync().unwrap();
                acknowledged = edges.len() - 1;
            }
        }
        if beside == Beside::Closed {
            book.close().unwrap();
            acknowledged = edges.len() - 1;
        }
        let mut files = Files::of(&memory);
        let space = files.space(&BOOK);
        assert_eq!(Some(&space.len()), edges.last());
        if beside == Beside::Nothing {
            (acknowledged, files) = (0, files.without_sidecar());
        }
        Self { beside, files, space, edges, acknowledged, older }
    }

    fn judge(&self, space: &[u8], what: &str) {
        attempt(&format!("slots, {:?}", self.beside), || {
            let what = format!("{:?}, {what}", self.beside);
            let memory = self.files.with_space(&BOOK, space).restore();
            let at = At::memory(&memory, DIR);
            let before = Files::unlocked(&memory);
            let given = self.reading(&at, space, &what);
            assert!(Files::unlocked(&memory) == before, "{what}: a reader wrote");
            self.opening(&at, given.as_deref(), &before, &memory, &what);
        });
    }

    /// The records that every way gives, damage passed over; `None` for a refused log.
    fn reading(&self, at: &At, space: &[u8], what: &str) -> Option<Vec<Record>> {
        if let Err(error) = BOOK.read(at) {
            let kinds = [ErrorKind::NotALog, ErrorKind::Corrupt, ErrorKind::LostRecords];
            assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
            return None;
        }
        let all = ways(&BOOK, at);
        let given = all[0].1.records.clone();
        for (way, walk) in &all {
            assert!(walk.error.is_none(), "{what}, {way}: {:?}", walk.error);
            assert_eq!(places(&walk.records), places(&given), "{what}, {way}");
        }
        for record in &given {
            let at = record.offset as usize;
            let number = self.edges.iter().position(|&edge| edge == at);
            let number = number.unwrap_or_else(|| panic!("{what}: {record:?} was never appended"));
            let jam = at + 12..self.edges[number + 1] - 8;
            assert_eq!(record.bytes, space[jam], "{what}: {record:?}");
            let is_right = record.ordinal.is_none_or(|ordinal| ordinal == number as u64 + 1);
            assert!(is_right, "{what}: deed {} is {record:?}", number + 1);
        }
        self.checking(at, &given, what);
        self.nothing_is_left_out(at, space, &given, what);
        Some(given)
    }

    /// Without a mark, a log not called corrupt gives all deeds of the older slot; if that is empty, the first batch's
    /// up to a cut: a whole deed after them would be a committed event taken for none.
    fn nothing_is_left_out(&self, at: &At, space: &[u8], given: &[Record], what: &str) {
        let report = BOOK.verify(at, MANUAL).unwrap();
        if self.beside != Beside::Nothing || report.verdict == Verdict::Corrupt {
            return;
        }
        assert!(given.len() >= self.older, "{what}: {report:?}");
        if self.older > 0 {
            return;
        }
        for edge in self.edges[given.len()..].windows(2) {
            let is_there = space.get(edge[0]..edge[1]) == Some(&self.space[edge[0]..edge[1]]);
            assert!(!is_there, "{what}: the deed at {} is left out: {report:?}", edge[0]);
        }
        let changed = space.iter().zip(&self.space).filter(|(now, was)| now != was).count();
        let is_all = given.len() == self.edges.len() - 1;
        let is_cut = space.len() < self.space.len() || changed > 1;
        assert!(is_all || is_cut, "{what}: one byte took deeds: {report:?}");
    }

    /// `verify` counts the given records and reports missing acknowledged records; a salvage copies the given records.
    fn checking(&self, at: &At, given: &[Record], what: &str) {
        let report = BOOK.verify(at, MANUAL).unwrap();
        assert_eq!(report.records, given.len() as u64, "{what}: {report:?}");
        if report.ok() {
            assert!(given.len() >= self.acknowledged, "{what}: {report:?}");
        }
        let log = BOOK.read(at).unwrap();
        let stops = log.forward(None, None, false);
        let is_end = stops.error.is_none() && report.verdict != Verdict::Corrupt;
        assert!(given.starts_with(&stops.records), "{what}: {stops:?}");
        assert!(!is_end || stops.records.len() == given.len(), "{what}: {stops:?}");
        let mut back = log.backward(None, None);
        back.records.reverse();
        assert!(places(given).ends_with(&places(&back.records)), "{what}: backwards {back:?}");
        let is_all = back.records.len() == given.len();
        assert!(is_all || back.error.is_some(), "{what}: backwards {back:?}");
        let copy = at.other(Path::new("/copy"));
        let copied = BOOK.salvage(at, &copy.path, MANUAL).unwrap();
        assert_eq!(copied.records, given.len() as u64, "{what}: {copied:?}");
        let copied = BOOK.read(&copy).unwrap().forward(None, None, false);
        let contents = |records: &[Record]| -> Vec<_> {
            records.iter().map(|record| (record.tag, record.bytes.clone())).collect()
        };
        assert_eq!(contents(&copied.records), contents(given), "{what}: salvaged");
    }

    /// A writer is refused and changes nothing, or keeps what the readers gave.
    fn opening(
        &self,
        at: &At,
        given: Option<&[Record]>,
        before: &BTreeMap<PathBuf, Vec<u8>>,
        memory: &Memory,
        what: &str,
    ) {
        let opened = BOOK.open(at, Mode::Append, MANUAL);
        let Ok(log) = opened else {
            let mut after = Files::unlocked(memory);
            after.retain(|path, _| !path.starts_with("/copy"));
            assert!(after == *before, "{what}: refused, and changed");
            return;
        };
        // Opening by the mark does not read the bytes below the mark.
        let given = given.unwrap_or_else(|| panic!("{what}: written, but not read"));
        let kept = log.forward(None, None, true);
        assert_eq!(kept.records, given, "{what}: opened for writing");
        let next = log.append(7, b"goes on").unwrap();
        assert!(next > given.len() as u64 && next > self.acknowledged as u64, "{what}: {next}");
        log.close().unwrap();
        let all = BOOK.read(at).unwrap().forward(None, None, true).records;
        assert_eq!(all[..given.len()], *given, "{what}: appended");
        assert_eq!(all.last().map(|record| &record.bytes[..]), Some(&b"goes on"[..]), "{what}");
    }
}

fn in_every_state(mut break_and_judge: impl FnMut(&Whole)) {
    for beside in [Beside::Open, Beside::Closed, Beside::Nothing] {
        break_and_judge(&Whole::new(beside, &BATCHES));
    }
    for beside in [Beside::Begun, Beside::Closed, Beside::Nothing] {
        break_and_judge(&Whole::new(beside, &ONE_BATCH));
    }
    all_passed();
}

// Promise: slots-damage.
#[test]
fn readers_agree_about_slots_truncated_anywhere() {
    in_every_state(|whole| {
        for cut in [1, 47, 48, 4096, 4120, 4144].into_iter().chain(DEEDS_AT..=whole.space.len()) {
            whole.judge(&whole.space[..cut], &format!("cut at {cut}"));
        }
    });
}

// Promise: slots-damage.
#[test]
fn readers_agree_about_slots_with_a_flipped_bit() {
    in_every_state(|whole| {
        let [first, second] = SLOTS;
        for byte in first.chain(second).chain(DEEDS_AT..whole.space.len()) {
            for bit in 0..8 {
                let mut space = whole.space.clone();
                space[byte] ^= 1 << bit;
                whole.judge(&space, &format!("bit {bit} of byte {byte}"));
            }
        }
    });
}

// Promise: slots-damage.
#[test]
fn readers_agree_about_slots_with_lost_sectors() {
    in_every_state(|whole| {
        let sectors = [0, 4096].into_iter().chain((0..4).map(|n| DEEDS_AT + n * SECTOR));
        let sectors: Vec<_> = sectors.filter(|&at| at < whole.space.len()).collect();
        for (i, first) in sectors.iter().enumerate() {
            for second in &sectors[i..] {
                let mut space = whole.space.clone();
                for at in [*first, *second] {
                    let end = (at + SECTOR).min(space.len());
                    space[at..end].fill(0);
                }
                whole.judge(&space, &format!("{SECTOR} bytes at {first} and {second} lost"));
            }
        }
    });
}

/// A log of eleven deeds had the header of a shorter log: skipping gave no deed, `verify` five, and parts all. The mark
/// vouches for the eleven. A log with an empty mark is left out: only its header is known.
#[test]
fn readers_agree_about_slots_with_a_foreign_header() {
    in_every_state(|whole| {
        if whole.acknowledged == 0 {
            return;
        }
        for batches in [&[1][..], &[3], &[1, 1], &[4, 1, 1], &[2, 3, 2, 4]] {
            let other = Whole::new(Beside::Nothing, batches);
            let mut space = whole.space.clone();
            space[..DEEDS_AT].copy_from_slice(&other.space[..DEEDS_AT]);
            // The epoch belongs to another log, too.
            for epoch in [0, 100] {
                let mut space = space.clone();
                for slot in SLOTS {
                    let slot = &mut space[slot];
                    let [fir, las] = [8, 16]
                        .map(|at| u64::from_le_bytes(slot[at..at + 8].try_into().unwrap()) + epoch);
                    slot[8..16].copy_from_slice(&fir.to_le_bytes());
                    slot[16..24].copy_from_slice(&las.to_le_bytes());
                    let crc = crc32fast::hash(&slot[..44]);
                    slot[44..].copy_from_slice(&crc.to_le_bytes());
                }
                whole.judge(&space, &format!("the header of {batches:?} after event {epoch}"));
            }
        }
    });
}

/// Damage in one or both slots, in deeds and at the end together.
#[test]
fn readers_agree_about_slots_with_combined_damage() {
    in_every_state(|whole| {
        let deeds = whole.edges.len() - 1;
        for (slots, middle, (tail, change)) in
            [&[][..], &[0], &[1], &[0, 1]].into_iter().flat_map(|slots| {
                let middles = [&[][..], &[0], &[1], &[0, 2], &[1, 2]];
                middles.into_iter().flat_map(move |m| TAILS.iter().map(move |t| (slots, m, t)))
            })
        {
            // The length, and the jam.
            for byte in [0, 14] {
                let mut space = whole.space.clone();
                slots.iter().for_each(|&slot: &usize| space[SLOTS[slot].start + 9] ^= 1);
                for &deed in middle.iter().filter(|&&deed| deed < deeds) {
                    space[whole.edges[deed] + byte] ^= 1;
                }
                change(&mut space);
                let what = format!("slots {slots:?}, byte {byte} of deeds {middle:?}, then {tail}");
                whole.judge(&space, &what);
            }
        }
    });
}
