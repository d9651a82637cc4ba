//! Write-ahead logs in killed processes, and in processes that may open few files.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use deedbook::wal::{Layout, Options};

use crate::support::prelude::*;

const APPENDERS: u32 = 16;

fn options(segment_bytes: u64) -> Options {
    Options::new().layout(Layout::Segmented { segment_bytes })
}

fn start(role: &str, log: &Path) -> Child {
    let mut child = in_role("wal::child", role, log);
    child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Not a test: the children run this function.
#[test]
fn child() {
    let Some((role, log)) = role() else { return };
    match role.as_str() {
        "appenders" => appenders(&log),
        "no file" => no_file(&log),
        role => panic!("no role {role}"),
    }
}

fn payload(thread: u32, i: u64) -> Vec<u8> {
    format!("{thread}:{i}:").into_bytes().repeat(1 + (i % 40) as usize)
}

/// Sixteen threads commit, and print acknowledged commits, until the process is killed.
fn appenders(log: &Path) {
    let wal = options(4096).open(log, Mode::Append).unwrap();
    let begin = wal.len().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..APPENDERS {
            let wal = wal.clone();
            scope.spawn(move || {
                for i in begin.. {
                    let lsn = wal.commit(&payload(thread, i)).unwrap();
                    // One write for each line: only the last line may be torn.
                    let line = format!("{lsn} {thread} {i}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn commits_of_sixteen_killed_threads_survive() {
    let cycles: u64 = std::env::var("DEEDBOOK_WAL_KILL_CYCLES")
        .map_or(60, |cycles| cycles.parse().expect("a number"));
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let mut acknowledged: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut random = 7u64;
    for cycle in 0..cycles {
        let mut child = start("appenders", &log);
        let out = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines.collect::<Vec<_>>()
        });
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(cycle | 1);
        std::thread::sleep(Duration::from_micros(20_000 + (random >> 33) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in reader.join().unwrap() {
            let numbers: Vec<u64> = line.split(' ').map_while(|part| part.parse().ok()).collect();
            if let [lsn, thread, i] = numbers[..] {
                let before = acknowledged.insert(lsn, payload(thread as u32, i));
                assert_eq!(before, None, "lsn {lsn} was given twice");
            }
        }
        if !log.exists() {
            continue;
        }
        let report = Options::default().verify(&log);
        if let Ok(report) = report {
            assert!(!report.lost_acknowledged, "cycle {cycle}: {report:?}");
            assert_ne!(
                report.verdict,
                deedbook::report::Verdict::Corrupt,
                "cycle {cycle}: {report:?}"
            );
        }
        let wal = options(4096).open(&log, Mode::Append).unwrap();
        for (lsn, payload) in acknowledged.iter().rev().take(3000) {
            assert_eq!(&wal.read(Lsn(*lsn)).unwrap().payload, payload, "cycle {cycle}, lsn {lsn}");
        }
        wal.close().unwrap();
    }
    let wal = Wal::open(&log).unwrap();
    let there: BTreeMap<u64, Vec<u8>> =
        wal.iter(..).unwrap().map(|r| r.unwrap()).map(|r| (r.lsn.0, r.payload)).collect();
    for (lsn, payload) in &acknowledged {
        assert_eq!(there.get(lsn), Some(payload), "lsn {lsn}");
    }
    println!("{cycles} cycles, {} commits acknowledged, {} there", acknowledged.len(), there.len());
    assert!(acknowledged.len() as u64 > 10 * cycles);
}

/// A sync opened the directory of new segments: without free descriptors it failed, and poisoned the log for good.
#[test]
fn a_sync_needs_no_free_descriptor() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let done = start("no file", &log).wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert_eq!(Wal::open(&log).unwrap().len().unwrap(), 7);
}

#[allow(unsafe_code)]
fn no_file(log: &Path) {
    let limit = libc::rlimit { rlim_cur: 256, rlim_max: 256 };
    // SAFETY: a system call on a valid structure, in a process of its own.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let wal = options(64).open(log, Mode::Append).unwrap();
    let lsns: Vec<_> = (0..5).map(|i| wal.append(&[i; 56]).unwrap()).collect();
    without_descriptors(|| wal.sync().unwrap());
    // A truncation removes segments: the next sync covers the names, too.
    wal.truncate_after(lsns[3]).unwrap();
    wal.append(&[8; 56]).unwrap();
    wal.append(&[9; 56]).unwrap();
    without_descriptors(|| wal.sync().unwrap());
    wal.commit(&[10; 56]).unwrap();
    wal.close().unwrap();
}

fn without_descriptors(call: impl FnOnce()) {
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    assert!(taken.len() > 100);
    call();
}
