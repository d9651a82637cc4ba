//! The directory of the data, the processor's clock, and facts about the machine that a reader of figures needs. For
//! the benchmarks that are crates of their own, because they have `libc`.

use std::io;
use std::path::Path;
use std::time::Duration;

/// The numbers that `statfs` reports for file systems in memory, where a sync costs nothing.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// An error if a directory is in memory, where a measurement means nothing.
pub fn on_disk(dir: &Path) -> Result<(), String> {
    match IN_MEMORY.contains(&file_system(dir)?) {
        true => Err("the data's directory is in memory: name one on a disk with --dir".into()),
        false => Ok(()),
    }
}

/// One line about the machine, without names of hosts or directories.
pub fn machine(dir: &Path) -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let kernel = read("/proc/sys/kernel/osrelease");
    let place = std::fs::canonicalize(dir).unwrap_or_default();
    let mounts = read("/proc/self/mounts");
    let kind = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| place.starts_with(point))
        .max_by_key(|(point, _)| point.len());
    format!(
        "{} x {}, Linux {}, {}",
        std::thread::available_parallelism().map_or(0, |count| count.get()),
        model.unwrap_or("unknown"),
        kernel.trim(),
        kind.map_or("unknown", |(_, kind)| kind),
    )
}

/// The day of the run.
pub fn day() -> String {
    said("date", &["-u", "+%F"])
}

/// The commit that is measured; `-dirty` if files differ from the commit.
pub fn commit() -> String {
    said("git", &["describe", "--always", "--dirty"])
}

/// The output of a program that runs in the repository.
fn said(program: &str, words: &[&str]) -> String {
    let mut command = std::process::Command::new(program);
    let done = command.args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let text = done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_string());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_string())
}

/// A paragraph for a page whose figures were measured next to other work; empty otherwise.
pub fn provisional(load_before: f64) -> &'static str {
    match load_before > 1.0 {
        true => "**The load was above 1 when it began: provisional figures.**\n\n",
        false => "",
    }
}

/// Processes that were ready to run in the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Processor time of all threads. On a busy machine the rest of the time was waiting.
pub fn cpu_time() -> Duration {
    // SAFETY: the call fills the structure, and any bytes are a valid value of the structure.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

fn file_system(dir: &Path) -> Result<i64, String> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: the path ends with a zero byte, and `found` has the size that the call needs.
    let (done, found) = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::statfs(path.as_ptr(), &mut found), found)
    };
    match done {
        0 => Ok(found.f_type),
        _ => Err(format!("the data's directory: {}", io::Error::last_os_error())),
    }
}
