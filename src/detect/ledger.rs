//! How a ledger is recognised: by a counter, or by an intact record in a file `N-BASE`.

use std::ffi::OsStr;

use super::site::Site;
use crate::error::Result;
use crate::ledger::codec::file_parts;
use crate::ledger::directory::counter;
use crate::ledger::{Options, bases, is_ledger_file};
use crate::sidecar::SIDECAR_NAME;

/// The file or the counter of the first ledger; its records are the proof, not its name.
pub fn evidence(site: &Site<'_>) -> Result<Option<String>> {
    let options = Options::default().storage(site.storage.clone());
    if site.is_file() {
        let holds = is_ledger_file(site.path, &options)?;
        return Ok(holds.then(|| site.name().to_owned()));
    }
    Ok(bases(site.path, &options)?.first().and_then(|base| named(site, base)))
}

/// The name of a ledger's file, for the error that nothing was found.
pub fn resembling(site: &Site<'_>) -> Option<String> {
    let name = site.first(|name| base_of(name).is_some())?;
    let base = base_of(&name)?;
    Some(format!(
        "{name} is named as a ledger's file, and has no intact record: if it is one, name its base ({base})"
    ))
}

/// Whether `base` names files that are there. Then damage may hide all their records.
pub fn is_meant(site: &Site<'_>, base: &str) -> bool {
    match site.is_file() {
        true => base_of(site.name()) == Some(base),
        false => named(site, base).is_some(),
    }
}

fn base_of(name: &str) -> Option<&str> {
    file_parts(OsStr::new(name)).map(|(_, base)| base)
}

/// A file of the ledger; else its counter.
fn named(site: &Site<'_>, base: &str) -> Option<String> {
    let is_counter = |name: &str| name.strip_prefix(counter::PREFIX) == Some(base);
    let counter = || site.first_in(SIDECAR_NAME, is_counter).ok()?;
    site.first(|name| base_of(name) == Some(base)).or_else(counter)
}
