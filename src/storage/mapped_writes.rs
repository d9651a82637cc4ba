//! Stores into a file through a shared memory map, without dying when the file is cut under it.
//!
//! Why: one small append by `pwrite` costs several times what one by a map costs
//! (`benches/append.rs`), and both leave the bytes in the page cache, where they survive the death
//! of the process. The price: where another process cut the file, a store after its end raises
//! SIGBUS. A handler turns that into an error: it puts anonymous memory under the faulting window,
//! notes it, and lets the store finish; the writer reads the note and fails.

use std::fs::File;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

use memmap2::{MmapOptions, MmapRaw};

/// Every window has this size, also where the file ends before it. 8 MiB at a time measured best:
/// more costs page tables, less costs calls.
const WINDOW_BYTES: usize = 8 << 20;
const WINDOWS_MAX: usize = 256;
/// Offsets of maps are multiples of this on every page size Linux has.
const ALIGNMENT: u64 = 64 << 10;

/// What the signal handler knows of a window.
struct Slot {
    taken: AtomicBool,
    /// The window's address, 0 while there is none. One word says all: a start and an end, read one
    /// after the other, could belong to two windows and span what lies between them.
    start: AtomicUsize,
    faulted: AtomicBool,
}

static SLOTS: [Slot; WINDOWS_MAX] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        faulted: AtomicBool::new(false),
    }
}; WINDOWS_MAX];

/// A mapped stretch of a file that has its space allocated.
#[derive(Debug)]
pub struct Window {
    map: MmapRaw,
    base: u64,
    slot: &'static Slot,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({:x})", self.start.load(Ordering::Relaxed))
    }
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
        install_handler();
        let base = offset / ALIGNMENT * ALIGNMENT;
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel))?;
        let Ok(map) = MmapOptions::new().offset(base).len(WINDOW_BYTES).map_raw(file) else {
            slot.taken.store(false, Ordering::Release);
            return None;
        };
        slot.faulted.store(false, Ordering::Relaxed);
        slot.start.store(map.as_ptr() as usize, Ordering::Release);
        Some(Self { map, base, slot })
    }

    #[allow(unsafe_code)]
    fn store(&mut self, buf: &[u8], offset: u64) -> io::Result<bool> {
        // SAFETY: `covers` held, so the target lies inside the map, which lives as long as `self`;
        // there are no references into the map. A fault inside it is mended by the handler.
        unsafe {
            let target = self.map.as_mut_ptr().add((offset - self.base) as usize);
            std::ptr::copy_nonoverlapping(buf.as_ptr(), target, buf.len());
        }
        // The note is written by this very thread, in the middle of the copy: it must be read after
        // the last store, and only the compiler could exchange the two.
        compiler_fence(Ordering::SeqCst);
        if self.slot.faulted.load(Ordering::Relaxed) {
            return Err(io::Error::other("the file was cut, or its disk failed, under the map"));
        }
        Ok(true)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // Before the map itself goes: the handler must not mend an address that was reused.
        self.slot.start.store(0, Ordering::Release);
        self.slot.taken.store(false, Ordering::Release);
    }
}

static INSTALL: Once = Once::new();
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

#[allow(unsafe_code)]
fn install_handler() {
    INSTALL.call_once(|| {
        // SAFETY: both structures are valid; the handler below does only what a handler may.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut previous) != 0 {
                return;
            }
            PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// Mend a fault inside one of our windows; pass any other to the handler that was there before.
#[allow(unsafe_code)]
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // The code that was interrupted may be about to read it.
    // SAFETY: the address of this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid `info` to a SA_SIGINFO handler.
    let address = unsafe { (*info).si_addr() } as usize;
    if !mend(address) {
        pass_on(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Put anonymous memory in place of the window around `address`; `false`: there is none, or it
/// cannot be replaced.
#[allow(unsafe_code)]
fn mend(address: usize) -> bool {
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        if start == 0 || !(start..start + WINDOW_BYTES).contains(&address) {
            continue;
        }
        // SAFETY: replaces pages that a live `Window` owns, at the same place and size: a slot names
        // a window only while its map exists, so an address that is mapped otherwise is in none of
        // them. mmap is one system call and takes no lock.
        let mended = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                WINDOW_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mended != libc::MAP_FAILED {
            slot.faulted.store(true, Ordering::Relaxed);
            return true;
        }
    }
    false
}

#[allow(unsafe_code)]
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `PREVIOUS` is null or leaked on purpose, so valid for ever; a handler found in it has
    // the type that its flags say.
    unsafe {
        let previous = PREVIOUS.load(Ordering::Acquire);
        let handler = if previous.is_null() { libc::SIG_DFL } else { (*previous).sa_sigaction };
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // The fault happens again on return, and then ends the process as it would have.
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &default, std::ptr::null_mut());
        } else if (*previous).sa_flags & libc::SA_SIGINFO != 0 {
            type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Informed>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
        }
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

    /// A writer whose file another process cuts fails; the process goes on.
    #[test]
    fn a_store_after_a_foreign_truncation_is_an_error_not_a_crash() {
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
    /// before them, and were themselves zeros.
    #[test]
    fn a_store_beyond_4_gib_goes_where_it_should() {
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

    /// The handler ran between a failed call and the question for its reason: a call made by the
    /// handler, or by that of the program after it, must not change the answer.
    #[test]
    #[allow(unsafe_code)]
    fn a_bus_error_elsewhere_is_passed_on_and_leaves_errno_alone() {
        static PASSED_ON: AtomicBool = AtomicBool::new(false);
        extern "C" fn of_the_program(_: libc::c_int) {
            PASSED_ON.store(true, Ordering::Relaxed);
            // SAFETY: the address of this thread's own variable.
            unsafe { *libc::__errno_location() = libc::EBADF };
        }
        super::install_handler();
        // SAFETY: structures of which zeros are a value, and this thread's own variable. No other
        // test has a fault outside its window, so no other one meets the handler put here.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = of_the_program as *const () as usize;
            let before = PREVIOUS.swap(&mut action, Ordering::AcqRel);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            *libc::__errno_location() = libc::ENOSPC;
            on_bus_error(libc::SIGBUS, &mut info, std::ptr::null_mut());
            let errno = *libc::__errno_location();
            PREVIOUS.store(before, Ordering::Release);
            assert_eq!((errno, PASSED_ON.load(Ordering::Relaxed)), (libc::ENOSPC, true));
        }
    }

    /// A window that stayed registered after its map was gone: the next map at its address was a
    /// file of the program, which was cut. Its bus error counted as the window's, and was answered
    /// with zeros in place of the program's file.
    #[test]
    fn a_fault_where_a_window_was_is_not_mended() {
        const CHILD: &str = "DEEDBOOK_TEST_FAULT_WHERE_A_WINDOW_WAS";
        if std::env::var_os(CHILD).is_some() {
            touch_a_cut_file_where_a_window_was();
            return;
        }
        let name = "storage::mapped_writes::tests::a_fault_where_a_window_was_is_not_mended";
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
        // SAFETY: maps a file where nothing is mapped, or fails; the store is into that map.
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
