//! Symbolic links and other objects in place of a log's files, and small file systems.

use crate::support::prelude::*;

/// Whether this process runs as root, so permissions stop nothing.
pub fn is_root() -> bool {
    // SAFETY: a system call without arguments.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid() == 0
    }
}

pub const KINDS: [&str; 6] = ["symlink", "dangling", "directory", "fifo", "device", "socket"];

/// Put an object of the kind in the place of `target`; a link points to `elsewhere`. `false`: not allowed here.
pub fn put_instead(kind: &str, target: &Path, elsewhere: &Path) -> bool {
    match target.is_dir() {
        true => fs::remove_dir_all(target).unwrap(),
        false => drop(fs::remove_file(target)),
    }
    put(kind, target, elsewhere)
}

/// Put a non-regular file at a free path. `false`: the system does not allow it here.
fn put(kind: &str, path: &Path, elsewhere: &Path) -> bool {
    let run = |program: &str, args: &[&str]| {
        Command::new(program).arg(path).args(args).output().is_ok_and(|done| done.status.success())
    };
    match kind {
        "symlink" => symlink(elsewhere, path).is_ok(),
        "dangling" => symlink(path.with_file_name("nowhere"), path).is_ok(),
        "directory" => fs::create_dir(path).is_ok(),
        "fifo" => run("mkfifo", &[]),
        "device" => run("mknod", &["c", "1", "5"]),
        "socket" => std::os::unix::net::UnixListener::bind(path).is_ok(),
        _ => unreachable!(),
    }
}

pub struct Mounted(pub PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// Mount a file system in memory. `false`: not allowed.
pub fn mount(options: &str, at: &Path) -> bool {
    let arguments = ["-t", "tmpfs", "-o", options, "deedbook-test"];
    let done = Command::new("mount").args(arguments).arg(at).output();
    done.is_ok_and(|done| done.status.success())
}
