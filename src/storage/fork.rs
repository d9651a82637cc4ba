//! By what a forked child knows that a handle is its parent's.

/// A number that differs between a process and the children it forks.
///
/// A handle keeps the number of its birth and refuses every call once it differs: parent and child
/// would share one file and write over each other.
pub fn generation() -> u64 {
    imp::generation()
}

#[cfg(unix)]
mod imp {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU64, Ordering};

    static FORKS: AtomicU64 = AtomicU64::new(0);
    static REGISTER: Once = Once::new();

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    #[allow(unsafe_code)]
    pub fn generation() -> u64 {
        REGISTER.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which is async-signal-safe, and it is
            // a function of this library, which is never unloaded while it has handles.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
            }
        });
        FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(not(unix))]
mod imp {
    pub fn generation() -> u64 {
        0
    }
}
