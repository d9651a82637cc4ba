//! Copying intact deeds to a new book.

use std::path::Path;

use crate::book::epoch::demanded_by_name;
use crate::book::format::BookFormat;
use crate::book::{Book, Layout, Meta, Options};
use crate::durability::Durability;
use crate::error::{ErrorKind, Result};
use crate::ground::lines;
use crate::log::{Format as _, Inspected, SalvageReport, Stub};

/// Stands for a lost deed: the noun `0`, with its mug.
pub const STUB: Stub = Stub { tag: 0x79ff_04e8, payload: &[0x02] };

impl Options {
    /// Copy every intact deed, and the metadata, to a new log. In an unacknowledged tail, copying ends at the first
    /// damage. Damaged metadata is left out, and logged. Deeds after a gap get new numbers, because a log has no gaps;
    /// the report has both numbers. The copy keeps the record of committed transactions.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::{Book, Options};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// book.append(0, b"first")?;
    /// book.close()?;
    /// let report = Options::new().salvage(&path, dir.path().join("copy"))?;
    /// assert_eq!((report.records, report.damages.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn salvage(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Result<SalvageReport> {
        self.salvage_with(source, target, |_, _| Ok(()))
    }

    /// As [`salvage`](Self::salvage). `progress` gets the bytes done and the total, and its error ends the copying.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn salvage_with(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<SalvageReport> {
        copy(source.as_ref(), target.as_ref(), self, None, progress)
    }

    /// As [`salvage_with`](Self::salvage_with), but deeds keep their numbers. For each deed lost before an intact deed,
    /// the copy has a stub, the noun `0`. A ship cannot replay the stub; the copy is for programs that find deeds by
    /// number. If the number of lost deeds cannot be proved, the copy ends there with [`ErrorKind::Corrupt`]. Records
    /// that may lie inside a damaged deed are not copied.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn salvage_keeping_numbers(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<SalvageReport> {
        copy(source.as_ref(), target.as_ref(), self, Some(STUB), progress)
    }
}

fn copy(
    source: &Path,
    target: &Path,
    options: &Options,
    stub: Option<Stub>,
    progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<SalvageReport> {
    let create = |found: &Inspected<BookFormat>| {
        // A first event that would number deeds beyond 2^64 is not the file's.
        let bytes = found.findings.file_end;
        let first = found.findings.first().filter(|first| first.checked_add(bytes).is_some());
        let place = BookFormat::place(options, source)?;
        // Without numbers in the log, an epoch keeps the number in its name.
        let named =
            || stub.and(demanded_by_name(&place.dir, found.format.layout()))?.checked_add(1);
        let first = first.or_else(named).unwrap_or(1);
        let copying = Options {
            durability: Durability::Manual,
            epoch: Some(first.saturating_sub(1)),
            deed_bytes_max: found.format.framing().deed_bytes_max,
            layout: Some(match found.format.layout() {
                Layout::Padded => Layout::Packed,
                layout => layout,
            }),
            ..options.clone()
        };
        // Before the target is there, which would stand in the way of another try.
        let meta = match Meta::read(&*options.storage, &place.dir) {
            Err(e) if e.kind() == ErrorKind::NotALog => {
                lines::warn(format_args!("the copy has no metadata: {e}"));
                Meta::default()
            }
            meta => meta?,
        };
        let copy = Book(crate::log::create_copy(target, copying)?);
        if meta != Meta::default() {
            copy.save_meta(&meta)?;
        }
        Ok(copy.0)
    };
    crate::log::salvage(source, options, create, |mug| mug, stub, progress)
}
