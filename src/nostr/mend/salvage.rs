//! Copy the intact events of a store to a new store. The source never changes.
//!
//! 1. Copy the records of the segments, with their flags: the stored flags, or later flags in the
//!    write-ahead log. Segments listed in the manifest come first, because others may be copies.
//! 2. Append the events of the log after the last checkpoint, and the saved events of earlier cuts.
//!    They are appended as new events, so deletions and replacements apply. Events from before the
//!    checkpoint are in the segments, or a compaction dropped them (`damage/witnesses.rs`). A
//!    salvage copies these events, too, unless the manifest vouches for whole segments and there
//!    was a compaction. If a compaction may have dropped such an event, the copy is uncertain.
//! 3. Copy the segments' events without a checksum and with a wrong id, if the log has no whole
//!    copy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::mode::Mode;
use crate::nostr::bytes::event::{Event, EventRef, Flags, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::record::{self, RECORD_BYTES_MAX};
use crate::nostr::bytes::{names, policy};
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::damage::mend_wal::{LogPlan, may_name};
use crate::nostr::damage::rescue::{Files, Pages};
use crate::nostr::damage::witnesses::{Expected, reason, reason_of_later};
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::Found;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::append::Outcome;
use crate::nostr::store::handle::EventStore;
use crate::nostr::store::opened::Tail;
use crate::nostr::store::records::Records;
use crate::scan::Damage;
use crate::storage::located;

/// The size of one write of copied records.
const PART_BYTES: usize = 4 << 20;
/// The limit of doubtful records in memory that wait for the log.
const DOUBTFUL_BYTES: usize = 64 << 20;

/// The report of a salvage: the copied and the lost parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Events copied, whatever their flags.
    pub events: u64,
    /// Copied events that are deleted or replaced.
    pub hidden: u64,
    /// Copied events that only the write-ahead log had.
    pub from_log: u64,
    /// Copied events from the saved bytes of an earlier opening or repair only.
    pub from_saved: u64,
    /// Copied events with doubts: the id is not the hash of the content, or the event may be a part
    /// of a damaged log entry, or the event lies before the log's last checkpoint and a compaction
    /// may have dropped it.
    pub uncertain: u64,
    /// Intact records not copied, because their event was already copied.
    pub copies: u64,
    /// Events of the log not copied, because they are expired or deleted by their author.
    pub left_out: u64,
    /// Missing segments, by the manifest or by the numbers of the others.
    pub lost_segments: Vec<u32>,
    /// The damaged parts of the files.
    pub damages: Vec<Damage>,
    /// Size of the files read, bytes.
    pub source_bytes: u64,
    /// Events of the segments whose id is not the hash of their content.
    faults: u64,
}

impl SalvageReport {
    /// Whether the new store has everything, and [`EventStore::verify`] finds no error.
    pub fn is_complete(&self) -> bool {
        self.damages.is_empty() && self.lost_segments.is_empty() && self.faults == 0
    }
}

