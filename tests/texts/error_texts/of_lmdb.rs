//! Refusals on the way from LMDB to books, and back.

use deedbook::book::lmdb::{Environment, Options, Report};

use crate::support::common::lmdb_pages::{PAGE, Pages, make};

use super::*;

const EVENTS: [(u64, &[u8]); 2] = [(1, b"\0\0\0\0one"), (2, b"\0\0\0\0two")];
const META: [(&str, &[u8]); 4] = [("who", b""), ("version", b""), ("life", b"\x01"), ("fake", b"")];

pub fn all(texts: &mut Texts) {
    let dir = tempfile::tempdir().unwrap();
    texts.replace(dir.path().to_str().unwrap(), "DIR");
    events(texts, &dir.path().join("events"));
    files(texts, &dir.path().join("files"));
    pages(texts, &dir.path().join("pages"));
    places(texts, &dir.path().join("places"));
    piers(texts, &dir.path().join("piers"));
    metadata(texts, &dir.path().join("metadata"));
}

fn bring(source: &Path, dest: &Path) -> Result<Report> {
    Options::default().migrate(source, dest, |_, _| Ok(()))
}

fn only(epoch: u64) -> Options {
    Options::new().epochs(vec![epoch])
}

fn back(source: &Path, dest: &Path) -> Result<Report> {
    Options::default().export(source, dest, |_, _| Ok(()))
}

fn events(texts: &mut Texts, dir: &Path) {
    let dest = dir.join("dest");
    let made = |name: &str, events: &[(u64, &[u8])], meta: &[(&str, &[u8])]| {
        make(&dir.join(name), events, meta);
        dir.join(name)
    };
    let mut here = texts.situation("lmdb: events and metadata that no book can have");
    let gap = made("gap", &[(1, b"\0\0\0\0"), (3, b"\0\0\0\0")], &[]);
    here.refused("gap", bring(&gap, &dest));
    here.refused("short", bring(&made("short", &[(1, b"\0\0\0")], &[]), &dest));
    here.refused("event 0", bring(&made("zero", &[(0, b"\0\0\0\0")], &[]), &dest));
    let long = made("long", &[], &[("life", b"\x01\x01\x01\x01\x01")]);
    here.refused("life", bring(&long, &dest));
    here.refused("no who", bring(&made("partial", &[], &META[2..]), &dest));
    here.refused("fake", bring(&made("fake", &[], &[("fake", b"\x02")]), &dest));
    let source = made("source", &EVENTS, &META);
    let opened = Environment::open(&source).unwrap();
    here.refused("open twice", Environment::open(&source));
    drop(opened);
    let write = |_, _| {
        let path = source.join("data.mdb");
        let mut bytes = fs::read(&path).unwrap();
        bytes[16 + 128] += 8;
        fs::write(&path, bytes).map_err(|e| Error::io("write", &path, e))
    };
    let meanwhile = dir.join("meanwhile");
    here.refused("written", Options::default().migrate(&source, meanwhile, write));
}

fn files(texts: &mut Texts, dir: &Path) {
    let (source, dest) = (dir.join("source"), dir.join("dest"));
    make(&source, &EVENTS, &META);
    let path = source.join("data.mdb");
    let whole = fs::read(&path).unwrap();
    let mut here = texts.situation("lmdb: files that are no environment, or a damaged one");
    let mut tried = |call: &str, at: usize, bytes: &[u8]| {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(&path, damaged).unwrap();
        here.refused(call, bring(&source, &dest));
    };
    tried("magic", 16, b"none");
    tried("version", 20, &[9]);
    tried("flags", 10, &[0]);
    tried("page size", 40, &[3]);
    tried("page sizes", 4096 + 40, &[0, 32]);
    tried("last page", 4096 + 16 + 120, &[0, 1, 0, 0, 0, 0, 0, 0, 0xff]);
    // LMDB would read the other meta page, which nobody checked.
    tried("transaction", 16 + 128, &1001u64.to_le_bytes());
    fs::write(&path, b"short").unwrap();
    here.refused("short", bring(&source, &dest));
}

/// Each number that could lead LMDB out of its page, its run or its file.
fn pages(texts: &mut Texts, dir: &Path) {
    let (source, dest) = (dir.join("source"), dir.join("dest"));
    let short: Vec<_> = (1..=300).map(|event| (event, &b"\0\0\0\0event"[..])).collect();
    let long = vec![7; 10_000];
    make(&source, &[&short[..], &[(301, &long[..])]].concat(), &META);
    let path = source.join("data.mdb");
    let whole = Pages(fs::read(&path).unwrap());
    let (events, main) = (whole.named(b"EVENTS"), whole.root(whole.main()));
    let (root, leaf) = (whole.root(events), whole.last_leaf());
    let last = whole.node(leaf, whole.count(leaf) - 1);
    let run = whole.u64(last + 16) as usize * PAGE;
    let (first, second) = (whole.node(root, 0), whole.node(root, 1));
    let mut here = texts.situation("lmdb: pages that lead out of their file");
    let mut tried = |call: &str, at: usize, bytes: &[u8]| {
        fs::write(&path, whole.with(at, bytes)).unwrap();
        here.refused(call, bring(&source, &dest));
    };
    tried("child beyond the file", first, &[0xff, 0xff]);
    tried("child twice", first, &whole.0[second..second + 2]);
    tried("number", leaf, &[99]);
    tried("page flags", leaf + 10, &[0x12]);
    tried("database flags", events + 4, &[0x0c]);
    tried("flags of the list", whole.main() + 4, &[4]);
    tried("depth", events + 6, &[0]);
    tried("space", leaf + 12, &[0xfe, 0x0f]);
    tried("one child", root + 12, &[18]);
    tried("place of a node", leaf + 16, &[0xff, 0x0f]);
    tried("key", last + 6, &[7]);
    tried("order", last + 8, &[1, 0]);
    tried("node flags", last + 4, &[5]);
    tried("value", whole.node(leaf, 0), &[4, 0, 1]);
    tried("run", run + 12, &[2]);
    tried("record", whole.node(main, 0), &[47]);
    tried("transaction", whole.meta() + 16 + 128, &[0, 0, 0, 0, 0, 0, 0, 0x41]);
    fs::write(&path, &whole.0).unwrap();
    exported(here, dir, &source);
}

