//! Refusals of only a write-ahead log: layouts, truncation, consumers, retention.

use deedbook::wal::{Layout, Options};

use super::*;

const SEGMENTED: Layout = Layout::Segmented { segment_bytes: 64 };

fn options(disk: &Sim, layout: Option<Layout>) -> Options {
    Options::new().layout(layout).storage(Arc::new(disk.clone()))
}

/// A log of six records of 40 bytes, all synced.
fn written(disk: &Sim, path: &str, layout: Layout) -> (Wal, Vec<Lsn>) {
    disk.create_dir(Path::new("/log")).unwrap();
    let wal = options(disk, Some(layout)).open(path, Mode::Create).unwrap();
    let lsns = (0..6).map(|n| wal.append(&[n; 32]).unwrap()).collect();
    wal.sync().unwrap();
    (wal, lsns)
}

pub fn all(texts: &mut Texts) {
    layouts(texts);
    truncation(texts);
    consumers(texts);
    foreign(texts);
    far(texts);
}

fn layouts(texts: &mut Texts) {
    let disk = Sim::new();
    drop(written(&disk, "/log/many", SEGMENTED));
    drop(written(&disk, "/log/one", Layout::Single));
    let asked = |layout| options(&disk, Some(layout));
    let mut here = texts.situation("wal: another layout than the log's");
    here.refused("single", asked(Layout::Single).open("/log/many", Mode::Append));
    here.refused("segments", asked(SEGMENTED).open("/log/one", Mode::Append));
    let larger = Layout::Segmented { segment_bytes: 600 };
    here.refused("another size", asked(larger).open("/log/many", Mode::Read));
    let segment = format!("/log/many/{}", segment_name(0));
    here.refused("a segment by itself", options(&disk, None).open(segment, Mode::Read));
}

fn truncation(texts: &mut Texts) {
    let disk = Sim::new();
    let (one, lsns) = written(&disk, "/log/one", Layout::Single);
    let mut here = texts.situation("wal: a truncation where none can be");
    here.refused("truncate_before, retain", one.truncate_before(lsns[2]));

    let (many, lsns) = written(&disk, "/log/many", SEGMENTED);
    let last = many.append(b"not synced").unwrap();
    here.refused("truncate_after what is not durable", many.truncate_after(last));
    here.refused("truncate_from the end", many.truncate_from(many.end().unwrap()));
    many.sync().unwrap();
    many.truncate_before(lsns[3]).unwrap();

    let fails = |_: u64, _: &Path| Err(io::Error::other("the archive is full"));
    drop(many);
    let archiving = options(&disk, None).archive(fails);
    let wal = archiving.open("/log/archived", Mode::Create).unwrap();
    drop(wal);
    let (wal, lsns) = {
        let archiving = archiving.layout(SEGMENTED);
        let wal = archiving.open("/log/small", Mode::Create).unwrap();
        let lsns: Vec<_> = (0..6).map(|n| wal.append(&[n; 40]).unwrap()).collect();
        wal.sync().unwrap();
        (wal, lsns)
    };
    here.refused("truncate_before", wal.truncate_before(lsns[4]));
}

fn consumers(texts: &mut Texts) {
    let disk = Sim::new();
    let (wal, lsns) = written(&disk, "/log/many", SEGMENTED);
    let mut here = texts.situation("wal: consumers");
    for name in ["", "two words"] {
        here.refused("set_consumer by a bad name", wal.set_consumer(name, lsns[0]));
    }
    wal.set_consumer("slow", lsns[1]).unwrap();
    here.refused("truncate_before what is needed", wal.truncate_before(lsns[3]));
    let file = Path::new("/log/many/.deedbook/consumers");
    disk.open(file, Access::Write).unwrap().write_at(b"?", 1).unwrap();
    here.refused("consumers, set_consumer", wal.consumers());
}

fn foreign(texts: &mut Texts) {
    let disk = Sim::new();
    disk.create_dir(Path::new("/log")).unwrap();
    write_file(&disk, Path::new("/log/program"), &[0x7f; 300]);
    disk.create_dir(Path::new("/log/dir")).unwrap();
    write_file(&disk, &Path::new("/log/dir").join(segment_name(0)), &[0x7f; 300]);
    let mut here = texts.situation("wal: a file that is none, or a torn first record");
    for path in ["/log/program", "/log/dir"] {
        for mode in [Mode::Read, Mode::Append] {
            here.refused("open, append to", options(&disk, None).open(path, mode));
        }
    }
    let torn = [&[1, 2, 3, 4, 50, 0, 0, 0][..], &[9; 9]].concat();
    write_file(&disk, Path::new("/log/torn.wal"), &torn);
    here.refused("append to", options(&disk, None).open("/log/torn.wal", Mode::Append));
}

fn far(texts: &mut Texts) {
    let disk = Sim::new();
    disk.create_dir(Path::new("/log")).unwrap();
    let head = (1 << 63) - 128;
    write_file(&disk, Path::new("/log/head"), &head_marker(head));
    let wal = options(&disk, Some(SEGMENTED)).open("/log", Mode::Append).unwrap();
    let mut here = texts.situation("wal: positions beyond 2^63");
    here.refused("append", wal.append(&[7; 200]));
    drop(wal);
    disk.create_dir(Path::new("/far")).unwrap();
    write_file(&disk, Path::new("/far/head"), &head_marker((1 << 63) + 64));
    for mode in [Mode::Read, Mode::Append] {
        here.tried("open, append to", options(&disk, Some(SEGMENTED)).open("/far", mode));
    }
}