/// Copy every intact event of the store in `source` to a new store in `target`. The new store keeps
/// the source's history setting unless the options set another. `progress` gets the bytes done and
/// the total; an error of `progress` ends the copying.
///
/// # Errors
///
/// [`ErrorKind::Missing`] if there is no file of a store, [`ErrorKind::AlreadyExists`] if the
/// target is a store.
pub(crate) fn salvage(
    source: &Path,
    target: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<SalvageReport> {
    let mut copy = || {
        options.check()?;
        let source = located(&*options.storage, source)?;
        let files = Files::list(options, &source)?;
        if files.is_empty() {
            return Err(Error::new(ErrorKind::Missing, "no event store there").at(&source));
        }
        let there: BTreeMap<u32, PathBuf> = files.segments.iter().cloned().collect();
        let belonging = Belonging::of(options, &source, &there, files.compacted.as_ref())?;
        let of_source = &belonging.manifest;
        let options = options.with_settings_of(of_source.page_bytes, &of_source.settings);
        let history = options.history.unwrap_or(of_source.history);
        // The limits of new records do not apply to copies.
        let options = &options.event_bytes_max(RECORD_BYTES_MAX).history(history);
        let store = options.open(target, Mode::Create)?;
        let (report, part) = (SalvageReport::default(), Part::default());
        let (total, searches) = (total_bytes(options, &files)?, Searches::default());
        let mut copying = Copying {
            options,
            store: &store,
            report,
            part,
            searches,
            total,
            progress,
            last: Vec::new(),
            doubtful: Part::default(),
        };
        copying.run(&source, &files, &there, &belonging)?;
        let report = copying.report;
        store.close()?;
        Ok(report)
    };
    copy().map_err(|error: Error| error.of(FORMAT))
}

fn total_bytes(options: &Options, files: &Files) -> Result<u64> {
    let paths = files.segments.iter().chain(&files.cut_segments).map(|(_, path)| path);
    let mut total = 0;
    for path in paths.chain(files.logs.iter().map(|log| &log.path)) {
        let failed = |e| Error::io("look at the file", path, e);
        let file = options.storage.open(path, crate::storage::Access::Read).map_err(failed)?;
        total += file.len().map_err(failed)?;
    }
    Ok(total)
}

struct Copying<'a> {
    options: &'a Options,
    store: &'a EventStore,
    report: SalvageReport,
    part: Part,
    searches: Searches,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> Result<()>,
    /// Events after the last checkpoint. The events they replace or delete may still lack their
    /// flags.
    last: Vec<Id>,
    /// Events of the segments with a possible whole copy in the log.
    doubtful: Part,
}

/// Records to copy, made for the pages of the new store.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// An event of the write-ahead log, or of saved bytes.
struct Rescued {
    event: Event,
    /// Whether the event lost tag names.
    is_lossy: bool,
    /// Whether the event is certainly no part of a damaged entry, and not dropped by a compaction.
    is_proved: bool,
}

/// The facts from the write-ahead log.
#[derive(Default)]
struct Logged {
    checkpoint: Lsn,
    /// The flags after the last checkpoint.
    flags: HashMap<Location, Flags>,
}

