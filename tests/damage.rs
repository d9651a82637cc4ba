//! Small logs broken in every way: outcomes K, T and R of TRUST.md, by an oracle of its own.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;
#[allow(dead_code)]
#[path = "harness/report.rs"]
mod report;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{
    Event, borders, chain, check, contents, events, log, memory, parse, read_all, read_file,
    read_past_damage, rescue, restore, snapshot, snapshot_unlocked,
};
use deedbook::book::{Mode, Options, repair};
use deedbook::storage::Memory;
use deedbook::{ErrorKind, Verdict};

/// One cut a byte of 64 KiB of log, one flip a bit of 16 KiB.
const CUTS: u64 = 64 << 10;
const FLIPS: u64 = 8 * (16 << 10);

const BOOK: &str = "/book";
const LOG: &str = "/book/book.log";

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A log whose first `marked` deeds were synced and whose writer died behind the last append.
struct Specimen {
    events: Vec<Event>,
    marked: usize,
    files: Files,
}

fn specimen(events: Vec<Event>, marked: usize) -> Specimen {
    let (storage, options) = memory();
    let book = options.open(BOOK, Mode::Create).unwrap();
    for (i, (mug, jam)) in events.iter().enumerate() {
        book.append(*mug, jam).unwrap();
        if i + 1 == marked {
            book.sync().unwrap();
        }
    }
    let mut files = snapshot(&storage, Path::new(BOOK));
    // Less the space reserved behind the last deed; a test of its own has that.
    let bytes = log(1, &events);
    assert_eq!(files[Path::new(LOG)][..bytes.len()], bytes);
    files.insert(LOG.into(), bytes);
    Specimen { events, marked, files }
}

/// What opening for write must do with some bytes.
#[derive(Debug, PartialEq)]
enum Expected {
    /// Open with so many deeds, the rest cut.
    Kept(usize),
    Refused(ErrorKind),
}

impl Specimen {
    fn borders(&self) -> Vec<usize> {
        borders(&self.events).into_iter().map(|at| at as usize).collect()
    }

    fn log(&self) -> &[u8] {
        &self.files[Path::new(LOG)]
    }

    /// The rules of RULINGS.md once more, without a line of the crate.
    fn expected(&self, bytes: &[u8], sidecar: bool) -> Expected {
        let whole = self.borders();
        let marked = sidecar && self.marked > 0;
        let unused = sidecar && self.marked == 0;
        let header_intact = bytes.get(..8) == Some(&self.log()[..8]);
        if bytes.len() < 16 && marked {
            return Expected::Refused(ErrorKind::LostRecords);
        } else if bytes.is_empty() {
            return Expected::Kept(0);
        } else if bytes.len() < 16 || !header_intact {
            return Expected::Refused(ErrorKind::NotALog);
        }
        let intact = chain(bytes, 16, true);
        if marked {
            let (from, end) = (whole[self.marked - 1], whole[self.marked]);
            if bytes.get(from..end) != Some(&self.log()[from..end]) {
                return Expected::Refused(ErrorKind::LostRecords);
            } else if bytes[8..16] != self.log()[8..16] {
                return Expected::Refused(ErrorKind::Corrupt);
            }
            return Expected::Kept(self.marked + chain(bytes, end, true).len() - 1);
        }
        if unused {
            // All of it is unacknowledged.
            let numbered = bytes[8..16] != [0; 8];
            return Expected::Kept(if numbered { chain(bytes, 16, true).len() - 1 } else { 0 });
        }
        let hops = chain(bytes, 16, false);
        let last = hops.len().checked_sub(2).map(|i| hops[i]);
        let believed = hops[hops.len() - 1] == bytes.len()
            && last.is_none_or(|last| parse(bytes, last, true).is_some());
        let numbered = bytes[8..16] != [0; 8];
        if believed && (numbered || last.is_none()) {
            return Expected::Kept(hops.len() - 1);
        }
        let end = intact[intact.len() - 1];
        let behind = (end + 1..bytes.len()).any(|at| parse(bytes, at, true).is_some());
        let data = bytes[end..].iter().any(|&byte| byte != 0);
        match intact.len() - 1 {
            0 if behind => Expected::Refused(ErrorKind::Corrupt),
            0 if data => Expected::Refused(ErrorKind::NotALog),
            _ if behind || (!numbered && intact.len() > 1) => Expected::Refused(ErrorKind::Corrupt),
            kept => Expected::Kept(kept),
        }
    }

