//! Refusals of only a book: headers, epochs, event numbers, metadata.

use deedbook::book::{META_NAME, Options};

use crate::support::common::{data, deed, event_of, header, log};

use super::*;

const FILE: &str = "/log/book.log";

pub fn options(disk: &Sim) -> Options {
    let storage = Arc::new(disk.clone());
    Options::new().durability(Durability::Manual).storage(storage)
}

fn holding(bytes: &[u8]) -> Sim {
    let disk = Sim::new();
    disk.create_dir(Path::new("/log")).unwrap();
    write_file(&disk, Path::new(FILE), bytes);
    disk
}

fn written() -> Sim {
    let disk = Sim::new();
    let book = options(&disk).open("/log", Mode::Create).unwrap();
    (1..5).for_each(|n| assert!(book.append(n, &[n as u8; 40]).is_ok()));
    book.close().unwrap();
    disk
}

pub fn all(texts: &mut Texts) {
    headers(texts);
    marks(texts);
    epochs(texts);
    numbers(texts);
    metadata(texts);
    tails(texts);
    another_log(texts);
}

fn another_log(texts: &mut Texts) {
    let mut here = texts
        .situation("book: parts of a log that another one replaced, and what only a ledger has");
    let splits = options(&written()).open("/log", Mode::Read).and_then(|book| book.splits(1, ..));
    let other = Sim::new();
    let book = options(&other).open("/log", Mode::Create).unwrap();
    (1..5).for_each(|n| assert!(book.append(n, &[b'x'; 40]).is_ok()));
    book.close().unwrap();
    let split = &splits.unwrap()[0];
    let read = Book::read_split(split, &options(&other), .., OnCorrupt::Raise, true);
    here.refused("read_split", read);
    let reader = options(&written()).open("/log", Mode::Read).unwrap();
    here.refused("bookmark_at", reader.bookmark_at(99));
    let bookmark = reader.bookmark_at(5).unwrap();
    let reader = options(&other).open("/log", Mode::Read).unwrap();
    here.refused("advance", reader.advance(&bookmark, &Reach::default()));
    let rotate = options(&Sim::new()).durability(Durability::Rotate);
    here.refused("open with a ledger's durability", rotate.open("/log", Mode::Create));
    let at_once = options(&Sim::new()).durability(Durability::Interval(Duration::ZERO));
    here.refused("open with an interval of nothing", at_once.open("/log", Mode::Create));
}

pub fn tried(here: &mut Situation<'_>, disk: &Sim) {
    let options = options(disk);
    match options.open("/log", Mode::Read) {
        Ok(book) => {
            let walked = book.iter(..).and_then(|mut all| all.try_for_each(|deed| deed.map(drop)));
            here.tried("iter", walked);
        }
        Err(error) => drop(here.error("open", &error)),
    }
    match options.verify("/log") {
        Ok(report) => here.damages("verify", &report.damages),
        Err(error) => here.error("verify", &error),
    };
    here.tried("repair", options.repair("/log", deedbook::report::Repair::default()));
    match options.open("/log", Mode::Append) {
        Ok(book) => here.damages("append to, in its report", &book.recovery().damage),
        Err(error) => here.error("append to", &error),
    };
}

fn headers(texts: &mut Texts) {
    let four: Vec<_> = (1..5).map(|n| event_of(n, 40)).collect();
    let with = |at: usize, byte: u8, mut bytes: Vec<u8>| {
        bytes[at] = byte;
        bytes
    };
    let padded = std::fs::read(data("specC-3").join("book.log")).unwrap();
    let mut here = texts.situation("book: its header, alone and before deeds");
    for bytes in [
        header(1)[..15].to_vec(),
        with(2, b'X', header(1)),
        with(4, 2, header(1)),
        with(2, b'X', log(1, &four)),
        with(4, 2, log(1, &four)),
        // No first event, numbers beyond 2^64, rubbish, another layout.
        log(0, &four),
        log(u64::MAX - 2, &four),
        [header(1), vec![0xa5; 60]].concat(),
        padded,
    ] {
        tried(&mut here, &holding(&bytes));
    }
}

fn marks(texts: &mut Texts) {
    let mut here = texts.situation("book: its mark differs from the log");
    let disk = written();
    let whole = read_file(&disk, Path::new(FILE));
    write_file(&disk, Path::new(FILE), &whole[..3]);
    tried(&mut here, &disk);
    let disk = written();
    let mut other = whole.clone();
    other[8] = 7;
    write_file(&disk, Path::new(FILE), &other);
    tried(&mut here, &disk);
    // The header's sector of the first save did not reach the disk.
    let disk = Sim::new();
    let book = options(&disk).open("/log", Mode::Create).unwrap();
    book.append(1, &[1; 40]).unwrap();
    let disk = disk.kill();
    let torn = [header(0), deed(1, &[1; 40])].concat();
    write_file(&disk, Path::new(FILE), &torn);
    tried(&mut here, &disk);
}

