//! How a log is opened: what all formats share.

use std::sync::Arc;
use std::time::Duration;

use crate::durability::Durability;
use crate::mode::Recovery;
use crate::sidecar::LockTimeout;
use crate::storage::Storage;

/// What the engine needs of a format's options.
#[derive(Clone, Debug)]
pub struct Common {
    /// When appends are synced.
    pub durability: Durability,
    /// What opening for write does with a tail that is not clean.
    pub recovery: Recovery,
    /// Unix permissions of new files, less the umask.
    pub file_mode: u32,
    /// A sync that takes longer is logged and counted.
    pub slow_sync: Duration,
    /// How long opening for writing waits for another writer; by default not at all.
    pub lock_timeout: LockTimeout,
    /// The file system.
    pub storage: Arc<dyn Storage>,
}
