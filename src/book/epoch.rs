//! The event before a log's first one, from whoever knows it.

use std::path::Path;

use super::format::FORMAT;
use super::look::Looked;
use super::options::Options;
use super::recover::Findings;
use crate::error::{Error, ErrorKind, Result};
use crate::sidecar::Mark;

/// The N of a directory named `0iN`.
pub fn epoch_in_name(dir: &Path) -> Option<u64> {
    let name = dir.file_name()?.to_str()?.strip_prefix("0i")?;
    let canonical = name == "0" || !name.starts_with('0');
    name.parse().ok().filter(|_| canonical && name.bytes().all(|byte| byte.is_ascii_digit()))
}

pub fn epoch_of(
    dir: &Path,
    options: &Options,
    findings: &Findings,
    header_first: u64,
    mark: Option<&Mark>,
) -> u64 {
    if findings.tip.records > 0 {
        return findings.tip.first.saturating_sub(1);
    }
    let told = mark.filter(|mark| mark.records == 0).map(|mark| mark.first.saturating_sub(1));
    let header = header_first.checked_sub(1);
    // The name before the rest: the directory of an empty log may have been renamed.
    options.epoch.or_else(|| epoch_in_name(dir)).or(told).or(header).unwrap_or(0)
}

pub fn check_epoch(dir: &Path, options: &Options, looked: &Looked) -> Result<()> {
    let findings = &looked.findings;
    let epoch = epoch_of(dir, options, findings, looked.header_first, looked.mark.as_ref());
    if findings.tip.records == 0 {
        return Ok(());
    }
    let wrong = |kind, whose: &str, other: u64| {
        let message = format!("first event {}, {whose} {other}", findings.tip.first);
        Err(Error::new(kind, message).of(FORMAT).offset_at(8))
    };
    match (options.epoch, epoch_in_name(dir)) {
        (Some(asked), _) if asked != epoch => {
            wrong(ErrorKind::Contiguity, "but asked for epoch", asked)
        }
        (_, Some(named)) if named != epoch => {
            wrong(ErrorKind::Corrupt, "but the directory says epoch", named)
        }
        _ => Ok(()),
    }
}
