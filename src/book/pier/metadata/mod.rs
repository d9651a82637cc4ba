//! The metadata of a pier: its own in LMDB and the copy in the last epoch, or without LMDB that copy
//! alone.

#[cfg(not(feature = "lmdb"))]
mod copy_alone;
#[cfg(feature = "lmdb")]
mod in_lmdb;
