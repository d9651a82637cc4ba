//! The allowed contents of a log after a crash, and the judgement of a log.

use super::Record;
use crate::support::mix::mix;

/// The allowed contents of a log: a prefix of the written records, with every acknowledged record.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Number of the first record, even before it is appended.
    pub base: u64,
    pub records: Vec<Record>,
    pub acked: usize,
}

/// Returns the case of `allowed` that permits `got`, if `next` is the number of the next record.
pub fn judge_any<'a>(
    got: &[Record],
    next: Option<u64>,
    allowed: &'a [Expect],
    whole: bool,
) -> Result<&'a Expect, String> {
    let mut wrong = Vec::new();
    for expect in allowed {
        match judge(got, &expect.records, expect.acked, whole) {
            Ok(()) if got.is_empty() && next.is_some_and(|next| next != expect.base) => {
                wrong.push(format!("empty and begins at {next:?}, not at {}", expect.base));
            }
            Ok(()) => return Ok(expect),
            Err(what) => wrong.push(what),
        }
    }
    Err(wrong.join("; and neither: "))
}

/// Whether a recovery may return `got`: a prefix of `written`, byte for byte and with the right numbers, with every
/// acknowledged record. With `whole`, `got` must also be acknowledged or about to be.
pub fn judge(got: &[Record], written: &[Record], acked: usize, whole: bool) -> Result<(), String> {
    if got.len() < acked {
        return Err(format!("lost: {} records are left, {acked} were acknowledged", got.len()));
    }
    if got.len() > written.len() {
        return Err(format!("invented: {} records, {} were written", got.len(), written.len()));
    }
    for (found, wrote) in got.iter().zip(written) {
        if found != wrote {
            return Err(format!("changed: {} is not {}", shown(found), shown(wrote)));
        }
    }
    if whole && got.len() != acked && got.len() != written.len() {
        let (got, all) = (got.len(), written.len());
        return Err(format!("a part of what was in flight: {got}, not {acked} or {all}"));
    }
    Ok(())
}

fn shown(record: &Record) -> String {
    format!("{record:?}, tag {}, hash {:x}", record.tag, hash(&record.bytes))
}

pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |hash, &byte| mix(hash ^ u64::from(byte)))
}
