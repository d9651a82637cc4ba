//! The place to read on after damage: by lengths at both ends of a record, by borders and by
//! chains.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::ground::locks::Mutex;
use crate::log::evidence::Border;
use crate::scan::toy::Toy;
use crate::scan::{Scanned, Scanner};
use crate::sidecar::{Entry, Index};
use crate::storage::counted::Counted;

const FRAMING_BYTES: usize = Toy::FRAMING_BYTES;
const LIMIT: u64 = 100_000;

/// Records of 100 bytes each, the first at byte 0; the tests damage the second, which is number 7.
struct Log {
    file: Counted,
    limit: u64,
    /// The entries of the index: byte and number.
    index: Vec<(u64, u64)>,
    known_end: Option<u64>,
    unacknowledged_from: Option<u64>,
    is_beyond_limit: bool,
    end: u64,
    number: Option<u64>,
    rescue: bool,
}

fn codec(limit: u64) -> Toy {
    Toy::new(limit)
}

/// A record of the given size; no length in the payload leads to a record.
fn record(size: usize) -> Vec<u8> {
    let mut record = Vec::new();
    codec(LIMIT).encode(&mut record, 7, &vec![0xff; size - FRAMING_BYTES]);
    record
}

fn log(records: usize) -> Log {
    Log::of(record(100).repeat(records))
}

impl Log {
    fn of(bytes: Vec<u8>) -> Self {
        Self {
            end: bytes.len() as u64,
            file: Counted::of(bytes),
            limit: LIMIT,
            index: Vec::new(),
            known_end: None,
            unacknowledged_from: None,
            is_beyond_limit: false,
            number: Some(7),
            rescue: false,
        }
    }

    fn write(mut self, at: usize, bytes: &[u8]) -> Self {
        self.file.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Change a byte of the payload of the record at this byte.
    fn content(self, at: usize) -> Self {
        self.write(at + 20, &[0xee])
    }

    /// Write another length at the begin of the record at this byte.
    fn head(self, at: usize, len: u64) -> Self {
        self.write(at, &len.to_le_bytes())
    }

    /// Write another length at the end of the record that ends at `end`.
    fn trailer(self, end: usize, len: u64) -> Self {
        self.write(end - 8, &len.to_le_bytes())
    }

    /// Overwrite all 100 bytes of the record at this byte.
    fn wiped(self, at: usize) -> Self {
        self.write(at, &[0xee; 100])
    }

    fn evidence(&self) -> Evidence {
        let mut index = Index::empty(Path::new("/s"));
        for &(offset, ordinal) in &self.index {
            index.push(Entry { ordinal, offset, sum: 0 });
        }
        let known_end = self.known_end.map(|offset| Border { offset, ordinal: None });
        Evidence::new(Arc::new(Mutex::new(index)), known_end, self.unacknowledged_from)
    }

    fn stretch(&self, at: u64) -> Stretch<'_, Toy> {
        let Self { end, number, rescue, .. } = *self;
        let framing = codec(self.limit);
        Stretch { file: &self.file, framing, at, end, ordinal: number, rescue }
    }

    /// The place to read on after the damage at a byte.
    fn resync_at(&self, at: u64) -> Resync {
        self.resync_with(at, &mut Learnt::default())
    }

    /// As [`Self::resync_at`], in a walk that met damage before.
    fn resync_with(&self, at: u64, learnt: &mut Learnt<Toy>) -> Resync {
        let stretch = self.stretch(at);
        let mut scanner = Scanner::new(stretch.framing, at, self.end);
        let Scanned::Stop { why, .. } = scanner.next(&self.file).unwrap() else { panic!() };
        resync(stretch, &why, "deed 7", &self.evidence(), self.is_beyond_limit, learnt).unwrap()
    }

    fn resync(&self, stretch: Stretch<'_, Toy>, why: &Stop) -> Resync {
        let mut learnt = Learnt::default();
        let (evidence, beyond) = (self.evidence(), self.is_beyond_limit);
        resync(stretch, why, "deed 7", &evidence, beyond, &mut learnt).unwrap()
    }