    fn broken(&self, bytes: &[u8], sidecar: bool) -> (Memory, Options) {
        let mut files = self.files.clone();
        files.insert(LOG.into(), bytes.to_vec());
        files.retain(|path, _| sidecar || !path.to_str().unwrap().contains(".deedbook"));
        restore(&files)
    }

    /// Open, read, verify, salvage and repair a broken copy; assert the outcomes.
    fn judge(&self, bytes: &[u8], sidecar: bool, what: &str) {
        let expected = self.expected(bytes, sidecar);
        let intact = chain(bytes, 16, true);
        let (storage, options) = self.broken(bytes, sidecar);
        let before = snapshot_unlocked(&storage, Path::new(BOOK));
        self.judge_reading(bytes, &intact, &options, &expected, what);
        assert_eq!(snapshot_unlocked(&storage, Path::new(BOOK)), before, "{what}: a reader wrote");
        match (options.open(BOOK, Mode::Append), &expected) {
            (Err(error), Expected::Refused(kind)) => {
                assert_eq!(error.kind(), *kind, "{what}: {error}");
                let mut after = snapshot_unlocked(&storage, Path::new(BOOK));
                after.retain(|path, _| before.contains_key(path));
                assert_eq!(after, before, "{what}: changed by a refusal");
                self.judge_repair(bytes, &intact, &storage, &options, what);
            }
            (Ok(book), Expected::Kept(kept)) => {
                assert_eq!(book.len().unwrap(), *kept as u64, "{what}");
                let end = chain(bytes, 16, false).get(*kept).copied();
                let end = end.unwrap_or_else(|| self.borders()[*kept]);
                assert_eq!(read_file(&storage, Path::new(LOG)).len(), end, "{what}");
                assert_eq!(book.recovery().cut_bytes, bytes.len().saturating_sub(end) as u64);
                assert_eq!(book.recovery().verdict == Verdict::Clean, bytes.len() <= end, "{what}");
                let event = book.append(1, b"new").unwrap();
                book.close().unwrap();
                let mut after = read_file(&storage, Path::new(LOG));
                assert_eq!(
                    after[16..end],
                    bytes[bytes.len().min(16)..bytes.len().min(end)],
                    "{what}"
                );
                assert_eq!(after.split_off(end), common::deed(1, b"new"), "{what}");
                assert_eq!(options.open(BOOK, Mode::Append).unwrap().last().unwrap(), event);
            }
            (found, expected) => panic!("{what}: expected {expected:?}, found {found:?}"),
        }
    }

