//! Opening a store: manifests, logs and settings.

mod history;
mod intervals;
mod lost_log;
mod manifest;
mod matrix;
mod noted;
mod openers;
mod sizes;
mod stories;
pub mod witnesses;