/// The same for pages that LMDB also writes.
fn exported(mut here: Situation<'_>, dir: &Path, first: &Path) {
    let (source, dest) = (dir.join("book"), dir.join("environment"));
    Options::default().migrate(first, &source, |_, _| Ok(())).unwrap();
    make(&dest, &EVENTS, &META);
    make(&dest, &[], &[("life", b"\x01\x01")]);
    let path = dest.join("data.mdb");
    let whole = Pages(fs::read(&path).unwrap());
    let (leaf, free) = (whole.last_leaf(), whole.root(whole.free()));
    let value = whole.node(free, 0) + 16;
    let mut tried = |call: &str, at: usize, bytes: &[u8]| {
        fs::write(&path, whole.with(at, bytes)).unwrap();
        here.refused(call, back(&source, &dest));
    };
    tried("free pages counted", value, &[99]);
    tried("flags of the free list", whole.free() + 4, &[4]);
    tried("free page in use", value + 8, &[(leaf / PAGE) as u8]);
    tried("free page again", value + 16, &whole.0[value + 8..value + 16]);
    tried("node in another", leaf + 16, &whole.0[leaf + 18..leaf + 20]);
    tried("size of a node", whole.node(leaf, 0), &[5]);
    tried("large node", whole.node(leaf, whole.count(leaf) - 1) + 1, &[8]);
    let link = dir.join("link");
    fs::create_dir(&link).unwrap();
    symlink(&path, link.join("data.mdb")).unwrap();
    here.refused("link", back(&source, &link));
}

fn places(texts: &mut Texts, dir: &Path) {
    let (source, dest) = (dir.join("source"), dir.join("dest"));
    make(&source, &EVENTS, &META);
    let mut here = texts.situation("lmdb: sources and destinations that are none");
    here.refused("none", bring(&dir.join("none"), &dest));
    fs::create_dir(dir.join("empty")).unwrap();
    here.refused("empty", bring(&dir.join("empty"), &dest));
    here.refused("itself", bring(&source, &source));
    here.refused("export", back(&source, &dest));
    let book = |name: &str, jams: &[&[u8]], meta: Meta| -> PathBuf {
        let book = Book::create(dir.join(name)).unwrap();
        for jam in jams {
            book.append(0, jam).unwrap();
        }
        book.save_meta(&meta).unwrap();
        book.close().unwrap();
        dir.join(name)
    };
    let meta = Meta { life: Some(1), fake: Some(true), ..Meta::default() };
    let other = book("other", &[b"one", b"2"], meta);
    here.refused("epochs", only(0).migrate(&source, &dest, |_, _| Ok(())));
    here.refused("another event", bring(&source, &other));
    here.refused("a book", bring(&other, &dest));
    here.refused("longer", bring(&source, &book("longer", &[b"one", b"two", b"3"], meta)));
    let life = Meta { life: Some(2), ..meta };
    here.refused("other metadata", bring(&source, &book("life", &[b"one"], life)));
}

fn piers(texts: &mut Texts, dir: &Path) {
    let (source, dest) = (dir.join("pier"), dir.join("dest"));
    let log = source.join(".urb/log");
    make(&log, &[], &META);
    let mut here = texts.situation("lmdb: piers that are not whole");
    here.refused("export of version 1", back(&source, &dest));
    make(&log.join("0i0"), &EVENTS, &META);
    here.refused("no epoc.txt", bring(&source, &dest));
    fs::write(log.join("0i0/epoc.txt"), "8").unwrap();
    here.refused("version 8", bring(&source, &dest));
    fs::write(log.join("0i0/epoc.txt"), "2").unwrap();
    here.refused("no such epoch", only(7).migrate(&source, &dest, |_, _| Ok(())));
    here.refused("top", bring(&log, &dest));
    make(&log.join("0i5"), &[(6, b"\0\0\0\0")], &META);
    fs::write(log.join("0i5/epoc.txt"), "2").unwrap();
    here.refused("order", bring(&source, &dest));
    fs::remove_dir_all(log.join("0i5")).unwrap();
    make(&log.join("0i2"), &[(4, b"\0\0\0\0")], &META);
    fs::write(log.join("0i2/epoc.txt"), "2").unwrap();
    here.refused("first", bring(&source, &dest));
    fs::remove_dir_all(log.join("0i2")).unwrap();
    make(&dest.join(".urb/log"), &EVENTS, &META);
    here.refused("events in the destination", bring(&source, &dest));
    fs::create_dir(dest.join(".urb/log/0i9")).unwrap();
    here.refused("another epoch", bring(&source, &dest));
    make(&log, &[(3, b"\0\0\0\0")], &META);
    here.refused("events in the top directory", bring(&source, &dir.join("third")));
}

fn metadata(texts: &mut Texts, dir: &Path) {
    let pier = Pier::append_to(dir).unwrap();
    pier.save_meta(&Meta { life: Some(5), ..Meta::default() }).unwrap();
    make(&dir.join(".urb/log"), &[], &META);
    let mut here = texts.situation("lmdb: a pier's metadata that is not that of its last epoch");
    here.refused("read", pier.meta());
}
