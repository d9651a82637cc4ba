//! The opener of files that other programs may have replaced.

use std::fs::OpenOptions;

use deedbook::storage::{SMALL_BYTES_MAX, is_directory, is_regular, open_regular, read_small};

use crate::support::prelude::*;

#[test]
fn the_opener_takes_regular_files_and_never_blocks() {
    let top = tempfile::tempdir().unwrap();
    let place = |name: &str| top.path().join(name);
    fs::write(place("file"), b"bytes").unwrap();
    fs::create_dir(place("directory")).unwrap();
    std::os::unix::fs::symlink(place("file"), place("link")).unwrap();
    std::os::unix::fs::symlink(place("directory"), place("to directory")).unwrap();
    assert!(Command::new("mkfifo").arg(place("fifo")).status().unwrap().success());
    for (name, what) in [
        ("directory", "a directory"),
        ("link", "a symbolic link"),
        ("to directory", "a symbolic link"),
        ("fifo", "a FIFO"),
    ] {
        let mut writing = OpenOptions::new();
        writing.read(true).write(true).create(true).truncate(false);
        for error in [
            open_regular(place(name), writing).map(drop).unwrap_err(),
            read_small(place(name)).map(drop).unwrap_err(),
            is_regular(place(name)).map(drop).unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.path()), (ErrorKind::NotALog, Some(&*place(name))));
            assert!(error.to_string().contains(what), "{error}");
        }
    }
    assert!(is_directory(place("directory")).unwrap());
    assert_eq!(is_directory(place("to directory")).unwrap_err().kind(), ErrorKind::NotALog);
    assert_eq!(is_directory(place("file")).unwrap_err().kind(), ErrorKind::NotALog);
    assert_eq!(read_small("/dev/null").unwrap_err().kind(), ErrorKind::NotALog);
    for none in [place("none"), place("file").join("below")] {
        assert!(!is_regular(&none).unwrap() && !is_directory(&none).unwrap());
    }
    assert_eq!(read_small(place("none")).unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(read_small(place("file")).unwrap(), b"bytes");
    let mut new = OpenOptions::new();
    new.write(true).create_new(true);
    open_regular(place("new"), new.clone()).unwrap().write_all(b"new").unwrap();
    assert_eq!(open_regular(place("new"), new).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn an_oversized_small_file_is_refused_unread() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("large");
    let file = fs::File::create(&path).unwrap();
    file.set_len(SMALL_BYTES_MAX).unwrap();
    assert_eq!(read_small(&path).unwrap().len() as u64, SMALL_BYTES_MAX);
    file.set_len(SMALL_BYTES_MAX + 1).unwrap();
    let error = read_small(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let sizes = format!("has {} bytes, at most {SMALL_BYTES_MAX} are", SMALL_BYTES_MAX + 1);
    assert!(error.to_string().contains(&sizes), "{error}");
}
