//! The segments of a store, the manifest that lists them, and the options that all files are opened with.

pub(crate) mod compacted;
pub(super) mod ends;
pub(crate) mod file_names;
pub(crate) mod manifest;
pub(super) mod on_all_cores;
pub(super) mod options;
pub(super) mod progress;
pub(crate) mod segment;
pub(crate) mod segments;
pub(crate) mod walk;
pub(super) mod window;
