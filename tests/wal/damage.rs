//! Segments, head markers and sidecars that are wrong; `tests/answers` has damage in records.
//! Whatever is done to the files, the outcome is one of three:
//! everything acknowledged is kept, byte for byte, or opening for write is refused and changes
//! nothing, or what goes is above the mark. Never is an acknowledged record lost without a word,
//! and never does anything surface that was not appended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::storage::{Access, Memory, Storage};
use deedbook::wal::{
    HEAD_NAME, Layout, Lsn, Mode, OnCorrupt, Options, Wal, repair, salvage, segment_name, verify,
};
use deedbook::{ErrorKind, Repair, Verdict};

type Files = BTreeMap<PathBuf, Vec<u8>>;

const LOG: &str = "/wal";

/// A log of which the first records were synced, its writer gone without closing.
struct Specimen {
    layout: Layout,
    records: Vec<(u64, Vec<u8>)>,
    marked: usize,
    files: Files,
}

fn snapshot(storage: &Memory, dir: &Path, files: &mut Files) {
    for name in storage.list(dir).unwrap_or_default() {
        let path = dir.join(name);
        if storage.is_dir(&path) {
            snapshot(storage, &path, files);
        } else {
            let file = storage.open(&path, Access::Read).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            if !bytes.is_empty() {
                assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
            }
            files.insert(path, bytes);
        }
    }
}

fn all_files(storage: &Memory) -> Files {
    let mut files = Files::new();
    snapshot(storage, Path::new("/"), &mut files);
    files.retain(|path, _| path.file_name().is_some_and(|name| name != "lock"));
    files
}

fn restored(files: &Files) -> Memory {
    let storage = Memory::new();
    for (path, bytes) in files {
        let mut dirs: Vec<_> = path.ancestors().skip(1).collect();
        dirs.reverse();
        dirs.iter().for_each(|dir| drop(storage.create_dir(dir)));
        let file = storage.create_new(path, 0o600).unwrap();
        if !bytes.is_empty() {
            assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
        }
    }
    storage
}

fn options(storage: &Memory, layout: Option<Layout>) -> Options {
    Options::new().storage(Arc::new(storage.clone())).layout(layout)
}

const LAYOUTS: [Layout; 2] = [Layout::Single, Layout::Segmented { segment_bytes: 64 }];

fn specimen(layout: Layout, payloads: &[Vec<u8>], marked: usize, dropped: usize) -> Specimen {
    let storage = Memory::new();
    let wal = options(&storage, Some(layout)).open(LOG, Mode::Create).unwrap();
    let mut records = Vec::new();
    for (i, payload) in payloads.iter().enumerate() {
        records.push((wal.append(payload).unwrap().0, payload.clone()));
        if i + 1 == marked {
            wal.sync().unwrap();
            if dropped > 0 {
                wal.truncate_before(Lsn(records[dropped].0)).unwrap();
            }
        }
    }
    let mut files = all_files(&storage);
    // Less the space reserved after the last record; the crash tests have that.
    let end = wal.end().unwrap().0;
    for (path, bytes) in &mut files {
        let start = match layout {
            Layout::Single if path == Path::new(LOG) => 0,
            Layout::Segmented { segment_bytes } => {
                let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
                name.parse::<u64>().map_or(end, |index| index * segment_bytes)
            }
            _ => end,
        };
        if start < end {
            bytes.truncate((end - start) as usize);
        }
    }
    let past = |path: &PathBuf| {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
        let size = layout.segment_bytes().unwrap_or(0);
        name.parse::<u64>().is_ok_and(|index| index * size >= end)
    };
    files.retain(|path, _| !past(path));
    records.drain(..dropped);
    Specimen { layout, records, marked: marked - dropped, files }
}

/// Payloads: none, of zeros, one that holds a whole record, one that spans two borders.
fn payloads() -> Vec<Vec<u8>> {
    let inner = [&[0x8d, 0x30, 0x3f, 0xe2, 4, 0, 0, 0][..], b"tail"].concat();
    vec![
        b"first".to_vec(),
        vec![],
        vec![0; 20],
        inner.repeat(2),
        vec![7; 110],
        b"marked".to_vec(),
        [&b"x"[..], &inner, &inner].concat(),
        b"last".to_vec(),
    ]
}

