//! Copy the current events of segments to the new segments of a compaction.

use std::sync::mpsc::sync_channel;
use std::thread::{self, ScopedJoinHandle};

use super::fragmentation::{Fate, fate_of};
use crate::error::Result;
use crate::ground::slice;
use crate::nostr::bytes::event::{Id, Location};
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::record;
use crate::nostr::index::moved::Moved;
use crate::nostr::pages::manifest;
use crate::nostr::pages::on_all_cores::{cores, gone};
use crate::nostr::pages::options::now;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::{Found, PageDamage};
use crate::nostr::pages::segments::{Segments, Source};
use crate::nostr::store::handle::Shared;

/// The bytes of old pages in one part of the copied records.
const PART_BYTES: u64 = 1 << 20;
/// The number of parts that may wait for a write.
const PARTS_WAITING: usize = 4;
/// The number of bytes below which a thread is not worth its start.
const THREAD_BYTES: u64 = 16 << 20;
/// The number of bytes after which a sync begins.
const SYNC_BYTES: u64 = 16 << 20;

impl Shared {
    /// Delete new segments, if the disk allows that.
    pub(crate) fn discard(&self, targets: &Segments) {
        let files = targets.by_id.values().map(|open| open.segment.path());
        files.for_each(|path| drop(self.options.storage.remove(path)));
    }

    /// Copy the current events of some segments to new segments, numbered from `next` on, and sync
    /// the segments. Damage is an error, unless `saved` has the damaged pages, because the old
    /// segments will be deleted. After an error the caller discards the new segments.
    pub(crate) fn copy(
        &self,
        old: &[Source],
        saved: &[(u32, PageDamage)],
        next: u32,
        targets: &mut Segments,
        progress: &mut Progress<'_>,
    ) -> Result<Moved> {
        let bytes: u64 = old.iter().map(|(segment, from)| u64::from(segment.end() - from)).sum();
        let mut moved = Moved::default();
        let mut write = |targets: &mut Segments, part: &Part| {
            progress.add(part.page_bytes)?;
            self.write_part(targets, part, next, &mut moved)
        };
        let gone = match bytes >= THREAD_BYTES && cores() > 1 {
            true => self.copy_in_threads(old, saved, targets, &mut write)?,
            false => self.read_parts(old, saved, &mut |part| write(targets, &part))?,
        };
        if targets.by_id.is_empty() {
            // Without a new segment, the old segments would look lost.
            targets.create(&self.options, next, now())?;
        }
        let written: Vec<u32> = targets.by_id.keys().copied().collect();
        for id in written {
            targets.write_header(id, Some(now()))?;
        }
        targets.sync()?;
        targets.sync_names()?;
        Ok(Moved { gone, ..moved })
    }

