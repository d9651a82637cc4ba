//! The same records in every way in which a log can be read.

use super::{Log, Record, Subject};

/// Parts so small that every block of the index is one, and parts of several blocks.
const SPLIT_BYTES: [u64; 2] = [1, 100_000];

/// The ways that cost little: backwards, only the last record, how much is durable.
pub fn check_few(log: &dyn Log, records: &[Record]) -> Result<(), String> {
    let mut back = log.read_back().map_err(|error| format!("backwards: {error:?}"))?;
    back.reverse();
    same("backwards", &back, records)?;
    if let Some(last) = records.last() {
        one(log, last)?;
    }
    Ok(())
}

/// All ways: each record by itself, from each of some records on, and in parts, too.
pub fn check_all(subject: &dyn Subject, log: &dyn Log, records: &[Record]) -> Result<(), String> {
    check_few(log, records)?;
    for record in records {
        one(log, record)?;
    }
    let count = records.len();
    for from in [1, count / 2, count.saturating_sub(1)] {
        let Some(first) = records.get(from) else { continue };
        let what = format!("from record {}", first.ordinal);
        let got = log.read_from(first.ordinal).map_err(|error| format!("{what}: {error:?}"))?;
        same(&what, &got, &records[from..])?;
    }
    for split_bytes in SPLIT_BYTES {
        let what = format!("in parts of {split_bytes} bytes");
        let got = log.read_splits(split_bytes).map_err(|error| format!("{what}: {error:?}"))?;
        same(&what, &got, records)?;
    }
    if let Some(last) = records.last() {
        let next = subject.ordinal_after(last.ordinal, last.bytes.len());
        if let Ok(record) = log.read(next) {
            return Err(format!("a record after the last one: {}", record.ordinal));
        }
    }
    Ok(())
}

/// Everything in a log that was just opened for writing, or synced, is durable.
pub fn check_all_durable(
    subject: &dyn Subject,
    log: &dyn Log,
    records: &[Record],
) -> Result<(), String> {
    let durable = log.durable_end().map_err(|error| format!("durable end: {error:?}"))?;
    let Some(last) = records.last() else { return Ok(()) };
    let next = subject.ordinal_after(last.ordinal, last.bytes.len());
    match durable {
        Some(durable) if durable == next => Ok(()),
        other => Err(format!("durable up to {other:?}, there are records up to {next}")),
    }
}

fn one(log: &dyn Log, record: &Record) -> Result<(), String> {
    let ordinal = record.ordinal;
    match log.read(ordinal) {
        Ok(got) if got == *record => Ok(()),
        Ok(got) => Err(format!("record {ordinal} by itself is another one: {}", got.ordinal)),
        Err(error) => Err(format!("record {ordinal} by itself: {error:?}")),
    }
}

fn same(what: &str, got: &[Record], records: &[Record]) -> Result<(), String> {
    if got == records {
        return Ok(());
    }
    let ordinals = |records: &[Record]| records.iter().map(|r| r.ordinal).collect::<Vec<_>>();
    Err(format!("{what}: {:?}, not {:?}", ordinals(got), ordinals(records)))
}
