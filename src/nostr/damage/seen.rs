//! The segments of a closed store, as read by a repair or by the cut of a damaged log.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::belonging::Belonging;
use super::rescue::Pages;
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::page::Header;
use crate::nostr::pages::file_names::parse_name;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::{Found, Segment};
use crate::nostr::pages::segments::Segments;
use crate::scan::Damage;
use crate::storage::segmented::remove;
use crate::storage::{Access, Storage};

/// The progress of running imports: the command line keeps this note in `.deedbook`.
const IMPORTS_NAME: &str = "imports.json";

/// The contents of the segments.
pub(crate) struct Seen {
    pub segments: Segments,
    /// The ids of the intact events, which stay.
    pub ids: HashSet<Id>,
    /// The damaged pages.
    pub damages: Vec<Damage>,
    /// The size of the damaged pages.
    pub cut_bytes: u64,
    /// The number of damaged parts with events from before a checkpoint.
    pub lost: u64,
    /// Errors in the headers of segments, and the right values.
    pub headers: Vec<(Option<Header>, Damage)>,
    /// Segments that are copies of others, by header and events.
    pub doubles: Vec<(u32, Damage)>,
}

impl Seen {
    /// Read the pages of all segments of a store.
    pub(crate) fn look(
        options: &Options,
        dir: &Path,
        there: &BTreeMap<u32, PathBuf>,
        belonging: &Belonging,
    ) -> Result<Self> {
        let last = there.keys().next_back().copied();
        let segments = Segments::new(dir, options.storage.clone());
        let (damages, headers, doubles) = Default::default();
        let (ids, cut_bytes, lost) = (HashSet::new(), 0, 0);
        let mut seen = Self { segments, ids, damages, cut_bytes, lost, headers, doubles };
        for (&id, path) in there {
            let Some(mut pages) = Pages::open(options, id, path)? else {
                let message = "no header of a segment, and no record for any size of pages";
                let error = Error::new(ErrorKind::Corrupt, message).at(path).offset_at(0);
                return Err(error.with_advice("salvage copies what the other files have"));
            };
            if let Some(damage) = &pages.header_damage {
                seen.headers.push((Some(pages.segment.header()), damage.clone()));
            }
            belonging.expect_pages(&mut pages.segment);
            let checkpoint = belonging.manifest.size_of(id).unwrap_or_default();
            let mut scan = pages.scan();
            while let Some(found) = scan.next()? {
                match found {
                    Found::Record(found) => {
                        seen.ids.insert(found.event.id);
                    }
                    Found::Damage(damage) => {
                        let is_later = Some(id) == last && u64::from(damage.offset) >= checkpoint;
                        seen.lost += u64::from(!is_later || checkpoint == 0);
                        let there = pages.segment.bytes_there(damage.offset..damage.end);
                        seen.cut_bytes += u64::from(there);
                        seen.damages.push(pages.damaged(damage));
                    }
                }
            }
            seen.segments.insert(id, pages.segment);
        }
        seen.take_doubles_out(options)?;
        Ok(seen)
    }

    /// Remove the copies: segments with the header of another segment, which has all their events.
    fn take_doubles_out(&mut self, options: &Options) -> Result<()> {
        let mut doubles = Vec::new();
        for (number, (_, damage)) in self.headers.iter().enumerate() {
            let Some(path) = &damage.path else { continue };
            let Ok(copy) = Segment::open(&*options.storage, path, Access::Read) else {
                continue;
            };
            let of = copy.header().segment;
            let name = path.file_name().and_then(|name| parse_name(name.to_str()?));
            let Some(id) = name.filter(|id| *id != of) else { continue };
            let segments = [id, of].map(|id| self.segments.by_id.get(&id));
            let [Some(one), Some(other)] = segments else { continue };
            let (one, other) = (ids_of(&one.segment)?, ids_of(&other.segment)?);
            if !one.is_empty() && one.is_subset(&other) {
                let reason = format!("a copy of segment {of}, its name says {id}");
                doubles.push((number, id, Damage { reason, ..damage.clone() }));
            }
        }
        for (number, id, damage) in doubles.into_iter().rev() {
            self.headers.remove(number);
            self.segments.by_id.remove(&id);
            self.doubles.push((id, damage));
        }
        Ok(())
    }
}

fn ids_of(segment: &Segment) -> Result<HashSet<Id>> {
    let (mut ids, mut scan) = (HashSet::new(), segment.scan(0));
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found {
            ids.insert(found.event.id);
        }
    }
    Ok(ids)
}

/// Make the next import of the same files start over: a repair may remove events that the note
/// counts as stored.
pub(crate) fn forget_imports(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
    let path = sidecar.join(IMPORTS_NAME);
    remove(storage, &path).map_err(|e| Error::io("remove the note of imports", &path, e))?;
    storage.sync_dir(sidecar).map_err(|e| Error::io("sync the directory", sidecar, e))
}
