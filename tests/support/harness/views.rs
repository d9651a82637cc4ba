//! The same records in every way to read a log.

use super::{Log, Record, Subject};

/// Parts so small that every block of the index is a part, and parts of several blocks.
const SPLIT_BYTES: [u64; 2] = [1, 100_000];

/// The cheap ways: backwards, only the last record.
pub fn check_few(log: &dyn Log, records: &[Record]) -> Result<(), String> {
    let mut back =
        log.backward(None, None).all().map_err(|error| format!("backwards: {error:?}"))?;
    back.reverse();
    same("backwards", &back, records)?;
    if let Some(last) = records.last() {
        one(log, last)?;
    }
    Ok(())
}

/// All ways: also each record by itself, from several records on, and in parts.
pub fn check_all(subject: &Subject, log: &dyn Log, records: &[Record]) -> Result<(), String> {
    check_few(log, records)?;
    for record in records {
        one(log, record)?;
    }
    let count = records.len();
    for from in [1, count / 2, count.saturating_sub(1)] {
        let Some(first) = records.get(from) else { continue };
        let what = format!("from record {}", first.number());
        let got = log.forward(first.ordinal, None, false).all();
        let got = got.map_err(|error| format!("{what}: {error:?}"))?;
        same(&what, &got, &records[from..])?;
    }
    for split_bytes in SPLIT_BYTES {
        let what = format!("in parts of {split_bytes} bytes");
        let failed = |error| format!("{what}: {error:?}");
        let parts = log.parts(split_bytes).map_err(failed)?;
        let walks = log.splits(split_bytes, None, None, false).map_err(failed)?;
        let (mut got, mut counts) = (Vec::new(), Vec::new());
        for walk in walks {
            let part = walk.all().map_err(failed)?;
            counts.push(Some(part.len() as u64));
            got.extend(part);
        }
        same(&what, &got, records)?;
        // A part has its number of records, in formats with parts.
        let told: Vec<_> = parts.iter().map(|part| part.records).collect();
        if !parts.is_empty() && told != counts {
            return Err(format!("{what}: {told:?} told, {counts:?} there"));
        }
    }
    if let Some(last) = records.last() {
        let next = subject.ordinal_after(last);
        if log.read(next).is_ok() {
            return Err(format!("a record after the last one: {next}"));
        }
    }
    Ok(())
}

/// All records of a log that was just synced, or opened for writing, are durable.
pub fn check_all_durable(
    subject: &Subject,
    log: &dyn Log,
    records: &[Record],
) -> Result<(), String> {
    let durable = log.durable().map_err(|error| format!("durable end: {error:?}"))?;
    let Some(last) = records.last() else { return Ok(()) };
    let next = subject.ordinal_after(last);
    match durable {
        Some(durable) if durable == next => Ok(()),
        other => Err(format!("durable up to {other:?}, there are records up to {next}")),
    }
}

fn one(log: &dyn Log, record: &Record) -> Result<(), String> {
    let ordinal = record.number();
    match log.read(ordinal) {
        Ok((tag, bytes)) if tag == record.tag && bytes == record.bytes => Ok(()),
        Ok((tag, _)) => Err(format!("record {ordinal} by itself is another one, with tag {tag}")),
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
