//! Opening a ledger: its name in a directory, and the envelope of a batch's body.

use std::path::{Path, PathBuf};

use deedbook::ledger::{self, Envelope, LedgerConfig, LedgerStore, Options};
use deedbook::{Error, Mode, Result};
use pyo3::prelude::*;

use crate::append::payload::{Limit, bytes_of};
use crate::ledger::RAISED;

/// The last part of the file names of a new ledger.
const BASE: &str = "events";

/// The name of the ledger if the caller gave none: the only ledger's name, or a new name.
fn base_at(path: &Path) -> Result<String> {
    let found = ledger::bases(path, &Options::default())?;
    match &found[..] {
        [] => Ok(BASE.into()),
        [base] => Ok(base.clone()),
        _ => Ok(Options::default().contents(path, None)?.base), // an error that has them
    }
}

/// Open for appending; with [`Mode::Create`], create a ledger.
pub fn append(
    mode: Mode,
    path: &Path,
    base: Option<String>,
    config: impl FnOnce(PathBuf, String) -> LedgerConfig,
    options: &Options,
) -> Result<LedgerStore> {
    let base = base.map_or_else(|| base_at(path), Ok)?;
    if mode == Mode::Create {
        let defaults = Options::default();
        let has_files = || Ok(!defaults.files(path, &base)?.is_empty());
        if has_files()? || ledger::bases(path, &defaults)?.contains(&base) {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::io("create the ledger", path, exists).of("ledger"));
        }
    }
    options.open(config(path.into(), base))
}

/// Header or footer: bytes, or a function that makes the bytes for each reader.
fn envelope(given: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Envelope> {
    let limit = Limit { format: "ledger", noun: name, bytes_max: u32::MAX.into() };
    if !given.is_callable() {
        let bytes = bytes_of(given, limit)?.as_ref().to_vec();
        return Ok(Box::new(move || bytes.clone()));
    }
    let make = given.clone().unbind();
    Ok(Box::new(move || {
        Python::attach(|py| {
            let made = make.bind(py).call0();
            let made = made.and_then(|made| Ok(bytes_of(&made, limit)?.as_ref().to_vec()));
            made.unwrap_or_else(|raised| {
                RAISED.set(Some(raised));
                Vec::new()
            })
        })
    }))
}

/// The envelope of a body, by default that of a JSON array.
pub fn around(
    given: Option<&Bound<'_, PyAny>>,
    name: &'static str,
    json: &'static [u8],
) -> PyResult<Envelope> {
    match given {
        Some(given) => envelope(given, name),
        None => Ok(Box::new(|| json.to_vec()) as Envelope),
    }
}
