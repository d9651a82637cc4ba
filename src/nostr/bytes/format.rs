//! The name of the format.

/// Name of the format in errors.
pub const FORMAT: &str = "nostr";
