//! Store into a file through a shared memory map, and survive a cut of the file under the map.
//!
//! Why: a small append by `pwrite` costs several times as much as a store into a map
//! (`benches/append.rs`). Both leave the bytes in the page cache, where the bytes survive a crash
//! of the process. The price: if another process cuts the file, a store after the file's end raises
//! SIGBUS, which `bus_error.rs` turns into an error.

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

use super::bus_error::{Guard, Use};

/// Every window has this size, even if the file ends earlier. 8 MiB measured best: larger windows
/// cost page tables, smaller windows cost calls.
const WINDOW_BYTES: usize = 8 << 20;
/// On every page size of Linux, a map may begin at a multiple of this.
const ALIGNMENT: u64 = 64 << 10;

/// A mapped stretch of a file with allocated space.
#[derive(Debug)]
pub struct Window {
    // Dropped before the map.
    guard: Guard,
    map: MmapRaw,
    base: u64,
}

impl Window {
    /// Store `buf` at `offset`, mapping another part of the file when needed. All of `buf` must lie
    /// in space that the file has. `false`: there is no map for it, nothing was stored.
    pub fn write(
        window: &mut Option<Self>,
        file: &File,
        buf: &[u8],
        offset: u64,
    ) -> io::Result<bool> {
        if !window.as_ref().is_some_and(|window| window.covers(offset, buf.len())) {
            *window = None;
            *window = Self::new(file, offset);
        }
        match window {
            Some(window) if window.covers(offset, buf.len()) => window.store(buf, offset),
            _ => Ok(false),
        }
    }

    fn covers(&self, offset: u64, len: usize) -> bool {
        offset >= self.base && offset + len as u64 <= self.base + WINDOW_BYTES as u64
    }

    fn new(file: &File, offset: u64) -> Option<Self> {
        let base = offset / ALIGNMENT * ALIGNMENT;
        let map = MmapOptions::new()
            .offset(seeded!(base, "map-offset-of-32-bits" => u64::from(base as u32)))
            .len(WINDOW_BYTES)
            .map_raw(file)
            .ok()?;
        let guard = Guard::new(map.as_ptr() as usize, WINDOW_BYTES, Use::Write)?;
        Some(Self { guard, map, base })
    }

    #[allow(unsafe_code)]
    fn store(&mut self, buf: &[u8], offset: u64) -> io::Result<bool> {
        // SAFETY: `covers` held, so the target lies inside the map, which lives as long as `self`;
        // there are no references into the map. The handler repairs a fault inside the map.
        unsafe {
            let target = self.map.as_mut_ptr().add((offset - self.base) as usize);
            std::ptr::copy_nonoverlapping(buf.as_ptr(), target, buf.len());
        }
        if self.guard.faulted() {
            return Err(io::Error::other("the file was cut, or its disk failed, under the map"));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    fn sparse_file(len: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file
    }

    fn read_at<const N: usize>(file: &File, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    /// If another process cuts the file, the writer fails and the process continues.
    // Promise: changed-under.
    #[test]
    fn a_foreign_truncation_fails_a_mapped_store() {
        let file = sparse_file(256 << 10);
        let mut window = None;
        assert!(Window::write(&mut window, &file, b"kept", 0).unwrap());
        file.set_len(0).unwrap();
        let error = Window::write(&mut window, &file, b"lost", 128 << 10).unwrap_err();
        assert!(error.to_string().contains("cut"), "{error}");
        drop(window);
        file.set_len(256 << 10).unwrap();
        let mut window = None;
        assert!(Window::write(&mut window, &file, b"next", 0).unwrap());
    }

    #[test]
    fn windows_move_with_the_offset() {
        let len = 3 * WINDOW_BYTES as u64;
        let file = sparse_file(len);
        let mut window = None;
        for offset in [0, WINDOW_BYTES as u64 - 2, len - 4, 5] {
            assert!(Window::write(&mut window, &file, b"deed", offset).unwrap());
            assert_eq!(&read_at(&file, offset), b"deed");
        }
    }

    /// With the offset of a map in 32 bits, small appends beyond 4 GiB overwrote the records 4 GiB
    /// earlier, and became zeros themselves.
    #[test]
    fn a_store_beyond_4_gib_hits_its_offset() {
        let far = (4 << 30) + 100;
        let file = sparse_file(far + WINDOW_BYTES as u64);
        let mut window = None;
        for offset in [100, far] {
            assert!(Window::write(&mut window, &file, &offset.to_le_bytes(), offset).unwrap());
        }
        for offset in [100, far] {
            assert_eq!(u64::from_le_bytes(read_at(&file, offset)), offset);
        }
    }

    /// A window stayed registered after its unmapping. The next map at the same address was a file
    /// of the program, which another process cut. The handler took the bus error for the window's
    /// and put zeros in place of the program's file.
    #[test]
    fn a_fault_outside_any_window_is_passed_on() {
        const CHILD: &str = "DEEDBOOK_TEST_FAULT_WHERE_A_WINDOW_WAS";
        if std::env::var_os(CHILD).is_some() {
            touch_a_cut_file_where_a_window_was();
            return;
        }
        let name = "storage::disk::mapped_writes::tests::a_fault_outside_any_window_is_passed_on";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let done = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let printed = String::from_utf8_lossy(&done.stdout);
        assert!(printed.contains("cut"), "{printed}");
        assert_eq!(done.status.signal(), Some(libc::SIGBUS), "{printed}");
    }

    #[allow(unsafe_code, clippy::print_stdout)]
    fn touch_a_cut_file_where_a_window_was() {
        use std::os::fd::AsRawFd;

        let file = sparse_file(WINDOW_BYTES as u64);
        let mut window = None;
        assert!(Window::write(&mut window, &file, b"deed", 0).unwrap());
        let address = window.take().unwrap().map.as_mut_ptr();
        let foreign = sparse_file(WINDOW_BYTES as u64);
        // SAFETY: maps a file where nothing is mapped, or fails; the store goes into the new map.
        unsafe {
            let map = libc::mmap(
                address.cast(),
                WINDOW_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_FIXED_NOREPLACE | libc::MAP_SHARED,
                foreign.as_raw_fd(),
                0,
            );
            assert_eq!(map.cast(), address, "{}", io::Error::last_os_error());
            foreign.set_len(0).unwrap();
            println!("cut");
            address.write_volatile(1);
        }
    }
}
