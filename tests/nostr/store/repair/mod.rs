//! Repair and salvage of damaged stores.

mod gone;
mod mend;
mod rescue;
mod salvage_log;
mod spec;
mod worlds;
