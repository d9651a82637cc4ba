//! Every storage call fails, once and forever, in every way; and disks lie. Afterwards the handle
//! works or is poisoned, and the reopened log has every acknowledged record. Runs for every format.
//!
//! ```text
//! DEEDBOOK_FAULT_STRIDE   every n-th call only
//! DEEDBOOK_TEST_SECONDS   time limit of each test (default 1800)
//! DEEDBOOK_TRUST_DIR      where faults-*.json is written
//! ```

mod background;
mod lies;
mod metadata;
mod poison;
mod reading;
mod rollback;

use crate::support::prelude::*;
use crate::support::{harness, report};
use harness::config::Config;
use harness::faulty::{HONEST, Script, expect_typed};
use harness::files::{cut, damage, log_bytes};
use harness::history::{Run, SECTOR_BYTES};
use harness::{ALWAYS, Log, Record, Subject, judge, mix, states, views, worst};

/// All scripts run in the first two; the other configurations run the first script.
const CONFIGS: [&str; 7] = [
    "manual",
    "always",
    "manual-reserve",
    "always-reserve",
    "always-acknowledged",
    "bytes",
    "none",
];

for_every_subject! {
    /// Fails the k-th call for k = 1, 2, ... until no call is left.
    every_call_fails_once_and_for_good
}

for_subject! {
    nostr_wal_files, harness::subjects::NOSTR_WAL_FILES, every_call_fails_once_and_for_good
}

// Promise: call-fails, wal-call-fails.
fn every_call_fails_once_and_for_good(subject: &Subject) {
    let stride = report::of_tier("DEEDBOOK_FAULT_STRIDE").max(1);
    let nested = subject.nested();
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for kind in HONEST {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, config) in CONFIGS.map(Config::named).into_iter().enumerate() {
            if subject.appends_sync && config.how.acknowledged() {
                continue;
            }
            let scripts = subject.steps.scripts;
            for &steps in &scripts[..if number < 2 { scripts.len() } else { 1 }] {
                let script = Script { subject, config, steps, nested: &nested };
                for (offset, &times) in kind.times.iter().enumerate() {
                    for at in (1 + offset as u64 % stride..).step_by(stride as usize) {
                        let fault = Fault { at, of: None, what: kind.what(at), times };
                        let met = match script.run(fault) {
                            Ok(met) => met,
                            Err(what) => {
                                failures.push(format!("{} {steps} {fault:?}: {what}", config.name));
                                break;
                            }
                        };
                        if at > met.calls {
                            break;
                        }
                        *counts.entry("faults").or_default() += u64::from(met.fired);
                        *counts.entry("refused").or_default() += met.refused;
                        *counts.entry("unknown").or_default() += met.unknown;
                    }
                }
            }
        }
        let counts: Vec<_> = counts.iter().map(|(key, n)| format!("\"{key}\": {n}")).collect();
        lines.push(format!("    \"{}\": {{{}}}", kind.name, counts.join(", ")));
    }
    println!("{}", lines.join("\n"));
    let json = format!(
        "{{\n  \"format\": \"{}\",\n  \"failures\": {},\n  \"faults\": {{\n{}\n  }}\n}}\n",
        subject.name,
        failures.len(),
        lines.join(",\n")
    );
    report::write(&format!("faults-{}", subject.name), &json);
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
