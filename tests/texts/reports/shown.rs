//! Reports as lines. A line leaves out empty fields and the reasons of damage, which the suite `error_texts` has.

use deedbook::report::{Loss, SalvageRun};

use crate::support::formats::framing::crc32;
use crate::support::prelude::*;

#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn say(&mut self, what: impl Into<String>) -> &mut Self {
        self.0.push(what.into());
        self
    }

    fn number(&mut self, name: &str, number: impl Into<Option<u64>>) -> &mut Self {
        if let Some(number) = number.into() {
            self.0.push(format!("{name} {number}"));
        }
        self
    }

    fn count(&mut self, name: &str, count: u64) -> &mut Self {
        self.number(name, Some(count).filter(|&count| count > 0))
    }

    fn flag(&mut self, name: &str, is: bool) -> &mut Self {
        if is {
            self.0.push(name.into());
        }
        self
    }

    fn path(&mut self, name: &str, path: Option<&PathBuf>) -> &mut Self {
        if let Some(path) = path {
            self.0.push(format!("{name} {}", path.display()));
        }
        self
    }

    fn paths(&mut self, name: &str, paths: &[PathBuf]) -> &mut Self {
        paths.iter().fold(self, |line, path| line.path(name, Some(path)))
    }

    fn loss(&mut self, loss: Option<&Loss>) -> &mut Self {
        if let Some(loss) = loss {
            self.0.push(format!("{loss:?}"));
        }
        self
    }

    fn damage<'a>(&mut self, damages: impl IntoIterator<Item = &'a Damage>) -> &mut Self {
        for damage in damages {
            let Damage { offset, end, next_intact, next_proved, .. } = damage;
            let Damage { first_lost, records_lost, reason, .. } = damage;
            let mut inner = Self::default();
            inner.say(format!("{offset}..{end}")).number("next", *next_intact);
            inner.flag("proved", *next_proved).number("first lost", *first_lost);
            inner.number("lost", *records_lost).flag("no reason", reason.is_empty());
            self.0.push(format!("[{}]", inner.0.join(", ")));
        }
        self
    }

    fn done(&self) -> String {
        self.0.join("; ")
    }
}

pub fn error(error: &Error) -> String {
    let mut line = Line::default();
    line.say(format!("ERROR {}", error.kind().name())).number("offset", error.offset());
    line.number("next", error.next_intact()).done()
}

pub fn opening(report: &OpenReport) -> String {
    let mut line = Line::default();
    line.say(report.verdict.name()).say(format!("mark {:?}", report.mark));
    line.number("scanned records", report.scanned_records).number("bytes", report.scanned_bytes);
    line.say(format!("valid to {} of {}", report.valid_end, report.file_end));
    line.number("durable to", report.durable_end).count("torn", report.torn_bytes);
    line.count("cut", report.cut_bytes).count("cut records", report.cut_records);
    line.path("saved to", report.saved_to.as_ref()).paths("set aside", &report.set_aside);
    line.loss(report.loss.as_ref());
    line.flag("finished a truncation", report.finished_truncation);
    line.damage(&report.damage).done()
}

fn line<T>(report: &Result<T>, say: impl FnOnce(&mut Line, &T)) -> String {
    let mut line = Line::default();
    match report {
        Ok(report) => say(&mut line, report),
        Err(e) => return error(e),
    }
    line.done()
}

pub fn verifying(report: &Result<VerifyReport>) -> String {
    line(report, |line, report| {
        line.say(report.verdict.name()).number("records", report.records);
        line.count("uncertain", report.uncertain).number("bytes", report.bytes);
        line.say(format!("{:?}", report.bounds));
        line.say(format!("valid to {} of {}", report.valid_end, report.file_end));
        line.number("durable to", report.durable_end);
        line.flag("LOST", report.lost_acknowledged).loss(report.loss.as_ref());
        line.damage(&report.damages);
    })
}

pub fn repairing(report: &Result<RepairReport>) -> String {
    line(report, |line, report| {
        line.say(if report.mended { "mended" } else { "not mended" });
        line.number("valid to", report.valid_end);
        line.count("cut", report.cut_bytes).count("cut records", report.cut_records);
        line.path("saved to", report.saved.first()).paths("set aside", &report.set_aside);
        line.loss(report.loss.as_ref().or(report.earlier_loss.as_ref()));
        line.damage(&report.damages);
    })
}

pub fn salvaging(report: &Result<SalvageReport>) -> String {
    line(report, |line, report| {
        line.number("records", report.records);
        for run in &report.runs {
            let SalvageRun { source_ordinal, source_offset, records, .. } = run;
            let SalvageRun { ordinal, offset, proved, .. } = run;
            let from = source_ordinal.map_or("?".into(), |ordinal| ordinal.to_string());
            let doubt = if *proved { "" } else { ", not proved" };
            line.say(format!(
                "{records} from {from} at {source_offset} to {ordinal} at {offset}{doubt}"
            ));
        }
        line.loss(report.loss.as_ref()).damage(&report.damages);
    })
}

pub fn parts(parts: &Result<Vec<Split>>) -> String {
    line(parts, |line, parts| {
        for part in parts {
            let mut inner = Line::default();
            inner.say(format!("{}..{}", part.offset, part.end)).number("first", part.ordinal);
            inner.number("records", part.records).number("known end", part.known_end);
            inner.number("unacknowledged from", part.unacknowledged_from);
            line.say(format!("({})", inner.0.join(", ")));
        }
    })
}

/// The log's size and the new files next to the log, if the call changed them.
pub fn left(format: &dyn Format, before: &Files, memory: &Memory) -> String {
    let is_log = |path: &Path| !path.components().any(|part| part.as_os_str() == ".deedbook");
    let after = Files::of(memory);
    let before = before.space(format);
    let space = after.space(format);
    let begins = before.len() >= space.len() && before.starts_with(&space);
    let mut line = Line::default();
    if before.len() != space.len() {
        line.say(format!("{} bytes left", space.len()));
    }
    line.flag("CHANGED", !begins);
    let is_new = |(path, bytes): (&PathBuf, &Vec<u8>)| {
        let name = path.file_name()?.to_str()?;
        let known = ["lock", "mark", "index", "settings", "book.log", "wal"].contains(&name);
        let is_segment = is_log(path) && name.ends_with(".wal");
        (!known && !is_segment).then(|| format!("{} of {}", path.display(), bytes.len()))
    };
    let new: Vec<_> = after.bytes.iter().filter_map(is_new).collect();
    line.0.extend(new);
    line.done()
}

/// The contents of the mark's newest slot; the table is in `src/sidecar/mark.rs`.
pub fn mark(files: &Files) -> String {
    let Some(mark) = files.named("mark") else { return "no mark".into() };
    let number = |slot: &[u8], at: usize| u64::from_le_bytes(*slot[at..].first_chunk().unwrap());
    let slots = [0, 512].into_iter().filter_map(|at| mark.get(at..at + 128));
    let intact = slots.filter(|slot| slot[124..] == crc32(&slot[..124]).to_le_bytes());
    let Some(slot) = intact.max_by_key(|slot| number(slot, 8)) else { return "no mark".into() };
    let mut line = Line::default();
    line.number("mark: stored", number(slot, 8)).number("first", number(slot, 16));
    line.number("records", number(slot, 24)).number("start", number(slot, 96));
    line.number("end", number(slot, 32)).number("last at", number(slot, 40));
    line.number("index entries", number(slot, 56));
    line.flag("closed", slot[6] & 1 != 0).flag("exact", slot[6] & 2 != 0);
    line.done()
}
