//! The fuzz targets' bodies with an ordinary compiler: seeds, former crashers, and variations of both.
//!
//! The variations are the same on every machine and after every change, because coverage does not
//! steer them: a new failure comes from the change. `DEEDBOOK_FUZZ_VARIATIONS` is their number for
//! each target, `DEEDBOOK_FUZZ_SEED` chooses others. `make fuzz` searches with libFuzzer; new
//! crashers go to `fuzz/crashers/TARGET/`.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use crate::support::common;
use crate::support::prelude::*;
use crate::support::report::number;
use common::Random;
use targets::Body;

fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind).join(target);
    let entries = fs::read_dir(dir).map(|dir| dir.flatten().map(|entry| entry.path()).collect());
    let mut paths: Vec<PathBuf> = entries.unwrap_or_default();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

fn check(body: Body, input: &[u8], what: &str) {
    let Err(panic) = std::panic::catch_unwind(|| body(input)) else { return };
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    panic!("{what}: {text}\ninput in hexadecimal: {hex}");
}

fn replay(target: &str) {
    let (_, body) = targets::TARGETS.into_iter().find(|(name, _)| *name == target).unwrap();
    let seeds = inputs("seeds", target);
    assert!(!seeds.is_empty(), "no seeds for {target}");
    let saved: Vec<PathBuf> = seeds.into_iter().chain(inputs("crashers", target)).collect();
    let known: Vec<Vec<u8>> = saved.iter().map(|path| fs::read(path).unwrap()).collect();
    for (path, input) in saved.iter().zip(&known) {
        check(body, input, &path.display().to_string());
    }
    let mut random = Random(number("DEEDBOOK_FUZZ_SEED", 1));
    for count in 0..of_tier("DEEDBOOK_FUZZ_VARIATIONS") {
        let (path, input) = one_of(&mut random, &saved, &known);
        let mut varied = input.to_vec();
        for _ in 0..=random.below(4) {
            vary(&mut varied, &mut random, &known);
        }
        check(body, &varied, &format!("variation {count}, of {}", path.display()));
    }
}

fn one_of<'a>(
    random: &mut Random,
    saved: &'a [PathBuf],
    known: &'a [Vec<u8>],
) -> (&'a Path, &'a [u8]) {
    let at = random.below(known.len() as u64) as usize;
    (&saved[at], &known[at])
}

fn vary(input: &mut Vec<u8>, random: &mut Random, known: &[Vec<u8>]) {
    let place = |random: &mut Random| random.below(input.len() as u64 + 1) as usize;
    let (a, b) = (place(random), place(random));
    let (from, to) = (a.min(b), a.max(b));
    match random.below(8) {
        0 if a < input.len() => input[a] ^= 1 << random.below(8),
        1 if a < input.len() => input[a] = random.next() as u8,
        2 if a < input.len() => input[a] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5) as usize],
        3 => input.truncate(a),
        4 => drop(input.drain(from..to.min(from + 16))),
        5 => {
            let again = input[from..to.min(from + 64)].to_vec();
            input.splice(a..a, again);
        }
        6 => {
            let other = &known[random.below(known.len() as u64) as usize];
            let rest = random.below(other.len() as u64 + 1) as usize;
            input.truncate(a);
            input.extend(&other[rest..]);
        }
        _ => {
            let fresh: Vec<u8> = (0..=random.below(8)).map(|_| random.next() as u8).collect();
            input.splice(a..a, fresh);
        }
    }
    input.truncate(4096);
}

macro_rules! replays {
    ($(fn $test:ident() $target:literal)*) => {
        $(
            #[test]
            fn $test() {
                replay($target);
            }
        )*
    };
}

replays! {
    fn the_parser_stands_all_saved_inputs() "parse"
    fn opening_stands_all_saved_inputs() "open_on_bytes"
    fn histories_of_operations_end_well() "operations"
    fn a_write_ahead_log_survives_all_saved_inputs() "wal_open"
    fn histories_of_a_write_ahead_log_end_well() "wal_operations"
    fn no_sidecar_changes_what_is_read() "mark"
    fn an_intent_of_any_lines_leads_nowhere_outside() "intent"
    fn consumers_of_any_lines_drop_no_record() "consumers"
    fn a_record_of_any_transactions_repeats_no_batch() "transactions"
    fn an_intent_to_cut_keeps_a_prefix() "cut"
    // Promise: ledger-any-bytes.
    fn a_ledger_survives_all_saved_inputs() "ledger_open"
    // Promise: ledger-power-loss.
    fn crashing_two_stores_loses_no_event() "ledger_operations"
    fn hostile_pages_lead_lmdb_nowhere_else() "lmdb_open"
    fn any_index_bytes_open_or_are_damaged() "index_open"
    // Promise: store-any-bytes.
    fn segments_of_any_pages_miss_no_intact_record() "nostr_pages"
    // Promise: store-any-lines.
    fn any_tags_are_read_as_specified() "nostr_tags"
    // Promise: store-any-lines.
    fn batched_lines_import_like_single_lines() "nostr_import"
    fn any_json_event_is_refused_or_unchanged() "nostr_json"
    // Promise: store-any-bytes.
    fn an_event_stores_log_gives_only_written_records() "nostr_wal"
    // Promise: store-power-loss.
    fn crashing_an_event_store_loses_no_event() "nostr_operations"
}
