//! The result of reading a damaged file, in each way, compared with an oracle that knows the byte layout and nothing of
//! the crate.

use std::path::Path;
use std::sync::Arc;

use deedbook::ledger::{LedgerStore, OnCorrupt, Options};
use deedbook::report::Verdict;
use deedbook::storage::Memory;

use super::spool::{BASE, DIR, listing, parse, prefix, put, shown, small};

pub struct Expected {
    pub prefix: Vec<Vec<u8>>,
    pub valid_end: usize,
    pub verdict: Verdict,
}

pub fn expect(bytes: &[u8]) -> Expected {
    let (prefix, valid_end) = prefix(bytes);
    let rest = &bytes[valid_end..];
    let verdict = match rest {
        [] => Verdict::Clean,
        _ if (valid_end + 1..bytes.len()).any(|at| parse(bytes, at).is_some()) => Verdict::Corrupt,
        _ if rest.iter().all(|&byte| byte == 0) => Verdict::Open,
        _ => Verdict::Torn,
    };
    Expected { prefix, valid_end, verdict }
}

pub fn opened(bytes: &[u8], on_corrupt: OnCorrupt) -> (Memory, LedgerStore) {
    opened_with(bytes, Options::new().on_corrupt(on_corrupt))
}

fn opened_with(bytes: &[u8], options: Options) -> (Memory, LedgerStore) {
    let memory = Memory::new();
    put(&memory, 0, bytes);
    let options = options.storage(Arc::new(memory.clone()));
    (memory, options.open(small(DIR, 1000)).unwrap())
}

/// The result of [`OnCorrupt::Skip`] for some bytes. The layout alone does not decide everything.
pub struct Skipped {
    pub sent: Vec<Vec<u8>>,
    /// Intact records that are not sent because they may lie inside a damaged record.
    pub withheld: u64,
    pub kept: bool,
}

/// Fetch a file with each `OnCorrupt`, and compare the sent records and the fate of the file with the oracle.
pub fn judge(bytes: &[u8], what: &str) -> Skipped {
    judge_with(bytes, deedbook::ledger::Options::RECORD_BYTES_MAX, what)
}

/// The same with another limit of a payload, up to which a damaged length is believed.
pub fn judge_with(bytes: &[u8], record_bytes_max: u64, what: &str) -> Skipped {
    // The sidecar may have a higher limit than an option may ask for.
    let record_bytes_max = record_bytes_max.min(0x7fff_f000 - 8);
    let expected = expect(bytes);
    let with =
        |on_corrupt| Options::new().on_corrupt(on_corrupt).record_bytes_max(record_bytes_max);
    let untouched = || {
        let storage = Arc::new(opened_with(bytes, with(OnCorrupt::Stop)).0);
        with(OnCorrupt::Stop).storage(storage)
    };
    let reports = untouched().verify(DIR, BASE).unwrap();
    let (_, report) = &reports[0];
    assert_eq!(report.verdict, expected.verdict, "{what}");
    assert_eq!(report.valid_end, expected.valid_end as u64, "{what}");
    let rescued = untouched().salvage(DIR, BASE, "/rescued").unwrap();
    let rescued = rescued[0].1.records;
    let mut skipped = Skipped { sent: Vec::new(), withheld: 0, kept: false };
    for on_corrupt in [OnCorrupt::Quarantine, OnCorrupt::Skip, OnCorrupt::Stop] {
        let what = format!("{what}, {on_corrupt:?}");
        let (memory, ledger) = opened_with(bytes, with(on_corrupt));
        let sent = match ledger.fetch(None, None).unwrap() {
            None => Vec::new(),
            Some(fetched) => {
                let files = shown(&fetched);
                assert_eq!(fetched.data.unwrap()[0].verdict(), expected.verdict, "{what}");
                ledger.remove(&fetched.removable.unwrap()).unwrap();
                files.into_iter().next().unwrap().1
            }
        };
        match on_corrupt {
            OnCorrupt::Skip => {
                assert!(sent.starts_with(&expected.prefix), "{what}");
                let withheld = report.records - sent.len() as u64;
                // Records possibly inside a damaged record are counted, but not sent.
                assert!(withheld <= report.uncertain, "{what}: {withheld} withheld: {report:?}");
                skipped.withheld = withheld;
                skipped.sent.clone_from(&sent);
            }
            _ => assert_eq!(sent, expected.prefix, "{what}"),
        }
        // After each fetch, the file blocks nothing, and only damage was lost.
        assert!(!ledger.has_data().unwrap(), "{what}");
        let quarantined = listing(&memory, Path::new("/spool/.deedbook/quarantine"));
        let kept = match expected.verdict {
            Verdict::Corrupt if on_corrupt == OnCorrupt::Quarantine => true,
            Verdict::Corrupt if on_corrupt == OnCorrupt::Skip => {
                sent.is_empty() || rescued > sent.len() as u64
            }
            Verdict::Corrupt | Verdict::Torn => sent.is_empty(),
            _ => false,
        };
        assert_eq!(quarantined.get("0-events").map(Vec::as_slice), kept.then_some(bytes), "{what}");
        skipped.kept |= kept && on_corrupt == OnCorrupt::Skip;
    }
    assert!(rescued >= skipped.sent.len() as u64, "{what}: a rescue gives less");
    skipped
}
