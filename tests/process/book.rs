//! Real processes: writers killed at any moment, and failing system calls.
#![cfg(unix)]

use std::process::{Child, ExitStatus};

use deedbook::book::{Layout, Options};

use crate::support::prelude::*;
use crate::support::{common, report};
use common::{Event, Random, check, event_of};

const ROLES: [&str; 5] = ["always", "manual", "interval:2", "bytes:3000", "none"];

fn event(number: u64) -> Event {
    match number % 40 {
        0 => event_of(number, 150_000),
        1..4 => event_of(number, 30_000),
        _ => event_of(number, 300),
    }
}

const LAYOUTS: [(Layout, &str); 2] = [(Layout::Packed, ""), (Layout::Slots, "slots+")];

fn layout_of(role: &str) -> (Layout, &str) {
    let rest = role.strip_prefix("slots+");
    (if rest.is_some() { Layout::Slots } else { Layout::Packed }, rest.unwrap_or(role))
}

/// The writer: appends, and prints each event that must survive the kill on stderr, 8 bytes a time.
fn write_for_ever(role: &str, path: &Path, last_wanted: u64) {
    let (layout, durability) = layout_of(role);
    let (layout, durability) = (Some(layout), durability.parse().unwrap());
    let options = Options::new().durability(durability).layout(layout);
    let book = options.open(path, Mode::Append).unwrap();
    let mut acknowledge = std::io::stderr();
    let mut batch = book.batch();
    loop {
        let next = book.last().unwrap() + 1;
        if next > last_wanted {
            break;
        }
        let last = if next.is_multiple_of(5) {
            batch.clear();
            for number in next..next + 3 {
                let (mug, jam) = event(number);
                batch.push(mug, &jam).unwrap();
            }
            book.append_batch(&batch, Some(next), None).unwrap() + 2
        } else {
            let (mug, jam) = event(next);
            book.append(mug, &jam).unwrap()
        };
        if durability == Durability::Manual && next.is_multiple_of(3) {
            book.sync().unwrap();
        }
        // After an append has returned, a crash of the process loses nothing.
        acknowledge.write_all(&last.to_le_bytes()).unwrap();
    }
    book.close().unwrap();
}

/// Every acknowledged event is there, and every event is a written one.
fn judge(path: &Path, acknowledged: u64, what: &str) -> u64 {
    let looked = Book::open(path).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_ne!(looked.recovery().verdict, deedbook::report::Verdict::Corrupt, "{what}");
    drop(looked);
    let book = Book::append_to(path).unwrap_or_else(|e| panic!("{what}: {e}"));
    let last = book.last().unwrap();
    assert!(last >= acknowledged, "{what}: {acknowledged} were acknowledged, {last} are there");
    let mut next = 1;
    for deed in book.iter(..).unwrap() {
        let deed = deed.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(
            deed.event == Some(next) && (deed.mug, deed.jam) == event(next),
            "{what}: event {next}"
        );
        next += 1;
    }
    assert_eq!(next, last + 1, "{what}");
    book.close().unwrap();
    assert!(check(path, &Options::default()).ok(), "{what}");
    last
}

fn acknowledged(child: &mut Child) -> u64 {
    let mut bytes = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut bytes).unwrap();
    bytes.chunks_exact(8).next_back().map_or(0, |last| u64::from_le_bytes(last.try_into().unwrap()))
}

// Promise: kill, slots-crash.
#[test]
fn a_killed_writer_loses_no_acknowledged_event() {
    let cycles = report::of_tier("DEEDBOOK_KILL_CYCLES");
    let seed = report::number("DEEDBOOK_SEED", 1);
    let packed = kill(LAYOUTS[0], cycles, seed);
    let slots = kill(LAYOUTS[1], (cycles / 3).max(30), seed);
    let json = format!(
        "{{\"seed\": {seed}, \"cycles\": {}, \"before_the_first_event\": {}, \
         \"acknowledged\": {}, \"slots_cycles\": {}, \"slots_before_the_first_event\": {}, \
         \"slots_acknowledged\": {}}}\n",
        packed.cycles, packed.early, packed.events, slots.cycles, slots.early, slots.events
    );
    report::write("kill", &json);
}