fn reads(storage: &Memory, layout: Option<Layout>) -> Option<Vec<(u64, Vec<u8>)>> {
    let wal = options(storage, layout).open(LOG, Mode::Read).ok()?;
    let read = wal.iter(None).unwrap().map_while(|record| record.ok());
    Some(read.map(|record| (record.lsn.0, record.payload)).collect())
}

fn without_sidecar(files: &Files) -> Files {
    let beside = |path: &&PathBuf| !path.components().any(|part| part.as_os_str() == ".deedbook");
    files.keys().filter(beside).map(|path| (path.clone(), files[path].clone())).collect()
}

impl Specimen {
    /// Open what became of the log, and hold the outcome against the promise. Returns whether it
    /// was refused.
    fn judge(&self, files: &Files, sidecar: bool, what: &dyn Fn() -> String) -> bool {
        let storage = restored(files);
        let layout = Some(self.layout);
        let given = if sidecar { None } else { layout };
        for read in reads(&storage, given).iter() {
            self.is_prefix(read, what);
        }
        self.agrees(&storage, given, what);
        let before = all_files(&storage);
        match options(&storage, given).open(LOG, Mode::Append) {
            Err(error) => {
                assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::Corrupt
                            | ErrorKind::LostRecords
                            | ErrorKind::Missing
                            | ErrorKind::NotALog
                            | ErrorKind::InvalidArgument
                    ),
                    "{}: {error:?}",
                    what()
                );
                let mut after = all_files(&storage);
                after.retain(|path, _| before.contains_key(path));
                assert_eq!(after, before, "{}: refused, but changed", what());
                true
            }
            Ok(wal) => {
                // Opening by the mark takes the same time at any size, so damage far below it is
                // found by reading.
                let read: Vec<_> = wal.iter(None).unwrap().collect();
                let is_reported = read.iter().any(|record| record.is_err());
                let kept = read.into_iter().map_while(Result::ok);
                let kept: Vec<_> = kept.map(|r| (r.lsn.0, r.payload)).collect();
                if is_reported {
                    assert!(sidecar, "{}: opened, but damaged", what());
                    self.is_prefix(&kept, what);
                    return true;
                }
                self.is_prefix(&kept, what);
                if sidecar {
                    assert!(kept.len() >= self.marked, "{}: acknowledged lost", what());
                }
                let lsn = wal.append(b"on").unwrap();
                wal.close().unwrap();
                let again = reads(&storage, None).unwrap();
                assert_eq!(again.len(), kept.len() + 1, "{}", what());
                assert_eq!(again[kept.len()], (lsn.0, b"on".to_vec()), "{}", what());
                false
            }
        }
    }

    fn is_prefix(&self, read: &[(u64, Vec<u8>)], what: &dyn Fn() -> String) {
        assert!(read.len() <= self.records.len(), "{}: invented {read:?}", what());
        assert_eq!(read, &self.records[..read.len()], "{}", what());
    }

    /// Verifying says what reading past damage gives; and nothing is given that was not appended.
    fn agrees(&self, storage: &Memory, given: Option<Layout>, what: &dyn Fn() -> String) {
        let options = options(storage, given);
        let (Ok(report), Ok(wal)) =
            (verify(LOG, &options, |_, _| Ok(())), options.open(LOG, Mode::Read))
        else {
            return;
        };
        let mut cursor = wal.cursor(None, None, OnCorrupt::Skip).unwrap();
        let mut count = 0;
        while let Some(record) = cursor.next().unwrap() {
            count += 1;
            let known = self
                .records
                .iter()
                .any(|(lsn, payload)| (*lsn, &payload[..]) == (record.lsn.0, record.payload));
            // Where bytes were moved, nothing tells the inside of a record from the log after it:
            // then it is marked as not proved.
            let inside = record.payload == b"tail";
            let shown = format!("{}: surfaced at {}: {:?}", what(), record.lsn, record.payload);
            assert!(known || inside || !cursor.is_proved(), "{shown}");
        }
        assert_eq!(report.records, count, "{}: {report:?} {:?}", what(), cursor.damages());
        if report.verdict == Verdict::Clean {
            assert!(report.ok() && cursor.damages().is_empty(), "{}", what());
        }
    }

    fn log_files(&self) -> Vec<PathBuf> {
        let files = without_sidecar(&self.files);
        files.into_keys().filter(|path| !path.ends_with(HEAD_NAME)).collect()
    }
}

