//! Cutting the newest epoch where its valid prefix ends. Only on request. Sealed epochs, all before
//! the newest, are read and never changed.

use std::path::Path;

use super::verify::sized;
use crate::book::Options;
use crate::book::format::BookFormat;
use crate::book::pier::open::acquire;
use crate::book::pier::part::of_part;
use crate::book::pier::places::{Named, check_joint, log_dir};
use crate::book::pier::{FORMAT, publish};
use crate::error::{ErrorKind, Result};
use crate::log::{Repair, RepairReport, corrupt, inspect_patiently, place_of};
use crate::mode::Depth;
use crate::storage::located;

const SEALED: &str = "a repair changes only the newest epoch; salvage copies the pier, with a stub \
                      for each lost deed";

impl Options {
    /// Cut the newest epoch of a pier after its valid prefix, by the rules of [`repair`](Self::repair). The report is
    /// about the newest epoch. The repair reads the sealed epochs in full, and never changes a sealed epoch.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for a damaged sealed epoch, with
    /// [`Contiguity`](crate::ErrorKind::Contiguity) where epochs leave a gap or overlap, with
    /// [`Locked`](crate::ErrorKind::Locked) while another handle appends, and as [`repair`](Self::repair) for the newest
    /// epoch; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::{Options, pier::Pier};
    /// use deedbook::report::Repair;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("zod");
    /// Pier::append_to(&path)?.close()?;
    /// let report = Options::new().repair_pier(&path, Repair::default())?;
    /// assert_eq!((report.mended, report.cut_bytes), (true, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn repair_pier(&self, path: impl AsRef<Path>, how: Repair) -> Result<RepairReport> {
        repair(path.as_ref(), self, how).map_err(|e| e.of(FORMAT))
    }
}

fn repair(path: &Path, options: &Options, how: Repair) -> Result<RepairReport> {
    let storage = &*options.storage;
    let path = located(storage, path)?;
    let dir = log_dir(storage, &path)?;
    let (mut named, _) = sized(storage, &dir)?;
    let _lock = match how.dry_run {
        true => None,
        false => {
            let lock = acquire(options, &path, &dir)?;
            // A commit that crashed has epochs to name: the newest epoch is the last of those.
            publish::finish(options, &dir)?;
            (named, _) = sized(storage, &dir)?;
            Some(lock)
        }
    };
    for (sealed, after) in named.iter().zip(named.iter().skip(1)) {
        check_sealed(options, sealed, after)?;
    }
    let newest = named.last().map_or(&*dir, |newest| &newest.dir);
    of_part(options).repair(newest, how)
}

/// Refuse a damaged epoch that a repair does not write to.
fn check_sealed(options: &Options, sealed: &Named, after: &Named) -> Result<()> {
    let options = of_part(options);
    let (place, _) = place_of::<BookFormat>(&sealed.dir, &options)?;
    let found = inspect_patiently::<BookFormat>(&options, &place, Depth::Full)?.findings;
    if let Some(damage) = &found.damage {
        let error = corrupt::<BookFormat>(&place.log, damage, ErrorKind::Corrupt);
        return Err(error.with_advice(SEALED));
    }
    let next = found.extent.next();
    check_joint(sealed.number, next, after).map_err(|error| match after.number >= next {
        true => error.with_advice(SEALED),
        false => error,
    })
}
