//! SIGBUS of mapped files. When a process cuts a file under our map, Linux sends SIGBUS at the next
//! access. The handler here puts anonymous memory in place of the map and sets a note. The
//! interrupted code continues and reads the note.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence};

const MAPS_MAX: usize = 256;
/// On every page size of Linux, maps begin at multiples of 2^12 bytes and have a multiple of 2^12
/// bytes.
const PAGE_BITS: u32 = 12;
/// Bits of a slot's word that count pages. The next bit marks a writable map. The rest holds
/// addresses below 2^47, for maps of up to 1 TiB.
const COUNT_BITS: u32 = 28;
const PAGE_SHIFT: u32 = COUNT_BITS + 1;

/// The handler's note about one map.
struct Slot {
    taken: AtomicBool,
    /// Address, size and use of the map; 0 if there is none. All three share one word: if the
    /// handler read address and size one after the other, they could belong to two maps, and span
    /// the memory between the maps.
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

/// The use of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Read,
    Write,
}

/// Pack address, size and use into one word; `None` if they do not fit.
fn pack(start: usize, bytes: usize, wanted: Use) -> Option<u64> {
    let pages = (bytes as u64).div_ceil(1 << PAGE_BITS);
    let page = start as u64 >> PAGE_BITS;
    let writes = u64::from(wanted == Use::Write) << COUNT_BITS;
    (pages >> COUNT_BITS == 0 && page >> (64 - PAGE_SHIFT) == 0)
        .then_some(page << PAGE_SHIFT | writes | pages)
}

/// Unpack a word of [`pack`].
fn unpack(extent: u64) -> (usize, usize, Use) {
    let page = extent >> PAGE_SHIFT;
    let pages = extent & ((1 << COUNT_BITS) - 1);
    let wanted = if extent >> COUNT_BITS & 1 == 1 { Use::Write } else { Use::Read };
    ((page << PAGE_BITS) as usize, (pages << PAGE_BITS) as usize, wanted)
}

/// Has the handler repair faults in a map. Drop the guard before the map: the handler must not
/// repair a reused address.
pub struct Guard(&'static Slot);

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guard({:x})", unpack(self.0.extent.load(Ordering::Relaxed)).0)
    }
}

