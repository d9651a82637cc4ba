//! Beginning an epoch: made aside as a whole, then given its name.
//!
//! ```text
//! 1 the last epoch is synced and closed
//! 2 .urb/log/.deedbook/next/     a book without deeds, its epoch in the mark; meta.bin and vere.txt
//!                                copied, epoc.txt: 3; all of it synced
//! 3 renamed to .urb/log/0iN      both directories synced
//! ```
//!
//! A crash up to the rename leaves the pier unchanged, except for `next`, which the next roll
//! empties. After the rename the epoch is there as a whole. All earlier events were synced first,
//! so a power cut leaves no gap.

use std::path::{Path, PathBuf};

use super::part::{OpenEpoch, of_part};
use super::places::{EPOC_BOOK, EPOC_NAME, Named, VERE_NAME, check_joint, name_of, text};
use super::{Pier, Shared};
use crate::book::layouts::packed::encode_file_header;
use crate::book::meta;
use crate::book::names::LOG_NAME;
use crate::book::{Layout, META_NAME, Options};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::lock;
use crate::mode::Mode;
use crate::saving::{make_dir, refuse_link};
use crate::sidecar::{PRIVATE_MODE, sidecar_dir};
use crate::storage::{Access, Aside, Storage, replace, write_full};

pub const NEXT_NAME: &str = "next";

impl Pier {
    /// Begin a new epoch after the last event, durably, and append there from now on. Returns the
    /// epoch's number, the last event before it. An epoch without events stays the last:
    /// [`ErrorKind::Contiguity`].
    ///
    /// Appends of other threads wait. After an error, the last epoch takes appends as before. If the call cannot find
    /// out whether the new epoch exists, it closes the handle; open the pier again to find out.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)); see [Errors](crate#errors).
    pub fn roll(&self) -> Result<u64> {
        let shared = self.shared.writable()?;
        let (_held, mut parts) = shared.changing();
        let Some(last) = parts.last().cloned() else { return Ok(0) };
        // Finish the staged files' transaction now: its records would never get there later.
        last.book.0.finish_transaction()?;
        let number = last.book.last()?;
        if number == last.number {
            let name = name_of(number);
            let message = format!("epoch {name} has no event: another one would have its name");
            return Err(shared.refused(ErrorKind::Contiguity, message));
        }
        match shared.begin_after(&last, number) {
            Ok((finished, begun)) => {
                parts.pop();
                parts.extend([finished, begun]);
                Ok(number)
            }
            Err(error) => {
                let begun = shared.options.storage.is_dir(&shared.dir.join(name_of(number)));
                shared.go_on(&mut parts, begun);
                Err(error)
            }
        }
    }
}

impl Shared {
    fn begin_after(&self, last: &OpenEpoch, number: u64) -> Result<(OpenEpoch, OpenEpoch)> {
        let Self { options, dir, .. } = self;
        let finished = self.close_last(last, number)?;
        let before = Some((&*last.dir, last.book.layout()));
        let Named { number, dir } = begin(options, dir, number, before)?;
        let book = of_part(options).open(&dir, Mode::Append)?;
        Ok((finished, OpenEpoch { number, dir, book }))
    }

    /// Sync and close the last epoch before the epoch `number`, and reopen the last epoch for reading.
    pub(super) fn close_last(&self, last: &OpenEpoch, number: u64) -> Result<OpenEpoch> {
        last.book.sync()?;
        let done = last.book.stats()?;
        // Cursors over the pier read on.
        last.book.0.close_keeping_files()?;
        lock(&self.finished).add(&done);
        let book = of_part(&self.options).open(&last.dir, Mode::Read)?;
        // Another program may have appended to the epoch since the close.
        let next = book.last()?.saturating_add(1);
        let after = Named { number, dir: self.dir.join(name_of(number)) };
        check_joint(last.number, next, &after)?;
        Ok(OpenEpoch { book, ..last.clone() })
    }

