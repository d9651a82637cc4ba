//! Damaged and lost pages of segments.

mod covered;
mod damage;
mod damaged_pages;
mod goes_bad;
mod lost_pages;
