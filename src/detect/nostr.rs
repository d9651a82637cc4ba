//! How an event store is recognised: by its segments.

use super::site::Site;
use crate::error::Result;
use crate::nostr::pages::file_names::parse_name;

pub fn evidence(site: &Site<'_>) -> Result<Option<String>> {
    match site.has("data") {
        true => site.first_in("data/segments", |name| parse_name(name).is_some()),
        false => Ok(None),
    }
}