    /// Read in one thread, write in this thread, and sync in a third: otherwise the disk would wait
    /// for the last write.
    fn copy_in_threads(
        &self,
        old: &[Source],
        saved: &[(u32, PageDamage)],
        targets: &mut Segments,
        write: &mut dyn FnMut(&mut Segments, &Part) -> Result<()>,
    ) -> Result<Vec<Location>> {
        thread::scope(|scope| {
            // An error below drops `parts`, and the reading thread ends with its next part.
            let (give, parts) = sync_channel(PARTS_WAITING);
            let reading = scope.spawn(move || {
                self.read_parts(old, saved, &mut |part| give.send(part).map_err(|_| gone()))
            });
            let (mut unsynced, mut syncing) = (0, None::<ScopedJoinHandle<'_, Result<()>>>);
            for part in parts {
                write(targets, &part)?;
                unsynced += part.page_bytes;
                if unsynced < SYNC_BYTES || syncing.as_ref().is_some_and(|one| !one.is_finished()) {
                    continue;
                }
                syncing.take().map_or(Ok(()), joined)?;
                // No target exists before the first kept event.
                if let Some(open) = targets.by_id.values().next_back() {
                    let segment = open.segment.clone();
                    (unsynced, syncing) = (0, Some(scope.spawn(move || segment.sync())));
                }
            }
            syncing.map_or(Ok(()), joined)?;
            joined(reading)
        })
    }

    /// Read the current events in parts; returns the locations of the others.
    fn read_parts(
        &self,
        old: &[Source],
        saved: &[(u32, PageDamage)],
        give: &mut dyn FnMut(Part) -> Result<()>,
    ) -> Result<Vec<Location>> {
        let (mut part, mut gone, now) = (Part::default(), Vec::new(), self.options.now());
        let searches = Searches::default();
        for (segment, from) in old {
            let id = segment.header().segment;
            let same_pages = segment.header().page_bytes == self.options.page_size();
            let mut scan = segment.scan(*from).with_names(&searches);
            while let Some(found) = scan.next()? {
                let found = match found {
                    Found::Record(found) => found,
                    Found::Damage(damage) if is_within(&damage, id, saved) => continue,
                    // The earlier look found no damage: a page has gone bad since, or a read
                    // failed.
                    Found::Damage(damage) => return Err(segment.damaged(&damage)),
                };
                let at = Location { segment: id, offset: found.offset };
                part.page_bytes += u64::from(found.end - found.offset);
                if fate_of(&found.event, now) == Fate::Keep {
                    part.events.push((found.event.id, found.event.created_at, at));
                    if same_pages {
                        part.bytes.extend_from_slice(found.bytes);
                    } else {
                        let (trailer, pages) = (self.options.checksums, self.options.page_size());
                        record::encode_stored(&found.event, trailer, pages, &mut part.bytes)?;
                    }
                    part.ends.push(part.bytes.len());
                } else {
                    gone.push(at);
                }
                if part.page_bytes >= PART_BYTES {
                    give(std::mem::take(&mut part))?;
                }
            }
        }
        give(part)?;
        Ok(gone)
    }

    fn write_part(
        &self,
        targets: &mut Segments,
        part: &Part,
        next: u32,
        moved: &mut Moved,
    ) -> Result<()> {
        let mut from = 0;
        let mut records: Vec<&[u8]> = Vec::with_capacity(part.ends.len());
        for &end in &part.ends {
            records.push(slice::part(&part.bytes, from..end));
            from = end;
        }
        let mut events = part.events.iter();
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let fits = match targets.last() {
                Some(_) => self.fitting(targets, rest)?,
                None => 0,
            };
            if fits == 0 {
                let id = targets.last().map_or(Ok(next), manifest::after)?;
                targets.create(&self.options, id, now())?;
            }
            // At least one record: an event may be larger than the limit of a segment.
            let fits = self.fitting(targets, rest)?.max(1);
            let (these, later) = rest.split_at(fits);
            let places = targets.append(these)?;
            for (&at, &(id, created_at, from)) in places.iter().zip(&mut events) {
                moved.kept.push((id, created_at, at));
                moved.from.push(from);
            }
            rest = later;
        }
        Ok(())
    }

    /// The number of records for which the last segment has room.
    fn fitting(&self, targets: &mut Segments, records: &[&[u8]]) -> Result<usize> {
        let room = targets.room(self.options.segment_size())?;
        let active = &targets.active()?.segment;
        let mut needed = 0;
        let fits = records.iter().take_while(|record| {
            needed += active.bytes_for(record.len());
            needed <= room
        });
        Ok(fits.count())
    }
}

/// Records to write.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The records' ids, times and old locations.
    events: Vec<(Id, u32, Location)>,
    /// Size of the old pages, including pages not copied.
    page_bytes: u64,
}

/// Whether damage in a segment is among the saved pages.
fn is_within(damage: &PageDamage, segment: u32, saved: &[(u32, PageDamage)]) -> bool {
    let has_all = |part: &PageDamage| part.offset <= damage.offset && damage.end <= part.end;
    saved.iter().any(|(of, part)| *of == segment && has_all(part))
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(gone()))
}
