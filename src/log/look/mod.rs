//! A look at the files of a log: the end, the damage, the mark and the index.

pub mod beyond_limit;
pub mod conclude;
pub mod find_end;
pub mod findings;
pub mod index;
pub mod inspect;
pub mod walk;
