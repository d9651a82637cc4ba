//! The event before a log's first one: from mark, header, options or the directory's name.

use std::path::Path;

use super::layouts::Layout;
use super::layouts::header::in_header;
use super::layouts::packed::FIRST_AT;
use super::names::FORMAT;
use super::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Extent, Findings};
use crate::scan::{Damage, Verdict};
use crate::sidecar::Mark;

/// The N of a directory named `0iN`: the last event before the epoch in it.
pub fn epoch_in_name(dir: &Path) -> Option<u64> {
    let name = dir.file_name()?.to_str()?.strip_prefix("0i")?;
    let canonical = name == "0" || !name.starts_with('0');
    name.parse().ok().filter(|_| canonical && name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The epoch of a log without deeds.
pub fn epoch_of_empty(
    dir: &Path,
    layout: Layout,
    options: &Options,
    header_first: u64,
    mark: Option<&Mark>,
) -> u64 {
    let by_mark = mark.filter(|mark| mark.records == 0).map(|mark| mark.first.saturating_sub(1));
    let header = header_first.checked_sub(1);
    // The epoch that the directory's name demands comes first: somebody may have renamed an empty
    // log's directory.
    let demanded = options.epoch.or_else(|| demanded_by_name(dir, layout));
    demanded.or(by_mark).or(header).unwrap_or(0)
}

/// Refuse another epoch than the epoch of a log with deeds.
pub fn check_epoch(options: &Options, findings: &Findings) -> Result<()> {
    let Extent { first, records, .. } = findings.extent;
    match options.epoch {
        Some(asked) if records > 0 && asked.checked_add(1) != Some(first) => {
            let message =
                format!("epoch {asked} asked for, but the first event of the log is {first}");
            Err(Error::new(ErrorKind::Contiguity, message).of(FORMAT).offset_at(FIRST_AT))
        }
        _ => Ok(()),
    }
}

/// Refuse an epoch asked for that contradicts the name of the directory.
pub fn check_named(options: &Options, dir: &Path, layout: Layout) -> Result<()> {
    match (options.epoch, demanded_by_name(dir, layout)) {
        (Some(asked), Some(named)) if asked != named => {
            let message = format!("epoch {asked} asked for, but the directory's name says {named}");
            Err(Error::new(ErrorKind::Contiguity, message))
        }
        _ => Ok(()),
    }
}

/// The epoch that the directory's name demands. None in the first epoch of a pier in `slots`: the
/// reference implementation lets an empty log there begin after any event, and a checksum vouches
/// for the header.
pub fn demanded_by_name(dir: &Path, layout: Layout) -> Option<u64> {
    epoch_in_name(dir).filter(|&named| named > 0 || layout != Layout::Slots)
}

/// A first number in the header that contradicts the directory's name. Also reported without a deed
/// before the damage: appends after a cut would be numbered by the header.
pub fn contradicts_name(dir: &Path, layout: Layout, findings: &Findings) -> Option<Damage> {
    let Extent { first, records, start, .. } = findings.extent;
    let numbered = findings.numbered && (records > 0 || findings.verdict == Verdict::Corrupt);
    let named = demanded_by_name(dir, layout).filter(|_| numbered)?;
    let reason = format!("the first event is {first}, but the directory's name says epoch {named}");
    (named.checked_add(1) != Some(first)).then(|| in_header(start, FIRST_AT, reason))
}
