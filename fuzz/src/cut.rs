//! Any intent to cut a write-ahead log, with a right checksum: opening keeps a prefix of the records, and all records
//! if the intent belongs to another log.

use std::path::Path;

use deedbook::Mode;
use deedbook::storage::{Access, Storage};
use deedbook::wal::segment_name;

use super::fenced::{Fenced, LOG, open_wal, payloads, write_wal};
use super::kit::{Input, crc32};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (count, how) = (input.u8() % 16, input.u8());
    let disk = Fenced::new();
    let written = write_wal(&disk, count);
    let first = Path::new(LOG).join(segment_name(0));
    let file = disk.0.open(&first, Access::Read).unwrap();
    let (id, mut head) = (file.id().unwrap(), [0; 64]);
    let _ = file.read_at(&mut head, 0).unwrap();
    let mut bytes = b"DBCT".to_vec();
    bytes.extend(if how & 1 == 0 { 2 } else { input.u32() }.to_le_bytes());
    // The new end of the log, and the last remaining record.
    bytes.extend([input.edge(), input.edge()].map(u64::to_le_bytes).concat());
    bytes.extend([input.u32(), input.u32()].map(u32::to_le_bytes).concat());
    let is_own = how & 2 == 0;
    let own = [0, id.device, id.inode, id.created_ns];
    let other = [input.edge(), input.edge(), input.edge(), input.edge()];
    bytes.extend(if is_own { own } else { other }.map(u64::to_le_bytes).concat());
    match how & 12 {
        0 => bytes.extend(input.rest()),
        _ => bytes.extend(crc32(&bytes).to_le_bytes()),
    }
    disk.put(".deedbook/cut", &bytes);
    let reader = open_wal(&disk, Mode::Read).map(|wal| payloads(&wal));
    let writer = open_wal(&disk, Mode::Append).map(|wal| payloads(&wal));
    let Ok(left) = writer else { return };
    assert!(written.starts_with(&left), "{left:?}");
    if !is_own && other != own {
        assert_eq!(left, written, "of another log");
    }
    if let Ok(read) = reader {
        assert!(written.starts_with(&read), "{read:?}");
    }
    let again = payloads(&open_wal(&disk, Mode::Read).unwrap());
    assert_eq!(again, left);
}
