//! How a ledger is recognised: by a counter, or by an intact record in a file `N-BASE`.

use std::ffi::OsStr;
use std::path::Path;

use super::site::Site;
use crate::error::Result;
use crate::ledger::codec::file_parts;
use crate::ledger::directory::counter;
use crate::ledger::{Options, bases, is_ledger_file};
use crate::sidecar::sidecar_dir;
use crate::storage::Lies;

/// The file or the counter of the first ledger; its records are the proof, not its name.
pub fn evidence(site: &Site<'_>) -> Option<String> {
    if site.is_file() {
        let holds = is_ledger_file(site.path, &Options::default()).unwrap_or(false);
        return holds.then(|| site.name().to_owned());
    }
    // `resembling` says why they cannot be read, if nothing else is there.
    let found = bases(site.path, &Options::default()).unwrap_or_default();
    named(site, found.first()?)
}

/// The name of a ledger's file, for the error that nothing was found. Fails with the error that hid the ledger.
pub fn resembling(site: &Site<'_>) -> Result<Option<String>> {
    bases(site.path, &Options::default())?;
    let Some(name) = site.first(|name| base_of(name).is_some()) else { return Ok(None) };
    let base = base_of(&name).unwrap_or_default();
    Ok(Some(format!(
        "{name} is named as a ledger's file, and has no intact record: if it is one, name its base ({base})"
    )))
}

/// Whether `base` names files that are there. Then damage may hide all their records.
pub fn is_meant(site: &Site<'_>, base: &str) -> bool {
    match site.is_file() {
        true => base_of(site.name()) == Some(base),
        false => named(site, base).is_some(),
    }
}

pub fn is_at(path: &Path) -> bool {
    let options = Options::default();
    is_ledger_file(path, &options).unwrap_or(false)
        || bases(path, &options).is_ok_and(|found| !found.is_empty())
}

fn base_of(name: &str) -> Option<&str> {
    file_parts(OsStr::new(name)).map(|(_, base)| base)
}

/// A file of the ledger; else its counter.
fn named(site: &Site<'_>, base: &str) -> Option<String> {
    let counter = || {
        let name = format!("{}{base}", counter::PREFIX);
        let path = sidecar_dir(Path::new("")).join(name);
        Lies::behind(&site.path.join(&path)).ok().map(|_| path.display().to_string())
    };
    site.first(|name| base_of(name) == Some(base)).or_else(counter)
}
