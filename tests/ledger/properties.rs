//! Any payloads, in any portions, with any limits, come back as they were appended.

use std::path::Path;

use proptest::prelude::*;

use crate::support::ledger::spool::{
    DIR, fetch_all, file_of, listing, memory, prefix, shown, small,
};

proptest! {
    #[test]
    fn whatever_was_appended_is_fetched_in_order(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..120),
        portions in prop::collection::vec(1usize..9, 1..30),
        max_file_size in 100usize..2000,
        file_records_max in prop::option::of(1u64..20),
        fetches in any::<u64>(),
    ) {
        let (memory, options) = memory();
        let options = options.file_records_max(file_records_max);
        let ledger = options.open(small(DIR, max_file_size)).unwrap();
        let (mut at, mut sent) = (0, Vec::new());
        let mut indexes = Vec::new();
        for (round, portion) in portions.iter().cycle().enumerate() {
            let more = &payloads[at..payloads.len().min(at + portion)];
            match portion {
                1 => ledger.append(&more[0]).map(drop).unwrap(),
                _ => ledger.append_many(more).map(drop).unwrap(),
            }
            at += more.len();
            if fetches >> (round % 64) & 1 == 1 || at == payloads.len() {
                let files = listing(&memory, Path::new(DIR));
                let fetched = ledger.fetch(None, None).unwrap().unwrap();
                let shown = shown(&fetched);
                prop_assert_eq!(files.len(), shown.len());
                for (index, found) in shown {
                    // The bytes are those of the specification, and within the limits.
                    let bytes = &files[&format!("{index}-events")];
                    prop_assert_eq!(bytes, &file_of(&found));
                    prop_assert!(prefix(bytes).1 == bytes.len());
                    prop_assert!(file_records_max.is_none_or(|max| found.len() as u64 <= max));
                    let last = found.last().unwrap().len() + 8;
                    prop_assert!(bytes.len() - last <= max_file_size);
                    indexes.push(index);
                    sent.extend(found);
                }
                ledger.remove(&fetched.removable.unwrap()).unwrap();
            }
            if at == payloads.len() {
                break;
            }
        }
        prop_assert_eq!(sent, payloads);
        prop_assert!(indexes.windows(2).all(|two| two[0] + 1 == two[1]), "{:?}", indexes);
        prop_assert!(fetch_all(&ledger).is_empty());
    }
}