    /// After the damage at byte 100: the byte to continue at, the number of the record there,
    /// whether the number is proved, and how many records are lost.
    fn goes_on(&self) -> Option<(u64, Option<u64>, bool, Option<u64>)> {
        let Resync { damage, next, .. } = self.resync_at(100);
        let damage = damage.unwrap();
        assert_eq!((damage.offset, damage.first_lost), (100, self.number));
        assert_eq!(damage.end, next.map_or(self.end, |(offset, _)| offset));
        if let Some(intact) = damage.next_intact {
            assert_eq!(Some(intact), next.map(|(offset, _)| offset));
        }
        next.map(|(at, number)| (at, number, damage.next_proved, damage.records_lost))
    }
}

/// One record is lost, and the next record is proved.
const ONE_LOST: Option<(u64, Option<u64>, bool, Option<u64>)> = Some((200, Some(8), true, Some(1)));

/// A follower had one budget for its life, from the log's size at the first damage. Once the budget
/// was spent, the follower found no record after later damage.
#[test]
fn a_log_that_grew_has_a_new_budget() {
    let mut log = Log::of([record(100).repeat(5), vec![0; 500]].concat()).content(100);
    log.end = 500;
    let mut learnt = Learnt::default();
    assert_eq!(log.resync_with(100, &mut learnt).next.map(|next| next.0), Some(200));
    learnt.search.take(u64::MAX);
    let mut log = log.write(500, &record(100).repeat(5)).wiped(600);
    log.end = 1000;
    assert_eq!(log.resync_with(600, &mut learnt).next.map(|next| next.0), Some(700));
}

#[test]
fn a_damaged_payload_is_one_lost_record() {
    let damaged = log(4).content(100);
    let Resync { damage, next, after, inside } = damaged.resync_at(100);
    assert!(!inside);
    let damage = damage.unwrap();
    assert!(damage.reason.starts_with("deed 7: checksum "), "{}", damage.reason);
    assert_eq!((damage.offset, damage.end, damage.next_intact), (100, 200, Some(200)));
    assert_eq!((damage.first_lost, damage.records_lost), (Some(7), Some(1)));
    assert!(damage.next_proved && after.is_none());
    assert_eq!(next, Some((200, Some(8))));
    // Without a number for the record.
    let nameless = Log { number: None, ..damaged };
    assert_eq!(nameless.goes_on(), Some((200, None, true, Some(1))));
}

#[test]
fn the_last_record_has_none_after_it() {
    let last = log(2).content(100).resync_at(100);
    assert_eq!(last.next, None);
    let damage = last.damage.unwrap();
    assert_eq!((damage.end, damage.next_intact, damage.next_proved), (200, None, false));
    assert_eq!(damage.records_lost, Some(1));
    // Zeros follow, as in reserved space: reading continues there, and ends.
    let mut ahead = log(2).content(100);
    ahead.file.bytes.resize(300, 0);
    let found = Log { end: 300, ..ahead }.resync_at(100);
    assert_eq!(found.next, Some((200, Some(8))));
    let damage = found.damage.unwrap();
    assert_eq!((damage.end, damage.next_intact, damage.next_proved), (200, None, false));
}

#[test]
fn only_zeros_are_no_damage() {
    let mut zeros = log(1);
    zeros.file.bytes.resize(300, 0);
    let found = Log { end: 300, ..zeros }.resync_at(100);
    assert!(found.damage.is_none() && found.next.is_none() && found.after.is_none());
}

#[test]
fn adjacent_damaged_records_are_lost_separately() {
    let two = log(5).content(100).content(200);
    let found = two.resync_at(100);
    assert_eq!(found.next, Some((200, Some(8))));
    let damage = found.damage.unwrap();
    assert_eq!((damage.end, damage.records_lost), (200, Some(1)));
    // The other one is no intact record.
    assert_eq!((damage.next_intact, damage.next_proved), (None, false));
}

#[test]
fn a_chain_is_proved_by_its_target() {
    let broken = || log(5).content(100).wiped(300).wiped(400);
    let proved = |log: Log| log.goes_on().unwrap().2;
    assert!(!proved(broken()));
    // The end of the data, also over a damaged record with a length that leads on.
    assert!(proved(log(3).content(100)));
    assert!(proved(log(4).content(100).trailer(400, u64::MAX)));
    assert!(proved(log(5).content(100).trailer(400, u64::MAX)));
    assert!(proved(log(5).content(100).head(300, u64::MAX)));
    assert!(!proved(log(5).content(100).wiped(400)));
    // A border; a length that leads over the border proves nothing.
    assert!(proved(Log { index: vec![(300, 9)], ..broken() }));
    assert!(proved(Log { known_end: Some(300), ..broken() }));
    assert!(!proved(Log { index: vec![(250, 9)], ..broken() }));
    assert!(!proved(Log { index: vec![(250, 9)], ..log(5).content(100) }));
    // The end of the longest record that can begin at the damage.
    assert!(!proved(Log { limit: 180, ..broken() }));
    assert!(proved(Log { limit: 179, ..broken() }));
}