impl Guard {
    /// Guard a map; `None` where there are too many, or it is too large.
    pub fn new(start: usize, bytes: usize, wanted: Use) -> Option<Self> {
        install_handler();
        let extent = pack(start, bytes, wanted)?;
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel))?;
        slot.faulted.store(false, Ordering::Relaxed);
        slot.extent.store(extent, Ordering::Release);
        Some(Self(slot))
    }

    /// Whether the map has lost the bytes of its file. Asked after a load or a store, the answer
    /// covers the load or store, too.
    pub fn faulted(&self) -> bool {
        // The handler sets the note in the middle of the copy. Either this thread runs the handler,
        // or another thread set the note before the zeros that this thread read. So only the
        // compiler could reorder the two.
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
        // SAFETY: both structures are valid; the handler below does only things that a signal
        // handler may do.
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

/// Repair a fault inside one of our maps; pass any other signal to the previous handler.
#[allow(unsafe_code)]
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // The interrupted code may be about to read `errno`.
    // SAFETY: the address of this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid `info` to a SA_SIGINFO handler, with a code in every signal.
    let code = unsafe { (*info).si_code };
    // `kill` and a worn memory page that nobody reads: no access of this thread led here, and a signal that a
    // process sent has no address.
    let is_asynchronous = code <= 0 || code == libc::BUS_MCEERR_AO;
    // SAFETY: as above; the kernel sets the address of every signal that an access caused.
    if is_asynchronous || !replace_map(unsafe { (*info).si_addr() } as usize) {
        pass_on(signal, info, context, is_asynchronous);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Put anonymous memory in place of the map around `address`; `false`: there is none, or it cannot be
/// replaced.
#[allow(unsafe_code)]
fn replace_map(address: usize) -> bool {
    for slot in &SLOTS {
        let (start, bytes, wanted) = unpack(slot.extent.load(Ordering::Acquire));
        if start == 0 || !(start..start + bytes).contains(&address) {
            continue;
        }
        // Set the note before the bytes change: a thread that reads zeros then finds the note.
        slot.faulted.store(true, Ordering::SeqCst);
        let access = match wanted {
            Use::Read => libc::PROT_READ,
            Use::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: replaces pages that the owner of a live `Guard` mapped, at the same place and
        // size. A slot names a map only while the map exists, so no slot has an address with
        // another mapping. mmap is one system call and takes no lock.
        let mended = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                bytes,
                access,
                // Nobody writes to most of the memory. NORESERVE keeps a system with strict
                // accounting from setting memory aside.
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
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
fn pass_on(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    is_asynchronous: bool,
) {
    // SAFETY: `PREVIOUS` is null or leaked on purpose, so valid forever. A handler in `PREVIOUS`
    // has the type that the flags say. The handler runs without its own mask, and with SA_RESETHAND
    // more than once. A handler may call `sigaction` and `raise`.
    unsafe {
        let previous = PREVIOUS.load(Ordering::Acquire);
        let handler = if previous.is_null() { libc::SIG_DFL } else { (*previous).sa_sigaction };
        if handler == libc::SIG_IGN && is_asynchronous {
            // The program ignores the signal.
        } else if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // The signal ends the process here: SA_NODEFER leaves SIGBUS unblocked. If the program
            // ignored the signal, the access would only fail again.
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &default, std::ptr::null_mut());
            libc::raise(signal);
            return;
        } else if (*previous).sa_flags & libc::SA_SIGINFO != 0 {
            type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Informed>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
        }
        // Rust's own handler leaves the default behind, so that the access fails again and ends the process.
        let mut left: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut left);
        if is_asynchronous && left.sa_sigaction == libc::SIG_DFL {
            libc::raise(signal);
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
            for wanted in [Use::Read, Use::Write] {
                let extent = pack(start, bytes, wanted).unwrap();
                assert_eq!(unpack(extent), (start, pages << PAGE_BITS, wanted));
            }
        }
        assert_eq!(pack(1 << 47, 4096, Use::Read), None);
        assert_eq!(pack(0x1000, 1 << 40, Use::Write), None);
    }

    /// Once, our handler swallowed a signal from another process and disarmed itself. The next cut
    /// file ended the process.
    #[test]
    #[allow(unsafe_code)]
    fn a_sent_bus_error_ends_the_process() {
        use std::os::unix::process::ExitStatusExt;

        if std::env::var_os("DEEDBOOK_SENT_SIGBUS").is_some() {
            super::install_handler();
            // SAFETY: a signal of this process to itself.
            unsafe { libc::kill(libc::getpid(), libc::SIGBUS) };
            std::thread::sleep(std::time::Duration::from_secs(10));
            std::process::exit(3);
        }
        let this = "storage::disk::bus_error::tests::a_sent_bus_error_ends_the_process";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let ended =
            child.args(["--exact", this]).env("DEEDBOOK_SENT_SIGBUS", "1").output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{:?}", ended.status);
    }

    /// Our handler runs between a failed call and the question for `errno`. A call in our handler,
    /// or in the program's handler after ours, must not change the answer.
    #[test]
    #[allow(unsafe_code)]
    fn a_foreign_bus_error_keeps_errno() {
        static PASSED_ON: AtomicBool = AtomicBool::new(false);
        extern "C" fn of_the_program(_: libc::c_int) {
            PASSED_ON.store(true, Ordering::Relaxed);
            // SAFETY: the address of this thread's own variable.
            unsafe { *libc::__errno_location() = libc::EBADF };
        }
        super::install_handler();
        // SAFETY: zeros are a value of the structures, and the variable is this thread's own. No
        // other test has a fault outside its window, so no other test meets the handler set here.
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
