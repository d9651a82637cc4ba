//! Faults of the simulated machine: the failing call, the kind of failure, the number of failures.

use std::io;

/// A call of the storage traits. Looking at whether a path is a directory is not counted, because
/// it cannot fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `Storage::open`.
    Open,
    /// `Storage::create_new`.
    Create,
    /// `Storage::create_dir`.
    CreateDir,
    /// `Storage::rename`.
    Rename,
    /// `Storage::remove` or `Storage::remove_dir`.
    Remove,
    /// `Storage::list`.
    List,
    /// `Storage::sync_dir`.
    SyncDir,
    /// `Storage::lock`.
    Lock,
    /// `File::len`.
    Len,
    /// `File::id` or `File::is_unlinked`.
    Id,
    /// `File::read_at`.
    Read,
    /// `File::write_at`.
    Write,
    /// `File::set_len`.
    SetLen,
    /// `File::allocate`.
    Allocate,
    /// `File::sync_data`.
    Sync,
}

impl Call {
    /// Whether the call can change what a crash leaves.
    pub fn mutates(self) -> bool {
        use Call::{Len, List, Lock, Open, Read};
        !matches!(self, Open | List | Lock | Len | Self::Id | Read)
    }
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The call fails and does nothing. `Other` stands for EIO, `StorageFull` for ENOSPC,
    /// `Interrupted` for EINTR. A failed sync makes the dirty pages clean: only a part of their
    /// bytes has reached the disk, and later syncs succeed.
    Error(io::ErrorKind),
    /// A write of half the bytes that then fails.
    Partial(io::ErrorKind),
    /// A read or write of half the bytes, at least one.
    Short,
    /// A write that reports 0 bytes.
    Zero,
    /// A write or sync that reports success and does nothing. A rename that programs see, but no
    /// power cut leaves, even after syncs.
    Lie,
    /// A write to an offset later by so many bytes.
    Misdirect(u64),
    /// The process crashes: this call and all later calls fail and do nothing.
    Crash,
}

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The first faulty call, counted from 1 on from the injection.
    pub at: u64,
    /// Count calls of this kind only.
    pub of: Option<Call>,
    /// The effect.
    pub what: What,
    /// How many of the calls counted are faulty, from the first on.
    pub times: u64,
}

impl Fault {
    /// The `at`-th call does `what`, once.
    pub fn once(at: u64, what: What) -> Self {
        Self { at, of: None, what, times: 1 }
    }

    /// The `at`-th call and all later calls do `what`.
    pub fn ever(at: u64, what: What) -> Self {
        Self { times: u64::MAX, ..Self::once(at, what) }
    }

    /// Count only calls of this kind.
    #[must_use]
    pub fn of(self, call: Call) -> Self {
        Self { of: Some(call), ..self }
    }
}

/// A fault with its count.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    fault: Fault,
    seen: u64,
}

impl Armed {
    /// From now on.
    pub fn new(fault: Fault) -> Self {
        Self { fault, seen: 0 }
    }

    /// Count a call; returns the fault's effect if the fault strikes.
    pub fn meets(&mut self, call: Call) -> Option<What> {
        let Fault { at, of, what, times } = self.fault;
        if of.is_some_and(|of| of != call) {
            return None;
        }
        self.seen += 1;
        let applies = match what {
            What::Short => matches!(call, Call::Read | Call::Write),
            What::Partial(_) | What::Zero | What::Misdirect(_) => call == Call::Write,
            What::Lie => matches!(call, Call::Write | Call::Sync | Call::SyncDir | Call::Rename),
            What::Error(_) | What::Crash => true,
        };
        let due = self.seen >= at && self.seen - at < times;
        (applies && due).then_some(what)
    }
}
