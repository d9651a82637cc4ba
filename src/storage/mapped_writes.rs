//! Stores into a file through a shared memory map, without dying when the file is cut under it.
//!
//! Why: one small append by `pwrite` costs several times what one by a map costs
//! (`benches/append.rs`), and both leave the bytes in the page cache, where they survive the death
//! of the process. The price is that a store behind the end of a file that another process cut
//! raises SIGBUS. A handler turns that into an error: it puts anonymous memory under the faulting
//! window, notes it, and lets the store finish; the writer looks at the note and fails.

use std::fs::File;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// 8 MiB at a time measured best; more costs page tables, less costs calls.
const WINDOW_BYTES: u64 = 8 << 20;
const WINDOWS_MAX: usize = 256;
/// Offsets of maps are multiples of this on every page size Linux has.
const ALIGNMENT: u64 = 64 << 10;

/// What the signal handler knows of a window. `start` is 0 while the slot is free.
struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    faulted: AtomicBool,
}

static SLOTS: [Slot; WINDOWS_MAX] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
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
    /// below `allocated`. `false`: no map could be had, nothing was stored.
    pub fn write(
        window: &mut Option<Self>,
        file: &File,
        allocated: u64,
        buf: &[u8],
        offset: u64,
    ) -> io::Result<bool> {
        if !window.as_ref().is_some_and(|window| window.covers(offset, buf.len())) {
            *window = None;
            *window = Self::new(file, offset, allocated);
        }
        match window {
            Some(window) if window.covers(offset, buf.len()) => window.store(buf, offset),
            _ => Ok(false),
        }
    }

    fn covers(&self, offset: u64, len: usize) -> bool {
        offset >= self.base && offset + len as u64 <= self.base + self.map.len() as u64
    }

    fn new(file: &File, offset: u64, allocated: u64) -> Option<Self> {
        install_handler();
        let base = offset / ALIGNMENT * ALIGNMENT;
        let len = usize::try_from((allocated - base).min(WINDOW_BYTES)).ok()?;
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel))?;
        let Ok(map) = MmapOptions::new().offset(base).len(len).map_raw(file) else {
            slot.taken.store(false, Ordering::Release);
            return None;
        };
        let start = map.as_ptr() as usize;
        slot.faulted.store(false, Ordering::Relaxed);
        slot.end.store(start + len, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(Self { map, base, slot })
    }

    #[allow(unsafe_code)]
    fn store(&mut self, buf: &[u8], offset: u64) -> io::Result<bool> {
        // SAFETY: `covers` held, so the target lies inside the map, which lives as long as `self`;
        // nobody holds a reference into the map. A fault inside it is mended by the handler.
        unsafe {
            let target = self.map.as_mut_ptr().add((offset - self.base) as usize);
            std::ptr::copy_nonoverlapping(buf.as_ptr(), target, buf.len());
        }
        if self.slot.faulted.load(Ordering::Acquire) {
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

/// Mend a fault inside one of our windows; hand any other to whoever was there before.
#[allow(unsafe_code)]
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid `info` to a SA_SIGINFO handler.
    let address = unsafe { (*info).si_addr() } as usize;
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Relaxed);
        if start == 0 || !(start..end).contains(&address) {
            continue;
        }
        // SAFETY: replaces pages that a live `Window` owns, at the same place and size; mmap is
        // one system call and takes no lock.
        let mended = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                end - start,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mended != libc::MAP_FAILED {
            slot.faulted.store(true, Ordering::Release);
            return;
        }
    }
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
    use super::*;

    /// A writer whose file is cut by somebody else fails; the process goes on.
    #[test]
    fn a_store_behind_a_foreign_truncation_is_an_error_not_a_crash() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(256 << 10).unwrap();
        let mut window = None;
        assert!(Window::write(&mut window, &file, 256 << 10, b"kept", 0).unwrap());
        file.set_len(0).unwrap();
        let error = Window::write(&mut window, &file, 256 << 10, b"lost", 128 << 10).unwrap_err();
        assert!(error.to_string().contains("cut"), "{error}");
        drop(window);
        file.set_len(256 << 10).unwrap();
        let mut window = None;
        assert!(Window::write(&mut window, &file, 256 << 10, b"anew", 0).unwrap());
    }

    /// Only window `[base, base + len)` takes the store; another offset maps another window.
    #[test]
    fn windows_move_with_the_offset() {
        let file = tempfile::tempfile().unwrap();
        let len = 3 * WINDOW_BYTES;
        file.set_len(len).unwrap();
        let mut window = None;
        for offset in [0, WINDOW_BYTES - 2, len - 4, 5] {
            assert!(Window::write(&mut window, &file, len, b"deed", offset).unwrap());
            let mut back = [0; 4];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut back, offset).unwrap();
            assert_eq!(&back, b"deed");
        }
    }
}
