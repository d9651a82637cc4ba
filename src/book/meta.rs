//! The metadata file `meta.bin`: 256 bytes, replaced atomically.
//!
//! ```text
//! 0 who 16   16 version 4   20 life 4   24 fake 1 (a loobean: 0 = yes)   25 zero 231
//! ```
//!
//! Little-endian. Source: the UIP "Book Event Log Persistence", "Metadata Format".

use std::io;
use std::path::Path;

use super::names::{FORMAT, META_NAME};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Storage, read_full, replace};

/// Size of the file.
pub const META_BYTES: usize = 256;

/// The ship's metadata. A field is `None` only where no file was ever saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Ship identity.
    pub who: Option<u128>,
    /// Version of the metadata.
    pub version: Option<u32>,
    /// Length of the lifecycle.
    pub life: Option<u32>,
    /// Whether the ship is fake.
    pub fake: Option<bool>,
}

/// The place of a key's bytes.
fn span(key: &str) -> Result<std::ops::Range<usize>> {
    match key {
        "who" => Ok(0..16),
        "version" => Ok(16..20),
        "life" => Ok(20..24),
        "fake" => Ok(24..25),
        _ => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("metadata key {key:?}, must be one of who, version, life, fake"),
        )
        .of(FORMAT)),
    }
}

/// The file's bytes; `None` where nothing was ever saved.
pub fn load(storage: &dyn Storage, dir: &Path) -> Result<Option<[u8; META_BYTES]>> {
    let path = dir.join(META_NAME);
    let file = match storage.open(&path, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| Error::io("open the metadata", &path, e).of(FORMAT))?,
    };
    let mut bytes = [0; META_BYTES + 1];
    let read = read_full(&*file, &mut bytes, 0)
        .map_err(|e| Error::io("read the metadata", &path, e).of(FORMAT))?;
    match bytes.first_chunk() {
        Some(whole) if read == META_BYTES => Ok(Some(*whole)),
        _ => {
            let size = file.len().unwrap_or(read as u64);
            let message = format!("metadata of {size} bytes, must be {META_BYTES}");
            Err(Error::new(ErrorKind::NotALog, message).at(&path).of(FORMAT))
        }
    }
}

impl Meta {
    /// The fields of `self`, and for missing fields the fields of `other`.
    #[cfg(feature = "lmdb")]
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            who: self.who.or(other.who),
            version: self.version.or(other.version),
            life: self.life.or(other.life),
            fake: self.fake.or(other.fake),
        }
    }

    /// Read all fields.
    ///
    /// # Errors
    ///
    /// Fails for a damaged file; see [Errors](crate#errors).
    pub fn read(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let Some(bytes) = load(storage, dir)? else {
            return Ok(Self::default());
        };
        let who = bytes.first_chunk().map(|chunk| u128::from_le_bytes(*chunk));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let fake = bytes.get(24).map(|&loobean| loobean == 0);
        Ok(Self { who, version: u32_at(16), life: u32_at(20), fake })
    }

    /// Change the fields that are `Some`, durably and all at once.
    ///
    /// # Errors
    ///
    /// Fails for a damaged file; see [Errors](crate#errors).
    pub fn save(&self, storage: &dyn Storage, dir: &Path, mode: u32) -> Result<()> {
        save(storage, dir, mode, &self.values())
    }

    /// The bytes of the fields that are `Some`, by their keys.
    pub(super) fn values(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut values: Vec<(&str, Vec<u8>)> = Vec::new();
        values.extend(self.who.map(|who| ("who", who.to_le_bytes().into())));
        values.extend(self.version.map(|version| ("version", version.to_le_bytes().into())));
        values.extend(self.life.map(|life| ("life", life.to_le_bytes().into())));
        values.extend(self.fake.map(|fake| ("fake", vec![u8::from(!fake)])));
        values
    }
}

/// Read one key's bytes; `None` where nothing was ever saved.
pub fn read_key(storage: &dyn Storage, dir: &Path, key: &str) -> Result<Option<Vec<u8>>> {
    let span = span(key)?;
    Ok(load(storage, dir)?.and_then(|bytes| bytes.get(span).map(<[u8]>::to_vec)))
}

/// Change some keys' bytes; each value must have its key's size. Nothing changes on an error.
pub fn save(
    storage: &dyn Storage,
    dir: &Path,
    mode: u32,
    values: &[(&str, impl AsRef<[u8]>)],
) -> Result<()> {
    let mut bytes = load(storage, dir)?.unwrap_or([0; META_BYTES]);
    for (key, value) in values {
        let (span, value) = (span(key)?, value.as_ref());
        let size = span.len();
        match bytes.get_mut(span).filter(|target| target.len() == value.len()) {
            Some(target) => target.copy_from_slice(value),
            None => {
                let message = format!("metadata {key:?} of {} bytes, must be {size}", value.len());
                return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
            }
        }
    }
    let path = dir.join(META_NAME);
    replace(storage, &path, &bytes, mode)
        .map_err(|e| Error::io("save the metadata", &path, e).of(FORMAT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    const DIR: &str = "/book";

    #[test]
    fn fields_are_saved_with_the_golden_bytes() {
        let (storage, dir) = (Memory::new(), Path::new(DIR));
        assert_eq!(Meta::read(&storage, dir).unwrap(), Meta::default());
        let meta = Meta {
            who: Some(0x1122_3344_5566_7788),
            version: Some(3),
            life: Some(7),
            fake: Some(false),
        };
        meta.save(&storage, dir, 0o644).unwrap();
        assert_eq!(Meta::read(&storage, dir).unwrap(), meta);
        let head = load(&storage, dir).unwrap().unwrap();
        let golden = [
            0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 7,
            0, 0, 0, 1,
        ];
        assert_eq!(head[..25], golden);
        let fake = Meta { fake: Some(true), ..Meta::default() };
        fake.save(&storage, dir, 0o644).unwrap();
        let both = Meta { fake: Some(true), ..meta };
        assert_eq!(Meta::read(&storage, dir).unwrap(), both);
    }

    #[test]
    fn a_wrong_size_or_key_changes_nothing() {
        let (storage, dir) = (Memory::new(), Path::new(DIR));
        save(&storage, dir, 0o644, &[("life", [1, 0, 0, 0])]).unwrap();
        let before = load(&storage, dir).unwrap();
        for (key, value) in [("life", &[1u8, 2, 3][..]), ("love", &[1]), ("who", &[0; 17])] {
            let error = save(&storage, dir, 0o644, &[(key, value)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key}");
        }
        assert_eq!(load(&storage, dir).unwrap(), before);
        storage.open(&dir.join(META_NAME), Access::Write).unwrap().set_len(255).unwrap();
        assert_eq!(Meta::read(&storage, dir).unwrap_err().kind(), ErrorKind::NotALog);
    }
}
