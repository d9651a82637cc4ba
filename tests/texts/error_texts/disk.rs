//! Errors that only a real disk or another process causes.

use std::os::unix::net::UnixListener;

use deedbook::storage::{SMALL_BYTES_MAX, read_small};

use super::*;

pub fn all(texts: &mut Texts) {
    let dir = tempfile::tempdir().unwrap();
    texts.replace(dir.path().to_str().unwrap(), "DIR");
    wrong_files(texts, &BOOK, dir.path());
    no_regular_files(texts, dir.path());
    other_processes(texts, dir.path());
}

fn wrong_files(texts: &mut Texts, format: &dyn Format, dir: &Path) {
    let name = format.name();
    let made = |what: &str| {
        let at = At::disk(format.path_in(&dir.join(what)));
        fs::create_dir_all(at.path.parent().unwrap()).unwrap();
        format.create(&at, &events()).close().unwrap();
        let first = format.first_file(&at.path);
        (at, first)
    };
    let mut here = texts.situation(format!("{name}: wrong files in its place"));
    let mut tried = |at: &At| {
        here.tried("open", format.read(at));
        here.tried("append to", format.open(at, Mode::Append, MANUAL));
    };
    let (at, first) = made("link");
    let moved = dir.join("link-moved");
    fs::rename(&first, &moved).unwrap();
    symlink(&moved, &first).unwrap();
    tried(&at);
    let (at, _) = made("sidecar");
    let sidecar = format.sidecar(&at.path);
    let moved = dir.join("sidecar-moved");
    fs::rename(&sidecar, &moved).unwrap();
    symlink(&moved, &sidecar).unwrap();
    tried(&at);
    let file = dir.join("file");
    fs::write(&file, b"x").unwrap();
    let at = At::disk(format.path_in(&file.join("log")));
    tried(&at);
}

/// Files that the opener of small files refuses.
fn no_regular_files(texts: &mut Texts, dir: &Path) {
    let (fifo, socket, large) = (dir.join("fifo"), dir.join("socket"), dir.join("large"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::File::create(&large).unwrap().set_len(SMALL_BYTES_MAX + 1).unwrap();
    let mut here = texts.situation("a small file");
    for path in [&fifo, &socket, &large, Path::new("/dev/null"), &dir.join("absent")] {
        here.refused("read", read_small(path));
    }
}

fn other_processes(texts: &mut Texts, dir: &Path) {
    let path = dir.join("held");
    Book::create(&path).unwrap().close().unwrap();
    let lock = path.join(".deedbook/lock");
    let held = fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let mut here = texts.situation("book: another process holds it, and is waited for");
    for (what, holder) in [("of which no number is known", ""), ("whose number is known", "4711\n")]
    {
        fs::write(&lock, holder).unwrap();
        here.refused(what, Book::append_to(&path));
    }
    // The end of a wait, and an interruption before.
    let timeout = LockTimeout::from(Duration::from_millis(2));
    let failing = timeout.clone().checking(|| Err(io::Error::other("enough")));
    for (what, lock_timeout) in [("to the end", timeout), ("until a check fails", failing)] {
        let options = book::Options::new().lock_timeout(lock_timeout);
        here.refused(what, options.open(&path, Mode::Append));
    }
    let (before, gone) = (std::env::current_dir().unwrap(), dir.join("gone"));
    fs::create_dir(&gone).unwrap();
    std::env::set_current_dir(&gone).unwrap();
    fs::remove_dir(&gone).unwrap();
    let opened = Book::append_to("log");
    std::env::set_current_dir(before).unwrap();
    here.refused("append to, with the working directory gone", opened);
}
