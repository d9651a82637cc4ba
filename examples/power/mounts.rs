//! File systems in files, mounted for a while.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Run a command. Returns the complaint of a failed command.
pub fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{program}: {}",
        complaint.lines().find(|line| !line.is_empty()).unwrap_or("failed")
    ))
}

/// The directory for images and mount points: in memory if large enough, because the tests cut only
/// the file system on top.
pub fn scratch() -> tempfile::TempDir {
    let room = |dir: &str| {
        let output = Command::new("df").args(["--output=avail", "-k", dir]).output().ok()?;
        String::from_utf8_lossy(&output.stdout).lines().last()?.trim().parse::<u64>().ok()
    };
    match room("/dev/shm") {
        Some(room) if room > 512 << 10 => tempfile::tempdir_in("/dev/shm").unwrap(),
        _ => tempfile::tempdir().unwrap(),
    }
}

/// A separate file system, unmounted on drop.
pub struct FileSystem {
    kind: &'static str,
    image: PathBuf,
    pub at: PathBuf,
    mounted: bool,
}

impl FileSystem {
    /// Make a file system of `mib` MiB. Returns the reason for a failure.
    pub fn make(kind: &'static str, scratch: &Path, mib: u64) -> Result<Self, String> {
        let (image, at) = (scratch.join(format!("{kind}.img")), scratch.join(kind));
        std::fs::create_dir_all(&at).map_err(|e| e.to_string())?;
        let mut made = Self { kind, image, at, mounted: false };
        if kind == "tmpfs" {
            let (size, at) = (format!("size={mib}m"), made.at.to_str().unwrap());
            run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", at])?;
            made.mounted = true;
            return Ok(made);
        }
        let file = std::fs::File::create(&made.image).map_err(|e| e.to_string())?;
        file.set_len(mib << 20).map_err(|e| e.to_string())?;
        let image = made.image.to_str().unwrap();
        match kind {
            "ext4" => run("mkfs.ext4", &["-q", "-F", image])?,
            _ => run("mkfs.xfs", &["-q", "-f", image])?,
        }
        made.mount()?;
        Ok(made)
    }

    pub fn mount(&mut self) -> Result<(), String> {
        let (image, at) = (self.image.to_str().unwrap(), self.at.to_str().unwrap());
        run("mount", &["-t", self.kind, "-o", "loop", image, at])?;
        self.mounted = true;
        Ok(())
    }

    pub fn remount(&self, how: &str) -> Result<(), String> {
        run("mount", &["-o", &format!("remount,{how}"), self.at.to_str().unwrap()])
    }

    /// Pull the plug: no more data reaches the device. With `log`, the file system first writes the
    /// journal's metadata from memory.
    pub fn cut(&self, log: bool) -> Result<(), String> {
        let command = if log { "shutdown -f" } else { "shutdown" };
        run("xfs_io", &["-x", "-c", command, self.at.to_str().unwrap()])
    }

    pub fn unmount(&mut self) -> Result<(), String> {
        run("umount", &[self.at.to_str().unwrap()])?;
        self.mounted = false;
        Ok(())
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        if self.mounted {
            let _ = run("umount", &["-l", self.at.to_str().unwrap()]);
        }
    }
}
