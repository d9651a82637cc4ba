//! Bugs in the intents of crashed truncations: an intent may remove only the records that it names.

use super::*;

fn intent(subject: &WalSubject) -> PathBuf {
    subject.sidecar().join("cut")
}

fn has_intent(subject: &WalSubject, disk: &Sim) -> bool {
    disk.open(&intent(subject), Access::Read).is_ok()
}

/// The files of another log of the same layout, to be restored over the first.
fn another(subject: &WalSubject) -> Vec<(PathBuf, Vec<u8>)> {
    let disk = Sim::new();
    let wal = subject.wal(&disk, MANUAL).unwrap();
    (100..120).for_each(|n| assert!(wal.append(&[n; 30]).is_ok()));
    wal.close().unwrap();
    let paths = subject.files(&disk).into_iter().map(|(path, _)| path);
    paths.map(|path| (path.clone(), read_file(&disk, &path))).collect()
}

/// A review found this: a kill in the middle of `truncate_from` of the first record left an intent with nothing but the
/// byte 0. Opening then emptied any log restored to the same place, in new files or over the old files.
#[test]
fn a_leftover_intent_does_not_cut_another_log() {
    for subject in [&SINGLE, &TINY, &SEGMENTS] {
        for (keep, over) in [(false, false), (false, true), (true, false), (true, true)] {
            let (disk, wal, lsns) = synced(subject, MANUAL, 5, 50);
            disk.record();
            match keep {
                true => wal.truncate_after(lsns[0]).unwrap(),
                false => wal.truncate_from(lsns[0]).unwrap(),
            };
            let mut left = 0;
            for disk in disk.recorded() {
                let disk = disk.kill();
                if !has_intent(subject, &disk) {
                    continue;
                }
                left += 1;
                if !over {
                    let files = subject.files(&disk);
                    files.iter().for_each(|(path, _)| disk.remove(path).unwrap());
                }
                another(subject).iter().for_each(|(path, bytes)| write_file(&disk, path, bytes));
                let what = format!("{}, keep {keep}, over {over}", subject.name);
                let read = subject.options(&disk, MANUAL);
                let read = read.open(subject.path, Mode::Read).unwrap();
                assert_eq!(read.len().unwrap(), 20, "{what}");
                let wal = subject.wal(&disk, MANUAL).unwrap();
                assert_eq!(wal.len().unwrap(), 20, "{what}");
                assert!(!wal.recovery().finished_truncation);
                // No later log is emptied, either.
                assert!(!has_intent(subject, &disk), "{what}");
            }
            assert!(left > 2);
        }
    }
}

/// The reverse: a begun cut of all records is finished, however much of the log is gone, durable or not.
#[test]
fn a_begun_truncation_of_everything_is_finished() {
    for subject in [&SINGLE, &TINY, &SEGMENTS] {
        for synced in [true, false] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            let first = wal.append(&[0; 50]).unwrap();
            (1..5).for_each(|n| assert!(wal.append(&[n; 50]).is_ok()));
            if synced {
                wal.sync().unwrap();
            }
            let mut ended = 0;
            let left = at_every_call(&disk, 64, || wal.truncate_from(first).unwrap());
            for (call, disk) in left {
                let begun = has_intent(subject, &disk);
                let what = format!("{}, synced {synced}, {call}", subject.name);
                let wal = subject.wal(&disk, MANUAL);
                let wal = wal.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(wal.recovery().finished_truncation, begun, "{what}");
                assert!(!begun || wal.len().unwrap() == 0, "{what}");
                assert!(!has_intent(subject, &disk), "{what}");
                ended += u64::from(begun);
            }
            assert!(ended > 5);
        }
    }
}

/// Anybody may leave an intent. With any field at any limit, shortened, lengthened or of another version, an intent
/// removes no log that does not match, and is then deleted.
#[test]
fn a_damaged_or_hostile_intent_is_harmless() {
    for subject in [&SINGLE, &SEGMENTS] {
        for keep in [true, false] {
            let (disk, wal, lsns) = synced(subject, MANUAL, 5, 50);
            disk.inject(Fault::once(1, What::Crash).of(Call::SetLen));
            match keep {
                true => wal.truncate_after(lsns[0]).unwrap_err(),
                false => wal.truncate_from(lsns[0]).unwrap_err(),
            };
            let disk = disk.kill();
            let path = intent(subject);
            let good = read_file(&disk, &path);
            let mut tried = vec![
                Vec::new(),
                good[..good.len() - 1].to_vec(),
                [&good[..], b"x"].concat(),
                good[..32].to_vec(),
                vec![0xff; good.len()],
            ];
            let body = good.len() - 4;
            let sealed = |mut bytes: Vec<u8>| {
                let crc = crc32(&bytes[..body]);
                bytes[body..].copy_from_slice(&crc.to_le_bytes());
                bytes
            };
            for at in 0..good.len() {
                let mut flipped = good.clone();
                flipped[at] ^= 1;
                tried.push(flipped.clone());
                // An intent for an empty log ignores the start of the last record.
                if keep || !(16..28).contains(&at) {
                    tried.push(if at < body { sealed(flipped) } else { flipped });
                }
            }
            for (at, fields) in [(8, 8), (16, 8), (32, 8), (8, 32)] {
                for value in [1, 57, i64::MAX as u64, u64::MAX - 7, u64::MAX] {
                    let mut bytes = good.clone();
                    bytes[at..at + fields].copy_from_slice(&value.to_le_bytes().repeat(fields / 8));
                    if keep || at != 16 {
                        tried.push(sealed(bytes));
                    }
                }
            }
            for bytes in tried {
                let disk = disk.kill();
                write_file(&disk, &path, &bytes);
                let wal = subject.wal(&disk, MANUAL).unwrap_or_else(|e| panic!("{bytes:?}: {e}"));
                assert!(!wal.is_empty().unwrap(), "keep {keep}: {bytes:?}");
                assert!(!wal.recovery().finished_truncation, "keep {keep}: {bytes:?}");
                assert!(!has_intent(subject, &disk));
                wal.commit(b"goes on").unwrap();
            }
            assert!(subject.wal(&disk, MANUAL).unwrap().recovery().finished_truncation);
        }
    }
}

/// On a real disk, a read at such a byte fails instead of returning nothing.
#[test]
fn an_intent_beyond_all_files_blocks_no_opening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let options = Options::new().layout(Layout::Single);
    let wal = options.open(&path, Mode::Create).unwrap();
    wal.commit(b"acknowledged").unwrap();
    wal.close().unwrap();
    let log = std::fs::read(&path).unwrap();
    let id = Disk.open(&path, Access::Read).unwrap().id().unwrap();
    let mut intent = [&b"DBCT"[..], &2u32.to_le_bytes()].concat();
    intent.extend([u64::MAX, u64::MAX - 20].map(u64::to_le_bytes).concat());
    intent.extend([&log[..4], &log[..4]].concat());
    intent.extend([0, id.device, id.inode, id.created_ns].map(u64::to_le_bytes).concat());
    intent.extend(crc32(&intent).to_le_bytes());
    let cut = dir.path().join(".deedbook/log/cut");
    std::fs::write(&cut, intent).unwrap();
    let wal = options.open(&path, Mode::Append).unwrap();
    assert_eq!((wal.len().unwrap(), cut.exists()), (1, false));
}
