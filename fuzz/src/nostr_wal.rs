//! The event store's write-ahead log of any bytes: intact entries, gaps and repeats of numbers, raw
//! bytes and damage, in one file or two. Readers return only written entries, and miss none of an
//! intact beginning. Opening for writing keeps the beginning and continues the numbers, or refuses.

use std::path::Path;
use std::sync::Arc;

use deedbook::nostr::wal::{Entry, EventWal, Lsn, WalOptions};
use deedbook::storage::{Memory, Storage};
use deedbook::{ErrorKind, Mode, OnCorrupt};

use super::kit::Input;

const DIR: &str = "/wal";
const HEADER: usize = 24;
const DATA_MAX: usize = 1 << 12;
/// From FORMAT.md.
const LSN_MAX: u64 = 1 << 62;

/// Number, time, kind and data of an entry.
type Parts = (u64, u64, u8, Vec<u8>);

/// The target.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let two = input.u8() & 3 == 0;
    let mut next = 1;
    let mut files = vec![file(&mut input, &mut next)];
    if two {
        files.push(file(&mut input, &mut next));
    }
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    for (name, bytes) in ["wal.log", "wal.000001.log"].iter().zip(&files) {
        let file = memory.create_new(&Path::new(DIR).join(name), 0o600).unwrap();
        file.write_at(bytes, 0).unwrap();
    }
    let options = WalOptions::new()
        .storage(Arc::new(memory))
        .data_bytes_max(DATA_MAX as u64)
        .segment_bytes(1 << 20)
        .small(true);
    let beginning = strict(&files[0]);
    if let Ok(wal) = options.open(DIR, Mode::Read) {
        read(&wal, &files, &beginning);
    }
    match options.open(DIR, Mode::Append) {
        Ok(wal) => go_on(wal, &options, &files, beginning),
        Err(error) => assert_ne!(error.kind(), ErrorKind::Io, "{error}"),
    }
}

fn read(wal: &EventWal, files: &[Vec<u8>], beginning: &[Parts]) {
    let skipping = entries(wal, OnCorrupt::Skip).expect("damage is passed over");
    for parts in &skipping {
        let bytes = encode(parts);
        let there = |file: &Vec<u8>| file.windows(bytes.len()).any(|window| window == bytes);
        assert!(files.iter().any(there), "lsn {} was never written so", parts.0);
    }
    assert!(skipping.starts_with(beginning), "an intact beginning is missed");
    if let Ok(strict) = entries(wal, OnCorrupt::Raise) {
        assert_eq!(strict, skipping, "nothing is damaged, and skipping gives something else");
    }
    let verified: u64 = wal.verify().expect("verified").iter().map(|report| report.records).sum();
    assert_eq!(verified, skipping.len() as u64);
}

fn go_on(wal: EventWal, options: &WalOptions, files: &[Vec<u8>], beginning: Vec<Parts>) {
    let kept = entries(&wal, OnCorrupt::Raise).expect("what was opened for writing is intact");
    assert!(kept.starts_with(&beginning));
    if files.len() == 1 {
        assert_eq!(kept.len(), beginning.len(), "more than the intact beginning is kept");
    }
    let pairs = kept.iter().zip(kept.iter().skip(1));
    assert!(pairs.clone().all(|(one, next)| next.0 == one.0 + 1), "the numbers have gaps");
    if let Some(last) = kept.last() {
        assert_eq!(wal.next_lsn(), Lsn(last.0 + 1));
    }
    let lsn = match wal.append(&Entry::Insert { record: b"more" }, 7) {
        Ok(lsn) => lsn,
        Err(error) => {
            assert!(kept.last().is_some_and(|last| last.0 + 1 >= LSN_MAX), "{error}");
            return;
        }
    };
    wal.close().expect("closed");
    let again = options.open(DIR, Mode::Read).expect("opened again");
    let mut expected = kept;
    expected.push((lsn.0, 7, 1, b"more".to_vec()));
    assert_eq!(entries(&again, OnCorrupt::Raise).expect("read again"), expected);
}

fn entries(wal: &EventWal, on_corrupt: OnCorrupt) -> Result<Vec<Parts>, deedbook::Error> {
    let (mut replay, mut all) = (wal.entries(Lsn(0), on_corrupt)?, Vec::new());
    while let Some(logged) = replay.next()? {
        let entry = logged.entry;
        all.push((logged.lsn.0, logged.timestamp, entry.op() as u8, entry.data().into_owned()));
    }
    Ok(all)
}

