//! A log's bytes on disk, as another program may change them.

use super::{Record, Subject};

use crate::support::prelude::*;

pub fn log_bytes(subject: &Subject, storage: &dyn Storage) -> Vec<u8> {
    let files = subject.files(storage);
    files.iter().flat_map(|(path, _)| read_file(storage, path)).collect()
}

pub fn last_offset(subject: &Subject, records: &[Record], end: u64) -> u64 {
    let len = |record: &Record| subject.format.framing_bytes() + record.bytes.len() as u64;
    end - records.last().map_or(0, len)
}

/// End the log at a byte, as a program without knowledge of the mark does.
pub fn cut(subject: &Subject, disk: &Sim, end: u64) {
    let files = subject.files(disk);
    for (number, (path, start)) in files.iter().enumerate().rev() {
        match end.checked_sub(*start) {
            Some(len) if len > 0 || number == 0 => {
                return disk.open(path, Access::Write).unwrap().set_len(len).unwrap();
            }
            _ => disk.remove(path).unwrap(),
        }
    }
}

pub fn damage(subject: &Subject, disk: &Sim, at: u64) {
    let files = subject.files(disk);
    let (path, start) = files.iter().rfind(|(_, start)| *start <= at).unwrap();
    let file = disk.open(path, Access::Write).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at - start).unwrap(), 1);
    file.write_at(&[byte[0] ^ 0xff], at - start).unwrap();
    file.sync_data().unwrap();
}

/// A new disk with copies of all files, in the cache only, as `cp -r` leaves them.
pub fn copied(disk: &Sim) -> Sim {
    let copy = Sim::new();
    // Use up inodes: no copy may have the inode of its original.
    for number in 0..100 {
        let path = PathBuf::from(format!("/{number}"));
        copy.create_new(&path, 0o600).unwrap();
        copy.remove(&path).unwrap();
    }
    let mut dirs = vec![PathBuf::from("/")];
    while let Some(dir) = dirs.pop() {
        for name in disk.list(&dir).unwrap() {
            let path = dir.join(name);
            if disk.is_dir(&path) {
                copy.create_dir(&path).unwrap();
                dirs.push(path);
            } else {
                let file = copy.create_new(&path, 0o600).unwrap();
                file.write_at(&read_file(disk, &path), 0).unwrap();
            }
        }
    }
    copy
}
