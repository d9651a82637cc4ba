//! Split a store at events into parts for separate readers, even in other processes.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32c;
use crate::log::{Identity, Split};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::open::look::look_at_one;
use crate::nostr::pages::file_names::{finished, parse_name, unfinished};
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::Segment;
use crate::nostr::pages::walk::Step;
use crate::nostr::store::handle::EventStore;
use crate::nostr::store::read::{Events, Include};
use crate::scan::OnCorrupt;
use crate::storage::{Access, located};

impl EventStore {
    /// Split the stored events into parts of about `split_bytes` bytes of one segment each. Every
    /// part except a segment's first begins with an intact event, so damage is never split.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn splits(&self, split_bytes: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for segment in self.snapshot()? {
            for (from, to) in ranges(&segment, split_bytes)? {
                // The segment may get its final name meanwhile.
                let path = finished(segment.path()).unwrap_or_else(|| segment.path().to_owned());
                let split = Split::new(path, from.into(), to.into());
                let identity = match segment.is_missing() {
                    true => None,
                    false => Some(identity(&segment, from.into())?),
                };
                splits.push(Split { identity, ..split });
            }
        }
        Ok(splits)
    }

    /// Walk the events of a part. The call refuses another segment than the segment of the split.
    ///
    /// # Errors
    ///
    /// Fails with [`NotALog`](crate::ErrorKind::NotALog) if another log lies at the path; see
    /// [Errors](crate#errors).
    pub fn read_split(
        split: &Split,
        options: &Options,
        include: Include,
        on_corrupt: OnCorrupt,
    ) -> Result<Events> {
        let read = || {
            let (segment, from, _) = open_part(split, options)?;
            Ok(Events::of_part(segment, from, (include, on_corrupt), options.now()))
        };
        read().map_err(|error: Error| error.of(FORMAT))
    }
}

/// The segment of a part, up to the part's end, and the byte range of the part. Pages lost since
/// the split are damage.
pub(crate) fn open_part(split: &Split, options: &Options) -> Result<(Segment, u32, u32)> {
    let path = located(&*options.storage, &split.path)?;
    let (from, to) = (offset(split.offset)?, offset(split.end)?);
    let open = |path: &Path| Segment::open_with(options, path, Access::Read);
    let opened = match open(&path) {
        Err(e) if e.kind() == ErrorKind::Missing => open(&unfinished(&path)),
        opened => opened,
    };
    let mut segment = match opened {
        // The segment was missing at the time of the split: its only part begins with its first
        // page.
        Err(e) if e.kind() == ErrorKind::Missing && split.identity.is_none() => {
            let id = path.file_name().and_then(|name| parse_name(name.to_str()?));
            let segment = Segment::missing_as(&path, id.unwrap_or_default(), from, to)?;
            return Ok((segment, from, to));
        }
        opened => opened?,
    };
    segment = look_at_one(options, segment)?;
    if let Some(cut) = split.identity {
        let [(_, unknown), (at, sum)] = cut.places();
        let [header, (_, now)] = identity(&segment, at)?.places();
        // Only an intact event with another id proves another segment.
        let stands = now == header.1 || sum == unknown;
        let found = [header, (at, if stands { sum } else { now })];
        Identity::of_places(found).check_is(&cut, &path)?;
    }
    segment.expect_pages(to);
    Ok((segment.until(to), from, to))
}

/// The byte ranges of a segment's parts.
pub(crate) fn ranges(segment: &Segment, split_bytes: u64) -> Result<Vec<(u32, u32)>> {
    let (mut from, end) = (segment.header().page_bytes, segment.end());
    let mut ranges = Vec::new();
    while from < end {
        let to = border(segment, from, split_bytes)?;
        ranges.push((from, to));
        from = to;
    }
    Ok(ranges)
}

/// The end of a part that begins at `from`: the first intact event after `split_bytes` bytes.
fn border(segment: &Segment, from: u32, split_bytes: u64) -> Result<u32> {
    let end = segment.end();
    let left = u64::from(end - from);
    // A remnant much shorter than a part joins the part before.
    if left <= split_bytes.saturating_add(split_bytes / 8) {
        return Ok(end);
    }
    let mut scan = segment.scan(from.saturating_add(split_bytes.max(1) as u32));
    while let Some(step) = scan.step()? {
        if let Step::Record(seen) = step {
            return Ok(seen.offset);
        }
    }
    Ok(end)
}

/// The identity of a segment: its header, and the event at a byte. Without an intact event, the
/// second field repeats the header's checksum.
fn identity(segment: &Segment, at: u64) -> Result<Identity> {
    let header = segment.header().sum();
    let mut buf = Vec::new();
    let sum = match segment.read(offset(at)?, &mut buf) {
        Ok(found) => crc32c(&found.event.id.0),
        Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::OutOfRange) => header,
        Err(e) => return Err(e),
    };
    Ok(Identity::of_places([(0, header), (at, sum)]))
}

/// A byte of a segment, in 32 bits.
fn offset(at: u64) -> Result<u32> {
    at.try_into().map_err(|_| {
        let message = format!("byte {at} of a segment, which ends before {}", 1u64 << 32);
        Error::new(ErrorKind::OutOfRange, message)
    })
}
