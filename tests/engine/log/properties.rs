//! Round trips of arbitrary histories, and the same records by every way of reading.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// `DEEDBOOK_CASES=100` tries a hundred times as many.
fn config(cases: u32) -> ProptestConfig {
    let times = std::env::var("DEEDBOOK_CASES").ok().and_then(|text| text.parse().ok());
    let cases = cases * times.unwrap_or(1);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

impl std::fmt::Debug for dyn Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn numbered(format: &dyn Format, events: &[Event]) -> Vec<Record> {
    events.iter().fold(Vec::new(), |mut records, (tag, bytes)| {
        records.push(format.record_after(records.last(), format.first_ordinal(), *tag, bytes));
        records
    })
}

fn ordinal(format: &dyn Format, records: &[Record], i: usize) -> u64 {
    records.get(i).map_or_else(
        || {
            let after = |last: &Record| format.ordinal_after(last.number(), last.bytes.len());
            records.last().map_or(format.first_ordinal(), after)
        },
        Record::number,
    )
}

/// Every way of reading gives the model, or the requested part.
fn assert_reads(
    format: &dyn Format,
    log: &dyn Log,
    model: &[Event],
    range: (usize, usize),
    split_bytes: u64,
) {
    let all = numbered(format, model);
    let at = |i: usize| ordinal(format, &all, i.min(all.len()));
    let range = range.0.min(all.len())..range.1.min(all.len());
    let range = range.start..range.end.max(range.start);
    let (from, to) = (Some(at(range.start)), Some(at(range.end)));
    for (from, to, expected) in [(None, None, &all[..]), (from, to, &all[range.clone()])] {
        let forward = log.forward(from, to, false);
        assert!(forward.error.is_none() && forward.records == expected, "{:?}", forward.error);
        let mut back = log.backward(from, to);
        back.records.reverse();
        assert!(back.error.is_none() && back.records == expected, "{:?}", back.error);
        let mut given = Vec::new();
        for part in log.splits(split_bytes, from, to, false).unwrap() {
            assert!(part.error.is_none(), "{:?}", part.error);
            given.extend(part.records);
        }
        assert!(given == expected, "splits of {split_bytes} bytes");
    }
    assert_eq!(log.arrow(false).records, all);
    for record in all.iter().step_by(7) {
        assert_eq!(log.read(record.number()).unwrap().1, record.bytes);
    }
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn long_logs_read_the_same_without_their_sidecar(
        format in prop::sample::select(&LARGE[..]),
        count in 50usize..500,
        longest in 100u64..1200,
        closes in vec(0usize..500, 0..4),
        range in (0usize..500, 0usize..500),
        split_bytes in prop_oneof![Just(1), 1u64..300_000, Just(u64::MAX)],
        lost in vec(prop_oneof![Just("mark"), Just("index"), Just("lock")], 0..3),
    ) {
        let (memory, at) = in_memory(format);
        let model: Vec<_> = (0..count as u64).map(|i| event_of(i, longest)).collect();
        let mut log = format.create(&at, &[]);
        for (i, (tag, bytes)) in model.iter().enumerate() {
            log.append(*tag, bytes).unwrap();
            if closes.contains(&i) {
                log.close().unwrap();
                log = format.open(&at, Mode::Append, MANUAL).unwrap();
            }
        }
        log.close().unwrap();
        for name in lost {
            let _ = memory.remove(&format.sidecar(&at.path).join(name));
        }
        for mode in [Mode::Read, Mode::Append, Mode::Read] {
            let log = format.open(&at, mode, MANUAL).unwrap();
            assert_reads(format, &*log, &model, range, split_bytes);
            log.close().unwrap();
        }
    }

    /// Blocks just over half as long as a part made nearly twice as many parts as requested. With a known border at or
    /// after the wanted end, the rest became a part for every block: 214 instead of 1.
    #[test]
    fn ranges_split_into_no_more_parts_than_requested(
        format in prop::sample::select(&LARGE[..]),
        (count, longest) in prop_oneof![
            (1usize..1500, 0u64..1200),
            (1usize..60, 1_000u64..150_000),
        ],
        same in any::<bool>(),
        closed in any::<bool>(),
        ranges in vec((0usize..1600, 0usize..1600), 1..4),
        split_bytes in prop_oneof![
            Just(64 << 10), 1u64..2_000, 60_000u64..140_000, 1u64..3_000_000, Just(u64::MAX),
        ],
    ) {
        let (memory, at) = in_memory(format);
        let event = |i: u64| if same { (1, vec![7; longest as usize]) } else { event_of(i, longest) };
        let model: Vec<_> = (0..count as u64).map(event).collect();
        let log = format.create(&at, &[]);
        log.append_batch(&model).unwrap();
        log.close().unwrap();
        if !closed {
            let _ = memory.remove(&format.sidecar(&at.path).join("mark"));
        }
        let (log, all) = (format.read(&at).unwrap(), numbered(format, &model));
        let place = |i: usize| match all.get(i) {
            Some(record) => record.offset,
            None => log.end().unwrap(),
        };
        for (from, to) in std::iter::once((0, all.len())).chain(ranges) {
            let (from, to) = (from.min(all.len()), to.min(all.len()));
            let bytes = place(to).saturating_sub(place(from));
            let (first, stop) = (ordinal(format, &all, from), ordinal(format, &all, to));
            let parts = log.splits(split_bytes, Some(first), Some(stop), false).unwrap().len() as u64;
            let most = bytes / split_bytes + 2;
            prop_assert!(parts <= most, "{parts} parts of {bytes} bytes by {split_bytes}");
        }
    }
}
