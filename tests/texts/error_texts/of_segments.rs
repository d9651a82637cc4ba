//! Segments and head markers that are missing, wrong, or of another size.

use deedbook::wal::{Layout, Options};

use super::*;

type Change = fn(&mut Files);

fn segment(index: u64) -> PathBuf {
    Path::new(DIR).join(segment_name(index))
}

fn head() -> PathBuf {
    Path::new(DIR).join("head")
}

const CHANGES: [Change; 9] = [
    |files| drop(files.bytes.remove(&segment(0))),
    |files| drop(files.bytes.remove(&segment(3))),
    |files| files.bytes.get_mut(&segment(3)).unwrap().extend([7; 30]),
    |files| drop(files.bytes.insert(segment(u64::MAX), vec![9; 40])),
    // The head lies beyond the log, after its segment, and in a missing segment.
    |files| drop(files.bytes.insert(head(), head_marker(5_000))),
    |files| {
        files.bytes.retain(|path, _| path.extension().is_none() || *path == segment(9));
        files.bytes.get_mut(&segment(9)).unwrap().truncate(10);
        files.bytes.insert(head(), head_marker(600));
    },
    |files| {
        files.bytes.retain(|path, _| path.extension().is_none() || *path > segment(9));
        files.bytes.insert(head(), head_marker(600));
    },
    // The head marker has another checksum, and another length.
    |files| {
        files.bytes.insert(head(), [&[1; 8][..], &[2; 4]].concat());
        files.bytes.remove(&segment(0));
    },
    |files| {
        files.bytes.insert(head(), vec![0; 11]);
        files.bytes.remove(&segment(0));
    },
];

pub fn all(texts: &mut Texts) {
    let mut here = texts.situation("wal-segments: segments and heads that are missing or wrong");
    let closed = Specimen::new(&TINY, &plain(20, 40), Beside::Closed(20)).files;
    CHANGES.iter().for_each(|change| altered(&mut here, closed.clone(), *change));
    altered(&mut here, Specimen::new(&TINY, &plain(20, 40), Beside::Nothing).files, CHANGES[1]);
    lost_heads(texts);
    sizes(texts);
}

fn altered(here: &mut Situation<'_>, mut files: Files, change: Change) {
    change(&mut files);
    let at = &At::memory(&files.restore(), DIR);
    match TINY.read(at) {
        Ok(log) => {
            here.tried("cursor", walked(log.forward(None, None, false)));
            here.tried("read far on", log.read(48 * 15));
        }
        Err(error) => drop(here.error("open", &error)),
    }
    match TINY.verify(at, MANUAL) {
        Ok(report) => here.damages("verify", &report.damages),
        Err(error) => here.error("verify", &error),
    };
    here.tried("append to", TINY.open(at, Mode::Append, MANUAL));
}

/// A log in segments of 600 bytes: records of 100 bytes, then others of these bytes and lengths, all before `head` dropped.
fn dropped(records: u8, longer: &[(u8, usize)], head: u64) -> Files {
    let memory = Memory::new();
    let wal = of_size(&memory, Some(600)).open(DIR, Mode::Create).unwrap();
    (0..records).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    longer.iter().for_each(|&(byte, len)| assert!(wal.append(&vec![byte; len]).is_ok()));
    wal.sync().unwrap();
    wal.truncate_before(Lsn(head)).unwrap();
    wal.close().unwrap();
    Files::of(&memory)
}

fn of_size(memory: &Memory, segment_bytes: Option<u64>) -> Options {
    let layout = segment_bytes.map(|segment_bytes| Layout::Segmented { segment_bytes });
    Options::new().layout(layout).storage(Arc::new(memory.clone()))
}

fn lost_heads(texts: &mut Texts) {
    let mut files = dropped(33, &[(0xee, 700)], 3100);
    files.bytes.remove(&head());
    let memory = files.restore();
    let options = of_size(&memory, None);
    let mut here = texts.situation("wal-segments: only the mark knows the head");
    let report = options.verify(DIR).unwrap();
    here.damages("verify", &report.damages);
}

fn sizes(texts: &mut Texts) {
    let whole = dropped(33, &[(0xee, 700)], 3100);
    let bare = whole.without_sidecar();
    let mut here =
        texts.situation("wal-segments: a size that is not the log's, or that nothing names");
    for wrong in [500, 550, 601] {
        let options = of_size(&bare.restore(), Some(wrong));
        here.tried(&format!("append to, {wrong}"), options.open(DIR, Mode::Append));
    }
    let one = dropped(35, &[], 3400).without_sidecar();
    for wrong in [510, 570, 590] {
        let options = of_size(&one.restore(), Some(wrong));
        here.tried(&format!("append to one segment, {wrong}"), options.open(DIR, Mode::Append));
    }
    let with_first = |len: usize| {
        let mut files = bare.clone();
        files.bytes.get_mut(&segment(5)).unwrap().truncate(len);
        of_size(&files.restore(), None)
    };
    for mode in [Mode::Read, Mode::Append] {
        here.refused("open, append to, a torn segment", with_first(500).open(DIR, mode));
        let options = of_size(&one.restore(), None);
        here.refused("open, append to, one segment", options.open(DIR, mode));
    }

    // The torn segment ends after a record, and the next looks like a segment of the same size.
    let mut files = dropped(33, &[(0xdd, 272), (0xee, 700)], 3100).without_sidecar();
    files.bytes.get_mut(&segment(5)).unwrap().truncate(580);
    files.bytes.get_mut(&segment(6)).unwrap().truncate(90);
    files.bytes.remove(&segment(7));
    let memory = files.restore();
    here.refused("append to", of_size(&memory, None).open(DIR, Mode::Append));
    let is_log = |(path, _): &(&PathBuf, &Vec<u8>)| path.parent() == Some(Path::new(DIR));
    assert!(Files::unlocked(&memory).iter().filter(is_log).eq(&files.bytes), "it was changed");

    let memory = whole.restore();
    write_file(&memory, &segment(4), &[1; 599]);
    here.refused("append to", of_size(&memory, None).open(DIR, Mode::Append));
    assert_eq!(read_file(&memory, &segment(4)).len(), 599);
}
