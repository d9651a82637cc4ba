//! Every figure of a report about a damaged log, held against `tests/data/reports.txt`.
//!
//! `DEEDBOOK_WRITE_TEXTS=1 cargo test --all-features --test reports` writes the file. The suite
//! `answers` has an oracle that says whether an answer is right; this one notices each figure that
//! changes.

#![cfg(unix)]
#![allow(dead_code)]

mod shown;
mod situations;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use deedbook::{Mode, Repair, RepairReport};

use crate::support::formats::{specimen, subject};
use crate::support::texts;
use shown::{left, mark, opening, parts, repairing, salvaging, verifying};
use situations::{FORMATS, each};
use specimen::{DIR, Files};
use subject::{At, Format, How};
use texts::differences;

const FILE: &str = "tests/data/reports.txt";
const SAID_FIRST: &str = "\
# What reading, checking, repairing and opening reports of damaged logs: the situation, then a line
# for each call. DEEDBOOK_WRITE_TEXTS=1 cargo test --all-features --test reports writes this file.
";

/// Every call about a log, each on files of its own.
fn reports(format: &dyn Format, files: &Files, how: How) -> String {
    let there = || {
        let memory = files.restore();
        let at = At::memory(&memory, format.path_in(Path::new(DIR)));
        (memory, at)
    };
    let mut lines = Vec::new();
    let (_, at) = there();
    match format.open(&at, Mode::Read, how) {
        Ok(log) => {
            lines.push(format!("read    {}", opening(log.recovery())));
            lines.push(format!("parts   {}", parts(&log.parts(1))));
        }
        Err(error) => lines.push(format!("read    {}", shown::error(&error))),
    }
    lines.push(format!("verify  {}", verifying(&format.verify_rest(&at, how, &[]))));
    let dry_run = Repair { dry_run: true, ..Repair::default() };
    let would = format.repair_as(&at, how, dry_run);
    lines.push(format!("dry run {}", repairing(&would)));
    let to = format.path_in(Path::new("/copy"));
    at.storage.create_dir(to.parent().unwrap()).unwrap();
    lines.push(format!("salvage {}", salvaging(&format.salvage(&at, &to, how))));

    let forced = Repair { force: true, accept_loss: true, dry_run: false };
    for (name, may) in [("repair ", Repair::default()), ("force  ", forced)] {
        let (memory, at) = there();
        let repaired = format.repair_as(&at, how, may);
        lines.push(format!("{name} {}", repairing(&repaired)));
        if let (Ok(would), Ok(did)) = (&would, &repaired)
            && did.mended
        {
            let does = |report: &RepairReport| (report.cut_bytes, report.set_aside.len());
            assert_eq!(does(would), does(did), "the dry run, and the repair");
        }
        lines.extend(after(left(format, files, &memory)));
    }
    let (memory, at) = there();
    match format.open(&at, Mode::Append, how) {
        Ok(log) => {
            lines.push(format!("append  {}", opening(log.recovery())));
            lines.extend(after(left(format, files, &memory)));
            lines.extend(after(mark(&Files::of(&memory))));
        }
        Err(error) => lines.push(format!("append  {}", shown::error(&error))),
    }
    lines.join("\n")
}

/// What a call left, if that is anything to say.
fn after(left: String) -> Option<String> {
    (!left.is_empty()).then(|| format!("        {left}"))
}

#[test]
fn every_report_of_a_damaged_log_says_what_the_file_says() {
    let mut met = SAID_FIRST.to_string();
    for format in FORMATS {
        for (name, files, how) in each(format) {
            let lines = reports(format, &files, how);
            write!(met, "\n{}: {name}\n{lines}\n", format.name()).unwrap();
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("DEEDBOOK_WRITE_TEXTS").is_some() {
        fs::write(&file, &met).unwrap();
    }
    let changed = differences(&fs::read_to_string(&file).unwrap(), &met);
    assert!(
        changed.is_empty(),
        "reports changed: if that is right, DEEDBOOK_WRITE_TEXTS=1 writes {FILE} anew\n\n{changed}"
    );
}
