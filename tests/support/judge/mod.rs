//! One damaged log, read in every way: one answer, and the oracle's.

pub mod parts;
pub mod tally;
pub mod writing;

use crate::support::formats::framing::Parsed;
use crate::support::formats::oracle::{Answer, Piece, Stretch};
use crate::support::formats::subject::Record;
use crate::support::formats::views::WRITTEN;
use crate::support::judge::tally::attempt;
use crate::support::prelude::*;

const RECORDS: Reach = Reach { records: Some(2), ..WRITTEN };
const BYTES: Reach = Reach { bytes: Some(100), ..WRITTEN };

pub fn judge(specimen: &Specimen<'_>, space: &[u8], what: &dyn Fn() -> String) {
    judge_files(specimen, &specimen.broken(space), space, what);
}

/// The same for files with these bytes.
pub fn judge_files(
    specimen: &Specimen<'_>,
    files: &Files,
    space: &[u8],
    what: &dyn Fn() -> String,
) {
    let beside = match specimen.beside {
        Beside::Open(_) => "open mark",
        Beside::Closed(_) => "closed mark",
        Beside::Nothing => "no sidecar",
    };
    let kind = format!("{}, {beside}", specimen.format.name());
    attempt(&kind, || one_answer(specimen, files, space, what));
}

fn one_answer(specimen: &Specimen<'_>, files: &Files, space: &[u8], what: &dyn Fn() -> String) {
    let memory = files.restore();
    let (answer, path) = (specimen.answer(space), specimen.path());
    let at = At::memory(&memory, path);
    let what = || {
        let Specimen { format, beside, .. } = specimen;
        format!("{}, {beside:?}, {}:\n{answer:?}", format.name(), what())
    };
    let is_whole = *files == specimen.broken(space);
    let (answer, memory) = (&answer, &memory);
    let case = Case { specimen, space, is_whole, answer, at, memory, what: &what };
    let before = Files::unlocked(memory);
    case.reading();
    assert!(Files::unlocked(memory) == before, "{}: a reader wrote", what());
    case.salvage();
    // The check noted its damage, and opening would be refused.
    let _ = deedbook::storage::Storage::remove(
        memory,
        &specimen.format.sidecar(&case.at.path).join("damage"),
    );
    case.opening(&before);
}

pub struct Case<'a> {
    pub specimen: &'a Specimen<'a>,
    pub space: &'a [u8],
    pub is_whole: bool,
    pub answer: &'a Answer,
    pub at: At,
    pub memory: &'a Memory,
    pub what: &'a dyn Fn() -> String,
}

