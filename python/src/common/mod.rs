//! Shared by all classes: arguments, paths, errors, handles, logging, progress.

pub mod arguments;
pub mod backup;
pub mod detect;
pub mod durability;
pub mod errors;
pub mod fs_path;
pub mod handle;
pub mod logging;
pub mod progress;
pub mod regular;
pub mod reports;
