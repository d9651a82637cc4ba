//! Ways of reading: parts, columns, foreign segments, flags that only the log has.

#[cfg(feature = "arrow")]
mod columns;
mod expiration;
mod logged_flags;
mod lossy;
#[cfg(feature = "arrow")]
mod parsed;
mod parts;
mod reference;
