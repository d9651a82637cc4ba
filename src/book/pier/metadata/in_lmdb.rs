//! The metadata: the pier's own in LMDB, and the copy in the last epoch.
//!
//! ```text
//! .urb/log/data.mdb       the pier's, canonical; Vere makes it, and a migration
//! .urb/log/0iN/meta.bin   a copy in each epoch; a roll takes it along
//! ```
//!
//! A save first commits to LMDB, durably, and then replaces the last epoch's `meta.bin`. A crash between the two leaves
//! both whole, the new values in LMDB and the old values in the copy. A reader reports the difference like any other,
//! and a repeated save removes the difference.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::book::lmdb::{DATA_NAME, read_top, save_top};
use crate::book::pier::part::OpenEpoch;
use crate::book::pier::places::name_of;
use crate::book::pier::{Pier, Shared};
use crate::book::{META_NAME, Meta};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{PAUSE, with_patience};

/// LMDB opens an environment once in a process, and a save must be seen as a whole in it.
static TURN: Mutex<()> = Mutex::new(());
/// A refused difference may have been half of another process's save.
const TRIES: u32 = 8;

impl Pier {
    /// The metadata: the pier's own in `.urb/log/data.mdb`, which Vere keeps in LMDB. Without that
    /// file, or with an empty file, the last epoch's `meta.bin`; a field missing in LMDB comes from
    /// `meta.bin`, too.
    ///
    /// If both have a field and differ, the call fails with both values ([`ErrorKind::Corrupt`]):
    /// another program changed one value, or a save was interrupted. Store the right value in both
    /// with [`Pier::save_meta`].
    ///
    /// Needs the feature `lmdb`. Without the feature, returns the last epoch's metadata.
    ///
    /// # Errors
    ///
    /// Fails for a damaged file; see [Errors](crate#errors).
    pub fn meta(&self) -> Result<Meta> {
        // Either error may come from half a save by another process, or by Vere.
        let kinds = [ErrorKind::Corrupt, ErrorKind::Locked];
        with_patience(TRIES, PAUSE, &kinds, || {
            self.with(|parts| match parts.last() {
                Some(part) => self.shared.meta_of(part),
                None => Ok(Meta::default()),
            })
        })
    }

    /// Change the metadata fields that are `Some`, durably: in `.urb/log/data.mdb`, if the pier has its metadata there,
    /// then in the last epoch's `meta.bin`. Each changes all at once. After a crash between the two, [`Pier::meta`]
    /// names the difference, and a repeated call removes the difference.
    ///
    /// Fields that are `None` must be the same in both, else nothing is changed. A pier without a
    /// `data.mdb` gets none.
    ///
    /// Needs the feature `lmdb`. Without the feature, only the last epoch's metadata changes.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)) and for a damaged file; see
    /// [Errors](crate#errors).
    pub fn save_meta(&self, meta: &Meta) -> Result<()> {
        self.with(|parts| match parts.last() {
            Some(part) => part.book.save_meta_of(|| self.shared.save_top(part, meta)),
            None => Ok(()),
        })
    }
}

impl Shared {
    fn meta_of(&self, part: &OpenEpoch) -> Result<Meta> {
        // A closed handle, or a handle from before a fork, must not wait for a turn.
        part.book.meta()?;
        let _turn = turn();
        let Some(own) = read_top(&*self.options.storage, &self.dir)? else {
            return part.book.meta();
        };
        let copy = part.book.meta()?;
        self.check_same(part, own, copy)?;
        Ok(own.or(copy))
    }

    /// Change the pier's own metadata. Returns the metadata for the copy.
    fn save_top(&self, part: &OpenEpoch, meta: &Meta) -> Result<Meta> {
        let _turn = turn();
        let Some(own) = read_top(&*self.options.storage, &self.dir)? else { return Ok(*meta) };
        let copy = part.book.meta()?;
        // A given field removes any difference of the field.
        self.check_same(part, meta.or(own), meta.or(copy))?;
        save_top(&self.dir, meta)?;
        Ok(meta.or(own))
    }

    fn check_same(&self, part: &OpenEpoch, own: Meta, copy: Meta) -> Result<()> {
        let differing = [
            difference("who", own.who, copy.who, |who| format!("{who:#x}")),
            difference("version", own.version, copy.version, u32::to_string),
            difference("life", own.life, copy.life, u32::to_string),
            difference("fake", own.fake, copy.fake, bool::to_string),
        ];
        let Some((name, own, copy)) = differing.into_iter().flatten().next() else {
            return Ok(());
        };
        let epoch = name_of(part.number);
        let message = format!(
            "metadata {name} is {own} in {DATA_NAME}, the pier's own, but {copy} in \
             {epoch}/{META_NAME}"
        );
        let error = Error::new(ErrorKind::Corrupt, message).with_advice(ADVICE);
        Err(error.at(&self.dir.join(DATA_NAME)))
    }
}

const ADVICE: &str = "saving the value that holds stores it in both";

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A field with different values in both.
fn difference<T: PartialEq>(
    name: &'static str,
    own: Option<T>,
    copy: Option<T>,
    shown: impl Fn(&T) -> String,
) -> Option<(&'static str, String, String)> {
    let (own, copy) = own.zip(copy).filter(|(own, copy)| own != copy)?;
    Some((name, shown(&own), shown(&copy)))
}
