//! Every figure of a report about a damaged log, compared with a snapshot for each format.
//!
//! The 23 situations show every kind of line and every field. The oracle of the suite `answers` decides whether an
//! answer is right, here and in very many other states; these tests notice each changed figure. To write the snapshots
//! again, run `INSTA_UPDATE=always cargo test --all-features --test texts`.

#![cfg(unix)]

mod shown;
mod situations;

use std::fmt::Write as _;

use crate::support::formats::{book, wal};
use crate::support::prelude::*;
use shown::{left, mark, opening, parts, repairing, salvaging, verifying};
use situations::{each, every_pair};

/// Every call about a log, each on its own files. A dry run or a forced repair has a line if it differs.
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
    let to = format.path_in(Path::new("/copy"));
    at.storage.create_dir(to.parent().unwrap()).unwrap();
    lines.push(format!("salvage {}", salvaging(&format.salvage(&at, &to, how))));

    let repair = |may| {
        let (memory, at) = there();
        let repaired = format.repair_as(&at, how, may);
        let mut said = vec![repairing(&repaired)];
        said.extend(after(left(format, files, &memory)));
        (said.join("\n"), repaired)
    };
    let (said, mut repaired) = repair(Repair::default());
    if let (Ok(would), Ok(did)) = (&would, &mut repaired) {
        assert!(!would.mended && would.saved.is_empty(), "a dry run");
        if did.mended {
            let does = |report: &RepairReport| (report.cut_bytes, report.set_aside.len());
            assert_eq!(does(would), does(did), "the dry run, and the repair");
        }
        did.mended = false;
        did.saved.clear();
    }
    if repairing(&would) != repairing(&repaired) {
        lines.push(format!("dry run {}", repairing(&would)));
    }
    lines.push(format!("repair  {said}"));
    let (by_force, _) = repair(FORCED);
    if by_force != said {
        lines.push(format!("force   {by_force}"));
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

fn after(left: String) -> Option<String> {
    (!left.is_empty()).then(|| format!("        {left}"))
}

fn pinned(format: &dyn Format) {
    let mut met = String::new();
    for (name, files, how) in each(format) {
        writeln!(met, "{name}\n{}\n", reports(format, &files, how)).unwrap();
    }
    let mut settings = insta::Settings::new();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format.name(), met));
    predicted(format);
}

/// No snapshot has these reports, but each dry run must predict its repair.
fn predicted(format: &dyn Format) {
    for (_, files, how) in every_pair(format) {
        reports(format, &files, how);
    }
}

#[test]
fn packed_damage_reports_match_the_snapshot() {
    pinned(&book::BOOK);
}

#[test]
fn slots_damage_reports_match_the_snapshot() {
    pinned(&book::SLOTS);
}

#[test]
fn dry_runs_predict_repairs_of_single_files() {
    predicted(&wal::SINGLE);
}

#[test]
fn segmented_wal_damage_reports_match_the_snapshot() {
    pinned(&wal::TINY);
}
