//! A damaged log has one answer, whichever way it is read; and the wrong answers that were found.

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

use crate::support::common::{event_of, events};
use crate::support::formats::book::{BOOK, options};
use crate::support::formats::specimen::{besides, in_memory};
use crate::support::formats::subject::{Event, Record, refused};
use crate::support::formats::views::{all_but, all_give, broken, unharmed, ways};
use crate::support::formats::wal::{self, SINGLE, TINY, WalFormat};
use crate::support::judge::tally::{all_passed, attempt};
use crate::support::judge::{judge, judge_files};
use crate::support::prelude::*;

const FORMATS: [&dyn Format; 3] = [&BOOK, &SINGLE, &TINY];
const LARGE: [&dyn Format; 3] = [&BOOK, &SINGLE, &wal::SEGMENTS];

fn places(records: &[Record]) -> Vec<usize> {
    records.iter().map(|record| record.offset as usize).collect()
}

fn edges(specimen: &Specimen<'_>, records: &[usize]) -> Vec<usize> {
    records.iter().map(|&i| specimen.edges[i]).collect()
}

/// Every way to read a log, past damage, returns exactly the records with these numbers.
#[track_caller]
fn ways_give(specimen: &Specimen<'_>, at: &At, records: &[usize]) {
    for (way, walk) in ways(specimen.format, at) {
        let (name, beside) = (specimen.format.name(), specimen.beside);
        assert_eq!(places(&walk.records), edges(specimen, records), "{name}, {beside:?}, {way}");
    }
}