#[test]
fn segments_missing_swapped_duplicated_and_of_another_size() {
    let layout = LAYOUTS[1];
    for (marked, dropped) in [(8, 0), (8, 3), (3, 0)] {
        let specimen = specimen(layout, &payloads(), marked, dropped);
        let segments = specimen.log_files();
        for sidecar in [true, false] {
            let files = match sidecar {
                true => specimen.files.clone(),
                false => without_sidecar(&specimen.files),
            };
            for (i, one) in segments.iter().enumerate() {
                let mut missing = files.clone();
                missing.remove(one);
                let last = segments.len() - 1;
                let refused =
                    specimen.judge(&missing, sidecar, &|| format!("{one:?} missing, {marked}"));
                // A missing one in the middle, or at the head, is never the end of the log.
                if marked == 8 && i < last - 1 {
                    assert!(refused, "{one:?} missing of {last}, {sidecar}");
                }
                for len in [0, 1, 63, 65, 128] {
                    let mut resized = files.clone();
                    resized.get_mut(one).unwrap().resize(len, 0);
                    let what = || format!("{one:?} of {len} bytes, {marked} {sidecar}");
                    let refused = specimen.judge(&resized, sidecar, &what);
                    assert!(refused || len < 64 || marked < 8, "{}", what());
                }
                for other in &segments {
                    let mut swapped = files.clone();
                    swapped.insert(one.clone(), files[other].clone());
                    let what = || format!("{other:?} copied over {one:?}, {marked} {sidecar}");
                    specimen.judge(&swapped, sidecar, &what);
                    swapped.insert(other.clone(), files[one].clone());
                    let what = || format!("{one:?} and {other:?} swapped, {marked} {sidecar}");
                    specimen.judge(&swapped, sidecar, &what);
                }
                // Copied under a number further on: a gap, and something after it.
                let mut duplicated = files.clone();
                duplicated.insert(Path::new(LOG).join(segment_name(40)), files[one].clone());
                let what = || format!("{one:?} copied to segment 40, {marked} {sidecar}");
                let refused = specimen.judge(&duplicated, sidecar, &what);
                assert!(refused || sidecar, "{}", what());
            }
        }
    }
}

#[test]
fn a_damaged_head_is_rebuilt_or_refused_and_never_a_wrong_beginning() {
    let layout = LAYOUTS[1];
    let head = Path::new(LOG).join(HEAD_NAME);
    // The head in segment 0, and further on.
    for dropped in [1, 4] {
        let specimen = specimen(layout, &payloads(), 8, dropped);
        for sidecar in [true, false] {
            let files = match sidecar {
                true => specimen.files.clone(),
                false => without_sidecar(&specimen.files),
            };
            let segment_0 = files.contains_key(&Path::new(LOG).join(segment_name(0)));
            let marker = files[&head].clone();
            let mut variants: Vec<Option<Vec<u8>>> = (0..8 * 12)
                .map(|bit| {
                    let mut marker = marker.clone();
                    marker[bit / 8] ^= 1 << (bit % 8);
                    Some(marker)
                })
                .collect();
            variants.extend((0..12).map(|len| Some(marker[..len].to_vec())));
            variants.push(Some([&marker[..], b"x"].concat()));
            variants.push(None);
            for variant in variants {
                let mut files = files.clone();
                match &variant {
                    Some(bytes) => drop(files.insert(head.clone(), bytes.clone())),
                    None => drop(files.remove(&head)),
                }
                let storage = restored(&files);
                let given = if sidecar { None } else { Some(layout) };
                match options(&storage, given).open(LOG, Mode::Append) {
                    // The mark knows the head: the marker is written again.
                    Ok(wal) if sidecar => {
                        assert_eq!(wal.head().unwrap().0, specimen.records[0].0);
                        wal.close().unwrap();
                        assert_eq!(all_files(&storage)[&head], marker);
                        assert_eq!(reads(&storage, None).unwrap(), specimen.records);
                    }
                    // Nobody knows it, but all of the log is there: the specification's fallback.
                    Ok(wal) => {
                        assert!(segment_0, "{variant:?}");
                        assert_eq!(wal.head().unwrap(), Lsn(0));
                        assert_eq!(wal.len().unwrap(), 8);
                    }
                    Err(error) => {
                        assert!(!sidecar && !segment_0, "{variant:?}: {error}");
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                        assert!(error.to_string().contains("is not known"), "{error}");
                    }
                }
            }
        }
    }
}

