//! A simulated disk that can lose power, for crash-testing anything written to [`Storage`](super::Storage).
//!
//! The model of a file system is the worst that the rules allow, on purpose:
//!
//! * Writes go to a cache that survives a crash of the process ([`Sim::kill`]), but not a power cut
//!   ([`Sim::crashes`]).
//! * A power cut keeps any subset of the unsynced 512-byte sectors. A sector that was written
//!   several times since the last sync may hold any of the versions.
//! * A file whose size changed since the last sync has any size in between, with zeros or garbage
//!   in place of lost sectors.
//! * `sync_data` does not make the file's name durable; `sync_dir` does. A power cut keeps any
//!   subset of the unsynced changes of names; a rename happens or not.
//! * A failed `sync_data` makes the dirty pages clean: a part of their bytes (none, all, or any
//!   sectors, in any version, and the size or not) has reached the disk. The next power cut loses
//!   the rest, though programs still see it, and the next sync succeeds.
//! * A directory lists its names in any order, each time in another.
//! * Locks end with the process.
//!
//! [`Sim::inject`] makes chosen calls fail, fall short, lie or hit the wrong place. Everything is
//! deterministic: every choice by chance depends on the number of calls so far and on
//! [`Sim::set_seed`].
//!
//! ```
//! use std::sync::Arc;
//! use deedbook::Mode;
//! use deedbook::book::Options;
//! use deedbook::storage::sim::Sim;
//!
//! # fn main() -> deedbook::Result<()> {
//! let sim = Sim::new();
//! let on = |sim: &Sim| Options::new().storage(Arc::new(sim.clone()));
//! let book = on(&sim).open("/log", Mode::Create)?;
//! book.append(7, b"acknowledged")?;
//!
//! let crashes = sim.crashes();
//! assert!(crashes.count() > 1);
//! for index in 0..crashes.count().min(1000) {
//!     let after = crashes.state(index); // the power is back
//!     let book = on(&after).open("/log", Mode::Append)?;
//!     assert_eq!(book.read(1)?.jam, b"acknowledged");
//! }
//! # Ok(())
//! # }
//! ```

mod content;
mod crash;
mod fault;
mod handle;
mod machine;
mod names;

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fault::Armed;
use machine::Machine;

#[doc(hidden)]
pub use content::SECTOR_BYTES;
#[doc(hidden)]
pub use crash::Choice;
pub use crash::Crashes;
pub use fault::{Call, Fault, What};

/// A simulated machine with one disk. Clones are the same machine.
#[derive(Clone, Debug)]
pub struct Sim {
    shared: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    faults: Vec<Armed>,
    calls: u64,
    fired: u64,
    down: bool,
    locked: BTreeSet<u64>,
    /// A copy after every call that changed something, if wanted.
    recorded: Option<Vec<Machine>>,
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Sim {
    /// An empty disk.
    pub fn new() -> Self {
        Self::of(Machine::new())
    }

    fn of(machine: Machine) -> Self {
        let inner = Inner {
            machine,
            faults: Vec::new(),
            calls: 0,
            fired: 0,
            down: false,
            locked: BTreeSet::new(),
            recorded: None,
        };
        Self { shared: Arc::new(Mutex::new(inner)) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether syncing a file makes all names durable as well, as ext4 and xfs happen to do. Off by
    /// default: no file system promises it.
    pub fn set_kinder(&self, kinder: bool) {
        self.inner().machine.kinder = kinder;
    }

    /// Whether [`File::allocate`](super::File::allocate) can reserve space. Off by default: states are smaller without.
    pub fn set_allocates(&self, allocates: bool) {
        self.inner().machine.allocates = allocates;
    }

    /// Choose other orders of listings, and other outcomes of failed syncs.
    pub fn set_seed(&self, seed: u64) {
        self.inner().machine.seed = seed;
    }

    /// Inject a fault; it counts calls from now on.
    pub fn inject(&self, fault: Fault) {
        self.inner().faults.push(Armed::new(fault));
    }

    /// Remove all faults.
    pub fn heal(&self) {
        self.inner().faults.clear();
    }

    /// How often a fault has struck.
    pub fn fired(&self) -> u64 {
        self.inner().fired
    }

    /// Number of calls so far.
    pub fn calls(&self) -> u64 {
        self.inner().calls
    }

    /// Keep a copy of the machine after every call that changes something; see [`Sim::recorded`].
    pub fn record(&self) {
        self.inner().recorded = Some(Vec::new());
    }

    /// The copies kept since [`Sim::record`] or the last call of `recorded`. Each copy is the
    /// machine after a crash of the process right after one call.
    pub fn recorded(&self) -> Vec<Self> {
        let mut inner = self.inner();
        let copies = inner.recorded.as_mut().map(std::mem::take).unwrap_or_default();
        copies.into_iter().map(Self::of).collect()
    }

    /// The machine after a crash of the process: the caches survive, locks do not. `self` stays as
    /// it is.
    pub fn kill(&self) -> Self {
        Self::of(self.inner().machine.clone())
    }

    /// Every state that a power cut can leave now. `self` stays as it is.
    pub fn crashes(&self) -> Crashes {
        Crashes::new(self.inner().machine.clone())
    }

    /// A number that disks with equal names, inodes and bytes share, as programs see them.
    pub fn fingerprint(&self) -> u64 {
        self.inner().machine.fingerprint()
    }

    /// Count a call, let faults strike, do the work.
    fn act<T>(
        &self,
        call: Call,
        work: impl FnOnce(&mut Inner, Option<What>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut inner = self.inner();
        inner.calls += 1;
        let Inner { faults, fired, down, .. } = &mut *inner;
        let mut what = None;
        for armed in faults {
            what = armed.meets(call).or(what);
        }
        *fired += u64::from(what.is_some());
        *down |= what == Some(What::Crash);
        if *down {
            return Err(io::Error::other("the simulated process is dead"));
        }
        let result = match what {
            Some(What::Error(kind)) if call != Call::Sync => Err(failure(kind)),
            what => work(&mut inner, what),
        };
        if call.mutates() {
            let Inner { recorded, machine, .. } = &mut *inner;
            if let Some(recorded) = recorded {
                recorded.push(machine.clone());
            }
        }
        result
    }
}

fn failure(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "injected")
}

#[cfg(test)]
mod tests;