    /// What is given is a prefix, and behind damage only deeds of the log.
    fn judge_reading(
        &self,
        bytes: &[u8],
        intact: &[usize],
        options: &Options,
        expected: &Expected,
        what: &str,
    ) {
        let prefix = intact.len() - 1;
        let book = match options.open(BOOK, Mode::Read) {
            Ok(book) => book,
            Err(error) => {
                // No header, or nothing that looks like a deed.
                let kind = error.kind();
                assert!(
                    matches!(kind, ErrorKind::NotALog | ErrorKind::LostRecords),
                    "{what}: {error}"
                );
                assert!(bytes.len() < 16 || prefix == 0, "{what}: {error}");
                return;
            }
        };
        let (deeds, failed) = read_all(&book);
        assert_eq!(contents(&deeds), self.events[..prefix], "{what}");
        let clean = *expected == Expected::Kept(prefix);
        assert_eq!(failed.is_none(), clean, "{what}: {failed:?}");
        let report = check(BOOK, options);
        assert_eq!(report.valid_end as usize, intact[prefix], "{what}");
        if let Expected::Kept(kept) = expected {
            assert_eq!(report.verdict == Verdict::Corrupt, *kept > prefix, "{what}: {report:?}");
        } else {
            assert_eq!(report.verdict, Verdict::Corrupt, "{what}: {report:?}");
        }
        if report.verdict != Verdict::Corrupt {
            assert_eq!(report.records as usize, prefix, "{what}: more than opening keeps");
        }
        assert_eq!(
            report.verdict == Verdict::Clean,
            report.ok() && report.file_end == report.valid_end
        );
        let past = contents(&read_past_damage(&book));
        assert!(
            past.iter().all(|deed| self.events.contains(deed)),
            "{what}: an inner deed surfaced"
        );
        let saved = rescue(Path::new(BOOK), Path::new("/rescued"), options);
        let rescued = contents(&read_all(&options.open("/rescued", Mode::Read).unwrap()).0);
        assert!(
            rescued.iter().all(|deed| self.events.contains(deed)),
            "{what}: salvaged an inner deed"
        );
        assert_eq!(
            (saved.records, report.records),
            (rescued.len() as u64, rescued.len() as u64),
            "{what}"
        );
        assert_eq!(rescued[..prefix], self.events[..prefix], "{what}");
        // Every deed that is where it was; of an unacknowledged tail only up to its first damage.
        let acknowledged = report.durable_end.unwrap_or(u64::MAX) as usize;
        let whole = self.borders();
        let there = |i: &usize| {
            (whole[*i + 1] <= acknowledged || *i < prefix)
                && bytes.get(whole[*i]..whole[*i + 1])
                    == Some(&self.log()[whole[*i]..whole[*i + 1]])
        };
        let missing =
            (0..self.events.len()).filter(there).find(|&i| !rescued.contains(&self.events[i]));
        assert_eq!(missing, None, "{what}: an intact deed was not salvaged");
    }

    fn judge_repair(
        &self,
        bytes: &[u8],
        intact: &[usize],
        storage: &Memory,
        options: &Options,
        what: &str,
    ) {
        let report = match repair(
            BOOK,
            options,
            deedbook::Repair { force: true, accept_loss: true, dry_run: false },
        ) {
            Ok(report) => report,
            Err(error) => {
                let header = bytes.len() < 16 || bytes[..16] != self.log()[..16];
                assert!(header || intact.len() == 1, "{what}: {error}");
                assert_eq!(read_file(storage, Path::new(LOG)), bytes);
                return;
            }
        };
        let end = intact[intact.len() - 1];
        assert_eq!(
            (report.valid_end, report.cut_bytes),
            (end as u64, (bytes.len() - end) as u64),
            "{what}"
        );
        assert_eq!(read_file(storage, Path::new(LOG)), bytes[..end], "{what}");
        let saved = report.saved_to.map(|path| read_file(storage, &path)).unwrap_or_default();
        // A tail of zeros alone was never written.
        let tail = if bytes[end..].iter().all(|&byte| byte == 0) { &[] } else { &bytes[end..] };
        assert_eq!(saved, tail, "{what}: not all was saved");
        let book = options.open(BOOK, Mode::Append).unwrap();
        assert_eq!(book.append(1, b"new").unwrap(), book.len().unwrap());
        book.close().unwrap();
        assert!(check(BOOK, options).ok(), "{what}");
    }
}

/// With all, some and no deeds acknowledged, and without the sidecar.
fn in_every_state(events: &[Event], mut break_and_judge: impl FnMut(&Specimen, bool, &str)) {
    for marked in [events.len(), events.len() / 2, 1, 0] {
        let specimen = specimen(events.to_vec(), marked);
        break_and_judge(&specimen, true, &format!("{marked} acknowledged"));
    }
    break_and_judge(&specimen(events.to_vec(), events.len()), false, "no sidecar");
}