#[test]
fn a_length_that_leads_on_is_believed() {
    // By the head, by the trailer.
    assert_eq!(log(4).trailer(200, u64::MAX).goes_on(), ONE_LOST);
    assert_eq!(log(4).head(100, u64::MAX).goes_on(), ONE_LOST);
    // To the end of the data.
    for last in [log(2).trailer(200, u64::MAX), log(2).head(100, u64::MAX)] {
        let found = last.resync_at(100);
        assert_eq!(found.next, None);
        assert_eq!(found.damage.unwrap().records_lost, Some(1));
    }
    // To a border, whatever lies there.
    for at_border in [log(5).trailer(200, u64::MAX), log(5).head(100, u64::MAX)] {
        let known = Log { index: vec![(200, 8)], ..at_border.wiped(200) };
        assert_eq!(known.goes_on(), Some((200, Some(8), false, Some(1))));
        let found = known.resync_at(100).damage.unwrap();
        assert_eq!((found.end, found.next_intact), (200, None));
    }
    // Two trailers lead back, and the search takes the trailer that leads on.
    let payload = log(4).head(100, u64::MAX).trailer(160, 40);
    assert_eq!(payload.goes_on(), ONE_LOST);
}

#[test]
fn a_length_across_a_border_is_ignored() {
    // Both lengths of the damaged record are wrong; one length leads to a record further on.
    let by_head = || log(5).head(100, 180).trailer(200, u64::MAX);
    assert_eq!(by_head().goes_on(), Some((300, Some(8), true, Some(1))));
    let at_its_end = Log { index: vec![(300, 9)], ..by_head() };
    assert_eq!(at_its_end.goes_on(), Some((300, Some(8), true, Some(1))));
    let over_it = Log { index: vec![(200, 8)], ..by_head() };
    assert_eq!(over_it.goes_on(), ONE_LOST);
    let by_trailer = || log(5).head(100, u64::MAX).trailer(200, u64::MAX).trailer(300, 180);
    assert_eq!(by_trailer().goes_on(), Some((300, Some(8), true, Some(1))));
    let at_its_end = Log { index: vec![(300, 9)], ..by_trailer() };
    assert_eq!(at_its_end.goes_on(), Some((300, Some(8), true, Some(1))));
    // Two records end there, not one.
    let over_it = Log { index: vec![(200, 8)], ..by_trailer() };
    assert_eq!(over_it.goes_on(), Some((300, None, true, None)));
}

#[test]
fn a_border_after_the_end_proves_nothing_earlier() {
    // The head claims 1,000 bytes, an intact record follows, and then nothing that parses.
    let claims = || {
        let ends = log(3).head(100, 1_000).trailer(200, u64::MAX);
        ends.write(200, &record(50)).write(250, &[0xee; 50])
    };
    assert_eq!(claims().goes_on(), None);
    // A record ends at the border, so the claim is wrong.
    let at_the_end = Log { known_end: Some(300), ..claims() };
    assert_eq!(at_the_end.goes_on(), Some((200, None, false, None)));
    assert_eq!(Log { known_end: Some(301), ..claims() }.goes_on(), None);
}

#[test]
fn the_next_border_counts_the_searched_records() {
    let searched = || log(8).wiped(100).wiped(200);
    assert_eq!(searched().goes_on(), Some((300, None, true, None)));
    let known = |index| Log { index, ..searched() };
    assert_eq!(known(vec![(300, 9)]).goes_on(), Some((300, Some(9), true, Some(2))));
    assert_eq!(known(vec![(400, 10)]).goes_on(), Some((300, Some(9), true, Some(2))));
    assert_eq!(known(vec![(600, 12)]).goes_on(), Some((300, Some(9), true, Some(2))));
    let over_damage = Log { index: vec![(600, 12)], ..searched().content(400) };
    assert_eq!(over_damage.goes_on(), Some((300, Some(9), true, Some(2))));
    // A border before the record says nothing about it, and does not end the chain.
    assert_eq!(known(vec![(200, 8)]).goes_on(), Some((300, None, true, None)));
    // Numbers that contradict each other count nothing.
    assert_eq!(known(vec![(400, 3)]).goes_on(), Some((300, Some(2), true, None)));
    assert_eq!(known(vec![(600, 1)]).goes_on(), Some((300, None, true, None)));
}

