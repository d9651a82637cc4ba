//! Things in place of files, locks, and places where nothing can be written.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::support::common::places::{KINDS, Mounted, is_root, mount, put_instead};
use crate::support::common::quickly;
use crate::support::skip::skipped;

fn make(format: &dyn Format, dir: &Path) -> At {
    fs::create_dir(dir).unwrap();
    let at = At::disk(format.path_in(dir));
    format.create(&at, &plain(3, 30)).close().unwrap();
    at
}

/// For each format and kind: a log of three records, with this kind of thing in place of one of its files.
fn with_each(
    replaced: impl Fn(&dyn Format, &At) -> PathBuf,
    judge: impl Fn(&'static str, &'static dyn Format, At),
) {
    let mut not_made = Vec::new();
    for (format, kind) in LARGE.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let dir = tempfile::tempdir().unwrap();
        let log = make(format, &dir.path().join("log"));
        let other = make(format, &dir.path().join("other"));
        let target = replaced(format, &log);
        if !put_instead(kind, &target, &replaced(format, &other)) {
            not_made.push(kind);
            continue;
        }
        let elsewhere = dir.path().join("other");
        let before = snapshot(&Disk, &elsewhere);
        judge(kind, format, log);
        assert_eq!(
            snapshot(&Disk, &elsewhere),
            before,
            "{kind}: something was written through the link"
        );
    }
    if !not_made.is_empty() {
        skipped(&format!("could not make {not_made:?} here"));
    }
}

// Promise: odd-files.
#[test]
fn irregular_files_are_refused_as_logs() {
    with_each(
        |format, at| format.first_file(&at.path),
        |kind, format, at| {
            // A directory in place of a single file is a missing log of segments.
            if format.segment_bytes().is_none() && format.name() != "book" && kind == "directory" {
                return;
            }
            let sidecar = format.sidecar(&at.path);
            fs::remove_dir_all(&sidecar).unwrap();
            let rescued = at.path.with_file_name("rescued");
            let results = quickly(move || {
                [
                    format.read(&at).map(drop),
                    format.open(&at, Mode::Append, MANUAL).map(drop),
                    format.verify(&at, MANUAL).map(drop),
                    format.repair(&at, MANUAL).map(drop),
                    format.salvage(&at, &rescued, MANUAL).map(drop),
                ]
            });
            for result in results {
                let error = refused(result, ErrorKind::NotALog);
                assert!(error.path().is_some(), "{kind}: {error}");
            }
        },
    );
}

// Promise: odd-files.
#[test]
fn irregular_files_are_refused_as_locks() {
    with_each(
        |format, at| format.sidecar(&at.path).join("lock"),
        |kind, format, at| {
            quickly(move || {
                let error = format.open(&at, Mode::Append, MANUAL).err().expect(kind);
                assert!(error.to_string().contains("lock"), "{kind}: {error}");
                assert_eq!(format.read(&at).unwrap().len().unwrap(), 3);
            });
        },
    );
}

/// Mark and index are advisory: the log opens without them, or an error is raised, but nothing
/// follows a link. Readers and writers refuse a linked sidecar.
#[test]
fn irregular_files_as_mark_or_index_are_harmless() {
    for name in ["mark", "index", ""] {
        with_each(
            |format, at| {
                let sidecar = format.sidecar(&at.path);
                if name.is_empty() { sidecar } else { sidecar.join(name) }
            },
            |kind, format, at| {
                quickly(move || {
                    let read = format.read(&at);
                    if name.is_empty() && read.is_err() {
                        let error = refused(read, ErrorKind::NotALog).to_string();
                        assert!(error.contains("symbolic link"), "{kind}: {error}");
                        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::NotALog);
                        return;
                    }
                    let len = read.unwrap().len().unwrap();
                    assert_eq!(len, 3, "{}, {name}: {kind}", format.name());
                    match format.open(&at, Mode::Append, MANUAL) {
                        Ok(log) => assert!(log.append(0, &vec![7; 200_000]).is_ok(), "{kind}"),
                        Err(error) => {
                            let error = error.to_string();
                            let names_it = error.contains(".deedbook") || error.contains("mark");
                            assert!(names_it, "{error}");
                        }
                    }
                    assert!(format.verify(&at, MANUAL).unwrap().ok());
                });
            },
        );
    }
}

fn holder(format: &dyn Format, path: &Path) -> Option<u32> {
    refused(format.open(&At::disk(path), Mode::Append, MANUAL), ErrorKind::Locked).holder()
}

// Promise: second-writer.
#[test]
fn a_second_writer_is_refused_by_any_path() {
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let (real, linked) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &linked).unwrap();
        let at = At::disk(format.path_in(&real));
        let log = format.create(&at, &[]);
        let dotted = format.path_in(&dir.path().join("a/../a"));
        for other in [&at.path, &format.path_in(&linked), &dotted] {
            let holder = holder(format, other);
            assert_eq!(holder, Some(std::process::id()), "{}", other.display());
        }
        refused(format.repair(&at, MANUAL), ErrorKind::Locked);
        refused(format.open(&at, Mode::Create, MANUAL), ErrorKind::AlreadyExists);
        assert_eq!(format.read(&at).unwrap().len().unwrap(), 0);
        log.append(1, b"still here").unwrap();
        log.close().unwrap();
        for other in [format.path_in(&linked), at.path.clone()] {
            let log = format.open(&At::disk(other), Mode::Append, MANUAL).unwrap();
            log.append(2, b"next").unwrap();
        }
        assert_eq!(format.read(&at).unwrap().len().unwrap(), 3);
    }
}

