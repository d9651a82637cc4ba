//! A book: one file. The header changes in place.

use std::sync::Arc;

use super::copier::growing::Growing;
use super::copier::{Copier, Step, Stop};
use super::log::{Backed, Span};
use super::source::unusable;
use crate::book::format::BookFormat;
use crate::book::slots::backup::header_now;
use crate::book::slots::{DEEDS_AT, SLOTS_AT};
use crate::book::{META_NAME, Options};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::log::Place;
use crate::storage::{Access, Storage};

impl Backed for BookFormat {
    /// Vere keeps these files in an epoch's directory.
    const BESIDE: &'static [&'static str] = &[META_NAME, "epoc.txt", "vere.txt"];

    fn reading(storage: Arc<dyn Storage>) -> Options {
        Options::new().storage(storage)
    }

    fn first_bytes(storage: &dyn Storage, place: &Place) -> Result<Vec<u8>> {
        let log = &place.log;
        let file = storage.open(log, Access::Read).map_err(|e| unusable("open the log", log, e))?;
        header_now(&*file).map_err(|e| Error::io("read the header", log, e))
    }

    fn span(log: &Log<Self>, first_bytes: &[u8], end: u64) -> Step<Span> {
        let header = log.extent()?.start;
        let Some(bytes) = first_bytes.get(..header as usize) else {
            return Err(Stop::Changed("the header was not whole".into()));
        };
        // The header, read with the mark, vouches for all deeds of that time, durable or not. Later
        // deeds are for the next backup: under this header a reader would take them for damage.
        let end = log.vouched_by(first_bytes)?.unwrap_or(end).max(header);
        Ok(Span { start: 0, end, first_bytes: bytes.to_vec(), segment_bytes: None })
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
        } else if !has_slots(span) {
            copier.overwrite(&theirs.log, 0, &span.first_bytes)
        } else {
            Ok(())
        }
    }

    /// Write the slots last, one at a time: the target already has each slot's deeds, and at every
    /// moment one slot is whole.
    fn after(copier: &mut Copier<'_>, _ours: &Place, theirs: &Place, span: &Span) -> Step<()> {
        if !has_slots(span) {
            return Ok(());
        }
        for (at, slot) in SLOTS_AT.into_iter().zip(span.first_bytes.chunks(SLOTS_AT[1] as usize)) {
            copier.overwrite(&theirs.log, at, slot)?;
        }
        Ok(())
    }
}

fn has_slots(span: &Span) -> bool {
    span.first_bytes.len() as u64 == DEEDS_AT
}