/// The head marker was damaged, and the log damaged or cut below its mark. The mark knew the head, and was
/// not asked: reading, `verify` and `salvage` gave dropped records again, and a repair kept them for good.
#[test]
fn dropped_records_stay_dropped_without_a_head_marker() {
    let specimen = specimen(LAYOUTS[1], &payloads(), 8, 1);
    let path = |name: &str| Path::new(LOG).join(name);
    let segment = |index: u64| path(&segment_name(index));
    let head = Lsn(specimen.records[0].0);
    type Change<'a> = &'a dyn Fn(&mut Files);
    let damages: [(&str, Change<'_>); 4] = [
        ("the last segment is short", &|files| {
            let last = files.keys().rfind(|path| path.extension().is_some_and(|e| e == "wal"));
            let last = last.unwrap().clone();
            files.get_mut(&last).unwrap().truncate(3);
        }),
        ("a segment is missing", &|files| drop(files.remove(&segment(2)))),
        ("a record is damaged", &|files| files.get_mut(&segment(1)).unwrap()[40] ^= 1),
        ("nothing else", &|_| ()),
    ];
    for (what, damage) in damages {
        for marker in [Some(vec![7; 12]), None] {
            let mut files = specimen.files.clone();
            damage(&mut files);
            match marker {
                Some(bytes) => drop(files.insert(path(HEAD_NAME), bytes)),
                None => drop(files.remove(&path(HEAD_NAME))),
            }
            let storage = restored(&files);
            let first = |path: &str| {
                let wal = options(&storage, None).open(path, Mode::Read).unwrap();
                let mut records = wal.cursor(None, None, OnCorrupt::Skip).unwrap();
                records.next().unwrap().map(|record| (record.lsn, record.payload.to_vec()))
            };
            let kept = Some((head, specimen.records[0].1.clone()));
            assert_eq!(first(LOG), kept, "{what}");
            let report = verify(LOG, &options(&storage, None), |_, _| Ok(())).unwrap();
            assert!(report.records < 8 && !report.ok(), "{what}: {report:?}");
            let copied = salvage(LOG, "/copy", &options(&storage, None), |_, _| Ok(())).unwrap();
            assert_eq!(copied.records, report.records, "{what}");
            assert_eq!(first("/copy").map(|(_, payload)| payload), kept.clone().map(|(_, p)| p));
            let may = Repair { force: true, accept_loss: true, ..Repair::default() };
            assert!(repair(LOG, &options(&storage, None), may).unwrap().mended, "{what}");
            assert_eq!(first(LOG), kept, "{what}, repaired");
            assert!(all_files(&storage).contains_key(&path(HEAD_NAME)), "{what}");
        }
    }
}

#[test]
fn a_head_beyond_the_end_is_refused() {
    for dropped in [0, 4] {
        let specimen = specimen(LAYOUTS[1], &payloads(), 8, dropped);
        for head in [5000, u64::MAX / 2, u64::MAX] {
            let mut marker = head.to_le_bytes().to_vec();
            marker.extend_from_slice(&crc32c(&marker).to_le_bytes());
            let mut files = specimen.files.clone();
            files.insert(Path::new(LOG).join(HEAD_NAME), marker);
            for files in [files.clone(), without_sidecar(&files)] {
                let storage = restored(&files);
                let error = options(&storage, Some(LAYOUTS[1])).open(LOG, Mode::Append);
                let error = error.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            }
        }
    }
}

/// CRC-32C, written down once more so that the crate is not checked against itself.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn a_stale_foreign_damaged_or_deleted_sidecar_costs_no_record() {
    for layout in LAYOUTS {
        let one = specimen(layout, &payloads(), 8, 0);
        let early = specimen(layout, &payloads(), 2, 0);
        let other = specimen(layout, &vec![vec![1; 33]; 20], 20, 0);
        let beside = |path: &PathBuf| path.components().any(|part| part.as_os_str() == ".deedbook");
        for sidecar in [&early, &other] {
            let mut files = without_sidecar(&one.files);
            files.extend(
                sidecar
                    .files
                    .iter()
                    .filter(|(path, _)| beside(path))
                    .map(|(p, b)| (p.clone(), b.clone())),
            );
            let storage = restored(&files);
            let wal = options(&storage, None).open(LOG, Mode::Append).unwrap();
            assert_eq!(wal.len().unwrap(), 8);
        }
        for path in one.files.keys().filter(|path| beside(path)) {
            let mut files = one.files.clone();
            files.remove(path);
            let storage = restored(&files);
            let wal = options(&storage, Some(layout)).open(LOG, Mode::Append).unwrap();
            assert_eq!(wal.len().unwrap(), 8, "{path:?} deleted");
            for bit in 0..8 * one.files[path].len().min(600) {
                let mut files = one.files.clone();
                files.get_mut(path).unwrap()[bit / 8] ^= 1 << (bit % 8);
                let storage = restored(&files);
                let wal = options(&storage, Some(layout)).open(LOG, Mode::Append).unwrap();
                assert_eq!(wal.len().unwrap(), 8, "{path:?} bit {bit}");
            }
        }
    }
}

