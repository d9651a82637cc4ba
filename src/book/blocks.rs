//! The index of a book: the one that the mark vouches for, and what it misses.

use std::path::Path;

use super::format::Packed;
use super::options::Options;
use super::recover::{Findings, blocks};
use super::tip::Tip;
use crate::sidecar::{Entry, Index, Mark, sidecar_dir};
use crate::storage::{Access, File};

/// An index that lags further behind is made up for by walking the log once.
const INDEX_LAG_BYTES_MAX: u64 = 4 << 20;

/// The index that the mark vouches for.
pub fn vouched(options: &Options, dir: &Path, mark: Option<&Mark>, access: Access) -> Index {
    let sidecar = sidecar_dir(dir);
    let Some(mark) = mark.filter(|mark| mark.records > 0) else {
        return Index::empty(&sidecar);
    };
    let (entries, chain) = (mark.index_entries, mark.index_chain);
    Index::load(&*options.storage, &sidecar, mark.first_sum, entries, chain, access)
}

/// The index that the mark vouches for, and what was noticed since.
pub fn build_index(
    options: &Options,
    dir: &Path,
    findings: &Findings,
    mark: Option<&Mark>,
    writes: bool,
) -> Index {
    let tip = findings.tip;
    let access = if writes { Access::Write } else { Access::Read };
    let mut index = vouched(options, dir, mark, access);
    if index.is_empty() {
        index.start(tip.first_sum);
    }
    index.cut(tip.end);
    for &(records, offset) in &findings.blocks {
        if offset > index.last_offset() && offset <= tip.end {
            index.push(Entry { ordinal: tip.first + records, offset, sum: 0 });
        }
    }
    index
}

/// Make up for an index that was lost, by hopping over the deeds that it misses. Advisory.
pub fn catch_up(index: &mut Index, file: &dyn File, codec: Packed, tip: Tip) {
    if tip.end.saturating_sub(index.last_offset()) <= INDEX_LAG_BYTES_MAX {
        return;
    }
    let last = index.len().checked_sub(1).and_then(|i| index.entry(i));
    let from = match last {
        Some(entry) => Tip { records: entry.ordinal - tip.first, end: entry.offset, ..tip },
        None => Tip { first: tip.first, ..Tip::empty() },
    };
    for (records, offset) in blocks(file, codec, from, tip.end).unwrap_or_default() {
        index.push(Entry { ordinal: tip.first + records, offset, sum: 0 });
    }
}
