//! Names that users choose and that stand in lines of text beside a log.

use crate::error::{Error, ErrorKind, Result};

const NAME_BYTES_MAX: usize = 255;

/// Refuse a name that would break its line. `what` it is the name of.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    if fits && !name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Ok(());
    }
    let message = format!(
        "{what} {name:?}: a name has 1 to {NAME_BYTES_MAX} bytes, none of them white space"
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}
