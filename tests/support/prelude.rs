//! Names that nearly every test uses.

pub use std::cell::{Cell, RefCell};
pub use std::collections::{BTreeMap, BTreeSet, HashSet};
pub use std::io::{ErrorKind as Io, Read, Write};
#[cfg(unix)]
pub use std::os::unix::fs::symlink;
pub use std::path::{Path, PathBuf};
pub use std::process::Command;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::sync::mpsc::channel;
pub use std::sync::{Arc, Mutex};
pub use std::time::{Duration, Instant};
pub use std::{fs, io};

pub use deedbook::book::pier::Pier;
pub use deedbook::book::{Book, BookFormat, Meta};
pub use deedbook::jobs::{Bookmark, Committed, Part, Reach, Split, Transaction, TransactionId};
pub use deedbook::ledger::{LedgerConfig, LedgerReader, LedgerStore};
pub use deedbook::nostr::EventStore;
pub use deedbook::report::{Damage, MarkUse, OpenReport, Repair, RepairReport, SalvageReport};
pub use deedbook::report::{Verdict, VerifyReport};
pub use deedbook::storage::sim::{Call, Fault, Sim, What};
pub use deedbook::storage::{Access, Disk, File, LockAttempt, Memory, Storage};
pub use deedbook::wal::{Lsn, Wal, WalFormat, segment_name};
pub use deedbook::{Batch, Durability, Durable, Error, ErrorKind, Mode, OnCorrupt, Recovery};
pub use deedbook::{LockTimeout, Result, Retention, book, ledger, nostr, wal};
pub use tempfile::TempDir;

pub use super::around::{Around, Between};
pub use super::common::hooked::Hooked;
pub use super::common::index_files::vouch_for;
pub use super::common::{FORCED, in_role, killed, read_file, role, snapshot, write_file};
pub use super::crashes::{Counts, Crash, Explorer, Plan, World, all_after, by_chance};
pub use super::crashes::{choices, cuts};
pub use super::formats::framing::Framing;
pub use super::formats::specimen::{Beside, DIR, Files, Specimen};
pub use super::formats::subject::{At, Format, How, Log, MANUAL, Walk};
pub use super::formats::views::plain;
pub use super::report::of_tier;
pub use super::watch::{Seen, before_call, watched};
