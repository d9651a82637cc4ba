//! Histories of a write-ahead log, byte by byte an operation, against a list of what must be there.

use std::sync::Arc;

use deedbook::Batch;
use deedbook::Mode;
use deedbook::storage::Memory;
use deedbook::wal::WalFormat;
use deedbook::wal::{Layout, Lsn, Options, Wal};

const LOG: &str = "/wal";

/// The target.
pub fn run(data: &[u8]) {
    let Some((&how, operations)) = data.split_first() else { return };
    let layout = match how % 3 {
        0 => Layout::Single,
        1 => Layout::Segmented { segment_bytes: 64 },
        _ => Layout::Segmented { segment_bytes: 1000 },
    };
    let storage = Memory::new();
    let options = Options::new().layout(layout).storage(Arc::new(storage));
    let mut wal = options.open(LOG, Mode::Create).expect("created");
    let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
    for (step, &operation) in operations.iter().take(200).enumerate() {
        let payload = vec![step as u8; usize::from(operation >> 3) * 5];
        let chosen = usize::from(operation >> 3) % expected.len().max(1);
        let lsn = expected.get(chosen).map(|(lsn, _)| *lsn);
        match operation & 7 {
            0 | 1 => expected.push((wal.append(&payload).expect("append").0, payload)),
            2 => {
                let mut batch = Batch::<WalFormat>::new(1 << 20);
                let at: Vec<_> = (0..3).map(|_| batch.push(&payload).expect("fits")).collect();
                let Lsn(first) = wal.append_batch(&batch).expect("batch");
                expected.extend(at.into_iter().map(|at| (first + at, payload.clone())));
            }
            3 => wal.sync().expect("sync"),
            4 => {
                wal.close().expect("close");
                wal = options.open(LOG, Mode::Append).expect("opened again");
            }
            5 => {
                wal.sync().expect("sync");
                if let Some(lsn) = lsn {
                    wal.truncate_after(Lsn(lsn)).expect("cut");
                    expected.truncate(chosen + 1);
                }
            }
            6 => {
                wal.sync().expect("sync");
                if let Some(lsn) = lsn {
                    wal.truncate_from(Lsn(lsn)).expect("cut");
                    expected.truncate(chosen);
                }
            }
            _ => {
                wal.sync().expect("sync");
                if let (Some(lsn), true) = (lsn, layout != Layout::Single) {
                    wal.truncate_before(Lsn(lsn)).expect("dropped");
                    expected.drain(..chosen);
                }
            }
        }
        check(&wal, &expected);
    }
    wal.close().expect("close");
    check(&options.open(LOG, Mode::Read).expect("read"), &expected);
}

fn check(wal: &Wal, expected: &[(u64, Vec<u8>)]) {
    let read: Vec<_> = wal.iter(..).expect("iter").map(|r| r.expect("intact")).collect();
    assert!(read.iter().map(|r| (r.lsn.0, &r.payload)).eq(expected.iter().map(|(l, p)| (*l, p))));
    let mut back = wal.cursor_back(..).expect("backwards");
    for (lsn, payload) in expected.iter().rev() {
        let record = back.next().expect("intact").expect("as many");
        assert_eq!((record.lsn.0, record.payload), (*lsn, &payload[..]));
    }
    assert!(back.next().expect("intact").is_none());
    assert_eq!(wal.len().expect("counted"), expected.len() as u64);
}
