//! What happens where a mapped file is cut under its map: the kernel sends SIGBUS, a handler puts
//! anonymous memory in place of the map and notes it, and the code that met it goes on and reads the note.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence};

const MAPS_MAX: usize = 256;
/// Maps begin at multiples of this on every page size Linux has, and take multiples of it.
const PAGE_BITS: u32 = 12;
/// Bits of a slot's word that count pages: maps of up to 2 TiB, below the address 2^47.
const COUNT_BITS: u32 = 29;

/// What the handler knows of a map.
struct Slot {
    taken: AtomicBool,
    /// Which memory the map has, 0 while there is none. One word says all: an address and a size, read
    /// one after the other, could belong to two maps and span what lies between them.
    extent: AtomicU64,
    faulted: AtomicBool,
}

static SLOTS: [Slot; MAPS_MAX] = [const {
    Slot {
        taken: AtomicBool::new(false),
        extent: AtomicU64::new(0),
        faulted: AtomicBool::new(false),
    }
}; MAPS_MAX];

/// Address and size in one word; `None` where they do not fit.
fn pack(start: usize, bytes: usize) -> Option<u64> {
    let pages = (bytes as u64).div_ceil(1 << PAGE_BITS);
    let page = start as u64 >> PAGE_BITS;
    (pages >> COUNT_BITS == 0 && page >> (64 - COUNT_BITS) == 0)
        .then_some(page << COUNT_BITS | pages)
}

/// The same back.
fn unpack(extent: u64) -> (usize, usize) {
    let page = extent >> COUNT_BITS;
    let pages = extent & ((1 << COUNT_BITS) - 1);
    ((page << PAGE_BITS) as usize, (pages << PAGE_BITS) as usize)
}

/// Has faults in a map mended. It is dropped before the map: the handler must not mend an address that
/// was reused.
pub struct Guard(&'static Slot);

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guard({:x})", unpack(self.0.extent.load(Ordering::Relaxed)).0)
    }
}

impl Guard {
    /// Guard a map; `None` where there are too many, or it is too large.
    pub fn new(start: usize, bytes: usize) -> Option<Self> {
        install_handler();
        let extent = pack(start, bytes)?;
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel))?;
        slot.faulted.store(false, Ordering::Relaxed);
        slot.extent.store(extent, Ordering::Release);
        Some(Self(slot))
    }

    /// Whether the map has no bytes of its file any more. Asked after a load or a store, it says so of
    /// them, too.
    pub fn faulted(&self) -> bool {
        // The note is written in the middle of the copy, by this thread or before the zeros that it read:
        // only the compiler could exchange the two.
        compiler_fence(Ordering::SeqCst);
        self.0.faulted.load(Ordering::SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.extent.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
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

/// Mend a fault inside one of our maps; pass any other to the handler that was there before.
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

/// Put anonymous memory in place of the map around `address`; `false`: there is none, or it cannot be
/// replaced.
#[allow(unsafe_code)]
fn mend(address: usize) -> bool {
    for slot in &SLOTS {
        let (start, bytes) = unpack(slot.extent.load(Ordering::Acquire));
        if start == 0 || !(start..start + bytes).contains(&address) {
            continue;
        }
        // Before the bytes change: another thread that reads zeros finds the note after them.
        slot.faulted.store(true, Ordering::SeqCst);
        // SAFETY: replaces pages that the owner of a live `Guard` mapped, at the same place and size: a
        // slot names a map only while it exists, so an address that is mapped otherwise is in none of
        // them. mmap is one system call and takes no lock.
        let mended = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mended != libc::MAP_FAILED {
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
    use super::*;

    #[test]
    fn an_extent_comes_back_or_is_refused() {
        for (start, bytes, pages) in [
            (0x7fff_ffff_f000, 1, 1),
            (0x1000, 4096, 1),
            (0x55_0000_1000, 4097, 2),
            (0x1000, 5 << 30, 5 << 18),
        ] {
            let extent = pack(start, bytes).unwrap();
            assert_eq!(unpack(extent), (start, pages << PAGE_BITS));
        }
        assert_eq!(pack(1 << 47, 4096), None);
        assert_eq!(pack(0x1000, 2 << 40), None);
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
}
