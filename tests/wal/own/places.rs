//! Head marker and limits.

use std::path::Path;

use deedbook::ErrorKind;
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Storage};
use deedbook::wal::{Lsn, Mode};

use crate::support::formats::wal::{read_all, segments_in};
use crate::support::harness::subjects::{SINGLE, TINY};
use crate::support::harness::{ALWAYS, MANUAL};

fn segments(disk: &Sim) -> Vec<u64> {
    segments_in(disk, Path::new("/log"))
}

/// Without the marker nothing says where the first record begins, unless the mark does. It is never
/// taken for 0 while segments are missing, and nothing is removed.
// Promise: wal-head.
#[test]
fn a_lost_head_marker_is_made_up_for_or_the_log_is_refused() {
    for (damage, mark) in [(true, true), (true, false), (false, true), (false, false)] {
        let disk = Sim::new();
        let wal = TINY.wal(&disk, ALWAYS).unwrap();
        let lsns: Vec<_> = (0..9).map(|n| wal.append(&[n; 50]).unwrap()).collect();
        wal.truncate_before(lsns[6]).unwrap();
        let expected = read_all(&wal).unwrap();
        wal.close().unwrap();
        let left = segments(&disk);
        let head = Path::new("/log/head");
        match damage {
            true => drop(disk.open(head, Access::Write).unwrap().write_at(&[7], 3).unwrap()),
            false => disk.remove(head).unwrap(),
        }
        if !mark {
            disk.remove(Path::new("/log/.deedbook/mark")).unwrap();
        }
        match TINY.wal(&disk, MANUAL) {
            Ok(wal) => {
                assert!(mark);
                assert_eq!(read_all(&wal).unwrap(), expected);
                assert_eq!(wal.append(b"on").unwrap(), Lsn(9 * 58));
            }
            Err(error) => {
                assert!(!mark, "{error}");
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert_eq!(segments(&disk), left);
            }
        }
    }
}

/// A record longer than the limit asked for is no torn tail, with and without a mark: refused, and
/// nothing is cut.
// Promise: wal-limit.
#[test]
fn a_record_beyond_the_limit_is_not_cut_as_torn() {
    for subject in [&SINGLE, &TINY] {
        for mark in [true, false] {
            let disk = Sim::new();
            let wal = subject.wal(&disk, MANUAL).unwrap();
            wal.commit(b"short").unwrap();
            wal.append(&[9; 100]).unwrap();
            drop(wal.clone());
            let killed = disk.kill();
            let sidecar = if subject.name == "wal-single" { "wal/" } else { "" };
            let gone: &[&str] = if mark { &["settings"] } else { &["settings", "mark"] };
            for name in gone {
                killed.remove(Path::new(&format!("/log/.deedbook/{sidecar}{name}"))).unwrap();
            }
            let lower = subject.options(&killed, MANUAL).record_bytes_max(50);
            let error = lower.open(subject.path, Mode::Append).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(13)), "{mark}");
            assert_eq!(subject.wal(&killed, MANUAL).unwrap().len().unwrap(), 2);
        }
    }
}
