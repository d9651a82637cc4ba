//! Make a damaged store usable again. Only on request.
//!
//! 1. Cut the write-ahead log at its first damage after the last checkpoint, once all segments are
//!    written again and synced. Damage before the checkpoint is removed: the segments have those
//!    events.
//! 2. If segments are missing, make the manifest list the existing segments.
//! 3. Delete the index, and open the store, which brings the segments in line with the rest of the
//!    log.
//! 4. Write segments with damaged pages again without them, and finish a commit that has begun.
//!
//! Each step first saves the removed bytes to a file next to the original. The first step also
//! deletes the note of imports, because imported events may be lost. After a crash at any step,
//! another repair can resume.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::log::{Repair, RepairReport};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::damage::mend_wal::{self, LogPlan};
use crate::nostr::damage::rescue::Files;
use crate::nostr::damage::seen::{Seen, forget_imports};
use crate::nostr::damage::witnesses::{Expected, reason, reason_of_later};
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::options::now;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::{Found, PageDamage, Segment};
use crate::nostr::store::handle::{EventStore, Shared, State};
use crate::nostr::store::indexing::drop_index;
use crate::saving::save_part;
use crate::scan::Damage;
use crate::sidecar::{LockTimeout, Loss, WriterLock, forget_damage, make_sidecar, sidecar_dir};
use crate::storage::{Access, located};

/// Repair a store, after saving the cut bytes to files next to it. An undamaged store is opened and
/// closed.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`] if the repair would lose intact events, unless `may.force` allows the
/// loss. The same error if only a [`salvage`](crate::nostr::Options::salvage) can help. The store
/// is then unchanged.
pub(crate) fn repair(path: &Path, options: &Options, may: Repair) -> Result<RepairReport> {
    let run = || {
        options.check()?;
        mend(located(&*options.storage, path)?, options, may)
    };
    run().map_err(|error: Error| error.of(FORMAT))
}

fn mend(dir: PathBuf, options: &Options, may: Repair) -> Result<RepairReport> {
    let storage = &*options.storage;
    let sidecar = sidecar_dir(&dir);
    let (wal_dir, files) = (dir.join(WAL_NAME), Files::list(options, &dir)?);
    if files.segments.is_empty() {
        let kind = if files.is_empty() { ErrorKind::Missing } else { ErrorKind::LostRecords };
        let error = Error::new(kind, "no segment of an event store there").at(&dir);
        return Err(if files.is_empty() { error } else { error.with_advice("try salvage") });
    }
    let lock = match may.dry_run {
        true => None,
        false => {
            make_sidecar(storage, &sidecar)?;
            Some(WriterLock::acquire(storage, &sidecar, &dir, &LockTimeout::default())?)
        }
    };
    let earlier_loss = Loss::load(storage, &sidecar)?;
    let mut report = RepairReport { path: dir.clone(), earlier_loss, ..RepairReport::default() };
    let (mut belonging, mut there) = Belonging::load(options, &dir)?;
    let mut seen = Seen::look(options, &dir, &there, &belonging)?;
    report.damages.append(&mut seen.damages);
    report.cut_bytes += seen.cut_bytes;
    report.records = seen.ids.len() as u64;
    for (id, damage) in &seen.doubles {
        there.remove(id);
        report.damages.push(damage.clone());
    }
    report.lost_segments = belonging.missing(&there);
    let is_whole = storage.is_dir(&wal_dir);
    report.lost_segments.extend(belonging.gap(&seen.segments, is_whole).map(|gap| gap.0));
    let plan = LogPlan::make(options, &wal_dir, &belonging.manifest, &files.logs, &seen.ids)?;
    let expected = Expected::beyond_manifest(&belonging.manifest, &seen.segments, plan.checkpoint);
    let only = plan.only_in_log(options, &files.logs, &expected, &seen.ids)?;
    // A whole log has the events of pages after the last checkpoint.
    let is_page_lost = match plan.has_all_after(&belonging.manifest) {
        true => seen.lost > 0,
        false => !report.damages.is_empty(),
    };
    let foreign = belonging.foreign(&seen.segments);
    let is_loss =
        is_page_lost || !report.lost_segments.is_empty() || plan.is_loss || foreign.is_some();
    report.loss = is_loss.then_some(Loss { records: 0, first: 0, offset: 0 });
    let of_foreign = |(path, reason)| Damage::of_file(path, 0..0, reason);
    report.damages.extend(foreign.map(of_foreign));
    report.damages.extend(seen.headers.iter().map(|(_, damage)| damage.clone()));
    report.damages.extend(plan.damages.iter().cloned());
    if !only.is_empty() {
        // Opening appends the events again.
        let (path, reason) = (seen.segments.dir.clone(), reason(only.len(), plan.checkpoint));
        report.damages.push(Damage::of_file(path, 0..0, reason));
    } else {
        let left_out = plan.left_out(&belonging, &seen.segments);
        let later = plan.only_in_log(options, &files.logs, &left_out, &seen.ids)?.len();
        let (path, reason) = (seen.segments.dir.clone(), reason_of_later(later, plan.checkpoint));
        let part = Damage::of_file(path, 0..0, reason);
        report.damages.extend(Some(part).filter(|_| later > 0));
    }
    report.cut_bytes += plan.cut_bytes;
    report.cut_records = plan.cut_events;
    if may.dry_run {
        return Ok(report);
    }
    if report.cut_records > 0 && !may.force {
        let (lie, them) = if report.cut_records > 1 { ("s lie", "them") } else { (" lies", "it") };
        let message = format!(
            "{} intact event{lie} only after the damage in the write-ahead log and would go with the \
             cut; salvage copies {them} to a new store, or force the repair",
            report.cut_records
        );
        return Err(Error::new(ErrorKind::Corrupt, message).at(&wal_dir));
    }
    if let Some(loss) = &report.loss {
        if !may.accept_loss {
            (report.cut_bytes, report.cut_records) = (0, 0);
            return Ok(report);
        }
        // The note comes before any removal: every later check reports the loss.
        loss.store(storage, &sidecar)?;
    }
    if report.loss.is_some() || !report.damages.is_empty() {
        forget_imports(storage, &sidecar)?;
    }
    for (path, header) in
        seen.headers.iter().filter_map(|(header, damage)| damage.path.as_ref().zip(*header))
    {
        let mut segment = Segment::open_as(storage, path, Access::Write, header)?;
        let (page, mode) = (0..u64::from(header.page_bytes), options.file_mode);
        report.saved.extend(segment.save(|file| save_part(storage, file, path, mode, page))?);
        segment.write_header(segment.count(0)?, 0)?;
        segment.sync()?;
    }
    for path in seen.doubles.iter().filter_map(|(_, damage)| damage.path.as_ref()) {
        report.saved.push(mend_wal::put_aside(options, &seen.segments.dir, path)?);
    }
    if plan.cuts() {
        belonging.stop_vouching(options, &dir)?;
    }
    report.saved.extend(mend_wal::mend(options, &wal_dir, &there, &plan)?);
    if !report.lost_segments.is_empty() {
        belonging.go_on_without(options, &dir, &there)?;
    }
    // For a damaged segment, the index may describe other segments.
    drop_index(options, &sidecar)?;
    drop(lock);
    let store = EventStore::open_to_mend(&dir, options.clone())?;
    report.saved.extend(store.opening().saved.iter().cloned());
    report.saved.extend(store.drop_damage()?);
    store.finish_transaction()?;
    report.records = store.count_intact()?;
    store.close()?;
    forget_damage(storage, &sidecar)?;
    report.mended = true;
    Ok(report)
}

