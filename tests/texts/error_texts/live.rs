//! Readers of a log that others change meanwhile.

use super::*;

pub fn all(texts: &mut Texts) {
    cut_by_hand(texts, &BOOK);
    for format in FORMATS {
        damaged_beside_its_writer(texts, format);
    }
    truncated(texts);
    dropped(texts);
}

fn cut_by_hand(texts: &mut Texts, format: &dyn Format) {
    let disk = Sim::new();
    let at = on(format, &disk);
    format.create(&at, &events()).close().unwrap();
    let reader = format.read(&at).unwrap();
    let end = reader.end().unwrap();
    cut(format, &disk, end - 70);
    let mut here = texts.situation(format!("{}: the end is cut under a reader", format.name()));
    here.tried("refresh", reader.refresh());
}

fn damaged_beside_its_writer(texts: &mut Texts, format: &dyn Format) {
    let disk = Sim::new();
    let at = on(format, &disk);
    let log = format.create(&at, &events());
    log.sync().unwrap();
    let reader = format.read(&at).unwrap();
    let end = log.end().unwrap();
    (0..3).for_each(|_| assert!(log.append(1, &[7; 40]).is_ok()));
    log.sync().unwrap();
    let (path, at_byte) = match format.segment_bytes() {
        None => (format.first_file(&at.path), end + 14),
        Some(size) => {
            let name = segment_name((end + 14) / size);
            (at.path.join(name), (end + 14) % size)
        }
    };
    disk.open(&path, Access::Write).unwrap().write_at(&[1], at_byte).unwrap();
    let what = "what was appended and synced is damaged";
    let mut here = texts.situation(format!("{}: {what}", format.name()));
    here.refused("refresh of a reader", reader.refresh());
    here.tried("append to it after a crash", {
        let disk = disk.kill();
        format.open(&on(format, &disk), Mode::Append, MANUAL)
    });
}

fn wal(disk: &Sim, mode: Mode) -> Wal {
    let at = on(&TINY, disk);
    TINY.options(&at, MANUAL).open(&at.path, mode).unwrap()
}

fn truncated(texts: &mut Texts) {
    let disk = Sim::new();
    let writer = wal(&disk, Mode::Create);
    let lsns: Vec<_> = (0..6).map(|n| writer.append(&[n; 40]).unwrap()).collect();
    writer.sync().unwrap();
    writer.truncate_after(lsns[1]).unwrap();
    let mut here = texts.situation("wal-segments-64: its writer dropped the end");
    here.refused("read of the writer", writer.read(lsns[5]));
}

/// More than a reader takes into memory at once.
fn dropped(texts: &mut Texts) {
    let disk = Sim::new();
    let writer = wal(&disk, Mode::Create);
    let lsns: Vec<_> = (0..900u64).map(|n| writer.append(&[n as u8; 56]).unwrap()).collect();
    writer.sync().unwrap();
    let reader = wal(&disk, Mode::Read);
    let mut cursor = reader.cursor(.., OnCorrupt::Raise).unwrap();
    let mut back = reader.cursor_back(..).unwrap();
    assert!(cursor.next().unwrap().is_some() && back.next().unwrap().is_some());
    let bookmark = reader.bookmark().unwrap();
    writer.truncate_before(lsns[800]).unwrap();
    let mut here =
        texts.situation("wal-segments-64: its writer dropped a prefix, then a segment goes");
    let drained = |cursor: &mut deedbook::Cursor<deedbook::wal::WalFormat>| -> Result<()> {
        while cursor.next()?.is_some() {}
        Ok(())
    };
    here.refused("cursor", drained(&mut cursor));
    here.refused("read the first record", reader.read(Lsn(0)));
    here.refused("advance of the writer", writer.advance(&bookmark, &Reach::default()));
    let mut backwards = || -> Result<()> {
        while back.next()?.is_some() {}
        Ok(())
    };
    here.tried("backwards", backwards());
    // A file that goes while others still count on it.
    let segment = Path::new(DIR).join(segment_name(820));
    disk.remove(&segment).unwrap();
    let reader = wal(&disk, Mode::Read);
    here.tried("read before it", reader.read(lsns[801]));
    here.tried("read after it", reader.read(lsns[850]));
    here.tried("read of the writer after it", writer.read(lsns[820]));
    here.tried("sync of the writer", writer.append(b"x").and_then(|_| writer.sync()));
}
