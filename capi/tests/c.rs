//! `book.c`, `slots.c` and `threads.c`, compiled by the system's C compiler and linked with the static and the
//! shared library.

#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/support/common/skip.rs"]
mod skip;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The system libraries that a static Rust library needs.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];
#[cfg(not(target_os = "linux"))]
const SYSTEM: [&str; 1] = ["-lm"];

const STRICT: [&str; 6] = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread"];

/// The C compiler: the words of `CC`, as in `ccache cc`, or `cc`.
fn cc() -> Command {
    let named = std::env::var("CC").unwrap_or_default();
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

fn compiler() -> Option<Command> {
    let found = cc().arg("--version").output().is_ok_and(|done| done.status.success());
    if !found {
        skip::skipped(&format!("no C compiler ({:?})", cc()));
    }
    found.then(cc)
}

/// The newest library next to this test.
fn library(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    let there = places.iter().filter(|path| path.exists());
    let newest = there.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no {name} in {}", deps.display())).clone()
}

/// Arguments of the linker, and the variable for the place of a shared library.
struct Linked {
    with: Vec<OsString>,
    set: Option<(&'static str, PathBuf)>,
}

fn with_static() -> Linked {
    let mut with = vec![OsString::from(library("libdeedbook_capi.a"))];
    with.extend(SYSTEM.map(OsString::from));
    Linked { with, set: None }
}

fn with_shared() -> Linked {
    let library = library(&format!("libdeedbook_capi{}", std::env::consts::DLL_SUFFIX));
    let name = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let dir = library.parent().unwrap().to_path_buf();
    Linked { with: vec![library.into()], set: Some((name, dir)) }
}

/// Compile a program and run it in a new directory. Returns the directory and the program's standard error, or `None`
/// without a compiler.
fn run(name: &str, linked: Linked) -> Option<(tempfile::TempDir, String)> {
    let text = std::fs::read_to_string(Path::new("tests").join(name)).unwrap();
    run_text(&text, "", linked)
}

/// As `run`, for the text of a program, in a directory with the subdirectory `below`.
fn run_text(text: &str, below: &str, linked: Linked) -> Option<(tempfile::TempDir, String)> {
    let mut compile = compiler()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let (program, home) = (dir.path().join("program"), dir.path().join("home"));
    std::fs::create_dir_all(home.join(below)).unwrap();
    let source = dir.path().join("program.c");
    std::fs::write(&source, text).unwrap();
    compile.args(STRICT).arg("-I").arg(root.join("include")).arg("-I").arg(root.join("tests"));
    compile.arg(source).arg("-o").arg(&program).args(linked.with);
    let compiled = compile.output().unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{compile:?}: {said}");
    let mut started = Command::new(&program);
    started.current_dir(&home).arg(&home).arg(root.join("../tests/data/book")).envs(linked.set);
    let ran = started.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{}\n{said}", ran.status);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ok\n", "{said}");
    Some((dir, said))
}

fn run_book(linked: Linked) {
    let Some((dir, said)) = run("book.c", linked) else { return };
    let home = dir.path().join("home");
    // `u3_book_stat` printed this line about the saved log.
    assert!(said.contains("last event: 354"), "{said}");
    // Cutting a damaged log saves the removed bytes and notes the loss of acknowledged events.
    for log in ["cut", "flipped", "checksum", "header"] {
        let loss = home.join(log).join(".deedbook/loss");
        assert!(loss.exists(), "{}: {said}", loss.display());
    }
    let names = std::fs::read_dir(home.join("flipped")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let is_saved = |name: &OsString| name.to_string_lossy().starts_with("book.log.cut-");
    assert!(names.iter().any(is_saved), "{names:?}");
}

#[test]
fn the_program_does_with_the_static_library() {
    run_book(with_static());
}

// Promise: c.
#[test]
fn the_program_does_with_the_shared_library() {
    run_book(with_shared());
}

#[test]
fn the_static_library_serves_logs_of_veres_head() {
    run("slots.c", with_static());
}

// Promise: c.
#[test]
fn the_shared_library_serves_logs_of_veres_head() {
    run("slots.c", with_shared());
}

#[test]
fn the_static_library_serves_several_threads() {
    run("threads.c", with_static());
}

#[test]
fn the_shared_library_serves_several_threads() {
    run("threads.c", with_shared());
}

/// Vere calls the functions of `book.h` from this pool.
#[test]
fn both_libraries_serve_the_pool_of_libuv() {
    let Some(mut compile) = compiler() else { return };
    let header = compile.args(["-E", "-include", "uv.h", "-x", "c", "/dev/null"]).output().unwrap();
    if !header.status.success() {
        skip::skipped("libuv is not installed");
        return;
    }
    for mut linked in [with_static(), with_shared()] {
        linked.with.extend(["-DDEEDBOOK_UV", "-luv"].map(OsString::from));
        run("threads.c", linked);
    }
}

/// The example of `docs/c.md`, as it stands there.
#[test]
fn the_example_of_the_page_saves_its_event() {
    let page = include_str!("../../docs/c.md");
    let (_, after) = page.split_once("```c\n").unwrap();
    let (example, _) = after.split_once("```").unwrap();
    let (includes, statements): (Vec<_>, Vec<_>) =
        example.lines().partition(|line| line.starts_with('#'));
    let text = format!(
        "#include <stdio.h>\n{}\nint main(void) {{\n{}\nputs(\"ok\");\nreturn 0;\n}}\n",
        includes.join("\n"),
        statements.join("\n"),
    );
    let Some((dir, said)) = run_text(&text, "zod/.urb/log", with_static()) else { return };
    assert_eq!(said, "");
    let log = std::fs::read(dir.path().join("home/zod/.urb/log/0i0/book.log")).unwrap();
    let buffer = [1, 2, 3, 4, b'j', b'a', b'm', 0];
    assert!(log.windows(8).any(|bytes| bytes == buffer), "{} bytes", log.len());
}

/// Vere links this library in place of `book.c`, and allocates the walk on the stack.
#[test]
fn the_walk_has_the_size_of_the_reference() {
    let Some(mut compile) = compiler() else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("size.c");
    let reference = "struct { int fid_i; uint64_t nex_d, las_d, off_d; uint8_t liv_o; }";
    let text = format!(
        "#include \"book.h\"\n_Static_assert(sizeof(u3_book_walk) == sizeof({reference}), \"size\");\n"
    );
    std::fs::write(&source, text).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    compile.args(["-std=gnu11", "-fsyntax-only", "-I"]).arg(include).arg(&source);
    let compiled = compile.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// The library installs a handler of SIGBUS, which pointed into unmapped memory after `dlclose`.
#[test]
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn the_shared_library_stays_in_memory_after_dlclose() {
    use std::os::unix::ffi::OsStrExt;

    let path = library("libdeedbook_capi.so");
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: this workspace builds the library, and the calls get the library's name and handle.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!handle.is_null());
        assert_eq!(libc::dlclose(handle), 0);
        let again = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        assert!(!again.is_null(), "the library was unloaded");
    }
}
