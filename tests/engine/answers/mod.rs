//! A damaged log has one answer, whichever way it is read; and the wrong answers that were found.

#![allow(dead_code)]

mod blocks;
mod cut_under_readers;
mod drift;
mod edges;
mod findings;
mod grid;
mod matrix;
mod parts;
mod repair;
mod segments;
mod slots;
mod survivors;

use crate::support::formats::{book, subject, wal};

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 3] = [&book::BOOK, &wal::SINGLE, &wal::TINY];
/// The same for logs of many megabytes.
const LARGE: [&dyn subject::Format; 3] = [&book::BOOK, &wal::SINGLE, &wal::SEGMENTS];
