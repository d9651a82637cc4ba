//! Book: layouts, epochs, piers, LMDB.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod convert;
mod follow;
mod golden;
mod in_parts;
mod limits;
mod lmdb;
mod numbers;
mod pier;
mod recovery;
mod regressions;
mod slots;

mod prelude {
    pub use deedbook::book::{Layout, Options};

    pub use crate::support::common::{self, *};
    pub use crate::support::prelude::*;
}
