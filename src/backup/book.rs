//! A book: one file, whose header changes in place.

use std::sync::Arc;

use super::copier::{Copier, Growing, Step, Stop};
use super::log::{Backed, Span};
use super::source::unusable;
use crate::book::format::BookFormat;
use crate::book::{META_NAME, Options};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::log::space::Place;
use crate::slice::part;
use crate::storage::{Access, Storage, read_full};

/// The longest header: two slots, each in a block of its own.
const HEADER_BYTES_MAX: usize = 8192;
const SLOT_STRIDE: usize = 4096;

impl Backed for BookFormat {
    /// Of an epoch, what Vere keeps beside it.
    const BESIDE: &'static [&'static str] = &[META_NAME, "epoc.txt", "vere.txt"];

    fn reading(storage: Arc<dyn Storage>) -> Options {
        Options::new().storage(storage)
    }

    fn first_bytes(storage: &dyn Storage, place: &Place) -> Result<Vec<u8>> {
        let log = &place.log;
        let file = storage.open(log, Access::Read).map_err(|e| unusable("open the log", log, e))?;
        let mut bytes = vec![0; HEADER_BYTES_MAX];
        let read =
            read_full(&*file, &mut bytes, 0).map_err(|e| Error::io("read the header", log, e))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn span(log: &Log<Self>, first_bytes: &[u8], end: u64) -> Step<Span> {
        let header = log.header_bytes();
        if (first_bytes.len() as u64) < header {
            return Err(Stop::Changed("the header was not whole".into()));
        }
        // The header, read with the mark, vouches for what was appended then, durable or not. What came later is for
        // the next backup: with this header it would be damage.
        let end = log.vouched_by(first_bytes)?.unwrap_or(end).max(header);
        let first_bytes = part(first_bytes, ..header as usize).to_vec();
        Ok(Span { start: 0, end, first_bytes, segment_bytes: None })
    }

    fn files(
        _storage: &dyn Storage,
        ours: &Place,
        theirs: &Place,
        span: &Span,
    ) -> Result<Vec<Growing>> {
        let (source, target) = (ours.log.clone(), theirs.log.clone());
        Ok(vec![Growing {
            source,
            target,
            base: 0,
            start: span.first_bytes.len() as u64,
            end: span.end,
        }])
    }

    fn before(copier: &mut Copier<'_>, ours: &Place, theirs: &Place, span: &Span) -> Step<()> {
        if !copier.is_file(&theirs.log)? {
            copier.whole(&ours.log, &theirs.log, Some(&span.first_bytes))
        } else if span.first_bytes.len() < SLOT_STRIDE {
            copier.overwrite(&theirs.log, 0, &span.first_bytes)
        } else {
            Ok(())
        }
    }

    /// The slots last, one at a time: each vouches for deeds that are there, and one of them is always whole.
    fn after(copier: &mut Copier<'_>, _ours: &Place, theirs: &Place, span: &Span) -> Step<()> {
        if span.first_bytes.len() < SLOT_STRIDE {
            return Ok(());
        }
        for (slot, bytes) in span.first_bytes.chunks(SLOT_STRIDE).enumerate() {
            copier.overwrite(&theirs.log, (slot * SLOT_STRIDE) as u64, bytes)?;
        }
        Ok(())
    }
}
