//! A write-ahead log: one file, or segments. Meanwhile the writer may drop the first ones.

use std::ffi::OsStr;
use std::sync::Arc;

use super::copier::growing::Growing;
use super::copier::{Copier, Step, Stop};
use super::log::{Backed, Span};
use super::source::{is_file, read_small, sorted_names};
use crate::error::Result;
use crate::ground::slice::u64_at;
use crate::log::Log;
use crate::log::Place;
use crate::storage::Storage;
use crate::wal::codec::segment_index;
use crate::wal::format::WalFormat;
use crate::wal::{HEAD_NAME, Options, segment_name};

impl Backed for WalFormat {
    fn reading(storage: Arc<dyn Storage>) -> Options {
        Options::new().storage(storage)
    }

    /// The head marker.
    fn first_bytes(storage: &dyn Storage, place: &Place) -> Result<Vec<u8>> {
        let head =
            if place.single { None } else { read_small(storage, &place.dir.join(HEAD_NAME))? };
        Ok(head.unwrap_or_default())
    }

    fn span(log: &Log<Self>, first_bytes: &[u8], end: u64) -> Step<Span> {
        let segment_bytes = log.shared.format.layout().segment_bytes();
        let start = u64_at(first_bytes, 0).unwrap_or(0);
        if start != log.extent()?.start {
            return Err(Stop::Changed("its head marker moved, or is missing".into()));
        }
        Ok(Span { start, end, first_bytes: first_bytes.to_vec(), segment_bytes })
    }

    fn files(
        storage: &dyn Storage,
        ours: &Place,
        theirs: &Place,
        span: &Span,
    ) -> Result<Vec<Growing>> {
        let Span { start, end, segment_bytes, .. } = *span;
        let Some(bytes) = segment_bytes else {
            let (source, target) = (ours.log.clone(), theirs.log.clone());
            return Ok(vec![Growing { source, target, base: 0, start: 0, end }]);
        };
        let mut files = Vec::new();
        let growing = |index: u64, end: u64| {
            let (source, target) =
                (ours.dir.join(segment_name(index)), theirs.dir.join(segment_name(index)));
            Growing { source, target, base: index * bytes, start: 0, end }
        };
        for index in start / bytes..=end / bytes {
            let upto = bytes.min(end - index * bytes);
            if upto > 0 || is_file(storage, &ours.dir.join(segment_name(index)))? {
                files.push(growing(index, upto));
            }
        }
        // The target's further segments are not the log's.
        files.extend(
            segments(storage, theirs)?
                .into_iter()
                .filter(|&index| index > end / bytes)
                .map(|index| growing(index, 0)),
        );
        Ok(files)
    }

    fn after(copier: &mut Copier<'_>, ours: &Place, theirs: &Place, span: &Span) -> Step<()> {
        let Some(bytes) = span.segment_bytes else { return Ok(()) };
        let head = Some(&*span.first_bytes).filter(|head| !head.is_empty());
        copier.whole(&ours.dir.join(HEAD_NAME), &theirs.dir.join(HEAD_NAME), head)?;
        copier.sync_names()?;
        for index in segments(copier.storage, theirs)? {
            // An interrupted copy left those after the end.
            let left = index > span.end / bytes;
            if index < span.start / bytes || left {
                copier.remove(&theirs.dir.join(segment_name(index)))?;
            }
        }
        Ok(())
    }
}

/// The segments that are there.
fn segments(storage: &dyn Storage, place: &Place) -> Result<Vec<u64>> {
    Ok(sorted_names(storage, &place.dir)?
        .iter()
        .filter_map(|name| segment_index(OsStr::new(name)))
        .collect())
}
