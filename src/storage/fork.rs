//! What becomes of handles and locks in a forked child.

/// A number that differs between a process and the children it forks.
///
/// A handle keeps the number of its birth and refuses every call once it differs: parent and child
/// would share one file and write over each other.
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

    /// Place for one descriptor, and the places after it. They are never freed.
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

    /// A descriptor that a forked child closes at once. A lock belongs to all copies of its descriptor:
    /// while a child has one, the lock outlives the process that took it.
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
                // SAFETY: closes the child's copy; its owner forgets it, as it is of another generation.
                unsafe { libc::close(descriptor) };
            }
            place = next.get().map(AsRef::as_ref);
        }
    }

    #[allow(unsafe_code)]
    pub fn generation() -> u64 {
        REGISTER.call_once(|| {
            // SAFETY: the handler only uses atomics and `close`, which are async-signal-safe, and it is
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
