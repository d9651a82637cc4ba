//! Wrong segments, head markers and settings; `tests/engine/answers` has damage in records.
//! Each damage has one of three outcomes: the log keeps all acknowledged records; opening for write is refused and
//! changes nothing; or reading reports the damage.

use super::*;
use crate::support::formats::wal::{ANY, SINGLE, TINY};

/// The records and the files of a log in small segments. All records are synced, and the writer has died.
struct Intact {
    records: Vec<Record>,
    files: Files,
}

/// Payloads: empty, zeros, a payload with a whole record inside, a payload across two borders.
fn payloads() -> [Vec<u8>; 8] {
    let inner = Framing::Wal.encode(0, b"tail");
    [
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

fn intact(dropped: usize) -> Intact {
    let memory = Memory::new();
    let wal = open(&memory, false, Mode::Append).unwrap();
    let lsns = payloads().map(|payload| wal.append(&payload).unwrap());
    wal.sync().unwrap();
    if dropped > 0 {
        wal.truncate_before(lsns[dropped]).unwrap();
    }
    // Without the reserved space after the last record.
    let mut space = Files::of(&memory).space(&TINY);
    space.truncate(wal.end().unwrap().0 as usize);
    let files = Files::of(&memory).with_space(&TINY, &space);
    Intact { records: read_all(&wal).unwrap(), files }
}

fn open(memory: &Memory, sidecar: bool, mode: Mode) -> Result<Wal> {
    let format = if sidecar { &ANY } else { &TINY };
    format.options(&At::memory(memory, DIR), MANUAL).open(DIR, mode)
}

fn segment(index: u64) -> PathBuf {
    Path::new(DIR).join(segment_name(index))
}

fn head_path() -> PathBuf {
    Path::new(DIR).join(HEAD_NAME)
}

/// A damaged, cut or missing marker is never read as 0 while segments are missing.
// Promise: wal-head.
#[test]
fn a_damaged_head_is_rebuilt_or_refused() {
    // The head in segment 0, and further on.
    for (dropped, sidecar) in [(1, true), (1, false), (4, true), (4, false)] {
        let log = intact(dropped);
        let files = if sidecar { log.files.clone() } else { log.files.without_sidecar() };
        let has_segment_0 = files.bytes.contains_key(&segment(0));
        let marker = &files.bytes[&head_path()];
        let flipped = (0..8 * marker.len()).map(|bit| {
            let mut marker = marker.clone();
            marker[bit / 8] ^= 1 << (bit % 8);
            Some(marker)
        });
        let cut = (0..marker.len()).map(|len| Some(marker[..len].to_vec()));
        let others = [Some([&marker[..], b"x"].concat()), None];
        for variant in flipped.chain(cut).chain(others) {
            let mut files = files.clone();
            files.bytes.remove(&head_path());
            files.bytes.extend(variant.clone().map(|bytes| (head_path(), bytes)));
            let memory = files.restore();
            let before = Files::unlocked(&memory);
            match open(&memory, sidecar, Mode::Append) {
                // The mark knows the head: the marker is written again.
                Ok(wal) if sidecar => {
                    assert_eq!(wal.head().unwrap().0, log.records[0].number());
                    assert_eq!(read_all(&wal).unwrap(), log.records);
                    wal.append(b"on").unwrap();
                    wal.close().unwrap();
                    assert_eq!(Files::of(&memory).bytes[&head_path()], *marker);
                }
                // Nobody knows the head, but the whole log is there: the specification's fallback.
                Ok(wal) => {
                    assert!(has_segment_0, "{variant:?}");
                    assert_eq!((wal.head().unwrap(), wal.len().unwrap()), (Lsn(0), 8));
                }
                Err(error) => {
                    assert!(!sidecar && !has_segment_0, "{variant:?}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.to_string().contains("is not known"), "{error}");
                    assert!(Files::unlocked(&memory) == before, "{variant:?}: changed");
                }
            }
        }
    }
}

/// The head marker was damaged, and the log damaged or cut below the mark. The mark knew the head but was ignored:
/// reading, `verify` and `salvage` returned dropped records again, and a repair kept them permanently.
#[test]
fn dropped_records_stay_dropped_without_a_head_marker() {
    let log = intact(1);
    type Change<'a> = &'a dyn Fn(&mut Files);
    let damages: [(&str, Change<'_>); 4] = [
        ("the last segment is short", &|files| {
            let last =
                files.bytes.keys().rfind(|path| path.extension().is_some_and(|e| e == "wal"));
            let last = last.unwrap().clone();
            files.bytes.get_mut(&last).unwrap().truncate(3);
        }),
        ("a segment is missing", &|files| drop(files.bytes.remove(&segment(2)))),
        ("a record is damaged", &|files| files.bytes.get_mut(&segment(1)).unwrap()[40] ^= 1),
        ("nothing else", &|_| ()),
    ];
    for ((what, damage), marker) in
        damages.iter().flat_map(|it| [(it, Some(vec![7; 12])), (it, None)])
    {
        let mut files = log.files.clone();
        damage(&mut files);
        files.bytes.remove(&head_path());
        files.bytes.extend(marker.map(|bytes| (head_path(), bytes)));
        let memory = files.restore();
        let (at, copy) = (At::memory(&memory, DIR), At::memory(&memory, "/copy"));
        let first = |at: &At| ANY.read(at).unwrap().forward(None, None, true).records.remove(0);
        assert_eq!(first(&at), log.records[0], "{what}");
        let report = ANY.verify(&at, MANUAL).unwrap();
        assert!(report.records < 8 && !report.ok(), "{what}: {report:?}");
        assert!(report.damages.is_sorted_by_key(|damage| damage.offset), "{what}: {report:?}");
        let copied = ANY.salvage(&at, &copy.path, MANUAL).unwrap();
        assert_eq!(copied.records, report.records, "{what}");
        assert_eq!(first(&copy).bytes, log.records[0].bytes, "{what}");
        let may = Repair { force: true, accept_loss: true, ..Repair::default() };
        assert!(ANY.repair_as(&at, MANUAL, may).unwrap().mended, "{what}");
        assert_eq!(first(&at), log.records[0], "{what}, repaired");
        assert!(Files::of(&memory).bytes.contains_key(&head_path()), "{what}");
    }
}

#[test]
fn damaged_or_missing_settings_lose_no_record() {
    for format in [&SINGLE, &TINY] {
        let specimen = Specimen::new(format, &plain(8, 30), Beside::Open(8));
        let path = format.sidecar(&specimen.path()).join("settings");
        let bits = 8 * specimen.files.bytes[&path].len();
        for bit in 0..=bits {
            let mut files = specimen.files.clone();
            match bit == bits {
                true => drop(files.bytes.remove(&path)),
                false => files.bytes.get_mut(&path).unwrap()[bit / 8] ^= 1 << (bit % 8),
            }
            let at = At::memory(&files.restore(), specimen.path());
            let log = format.open(&at, Mode::Append, MANUAL).unwrap();
            assert_eq!(log.len().unwrap(), 8, "{}, bit {bit} of {bits}", format.name);
        }
    }
}

#[test]
fn an_lsn_inside_a_payload_is_no_record() {
    for format in [&SINGLE, &TINY] {
        let events = payloads().map(|payload| (0, payload));
        let specimen = Specimen::new(format, &events, Beside::Closed(8));
        let (borders, end) = (&specimen.edges[..8], specimen.edges[8]);
        let log = format.read(&At::memory(&specimen.files.restore(), specimen.path())).unwrap();
        assert!(end > 200);
        for at in 0..end {
            let kind = log.read(at as u64).err().map(|error| error.kind());
            let expected = (!borders.contains(&at)).then_some(ErrorKind::OutOfRange);
            assert_eq!(kind, expected, "{}, byte {at}", format.name);
        }
    }
}
