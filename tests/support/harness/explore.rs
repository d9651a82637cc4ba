//! Every crash of a history, every state it can leave, and every crash of the recovery.

use deedbook::storage::sim::Sim;
use deedbook::{Durability, ErrorKind};

use super::config::Config;
use super::history::{Moment, Run};
use super::{Expect, How, Log, Record, Seen, Subject, files, hash, judge, mix, views};

/// Hashes of states remembered; beyond that some are checked and counted as distinct again.
const SEEN_MAX: usize = 1 << 23;

/// How much to check.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// States per moment, at most: all if there are no more, else by chance.
    pub per_moment: u64,
    /// States per call of a recovery.
    pub per_second: u64,
    /// Of so many distinct states, the recovery of one is crashed.
    pub second_every: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub histories: u64,
    /// Calls after which the power was cut.
    pub crashes: u64,
    pub exhaustive: u64,
    pub sampled: u64,
    pub checked: u64,
    pub distinct: u64,
    pub second_checked: u64,
    pub second_distinct: u64,
    /// Those where the recovery kept more or fewer of the unacknowledged than the one crashed.
    pub second_other: u64,
    pub third_checked: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        self.crashes += other.crashes;
        self.exhaustive += other.exhaustive;
        self.sampled += other.sampled;
        self.checked += other.checked;
        self.distinct += other.distinct;
        self.second_checked += other.second_checked;
        self.second_distinct += other.second_distinct;
        self.second_other += other.second_other;
        self.third_checked += other.third_checked;
    }

    pub fn json(&self) -> String {
        let Self { histories, crashes, exhaustive, sampled, checked, distinct, .. } = self;
        let Self { second_checked, second_distinct, second_other, third_checked, .. } = self;
        format!(
            "{{\"histories\": {histories}, \"crashes\": {crashes}, \
             \"exhaustive\": {exhaustive}, \"sampled\": {sampled}, \
             \"checked\": {checked}, \"distinct\": {distinct}, \
             \"second_checked\": {second_checked}, \"second_distinct\": {second_distinct}, \
             \"second_other\": {second_other}, \"third_checked\": {third_checked}}}"
        )
    }
}

/// Explores the histories of one configuration.
pub struct Explorer<'a> {
    subject: &'a Subject,
    config: Config,
    pub plan: Plan,
    nested: Vec<u8>,
    seen: Seen,
    seen_second: Seen,
    pub counts: Counts,
}

impl<'a> Explorer<'a> {
    pub fn new(subject: &'a Subject, config: Config, plan: Plan) -> Self {
        Self {
            subject,
            config,
            plan,
            nested: subject.nested(),
            seen: Seen::default(),
            seen_second: Seen::default(),
            counts: Counts::default(),
        }
    }

    /// Crash every step of a history from number `from` on; number 0 is its creation.
    pub fn history(&mut self, history: &str, from: usize) -> Result<(), String> {
        let nested = std::mem::take(&mut self.nested);
        let mut run = Run::new(self.subject, self.config, &nested);
        let mut done = Ok(());
        if from == 0 {
            run.record();
        }
        done = done.and_then(|()| run.open());
        for (step, op) in history.chars().enumerate() {
            if step + 1 == from {
                run.record();
            }
            done = done.and_then(|()| run.apply(op));
        }
        let without = |what| format!("without a crash: {what}");
        done.map_err(|error| without(format!("{error:?}")))?;
        views::check_all(self.subject, run.log(), &run.records).map_err(without)?;
        let moments = std::mem::take(&mut run.moments);
        drop(run);
        self.nested = nested;
        self.counts.histories += 1;
        if self.seen.len() + self.seen_second.len() > SEEN_MAX {
            self.seen.clear();
            self.seen_second.clear();
        }
        let (mut step, mut call) = (0, 0);
        for moment in &moments {
            call = if moment.step == step { call + 1 } else { 0 };
            step = moment.step;
            // The same for the same place, whether or not the steps before are crashed as well.
            let place = ((step as u64) << 32) | call;
            let seed = mix(self.plan.seed ^ hash(history.as_bytes()) ^ mix(place));
            self.moment(moment, seed)
                .map_err(|what| format!("step {step}, change {call}: {what}"))?;
        }
        Ok(())
    }

    fn moment(&mut self, moment: &Moment, seed: u64) -> Result<(), String> {
        self.counts.crashes += 1;
        let context = moment.context();
        // Only the death of the process.
        let killed = moment.disk.kill();
        if self.seen.insert(mix(killed.fingerprint() ^ context ^ 1)) {
            self.counts.distinct += 1;
            self.recover(&killed, moment, seed, true)
                .map_err(|what| format!("process killed: {what}"))?;
        }
        self.counts.checked += 1;
        let crashes = moment.disk.crashes();
        let count = crashes.count();
        let every = count <= self.plan.per_moment;
        match every {
            true => self.counts.exhaustive += 1,
            false => self.counts.sampled += 1,
        }
        for index in 0..count.min(self.plan.per_moment) {
            let choice = match every {
                true => crashes.nth(index),
                false => crashes.sample(mix(seed ^ index)),
            };
            let image = crashes.build(&choice);
            self.counts.checked += 1;
            let key = mix(image.fingerprint() ^ context);
            if !self.seen.insert(key) {
                continue;
            }
            self.counts.distinct += 1;
            self.recover(&image, moment, key, false)
                .map_err(|what| format!("state {index} of {count}, {choice:?}: {what}"))?;
        }
        Ok(())
    }

