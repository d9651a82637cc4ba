//! Results as JSON, for the published table.

use std::path::PathBuf;

/// The directory of the results: `DEEDBOOK_TRUST_DIR`, or `trust` in the build directory.
pub fn dir() -> PathBuf {
    let in_build = || {
        let binary = std::env::current_exe().expect("a test binary has a path");
        let target = binary.ancestors().nth(3).expect("target/profile/deps/test");
        target.join("trust")
    };
    std::env::var_os("DEEDBOOK_TRUST_DIR").map_or_else(in_build, PathBuf::from)
}

pub fn write(name: &str, json: &str) {
    let dir = dir();
    std::fs::create_dir_all(&dir).expect("the result directory can be made");
    std::fs::write(dir.join(format!("{name}.json")), json).expect("the result can be written");
}

const TIERS: &str = include_str!("../tiers.txt");
const NAMES: [&str; 3] = ["quick", "full", "trust"];

pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name}={text}")),
        Err(_) => default,
    }
}

/// The same; the default is the number of `tests/tiers.txt` for the tier in `DEEDBOOK_TIER`.
pub fn of_tier(name: &str) -> u64 {
    let tier = std::env::var("DEEDBOOK_TIER").unwrap_or_else(|_| NAMES[0].into());
    let column = NAMES.iter().position(|&of| of == tier);
    let column = column.unwrap_or_else(|| panic!("DEEDBOOK_TIER={tier}, must be one of {NAMES:?}"));
    let row = name.strip_prefix("DEEDBOOK_");
    let mut rows = TIERS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let words = rows.find(|words| words.first().copied() == row);
    let word = words.and_then(|words| words.get(1 + column)?.parse().ok());
    number(name, word.unwrap_or_else(|| panic!("{name} is not in tests/tiers.txt")))
}
