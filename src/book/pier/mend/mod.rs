//! Damage of a pier: the full check, the cut of the newest epoch, the copy of the intact deeds.

mod repair;
mod salvage;
mod verify;

pub use verify::Report;