impl Case<'_> {
    pub fn is_nothing_known(&self) -> bool {
        self.answer.pieces.is_empty() && self.specimen.beside == Beside::Nothing
    }

    fn reading(&self) {
        let what = self.what;
        let log = match self.specimen.format.read(&self.at) {
            Ok(log) => log,
            Err(error) => {
                let is_fine = self.is_nothing_known() && error.kind() == ErrorKind::NotALog
                    || self.space.is_empty();
                assert!(is_fine, "{}: not read: {error:?}", what());
                return;
            }
        };
        let skipped = log.forward(None, None, true);
        self.is_the_answer(&skipped);
        self.is_sound(&skipped);
        self.agrees(&*log, &skipped);
        self.read_alone(&*log, &skipped.records);
        self.begins_in_the_middle(&*log, &skipped.records);
        self.stops_at_damage(&*log, &skipped.records);
        self.checked(&skipped);
    }

    fn is_the_answer(&self, skipped: &Walk) {
        let (what, answer) = (self.what, self.answer);
        assert!(skipped.error.is_none(), "{}: {:?}", what(), skipped.error);
        if answer.ambiguous {
            return;
        }
        let expected: Vec<_> = answer.given().map(|piece| piece.at as u64).collect();
        let got: Vec<_> = skipped.records.iter().map(|record| record.offset).collect();
        assert_eq!(got, expected, "{}: records at", what());
        let got: Vec<_> = skipped.damages.iter().map(|damage| damage.offset).collect();
        // A torn tail is the end of the log; a cursor need not report it.
        let torn = answer.stretches.last().map(|stretch| stretch.at);
        let acknowledged = self.specimen.evidence.acknowledged.unwrap_or(0);
        let is_torn = |at: &usize| *at >= acknowledged;
        let mut with_torn = got.clone();
        with_torn.extend(torn.filter(is_torn).map(|at| at as u64));
        let is_silent = got.is_empty() && answer.verdict == "torn";
        let are_these = is_silent || self.are_the_damages(&got) || self.are_the_damages(&with_torn);
        assert!(are_these, "{}: damages at {got:?}", what());
        for damage in &skipped.damages {
            let Some(next) = damage.next_intact else { continue };
            let piece = answer.given().find(|piece| piece.at as u64 == next);
            let piece = piece.unwrap_or_else(|| panic!("{}: {damage:?}", what()));
            assert_eq!(damage.next_proved, piece.proved, "{}: {damage:?}", what());
        }
        let reported = skipped.damages.iter().filter(|damage| damage.next_intact.is_some()).count();
        let after = |stretch: &&Stretch| answer.given().any(|piece| Some(piece.at) == stretch.next);
        let expected = answer.stretches.iter().filter(after).count();
        assert_eq!(reported, expected, "{}: {:?}", what(), skipped.damages);
    }

    /// Damages that touch may be reported as one.
    fn are_the_damages(&self, got: &[u64]) -> bool {
        let Answer { stretches, .. } = self.answer;
        let mut before = 0;
        let mut needed = Vec::new();
        for stretch in stretches {
            let is_between = |piece: &&Piece| (before..stretch.at).contains(&piece.at);
            // With a mark, opening does not look for damage before it, and takes the rest for a torn tail, the end.
            if stretch.next.is_none() && self.specimen.beside != Beside::Nothing {
                continue;
            }
            if needed.is_empty() || self.answer.given().any(|piece| is_between(&piece)) {
                needed.push(stretch.at as u64);
            }
            before = stretch.at;
        }
        let is_known = |at: &u64| stretches.iter().any(|stretch| stretch.at as u64 == *at);
        needed.iter().all(|at| got.contains(at)) && got.iter().all(is_known)
    }

    /// Every returned record is in the log, and every reported number is right.
    fn is_sound(&self, skipped: &Walk) {
        let (what, specimen) = (self.what, self.specimen);
        let truth = |offset: u64| specimen.edges.iter().position(|&edge| edge as u64 == offset);
        for record in &skipped.records {
            let Record { ordinal, offset, tag, bytes } = record;
            let limit = specimen.evidence.limit;
            let there = specimen.format.framing().parse(self.space, *offset as usize, limit);
            assert!(matches!(there, Parsed::Intact(_)), "{}: gave {record:?}", what());
            match truth(*offset) {
                Some(i) if i < specimen.events.len() => {
                    assert_eq!((*tag, bytes), (specimen.events[i].0, &specimen.events[i].1));
                    let is_right = ordinal.is_none_or(|ordinal| ordinal == specimen.ordinal(i));
                    assert!(is_right, "{}: record {i} is said to be {record:?}", what());
                }
                _ => {
                    let is_marked = |piece: &Piece| piece.at as u64 == *offset && !piece.proved;
                    let is_marked = self.answer.ambiguous || self.answer.given().any(is_marked);
                    assert!(is_marked, "{}: {record:?} was never appended", what());
                }
            }
        }
        let prefix = &skipped.records[..self.answer.prefix().min(skipped.records.len())];
        assert!(prefix.iter().all(|record| record.ordinal.is_some()), "{}", what());
        for damage in skipped.damages.iter().filter(|_| !self.answer.ambiguous) {
            let Some(first) = truth(damage.offset) else { continue };
            let number = damage.first_lost;
            let is_right = number.is_none_or(|number| number == specimen.ordinal(first));
            assert!(is_right, "{}: {damage:?} begins with record {first}", what());
            let lost = damage.next_intact.and_then(truth).map(|next| (next - first) as u64);
            if let (Some(said), Some(lost)) = (damage.records_lost, lost) {
                assert_eq!(said, lost, "{}: {damage:?}", what());
            }
        }
    }

    fn agrees(&self, log: &dyn Log, skipped: &Walk) {
        let what = self.what;
        for bytes in [1, 1 << 40] {
            let parts = log.splits(bytes, None, None, true).unwrap();
            let mut given = Vec::new();
            for part in parts {
                assert!(part.error.is_none(), "{}: {:?}", what(), part.error);
                given.extend(part.records);
            }
            self.same_places(&given, &skipped.records, "splits");
        }
        for reach in [RECORDS, BYTES, WRITTEN] {
            let steps = log.steps(&reach, true);
            assert!(steps.error.is_none(), "{}: {reach:?}: {:?}", what(), steps.error);
            self.same_places(&steps.records, &skipped.records, "steps");
        }
        let arrow = log.arrow(true);
        assert!(arrow.error.is_none(), "{}: {:?}", what(), arrow.error);
        assert_eq!(arrow.records, skipped.records, "{}: Arrow", what());
        // Also up to the damage, which may lie within a batch.
        let (strict, arrow) = (log.forward(None, None, false), log.arrow(false));
        assert_eq!(arrow.error.is_some(), strict.error.is_some(), "{}: Arrow", what());
        assert_eq!(arrow.records, strict.records, "{}: Arrow up to the damage", what());
        let followed = log.follow().records;
        assert_eq!(followed[..], skipped.records[..followed.len()], "{}: followed", what());
        assert!(followed.len() >= self.answer.prefix(), "{}: followed {followed:?}", what());
    }

    /// A read by number returns the record, or an error at or after the damage.
    fn read_alone(&self, log: &dyn Log, given: &[Record]) {
        let prefix = self.answer.prefix().min(given.len());
        for (i, record) in given.iter().enumerate() {
            let Some(ordinal) = record.ordinal else { continue };
            match log.read(ordinal) {
                Ok((tag, bytes)) => assert_eq!((tag, &bytes), (record.tag, &record.bytes)),
                Err(error) => assert!(i >= prefix, "{}: {record:?}: {error}", (self.what)()),
            }
        }
    }

    fn same_places(&self, got: &[Record], expected: &[Record], way: &str) {
        let places =
            |records: &[Record]| -> Vec<_> { records.iter().map(|record| record.offset).collect() };
        assert_eq!(places(got), places(expected), "{}: {way}", (self.what)());
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!((got.tag, &got.bytes), (expected.tag, &expected.bytes));
            // A part may know fewer numbers, but no others.
            let differ = got.ordinal != expected.ordinal;
            let both = got.ordinal.is_some() && expected.ordinal.is_some();
            assert!(!(differ && both), "{}: {way}: {got:?}, {expected:?}", (self.what)());
        }
    }

    /// A read from any returned record returns the rest, with damage before it or not.
    fn begins_in_the_middle(&self, log: &dyn Log, given: &[Record]) {
        let what = self.what;
        let prefix = self.answer.prefix().min(given.len());
        for i in [prefix / 2, prefix, prefix + 1, given.len().saturating_sub(1)] {
            let Some(record) = given.get(i) else { continue };
            let Some(ordinal) = record.ordinal else { continue };
            let rest = log.forward(Some(ordinal), None, true);
            assert!(rest.error.is_none(), "{}: from {record:?}: {:?}", what(), rest.error);
            self.same_places(&rest.records, &given[i..], &format!("from {record:?}"));
        }
    }

    /// Forwards, a cursor returns the prefix, then an error; backwards, what follows the last damage but a torn tail.
    fn stops_at_damage(&self, log: &dyn Log, given: &[Record]) {
        let (what, answer) = (self.what, self.answer);
        let is_corrupt = answer.verdict == "corrupt";
        let ends = |error: &Option<Error>, way: &str| {
            assert_eq!(error.is_some(), is_corrupt, "{}: {way}: {error:?}", what());
            let Some(error) = error else { return };
            let kind = error.kind();
            let is_damage = matches!(kind, ErrorKind::Corrupt | ErrorKind::LostRecords);
            assert!(is_damage, "{}: {way}: {error:?}", what());
        };
        let forward = log.forward(None, None, false);
        ends(&forward.error, "forwards");
        assert_eq!(forward.records, given[..answer.prefix()], "{}: forwards", what());
        if let Some(error) = &forward.error {
            assert_eq!(error.offset(), Some(answer.valid_end as u64), "{}: {error:?}", what());
        }
        let mut parts = Vec::new();
        let mut failed = None;
        for part in log.splits(1, None, None, false).unwrap() {
            parts.extend(part.records);
            failed = part.error;
            if failed.is_some() {
                break;
            }
        }
        ends(&failed, "splits");
        self.same_places(&parts, &given[..answer.prefix()], "splits that raise");
        let steps = log.steps(&RECORDS, false);
        ends(&steps.error, "steps");
        self.same_places(&steps.records, &given[..answer.prefix()], "steps that raise");
        let back = log.backward(None, None);
        let durable = self.specimen.evidence.durable.unwrap_or(usize::MAX);
        let last = answer.stretches.iter().rfind(|stretch| stretch.at < durable);
        // Another test requires an error if the end itself is lost.
        let is_lost_end = answer.lost && last.is_none_or(|stretch| stretch.next.is_none());
        let is_silent = is_lost_end && back.error.is_none();
        if !is_silent {
            ends(&back.error, "backwards");
        }
        let mut places: Vec<_> = back.records.iter().map(|record| record.offset).collect();
        places.reverse();
        let all: Vec<_> = given.iter().map(|record| record.offset).collect();
        assert!(all.ends_with(&places), "{}: backwards {places:?}", what());
        if answer.ambiguous || is_silent {
            return;
        }
        let after = |last: Option<&Stretch>| -> Vec<_> {
            let last = last.map_or(0, |stretch| stretch.at);
            // Records possibly inside a damaged record are part of the damage.
            let is_proved = |at: usize| answer.given().any(|piece| piece.at == at && piece.proved);
            let is_after = |record: &&Record| {
                let at = record.offset as usize;
                !is_corrupt || (at >= last && is_proved(at))
            };
            given.iter().filter(is_after).map(|record| record.offset).collect()
        };
        // A torn tail found with a mark is the end of the log.
        let before_tail = answer.stretches.iter().rev().find(|stretch| stretch.next.is_some());
        let is_tail = self.specimen.beside != Beside::Nothing && places == after(before_tail);
        let expected = after(last);
        assert!(is_tail || places == expected, "{}: backwards {places:?}", what());
    }

    fn checked(&self, skipped: &Walk) {
        let (what, answer) = (self.what, self.answer);
        let Specimen { format, how, .. } = self.specimen;
        let report = match format.verify(&self.at, *how) {
            Err(error) if self.is_nothing_known() && error.kind() == ErrorKind::NotALog => return,
            report => report.unwrap_or_else(|e| panic!("{}: {e}", what())),
        };
        assert_eq!(report.records, skipped.records.len() as u64, "{}: {report:?}", what());
        assert_eq!(report.valid_end, answer.valid_end as u64, "{}: {report:?}", what());
        assert_eq!(report.lost_acknowledged, answer.lost, "{}: {report:?}", what());
        assert_eq!(report.verdict.name(), answer.verdict, "{}: {report:?}", what());
        assert_eq!(report.ok(), answer.stretches.is_empty(), "{}: {report:?}", what());
        let places: Vec<_> = report.damages.iter().map(|damage| damage.offset).collect();
        assert!(places.is_sorted(), "{}: {report:?}", what());
        let are_these = answer.ambiguous || self.are_the_damages(&places);
        assert!(are_these, "{}: {report:?}", what());
        self.shared();
    }
}
