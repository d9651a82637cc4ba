//! The intent of a commit: `.deedbook/transaction`, text with a checksum. As long as the intent
//! exists, its staged files stay.
//!
//! ```text
//! job 0c11d8a4
//! id etl 12 query-or--                            (not of a transaction without an application)
//! place 4096 16:1a2b3c4d 3012:5e6f7a8b 6:7:8      (as the format writes it)
//! part 0 0 17 262144 1000 1a2b3c4d 97564          (partition, sequence, attempt, bytes, records,
//! crc 1a2b3c4d                                     CRC-32, number of the first record or -)
//! ```

use super::desk::{Desk, Part, Transaction, TransactionId};
use crate::error::{ErrorKind, Result};
use crate::sidecar::Note;

const INTENT_NAME: &str = "transaction";
const NONE: &str = "-";

/// A commit that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The transaction to commit.
    pub transaction: Transaction,
    /// The place of the first record, in the format's words.
    pub place: String,
    /// The parts to append, in order.
    pub parts: Vec<Part>,
}

impl Intent {
    fn lines(&self) -> String {
        let Self { transaction: Transaction { job, id }, place, parts } = self;
        let mut lines = format!("job {job}\n");
        if let Some(TransactionId { app, query, version }) = id {
            let query = query.as_deref().unwrap_or(NONE);
            lines.push_str(&format!("id {app} {version} {query}\n"));
        }
        lines.push_str(&format!("place {place}\n"));
        for part in parts {
            let Part { partition, sequence, attempt, bytes, records, sum, first } = part;
            let first = first.map_or(NONE.into(), |first| first.to_string());
            lines.push_str(&format!(
                "part {partition} {sequence} {attempt} {bytes} {records} {sum:08x} {first}\n"
            ));
        }
        lines
    }

    fn of_lines(lines: &str) -> Option<Self> {
        let mut intent = Self {
            transaction: Transaction { job: String::new(), id: None },
            place: String::new(),
            parts: Vec::new(),
        };
        for line in lines.lines() {
            let (name, value) = line.split_once(' ')?;
            let mut words = value.split(' ');
            match name {
                "job" => intent.transaction.job = value.to_string(),
                "place" => intent.place = value.to_string(),
                "id" => {
                    let app = words.next()?.to_string();
                    let version = words.next()?.parse().ok()?;
                    let query = words.next().filter(|&query| query != NONE).map(str::to_string);
                    intent.transaction.id = Some(TransactionId { app, query, version });
                }
                "part" => intent.parts.push(Part {
                    partition: words.next()?.parse().ok()?,
                    sequence: words.next()?.parse().ok()?,
                    attempt: words.next()?.parse().ok()?,
                    bytes: words.next()?.parse().ok()?,
                    records: words.next()?.parse().ok()?,
                    sum: u32::from_str_radix(words.next()?, 16).ok()?,
                    first: match words.next()? {
                        NONE => None,
                        first => Some(first.parse().ok()?),
                    },
                }),
                _ => return None,
            }
        }
        Some(intent)
    }

    /// Read the intent, if there is one. A damaged intent is an error: nobody knows which records
    /// are missing.
    pub(crate) fn load(desk: &Desk<'_>) -> Result<Option<Self>> {
        let note = note(desk);
        let Some(lines) = note.load()? else { return Ok(None) };
        let intent = Self::of_lines(&lines)
            .ok_or_else(|| note.error(ErrorKind::Unsupported, "was written by a later version"))?;
        // The job becomes a part of file names.
        intent
            .transaction
            .check()
            .map_err(|e| note.error(ErrorKind::Corrupt, &format!("is damaged: {}", e.message())))?;
        Ok(Some(intent))
    }

    /// Write it, durably.
    pub(crate) fn store(&self, desk: &Desk<'_>) -> Result<()> {
        note(desk).store(&self.lines()).map_err(|e| e.with_durable(crate::Durable::No))
    }

    /// Remove it, durably.
    pub(crate) fn clear(desk: &Desk<'_>) -> Result<()> {
        note(desk).remove()
    }
}

fn note<'a>(desk: &Desk<'a>) -> Note<'a> {
    let path = desk.sidecar.join(INTENT_NAME);
    Note { storage: desk.storage, path, what: "the intent of a commit" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_read_back() {
        let part = Part {
            partition: 3,
            sequence: 0,
            attempt: 17,
            bytes: 5,
            records: 2,
            sum: 0xab,
            first: None,
        };
        for query in [None, Some("q-1".to_string())] {
            let id = Some(TransactionId { app: "etl".into(), query, version: 12 });
            for id in [None, id] {
                let transaction = Transaction { job: "j".into(), id };
                let parts = vec![part.clone(), Part { first: Some(7), ..part.clone() }];
                let intent = Intent { transaction, place: "1 - 2:ff".into(), parts };
                assert_eq!(Intent::of_lines(&intent.lines()), Some(intent));
            }
        }
        assert_eq!(Intent::of_lines("job x\nnew thing\n"), None);
    }
}
