//! Refusals of every format, whatever its bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

pub fn at(format: &dyn Format, storage: Arc<dyn Storage>) -> At {
    let path = format.path_in(Path::new("/log"));
    // If calls of the disk already fail, no directory is created.
    if !storage.is_dir(Path::new("/log")) {
        storage.create_dir(Path::new("/log")).unwrap();
    }
    At { storage, path }
}

pub fn on(format: &dyn Format, disk: &Sim) -> At {
    at(format, Arc::new(disk.clone()))
}

pub fn events() -> Vec<Event> {
    plain(3, 40)
}

pub fn walked(walk: Walk) -> Result<()> {
    walk.error.map_or(Ok(()), Err)
}

pub fn all(texts: &mut Texts) {
    for format in FORMATS {
        let name = format.name();
        presence(texts, name, format);
        handles(texts, name, format);
        failed(texts, name, format);
    }
    presence(texts, SINGLE.name(), &SINGLE);
    places(texts, &BOOK);
    panicked(texts, &BOOK);
}

fn presence(texts: &mut Texts, name: &str, format: &dyn Format) {
    let disk = Sim::new();
    let at = on(format, &disk);
    let mut here = texts.situation(format!("{name}: its files"));
    here.refused("open", format.read(&at));

    let log = format.create(&at, &events());
    here.refused("append to", format.open(&at, Mode::Append, MANUAL));
    drop(log);
    here.refused("create", format.open(&at, Mode::Create, MANUAL));

    disk.remove(&format.first_file(&at.path)).unwrap();
    for segment in 1..8 {
        let _ = disk.remove(&at.path.join(segment_name(segment)));
    }
    for mode in [Mode::Append, Mode::Create] {
        here.refused("append to, create", format.open(&at, mode, MANUAL));
    }
}

fn handles(texts: &mut Texts, name: &str, format: &dyn Format) {
    let disk = Sim::new();
    let at = on(format, &disk);
    let log = format.create(&at, &events());
    log.close().unwrap();
    let mut here = texts.situation(format!("{name}: its handles"));
    here.refused("append", log.append(1, b"late"));

    let reader = format.read(&at).unwrap();
    here.refused("append", reader.append(1, b"x"));

    let low = How { record_bytes_max: Some(100), ..MANUAL };
    let log = format.open(&at, Mode::Append, low).unwrap();
    here.refused("append", log.append(1, &[7; 101]));
    drop(log);
    let foreign = How { record_bytes_max: Some(20), ..MANUAL };
    disk.remove(&format.sidecar(&at.path).join("settings")).unwrap();
    for mode in [Mode::Read, Mode::Append] {
        match format.open(&at, mode, foreign) {
            Ok(log) => here.tried("cursor", walked(log.forward(None, None, false))),
            Err(error) => here.error("open, append to", &error),
        };
    }
}

fn places(texts: &mut Texts, format: &dyn Format) {
    let name = format.name();
    let disk = Sim::new();
    let at = on(format, &disk);
    let log = format.open(&at, Mode::Create, MANUAL).unwrap();
    let first = format.first_ordinal();
    let mut here = texts.situation(format!("{name}: empty, then with three records"));
    here.refused("read the first record", log.read(first));
    here.tried("cursor from far beyond", walked(log.forward(Some(5000), None, false)));
    let numbers: Vec<_> =
        events().iter().map(|(tag, bytes)| log.append(*tag, bytes).unwrap()).collect();
    let next = format.ordinal_after(numbers[2], 40);
    here.refused("read the fourth", log.read(next));
    here.tried("cursor from far beyond", walked(log.forward(Some(5000), None, false)));
    here.tried("backwards from far beyond", walked(log.backward(Some(5000), None)));
    here.tried("cursor from inside", walked(log.forward(Some(numbers[1] + 5), None, false)));
    here.tried("splits from far beyond", log.splits(64, Some(5000), None, false));
}

fn failed(texts: &mut Texts, name: &str, format: &dyn Format) {
    let other = What::Error(io::ErrorKind::Other);
    let begun = || {
        let disk = Sim::new();
        let log = format.create(&on(format, &disk), &events());
        log.sync().unwrap();
        (disk, log)
    };
    let (disk, log) = begun();
    log.append(1, b"more").unwrap();
    disk.inject(Fault::once(1, other).of(Call::Sync));
    let mut here = texts.situation(format!("{name}: a call failed"));
    here.refused("the sync", log.sync());
    disk.heal();
    here.refused("append, sync after it", log.append(1, b"late"));

    let (disk, log) = begun();
    disk.inject(Fault::ever(1, What::Partial(io::ErrorKind::StorageFull)).of(Call::Write));
    disk.inject(Fault::ever(1, other).of(Call::SetLen));
    here.refused("append", log.append(1, &[7; 50]));
    disk.heal();
    here.refused("append after it", log.append(1, b"late"));

    let (disk, log) = begun();
    let end = log.end().unwrap();
    cut(format, &disk, end - 30);
    here.refused("append", log.append(1, &[7; 50]));
    here.refused("append after it", log.append(1, b"late"));

    let (disk, log) = begun();
    log.append(1, b"more").unwrap();
    let path = on(format, &disk).path;
    disk.remove(&format.first_file(&path)).unwrap();
    for segment in 1..8 {
        let _ = disk.remove(&path.join(segment_name(segment)));
    }
    here.refused("sync", log.sync());
    here.refused("append after it", log.append(1, b"late"));
}

pub fn cut(format: &dyn Format, disk: &Sim, to: u64) {
    let path = on(format, disk).path;
    let Some(size) = format.segment_bytes() else {
        let file = disk.open(&format.first_file(&path), Access::Write).unwrap();
        return file.set_len(to).unwrap();
    };
    for segment in to / size..=to / size + 8 {
        let path = path.join(segment_name(segment));
        match disk.open(&path, Access::Write) {
            Ok(file) if segment == to / size => file.set_len(to % size).unwrap(),
            Ok(_) => disk.remove(&path).unwrap(),
            Err(_) => {}
        }
    }
}

fn panicked(texts: &mut Texts, format: &dyn Format) {
    let name = format.name();
    let mut here = texts.situation(format!("{name}: a thread panicked"));
    for (what, panics_at) in [("appended", Seen::Calling), ("synced", Seen::Syncing)] {
        let armed = Arc::new(AtomicBool::new(false));
        let storage = {
            let armed = armed.clone();
            watched(Arc::new(Sim::new()), move |seen| {
                if seen == panics_at && armed.swap(false, Ordering::SeqCst) {
                    panic!("of the test");
                }
            })
        };
        let log = format.create(&at(format, storage), &events());
        armed.store(true, Ordering::SeqCst);
        let call = || drop((log.append(1, &[7; 90]), log.sync()));
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "{name}, {what}");
        here.refused("append after it", log.append(1, b"late"));
    }
}
