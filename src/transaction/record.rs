//! The record of transactions: `.deedbook/transactions`, text with a checksum. Has the last
//! committed transaction of each application. No log can replace the record: without it, a repeat
//! looks like a new batch.
//!
//! ```text
//! etl 12 -                          (application, version, query or -), sorted by application
//! spool 881 5c0f7e2a-…
//! crc 1a2b3c4d
//! ```

use std::collections::BTreeMap;

use super::desk::{Desk, TransactionId};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::sidecar::Note;

const RECORD_NAME: &str = "transactions";
const NONE: &str = "-";

impl Desk<'_> {
    /// The last transaction of each application.
    pub(crate) fn noted(&self) -> Result<BTreeMap<String, TransactionId>> {
        let damaged = |e: Error| {
            match e.kind() {
            ErrorKind::Io => e,
            _ => e.with_advice(
                "what was committed is not known; once it is removed, streams that wrote to the log \
                 need a new checkpoint and another txnAppId",
            ),
        }
        };
        let record = self.record();
        let Some(lines) = record.load().map_err(damaged)? else { return Ok(BTreeMap::new()) };
        of_lines(&lines)
            .ok_or_else(|| record.error(ErrorKind::Unsupported, "was written by a later version"))
    }

    /// Whether the log has a transaction already. Fails if the id is neither the application's next
    /// id nor, for a query, the last.
    pub(super) fn is_repeated(&self, id: &TransactionId) -> Result<bool> {
        let TransactionId { app, query, version } = id;
        let noted = self.noted()?;
        let refuse = |kind, message: String| {
            Err(Error::new(kind, message).at(&self.record().path).with_durable(Durable::No))
        };
        let Some(last) = noted.get(app) else {
            return match query {
                Some(query) if *version > 0 => refuse(
                    ErrorKind::Contiguity,
                    format!(
                        "batch {version} of query {query} is not the next: the log has none of \
                         application {app}, so batches 0 to {} are missing",
                        version - 1
                    ),
                ),
                _ => Ok(false),
            };
        };
        if last.query != *query {
            let of = |query: &Option<String>| match query {
                Some(query) => format!("query {query}"),
                None => "no stream".into(),
            };
            let message = format!(
                "application {app} wrote up to {} from {}, this is {version} of {}: give another \
                 txnAppId",
                last.version,
                of(&last.query),
                of(query)
            );
            return refuse(ErrorKind::InvalidArgument, message);
        }
        if query.is_some() && *version > last.version.saturating_add(1) {
            let message = format!(
                "batch {version} of application {app} is not the next: the log has its batches up \
                 to {}",
                last.version
            );
            return refuse(ErrorKind::Contiguity, message);
        }
        // Spark repeats the last batch alone: an older number is of a checkpoint that was restored,
        // and may have other rows.
        if query.is_some() && *version < last.version {
            let message = format!(
                "batch {version} of application {app} is older than the log, which has its batches \
                 up to {}: the checkpoint of its query is of an earlier time, and the rows may be \
                 new; restore the log of that time, too, or begin with a new checkpoint and another \
                 txnAppId",
                last.version
            );
            return refuse(ErrorKind::Contiguity, message);
        }
        Ok(*version <= last.version)
    }

    /// Note a transaction, durably.
    pub(crate) fn note(&self, id: &TransactionId) -> Result<()> {
        self.note_all(BTreeMap::from([(id.app.clone(), id.clone())]))
    }

    /// Take over another record's transactions, durably.
    pub(crate) fn note_all(&self, others: BTreeMap<String, TransactionId>) -> Result<()> {
        let mut noted = self.noted()?;
        let before = noted.clone();
        for (app, other) in others {
            if noted.get(&app).is_none_or(|last| last.version < other.version) {
                noted.insert(app, other);
            }
        }
        if noted == before {
            return Ok(());
        }
        self.record().store(&lines_of(&noted))
    }

    fn record(&self) -> Note<'_> {
        let path = self.sidecar.join(RECORD_NAME);
        Note { storage: self.storage, path, what: "the record of transactions" }
    }
}

fn lines_of(noted: &BTreeMap<String, TransactionId>) -> String {
    let line = |TransactionId { app, version, query }: &TransactionId| {
        format!("{app} {version} {}\n", query.as_deref().unwrap_or(NONE))
    };
    noted.values().map(line).collect()
}

fn of_lines(lines: &str) -> Option<BTreeMap<String, TransactionId>> {
    let decode_line = |line: &str| {
        let mut words = line.split(' ');
        let (app, version) = (words.next()?.to_string(), words.next()?.parse().ok()?);
        let query = words.next().filter(|&query| query != NONE).map(str::to_string);
        Some((app.clone(), TransactionId { app, query, version }))
    };
    lines.lines().map(decode_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_read_back() {
        let mut noted = BTreeMap::new();
        for query in [None, Some("q".to_string())] {
            let app = format!("a{}", noted.len());
            noted.insert(app.clone(), TransactionId { app, query, version: 7 });
            assert_eq!(of_lines(&lines_of(&noted)), Some(noted.clone()));
        }
        assert_eq!(of_lines("app\n"), None);
    }
}