    /// Recover, judge, go on; crash the recovery, too.
    fn recover(
        &mut self,
        image: &Sim,
        moment: &Moment,
        key: u64,
        killed: bool,
    ) -> Result<(), String> {
        let how = How { durability: Durability::Always, ..self.config.how };
        let deep = killed || key.is_multiple_of(self.plan.second_every);
        let refused = |error| format!("recovery refused: {error:?}");
        let mut peeked = None;
        if deep {
            let before = image.fingerprint();
            peeked = Some(self.subject.peek(image));
            if image.fingerprint() != before {
                return Err("a reader changed the disk".into());
            }
            image.record();
        }
        let log = self.subject.open(image, how).map_err(refused)?;
        let during = if deep { image.recorded() } else { Vec::new() };
        let got = log.read_all().map_err(|error| format!("reading: {error:?}"))?;
        let whole = how.acknowledged();
        let found = moment.judge(&*log, &got, whole)?;
        views::check_all_durable(self.subject, &*log, &got)?;
        match deep {
            true => views::check_all(self.subject, &*log, &got)?,
            false => views::check_few(&*log, &got)?,
        }
        // An earlier reader saw the same, and at least what was not cut on request.
        match peeked {
            Some(Ok(seen)) if seen.len() >= got.len() && (whole || seen == got) => {
                judge(&seen, &found.records, found.acked, false)
                    .map_err(|what| format!("read: {what}"))?;
            }
            Some(Err(error)) if error.kind() == ErrorKind::Missing && got.is_empty() => {}
            Some(other) => return Err(format!("a reader got {other:?}, recovery {got:?}")),
            None => {}
        }
        let (more, after) = self.go_on(image, how, log, &got, found, deep)?;
        if !deep {
            return Ok(());
        }
        for (call, disk) in during.iter().enumerate() {
            let crashes = disk.crashes();
            for index in 0..self.plan.per_second.min(crashes.count()) {
                let choice = match index {
                    0 => crashes.nth(0),
                    _ => crashes.sample(mix(key ^ index ^ ((call as u64) << 32))),
                };
                let image = crashes.build(&choice);
                self.counts.second_checked += 1;
                if !self.seen_second.insert(mix(image.fingerprint() ^ mix(key))) {
                    continue;
                }
                self.counts.second_distinct += 1;
                let there =
                    |what| format!("second crash, call {call} of recovery, {choice:?}: {what}");
                let log = self.subject.open(&image, how).map_err(refused).map_err(there)?;
                let second = log.read_all().map_err(|e| there(format!("reading: {e:?}")))?;
                // Mostly the same as the first time. But cutting a deed that was torn by stale bytes
                // after the end can leave zeros there, which is what its length trailer wants.
                self.counts.second_other += u64::from(!killed && second.len() != got.len());
                moment.judge(&*log, &second, whole).map_err(there)?;
                views::check_few(&*log, &second).map_err(there)?;
            }
        }
        // What was found and what was appended since is acknowledged now.
        let crashes = after.crashes();
        for index in 0..self.plan.per_second.min(crashes.count()) {
            let choice = match index {
                0 => crashes.nth(0),
                _ => crashes.sample(mix(key ^ index)),
            };
            let image = crashes.build(&choice);
            self.counts.third_checked += 1;
            let there = |what| format!("crash after going on, {choice:?}: {what}");
            let log = self.subject.open(&image, how).map_err(refused).map_err(there)?;
            let third = log.read_all().map_err(|e| there(format!("reading: {e:?}")))?;
            judge(&third, &more, more.len(), whole).map_err(there)?;
        }
        Ok(())
    }

    /// Append to a log that was recovered, close it, open it again; returns the records and the
    /// disk after the append.
    fn go_on(
        &self,
        image: &Sim,
        how: How,
        log: Box<dyn Log>,
        got: &[Record],
        found: &Expect,
        deep: bool,
    ) -> Result<(Vec<Record>, Sim), String> {
        // Where blocks of the index were closed, over them again, with other borders.
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
        if deep {
            views::check_all(self.subject, &*log, &more).map_err(there)?;
        }
        let end = log.end().map_err(|error| format!("the end: {error:?}"))?;
        log.close().map_err(|error| format!("closing: {error:?}"))?;
        drop(log);
        if deep {
            self.loss_is_reported(image, how, &more, end)?;
        }
        let there = |what| format!("opened again: {what}");
        let log = self.subject.open(image, how).map_err(|e| there(format!("{e:?}")))?;
        let again = log.read_all().map_err(|e| there(format!("{e:?}")))?;
        judge(&again, &more, more.len(), how.acknowledged()).map_err(there)?;
        if deep {
            views::check_all(self.subject, &*log, &more).map_err(there)?;
        }
        Ok((more, after))
    }

    /// A log that lost its last record to another program is not taken for complete.
    fn loss_is_reported(
        &self,
        image: &Sim,
        how: How,
        records: &[Record],
        end: u64,
    ) -> Result<(), String> {
        if records.len() < 2 {
            return Ok(());
        }
        let disk = image.kill();
        files::cut(self.subject, &disk, files::last_offset(self.subject, records, end));
        let checked = self.subject.check(&disk);
        if !checked.as_ref().is_ok_and(|checked| checked.lost_acknowledged) {
            return Err(format!("the last record was cut off, but checked: {checked:?}"));
        }
        match self.subject.open(&disk, how) {
            Err(error) if error.kind() == ErrorKind::LostRecords => Ok(()),
            Err(error) => Err(format!("the last record was cut off: {error:?}")),
            Ok(_) => Err("the last record was cut off, and the log opened".into()),
        }
    }
}