    /// After a failed roll: append to the last epoch as before, unless the new epoch may exist.
    pub(super) fn go_on(&self, parts: &mut [OpenEpoch], begun: bool) {
        let options = of_part(&self.options);
        let again = parts.last_mut().filter(|_| !begun).is_some_and(|part| {
            // Still open if the sync failed: the poisoned book reports the error itself.
            let open = !part.book.is_closed();
            let opened = options.open(&part.dir, Mode::Append).ok().filter(|_| !open);
            opened.map(|book| part.book = book).is_some() || open
        });
        if !again {
            // The error to return says more than an error of closing.
            let _ = self.finish(parts);
        }
    }
}

/// Make an empty epoch aside, and rename it into place.
pub fn begin(
    options: &Options,
    dir: &Path,
    number: u64,
    before: Option<(&Path, Layout)>,
) -> Result<Named> {
    let next = sidecar_dir(dir).join(NEXT_NAME);
    put(&make(options, next, number, before, None)?, dir, number)
}

/// Make an epoch aside, whole and synced: an empty book with copies of the other files of the epoch before. The layout
/// is the options', or else the epoch's before. With `deeds`, the book is that file of deeds, with room for a header.
pub fn make<'a>(
    options: &'a Options,
    next: PathBuf,
    number: u64,
    before: Option<(&Path, Layout)>,
    deeds: Option<&Path>,
) -> Result<Aside<'a>> {
    let layout = before.map(|(_, layout)| layout);
    let storage = &*options.storage;
    refuse_link(storage, &next)?;
    let aside = Aside::begin(storage, next)?;
    let next = aside.path();
    make_dir(storage, next, options.file_mode)?;
    make_dir(storage, &sidecar_dir(next), PRIVATE_MODE)?;
    let layout = options.layout.or(layout);
    let making = Options { epoch: Some(number), layout, ..options.clone() };
    let mode = match deeds {
        Some(deeds) => {
            take(storage, deeds, &next.join(LOG_NAME), number)?;
            Mode::Append
        }
        None => Mode::Create,
    };
    making.open(next, mode)?.close()?;
    if let Some((before, _)) = before
        && let Some(bytes) = meta::load(storage, before)?
    {
        store(options, next, META_NAME, &bytes)?;
    }
    // The book has synced its own names, and each `store` syncs the names of `next`.
    label(options, next, before.map(|(before, _)| before))?;
    Ok(aside)
}

/// Store the texts that go with an epoch: the binary that began the epoch `of`, and the kind of
/// store.
pub fn label(options: &Options, epoch: &Path, of: Option<&Path>) -> Result<()> {
    let storage = &*options.storage;
    if let Some(bytes) = of.map_or(Ok(None), |of| text(storage, &of.join(VERE_NAME)))? {
        store(options, epoch, VERE_NAME, &bytes)?;
    }
    store(options, epoch, EPOC_NAME, EPOC_BOOK.as_bytes())
}

fn store(options: &Options, epoch: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = epoch.join(name);
    replace(&*options.storage, &path, bytes, options.file_mode)
        .map_err(|e| Error::io("store what goes with the epoch", &path, e))
}

/// Make deeds in layout `packed` the log of an epoch: write a header in front, and rename the file.
/// Opening the log syncs both.
fn take(storage: &dyn Storage, deeds: &Path, log: &Path, number: u64) -> Result<()> {
    let header = encode_file_header(number.saturating_add(1));
    let opened = storage.open(deeds, Access::Write);
    let written = opened.and_then(|file| write_full(&*file, &header, 0));
    written.map_err(|e| Error::io("write the header", deeds, e))?;
    storage.rename(deeds, log).map_err(|e| Error::io("take the staged file along", log, e))
}

/// Rename the new epoch into place, durably.
pub fn put(aside: &Aside<'_>, dir: &Path, number: u64) -> Result<Named> {
    let place = dir.join(name_of(number));
    aside.publish(&place, "name the new epoch")?;
    Ok(Named { number, dir: place })
}
