//! Staging: tasks write records to files of their own, a commit copies these into the log.

mod copy;
mod records;
mod transact;

pub(crate) use records::{StagedReader, StagedWriter};
pub use transact::Stage;
pub(crate) use transact::is_staged;
