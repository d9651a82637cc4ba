//! The write-ahead log.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod damage;
mod golden;
mod intent;
mod keep;
mod own;
mod places;
mod readers;
mod regressions;
mod scale;
mod segment_sizes;
mod tools;
mod truncation;

use deedbook::wal::{Cut, Dropped, HEAD_NAME, Layout, Options};

use support::common::crc32;
use support::formats::wal::{head_marker, read_all};
use support::harness::files::{cut, damage};
use support::harness::subjects::{LARGE, SEGMENTS, SINGLE, TINY, WalSubject};
use support::harness::{ACKNOWLEDGED, ALWAYS, Record, judge, states, views, worst};
use support::prelude::*;
use tools::{at_every_call, found, of_size, segments, synced};
