//! Leasing files for a fetch, which keeps them from other stores, and giving them back.

use std::io;

use super::fetched::Removable;
use crate::error::{Error, Result};
use crate::ground::lines::{self, Locked, locked};
use crate::ledger::directory::lease::Lease;
use crate::ledger::directory::{Finished, Gate, is_full, is_no_file};
use crate::ledger::store::Shared;

impl Shared {
    fn lease(&self) -> Locked<'_, Option<Lease>> {
        locked(&self.lease)
    }

    /// Lease the next files without a writer or another store's lease: at most `count`, as long as
    /// `fits` holds. A file that cannot be opened goes to `failed`.
    pub(super) fn lease_next(
        &self,
        indexes: &mut std::iter::Peekable<std::vec::IntoIter<u32>>,
        count: usize,
        mut fits: impl FnMut(&Finished) -> bool,
        failed: &mut Option<Error>,
    ) -> Result<Vec<Finished>> {
        let gate = self.directory.gate()?;
        let mut lease = self.lease();
        let others = self.directory.leased(&gate, lease.as_ref())?;
        let mut found = Vec::new();
        while found.len() < count
            && let Some(&index) = indexes.peek()
        {
            if !others.contains(&index) {
                match self.directory.finished(&gate, index) {
                    Ok(Some(file)) if !fits(&file) => break,
                    Ok(Some(file)) => found.push(file),
                    Ok(None) => {}
                    Err(e) => {
                        failed.get_or_insert(e);
                    }
                }
            }
            indexes.next();
        }
        match self.directory.lease(&gate, &mut lease, &found) {
            // Only sending makes room. A user without permission to write may still send.
            Err(e) if is_full(&e) || is_denied(&e) => {
                lines::warn(format_args!("files are sent without a lease: {e}"));
            }
            leased => leased?,
        }
        Ok(found)
    }

    /// Whether another fetch would find a file of `indexes`.
    pub(super) fn is_any_free(&self, indexes: impl Iterator<Item = u32>) -> Result<bool> {
        let gate = self.directory.gate()?;
        let others = self.directory.leased(&gate, self.lease().as_ref())?;
        let free = |index| {
            !others.contains(&index) && matches!(self.directory.finished(&gate, index), Ok(Some(_)))
        };
        Ok(indexes.into_iter().any(free))
    }

    /// Give files back.
    pub(super) fn give_back(&self, _gate: &Gate, indexes: impl IntoIterator<Item = u32>) {
        let mut lease = self.lease();
        let Some(lease) = &mut *lease else { return };
        let mut fewer = false;
        for index in indexes {
            fewer |= lease.indexes.remove(&index);
        }
        if fewer && let Err(e) = lease.store() {
            lines::warn(format_args!("files stay leased until the ledger is closed: {e}"));
        }
    }

    /// Give files back by the items of a fetch.
    pub(super) fn give_back_items(&self, items: &[Removable]) -> Result<()> {
        let gate = self.directory.gate()?;
        self.give_back(&gate, items.iter().map(Removable::index));
        Ok(())
    }

    /// Give all files back, and remove the lease.
    pub(in crate::ledger) fn end_lease(&self) {
        if self.lease().is_none() {
            return;
        }
        // Without the gate the file stays, unlocked, for the next fetch to remove.
        let gate = self.directory.gate();
        let Some(lease) = self.lease().take() else { return };
        let removed = gate.map(|_gate| self.directory.storage.remove(&lease.path));
        match removed {
            Ok(Err(e)) if !is_no_file(&e) => {
                lines::warn(format_args!("an old lease stays ({}): {e}", lease.path.display()));
            }
            Err(e) => lines::warn(format_args!("an old lease stays: {e}")),
            Ok(_) => {}
        }
    }
}

fn is_denied(error: &Error) -> bool {
    let kind = error.io_source().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
}
