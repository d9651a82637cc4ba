//! Missing, swapped, doubled or short segments, read as if the missing bytes were zeros; and wrong
//! files next to the segments.

use std::cell::OnceCell;

use super::*;
use crate::support::formats::oracle::Evidence;
use crate::support::formats::wal::head_marker;

fn segment(index: usize) -> PathBuf {
    Path::new(DIR).join(segment_name(index as u64))
}

/// Changes the files of a log with every kind of sidecar, and compares every reader with the oracle.
fn in_every_state(mut cases: impl FnMut(&Specimen<'_>, &mut dyn FnMut(&str, &dyn Fn(&mut Files)))) {
    // Records of 37 bytes: some begin and end in the same segment.
    let whole = besides(12).into_iter().map(|beside| Specimen::new(&TINY, &plain(12, 29), beside));
    let without_a_prefix = [Beside::Open(12), Beside::Closed(12), Beside::Nothing].map(dropped);
    for specimen in whole.chain(without_a_prefix) {
        cases(&specimen, &mut |what, change| {
            let mut files = specimen.files.clone();
            change(&mut files);
            let space = files.space(&TINY);
            judge_files(&specimen, &files, &space, &|| what.to_string());
        });
    }
    all_passed();
}

fn numbers(specimen: &Specimen<'_>) -> std::ops::Range<usize> {
    let size = specimen.format.segment_bytes().unwrap() as usize;
    specimen.edges[0] / size..specimen.space.len().div_ceil(size)
}

/// Readers and `verify` stopped at the gap (41 records; without segment 0 none), `salvage` did not (88 of 100).
#[test]
fn every_segment_missing() {
    in_every_state(|specimen, case| {
        for i in numbers(specimen) {
            if i == 0 && specimen.beside == Beside::Open(0) {
                // The file named in the mark is gone, so the rest may belong to any log.
                continue;
            }
            case(&format!("segment {i} missing"), &|files| {
                files.bytes.remove(&segment(i)).unwrap();
            });
        }
    });
}

#[test]
fn every_segment_but_the_last_too_short() {
    in_every_state(|specimen, case| {
        let all = numbers(specimen);
        for i in all.start..all.end - 1 {
            for len in [0, 1, 30, 63] {
                case(&format!("segment {i} of {len} bytes"), &|files| {
                    let bytes = files.bytes.get_mut(&segment(i)).unwrap();
                    // Missing bytes read as zeros, so cutting off zeros would damage nothing.
                    bytes.truncate(if bytes[len..].iter().all(|&byte| byte == 0) {
                        30
                    } else {
                        len
                    });
                });
            }
        }
    });
}

#[test]
fn readers_agree_about_swapped_or_overwritten_segments() {
    in_every_state(|specimen, case| {
        let all = numbers(specimen);
        if specimen.beside == Beside::Nothing && all.start > 0 {
            // Without a mark, an opening refuses as corrupt some of the oracle's torn ends.
            return;
        }
        let full = all.start..all.end - 1;
        for (i, j) in full.clone().flat_map(|i| full.clone().map(move |j| (i, j))) {
            if i == j {
                continue;
            }
            case(&format!("segment {j} written over {i}"), &|files| {
                files.bytes.insert(segment(i), files.bytes[&segment(j)].clone());
            });
            if i < j {
                case(&format!("segments {i} and {j} swapped"), &|files| {
                    let [first, second] = [i, j].map(|i| files.bytes[&segment(i)].clone());
                    files.bytes.insert(segment(i), second);
                    files.bytes.insert(segment(j), first);
                });
            }
        }
    });
}

/// A log whose first records were dropped, by a writer that died or closed it.
fn dropped(beside: Beside) -> Specimen<'static> {
    let (events, first) = (plain(12, 29), 3);
    let memory = Memory::new();
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Create).unwrap();
    let mut edges = Vec::new();
    for (i, (_, bytes)) in events.iter().enumerate() {
        edges.push(wal.append(bytes).unwrap().0 as usize);
        if beside == Beside::Open(i + 1) {
            wal.sync().unwrap();
            wal.truncate_before(Lsn(edges[first] as u64)).unwrap();
        }
    }
    edges.push(wal.end().unwrap().0 as usize);
    if let Beside::Closed(_) | Beside::Nothing = beside {
        wal.sync().unwrap();
        wal.truncate_before(Lsn(edges[first] as u64)).unwrap();
        wal.close().unwrap();
    }
    let files = Files::of(&memory);
    let mut space = files.space(&TINY);
    space.truncate(edges[12]);
    let end = match beside {
        Beside::Open(synced) | Beside::Closed(synced) => Some(edges[synced]),
        Beside::Nothing => None,
    };
    let evidence = Evidence {
        borders: end.into_iter().collect(),
        durable: end.filter(|_| matches!(beside, Beside::Open(_))),
        acknowledged: end,
        limit: TINY.framing().limit(),
    };
    let files = files.with_space(&TINY, &space);
    let files = if end.is_none() { files.without_sidecar() } else { files };
    let events = events[first..].iter().map(|(_, bytes)| (0, bytes.clone())).collect();
    let edges = edges[first..].to_vec();
    let part = OnceCell::new();
    Specimen { format: &TINY, how: MANUAL, events, edges, space, files, beside, evidence, part }
}