#[test]
fn reading_resumes_at_the_border_after_garbage() {
    let wiped = log(4).wiped(100).wiped(200).wiped(300);
    assert_eq!(wiped.goes_on(), None);
    let known = Log { index: vec![(300, 9)], ..wiped };
    assert_eq!(known.goes_on(), Some((300, Some(9), false, Some(2))));
    let at_the_end = Log { index: vec![], known_end: Some(400), ..known };
    assert_eq!(at_the_end.goes_on(), None);
}

#[test]
fn the_preceding_length_counts_the_lost_records() {
    // The length leads to the end of the damaged record by the record's own head.
    let two = log(5).trailer(200, u64::MAX).head(200, u64::MAX);
    assert_eq!(two.goes_on(), Some((300, Some(9), true, Some(2))));
    // The length leads somewhere else.
    let unknown = log(5).head(100, u64::MAX).trailer(200, u64::MAX).content(200);
    assert_eq!(unknown.goes_on(), Some((300, None, true, None)));
}

#[test]
fn the_next_record_ends_one_beyond_64_mib() {
    let long = (65 << 20) - FRAMING_BYTES;
    let mut bytes = record(100);
    let codec = codec(1 << 32);
    // Zeros are passed over quickly.
    codec.encode(&mut bytes, 7, &vec![0; long]);
    let next = bytes.len() as u64;
    bytes.extend(record(100).repeat(2));
    let mut log = Log { limit: 1 << 32, ..Log::of(bytes).head(100, u64::MAX) };
    log.file.has_holes = true;
    assert_eq!(log.goes_on(), Some((next, Some(8), true, Some(1))));
    // A border where the record ends contradicts nothing.
    log.known_end = Some(next);
    assert_eq!(log.goes_on(), Some((next, Some(8), true, Some(1))));
}

/// The last byte of the record before and the first bytes of the damaged record look like a record.
#[test]
fn bytes_before_the_damage_are_not_looked_at() {
    let before = || log(6).write(99, &record(276)).write(375, &record(125));
    assert_eq!(before().goes_on(), Some((375, None, true, None)));
    let rescue = Log { rescue: true, ..before() };
    assert_eq!(rescue.goes_on(), Some((375, None, true, None)));
}

#[test]
fn only_a_proved_chain_counts_inside_a_claim() {
    // The damaged head claims 1,000 bytes, the trailer is overwritten.
    let claims = |records| log(records).head(100, 1_000).trailer(200, u64::MAX);
    // It may be a torn record, whose payload ends with the data by chance.
    assert_eq!(claims(5).goes_on(), Some((200, None, false, None)));
    assert_eq!(claims(14).goes_on(), Some((200, None, true, None)));
    // One chain breaks, the next chain is proved: the claim is refuted, and the first record counts
    // too.
    assert_eq!(claims(7).wiped(300).goes_on(), Some((200, None, false, None)));
    // None is proved before the claimed end: the record there counts, those inside do not.
    let none = claims(14).wiped(300).wiped(400).wiped(1000).wiped(1300);
    let next = none.write(1_124, &record(100)).write(1_224, &[0xee; 176]);
    assert_eq!(next.goes_on(), Some((1_124, None, false, None)));
}

#[test]
fn equal_adjacent_lengths_may_meet() {
    // 8 bytes too many: then the trailer should stand where the next record's head does, and that
    // says as many.
    let mut bytes = record(100).repeat(2);
    bytes.extend(record(108));
    bytes.extend(record(100));
    let met = Log::of(bytes).head(100, 88);
    assert_eq!(met.goes_on(), ONE_LOST);
    // A record that begins with the damaged record's trailer.
    let nested = log(5).content(100).wiped(200).write(192, &record(100));
    assert_eq!(nested.goes_on(), Some((200, Some(8), false, Some(1))));
}

