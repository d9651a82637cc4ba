//! A log and its format. The format says everything about the log except for the layout of records.
//! One method takes the open log, so both are in one file.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use super::evidence::Border;
use super::space::{Beyond, Files, Place, Space};
use super::stats::Counters;
use crate::commit::GroupCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::Mutex;
use crate::ground::locks::atomic::{AtomicBool, AtomicU64};
#[cfg(feature = "arrow")]
use crate::log::arrow::{Column, Value};
use crate::log::extent::Extent;
use crate::log::look::findings::Findings;
use crate::log::options::Common;
use crate::log::report::OpenReport;
use crate::log::seal::{Plain, Seal};
use crate::mode::{Depth, Mode};
use crate::scan::Damage;
use crate::scan::framing::Framing;
use crate::sidecar::{Index, Left, Mark, MarkFile, Settings, WriterLock};
use crate::storage::{Access, Closable, File, FileId};

/// A framing's facts about a record.
pub type FrameOf<F> = <<F as Format>::Framing as Framing>::Frame;

/// The value stored with a payload.
pub type TagOf<F> = <<F as Format>::Framing as Framing>::Tag;

/// A record of a walk: its number, if known, its byte, and the framing's facts.
pub type Stepped<F> = (Option<u64>, u64, FrameOf<F>);

/// A log's files as found, before anything is decided.
#[derive(Debug)]
pub struct Inspected<F: Format> {
    /// The format, with the facts from the files.
    pub format: F,
    /// The log's bytes.
    pub space: Space,
    /// Who says where the log ends.
    pub seal: Arc<dyn Seal>,
    /// The end of the log, and the damage.
    pub findings: Findings,
    /// The log's own mark, if found.
    pub mark: Option<Mark>,
    /// The settings from the log's creation, if known.
    pub settings: Option<Settings>,
    /// Damage that no record shows and opening for writing removes.
    pub mended: Vec<Damage>,
    /// The intent of a truncation, if one exists.
    pub left: Left,
    /// Why the log is only readable: its files have damage that a cut does not repair.
    pub only_readable: Option<String>,
    /// No file proves the presence of a log: opening cuts a torn tail only on request.
    pub unproved: bool,
}

impl<F: Format> Inspected<F> {
    /// A log whose files add no facts to the records.
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

    /// Whether an unfinished truncation waits for an opening.
    pub fn cut_begun(&self) -> bool {
        matches!(self.left, Left::Intent(_))
    }
}

/// A log format. Each method explains its default.
pub trait Format: Clone + Debug + Send + Sync + Sized + 'static {
    /// Name in errors.
    const NAME: &'static str;
    /// The format's noun for a record.
    const NOUN: &'static str;
    /// The option that limits how long a record may be.
    const LIMIT: &'static str = "the limit";
    /// Whether files other than the log and the mark can prove a loss of records. If only the mark
    /// can, a user removes the mark to continue with a backup.
    const HAS_WITNESSES: bool = false;
    /// How much of the files an opening must read to recognise a log without a sidecar.
    const PROVED_BY: Depth = Depth::Begin;
    /// Whether records have numbers for users. If not, bytes identify records.
    const NUMBERED: bool;
    /// How records lie in bytes.
    type Framing: Framing;
    /// How such a log is opened.
    type Options: Clone + Debug + Send + Sync + 'static;
    /// A record as cursors give it.
    type Ref<'a>;
    /// A record as iterators give it.
    type Owned: 'static;
    /// The columns of an Arrow batch.
    #[cfg(feature = "arrow")]
    const COLUMNS: &'static [Column] =
        &[("offset", Value::Offset), ("payload", Value::Payload), ("length", Value::Length)];
    /// The columns that readers get by default.
    #[cfg(feature = "arrow")]
    const DEFAULT_COLUMNS: &'static [&'static str] = &["offset", "payload"];

    /// The codec for reading this log.
    fn framing(&self) -> Self::Framing;

    /// The codec for appending, which may have a lower limit.
    fn appending(&self, _options: &Self::Options) -> Self::Framing {
        self.framing()
    }

    /// The options that all formats share; fails for options without sense.
    fn common(options: &Self::Options) -> Result<Common>;

    /// The settings of a new log, to be stored in `.deedbook`.
    fn settings(&self) -> Settings;

    /// A record for a caller.
    fn show(
        ordinal: Option<u64>,
        offset: u64,
        frame: FrameOf<Self>,
        record: &[u8],
    ) -> Self::Ref<'_>;

    /// A record for a caller, with its own memory.
    fn own(record: Self::Ref<'_>) -> Self::Owned;

    /// A record's name in errors: `deed 812`, `record at lsn 4096`.
    fn name_of(ordinal: Option<u64>, offset: u64) -> String;

    /// The place that a path names. The options decide about the place of a new log.
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

    /// Open the files of a log and look at their content. Changes nothing. An opening calls this
    /// method once, for writing under the lock, and opens the files nowhere else.
    /// [`ErrorKind::Missing`](crate::ErrorKind::Missing) says that no log is or was there.
    fn inspect(
        options: &Self::Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>>;

    /// Refuse to open the found log, or to create a log if none was found.
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

    /// Tend to an open log, after an opening for writing and after each sync. The caller holds no
    /// lock. Only a WAL does something: a WAL drops the records that its retention allows. The
    /// background thread calls this after its syncs, too.
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
    /// The part that all handles share.
    pub shared: Arc<Shared<F>>,
    pub(super) _owner: Arc<Owner<F>>,
}

/// Held by every clone of a handle, but not by the background thread. When the last clone is
/// dropped, the log closes, whatever the thread is doing.
pub(super) struct Owner<F: Format>(pub(super) Arc<Shared<F>>);

/// The part that all handles of a log share.
pub struct Shared<F: Format> {
    pub format: F,
    /// The codec that reads.
    pub framing: F::Framing,
    /// The codec for appending.
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
    /// The file, and the file with the bytes after a gap. Closing gives both back.
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
    /// The thread for timed syncs.
    pub(super) background: OnceLock<Thread>,
    pub counters: Counters,
    pub recovery: OpenReport,
}

/// The state that appends change. A reader's state is from its last look.
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
    /// For a reader: the end of the mark's records.
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
    /// For a reader: the segments after a gap.
    pub(super) beyond: Option<Beyond>,
}
