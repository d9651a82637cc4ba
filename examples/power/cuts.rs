//! Power cuts on loop-mounted ext4 and xfs: `shutdown` makes the file system drop all data not yet
//! on the device; mounting again replays the journal.
//!
//! A difference from a real power cut: an `fdatasync` running during `shutdown` may return success
//! for data that never reached the device (on Linux 6.18 with both file systems, and with any
//! program). So the test usually stops the writer first. Otherwise only the writer's earlier output
//! counts.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::account::{Account, Must};
use crate::kind::{Kind, segments};
use crate::mounts::{FileSystem, run as command, scratch};
use crate::syscalls::compile;
use crate::{Random, Report, number};

/// The most bytes that a writer may add to the log.
const BYTES_MAX: u64 = 3 << 20;
/// Number of power cuts before beginning a new log.
const STRIKES: u64 = 6;

pub fn run(report: &mut Report, kind: Kind, seed: u64) {
    let scratch = scratch();
    let part_of = |system: &str| kind.part(&format!("power cuts, {system}"));
    each_system(report, scratch.path(), seed, part_of, |report, part, fs, random| {
        let mut account = Account::of(kind);
        for cycle in 0..number("DEEDBOOK_POWER_CYCLES", 100) / kind.share() {
            let dir = fs.at.join(format!("log-{}", cycle / STRIKES));
            if cycle % STRIKES == 0 {
                account = Account::of(kind);
                if let Some(old) = (cycle / STRIKES).checked_sub(1) {
                    std::fs::remove_dir_all(fs.at.join(format!("log-{old}"))).unwrap();
                }
            }
            strike(report, part, fs, &dir, &mut account, random, None)
                .map_err(|what| format!("cycle {cycle}: {what}"))?;
        }
        prove(report, part, kind, fs, scratch.path(), random);
        Ok(())
    });
}

/// Cut the power on each available file system. Returns after the first failure.
pub fn each_system(
    report: &mut Report,
    scratch: &Path,
    seed: u64,
    part_of: impl Fn(&str) -> String,
    mut cut: impl FnMut(&mut Report, &str, &mut FileSystem, &mut Random) -> Result<(), String>,
) {
    for (system, mib) in [("ext4", 96), ("xfs", 320)] {
        let part = part_of(system);
        let made = FileSystem::make(system, scratch, mib)
            .and_then(|fs| command("xfs_io", &["-V"]).map(|_| fs));
        let mut fs = match made {
            Ok(fs) => fs,
            Err(why) => {
                report.skip(&part, &why);
                continue;
            }
        };
        if let Err(what) = cut(report, &part, &mut fs, &mut Random(seed ^ mib)) {
            return report.fail(format!("{part}, seed {seed}, {what}"));
        }
    }
}

/// A test that cannot fail proves nothing: with a `fdatasync` that lies, the check must find
/// missing records.
fn prove(
    report: &mut Report,
    part: &str,
    kind: Kind,
    fs: &mut FileSystem,
    scratch: &Path,
    random: &mut Random,
) {
    let library = match compile(scratch) {
        Ok(library) => library,
        Err(why) => return report.skip(&format!("{part}, fdatasync that lies"), &why),
    };
    let mut unproved = Report::default();
    for i in 0..20 {
        let (dir, mut account) = (fs.at.join(format!("lie-{i}")), Account::of(kind));
        let lied = strike(&mut unproved, part, fs, &dir, &mut account, random, Some(&library));
        if let Err(what) = lied {
            println!("{part}, fdatasync that lies: {}", what.split(';').next().unwrap_or_default());
            return report.count(part, "lies of fdatasync caught", 1);
        }
    }
    report.fail(format!("{part}: 20 cuts with a fdatasync that lies, and nothing was missed"));
}

/// A writer or opener, killed on drop even if stopped: a left process would keep the file system
/// mounted.
pub struct Process(Child);

impl Process {
    /// The process's output; call once.
    pub fn stdout(&mut self) -> ChildStdout {
        self.0.stdout.take().unwrap()
    }

    pub fn signal(&self, name: &str) -> Result<(), String> {
        command("kill", &[name, &self.0.id().to_string()])
    }