#[test]
fn readers_agree_about_damage_after_a_dropped_prefix() {
    for beside in [Beside::Open(12), Beside::Open(7), Beside::Closed(12), Beside::Nothing] {
        let specimen = dropped(beside);
        let start = specimen.edges[0];
        for bit in 8 * start..8 * specimen.space.len() {
            let mut space = specimen.space.clone();
            space[bit / 8] ^= 1 << (bit % 8);
            judge(&specimen, &space, &|| format!("bit {bit} (byte {})", bit / 8));
        }
        for cut in start + 1..specimen.space.len() {
            judge(&specimen, &specimen.space[..cut], &|| format!("cut at {cut}"));
        }
    }
    all_passed();
}

/// A legal log, dropped up to the border of a segment nobody had begun, was "corrupt" for every reader.
#[test]
fn a_fully_dropped_log_needs_no_segment() {
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(&memory, &Path::new(DIR).join("head"), &head_marker(128));
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Read).unwrap();
    assert_eq!(
        (wal.head().unwrap(), wal.end().unwrap(), wal.len().unwrap()),
        (Lsn(128), Lsn(128), 0)
    );
    let report = TINY.verify(&at, MANUAL).unwrap();
    assert_eq!((report.verdict, report.ok()), (Verdict::Clean, true));
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Append).unwrap();
    assert_eq!(wal.append(b"goes on").unwrap(), Lsn(128));
    wal.close().unwrap();
    assert_eq!(TINY.read(&at).unwrap().forward(None, None, false).records.len(), 1);
}

/// Reading, passing over damage, `verify` and `salvage` all gave nothing next to an oversized segment, a stray file
/// with the name of a segment beyond every log, or a head marker beyond the log.
#[test]
fn a_stray_segment_file_hides_no_record() {
    let strays = [1 << 58, usize::MAX / 64, usize::MAX / 64 + 1, usize::MAX].map(Some);
    for beside in [Beside::Nothing, Beside::Open(20), Beside::Closed(20)] {
        for (what, stray) in
            [("too long", None), ("head", None)].into_iter().chain(strays.map(|at| ("stray", at)))
        {
            let specimen = Specimen::new(&TINY, &plain(20, 40), beside);
            let mut files = specimen.files.clone();
            match stray {
                Some(index) => drop(files.bytes.insert(segment(index), vec![9; 40])),
                None if what == "head" => {
                    files.bytes.insert(Path::new(DIR).join("head"), head_marker(5_000));
                }
                None => files.bytes.get_mut(&segment(3)).unwrap().extend([7; 30]),
            }
            let memory = files.restore();
            let at = At::memory(&memory, DIR);
            let before = Files::unlocked(&memory);
            let what = format!("{beside:?}, {what}, {stray:?}");
            let error = TINY.open(&at, Mode::Append, MANUAL).err().expect(&what);
            let named = stray.map_or(String::new(), |index| index.to_string());
            assert!(error.to_string().contains(&named), "{what}: {error}");
            assert!(Files::unlocked(&memory) == before, "{what}: changed");
            let report = TINY.verify(&at, MANUAL).unwrap();
            assert_eq!((report.verdict, report.ok()), (Verdict::Corrupt, false), "{what}");
            assert!(report.damages.iter().any(|damage| damage.reason.contains(&named)), "{what}");
            all_give(&specimen, &at, &all_but(20, &[]));
        }
    }
}

/// `salvage` said "say segment_bytes" and took none: the layout in its options was the copy's only.
#[test]
fn a_salvage_takes_the_segment_size() {
    let memory = Memory::new();
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Create).unwrap();
    let lsns: Vec<_> = (0..20).map(|i| wal.append(&[i; 40]).unwrap()).collect();
    wal.sync().unwrap();
    wal.truncate_before(lsns[19]).unwrap();
    wal.close().unwrap();
    // The only segment left is not the first, so the files do not show the segment size.
    let files = Files::of(&memory).without_sidecar();
    let left = files.bytes.keys().filter(|path| path.extension().is_some()).count();
    assert_eq!(left, 1);
    let memory = files.restore();
    let at = At::memory(&memory, DIR);
    let report = TINY.salvage(&at, Path::new("/copy"), MANUAL).unwrap();
    assert_eq!(report.records, 1, "{report:?}");
}