#[test]
fn a_lower_limit_or_another_segment_size_never_cuts() {
    for layout in LAYOUTS {
        for marked in [8, 1] {
            let specimen = specimen(layout, &payloads(), marked, 0);
            for files in [specimen.files.clone(), without_sidecar(&specimen.files)] {
                let storage = restored(&files);
                let before = all_files(&storage);
                let options = options(&storage, Some(layout));
                let low = options.clone().record_bytes_max(100);
                match low.open(LOG, Mode::Append) {
                    // What the log was created with is known: only appends are limited.
                    Ok(wal) => {
                        assert_eq!(wal.len().unwrap(), 8);
                        assert_eq!(wal.append(&[1; 101]).unwrap_err().kind(), ErrorKind::TooLarge);
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt);
                        assert!(error.to_string().contains("length 110, limit 100"), "{error}");
                        let mut after = all_files(&storage);
                        after.retain(|path, _| before.contains_key(path));
                        assert_eq!(after, before);
                    }
                }
                if layout == Layout::Single {
                    continue;
                }
                for segment_bytes in [1, 32, 63, 65, 128, 1 << 20] {
                    let storage = restored(&files);
                    let layout = Some(Layout::Segmented { segment_bytes });
                    let other = low.clone().layout(layout).storage(Arc::new(storage.clone()));
                    let error = other.open(LOG, Mode::Append).unwrap_err();
                    assert!(
                        matches!(
                            error.kind(),
                            ErrorKind::InvalidArgument | ErrorKind::Corrupt | ErrorKind::NotALog
                        ),
                        "{error:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_lsn_inside_a_payload_is_no_record() {
    for layout in LAYOUTS {
        let specimen = specimen(layout, &payloads(), 8, 0);
        let storage = restored(&specimen.files);
        let wal = options(&storage, None).open(LOG, Mode::Read).unwrap();
        let borders: Vec<_> = specimen.records.iter().map(|(lsn, _)| *lsn).collect();
        let mut inner = 0;
        for at in 0..wal.end().unwrap().0 {
            match wal.read(Lsn(at)) {
                Ok(_) => assert!(borders.contains(&at)),
                Err(error) => {
                    assert!(!borders.contains(&at));
                    assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
                    inner += 1;
                }
            }
        }
        assert!(inner > 200);
    }
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let segment = log.join(segment_name(0));
    std::fs::create_dir_all(&segment).unwrap();
    assert_eq!(Wal::append_to(&log).unwrap_err().kind(), ErrorKind::NotALog);
    std::fs::remove_dir(&segment).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", &segment).unwrap();
        assert_eq!(Wal::append_to(&log).unwrap_err().kind(), ErrorKind::NotALog);
        assert_eq!(Wal::open(&log).unwrap_err().kind(), ErrorKind::NotALog);
        std::fs::remove_file(&segment).unwrap();
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        assert_eq!(Wal::append_to(&fifo).unwrap_err().kind(), ErrorKind::NotALog);
    }
    let error = Wal::append_to(dir.path().join("log").join(segment_name(3))).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Missing | ErrorKind::InvalidArgument), "{error:?}");
    let file = dir.path().join("plain");
    std::fs::write(&file, b"").unwrap();
    let segmented = Options::new().layout(LAYOUTS[1]);
    assert_eq!(segmented.open(&file, Mode::Append).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let single = Options::new().layout(Layout::Single);
    assert_eq!(single.open(&log, Mode::Append).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let wal = Wal::append_to(&file).unwrap();
    let second = Wal::append_to(&file).unwrap_err();
    assert_eq!((second.kind(), second.holder()), (ErrorKind::Locked, Some(std::process::id())));
    drop(wal);
}
