//! A look at the files of a log: where it ends, what is damaged, what the mark and the index say of it.

pub mod beyond_limit;
pub mod conclude;
pub mod find_end;
pub mod index;
pub mod inspect;
pub mod walk;
