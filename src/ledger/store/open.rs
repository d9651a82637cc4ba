//! Opening a ledger.

use std::sync::{Arc, OnceLock};

use super::durable::sync_every;
use super::state::State;
use crate::commit::GroupCommit;
use crate::durability::Durability;
use crate::error::Result;
use crate::ground::locks::Mutex;
use crate::ground::locks::atomic::AtomicBool;
use crate::ledger::codec::{Codec, FORMAT};
use crate::ledger::directory::Directory;
use crate::ledger::options::{LedgerConfig, Options};
use crate::ledger::store::{LedgerStore, Owner, Shared};
use crate::log::Counters;
use crate::mode::Mode;
use crate::storage::fork_generation;

impl Options {
    /// Open a ledger with these options.
    ///
    /// # Errors
    ///
    /// Fails for a configuration that makes no sense, and where the directory cannot be made or read; see
    /// [Errors](crate#errors).
    pub fn open(&self, config: LedgerConfig) -> Result<LedgerStore> {
        let store = LedgerStore::open_with(config, self.clone(), Mode::Append)?;
        if let Durability::Interval(interval) = self.durability {
            sync_every(&store.shared, interval).map_err(|e| e.of(FORMAT))?;
        }
        store.shared.finish_begun();
        Ok(store)
    }

    /// Open a ledger for its transactions alone: the handle stages records, and lists, discards and abandons staged
    /// ones. Appends, commits and fetches fail with [`ReadOnly`](crate::ErrorKind::ReadOnly). Nothing is created, and
    /// no commit is finished. [`Self::contents`] reads the records.
    ///
    /// # Errors
    ///
    /// Fails for a configuration that makes no sense; see [Errors](crate#errors).
    pub fn open_to_read(&self, config: LedgerConfig) -> Result<LedgerStore> {
        LedgerStore::open_with(config, self.clone(), Mode::Read)
    }
}

impl LedgerStore {
    /// Open a ledger, with the specification's defaults. Reads no file, and creates no file before the first append.
    /// Finishes a commit that had begun. If finishing fails, a log line says why, and the next
    /// [`LedgerStore::commit_staged`] fails.
    ///
    /// # Errors
    ///
    /// Fails for a configuration that makes no sense, and where the directory cannot be made or read; see
    /// [Errors](crate#errors).
    pub fn new(config: LedgerConfig) -> Result<Self> {
        Options::default().open(config)
    }

    fn open_with(config: LedgerConfig, options: Options, mode: Mode) -> Result<Self> {
        config.check()?;
        let LedgerConfig { storage_location: location, base_filename, max_file_size, .. } = config;
        let max_file_size = max_file_size as u64;
        options.check(&location, max_file_size)?;
        let directory = match mode {
            Mode::Read => Directory::at(&options, &location, &base_filename),
            _ => Directory::open(&options, &location, &base_filename),
        };
        let shared = Arc::new(Shared {
            directory: directory.map_err(|e| e.of(FORMAT))?,
            mode,
            header: config.header,
            footer: config.footer,
            separator: config.separator,
            max_file_size,
            codec: Codec::new(options.record_bytes_max),
            fork_generation: fork_generation(),
            closed: AtomicBool::new(false),
            state: Mutex::new(State::default()),
            lease: Mutex::new(None),
            commits: GroupCommit::new(0),
            background: OnceLock::new(),
            counters: Counters::default(),
            options,
        });
        Ok(Self { _owner: Arc::new(Owner(shared.clone())), shared })
    }
}
