//! Both ways with the real crate: random histories of appends, closings and truncations, in both
//! layouts. Either program does a step, and both read the whole log after every step.

use std::path::Path;

use deedbook::wal as ours;
use tempfile::TempDir;

#[path = "../../support/mix.rs"]
mod mix;
use mix::mix;

const SEGMENT_BYTES: u64 = 100;

type Records = Vec<(u64, Vec<u8>)>;

fn our_options(segmented: bool) -> ours::Options {
    let layout = match segmented {
        true => ours::Layout::Segmented { segment_bytes: SEGMENT_BYTES },
        false => ours::Layout::Single,
    };
    ours::Options::new().layout(layout)
}

fn read_by_us(path: &Path, segmented: bool) -> Records {
    let wal = our_options(segmented).open(path, deedbook::Mode::Read).unwrap();
    wal.iter(..).unwrap().map(|r| r.unwrap()).map(|r| (r.lsn.0, r.payload)).collect()
}

/// Runs wal-db on a log, with either store below.
macro_rules! theirs {
    ($path:expr, $segmented:expr, $wal:ident => $work:expr) => {
        if $segmented {
            let $wal = wal_db::Wal::open_segmented($path, SEGMENT_BYTES).unwrap();
            $work
        } else {
            let $wal = wal_db::Wal::open($path).unwrap();
            $work
        }
    };
}

fn read_by_them(path: &Path, segmented: bool) -> Records {
    theirs!(path, segmented, wal => {
        let records = wal.iter().unwrap().map(|record| record.unwrap());
        records.map(|record| (record.lsn().get(), record.into_data())).collect()
    })
}

fn payload(seed: u64) -> Vec<u8> {
    let len = [0, 1, 5, 84, 92, 93, 300][(mix(seed) % 7) as usize];
    (0..len).map(|i| mix(seed ^ i) as u8).collect()
}

#[test]
fn both_crates_read_histories_written_by_both() {
    for segmented in [false, true] {
        for seed in 0..60 {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("log");
            let mut expected: Records = Vec::new();
            for step in 0..8u64 {
                let dice = mix(seed * 1000 + step);
                // wal-db makes no file before the first record, so the first step has one.
                let count = dice % 6 + u64::from(step == 0);
                let payloads: Vec<_> = (0..count).map(|i| payload(dice ^ i)).collect();
                let after = expected.get((dice >> 20) as usize % expected.len().max(1));
                let cut = (dice >> 8) % 5 == 0 && step > 0;
                let after = after.map(|(lsn, _)| *lsn).filter(|_| cut);
                if (dice >> 4) % 2 == 0 {
                    let wal = our_options(segmented).open(&path, deedbook::Mode::Append).unwrap();
                    if let Some(lsn) = after {
                        wal.truncate_after(ours::Lsn(lsn)).unwrap();
                        expected.retain(|(at, _)| *at <= lsn);
                    }
                    for payload in payloads {
                        expected.push((wal.append(&payload).unwrap().0, payload));
                    }
                    wal.close().unwrap();
                } else {
                    theirs!(&path, segmented, wal => {
                        if let Some(lsn) = after {
                            wal.truncate_after(wal_db::Lsn::new(lsn)).unwrap();
                            expected.retain(|(at, _)| *at <= lsn);
                        }
                        for payload in payloads {
                            expected.push((wal.append(&payload).unwrap().get(), payload));
                        }
                        wal.sync().unwrap();
                    });
                    if after.is_some() {
                        // A log that ends below our mark may have lost acknowledged records. After
                        // a cut by another program, somebody must remove the mark.
                        remove_sidecar(&path, segmented);
                    }
                }
                assert_eq!(read_by_us(&path, segmented), expected, "seed {seed}, step {step}");
                assert_eq!(read_by_them(&path, segmented), expected, "seed {seed}, step {step}");
            }
        }
    }
}

fn remove_sidecar(path: &Path, segmented: bool) {
    let beside = if segmented { path.join(".deedbook") } else { path.with_file_name(".deedbook") };
    if beside.exists() {
        std::fs::remove_dir_all(beside).unwrap();
    }
}

#[test]
fn either_crate_sees_a_prefix_dropped_by_another() {
    for we_drop in [true, false] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let wal = our_options(true).open(&path, deedbook::Mode::Create).unwrap();
        let lsns: Vec<_> = (0..50).map(|i| wal.append(&payload(i)).unwrap().0).collect();
        wal.sync().unwrap();
        if we_drop {
            wal.truncate_before(ours::Lsn(lsns[30])).unwrap();
        }
        wal.close().unwrap();
        if !we_drop {
            theirs!(&path, true, wal => {
                let head = wal.truncate_before(wal_db::Lsn::new(lsns[30])).unwrap();
                println!("wal-db dropped up to {}", head.get());
            });
        }
        let ours = read_by_us(&path, true);
        assert_eq!(ours, read_by_them(&path, true));
        assert_eq!(ours.last().unwrap().0, lsns[49]);
        if we_drop {
            assert_eq!(ours[0].0, lsns[30]);
        }
        theirs!(&path, true, wal => drop(wal.append_and_sync(b"theirs").unwrap()));
        let wal = our_options(true).open(&path, deedbook::Mode::Append).unwrap();
        wal.append(b"ours").unwrap();
        wal.close().unwrap();
        let both = read_by_them(&path, true);
        assert_eq!(both, read_by_us(&path, true));
        let tail: Vec<_> = both[both.len() - 2..].iter().map(|(_, payload)| &payload[..]).collect();
        assert_eq!(tail, [&b"theirs"[..], b"ours"]);
    }
}

/// Our writer died and left zeros after its records; wal-db takes the zeros for a torn end.
#[test]
fn wal_db_takes_reserved_space_for_torn_ends() {
    for segmented in [false, true] {
        let dir = TempDir::new().unwrap();
        let (path, copy) = (dir.path().join("log"), dir.path().join("copy"));
        let wal = our_options(segmented).open(&path, deedbook::Mode::Create).unwrap();
        let records: Records =
            (0..40).map(|i| (wal.append(&payload(i)).unwrap().0, payload(i))).collect();
        if segmented {
            std::fs::create_dir(&copy).unwrap();
            for entry in std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap()) {
                if entry.path().is_file() {
                    std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
                }
            }
        } else {
            std::fs::copy(&path, &copy).unwrap();
            assert!(std::fs::metadata(&copy).unwrap().len() > wal.end().unwrap().0);
        }
        assert_eq!(read_by_them(&copy, segmented), records);
        assert_eq!(read_by_us(&copy, segmented), records);
        drop(wal);
    }
}
