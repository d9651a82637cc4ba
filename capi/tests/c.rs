//! `book.c`, compiled by the system's C compiler and linked with the static and the shared library.

#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a static library of Rust needs of the system.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];
#[cfg(not(target_os = "linux"))]
const SYSTEM: [&str; 1] = ["-lm"];

const STRICT: [&str; 5] = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1"];

fn compiler() -> Option<OsString> {
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let found = Command::new(&cc).arg("--version").output().is_ok();
    if !found {
        eprintln!("no C compiler ({}): nothing was tested", cc.display());
    }
    found.then_some(cc)
}

/// The library that cargo built with this test.
fn library(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    let there = places.iter().filter(|path| path.exists());
    let newest = there.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no {name} in {}", deps.display())).clone()
}

/// Compile `book.c`, run it in a directory of its own; returns what it printed.
fn run(with: &[OsString], set: Option<(&str, &Path)>) -> String {
    let Some(cc) = compiler() else { return "ok\n".into() };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let (program, home) = (dir.path().join("book"), dir.path().join("home"));
    std::fs::create_dir(&home).unwrap();
    let mut compile = Command::new(cc);
    compile.args(STRICT).arg("-I").arg(root.join("include"));
    compile.arg(root.join("tests/book.c")).arg("-o").arg(&program).args(with);
    let compiled = compile.output().unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{compile:?}: {said}");
    let mut book = Command::new(&program);
    book.arg(&home).envs(set);
    let ran = book.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}\n{said}", ran.status);
    // What `u3_book_stat` says of the log that was saved.
    assert!(said.contains("last event: 301"), "{said}");
    // What was cut off damaged logs is kept, and what was acknowledged is noted.
    for log in ["cut", "flipped", "checksum", "header"] {
        let loss = home.join(log).join(".deedbook/loss");
        assert!(loss.exists(), "{}: {said}", loss.display());
    }
    let names = std::fs::read_dir(home.join("flipped")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let is_saved = |name: &OsString| name.to_string_lossy().starts_with("book.log.cut-");
    assert!(names.iter().any(is_saved), "{names:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn the_program_does_with_the_static_library() {
    let mut with = vec![OsString::from(library("libdeedbook_capi.a"))];
    with.extend(SYSTEM.map(OsString::from));
    assert_eq!(run(&with, None), "ok\n");
}

#[test]
fn the_program_does_with_the_shared_library() {
    let suffix = std::env::consts::DLL_SUFFIX;
    let library = library(&format!("libdeedbook_capi{suffix}"));
    let name = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let dir = library.parent().unwrap().to_path_buf();
    assert_eq!(run(&[library.into()], Some((name, &dir))), "ok\n");
}

/// Vere links it in place of its own `book.c`, and has the walk on its stack.
#[test]
fn the_walk_is_as_large_as_that_of_the_reference() {
    let Some(cc) = compiler() else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("size.c");
    let reference = "struct { int fid_i; uint64_t nex_d, las_d, off_d; uint8_t liv_o; }";
    let text = format!(
        "#include \"book.h\"\n_Static_assert(sizeof(u3_book_walk) == sizeof({reference}), \"size\");\n"
    );
    std::fs::write(&source, text).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let compiled = Command::new(cc)
        .args(["-std=gnu11", "-fsyntax-only", "-I"])
        .arg(include)
        .arg(&source)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}