struct Killed {
    cycles: u64,
    early: u64,
    events: u64,
}

fn kill((layout, prefix): (Layout, &str), cycles: u64, seed: u64) -> Killed {
    let mut random = Random(seed);
    let start = Instant::now();
    let mut killed = Killed { cycles, early: 0, events: 0 };
    let mut dir = tempfile::tempdir().unwrap();
    for cycle in 0..cycles {
        // A few lives of one log, so each opening meets the end of the last life.
        if cycle % 6 == 0 {
            dir = tempfile::tempdir().unwrap();
        }
        let role = ROLES[random.below(ROLES.len() as u64) as usize];
        let role = &format!("{prefix}{role}");
        let mut writer = in_role("book::child", role, dir.path()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(500 + random.below(45_000)));
        writer.kill().unwrap();
        let last = acknowledged(&mut writer);
        writer.wait().unwrap();
        killed.early += u64::from(last == 0);
        killed.events += last;
        if dir.path().join("book.log").exists() {
            judge(dir.path(), last, &format!("seed {seed}, cycle {cycle}, {role}"));
            assert_eq!(Book::open(dir.path()).unwrap().layout(), layout);
        } else {
            assert_eq!(last, 0);
        }
    }
    let Killed { early, events, .. } = killed;
    println!(
        "{layout:?}: {cycles} kills, {early} before the first event, {events} acknowledged, {:.1} s",
        start.elapsed().as_secs_f32()
    );
    assert!(early < cycles, "no writer lived long enough");
    killed
}

/// Whether strace works; prints the reason if not.
fn strace_works() -> bool {
    let why = match Command::new("strace").args(["-o", "/dev/null", "true"]).output() {
        Ok(done) if done.status.success() => return true,
        Ok(done) => format!("strace may not trace: {}", String::from_utf8_lossy(&done.stderr)),
        Err(error) => format!("no strace: {error}"),
    };
    common::skip::skipped(&why);
    false
}

/// Runs the reporting writer and tampers with one system call of one thread.
fn traced(prefix: &str, path: &Path, call: &str, inject: &str) -> (Vec<String>, ExitStatus) {
    let direct = in_role("book::child", &format!("{prefix}report"), path);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(path.join("book.log"));
    command.args(["-e", &format!("trace={call}"), "-e", &format!("inject={call}:{inject}")]);
    command.arg(direct.get_program()).args(direct.get_args());
    for (key, value) in direct.get_envs() {
        command.env(key, value.unwrap());
    }
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    (text.lines().map(String::from).collect(), done.status)
}

/// Long payloads, written by pwrite, and a few short ones.
fn reported(number: u64) -> Event {
    event_of(number, if number.is_multiple_of(4) { 300 } else { 250_000 })
}

/// The writer under strace: twelve events and a close. Prints a line for each result.
fn report(layout: Layout, path: &Path) {
    let (durability, layout) = (Durability::Manual, Some(layout));
    let options = Options::new().durability(durability).layout(layout);
    let book = match options.open(path, Mode::Append) {
        Ok(book) => book,
        Err(error) => return eprintln!("open {:?}", error.kind()),
    };
    for _ in 0..12 {
        let number = book.last().unwrap() + 1;
        let (mug, jam) = reported(number);
        match book.append(mug, &jam) {
            Ok(event) => eprintln!("appended {event}"),
            Err(error) => eprintln!("refused {number} {:?} {:?}", error.kind(), error.durable()),
        }
        match book.sync() {
            Ok(()) => eprintln!("synced {}", book.last().unwrap()),
            Err(error) => eprintln!("unsynced {:?} {:?}", error.kind(), error.durable()),
        }
    }
    match book.close() {
        Ok(()) => eprintln!("closed"),
        Err(error) => eprintln!("unclosed {:?}", error.kind()),
    }
}

