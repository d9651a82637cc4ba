//! The metadata of a log that is brought over, and of a pier's top directory.

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::place::{Looked, Plan};
use super::read::Environment;
use super::write::Writer;
use super::{DATA_NAME, LMDB};
use crate::book::Meta;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Disk, Storage};

/// Whether metadata agrees with the source. A field without a value in the source is 0 in a book.
pub fn agrees(held: Meta, source: Meta) -> bool {
    source.who.is_none_or(|who| held.who == Some(who))
        && source.version.is_none_or(|version| held.version == Some(version))
        && source.life.is_none_or(|life| held.life == Some(life))
        && source.fake.is_none_or(|fake| held.fake == Some(fake))
}

/// Whether a file of the destination has content. LMDB makes an empty file before its first pages,
/// and a kill may leave the file empty.
pub fn is_begun(storage: &dyn Storage, path: &Path) -> bool {
    let held = storage.open(path, Access::Read).and_then(|file| file.len());
    held.is_ok_and(|bytes| bytes > 0)
}

/// Refuse metadata with some fields and without others: a book has all fields, and a `fake` of 0
/// means a fake ship.
pub fn check_whole(meta: Meta) -> Result<()> {
    let fields = [
        ("who", meta.who.is_some()),
        ("version", meta.version.is_some()),
        ("life", meta.life.is_some()),
        ("fake", meta.fake.is_some()),
    ];
    let named = |there: bool| {
        let names = fields.iter().filter(|field| field.1 == there).map(|field| field.0);
        names.collect::<Vec<_>>().join(", ")
    };
    let (held, missing) = (named(true), named(false));
    if held.is_empty() || missing.is_empty() {
        return Ok(());
    }
    let message =
        format!("the metadata has {held}, but lacks {missing}, which would be 0 in a book");
    Err(Error::new(ErrorKind::Corrupt, message))
}

/// Refuse a destination that has other metadata already.
pub fn check_meta(held: Meta, meta: Meta, dest: &Path) -> Result<()> {
    if held == Meta::default() || agrees(held, meta) {
        return Ok(());
    }
    let message = format!("the destination has the metadata {held:?}, and the source {meta:?}");
    Err(Error::new(ErrorKind::AlreadyExists, message).at(dest))
}

/// Metadata in the form of LMDB: Urbit stores values without trailing zeros.
pub fn stripped(meta: &Meta) -> Vec<(Vec<u8>, Vec<u8>)> {
    let strip = |(key, mut value): (&str, Vec<u8>)| {
        let end = value.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        value.truncate(end);
        (key.as_bytes().to_vec(), value)
    };
    meta.values().into_iter().map(strip).collect()
}

/// The ship's metadata in the top directory of a pier; `None` if nothing was stored there.
pub fn read_top(storage: &dyn Storage, dir: &Path) -> Result<Option<Meta>> {
    let path = dir.join(DATA_NAME);
    let begun = storage.open(&path, Access::Read).and_then(|file| file.len());
    match begun {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        // LMDB makes an empty file before its first pages.
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(_) if seeded!(false, "unreadable-is-missing" => true) => return Ok(None),
        Err(e) => return Err(Error::io("open the environment", &path, e).of(LMDB)),
    }
    let environment = Environment::open(dir)?;
    let meta = environment.meta()?;
    environment.check_unchanged()?;
    Ok((meta != Meta::default()).then_some(meta))
}

/// Change the fields that are `Some` in the top directory of a pier, durably and all at once.
pub fn save_top(dir: &Path, meta: &Meta) -> Result<()> {
    Writer::open(dir, None).and_then(|writer| writer.save(&stripped(meta))).map_err(|e| e.of(LMDB))
}

/// The metadata of a pier, which stays in LMDB in the pier's top directory.
pub struct Top {
    values: Vec<(Vec<u8>, Vec<u8>)>,
    pub meta: Meta,
    events: Option<RangeInclusive<u64>>,
    path: PathBuf,
}

impl Top {
    pub fn read((source, _): &(PathBuf, PathBuf)) -> Result<Self> {
        let environment = Environment::open(source)?;
        let (values, meta) = (environment.values()?, environment.meta()?);
        let (events, path) = (environment.bounds()?, environment.path().to_path_buf());
        environment.check_unchanged()?;
        Ok(Self { values, meta, events, path })
    }

    /// In a pier with epochs, the top directory may still have events that Urbit left when it made
    /// the first epoch. They must be events of the epochs.
    pub fn check_events(&self, plan: &Plan, looked: &[Looked]) -> Result<()> {
        let in_epochs = plan
            .top
            .as_ref()
            .is_none_or(|(top, _)| plan.parts.iter().all(|part| part.source != *top));
        let Some(own) = self.events.as_ref().filter(|_| in_epochs) else {
            return Ok(());
        };
        let first = looked.first().map_or(0, |log| log.epoch + 1);
        let last = looked.last().and_then(|log| log.events.as_ref()).map(|range| *range.end());
        let last = last.or(looked.last().map(|log| log.epoch)).unwrap_or(0);
        if first <= *own.start() && *own.end() <= last {
            return Ok(());
        }
        let (start, end) = (own.start(), own.end());
        let message = format!(
            "the top directory holds events {start} to {end}, and the epochs {first} to {last}"
        );
        Err(Error::new(ErrorKind::Contiguity, message).at(&self.path))
    }

    /// Refuse a destination with events, or other metadata, in its top directory.
    pub fn check_dest(&self, dest: &Path) -> Result<()> {
        if !is_begun(&Disk, &dest.join(DATA_NAME)) {
            return Ok(());
        }
        let held = Environment::open(dest)?;
        if let Some(range) = held.bounds()? {
            let message = format!(
                "the destination holds events {} to {} in its top directory",
                range.start(),
                range.end()
            );
            return Err(held.error(ErrorKind::AlreadyExists, message));
        }
        let others: BTreeSet<_> = held.values()?.into_iter().collect();
        if others.iter().all(|value| self.values.contains(value)) {
            return Ok(());
        }
        check_meta(held.meta()?, self.meta, dest)
    }

    /// Store the metadata durably, and read it back.
    pub fn save(&self, dest: &Path) -> Result<()> {
        let writer = Writer::open(dest, None)?;
        writer.save(&self.values)?;
        let stored: BTreeSet<_> = writer.held.values()?.into_iter().collect();
        if self.values.iter().all(|value| stored.contains(value)) {
            return Ok(());
        }
        Err(writer.held.error(ErrorKind::Corrupt, "the metadata that was written is not there"))
    }
}
