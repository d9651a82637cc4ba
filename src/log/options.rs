//! How a log is opened: what all formats share.

use std::sync::Arc;
use std::time::Duration;

use crate::durability::Durability;
use crate::mode::Recovery;
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
    /// The file system.
    pub storage: Arc<dyn Storage>,
}
