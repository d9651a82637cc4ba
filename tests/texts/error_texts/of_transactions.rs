//! Refusals of a commit of staged records, and obstacles to a begun commit.

use super::of_book::options;
use super::*;

const SIDECAR: &str = "/log/.deedbook";
const JOB: &str = "job";

fn opened(disk: &Sim) -> Result<Book> {
    options(disk).open("/log", Mode::Append)
}

fn transaction(app: &str, query: Option<&str>, version: u64) -> Transaction {
    let id = TransactionId { app: app.into(), query: query.map(Into::into), version };
    Transaction { job: JOB.into(), id: Some(id) }
}

fn staged(book: &Book, partition: u32, attempt: u64, first: Option<u64>) -> Result<Part> {
    let mut stage = book.stage(JOB, partition, attempt, first)?;
    stage.push(7, &[b'x'; 40])?;
    stage.push(7, &[b'y'; 40])?;
    stage.finish()
}

/// A book with two deeds, and a part of two more.
fn prepared() -> (Sim, Book, Part) {
    let disk = Sim::new();
    let book = options(&disk).open("/log", Mode::Create).unwrap();
    (1..3).for_each(|n| assert!(book.append(n, &[n as u8; 40]).is_ok()));
    book.sync().unwrap();
    let part = staged(&book, 0, 1, None).unwrap();
    (disk, book, part)
}

fn put(disk: &Sim, name: &str, lines: &str) {
    put_at(disk, &Path::new(SIDECAR).join(name), lines);
}

pub fn put_at(disk: &Sim, path: &Path, lines: &str) {
    let text = format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()));
    write_file(disk, path, text.as_bytes());
}

pub fn all(texts: &mut Texts) {
    names(texts);
    order(texts);
    parts(texts);
    begun(texts);
    records(texts);
    failing(texts);
}

fn names(texts: &mut Texts) {
    let (_, book, part) = prepared();
    let mut here = texts.situation("book: names of jobs, applications and queries");
    here.refused("stage for a job in a path", book.stage("a/b", 0, 0, None));
    for (what, of) in [
        ("an application of two words", transaction("a b", None, 0)),
        ("a query without a name", transaction("a", Some(""), 0)),
        ("a number beyond", transaction("a", None, u64::MAX)),
    ] {
        here.refused(
            &format!("commit of {what}"),
            book.commit_staged(&of, std::slice::from_ref(&part)),
        );
    }
}

fn order(texts: &mut Texts) {
    let (_, book, part) = prepared();
    let mut here = texts.situation("book: batches that are not the next");
    let mut refused = |what: &str, query: Option<&str>, version: u64| {
        let of = transaction("etl", query, version);
        here.refused(what, book.commit_staged(&of, std::slice::from_ref(&part)));
    };
    refused("commit of batch 2 to a log that has none", Some("q"), 2);
    book.commit_staged(&transaction("etl", Some("q"), 0), &[]).unwrap();
    refused("commit of batch 5 after batch 0", Some("q"), 5);
    refused("commit of another query", Some("r"), 1);
    refused("commit of no stream", None, 1);
    book.commit_staged(&transaction("etl", Some("q"), 1), &[]).unwrap();
    refused("commit of batch 0 after batch 1", Some("q"), 0);
}

fn parts(texts: &mut Texts) {
    let (disk, book, part) = prepared();
    let of = transaction("etl", None, 1);
    let mut here = texts.situation("book: parts that cannot be committed");
    let other = staged(&book, 0, 2, None).unwrap();
    here.refused("commit of two attempts", book.commit_staged(&of, &[part.clone(), other]));
    let second = Part { sequence: 1, ..part.clone() };
    here.refused("commit of a second part alone", book.commit_staged(&of, &[second]));
    let wrong = staged(&book, 1, 3, Some(9)).unwrap();
    here.refused("commit of another number", book.commit_staged(&of, &[part.clone(), wrong]));
    let path = Path::new(SIDECAR).join("staged/job.0.0.1");
    let bytes = read_file(&disk, &path);
    let mut tried = |what: &str, bytes: &[u8]| {
        write_file(&disk, &path, bytes);
        here.refused(what, book.commit_staged(&of, std::slice::from_ref(&part)));
    };
    tried("commit of a part that was cut", &bytes[..70]);
    for at in [16, 36] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        tried(&format!("commit of a part with another byte {at}"), &changed);
    }
}

fn begun(texts: &mut Texts) {
    let mut here = texts.situation("a commit that had begun and cannot be brought to its end");
    let of = |lines: &str| {
        let (disk, book, _) = prepared();
        drop(book);
        put(&disk, "transaction", lines);
        disk
    };
    let part = "part 0 0 1 128 2 00000000 -\n";
    let (first, before) = {
        let place = prepared().1.bookmark_at(3).unwrap();
        (place.first.unwrap(), place.before.unwrap())
    };
    for (what, lines) in [
        ("of a later version", "job job\nnew thing\n".to_string()),
        ("with a place of a later version", format!("job job\nplace top\n{part}")),
        (
            "whose part is gone",
            "job job\nplace 144 - - 1:1:1\npart 0 0 7 128 2 00000000 -\n".into(),
        ),
        ("whose part changed", format!("job job\nplace 144 {first} {before} 1:1:1\n{part}")),
    ] {
        here.refused(&format!("append to a book {what}"), opened(&of(&lines)));
    }
    let disk = of("job job\n");
    write_file(&disk, &Path::new(SIDECAR).join("transaction"), b"job job\ncrc 00000000\n");
    here.refused("append to a book with a damaged intent", opened(&disk));
    let disk = Sim::new();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let layout = Some(wal::Layout::Segmented { segment_bytes: 64 });
    let options = wal::Options::new().storage(storage).layout(layout);
    let log = options.open("/log", Mode::Create).unwrap();
    let lsns: Vec<_> = (0..9).map(|n| log.append(&[n; 40]).unwrap()).collect();
    log.sync().unwrap();
    log.truncate_before(lsns[6]).unwrap();
    log.close().unwrap();
    put(&disk, "transaction", &format!("job job\nplace 48 - - 1:1:1\n{part}"));
    let opened = options.open("/log", Mode::Append);
    here.refused("append to a wal that begins after its place", opened);
}

fn records(texts: &mut Texts) {
    let mut here = texts.situation("book: the record of transactions cannot be read");
    let (disk, book, _) = prepared();
    put(&disk, "transactions", "etl\n");
    here.refused("transactions, of a later version", book.transactions());
    write_file(&disk, &Path::new(SIDECAR).join("transactions"), b"etl 1 -\n");
    here.refused("transactions, damaged", book.transactions());
}

fn failing(texts: &mut Texts) {
    let mut here = texts.situation("book: a call of the disk fails before a commit");
    for at in 1.. {
        let (disk, book, _) = prepared();
        disk.inject(Fault::once(at, What::Error(std::io::ErrorKind::Other)));
        let _ = book.stage("other", 0, 3, None).and_then(|stage| stage.finish());
        here.tried("discard", book.discard_staged("other"));
        if disk.fired() == 0 {
            break;
        }
    }
}