#[test]
fn after_the_last_acknowledged_byte_nothing_counts() {
    for from in [50, 100] {
        let torn = Log { unacknowledged_from: Some(from), ..log(4).content(100) };
        assert_eq!(torn.goes_on(), None);
        assert_eq!(torn.resync_at(100).damage.unwrap().records_lost, None);
        assert!(Log { rescue: true, ..torn }.resync_at(100).after.is_none());
        // A record longer than this handle's limit is no torn tail.
        let beyond = Log { unacknowledged_from: Some(from), ..log(4).content(100) };
        assert_eq!(Log { is_beyond_limit: true, ..beyond }.goes_on(), ONE_LOST);
        let wiped = Log { unacknowledged_from: Some(from), ..log(4).wiped(100) };
        let found = Log { is_beyond_limit: true, ..wiped }.goes_on();
        assert_eq!(found, Some((200, None, true, None)));
    }
    let acknowledged = Log { unacknowledged_from: Some(101), ..log(4).content(100) };
    assert_eq!(acknowledged.goes_on(), ONE_LOST);
    // No search reaches the place.
    let searched = |from| Log { unacknowledged_from: Some(from), ..log(4).wiped(100).wiped(200) };
    assert_eq!(searched(300).goes_on(), None);
    assert_eq!(searched(400).goes_on(), Some((300, None, true, None)));
}

#[test]
fn an_intact_record_in_disorder_is_no_damage() {
    let log = log(4);
    let bad = |found, expected| {
        let (what, against) = ("number", "the next one");
        Bad { what, found, against, expected, framed_len: None }
    };
    let found = log.resync(log.stretch(100), &Stop::Unlinked(bad(12, 9)));
    let damage = found.damage.unwrap();
    assert_eq!((damage.offset, damage.end, damage.next_intact), (100, 100, Some(100)));
    assert_eq!((damage.first_lost, damage.records_lost), (Some(7), Some(3)));
    assert!(damage.next_proved && damage.reason.starts_with("deed 7: number 12"));
    assert_eq!((found.next, found.after.is_none()), (Some((100, Some(10))), true));
    // One with a lower number than expected.
    let found = log.resync(log.stretch(100), &Stop::Unlinked(bad(3, 9)));
    assert_eq!(found.damage.unwrap().records_lost, None);
    assert_eq!(found.next, Some((100, None)));
    // A torn tail has none that counts.
    let torn = Log { unacknowledged_from: Some(100), ..log };
    assert_eq!(torn.resync(torn.stretch(100), &Stop::Unlinked(bad(12, 9))).next, None);
}

#[test]
fn a_rescue_reads_inside_a_damaged_record() {
    let rescue = |log: Log| Log { rescue: true, ..log };
    let mut bytes = record(100);
    codec(LIMIT).encode(&mut bytes, 7, &[record(50), record(60), vec![1; 20]].concat());
    let (inner, next) = (112, bytes.len() as u64);
    bytes.extend(record(100));
    let nested = || Log::of(bytes.clone()).write(230, &[9]);
    assert_eq!(nested().goes_on(), Some((next, Some(8), true, Some(1))));
    let Resync { damage, next: at, after, inside } = rescue(nested()).resync_at(100);
    assert!(inside);
    let damage = damage.unwrap();
    assert_eq!((damage.offset, damage.end, damage.next_intact), (100, inner, Some(inner)));
    assert_eq!((damage.next_proved, damage.records_lost), (false, Some(1)));
    assert_eq!(at, Some((inner, None)));
    let after = after.unwrap();
    assert_eq!((after.place, after.proved), ((next, Some(8)), true));
    // From one to the next, up to the end of the damaged record.
    let read = rescue(nested());
    let inside = |at, end| {
        let stretch = Stretch { end, ..read.stretch(at) };
        next_inside(stretch, &Stop::Blank, "deed 7", &mut Learnt::default()).unwrap()
    };
    let found = inside(inner, next);
    assert_eq!(found.next, Some((162, None)));
    let damage = found.damage.unwrap();
    assert_eq!((damage.offset, damage.end, damage.next_intact), (inner, 162, Some(162)));
    assert!(damage.reason.starts_with("deed 7: unwritten") && found.after.is_none());
    let found = inside(162, next);
    assert_eq!((found.next, found.damage.unwrap().end), (None, next));
    // A damaged record without a record inside, and a last record.
    let without = rescue(log(4).content(100)).resync_at(100);
    assert_eq!((without.next, without.after.is_none()), (Some((200, Some(8))), true));
    let mut last = nested();
    last.file.bytes.truncate(next as usize);
    let last = rescue(Log { end: next, ..last }).resync_at(100);
    assert_eq!(last.next, Some((inner, None)));
    assert_eq!(last.after.unwrap().place, (next, Some(8)));
}