impl Copying<'_> {
    fn run(
        &mut self,
        source: &Path,
        files: &Files,
        there: &BTreeMap<u32, PathBuf>,
        belonging: &Belonging,
    ) -> Result<()> {
        let options = self.options;
        let mut segments = Segments::new(source, options.storage.clone());
        let logged = self.logged(files)?;
        self.report.lost_segments = belonging.missing(there);
        let last = there.keys().next_back().copied();
        let (named, unnamed): (Vec<_>, Vec<_>) =
            files.segments.iter().partition(|(id, _)| belonging.manifest.names(*id));
        for (id, path) in named.into_iter().chain(unnamed) {
            match Pages::open(self.options, *id, path)? {
                Some(mut pages) => {
                    belonging.expect_pages(&mut pages.segment);
                    segments.insert(*id, pages.segment.clone());
                    let page_bytes = pages.segment.header().page_bytes;
                    let checkpoint = belonging.manifest.pages_end(*id, page_bytes);
                    let later = (Some(*id) == last).then_some(checkpoint.unwrap_or(page_bytes));
                    self.copy_pages(&pages, &logged, later)?;
                }
                None => self.nothing_in(path)?,
            }
        }
        self.write()?;
        let wal_dir = source.join(WAL_NAME);
        self.look_for_gaps(belonging, &segments, options.storage.is_dir(&wal_dir));
        let (manifest, stored) = (&belonging.manifest, HashSet::new());
        let plan = LogPlan::make(options, &wal_dir, manifest, &files.logs, &stored)?;
        let left_out = plan.left_out(belonging, &segments);
        let mut log_damages = plan.damages;
        let expected = Expected::all(manifest, &segments, logged.checkpoint);
        let beyond = Expected::beyond_manifest(manifest, &segments, logged.checkpoint);
        let is_vouched =
            self.report.is_complete() && beyond.is_empty() && !belonging.may_be_of_others();
        let takes_all = !is_vouched || !expected.may_be_dropped;
        let (mut only_logged, mut later) = (0, 0);
        for log in &files.logs {
            let is_saved = log.number.is_none();
            let state = log.each(options, &mut |entered| {
                let is_later = is_saved || entered.lsn > logged.checkpoint;
                if let Entry::Insert { record } = entered.entry
                    && (is_later || takes_all)
                    && let Ok((event, is_lossy)) = names::event_of(record, &self.searches)
                {
                    let must_be_stored = !is_saved && expected.has(entered.lsn);
                    let is_proved = entered.is_proved && (is_later || must_be_stored);
                    let before = self.report.events;
                    self.append(Rescued { event, is_lossy, is_proved }, is_saved)?;
                    let is_new = self.report.events > before;
                    only_logged += usize::from(must_be_stored && is_new);
                    later += usize::from(!is_saved && left_out.has(entered.lsn) && is_new);
                }
                Ok(())
            })?;
            log_damages.retain(|damage| !state.damages.contains(damage));
            self.report.damages.extend(state.damages);
            self.tell(state.bytes)?;
        }
        for (id, path) in &files.cut_segments {
            // Saved bytes without a record were cut because they hold no record.
            if let Some(pages) = Pages::open_cut(self.options, *id, path)? {
                let mut scan = pages.scan().with_names(&self.searches);
                while let Some(found) = scan.next()? {
                    if let Found::Record(found) = found {
                        let is_lossy = found.event.flags.contains(Flags::LOSSY);
                        let event = found.event.to_event();
                        self.append(Rescued { event, is_lossy, is_proved: true }, true)?;
                    }
                }
                self.tell(pages.segment.end().into())?;
            }
        }
        self.report.damages.extend(log_damages);
        if only_logged + later > 0 && self.report.is_complete() {
            let reason = match only_logged {
                0 => reason_of_later(later, logged.checkpoint),
                count => reason(count, logged.checkpoint),
            };
            let path = segments.dir.clone();
            self.report.damages.push(Damage::of_file(path, 0..0, reason));
        }
        self.report.uncertain += self.write_doubtful()?;
        let tail = Tail { last: self.store.locations(&self.last)?, flagged: Vec::new() };
        self.store.complete(&tail)?;
        let total = self.total;
        (self.progress)(total, total)
    }

    /// Note a foreign segment, and the missing numbers between the segments.
    fn look_for_gaps(&mut self, belonging: &Belonging, segments: &Segments, is_whole: bool) {
        if let Some((path, reason)) = belonging.foreign(segments) {
            self.report.damages.push(Damage::of_file(path, 0..0, reason));
        }
        let gap = belonging.gap(segments, is_whole);
        self.report.lost_segments.extend(gap.map(|(id, _)| id));
    }

    /// The last checkpoint, and the flags after it.
    fn logged(&mut self, files: &Files) -> Result<Logged> {
        let (mut logged, mut flags, mut seen) = (Logged::default(), Vec::new(), Lsn(0));
        for log in files.logs.iter().filter(|log| log.number.is_some()) {
            let state = log.each(self.options, &mut |entered| {
                seen = seen.max(entered.lsn);
                match entered.entry {
                    Entry::Checkpoint if entered.is_proved => {
                        logged.checkpoint = logged.checkpoint.max(entered.lsn);
                    }
                    Entry::UpdateFlags { at, flags: set } if entered.is_proved => {
                        flags.push((entered.lsn, at, Flags(set).of_event()));
                    }
                    _ => {}
                }
                Ok(())
            })?;
            if may_name(state.named, seen) {
                logged.checkpoint = logged.checkpoint.max(state.named);
            }
        }
        flags.sort_by_key(|(lsn, ..)| *lsn);
        let after = flags.into_iter().filter(|(lsn, ..)| *lsn > logged.checkpoint);
        logged.flags = after.map(|(_, at, flags)| (at, flags)).collect();
        Ok(logged)
    }

    /// Copy the events of a segment. `later` is the last segment's end at the last checkpoint;
    /// later events lie after this byte.
    fn copy_pages(&mut self, pages: &Pages, logged: &Logged, later: Option<u32>) -> Result<()> {
        self.report.damages.extend(pages.header_damage.clone());
        let (mut scan, mut scratch) = (pages.scan().with_names(&self.searches), Vec::new());
        let end = u64::from(pages.segment.bytes_there(0..pages.segment.end()));
        let (mut reported, before) = (0, self.report.source_bytes);
        while let Some(found) = scan.next()? {
            let found = match found {
                Found::Damage(damage) => {
                    self.report.damages.push(pages.damaged(damage));
                    continue;
                }
                Found::Record(found) => found,
            };
            let at = Location { segment: pages.id, offset: found.offset };
            let mut event = found.event;
            if let Some(&flags) =
                seeded!(logged.flags.get(&at), "salvage-forgets-logged-flags" => None)
            {
                event.flags = flags | event.flags.lossy();
            }
            let is_true = event.check_id(&mut scratch).is_ok();
            self.report.faults += u64::from(!is_true);
            if !is_true && !found.has_sum && !event.flags.contains(Flags::LOSSY) {
                self.doubtful.push(&event, self.options)?;
                if self.doubtful.bytes.len() >= DOUBTFUL_BYTES {
                    self.report.uncertain += self.write_doubtful()?;
                }
                continue;
            }
            self.report.uncertain += u64::from(!is_true);
            if later.is_some_and(|from| found.offset >= from) && hides(&event) {
                self.last.push(event.id);
            }
            self.part.push(&event, self.options)?;
            if self.part.bytes.len() >= PART_BYTES {
                self.write()?;
            }
            if u64::from(found.end) >= reported + PART_BYTES as u64 {
                reported = found.end.into();
                (self.progress)(before + reported, self.total)?;
            }
        }
        self.tell(end)
    }

    fn nothing_in(&mut self, path: &Path) -> Result<()> {
        let failed = |e| Error::io("look at the file", path, e);
        let file = self.options.storage.open(path, crate::storage::Access::Read).map_err(failed)?;
        let end = file.len().map_err(failed)?;
        let reason = "no header of a segment, and no record for any size of pages".to_owned();
        self.report.damages.push(Damage::of_file(path, 0..end, reason));
        self.tell(end)
    }

    fn tell(&mut self, bytes: u64) -> Result<()> {
        self.report.source_bytes += bytes;
        (self.progress)(self.report.source_bytes.min(self.total), self.total)
    }

    fn write(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.part);
        self.write_part(part).map(drop)
    }

    fn write_doubtful(&mut self) -> Result<u64> {
        let part = std::mem::take(&mut self.doubtful);
        self.write_part(part)
    }

    fn write_part(&mut self, Part { bytes, ends }: Part) -> Result<u64> {
        let (stored, hidden) = self.store.adopt(&bytes, &ends)?;
        self.report.events += stored;
        self.report.hidden += hidden;
        self.report.copies += ends.len() as u64 - stored;
        Ok(stored)
    }

    /// Append an event as a new event.
    fn append(&mut self, found: Rescued, is_saved: bool) -> Result<()> {
        let Rescued { event, is_lossy, is_proved } = found;
        let is_certain = is_proved && event.check_id(&mut Vec::new()).is_ok();
        let mut records = Records::default();
        match is_lossy {
            // A checksum would promise that no names are lost.
            true => records.push(&event, &self.options.clone().checksums(false))?,
            false => records.push(&event, self.options)?,
        }
        match self.store.append_records(&mut records)?.first() {
            Some(outcome @ (Outcome::Stored(_) | Outcome::Superseded(_))) => {
                self.report.events += 1;
                self.report.hidden += u64::from(matches!(outcome, Outcome::Superseded(_)));
                self.report.uncertain += u64::from(!is_certain);
                match is_saved {
                    true => self.report.from_saved += 1,
                    false => self.report.from_log += 1,
                }
            }
            Some(Outcome::Duplicate(_)) => self.report.copies += 1,
            _ => self.report.left_out += 1,
        }
        Ok(())
    }
}

/// Whether an event may hide other events.
fn hides(event: &EventRef<'_>) -> bool {
    event.kind == policy::DELETION || policy::Address::of(event).is_some()
}

impl Part {
    fn push(&mut self, event: &EventRef<'_>, options: &Options) -> Result<()> {
        record::encode_stored(event, options.checksums, options.page_size(), &mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }
}
