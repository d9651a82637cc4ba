//! `.deedbook/damage`: damage that a check found and that opening does not see, as text with a checksum. While
//! the file exists, opening for writing is refused.
//!
//! ```text
//! offset 97564                  (byte at which the first damaged stretch begins)
//! end 97620                     (byte after it)
//! reason deed 813: checksum ...
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```

use std::path::Path;

use super::note::{Note, is_missing, value};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Damage;
use crate::storage::Storage;

const DAMAGE_NAME: &str = "damage";

/// Note damage durably. The note replaces an earlier one.
pub fn note_damage(storage: &dyn Storage, sidecar: &Path, damage: &Damage) -> Result<()> {
    let Damage { offset, end, reason, .. } = damage;
    let reason = reason.replace(|c: char| c.is_control(), " ");
    note(storage, sidecar).store(&format!("offset {offset}\nend {end}\nreason {reason}\n"))
}

/// The noted damage. A damaged note is an error.
pub fn noted_damage(storage: &dyn Storage, sidecar: &Path) -> Result<Option<Damage>> {
    let note = note(storage, sidecar);
    let noted = note.load().map_err(|e| e.with_advice("verify the log again"))?;
    let Some(lines) = noted else { return Ok(None) };
    let parsed = || {
        let mut lines = lines.lines();
        let mut value = |name| value(lines.next(), name);
        let (offset, end) = (value("offset")?.parse().ok()?, value("end")?.parse().ok()?);
        Some(Damage { offset, end, reason: value("reason")?.to_owned(), ..Damage::default() })
    };
    parsed().map(Some).ok_or_else(|| {
        note.error(ErrorKind::Corrupt, "says no place").with_advice("verify the log again")
    })
}

/// Delete the note.
pub fn forget_damage(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
    let path = sidecar.join(DAMAGE_NAME);
    match storage.remove(&path) {
        Err(e) if is_missing(&e) => return Ok(()),
        removed => removed.map_err(|e| Error::io("delete the note of damage", &path, e))?,
    }
    storage.sync_dir(sidecar).map_err(|e| Error::io("sync the directory", sidecar, e))
}

fn note<'a>(storage: &'a dyn Storage, sidecar: &Path) -> Note<'a> {
    let path = sidecar.join(DAMAGE_NAME);
    Note { storage, path, what: "the note of damage that a check found" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecar::{PRIVATE_MODE, with_sum};
    use crate::storage::{Memory, replace};

    #[test]
    fn a_noted_damage_stays_until_forgotten() {
        let (memory, dir) = (Memory::new(), Path::new("/log"));
        memory.create_dir(dir).unwrap();
        assert_eq!(noted_damage(&memory, dir).unwrap(), None);
        let reason = "deed 7:\nchecksum 1, has 2".to_owned();
        let damage = Damage { offset: 7, end: 19, reason, ..Damage::default() };
        note_damage(&memory, dir, &damage).unwrap();
        let noted = noted_damage(&memory, dir).unwrap().unwrap();
        assert_eq!((noted.offset, noted.end), (7, 19));
        assert_eq!(noted.reason, "deed 7: checksum 1, has 2");
        forget_damage(&memory, dir).unwrap();
        forget_damage(&memory, dir).unwrap();
        assert_eq!(noted_damage(&memory, dir).unwrap(), None);
    }

    #[test]
    fn a_note_of_no_place_is_an_error() {
        let (memory, dir) = (Memory::new(), Path::new("/log"));
        memory.create_dir(dir).unwrap();
        for text in
            [with_sum("offset 7\n"), with_sum("offset x\nend 9\nreason r\n"), "offset 7\n".into()]
        {
            replace(&memory, &dir.join(DAMAGE_NAME), text.as_bytes(), PRIVATE_MODE).unwrap();
            let error = noted_damage(&memory, dir).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }
}
