//! What is appended: payloads, iterables, parts of large payloads, staged records and transactions.

pub mod in_parts;
pub mod input;
pub mod payload;
pub mod positions;
pub mod spool;
pub mod staging;
pub mod transaction;
pub mod transaction_reports;
