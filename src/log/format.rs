//! A log and its format. The format says what the log needs besides how records lie in bytes; one of its methods gets
//! the open log, so both are in one file.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use super::evidence::Border;
use super::space::{Beyond, Files, Place, Space};
use super::stats::Counters;
use crate::commit::GroupCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::locks::Mutex;
use crate::locks::atomic::{AtomicBool, AtomicU64};
use crate::log::extent::Extent;
use crate::log::findings::Findings;
use crate::log::options::Common;
use crate::log::report::OpenReport;
use crate::log::seal::{Plain, Seal};
use crate::mode::{Depth, Mode};
use crate::scan::Damage;
use crate::scan::framing::Framing;
use crate::sidecar::{Index, Left, Mark, MarkFile, Settings, WriterLock};
use crate::storage::{Access, Closable, File, FileId};

/// What a framing knows of a record.
pub type FrameOf<F> = <<F as Format>::Framing as Framing>::Frame;

/// What is stored beside a payload.
pub type TagOf<F> = <<F as Format>::Framing as Framing>::Tag;

/// A record stepped to: its number, where that is known, its byte, and what the framing knows of it.
pub type Stepped<F> = (Option<u64>, u64, FrameOf<F>);

/// A log's files as found, before anything is decided.
#[derive(Debug)]
pub struct Inspected<F: Format> {
    /// The format, with what the files say of it.
    pub format: F,
    /// The log's bytes.
    pub space: Space,
    /// Who says where the log ends.
    pub seal: Arc<dyn Seal>,
    /// Where the log ends.
    pub findings: Findings,
    /// The mark, if it is this log's.
    pub mark: Option<Mark>,
    /// What the log was created with, if that is known.
    pub settings: Option<Settings>,
    /// Damage that no record shows and that opening for writing removes.
    pub mended: Vec<Damage>,
    /// The intent of a truncation, if one exists.
    pub left: Left,
    /// Why the log can only be read: its files say something that cutting does not mend.
    pub only_readable: Option<String>,
    /// Nothing proves that the files are a log: their torn tail is cut only on request.
    pub unproved: bool,
}

impl<F: Format> Inspected<F> {
    /// A log of which the files say no more than its records.
    pub fn new(format: F, space: Space, findings: Findings, mark: Option<Mark>) -> Self {
        let mark = mark.filter(|_| findings.mark_is_ours());
        Self {
            format,
            space,
            seal: Arc::new(Plain),
            findings,
            mark,
            settings: None,
            mended: Vec::new(),
            left: Left::Absent,
            only_readable: None,
            unproved: false,
        }
    }

    /// Whether a truncation was begun that is to be brought to its end.
    pub fn cut_begun(&self) -> bool {
        matches!(self.left, Left::Intent(_))
    }
}

/// A log format. What a method does not do by default is explained there.
pub trait Format: Clone + Debug + Send + Sync + Sized + 'static {
    /// Name in errors.
    const NAME: &'static str;
    /// What its records are called.
    const NOUN: &'static str;
    /// The option that limits how long a record may be.
    const LIMIT: &'static str = "the limit";
    /// Whether other files than the log say that records are missing. Where only the mark says it, removing the mark
    /// is the way to go on with a backup.
    const HAS_WITNESSES: bool = false;
    /// How much of the files must be read to see that they are such a log, if no sidecar says so.
    const PROVED_BY: Depth = Depth::Begin;
    /// Whether its records have numbers that users see; else they go by their bytes.
    const NUMBERED: bool;
    /// How records lie in bytes.
    type Framing: Framing;
    /// How such a log is opened.
    type Options: Clone + Debug + Send + Sync + 'static;
    /// A record as cursors give it.
    type Ref<'a>;
    /// A record as iterators give it.
    type Owned: 'static;
    /// A column of an Arrow batch.
    #[cfg(feature = "arrow")]
    type Column: crate::log::arrow::Columns;

    /// The codec that reads this log.
    fn framing(&self) -> Self::Framing;

    /// The codec that checks what is appended: it may have a lower limit.
    fn appending(&self, _options: &Self::Options) -> Self::Framing {
        self.framing()
    }

    /// The options that all formats share; fails for those that make no sense.
    fn common(options: &Self::Options) -> Result<Common>;

    /// What the log is created with, to be kept in `.deedbook`.
    fn settings(&self) -> Settings;

    /// A record for a caller.
    fn show(
        ordinal: Option<u64>,
        offset: u64,
        frame: FrameOf<Self>,
        record: &[u8],
    ) -> Self::Ref<'_>;

    /// The same with its own memory.
    fn own(record: Self::Ref<'_>) -> Self::Owned;

    /// A record's name in errors: `deed 812`, `record at lsn 4096`.
    fn name_of(ordinal: Option<u64>, offset: u64) -> String;

    /// What a path names; for a new log what the options ask for.
    fn place(options: &Self::Options, path: &std::path::Path) -> Result<Place>;

    /// Whether a log exists: then the engine creates none. By default, an empty file is no log.
    fn exists(options: &Self::Options, place: &Place) -> Result<bool> {
        match place.open(&*Self::common(options)?.storage, Access::Read) {
            Err(e) if e.kind() == ErrorKind::Missing => Ok(false),
            opened => {
                let is_empty = opened?.is_empty();
                is_empty.map(|is| !is).map_err(|e| Error::io("open the log", &place.log, e))
            }
        }
    }

    /// Create a log: all of it or nothing.
    fn create(options: &Self::Options, place: &Place) -> Result<()>;

    /// Open the files of a log and find out what they hold. This changes nothing. An opening calls it once, for writing
    /// under the lock, and opens the files nowhere else. [`ErrorKind::Missing`](crate::ErrorKind::Missing) says that nothing is or was
    /// there.
    fn inspect(
        options: &Self::Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>>;

    /// Refuse to open the log that was found, or to create one if none was found.
    fn check_found(
        _options: &Self::Options,
        _place: &Place,
        _found: Option<&Inspected<Self>>,
        _access: Access,
    ) -> Result<()> {
        Ok(())
    }

    /// Whether all of the record stands at `at` whose length of `len` bytes is only beyond the caller's
    /// limit: it is no torn tail, and nothing to cut, not even on request.
    fn is_beyond_limit(
        &self,
        _file: &dyn File,
        _at: u64,
        _len: u64,
        _end: u64,
    ) -> io::Result<bool> {
        Ok(false)
    }

    /// Tend to an open log, after its opening for writing and after each sync. The caller holds no lock. Only a WAL
    /// does something: it drops the records that its retention allows. The thread that syncs in the background calls
    /// this too.
    fn tend(_log: &Shared<Self>, _after: Done) -> Result<()> {
        Ok(())
    }
}

/// The event after which a format [tends](Format::tend) to an open log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Its opening.
    Opening,
    /// A sync.
    Sync,
}

