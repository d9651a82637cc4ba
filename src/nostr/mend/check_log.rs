//! Verify a store's write-ahead log without changing it. A reader can use the segments' events next
//! to a damaged log, but opening for writing refuses the log.

use std::collections::HashSet;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::ground::interrupt::asking;
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::damage::mend_wal::LogPlan;
use crate::nostr::damage::rescue::{Files, LogFile};
use crate::nostr::damage::witnesses::{Expected, reason, reason_of_later, unstored};
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::open::look::{READER_TRIES, beyond_log};
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::{EventStore, Shared};
use crate::scan::Damage;
use crate::storage::Access;

impl EventStore {
    /// The damaged parts of the write-ahead log; a [`repair`](crate::nostr::Options::repair) names
    /// the same parts.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn verify_log(&self) -> Result<Vec<Damage>> {
        let shared = self.usable()?;
        let check = shared.options.lock_timeout.check();
        asking(check, &shared.dir, || shared.look_at_log()).map_err(|error: Error| error.of(FORMAT))
    }
}

impl Shared {
    /// Repeat the check until two checks agree, because a writer may create and remove files
    /// meanwhile. After the last try, the common part of the last two checks counts.
    fn look_at_log(&self) -> Result<Vec<Damage>> {
        let mut before = None;
        for tried in 1..READER_TRIES {
            match self.log_damages() {
                Ok(found) if found.is_empty() || before.as_ref() == Some(&found) => {
                    return Ok(found);
                }
                found => before = found.ok(),
            }
            std::thread::sleep(Duration::from_millis(1 << tried));
        }
        let mut found = self.log_damages()?;
        if let Some(before) = before {
            found.retain(|part| before.contains(part));
        }
        Ok(found)
    }

    fn log_damages(&self) -> Result<Vec<Damage>> {
        // Read the manifest before the list of files: a log begun later is not expected.
        let manifest = self.state().manifest.clone();
        let logs = Files::list(&self.options, &self.dir)?.logs;
        let wal_dir = self.dir.join(WAL_NAME);
        // The set of stored events is empty: only a repair asks which events a cut would lose.
        let plan = LogPlan::make(&self.options, &wal_dir, &manifest, &logs, &HashSet::new())?;
        let mut damages = plan.damages.clone();
        damages.extend(self.only_logged(&plan, &logs)?);
        Ok(damages)
    }

    /// The report about events from before the log's last checkpoint that no segment has. An
    /// opening for writing has checked already.
    fn only_logged(&self, plan: &LogPlan, logs: &[LogFile]) -> Result<Option<Damage>> {
        if self.wal.is_some() {
            return Ok(None);
        }
        // Read the current state, after the log: a writer may have continued since this handle was
        // opened.
        let (belonging, files) = Belonging::load(&self.options, &self.dir)?;
        let mut segments = Segments::new(&self.dir, self.options.storage.clone());
        for (&id, path) in files.iter().filter(|(id, _)| !belonging.passes_over(**id)) {
            segments.open(id, path, Access::Read, &self.options)?;
        }
        belonging.expect_all_pages(&mut segments);
        segments.forget(&belonging.begun(&segments));
        let left_out = plan.left_out(&belonging, &segments);
        if let Some(beyond) = beyond_log(&self.options, &self.dir, &belonging, &mut segments)? {
            return Ok(Some(beyond));
        }
        if let Some((path, reason)) = belonging.foreign(&segments) {
            return Ok(Some(Damage::of_file(path, 0..0, reason)));
        }
        let expected = Expected::beyond_manifest(&belonging.manifest, &segments, plan.checkpoint);
        let logged = plan.only_in_log(&self.options, logs, &expected, &HashSet::new())?;
        let (lost, _) = unstored(&segments, logged)?;
        let logged = plan.only_in_log(&self.options, logs, &left_out, &HashSet::new())?;
        let (later, _) = unstored(&segments, logged)?;
        let reason = match (lost.len(), later.len()) {
            (0, 0) => return Ok(None),
            (0, count) => reason_of_later(count, plan.checkpoint),
            (count, _) => reason(count, plan.checkpoint),
        };
        Ok(Some(Damage::of_file(segments.dir, 0..0, reason)))
    }
}
