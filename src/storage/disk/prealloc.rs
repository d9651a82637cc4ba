//! Space reserved in advance in a file, and short writes into it through a shared map.
//!
//! Reserved space is written with zeros at once. The page cache then holds large pages, and few
//! stores into them fault: stores take a quarter of the time of stores into space that is only
//! reserved. But a sync writes every page with a store, whole. So the first bytes after each sync
//! go by `pwrite`, and small commits stay small.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use super::mapped_writes::Window;

/// Writes up to this size go through the map, several times quicker than by `pwrite`, and survive a
/// crash of the process equally well. Longer writes are quicker by `pwrite`.
const STORED_BYTES_MAX: usize = 4 << 10;
/// So many bytes after a sync are not stored through the map.
const UNSTORED_BYTES: u64 = 64 << 10;
/// Write zeros in parts of this size, which no page of the cache exceeds. Each fault marks its
/// whole page as written, and for pages of 2 MiB marking takes three times as long.
const ZEROED_BYTES: u64 = 1 << 20;
static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; ZEROED_BYTES as usize]);

/// A handle's reserved space.
#[derive(Debug)]
pub struct Prealloc {
    /// Whether short writes may go through a map.
    mapped_writes: bool,
    /// The file has space for at least this many bytes.
    reserved: u64,
    /// Bytes written since the last sync, counted up to [`UNSTORED_BYTES`].
    unsynced: u64,
    window: Option<Window>,
}

impl Prealloc {
    /// Nothing is reserved yet.
    pub fn new(mapped_writes: bool) -> Self {
        Self { mapped_writes, reserved: 0, unsynced: 0, window: None }
    }

    /// Store `buf` at `offset` through the map; `false`: it is for `pwrite` to do.
    #[inline]
    pub fn write(&mut self, file: &File, buf: &[u8], offset: u64) -> io::Result<bool> {
        if self.unsynced < UNSTORED_BYTES {
            self.unsynced += buf.len() as u64;
            return Ok(false);
        }
        let inside = offset.checked_add(buf.len() as u64).is_some_and(|end| end <= self.reserved);
        if !inside || buf.len() > STORED_BYTES_MAX || !self.mapped_writes {
            return Ok(false);
        }
        Window::write(&mut self.window, file, buf, offset)
    }

    /// Have `len` bytes with space for them; `false` where the file system cannot.
    #[allow(unsafe_code)]
    pub fn reserve(&mut self, file: &File, old: u64, len: u64) -> io::Result<bool> {
        if len > old {
            let (from, count) = (old as libc::off64_t, (len - old) as libc::off64_t);
            // SAFETY: a system call on a descriptor that is open for as long as `file`.
            if unsafe { libc::fallocate64(file.as_raw_fd(), 0, from, count) } != 0 {
                let e = io::Error::last_os_error();
                return match e.raw_os_error() {
                    Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => Ok(false),
                    _ => Err(e),
                };
            }
        }
        let mut at = old;
        while at < len {
            let count = (len - at).min(ZEROED_BYTES);
            let part = ZEROS.get(..count as usize).ok_or(io::ErrorKind::InvalidInput)?;
            file.write_all_at(part, at)?;
            at += count;
        }
        self.reserved = len.max(old);
        Ok(true)
    }

    /// Before the file is cut: a store after its end is a bus error.
    pub fn forget(&mut self) {
        self.window = None;
        self.reserved = 0;
    }

    /// The next write comes after a sync.
    pub fn syncing(&mut self) {
        self.unsynced = 0;
    }

    /// Fail if another process cut the file to `len` bytes: stores through a map after the file's
    /// end go nowhere and report nothing.
    pub fn check(&self, len: u64) -> io::Result<()> {
        match len < self.reserved {
            false => Ok(()),
            true => Err(io::Error::other(format!(
                "another process cut the file to {len} bytes, it had {}",
                self.reserved
            ))),
        }
    }
}
