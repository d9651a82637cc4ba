//! Logs that crash in a history, and the check of their contents afterwards.

use super::config::Config;
use super::history::{Moment, Run};
use super::{Expect, How, Log, Record, Subject, files, judge, states, views};
use crate::support::prelude::*;

/// Power cuts after an append to a recovered log.
const THIRD_STATES: u64 = 3;

/// The moments of a history from step `from` on; step 0 is the creation.
pub fn moments(
    subject: &Subject,
    config: Config,
    nested: &[u8],
    history: &str,
    from: usize,
) -> Result<Vec<Moment>, String> {
    let mut run = Run::new(subject, config, nested);
    if from == 0 {
        run.record();
    }
    let mut done = run.open();
    for (step, op) in history.chars().enumerate() {
        if step + 1 == from {
            run.record();
        }
        done = done.and_then(|()| run.apply(op));
    }
    let without = |what| format!("without a crash: {what}");
    done.map_err(|error| without(format!("{error:?}")))?;
    views::check_all(subject, run.log(), &run.records).map_err(without)?;
    Ok(std::mem::take(&mut run.moments))
}

pub struct Crashed<'a> {
    pub subject: &'a Subject,
    pub config: Config,
}

impl World for Crashed<'_> {
    type Known = Moment;

    fn recover(&self, image: &Sim, moment: &Moment, crash: Crash) -> Result<(), String> {
        let how = self.how();
        let thorough = matches!(crash, Crash::Killed | Crash::PowerTwice);
        let mut peeked = None;
        if thorough {
            let before = image.fingerprint();
            peeked = Some(self.subject.peek(image));
            if image.fingerprint() != before {
                return Err("a reader changed the disk".into());
            }
        }
        let log = self.open(image)?;
        let got = log.read_all().map_err(|error| format!("reading: {error:?}"))?;
        let whole = how.acknowledged();
        let found = moment.judge(&*log, &got, whole)?;
        if crash == Crash::Second {
            return views::check_few(&*log, &got);
        }
        views::check_all_durable(self.subject, &*log, &got)?;
        match thorough {
            true => views::check_all(self.subject, &*log, &got)?,
            false => views::check_few(&*log, &got)?,
        }
        // An earlier reader saw the same, or more if the recovery removes records on request.
        match peeked {
            Some(Ok(seen)) if seen.len() >= got.len() && (whole || seen == got) => {
                judge(&seen, &found.records, found.acked, false)
                    .map_err(|what| format!("read: {what}"))?;
            }
            Some(Err(error)) if error.kind() == ErrorKind::Missing && got.is_empty() => {}
            Some(other) => return Err(format!("a reader got {other:?}, recovery {got:?}")),
            None => {}
        }
        let (more, after) = self.go_on(image, log, &got, found, thorough)?;
        if !thorough {
            return Ok(());
        }
        // The found and the new records are acknowledged now.
        for (index, image) in states(&after, THIRD_STATES).iter().enumerate() {
            let there = |what| format!("crash after going on, state {index}: {what}");
            let log = self.open(image).map_err(there)?;
            let third = log.read_all().map_err(|e| there(format!("reading: {e:?}")))?;
            judge(&third, &more, more.len(), whole).map_err(there)?;
        }
        Ok(())
    }

    fn begin(&self, disk: &Sim) -> Result<(), String> {
        self.open(disk).map(drop)
    }

    fn context(&self, moment: &Moment) -> Option<u64> {
        Some(moment.context())
    }

    fn place(&self, moment: &Moment) -> Option<u64> {
        Some((moment.step as u64) << 32 | moment.call)
    }
}

impl Crashed<'_> {
    fn how(&self) -> How {
        How { durability: Durability::Always, ..self.config.how }
    }

    fn open(&self, image: &Sim) -> Result<Box<dyn Log>, String> {
        let opened = self.subject.open(image, self.how());
        opened.map_err(|error| format!("recovery refused: {error:?}"))
    }

    /// Append to a recovered log, close it, open it again; returns the records and the disk after the append.
    fn go_on(
        &self,
        image: &Sim,
        log: Box<dyn Log>,
        got: &[Record],
        found: &Expect,
        thorough: bool,
    ) -> Result<(Vec<Record>, Sim), String> {
        // Write again over closed blocks of the index, with other borders.
        let blocks = found.records.iter().any(|record| record.bytes.len() >= 30_000);
        let batch = match blocks {
            true => vec![(9999, vec![b'+'; 33_333]); 4],
            false => vec![(9999, b"appended after it".to_vec())],
        };
        let mut more = got.to_vec();
        for (tag, bytes) in &batch {
            more.push(self.subject.format.record_after(more.last(), found.base, *tag, bytes));
        }
        let appended = log.append_all(&batch).and_then(|_| log.sync());
        appended.map_err(|error| format!("going on: {error:?}"))?;
        let after = image.kill();
        let there = |what| format!("gone on: {what}");
        views::check_all_durable(self.subject, &*log, &more).map_err(there)?;
        if thorough {
            views::check_all(self.subject, &*log, &more).map_err(there)?;
        }
        let end = log.end().map_err(|error| format!("the end: {error:?}"))?;
        log.close().map_err(|error| format!("closing: {error:?}"))?;
        drop(log);
        if thorough {
            self.loss_is_reported(image, &more, end)?;
        }
        let there = |what| format!("opened again: {what}");
        let log = self.open(image).map_err(there)?;
        let again = log.read_all().map_err(|e| there(format!("{e:?}")))?;
        judge(&again, &more, more.len(), self.how().acknowledged()).map_err(there)?;
        if thorough {
            views::check_all(self.subject, &*log, &more).map_err(there)?;
        }
        Ok((more, after))
    }

    /// If another program removed the last record, the log does not count as complete.
    fn loss_is_reported(&self, image: &Sim, records: &[Record], end: u64) -> Result<(), String> {
        if records.len() < 2 {
            return Ok(());
        }
        let disk = image.kill();
        files::cut(self.subject, &disk, files::last_offset(self.subject, records, end));
        let checked = self.subject.check(&disk);
        if !checked.as_ref().is_ok_and(|checked| checked.lost_acknowledged) {
            return Err(format!("the last record was cut off, but checked: {checked:?}"));
        }
        match self.subject.open(&disk, self.how()) {
            Err(error) if error.kind() == ErrorKind::LostRecords => Ok(()),
            Err(error) => Err(format!("the last record was cut off: {error:?}")),
            Ok(_) => Err("the last record was cut off, and the log opened".into()),
        }
    }
}