impl EventStore {
    fn count_intact(&self) -> Result<u64> {
        let (shared, _) = self.writable()?;
        let state = shared.state();
        let counts = state.segments.by_id.values().map(|open| open.segment.count(0));
        counts.map(|count| Ok(u64::from(count?))).sum()
    }

    /// Write segments with damaged pages again without them, after saving the damaged pages to
    /// files.
    fn drop_damage(&self) -> Result<Vec<PathBuf>> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        let (mut damages, mut saved) = (Vec::new(), Vec::new());
        let ids: Vec<u32> = state.segments.by_id.keys().copied().collect();
        for id in ids {
            saved.extend(shared.save_damage(&state, id, &mut damages)?);
        }
        let mut damaged: Vec<u32> = damages.iter().map(|(id, _)| *id).collect();
        damaged.dedup();
        if damaged.is_empty() {
            return Ok(saved);
        }
        shared.checkpoint(wal, &mut state)?;
        shared.copy_intact(&mut state, &damaged, &damages)?;
        drop(state);
        // The old index has locations in damaged pages.
        self.reindex()?;
        Ok(saved)
    }
}

impl Shared {
    /// Save the damaged pages of a segment, and note them.
    fn save_damage(
        &self,
        state: &State,
        id: u32,
        damages: &mut Vec<(u32, PageDamage)>,
    ) -> Result<Vec<PathBuf>> {
        let Some(open) = state.segments.by_id.get(&id) else { return Ok(Vec::new()) };
        let (storage, mode) = (&*self.options.storage, self.options.file_mode);
        let (mut saved, mut scan) = (Vec::new(), open.segment.scan(0));
        while let Some(found) = scan.next()? {
            let Found::Damage(damage) = found else { continue };
            let part = u64::from(damage.offset)..u64::from(damage.end);
            let path = open.segment.path();
            let copy = open.segment.save(|file| save_part(storage, file, path, mode, part))?;
            saved.extend(copy);
            damages.push((id, damage));
        }
        Ok(saved)
    }

    /// Compact segments, and skip the saved damage.
    fn copy_intact(
        &self,
        state: &mut State,
        old: &[u32],
        saved: &[(u32, PageDamage)],
    ) -> Result<()> {
        let next = state.manifest.next_segment_id;
        let mut targets = state.segments.unfinished();
        let sources = state.segments.sources(old);
        let copied = self.copy(&sources, saved, next, &mut targets, &mut Progress::silent());
        let moved = copied.inspect_err(|_| self.discard(&targets))?;
        // The caller makes the index again.
        let done = self.swap(state, old, targets, moved).map(drop);
        done.inspect_err(|error| state.broken = Some(error.message().to_owned()))
    }
}

impl Belonging {
    /// Make the manifest list the existing segments.
    fn go_on_without(
        &mut self,
        options: &Options,
        dir: &Path,
        there: &BTreeMap<u32, PathBuf>,
    ) -> Result<()> {
        self.manifest.name_only(there.keys().copied());
        if self.manifest.created_at == 0 {
            self.manifest.created_at = now();
        }
        self.manifest.store(options, dir)
    }
}
