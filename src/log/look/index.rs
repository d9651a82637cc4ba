//! The index of a log: load the index that the mark vouches for, and add missing entries. Advisory.

use std::sync::Arc;

use crate::ground::lines;
use crate::ground::locks::Mutex;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::look::walk::blocks_by_lengths;
use crate::log::options::Common;
use crate::log::space::Place;
use crate::sidecar::{Entry, INDEX_BLOCK_BYTES, Index, Mark, MarkFile};
use crate::storage::{Access, File};

/// The index's entries are byte positions, which the mark's chain ties to the log.
const INDEX_SEED: u32 = u32::from_le_bytes(*b"LOG1");
/// An index that lags further is made up for by walking the log once.
pub const INDEX_LAG_BYTES_MAX: u64 = 64 * INDEX_BLOCK_BYTES;
/// So much may be missing before the mark: no later opening looks there again.
const INDEX_HOLE_BYTES_MAX: u64 = 2 * INDEX_BLOCK_BYTES;

/// The index that the mark vouches for.
fn vouched(common: &Common, place: &Place, mark: Option<&Mark>, access: Access) -> Index {
    match mark.filter(|mark| mark.index_entries > 0) {
        None => {
            let mut index = Index::empty(&place.sidecar);
            index.start(INDEX_SEED);
            index
        }
        Some(mark) => {
            let (entries, chain) = (mark.index_entries, mark.index_chain);
            Index::load(&*common.storage, &place.sidecar, INDEX_SEED, entries, chain, access)
        }
    }
}

/// The index that the mark vouches for, for reading a log.
pub fn index_of<F: Format>(
    common: &Common,
    place: &Place,
    found: &Inspected<F>,
) -> Arc<Mutex<Index>> {
    let mark = found.mark.as_ref().filter(|_| found.findings.numbered_by_mark);
    Arc::new(Mutex::new(vouched(common, place, mark, Access::Read)))
}

/// The index that the mark vouches for, and the entries noticed since.
pub fn build_index<F: Format>(
    common: &Common,
    place: &Place,
    found: &Inspected<F>,
    writes: bool,
) -> Index {
    let extent = found.findings.extent;
    let access = if writes { Access::Write } else { Access::Read };
    // Ordinals of another numbering count wrongly: the index is filled again.
    let mark = found.mark.as_ref().filter(|_| found.findings.numbered_by_mark);
    let mut index = vouched(common, place, mark, access);
    // A reader needs the borders after damage, too.
    let known = mark.filter(|_| !writes).map_or(0, |mark| mark.end);
    index.cut(extent.end.max(known));
    if let Some(mark) = mark.filter(|_| writes) {
        // The blocks that were found begin after the mark.
        let vouched = Extent { end: mark.end.min(extent.end), ..extent };
        let framing = found.format.framing();
        catch_up::<F>(&mut index, &*found.space.file, framing, vouched, INDEX_HOLE_BYTES_MAX);
    }
    for &(ordinal, offset) in &found.findings.blocks {
        if offset > index.last_offset() && offset <= extent.end {
            index.push(Entry { ordinal, offset, sum: 0 });
        }
    }
    if writes {
        let framing = found.format.framing();
        catch_up::<F>(&mut index, &*found.space.file, framing, extent, INDEX_LAG_BYTES_MAX);
    }
    index
}

/// Write the entries noticed by the opening, and have the mark vouch for them. The mark has moved
/// over their records: if the writer crashed before its first sync, no later opening would walk
/// over the records again.
pub fn keep_index(index: &mut Index, common: &Common, mark_file: &mut MarkFile, mark: &mut Mark) {
    if !index.has_pending() {
        return;
    }
    index.flush(&*common.storage);
    let (index_entries, index_chain) = index.summary_at(mark.end);
    if index_entries == mark.index_entries {
        return;
    }
    let kept = Mark { index_entries, index_chain, ..*mark };
    match mark_file.store(&kept) {
        Ok(()) => *mark = kept,
        // Advisory: the mark before stands.
        Err(e) => {
            lines::warn(format_args!("cannot store the mark: {e} ({})", index.path().display()))
        }
    }
}

/// Add the missing entries of a lost or short index, by hopping over the records.
pub fn catch_up<F: Format>(
    index: &mut Index,
    file: &dyn File,
    framing: F::Framing,
    extent: Extent,
    lag_bytes_max: u64,
) {
    if extent.end.saturating_sub(index.last_offset().max(extent.start)) <= lag_bytes_max {
        return;
    }
    let last = index.len().checked_sub(1).and_then(|i| index.entry(i));
    let from = match last.filter(|entry| entry.offset >= extent.start) {
        Some(entry) => Extent {
            records: entry.ordinal.saturating_sub(extent.first),
            end: entry.offset,
            ..extent
        },
        None => Extent::empty(extent.first, extent.start),
    };
    match blocks_by_lengths::<F>(file, framing, from, extent.end) {
        Ok(blocks) => {
            for (ordinal, offset) in blocks {
                index.push(Entry { ordinal, offset, sum: 0 });
            }
        }
        Err(e) => {
            lines::warn(format_args!("cannot fill the index: {e} ({})", index.path().display()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::book::format::BookFormat;
    use crate::book::{Codec, Layout};
    use crate::scan::framing::Framing;
    use crate::storage::{Memory, Storage as _};

    const START: u64 = 16;

    fn entries(index: &Index) -> Vec<Entry> {
        (0..index.len()).map(|i| index.entry(i).unwrap()).collect()
    }

    /// The end of a block of the log below, whose records are numbered from 7 on.
    fn block(records: u64, len: u64) -> Entry {
        Entry { ordinal: 7 + records, offset: START + records * len, sum: 0 }
    }

    #[test]
    fn an_index_is_filled_from_where_it_ends() {
        let framing = Codec::new(Layout::Packed, 1 << 20);
        let (mut space, mut records) = (vec![0; START as usize], 0);
        while space.len() < 6 << 20 {
            framing.encode(&mut space, 1, &[3; 5000]);
            records += 1;
        }
        let end = space.len() as u64;
        let len = (end - START) / records;
        let memory = Memory::new();
        let file = memory.create_new(Path::new("/log"), 0o600).unwrap();
        file.write_at(&space, 0).unwrap();
        let extent = Extent { records, end, ..Extent::empty(7, START) };
        let filled = |known: &[Entry]| {
            let mut index = Index::empty(Path::new("/sidecar"));
            known.iter().for_each(|entry| index.push(*entry));
            catch_up::<BookFormat>(&mut index, &*file, framing, extent, INDEX_LAG_BYTES_MAX);
            entries(&index)
        };
        let blocks: Vec<_> = (1..=records / 14).map(|i| block(14 * i, len)).collect();
        assert!(blocks.len() > 80);
        assert_eq!(filled(&[]), blocks);
        assert_eq!(filled(blocks.get(..9).unwrap()), blocks);
        assert_eq!(filled(blocks.get(..1).unwrap()), blocks);
        // Blocks need not be alike: a batch may end one.
        let odd = block(20, len);
        let after: Vec<_> = (1..=(records - 20) / 14).map(|i| block(20 + 14 * i, len)).collect();
        assert_eq!(filled(&[odd]), [&[odd], &*after].concat());
        // Close enough to the end to find a record without a long walk.
        let near = [block(records - 800, len)];
        assert_eq!(filled(&near), near);
        // An entry of a record that was dropped in front.
        let gone = Entry { ordinal: 3, offset: START - 8, sum: 0 };
        assert_eq!(filled(&[gone]), [&[gone], &*blocks].concat());
    }
}
