//! Any bytes as a write-ahead log: the first byte selects segments and a head. Opening, reading and
//! verifying agree. If opening for writing succeeds, an appended record can be read back.

use std::path::Path;
use std::sync::Arc;

use deedbook::ErrorKind;
use deedbook::storage::{Memory, Storage};
use deedbook::wal::{Layout, Lsn, Options, segment_name};
use deedbook::{Mode, OnCorrupt, Recovery};

const LOG: &str = "/wal";
const SEGMENT_BYTES: usize = 64;

fn put(storage: &Memory, path: &Path, bytes: &[u8]) {
    for dir in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
        let _ = storage.create_dir(dir);
    }
    let file = storage.create_new(path, 0o600).expect("a new file");
    if !bytes.is_empty() {
        file.write_at(bytes, 0).expect("memory");
    }
}

fn layout(storage: &Memory, how: u8, bytes: &[u8]) -> Layout {
    if how & 1 == 0 {
        put(storage, Path::new(LOG), bytes);
        return Layout::Single;
    }
    let (head, bytes) = match how & 2 {
        0 => (None, bytes),
        _ => bytes.split_at_checked(12).map_or((None, bytes), |(head, rest)| (Some(head), rest)),
    };
    let first = u64::from(how >> 2 & 3);
    let dir = Path::new(LOG);
    put(storage, &dir.join("note"), b"so that the directory is there");
    for (i, part) in bytes.chunks(SEGMENT_BYTES).enumerate() {
        put(storage, &dir.join(segment_name(first + i as u64)), part);
    }
    if let Some(head) = head {
        put(storage, &dir.join("head"), head);
    }
    Layout::Segmented { segment_bytes: SEGMENT_BYTES as u64 }
}

/// A second implementation of CRC-32C: the crate must not be checked against itself.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

/// A mutation would hardly ever get past a checksum, so the input may also be a program: a byte
/// with a length, and the bytes of an intact record's payload, or raw bytes.
fn image(mut program: &[u8]) -> Vec<u8> {
    let mut image = Vec::new();
    while let Some((&step, rest)) = program.split_first() {
        let (part, rest) = rest.split_at(rest.len().min(usize::from(step >> 2)));
        if step & 3 != 0 {
            let body = [&(part.len() as u32).to_le_bytes()[..], part].concat();
            image.extend_from_slice(&crc32c(&body).to_le_bytes());
            image.extend_from_slice(&body);
        } else {
            image.extend_from_slice(part);
        }
        program = rest;
    }
    image
}

/// The target.
pub fn run(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    let image = image(bytes);
    let bytes = if how & 0x40 == 0 { bytes } else { &image };
    let storage = Memory::new();
    let layout = layout(&storage, how, bytes);
    let options = Options::new()
        .layout(layout)
        .storage(Arc::new(storage))
        .record_bytes_max(1 << 16)
        .recovery(if how & 0x80 == 0 { Recovery::Valid } else { Recovery::Spec });
    let mut prefix = Vec::new();
    if let Ok(wal) = options.open(LOG, Mode::Read) {
        for record in wal.iter(..).expect("the first record").map_while(Result::ok) {
            assert_eq!(wal.read(record.lsn).expect("read by its lsn").payload, record.payload);
            prefix.push((record.lsn, record.payload));
        }
        let mut skipping = wal.cursor(.., OnCorrupt::Skip).expect("a cursor");
        let mut count = 0;
        while skipping.next().expect("skips damage").is_some() {
            count += 1;
        }
        let report = options.verify(LOG).expect("what was opened is verified");
        assert_eq!(report.records, count);
        // Verifying reports a torn tail, but reading does not.
        assert!(!report.ok() || skipping.damages().is_empty());
        let copy = options.salvage(LOG, "/copy").expect("salvage");
        // Salvage also copies records that may lie inside damaged records.
        assert!((copy.records - copy.uncertain..=copy.records).contains(&count), "{copy:?}");
    }
    match options.open(LOG, Mode::Append) {
        Ok(wal) => {
            let kept: Vec<_> = wal.iter(..).expect("kept").map(|r| r.expect("kept")).collect();
            assert!(kept.iter().map(|r| (r.lsn, r.payload.clone())).eq(prefix), "not the prefix");
            let lsn = wal.append(&[how; 70]).expect("appended");
            wal.close().expect("closed");
            let again = options.open(LOG, Mode::Read).expect("opened again");
            assert_eq!(again.read(lsn).expect("read back").payload, [how; 70]);
            assert_eq!(again.len().expect("counted"), kept.len() as u64 + 1);
        }
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Io, "{error}");
            if options
                .repair(
                    LOG,
                    deedbook::report::Repair { force: true, accept_loss: true, dry_run: false },
                )
                .is_ok()
            {
                let wal = options.open(LOG, Mode::Append).expect("repaired");
                assert_eq!(wal.len().expect("counted"), prefix.len() as u64);
                wal.truncate_from(Lsn(u64::MAX)).expect_err("no such record");
            }
        }
    }
}