fn created(layout: Layout) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().layout(layout);
    options.open(dir.path(), Mode::Create).unwrap().close().unwrap();
    dir
}

fn highest(lines: &[String], word: &str) -> u64 {
    let numbers = lines.iter().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    numbers.max().unwrap_or(0)
}

/// After a run, every synced event is there, in order, and byte-equal.
fn judge_report(path: &Path, lines: &[String], what: &str) {
    if !path.join("book.log").exists() {
        assert_eq!(highest(lines, "appended "), 0, "{what}");
        return;
    }
    let book = Book::append_to(path).unwrap_or_else(|e| panic!("{what}: {e}"));
    // Every appended event: the process ended, the page cache did not.
    let last = book.last().unwrap();
    assert!(last >= highest(lines, "appended "), "{what}: {last} are there, {lines:?}");
    for deed in book.iter(..).unwrap() {
        let deed = deed.unwrap();
        let number = deed.event.unwrap();
        assert!((deed.mug, deed.jam) == reported(number), "{what}: event {number}");
    }
    book.append(1, b"on").unwrap();
    book.close().unwrap();
    assert!(check(path, &Options::default()).ok(), "{what}");
}

// Promise: call-fails.
#[test]
fn a_failed_system_call_rolls_back_or_poisons() {
    if strace_works() {
        LAYOUTS.into_iter().for_each(fails);
    }
}

fn fails((layout, prefix): (Layout, &str)) {
    let mut fired = 0;
    for (call, error) in
        [("pwrite64", "EIO"), ("pwrite64", "ENOSPC"), ("fdatasync", "EIO"), ("ftruncate", "EIO")]
    {
        for k in [1, 2, 3, 5, 8] {
            let dir = created(layout);
            let what = format!("{prefix} {call} number {k} gives {error}");
            let inject = format!("error={error}:when={k}");
            let (lines, status) = traced(prefix, dir.path(), call, &inject);
            assert!(status.success(), "{what}: {lines:?}");
            let failed = |line: &&String| {
                ["refused", "unsynced", "unclosed", "open"]
                    .iter()
                    .any(|word| line.starts_with(word))
            };
            let first = lines.iter().position(|line| failed(&line));
            fired += usize::from(first.is_some());
            if let (Some(first), "fdatasync") = (first, call) {
                // After a failed sync, this handle never reports success again.
                let after = &lines[first + 1..];
                assert!(
                    !after.iter().any(|line| line.starts_with("appended")),
                    "{what}: {lines:?}"
                );
                assert!(!after.iter().any(|line| line.starts_with("synced")), "{what}: {lines:?}");
            }
            if let (Some(first), "pwrite64") = (first, call) {
                // Rolled back: the next append gets the same number.
                assert!(
                    lines[first].ends_with(&format!("{:?} {:?}", ErrorKind::Io, Some(Durable::No))),
                    "{what}: {lines:?}"
                );
                assert_eq!(lines.last().unwrap(), "closed", "{what}: {lines:?}");
            }
            judge_report(dir.path(), &lines, &what);
        }
    }
    println!("{layout:?}: {fired} injected failures surfaced");
    assert!(fired >= 12, "only {fired} failures surfaced");
}

// Promise: kill, slots-crash.
#[test]
fn kills_at_system_calls_lose_no_acknowledged_event() {
    if !strace_works() {
        return;
    }
    for (layout, prefix) in LAYOUTS {
        for call in ["pwrite64", "fdatasync", "ftruncate", "fallocate"] {
            for k in [1, 2, 4, 7, 11] {
                let dir = created(layout);
                let inject = format!("signal=KILL:when={k}");
                let (lines, _) = traced(prefix, dir.path(), call, &inject);
                judge_report(dir.path(), &lines, &format!("{prefix}killed at {call} number {k}"));
            }
        }
    }
}

#[test]
fn child() {
    match role() {
        None => {}
        Some((role, path)) if layout_of(&role).1 == "report" => report(layout_of(&role).0, &path),
        Some((role, path)) => write_for_ever(&role, &path, u64::MAX),
    }
}
