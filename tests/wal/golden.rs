//! The golden files of wal-db: written byte for byte, read, and opened by our rules where the
//! specification would cut.

use super::*;
use crate::support::skip;
use crate::support::store::events::copy;

fn vectors() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wal");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden/wal");
    match shared.is_dir() {
        true => vec![here, shared],
        false => {
            skip::skipped("../shared/golden/wal is not there");
            vec![here]
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (7 * i + 3) as u8).collect()
}

fn payloads() -> Vec<Vec<u8>> {
    vec![vec![], b"hello".to_vec(), pattern(300)]
}

fn read(path: &Path, options: &Options) -> Vec<(u64, Vec<u8>)> {
    let wal = options.open(path, Mode::Read).unwrap();
    wal.iter(..).unwrap().map_while(Result::ok).map(|r| (r.lsn.0, r.payload)).collect()
}

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if path.is_file() {
        return BTreeMap::from([(PathBuf::new(), fs::read(path).unwrap())]);
    }
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.is_file());
    files.map(|file| (file.file_name().unwrap().into(), fs::read(&file).unwrap())).collect()
}

fn copied(from: &Path) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let to = dir.path().join("log");
    match from.is_file() {
        true => drop(fs::copy(from, &to).unwrap()),
        false => copy(from, &to),
    }
    (dir, to)
}

#[test]
fn both_layouts_are_written_byte_for_byte() {
    const SEGMENTED: Layout = Layout::Segmented { segment_bytes: 64 };
    for (layout, drops_a_prefix, golden) in [
        (Layout::Single, false, "single/log.wal"),
        (SEGMENTED, false, "segmented64"),
        (SEGMENTED, true, "prefix_truncated"),
    ] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let wal = Options::new().layout(layout).open(&path, Mode::Create).unwrap();
        let lsns: Vec<_> = payloads().iter().map(|p| wal.append(p).unwrap().0).collect();
        assert_eq!(lsns, [0, 8, 21]);
        if drops_a_prefix {
            let last = wal.commit(b"tail").unwrap();
            assert_eq!(wal.truncate_before(last).unwrap().head, Lsn(329));
        }
        wal.close().unwrap();
        for vectors in vectors() {
            assert_eq!(files(&path), files(&vectors.join(golden)), "{golden}");
        }
    }
}

#[test]
fn both_layouts_are_read_without_anything_beside_them() {
    let expected: Vec<_> = [0, 8, 21].into_iter().zip(payloads()).collect();
    for vectors in vectors() {
        for golden in ["single/log.wal", "segmented64"] {
            let (_dir, path) = copied(&vectors.join(golden));
            assert_eq!(read(&path, &Options::default()), expected);
            // And appended to: the segment size comes from the first complete segment.
            let wal = Wal::append_to(&path).unwrap();
            assert_eq!(wal.recovery().verdict, Verdict::Clean);
            assert_eq!(wal.append(b"more").unwrap(), Lsn(329));
            wal.close().unwrap();
            assert_eq!(read(&path, &Options::default()).len(), 4);
        }
    }
}

#[test]
fn a_prefix_truncated_log_needs_the_segment_size() {
    for vectors in vectors() {
        let (_dir, path) = copied(&vectors.join("prefix_truncated"));
        let error = Wal::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("segment size unknown"), "{error}");
        let layout = Some(Layout::Segmented { segment_bytes: 64 });
        let options = Options::new().layout(layout);
        assert_eq!(read(&path, &options), [(329, b"tail".to_vec())]);
        let wal = options.open(&path, Mode::Append).unwrap();
        assert_eq!((wal.head().unwrap(), wal.end().unwrap()), (Lsn(329), Lsn(341)));
        wal.close().unwrap();
        assert_eq!(read(&path, &Options::default()).len(), 1);
    }
}

/// Name, records that the specification reads, its end, and whether our rules refuse to cut there:
/// without a mark, an intact record after the damage means that the log is corrupt.
const DAMAGED: [(&str, usize, u64, bool); 7] = [
    ("torn_header_4", 3, 329, false),
    ("zero_tail_4096", 3, 329, false),
    ("cut_mid_payload_3", 2, 21, false),
    ("cut_mid_header_3", 2, 21, false),
    ("bitflip_crc_2", 1, 8, true),
    ("len_ffffffff", 3, 329, false),
    ("payload_contains_valid_frame", 1, 25, false),
];

#[test]
fn damaged_wals_are_read_and_truncated_without_loss() {
    for vectors in vectors() {
        for (name, records, end, refused) in DAMAGED {
            let golden = vectors.join(format!("damaged/{name}.wal"));
            let (_dir, path) = copied(&golden);
            let found = read(&path, &Options::default());
            assert_eq!(found.len(), records, "{name}");
            match Wal::append_to(&path) {
                Ok(wal) => {
                    assert!(!refused, "{name}");
                    assert_eq!(wal.end().unwrap(), Lsn(end), "{name}");
                    wal.close().unwrap();
                    assert_eq!(fs::metadata(&path).unwrap().len(), end, "{name}");
                }
                Err(error) => {
                    assert!(refused, "{name}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}");
                    assert_eq!(fs::read(&path).unwrap(), fs::read(&golden).unwrap(), "{name}");
                }
            }
            // By the letter of the specification, after saving what goes.
            let (_dir, path) = copied(&golden);
            let options = Options::new().recovery(Recovery::Spec);
            let wal = options.open(&path, Mode::Append).unwrap();
            assert_eq!((wal.end().unwrap(), wal.len().unwrap()), (Lsn(end), records as u64));
            let report = wal.recovery().clone();
            wal.close().unwrap();
            if let Some(saved) = report.saved_to {
                let whole = [fs::read(&path).unwrap(), fs::read(saved).unwrap()].concat();
                assert_eq!(whole, fs::read(&golden).unwrap(), "{name}");
            }
        }
    }
}
