//! Handles and locks in a forked child.

/// A number for each process: a forked child gets another.
///
/// A handle keeps the number from its opening, and refuses every call once the number differs.
/// Otherwise parent and child would share one file and overwrite each other's bytes.
pub fn generation() -> u64 {
    imp::generation()
}

#[cfg(unix)]
pub use imp::NotInherited;

#[cfg(unix)]
mod imp {
    use std::os::fd::{AsRawFd, RawFd};
    use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
    use std::sync::{Once, OnceLock};

    static FORKS: AtomicU64 = AtomicU64::new(0);
    static REGISTER: Once = Once::new();
    static PLACES: Slot = Slot::new();

    const NONE: RawFd = -1;

    /// Room for one descriptor, and the next room. Nobody frees a `Place`.
    #[derive(Debug)]
    struct Slot {
        descriptor: AtomicI32,
        next: OnceLock<Box<Slot>>,
    }

    impl Slot {
        const fn new() -> Self {
            Self { descriptor: AtomicI32::new(NONE), next: OnceLock::new() }
        }

        fn take(&self, descriptor: RawFd) -> bool {
            let order = Ordering::Relaxed;
            self.descriptor.compare_exchange(NONE, descriptor, order, order).is_ok()
        }
    }

    /// A descriptor with a lock. A forked child closes its copy at once: as long as a child has a
    /// copy, the lock outlives the locking process.
    #[derive(Debug)]
    pub struct NotInherited(&'static Slot);

    impl NotInherited {
        /// Drop it before the descriptor is closed.
        pub fn new(file: &impl AsRawFd) -> Self {
            generation(); // registers the handler
            let mut place = &PLACES;
            while !place.take(file.as_raw_fd()) {
                place = place.next.get_or_init(Box::default);
            }
            Self(place)
        }
    }

    impl Drop for NotInherited {
        fn drop(&mut self) {
            self.0.descriptor.store(NONE, Ordering::Relaxed);
        }
    }

    impl Default for Slot {
        fn default() -> Self {
            Self::new()
        }
    }

    #[allow(unsafe_code)]
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        let mut place = Some(&PLACES);
        while let Some(Slot { descriptor, next }) = place {
            let descriptor = descriptor.swap(NONE, Ordering::Relaxed);
            if descriptor != NONE {
                // SAFETY: closes the child's copy. The owner is of another generation and leaks the
                // descriptor.
                unsafe { libc::close(descriptor) };
            }
            place = next.get().map(AsRef::as_ref);
        }
    }

    #[allow(unsafe_code)]
    pub fn generation() -> u64 {
        REGISTER.call_once(|| {
            // SAFETY: the handler only uses atomics and `close`, which are async-signal-safe. The
            // handler is a function of this library, and nobody unloads the library while handles
            // exist.
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
