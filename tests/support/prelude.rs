//! Names that nearly every test uses.

pub use std::cell::{Cell, RefCell};
pub use std::collections::{BTreeMap, BTreeSet, HashSet};
pub use std::io::ErrorKind as Io;
pub use std::path::{Path, PathBuf};
pub use std::process::Command;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::sync::{Arc, Mutex};
pub use std::time::{Duration, Instant};
pub use std::{fs, io};

pub use deedbook::book::pier::Pier;
pub use deedbook::book::{Book, BookFormat, Meta};
pub use deedbook::jobs::{Bookmark, Part, Reach, Split, Transaction, TransactionId};
pub use deedbook::report::{Damage, MarkUse, OpenReport, Repair, RepairReport, SalvageReport};
pub use deedbook::report::{Verdict, VerifyReport};
pub use deedbook::storage::sim::{Call, Fault, Sim, What};
pub use deedbook::storage::{Access, Disk, File, LockAttempt, Memory, Storage};
pub use deedbook::wal::{Lsn, Wal, WalFormat, segment_name};
pub use deedbook::{Batch, Durability, Durable, Error, ErrorKind, Mode, OnCorrupt, Recovery};
pub use deedbook::{LockTimeout, Result, Retention};
pub use tempfile::TempDir;

pub use super::common::{read_file, write_file};
pub use super::formats::framing::Framing;
pub use super::formats::specimen::{Beside, DIR, Files, Specimen};
pub use super::formats::subject::{At, Format, How, MANUAL};
pub use super::formats::views::plain;
pub use super::watch::{Seen, before_call, watched};
