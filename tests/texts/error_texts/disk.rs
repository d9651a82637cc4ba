//! What only a real disk, or another process, brings about.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, File, LockAttempt, Storage};
use deedbook::{LockTimeout, Mode, book};

use crate::error_texts::every::{at, events};
use crate::support::formats::book::BOOK;
use crate::support::formats::subject::{At, Format, MANUAL};
use crate::support::texts::Texts;

pub fn all(texts: &mut Texts) {
    let dir = tempfile::tempdir().unwrap();
    texts.replace(dir.path().to_str().unwrap(), "DIR");
    wrong_files(texts, &BOOK, dir.path());
    other_processes(texts, &BOOK);
    waited_for(texts);
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
    let tried = |texts: &mut Texts, what: &str, at: &At| {
        let mut here = texts.situation(format!("{name}: {what}"));
        here.tried("open", format.read(at));
        here.tried("append to", format.open(at, Mode::Append, MANUAL));
        here.tried("create", format.open(at, Mode::Create, MANUAL));
        here.tried("verify", format.verify(at, MANUAL));
    };
    let (at, first) = made("link");
    let moved = dir.join("link-moved");
    fs::rename(&first, &moved).unwrap();
    symlink(&moved, &first).unwrap();
    tried(texts, "a symbolic link in the place of its file", &at);
    let (at, _) = made("sidecar");
    let sidecar = format.sidecar(&at.path);
    let moved = dir.join("sidecar-moved");
    fs::rename(&sidecar, &moved).unwrap();
    symlink(&moved, &sidecar).unwrap();
    tried(texts, "a symbolic link in the place of .deedbook", &at);
    let file = dir.join("file");
    fs::write(&file, b"x").unwrap();
    let at = At::disk(format.path_in(&file.join("log")));
    tried(texts, "a file in the place of a directory above it", &at);
}

/// A disk on which another process holds all locks, and whose working directory is gone.
#[derive(Debug)]
struct Others {
    disk: Sim,
    holder: Option<u32>,
    lost: bool,
}

impl Storage for Others {
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        if self.lost { Err(io::ErrorKind::NotFound.into()) } else { Ok(path.into()) }
    }
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        self.disk.open(path, access)
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        self.disk.create_new(path, mode)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        self.disk.is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn lock(&self, _path: &Path, _sign: bool) -> io::Result<LockAttempt> {
        Ok(LockAttempt::Busy(self.holder))
    }
}

/// The end of a wait, and what ends it before.
fn waited_for(texts: &mut Texts) {
    let mut here = texts.situation("book: another process holds it, and is waited for");
    let timeout = LockTimeout::from(Duration::from_millis(2));
    let failing = timeout.clone().checking(|| Err(io::Error::other("enough")));
    for (what, lock_timeout) in [("to the end", timeout), ("until a check fails", failing)] {
        let storage = Arc::new(Others { disk: Sim::new(), holder: Some(4711), lost: false });
        let options = book::Options::new().lock_timeout(lock_timeout).storage(storage);
        here.refused(what, options.open("/log", Mode::Append));
    }
}

fn other_processes(texts: &mut Texts, format: &dyn Format) {
    let mut here = texts.situation(format!("{}: another process holds it", format.name()));
    for (what, holder) in [("whose number is known", Some(4711)), ("of which none is", None)] {
        let others = Others { disk: Sim::new(), holder, lost: false };
        here.refused(what, format.open(&at(format, Arc::new(others)), Mode::Append, MANUAL));
    }
    let mut here = texts.situation(format!("{}: the working directory is gone", format.name()));
    let others = Others { disk: Sim::new(), holder: None, lost: true };
    here.refused("append to", format.open(&at(format, Arc::new(others)), Mode::Append, MANUAL));
}
