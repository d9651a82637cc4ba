//! The limit of the disk: a plain file of as many bytes as a store wrote, in the same minute.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::stores::{Done, timed};

/// The name in the figures.
pub const PLAIN_FILE: &str = "a plain file";
const PIECE: usize = 1 << 20;

/// Bytes that this process has written to the disk, as Linux counts; 0 if Linux does not report them.
pub fn written() -> u64 {
    let counters = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counters.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
}

/// Write `bytes` into a file, with one sync at the end. No store that keeps `count` events in as many bytes can be
/// faster.
pub fn plain_file(path: &Path, bytes: u64, count: usize) -> Done {
    let piece = vec![0x5a; PIECE];
    let (done, ()) = timed(count, || {
        let mut file = File::create(path).unwrap();
        for at in (0..bytes).step_by(PIECE) {
            let left = (bytes - at).min(PIECE as u64) as usize;
            file.write_all(&piece[..left]).unwrap();
        }
        file.sync_all().unwrap();
    });
    fs::remove_file(path).unwrap();
    done
}
