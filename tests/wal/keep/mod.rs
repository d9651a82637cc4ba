//! Keeping records: consumers, retention, the archive hook.

mod archive;
mod consumers;
mod retention;

use super::*;

fn options() -> Options {
    Options::new().layout(Layout::Segmented { segment_bytes: 256 })
}

fn filled(options: &Options) -> (TempDir, Wal, Vec<Lsn>) {
    let dir = TempDir::new().unwrap();
    let wal = options.open(dir.path(), Mode::Create).unwrap();
    let lsns = (0..100).map(|i| wal.append(&[i; 32]).unwrap()).collect();
    wal.sync().unwrap();
    (dir, wal, lsns)
}
