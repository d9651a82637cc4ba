//! Segments and head markers that are missing, wrong, or of another size.

use deedbook::wal::{Layout, Lsn, Options, segment_name};

use crate::error_texts::every::walked;
use crate::support::formats::wal::{TINY, head_marker};
use crate::support::prelude::*;
use crate::support::texts::Texts;

type Change = fn(&mut Files);

fn segment(index: u64) -> PathBuf {
    Path::new(DIR).join(segment_name(index))
}

fn head() -> PathBuf {
    Path::new(DIR).join("head")
}

const CHANGES: [(&str, Change); 9] = [
    ("segment 0 is missing", |files| drop(files.bytes.remove(&segment(0)))),
    ("segment 3 is missing", |files| drop(files.bytes.remove(&segment(3)))),
    ("segment 3 is too long", |files| files.bytes.get_mut(&segment(3)).unwrap().extend([7; 30])),
    ("a segment has the highest number", |files| {
        files.bytes.insert(segment(u64::MAX), vec![9; 40]);
    }),
    ("the head lies beyond the log", |files| drop(files.bytes.insert(head(), head_marker(5_000)))),
    ("the head lies after its segment", |files| {
        files.bytes.retain(|path, _| path.extension().is_none() || *path == segment(9));
        files.bytes.get_mut(&segment(9)).unwrap().truncate(10);
        files.bytes.insert(head(), head_marker(600));
    }),
    ("the segment of the head is missing", |files| {
        files.bytes.retain(|path, _| path.extension().is_none() || *path > segment(9));
        files.bytes.insert(head(), head_marker(600));
    }),
    ("the head marker has another checksum", |files| {
        files.bytes.insert(head(), [&[1; 8][..], &[2; 4]].concat());
        files.bytes.remove(&segment(0));
    }),
    ("the head marker has 11 bytes", |files| {
        files.bytes.insert(head(), vec![0; 11]);
        files.bytes.remove(&segment(0));
    }),
];

pub fn all(texts: &mut Texts) {
    for (what, change) in CHANGES {
        let files = Specimen::new(&TINY, &plain(20, 40), Beside::Closed(20)).files;
        altered(texts, format!("{what}, closed"), files, change);
    }
    let (what, change) = CHANGES[1];
    let files = Specimen::new(&TINY, &plain(20, 40), Beside::Nothing).files;
    altered(texts, format!("{what}, without a sidecar"), files, change);
    lost_heads(texts);
    sizes(texts);
}

fn altered(texts: &mut Texts, what: String, mut files: Files, change: Change) {
    change(&mut files);
    let at = &At::memory(&files.restore(), DIR);
    let here = &mut texts.situation(format!("wal-segments: {what}"));
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

/// Segments of 600 bytes, the head at byte 3100 of segment 5, and a record of 708 bytes at the end.
fn dropped(memory: &Memory) -> Files {
    let wal = of_size(memory, Some(600)).open(DIR, Mode::Create).unwrap();
    (0..33).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    wal.append(&[0xee; 700]).unwrap();
    wal.sync().unwrap();
    wal.truncate_before(Lsn(3100)).unwrap();
    wal.close().unwrap();
    Files::of(memory)
}

fn of_size(memory: &Memory, segment_bytes: Option<u64>) -> Options {
    let layout = segment_bytes.map(|segment_bytes| Layout::Segmented { segment_bytes });
    Options::new().layout(layout).storage(Arc::new(memory.clone()))
}

fn lost_heads(texts: &mut Texts) {
    let mut files = dropped(&Memory::new());
    files.bytes.remove(&head());
    let memory = files.restore();
    let options = of_size(&memory, None);
    let mut here = texts.situation("wal-segments: only the mark knows the head");
    let report = options.verify(DIR).unwrap();
    here.damages("verify", &report.damages);
}

fn sizes(texts: &mut Texts) {
    let whole = dropped(&Memory::new());
    let bare = whole.without_sidecar();
    let mut here = texts.situation("wal-segments: a size that is not the log's");
    for wrong in [500, 550, 601] {
        let options = of_size(&bare.restore(), Some(wrong));
        here.tried(&format!("append to, {wrong}"), options.open(DIR, Mode::Append));
    }
    let one = Files::of(&{
        let memory = Memory::new();
        let wal = of_size(&memory, Some(600)).open(DIR, Mode::Create).unwrap();
        (0..35).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
        wal.sync().unwrap();
        wal.truncate_before(Lsn(3400)).unwrap();
        wal.close().unwrap();
        memory
    })
    .without_sidecar();
    for wrong in [510, 570, 590] {
        let options = of_size(&one.restore(), Some(wrong));
        here.tried(&format!("append to one segment, {wrong}"), options.open(DIR, Mode::Append));
    }
    let mut unknown = texts.situation("wal-segments: nothing names the size");
    let with_first = |len: usize| {
        let mut files = bare.clone();
        files.bytes.get_mut(&segment(5)).unwrap().truncate(len);
        of_size(&files.restore(), None)
    };
    for mode in [Mode::Read, Mode::Append] {
        unknown.refused("open, append to, a torn segment", with_first(500).open(DIR, mode));
        let options = of_size(&one.restore(), None);
        unknown.refused("open, append to, one segment", options.open(DIR, mode));
    }

    // The torn one ends after a record, and the next is what one of its size would be.
    let memory = Memory::new();
    let wal = of_size(&memory, Some(600)).open(DIR, Mode::Create).unwrap();
    (0..33).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    wal.append(&[0xdd; 272]).unwrap();
    wal.append(&[0xee; 700]).unwrap();
    wal.sync().unwrap();
    wal.truncate_before(Lsn(3100)).unwrap();
    wal.close().unwrap();
    let mut files = Files::of(&memory).without_sidecar();
    files.bytes.get_mut(&segment(5)).unwrap().truncate(580);
    files.bytes.get_mut(&segment(6)).unwrap().truncate(90);
    files.bytes.remove(&segment(7));
    unknown.refused("append to", of_size(&files.restore(), None).open(DIR, Mode::Append));

    let memory = whole.restore();
    write_file(&memory, &segment(4), &[1; 599]);
    let mut below = texts.situation("wal-segments: a segment below the head is too short");
    below.refused("append to", of_size(&memory, None).open(DIR, Mode::Append));
    assert_eq!(read_file(&memory, &segment(4)).len(), 599);
}
