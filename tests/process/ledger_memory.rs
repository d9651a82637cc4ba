//! The memory of a reader of a ledger's file does not depend on the size of the file.

use std::io::{Read, Seek};

use deedbook::ledger::{LedgerConfig, LedgerReader, LedgerStore};

use crate::counting::peak_of;

const RECORD_BYTES: usize = 100 << 10;
const BOUND: u64 = (1 << 20) + RECORD_BYTES as u64;

fn write(ledger: &LedgerStore, bytes: usize) {
    let payload = vec![b'x'; RECORD_BYTES];
    for _ in 0..bytes / RECORD_BYTES {
        ledger.append(&payload).unwrap();
    }
}

fn read(reader: &mut LedgerReader) {
    let (mut block, mut read) = (vec![0; 64 << 10], 0);
    loop {
        match reader.read(&mut block).unwrap() {
            0 => break,
            n => read += n as u64,
        }
    }
    assert_eq!(read, reader.content_length());
}

#[test]
fn a_ledger_reader_needs_a_block_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let config = LedgerConfig::lines(dir.path(), "events");
    let ledger = LedgerStore::new(LedgerConfig { max_file_size: usize::MAX, ..config }).unwrap();
    for bytes in [1 << 20, 256 << 20] {
        write(&ledger, bytes);
        let mut fetched = None;
        let peak = peak_of(|| fetched = ledger.fetch(None, None).unwrap());
        assert!(peak <= BOUND, "a fetch of {bytes} bytes: {peak} reserved");
        let fetched = fetched.unwrap();
        let mut readers = fetched.data.unwrap();
        let peak = peak_of(|| {
            for reader in &mut readers {
                read(reader);
                reader.rewind().unwrap();
                read(reader);
            }
        });
        assert!(peak <= BOUND, "reading {bytes} bytes: {peak} reserved");
        // Many waiting readers hold no blocks.
        let peak = peak_of(|| assert!(readers.iter().all(|reader| reader.records() > 0)));
        assert_eq!(peak, 0);
        ledger.remove(&fetched.removable.unwrap()).unwrap();
    }
}