/// An open log. Handles may be shared by threads; clones are the same handle.
#[derive(Clone)]
pub struct Log<F: Format> {
    /// What all handles share.
    pub shared: Arc<Shared<F>>,
    pub(super) _owner: Arc<Owner<F>>,
}

/// Held by every clone of a handle, but not by the thread that syncs in the background: with the
/// last of them the log is closed, whatever that thread is doing.
pub(super) struct Owner<F: Format>(pub(super) Arc<Shared<F>>);

/// What the handles of one log share.
pub struct Shared<F: Format> {
    pub format: F,
    /// The codec that reads.
    pub framing: F::Framing,
    /// The codec that checks what is appended.
    pub appending: F::Framing,
    pub options: F::Options,
    pub common: Common,
    pub mode: Mode,
    pub place: Place,
    pub file: Arc<dyn File>,
    pub files: Files,
    pub(super) seal: Arc<dyn Seal>,
    /// Held by an append and by a sync, where a sync must not cover half of an append's bytes.
    pub(super) turn: Option<Mutex<()>>,
    /// The file and what lies after a gap, to be given back by closing.
    pub(super) open_files: Mutex<Vec<Arc<Closable>>>,
    /// Space is reserved at most so far ahead.
    pub(super) piece_bytes: Option<u64>,
    /// At opening.
    pub(super) fork_generation: u64,
    pub(super) closed: AtomicBool,
    pub(super) state: Mutex<State>,
    pub(super) index: Arc<Mutex<Index>>,
    pub(super) commits: GroupCommit,
    /// For a writer.
    pub(super) durable_records: AtomicU64,
    pub(super) mark_file: Mutex<Option<MarkFile>>,
    pub(super) lock: Mutex<Option<WriterLock>>,
    /// How often this handle cut the log's end.
    pub(super) cuts: AtomicU64,
    /// Where it cut.
    pub(super) cut_ends: Mutex<Vec<u64>>,
    /// Held while a format's own files are read, changed and written.
    pub exclusive: Mutex<()>,
    /// The thread that syncs every so often.
    pub(super) background: OnceLock<Thread>,
    pub counters: Counters,
    pub recovery: OpenReport,
}

/// The state that appends change. A reader has what it saw last.
#[derive(Debug)]
pub struct State {
    pub extent: Extent,
    /// Whether the number of the first record is known.
    pub numbered: bool,
    /// The log's file, or the lowest one.
    pub file_id: FileId,
    /// Byte after the space that is there: after the last record there may be zeros.
    pub file_end: u64,
    /// Whether space can be reserved ahead.
    pub allocates: bool,
    /// Whether the mark on the disk says that the log is open.
    pub mark_is_open: bool,
    pub(super) scratch: Vec<u8>,
    /// Begin of the index's open block.
    pub block_start: u64,
    /// For a reader: the end of what the mark vouches for.
    pub(super) durable: Option<Border>,
    /// For a reader: records before it.
    pub(super) durable_records: u64,
    /// For a reader: whether another program appended since the mark.
    pub(super) is_outdated: bool,
    /// For a reader: byte from which on nothing was acknowledged.
    pub(super) unacknowledged_from: Option<u64>,
    /// For a reader: damage after the extent, or before it.
    pub(super) damage: Option<Damage>,
    /// For a reader: damage after the extent, where that is not all.
    pub(super) after: Option<Damage>,
    /// For a reader: what lies after a gap.
    pub(super) beyond: Option<Beyond>,
}
