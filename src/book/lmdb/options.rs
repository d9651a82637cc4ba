//! The options of a migration from LMDB to books, or back.

use std::path::Path;

use super::place::{Leg, Plan};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::setters::setters;

/// The options of a migration from LMDB to books, or back.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// How to open books. `durability` and `epoch` are ignored: batches are synced, and the source
    /// gives the epoch. `layout` is the layout of new books, and an existing book must have it.
    pub book: crate::book::Options,
    /// Read and compare, and change nothing.
    pub dry_run: bool,
    /// The epochs of a pier to bring; other processes can bring the rest at the same time. `None`:
    /// all. The process that finds all epochs there gives the pier its metadata. A run with an
    /// empty list brings only the metadata.
    pub epochs: Option<Vec<u64>>,
}

setters! {
    Options {
        book: crate::book::Options,
        dry_run: bool,
    }
    optional {
        epochs: Vec<u64>,
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
    pub(super) fn has(&self, part: &Leg) -> bool {
        let among = |epochs: &Vec<u64>| part.epoch.is_some_and(|epoch| epochs.contains(&epoch));
        self.epochs.as_ref().is_none_or(among)
    }

    /// Refuse epochs that the source does not have.
    pub(super) fn check_epochs(&self, plan: &Plan) -> Result<()> {
        let Some(epochs) = &self.epochs else { return Ok(()) };
        let refuse =
            |path: &Path, message| Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
        let Some((top, _)) = &plan.top else {
            let path = plan.parts.first().map_or(Path::new(""), |part| &part.source);
            return refuse(path, "epochs are of a pier, and this is one log".to_owned());
        };
        let held: Vec<u64> = plan.parts.iter().filter_map(|part| part.epoch).collect();
        match epochs.iter().find(|epoch| !held.contains(epoch)) {
            Some(epoch) => refuse(top, format!("no epoch {epoch} in the pier, which has {held:?}")),
            None => Ok(()),
        }
    }
}
