//! The fuzz targets' seeds and former crashers, replayed by an ordinary compiler.
//!
//! `make fuzz` runs the targets with libFuzzer; what it finds goes to `fuzz/crashers/TARGET/`.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind).join(target);
    let entries = fs::read_dir(dir).map(|dir| dir.flatten().map(|entry| entry.path()).collect());
    let mut paths: Vec<PathBuf> = entries.unwrap_or_default();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

fn replay(target: &str) {
    let (_, body) = targets::TARGETS.into_iter().find(|(name, _)| *name == target).unwrap();
    let seeds = inputs("seeds", target);
    assert!(!seeds.is_empty(), "no seeds for {target}");
    for path in seeds.into_iter().chain(inputs("crashers", target)) {
        let input = fs::read(&path).unwrap();
        if let Err(panic) = std::panic::catch_unwind(|| body(&input)) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            panic!("{}: {text}", path.display());
        }
    }
}

#[test]
fn the_parser_stands_all_saved_inputs() {
    replay("parse");
}

#[test]
fn opening_stands_all_saved_inputs() {
    replay("open_on_bytes");
}

#[test]
fn histories_of_operations_end_well() {
    replay("operations");
}

#[test]
fn a_write_ahead_log_of_any_bytes_stands_all_saved_inputs() {
    replay("wal_open");
}

#[test]
fn histories_of_a_write_ahead_log_end_well() {
    replay("wal_operations");
}

#[test]
fn no_sidecar_changes_what_is_read() {
    replay("mark");
}

#[test]
fn a_ledger_of_any_bytes_stands_all_saved_inputs() {
    replay("ledger_open");
}

#[test]
fn histories_of_two_stores_with_crashes_lose_no_event() {
    replay("ledger_operations");
}