#[test]
fn a_log_cut_at_every_byte_keeps_what_is_before_the_cut() {
    let tried = Cell::new(0);
    until(report::number("DEEDBOOK_CUTS", CUTS), &tried, |round| {
        in_every_state(&events(7, 40 + round), |specimen, sidecar, state| {
            for cut in 0..=specimen.log().len() {
                specimen.judge(&specimen.log()[..cut], sidecar, &format!("{state}, cut at {cut}"));
            }
            tried.set(tried.get() + specimen.log().len() as u64 + 1);
        });
    });
    report::write("damage-cuts", &format!("{{\"cuts\": {}}}\n", tried.get()));
}

#[test]
fn every_single_bit_flipped_is_noticed_and_never_costs_an_acknowledged_deed() {
    let tried = Cell::new(0);
    until(report::number("DEEDBOOK_FLIPS", FLIPS), &tried, |round| {
        flip_every_bit(&events(6, 20 + round), &tried);
    });
    report::write("damage-flips", &format!("{{\"flips\": {}}}\n", tried.get()));
}

/// Another log every round, until enough was tried.
fn until(enough: u64, tried: &Cell<u64>, mut round: impl FnMut(u64)) {
    let mut rounds = 0;
    while tried.get() < enough {
        round(rounds);
        rounds += 1;
    }
}

fn flip_every_bit(events: &[Event], tried: &Cell<u64>) {
    in_every_state(events, |specimen, sidecar, state| {
        for bit in 0..specimen.log().len() * 8 {
            let (at, mut bytes) = (bit / 8, specimen.log().to_vec());
            bytes[at] ^= 1 << (bit % 8);
            if (8..16).contains(&at) && (!sidecar || specimen.marked == 0) {
                continue; // The header has no checksum: only a mark can tell its first event.
            }
            specimen.judge(&bytes, sidecar, &format!("{state}, bit {bit} (byte {at})"));
            tried.set(tried.get() + 1);
        }
    });
}

#[test]
fn a_log_with_unwritten_zeros_behind_it_is_torn_not_corrupt() {
    in_every_state(&events(5, 40), |specimen, sidecar, state| {
        for zeros in [1, 7, 8, 11, 12, 24, 600] {
            let mut bytes = specimen.log().to_vec();
            bytes.resize(bytes.len() + zeros, 0);
            specimen.judge(&bytes, sidecar, &format!("{state}, {zeros} zeros"));
        }
    });
}

const SECTOR: usize = 512;

fn sectors(break_one: impl Fn(&mut [u8], usize)) {
    // Deeds shorter and longer than a sector.
    let mut all = events(24, 90);
    all.extend((0..5).map(|i| common::event_of(100 + i, 1500)));
    in_every_state(&all, |specimen, sidecar, state| {
        for sector in 0..specimen.log().len() / SECTOR {
            let mut bytes = specimen.log().to_vec();
            break_one(&mut bytes, sector * SECTOR);
            specimen.judge(&bytes, sidecar, &format!("{state}, sector {sector}"));
        }
    });
}

#[test]
fn every_sector_zeroed() {
    sectors(|bytes, at| bytes[at..at + SECTOR].fill(0));
}

#[test]
fn every_sector_swapped_with_the_next() {
    sectors(|bytes, at| {
        if at + 2 * SECTOR <= bytes.len() {
            bytes[at..at + 2 * SECTOR].rotate_left(SECTOR);
        }
    });
}

#[test]
fn every_sector_written_over_the_next() {
    sectors(|bytes, at| {
        if at + 2 * SECTOR <= bytes.len() {
            bytes.copy_within(at..at + SECTOR, at + SECTOR);
        }
    });
}

#[test]
fn every_sector_and_all_behind_it_stale() {
    let stale = log(1, &events(40, 200));
    sectors(|bytes, at| {
        let end = bytes.len().min(stale.len());
        if at > 0 && at < end {
            bytes[at..end].copy_from_slice(&stale[at..end]);
        }
    });
}
