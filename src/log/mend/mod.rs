//! Damage: the check that finds it, the copy without it, the cut that removes it.

pub mod carry;
pub mod noted;
pub mod repair;
pub mod salvage;
pub mod verify;
pub mod whole;
