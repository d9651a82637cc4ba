//! The names of a book: the format's and the files'.

/// Name of the format in errors.
pub const FORMAT: &str = "book";
/// File with the header and the deeds.
pub const LOG_NAME: &str = "book.log";
/// File with the metadata.
pub const META_NAME: &str = "meta.bin";