    /// Kill the process, and wait for the end.
    pub fn kill(&mut self) -> Result<(), String> {
        self.0.kill().map_err(|e| e.to_string())?;
        self.0.wait().map(drop).map_err(|e| e.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Start this program again as a writer or opener.
pub fn start(args: &[&str], lie: Option<&Path>) -> Result<Process, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new(program);
    child.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    if let Some(library) = lie {
        child.env("LD_PRELOAD", library).env("SHIM_CALL", "fdatasync").env("SHIM_AT", "1");
        child.env("SHIM_TIMES", "1000000").env("SHIM_ERROR", "lie").stderr(Stdio::null());
    }
    child.spawn().map(Process).map_err(|e| e.to_string())
}

fn strike(
    report: &mut Report,
    part: &str,
    fs: &mut FileSystem,
    dir: &Path,
    account: &mut Account,
    random: &mut Random,
    lie: Option<&Path>,
) -> Result<(), String> {
    let kind = account.kind();
    let durability =
        ["always", "manual", "interval:5", "bytes:100000", "none"][random.below(5) as usize];
    let writer_seed = random.draw().to_string();
    let bytes = BYTES_MAX.to_string();
    let path = dir.to_str().unwrap();
    let name = kind.name();
    let args = ["write", name, path, durability, &writer_seed, "1000000", &bytes];
    let mut child = start(&args, lie)?;
    let mut pipe = child.stdout();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let said_by_now =
        |heard: &Mutex<Vec<u8>>| String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
    let ear = std::thread::spawn({
        let heard = heard.clone();
        move || {
            let mut block = [0; 1 << 16];
            while let Some(read) = pipe.read(&mut block).ok().filter(|&read| read > 0) {
                heard.lock().unwrap().extend_from_slice(&block[..read]);
            }
        }
    });

    // Sometimes during the creation of the log, mostly later.
    let wait = if random.below(4) == 0 { random.below(4000) } else { random.below(60_000) };
    let until = Instant::now() + Duration::from_micros(wait);
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
    let stopped = random.below(3) > 0;
    if stopped {
        child.signal("-STOP")?;
    }
    let log = random.below(2) == 0;
    let before = said_by_now(&heard);
    fs.cut(log)?;
    if !stopped {
        // The writer goes on with a failing disk, and must not acknowledge anything.
        std::thread::sleep(Duration::from_micros(random.below(5000)));
    }
    child.kill()?;
    ear.join().unwrap();
    let said = said_by_now(&heard);
    let sure = if stopped { said.len() } else { before.rfind('\n').map_or(0, |end| end + 1) };
    let truncations = account.truncations;
    account.hear(&said[..sure]);
    account.hear_in_doubt(&said[sure..]);
    fs.unmount()?;
    fs.mount()?;

    // Cut again during recovery.
    let again = random.below(3) == 0 && kind.exists(dir);
    if again {
        let mut opener = start(&["open", name, path], lie)?;
        let mut pipe = opener.stdout();
        let _ = pipe.read(&mut [0; 16]);
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        if stopped {
            opener.signal("-STOP")?;
        }
        fs.cut(log)?;
        opener.kill()?;
        fs.unmount()?;
        fs.mount()?;
        report.count(part, "cuts in recovery", 1);
    }

    let segments = segments(dir);
    let checked = account.check(dir, Must::Durable).map_err(|what| {
        let told = |line: &&str| !line.contains("cannot lock");
        let lines: Vec<_> = said.lines().rev().filter(told).take(14).collect();
        format!(
            "{what}; durability {durability}, writer stopped {stopped}, journal flushed {log}, \
             struck again {again}, said last (backwards) {lines:?}"
        )
    })?;
    report.count(part, "cycles", 1);
    report.count(part, durability.split(':').next().unwrap_or_default(), 1);
    report.count(part, if log { "journal flushed" } else { "journal dropped" }, 1);
    report.count(part, if stopped { "writer stopped" } else { "writer running" }, 1);
    report.count(part, "torn", u64::from(checked.torn));
    let records = kind.records();
    report.count(part, &format!("acknowledged {records}"), checked.acknowledged);
    report.count(part, "synced during the shutdown, lost", checked.claimed_lost);
    report.count(part, &format!("unacknowledged {records} lost"), checked.appended_lost);
    if kind.cuts_ends() {
        report.count(part, "truncations", account.truncations - truncations);
        report.count(part, "cuts in a truncation", u64::from(checked.truncated.is_some()));
        report.count(part, "of them, truncated", u64::from(checked.truncated == Some(true)));
    }
    if kind == Kind::WalSegments {
        report.count(part, "segments found", segments);
    }
    Ok(())
}
