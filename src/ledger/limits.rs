//! A ledger's limit of a payload, kept in the sidecar.

use std::path::Path;

use super::codec::{FORMAT, QUARANTINE_NAME, RECORD_BYTES_LIMIT, RECORD_BYTES_MAX};
use crate::error::Result;
use crate::sidecar::{SIDECAR_NAME, Settings, sidecar_dir};
use crate::storage::Storage;

/// The limit of a payload that the stores of a ledger in `dir` were opened with, if above the usual
/// limit. A limit that no store accepts is a forgery.
pub fn kept_limit(storage: &dyn Storage, dir: &Path) -> Result<u64> {
    highest_limit(dir, |sidecar| Settings::load(storage, sidecar, FORMAT))
}

/// As [`kept_limit`], for a store. A store moves damaged files away, so it must know the limit.
pub fn known_limit(storage: &dyn Storage, dir: &Path) -> Result<u64> {
    highest_limit(dir, |sidecar| Settings::load_known(storage, sidecar, FORMAT))
}

/// Files in the quarantine are the ledger's own, and go by its settings, too.
fn highest_limit(dir: &Path, load: impl Fn(&Path) -> Result<Option<Settings>>) -> Result<u64> {
    let is_quarantine = dir.file_name().is_some_and(|name| name == QUARANTINE_NAME);
    let around = dir.parent().filter(|_| is_quarantine);
    let around = around.filter(|around| around.file_name().is_some_and(|n| n == SIDECAR_NAME));
    let own = possible_limit(load(&sidecar_dir(dir))?);
    match around {
        Some(sidecar) => Ok(own.max(possible_limit(load(sidecar)?))),
        None => Ok(own),
    }
}

fn possible_limit(kept: Option<Settings>) -> u64 {
    let kept = kept.map(|kept| kept.record_bytes_max);
    let possible = kept.filter(|limit| (RECORD_BYTES_MAX..=RECORD_BYTES_LIMIT).contains(limit));
    possible.unwrap_or(RECORD_BYTES_MAX)
}
