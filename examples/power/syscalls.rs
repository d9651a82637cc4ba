//! System calls that fail at the k-th time: by a preloaded shim, and by strace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::mounts::{run as command, scratch};
use crate::victim::{Settled, Victim};
use crate::{Random, Report};

/// The source is inside this program: the program runs from any directory.
const SHIM: &str = include_str!("../../scripts/power/shim.c");
/// No history makes more calls of one kind.
const CALLS_MAX: u64 = 400;

/// The results of a writer with failing calls: the log, standard error, and a failed exit.
struct Struck {
    settled: Settled,
    complaint: String,
    died: bool,
}

impl Struck {
    fn result(&self) -> Result<(), String> {
        let last_words = self.settled.errors.last().cloned().unwrap_or_default();
        let told = |what: String| format!("{what}; the writer's last error: {last_words}");
        self.settled.result.clone().map_err(told)
    }
}

fn strike(
    victim: Victim,
    dir: &Path,
    durability: &str,
    seed: u64,
    wrap: impl Fn(&Path) -> Command,
) -> Struck {
    let program = std::env::current_exe().unwrap();
    let mut child = wrap(&program);
    child.args(victim.arguments(dir, durability, seed));
    let output = child.stdin(Stdio::null()).output().unwrap();
    let settled = victim.settle(dir, &String::from_utf8_lossy(&output.stdout));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    Struck { settled, complaint, died: !output.status.success() }
}

pub fn compile(scratch: &Path) -> Result<PathBuf, String> {
    let (source, library) = (scratch.join("shim.c"), scratch.join("shim.so"));
    std::fs::write(&source, SHIM).map_err(|e| e.to_string())?;
    let (from, to) = (source.to_str().unwrap(), library.to_str().unwrap());
    command("cc", &["-shared", "-fPIC", "-O1", "-o", to, from, "-ldl"])?;
    Ok(library)
}

pub fn shim(report: &mut Report, victim: Victim, seed: u64) {
    let scratch = scratch();
    let library = match compile(scratch.path()) {
        Ok(library) => library,
        Err(why) => return report.skip(&victim.part("shim"), &why),
    };
    let errors = |call: &str| match call {
        "pwrite64" => &["short", "zero", "EINTR", "EIO", "ENOSPC", "EDQUOT", "EFBIG"][..],
        "fdatasync" | "fsync" => &["EINTR", "EIO", "ENOSPC"],
        _ => &["EINTR", "EIO", "ENOSPC", "EOPNOTSUPP"],
    };
    let mut calls =
        vec!["pwrite64", "fdatasync", "fsync", "fallocate64", "ftruncate64", "rename", "open64"];
    calls.extend(victim.removes().then_some("unlink"));
    for call in calls {
        let part = victim.part(&format!("shim, {call}"));
        for error in errors(call) {
            for times in ["1", "1000000"] {
                if *error == "EINTR" && times != "1" {
                    continue; // std calls again, for ever
                }
                let mut at = 1;
                loop {
                    let durability = ["always", "manual", "bytes:50000"][at as usize % 3];
                    let dir = scratch.path().join("log");
                    let struck = strike(victim, &dir, durability, seed ^ at, |program| {
                        let mut child = Command::new(program);
                        child.env("LD_PRELOAD", &library).env("SHIM_CALL", call);
                        child.env("SHIM_ERROR", error).env("SHIM_TIMES", times);
                        child.env("SHIM_AT", at.to_string());
                        child
                    });
                    let fired = struck.complaint.contains("shim: fired");
                    let mut result = struck.result();
                    if struck.died {
                        result = Err(format!("the writer died: {}", struck.complaint));
                    }
                    let _ = std::fs::remove_dir_all(&dir);
                    if let Err(what) = result {
                        report
                            .fail(format!("{part} {error} x {times} at {at}, seed {seed}: {what}"));
                        break;
                    }
                    if !fired {
                        break;
                    }
                    report.count(&part, error, 1);
                    report.count(&part, "errors told", struck.settled.errors.len() as u64);
                    // Every call at first, then fewer and fewer.
                    at += (1 + at / 12) * victim.share();
                    if at > CALLS_MAX {
                        break;
                    }
                }
            }
        }
    }
}

pub fn strace(report: &mut Report, victim: Victim, seed: u64) {
    if let Err(why) = command("strace", &["-f", "-o", "/dev/null", "-e", "trace=none", "true"]) {
        return report.skip(&victim.part("strace"), &why);
    }
    let scratch = scratch();
    let mut random = Random(seed);
    let mut calls =
        vec!["pwrite64", "fdatasync", "fallocate", "ftruncate", "rename", "openat", "mmap"];
    calls.extend(victim.removes().then_some("unlink"));
    for call in calls {
        let part = victim.part(&format!("strace, {call}"));
        // Some machines have only the newer calls. With `?`, strace ignores unknown calls.
        let set = match call {
            "rename" => "?rename,?renameat,?renameat2",
            "unlink" => "?unlink,?unlinkat",
            known => known,
        };
        for what in ["signal=SIGKILL", "error=EIO", "error=ENOSPC"] {
            if call == "mmap" && what != "signal=SIGKILL" {
                continue; // the loader needs it
            }
            let mut at = if matches!(call, "openat" | "mmap") { 8 } else { 1 };
            for _ in 0..(8 / victim.share()).max(2) {
                let durability = ["always", "manual", "interval:1"][random.below(3) as usize];
                let dir = scratch.path().join("log");
                let inject = format!("inject={set}:{what}:when={at}");
                let struck = strike(victim, &dir, durability, seed ^ at, |program| {
                    let mut child = Command::new("strace");
                    child.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
                    child.args([&format!("trace={set}"), "-e", &inject]).arg(program);
                    child
                });
                let mut result = struck.result();
                if struck.complaint.starts_with("strace:") {
                    result = Err(format!("nothing was struck: {}", struck.complaint.trim_end()));
                }
                let _ = std::fs::remove_dir_all(&dir);
                if let Err(problem) = result {
                    report.fail(format!("{part} {inject}, seed {seed}: {problem}"));
                    break;
                }
                report.count(&part, what.split('=').next_back().unwrap_or_default(), 1);
                if what == "signal=SIGKILL" && struck.settled.finished {
                    break; // it makes no more calls than that
                }
                at += 1 + random.below(at / 2 + 2);
            }
        }
    }
}
