//! The verbs of a store that is not open: verify, repair, salvage.

use std::path::Path;

use super::check::VerifyReport;
use super::repair::repair;
use super::salvage::{SalvageReport, salvage};
use crate::error::Result;
use crate::log::{Repair, RepairReport};
use crate::mode::Mode;
use crate::nostr::bulk::import::Check;
use crate::nostr::pages::options::Options;

impl Options {
    /// Check every page, record and id of a store, its write-ahead log and, if asked for, every signature. The check
    /// does not change the store, but notes damaged pages next to it.
    /// [`EventStore::verify`](crate::nostr::EventStore::verify) checks an open store.
    ///
    /// # Errors
    ///
    /// Fails without a readable log. Damage is no error: the report lists the damage.
    pub fn verify(&self, path: impl AsRef<Path>, check: Check) -> Result<VerifyReport> {
        let store = self.open(path, Mode::Read)?;
        let report = store.verify(check)?;
        store.close()?;
        Ok(report)
    }

    /// Repair a store. The repair first saves the bytes to remove next to the store. An intact store is only opened and
    /// closed.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where intact records would go with the cut, unless it is
    /// forced, and with [`Locked`](crate::ErrorKind::Locked) while another handle appends; see
    /// [Errors](crate#errors).
    pub fn repair(&self, path: impl AsRef<Path>, how: Repair) -> Result<RepairReport> {
        repair(path.as_ref(), self, how)
    }

    /// Copy every intact event of a store to a new one, which keeps versions as the source does unless the options say
    /// otherwise. The source is not changed.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors).
    pub fn salvage(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Result<SalvageReport> {
        self.salvage_with(source, target, |_, _| Ok(()))
    }

    /// As [`salvage`](Self::salvage). `progress` is called with bytes done and bytes in all, and its error ends the
    /// copying.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn salvage_with(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<SalvageReport> {
        salvage(source.as_ref(), target.as_ref(), self, &mut progress)
    }
}