// Promise: second-writer.
#[test]
fn a_removed_sidecar_lets_no_second_writer_in() {
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let at = At::disk(format.path_in(dir.path()));
        let log = format.create(&at, &plain(1, 3));
        fs::remove_dir_all(format.sidecar(&at.path)).unwrap();
        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Locked);
        log.append(1, b"y").unwrap();
        log.close().unwrap();
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        log.append(1, b"z").unwrap();
        assert_eq!(log.len().unwrap(), 3, "{}", format.name());
    }
}

fn files_in(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = snapshot(&Disk, dir);
    files.retain(|path, _| path.parent() == Some(dir));
    files
}

/// The directory of a log was moved under its writer, and another log got its name. The writer created the next segment
/// in the other log. Appends must go into the writer's own log, or be refused.
#[test]
fn writers_in_a_moved_directory_change_nothing_else() {
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join("log");
        fs::create_dir(&here).unwrap();
        let at = At::disk(format.path_in(&here));
        let writer = format.create(&at, &plain(3, 30));
        writer.sync().unwrap();
        fs::rename(&here, dir.path().join("moved")).unwrap();
        make(format, &here);
        let before = files_in(&here);
        for i in 0..20 {
            if writer.append(i, &[7; 30]).is_err() {
                break;
            }
        }
        let _ = writer.sync();
        drop(writer);
        assert!(files_in(&here) == before, "{}: changed the other log", format.name());
        let kept = format.read(&At::disk(format.path_in(&dir.path().join("moved")))).unwrap();
        let kept = kept.forward(None, None, false);
        assert!(kept.error.is_none() && kept.records.len() >= 3, "{}: {kept:?}", format.name());
    }
}

// Promise: second-writer.
#[test]
fn the_lock_names_its_process_until_it_dies() {
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let at = At::disk(format.path_in(dir.path()));
        let mut writer =
            in_role("log::child", &format!("hold:{}", format.name()), &at.path).spawn().unwrap();
        let mut lines = BufReader::new(writer.stderr.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "held");
        assert_eq!(holder(format, &at.path), Some(writer.id()));
        let error = format.open(&at, Mode::Append, MANUAL).err().unwrap().to_string();
        assert!(error.contains(&format!("process {}", writer.id())), "{error}");
        assert_eq!(format.read(&at).unwrap().len().unwrap(), 1);
        fs::remove_dir_all(format.sidecar(&at.path)).unwrap();
        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Locked);
        writer.kill().unwrap();
        writer.wait().unwrap();
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        log.append(1, b"next").unwrap();
        assert_eq!(log.len().unwrap(), 2);
    }
}

pub fn hold(format: &dyn Format, at: &At) {
    let log = format.open(at, Mode::Append, MANUAL).unwrap();
    log.append(1, b"mine").unwrap();
    eprintln!("held");
    // The parent kills this process; otherwise the sleep ends first.
    std::thread::sleep(Duration::from_secs(30));
}

fn judge_read_only(format: &dyn Format, at: &At, dir: &Path) {
    let before = snapshot(&Disk, dir);
    let walk = format.read(at).unwrap().forward(None, None, false);
    assert!(walk.error.is_none() && walk.records.len() == 3, "{:?}", walk.error);
    assert!(format.verify(at, MANUAL).unwrap().ok());
    for mode in [Mode::Append, Mode::Create] {
        let error = format.open(at, mode, MANUAL).err().unwrap();
        assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::AlreadyExists), "{error:?}");
    }
    format.repair(at, MANUAL).unwrap_err();
    assert!(format.open(&At::disk(dir.join("new")), Mode::Create, MANUAL).is_err());
    assert_eq!(snapshot(&Disk, dir), before);
}

// Promise: read-only-media.
#[test]
fn a_read_only_directory_refuses_only_writers() {
    if is_root() {
        skipped("root may write anywhere; see the read-only file system");
        return;
    }
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let at = make(format, &path);
        let mut all = vec![path.clone(), path.join(".deedbook")];
        all.extend(Some(format.sidecar(&at.path)).filter(|sidecar| *sidecar != all[1]));
        for dir in all.iter().rev() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
                }
            }
            fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).unwrap();
        }
        judge_read_only(format, &at, &path);
        for dir in &all {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

// Promise: read-only-media.
#[test]
fn a_read_only_file_system_refuses_only_writers() {
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        if !is_root() || !mount("size=4m", dir.path()) {
            skipped("needs root and mount");
            return;
        }
        let _mounted = Mounted(dir.path().into());
        let path = dir.path().join("log");
        let at = make(format, &path);
        if !mount("remount,ro", dir.path()) {
            skipped("cannot remount");
            return;
        }
        judge_read_only(format, &at, &path);
    }
}