fn epochs(texts: &mut Texts) {
    let disk = written();
    let with_epoch = |epoch| options(&disk).epoch(epoch);
    let mut here = texts.situation("book: another epoch than the log's or the directory's");
    here.refused("append to", with_epoch(3).open("/log", Mode::Append));
    let book = options(&disk).open("/log", Mode::Append).unwrap();
    let mut batch = Batch::<BookFormat>::new(1000);
    batch.push(1, b"x").unwrap();
    here.refused("append_batch", book.append_batch(&batch, None, Some(3)));
    here.refused("create with epoch 3", with_epoch(3).open("/0i5", Mode::Create));
    disk.create_dir(Path::new("/0i9")).unwrap();
    write_file(&disk, Path::new("/0i9/book.log"), &log(1, &[event_of(1, 40)]));
    here.refused("append to", options(&disk).open("/0i9", Mode::Append));
}

fn numbers(texts: &mut Texts) {
    let disk = written();
    let book = options(&disk).open("/log", Mode::Append).unwrap();
    let mut batch = Batch::<BookFormat>::new(1000);
    batch.push(1, b"x").unwrap();
    let mut numbers = texts.situation("book: a number that is not the next one, or none");
    numbers.refused("append_batch of event 9", book.append_batch(&batch, Some(9), None));
    numbers.refused("wait_durable", book.wait_durable(9));
    let empty = options(&disk).open("/empty", Mode::Create).unwrap();
    numbers.refused("append_batch after the last", empty.append_batch(&batch, None, Some(!0)));
    let last = options(&disk).epoch(u64::MAX - 1);
    let last = last.open("/last", Mode::Create).unwrap();
    numbers.refused("append after the last number", last.append(1, b"x"));
    batch.push(1, b"y").unwrap();
    let high = options(&disk).epoch(1 << 63);
    let high = high.open("/high", Mode::Create).unwrap();
    high.append(1, b"x").unwrap();
    let cursor = high.cursor(.., OnCorrupt::Raise).unwrap();
    let mut batches = deedbook::Batches::new(cursor, &["event"], 10, 1 << 20).unwrap();
    numbers.tried("in Arrow", batches.next().transpose());
}

fn metadata(texts: &mut Texts) {
    let disk = written();
    let reader = options(&disk).open("/log", Mode::Read).unwrap();
    let mut here = texts.situation("book: metadata and the note of a loss");
    here.refused("read_meta of a key that is none", reader.read_meta("love"));
    let note = Path::new("/log/.deedbook/loss");
    write_file(&disk, note, b"records 7\n");
    here.refused("open", options(&disk).open("/log", Mode::Read));
    disk.remove(note).unwrap();
    let lost = written();
    let bytes = read_file(&lost, Path::new(FILE));
    write_file(&lost, Path::new(FILE), &bytes[..bytes.len() - (40 + 24)]);
    lost.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Rename));
    let may = deedbook::report::Repair { accept_loss: true, ..deedbook::report::Repair::default() };
    here.refused("repair that accepts it", options(&lost).repair("/log", may));
    write_file(&disk, &Path::new("/log").join(META_NAME), &[0; 255]);
    here.refused("meta of 255 bytes", reader.meta());
}

fn tails(texts: &mut Texts) {
    let mut bytes = log(1, &[(1, vec![1; 40]), (2, vec![2; 40]), (3, vec![3; 40])]);
    bytes[16..16 + 128].fill(0);
    let disk = holding(&bytes);
    let mut here = texts.situation("book: lost numbers, other formats, a saved tail");
    let kept = options(&disk).salvage_keeping_numbers("/log", "/copy", |_, _| Ok(()));
    here.refused("salvage_keeping_numbers", kept);
    let disk = written();
    let wal = deedbook::wal::Options::new().storage(Arc::new(disk.clone()));
    here.refused("wal: open", wal.open("/log", Mode::Read));
    wal.open("/wal", Mode::Create).unwrap().append(b"x").unwrap();
    here.refused("open", options(&disk).open("/wal", Mode::Read));
    write_file(&disk, Path::new("/log/log.cut-80"), b"a tail");
    here.refused("append to", wal.open("/log/log.cut-80", Mode::Append));
}

struct Broken;

impl io::Read for Broken {
    fn read(&mut self, _block: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the cable is out"))
    }
}

pub fn payloads(texts: &mut Texts) {
    let book = options(&written()).open("/log", Mode::Append).unwrap();
    texts
        .situation("a payload that its reader cannot give")
        .refused("append_from", book.append_from(0, 10, &mut Broken))
        .refused("append_from", book.append_from(0, 10, &mut &b"four"[..]));
}
