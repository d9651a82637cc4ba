//! Results as JSON, for the published table.

use std::path::PathBuf;

/// Where results are written: `DEEDBOOK_TRUST_DIR`, or `trust` in the build directory.
pub fn dir() -> PathBuf {
    let in_build = || {
        let binary = std::env::current_exe().expect("a test binary has a path");
        let target = binary.ancestors().nth(3).expect("target/profile/deps/test");
        target.join("trust")
    };
    std::env::var_os("DEEDBOOK_TRUST_DIR").map_or_else(in_build, PathBuf::from)
}

/// Write `NAME.json`.
pub fn write(name: &str, json: &str) {
    let dir = dir();
    std::fs::create_dir_all(&dir).expect("the result directory can be made");
    std::fs::write(dir.join(format!("{name}.json")), json).expect("the result can be written");
}

/// A number from an environment variable.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name}={text}")),
        Err(_) => default,
    }
}