/// A file from the input. `next` is the expected next number.
fn file(input: &mut Input<'_>, next: &mut u64) -> Vec<u8> {
    let mut bytes = [&b"WLAO"[..], &1u64.to_be_bytes(), &[0; 12]].concat();
    while !input.is_empty() && bytes.len() < 32 << 10 {
        let piece = input.u8();
        match piece & 15 {
            0 => break,
            1 => bytes.extend_from_slice(input.bytes((piece >> 4).into())),
            2 => bytes.resize(bytes.len() + (usize::from(piece >> 4) << 5), 0),
            // A gap in the numbers, or a repeat.
            3 => *next = next.wrapping_add(u64::from(piece >> 4)).wrapping_sub(8).max(1),
            4 => {
                let at = HEADER + input.below(bytes.len() - HEADER + 1);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= input.u8() | 1;
                }
            }
            5 => bytes.truncate(bytes.len().saturating_sub(piece.into()).max(HEADER)),
            // An entry in another shape than the kind requires.
            6 => {
                let (kind, data) = (input.u8(), input.bytes((piece >> 4).into()).to_vec());
                bytes.extend(encode(&(*next, 5, kind, data)));
            }
            // An entry inside another entry.
            7 => {
                let inner = encode(&(*next, 5, 1, vec![7; (piece >> 4).into()]));
                bytes.extend(encode(&(*next, 5, 1, inner)));
                *next = next.wrapping_add(1);
            }
            8 => {
                let at = input.below(bytes.len());
                bytes[at] ^= 1 << (piece >> 5);
            }
            other => {
                let (kind, data) = match other {
                    9 => (4, Vec::new()),
                    10 => (2, vec![piece; 9]),
                    11 => (3, [&[0, 0, 0, 1, b'k', 0, 0, 0, 1][..], &[piece]].concat()),
                    _ => (1, vec![piece; input.u8().into()]),
                };
                bytes.extend(encode(&(*next, input.u8().into(), kind, data)));
                *next = next.wrapping_add(1);
            }
        }
    }
    bytes
}

/// A second implementation of CRC-64/XZ: the crate must not be checked against itself.
fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64, byte: &u8| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

fn encode((lsn, time, kind, data): &Parts) -> Vec<u8> {
    let len = (data.len() as u32).to_be_bytes();
    let mut entry = [&[*kind][..], &lsn.to_be_bytes(), &time.to_be_bytes(), &len, data].concat();
    let sum = crc64(&entry).to_be_bytes();
    entry.extend_from_slice(&sum);
    entry
}

/// The intact entries from the header on, with consecutive numbers.
fn strict(file: &[u8]) -> Vec<Parts> {
    let (mut all, mut rest) = (Vec::<Parts>::new(), &file[HEADER..]);
    if file[..12] != *b"WLAO\0\0\0\0\0\0\0\x01" {
        return all;
    }
    while let Some(entry) = intact(rest) {
        if all.last().is_some_and(|before| entry.0 != before.0 + 1) {
            break;
        }
        rest = &rest[29 + entry.3.len()..];
        all.push(entry);
    }
    all
}

fn intact(bytes: &[u8]) -> Option<Parts> {
    let u64_at = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let len = u32::from_be_bytes(bytes.get(17..21)?.try_into().ok()?) as usize;
    let data = bytes.get(21..21 + len)?.to_vec();
    let (kind, sum) = (*bytes.first()?, u64_at(21 + len)?);
    let shaped = match kind {
        1 => true,
        2 => len == 9,
        3 => is_pair(&data),
        4 => len == 0,
        _ => false,
    };
    let fits =
        len <= DATA_MAX && u64_at(1)? <= LSN_MAX && shaped && crc64(&bytes[..21 + len]) == sum;
    fits.then_some((u64_at(1)?, u64_at(9)?, kind, data))
}

/// Whether data is a length, a key, a length and a value, and nothing else.
fn is_pair(data: &[u8]) -> bool {
    let part = |data: &[u8]| {
        let len = u32::from_be_bytes(data.get(..4)?.try_into().ok()?) as usize;
        Some(data.get(4..4 + len)?.len() + 4)
    };
    part(data).and_then(|key| Some(key + part(&data[key..])?)) == Some(data.len())
}
