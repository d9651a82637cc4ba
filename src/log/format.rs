//! A log and its format. The format says what the log needs besides how records lie in bytes; two of its methods get
//! the open log, so both are in one file.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use super::space::{Place, Space};
use super::state::State;
use super::stats::Counters;
use crate::commit::GroupCommit;
use crate::error::Result;
use crate::lines::Locked;
use crate::locks::Mutex;
use crate::locks::atomic::{AtomicBool, AtomicU64};
use crate::log::extent::Extent;
use crate::log::findings::Findings;
use crate::log::options::Common;
use crate::log::report::RecoveryReport;
use crate::mode::{Depth, Mode};
use crate::scan::Damage;
use crate::scan::framing::Framing;
use crate::sidecar::{Index, Mark, MarkFile, Settings, WriterLock};
use crate::storage::{Access, Closable, File};

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
    /// Where the log ends.
    pub findings: Findings,
    /// The mark, if it is this log's.
    pub mark: Option<Mark>,
    /// What the log was created with, if that is known.
    pub settings: Option<Settings>,
    /// Damage that no record shows and that opening for writing removes.
    pub mended: Vec<Damage>,
    /// What only this format has.
    pub more: F::More,
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
    /// Whether its records have numbers that users see; else they go by their bytes.
    const NUMBERED: bool;
    /// How records lie in bytes.
    type Framing: Framing;
    /// How such a log is opened.
    type Options: Clone + Debug + Send + Sync + 'static;
    /// What [`Format::inspect`] learns for [`Format::before_cut`] and [`Format::after_cut`].
    type More: Debug + Default;
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

    /// What [`VerifyReport::bounds`](crate::VerifyReport::bounds) says.
    fn bounds_of(extent: &Extent) -> (u64, u64);

    /// What a path names; for a new log what the options ask for.
    fn place(options: &Self::Options, path: &std::path::Path) -> Result<Place>;

    /// Refuse what is no log before anything is put beside it.
    fn prepare(_options: &Self::Options, _place: &Place, _mode: Mode) -> Result<()> {
        Ok(())
    }

    /// Whether there is a log.
    fn exists(options: &Self::Options, place: &Place) -> Result<bool>;

    /// Create a log: all of it or nothing.
    fn create(options: &Self::Options, place: &Place) -> Result<()>;

    /// Which files a log has and what they hold; changes nothing.
    fn inspect(
        options: &Self::Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>>;

    /// The options that read a part of the log, which was cut with segments of `_segment_bytes`.
    fn options_of_part(
        options: &Self::Options,
        _place: &Place,
        _segment_bytes: Option<u64>,
    ) -> Result<Self::Options> {
        Ok(options.clone())
    }

    /// Refuse to open for writing what was found.
    fn check_found(
        _options: &Self::Options,
        _place: &Place,
        _found: &Inspected<Self>,
    ) -> Result<()> {
        Ok(())
    }

    /// Whether space may be reserved after the last record while the log is open.
    fn reserves_space(&self) -> bool {
        true
    }

    /// Whether an open mark of an empty log proves that no commit ever returned.
    fn proves_empty(&self) -> bool {
        false
    }

    /// Held by an append and by a sync, where a sync must not cover half of an append's bytes.
    fn turn(&self) -> Option<Locked<'_, ()>> {
        None
    }

    /// Write what must stand before the first record, whose number is `first`.
    fn begin(&self, _file: &dyn File, _first: u64) -> io::Result<()> {
        Ok(())
    }

    /// Have the file say that the records from byte `_from` to the end of `_extent` are the log's: the
    /// last step of an append. What fails leaves the file saying what it said before. `_written` are
    /// their bytes, where they are at hand.
    fn cover(
        &self,
        _file: &dyn File,
        _from: u64,
        _extent: &Extent,
        _written: Option<&[u8]>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Whether what stands before the first record says that the log ends so.
    fn is_sealed(&self, _extent: &Extent) -> bool {
        true
    }

    /// Have the file say that the log ends with `_extent`, before it is cut there on opening. What it
    /// says already is written once more: the last sync may have failed. A format needs this if its
    /// header does not lie in the page of the first record, which opening writes again.
    fn seal(&self, _file: &dyn File, _extent: &Extent) -> io::Result<()> {
        Ok(())
    }

    /// The checksum of a block of records, for the index of a format whose records have none.
    fn block_sum(&self, _file: &dyn File, _block: Range<u64>) -> io::Result<Option<u32>> {
        Ok(None)
    }

    /// Return when the log is durable up to the end of `_upto`.
    fn commit(&self, file: &dyn File, _upto: &Extent) -> io::Result<()> {
        file.sync_data()
    }

    /// Make durable whatever lies from byte `_offset` on, written by any program.
    fn sync_from(&self, file: &dyn File, _offset: u64) -> io::Result<()> {
        file.sync_data()
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

    /// Whether files lie after a gap, which a cut removes.
    fn has_orphans(&self) -> bool {
        false
    }

    /// The files after a gap that hold data.
    fn orphans(&self) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// Rename the files after a gap that hold data, so that no reader takes them for a part of the
    /// log and nothing is lost. Gives their new names.
    fn set_orphans_aside(&self) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// What must be done before a log is cut on opening.
    fn before_cut(
        &self,
        _options: &Self::Options,
        _place: &Place,
        _more: &Self::More,
        _extent: &Extent,
        _report: &mut RecoveryReport,
    ) -> Result<()> {
        Ok(())
    }

    /// Whether [`Format::inspect`] found a cut that is to be brought to its end.
    fn cut_begun(_more: &Self::More) -> bool {
        false
    }

    /// Whether nothing proves that the files are a log: their torn tail is cut only on request.
    fn is_unproved(_more: &Self::More) -> bool {
        false
    }

    /// What must be done once a log is cut on opening.
    fn after_cut(
        &self,
        _options: &Self::Options,
        _place: &Place,
        _more: &Self::More,
        _report: &mut RecoveryReport,
    ) -> Result<()> {
        Ok(())
    }

    /// Close the files that it holds beside the log's.
    fn give_back(&self) {}

    /// What must be done once a log is open for writing.
    fn opened(_log: &Log<Self>) -> Result<()> {
        Ok(())
    }

    /// What may be done after a sync, while the caller holds no lock.
    fn synced(_log: &Shared<Self>) {}

    /// For readers: the byte up to which the file's `_there` bytes are the log's, of which `_known` is
    /// known.
    fn end_now(&self, _file: &dyn File, _known: &Extent, there: u64) -> io::Result<u64> {
        Ok(there)
    }

    /// For readers: the byte at which the log begins now, if that can move.
    fn head_now(_options: &Self::Options, _place: &Place) -> Result<Option<u64>> {
        Ok(None)
    }

    /// For readers: open the files again by their names, which may be other files by now.
    fn reopen(&self) {}

    /// For readers: take over what a later inspection found.
    fn adopt(&self, _found: &Self) {}

    /// For readers of an empty log: the number of the first record, once it is known.
    fn first_now(&self, _file: &Arc<dyn File>, known: u64) -> Result<Option<u64>> {
        Ok(Some(known))
    }
}

/// How a log is opened; the type says of which format it is: [`book::Options`](crate::book::Options)
/// or [`wal::Options`](crate::wal::Options).
pub trait LogOptions: Sized {
    /// The format.
    type Format: Format<Options = Self>;
}

/// An open log. Handles may be shared by threads; clones are the same handle.
#[derive(Clone)]
pub struct Log<F: Format> {
    pub(crate) shared: Arc<Shared<F>>,
    pub(super) _owner: Arc<Owner<F>>,
}

/// Held by every clone of a handle, but not by the thread that syncs in the background: with the
/// last of them the log is closed, whatever that thread is doing.
pub(super) struct Owner<F: Format>(pub(super) Arc<Shared<F>>);

/// What the handles of one log share.
pub struct Shared<F: Format> {
    pub(crate) format: F,
    /// The codec that reads.
    pub(crate) framing: F::Framing,
    /// The codec that checks what is appended.
    pub(crate) appending: F::Framing,
    pub(crate) options: F::Options,
    pub(crate) common: Common,
    pub(crate) mode: Mode,
    pub(crate) place: Place,
    pub(crate) file: Arc<dyn File>,
    /// The file and what lies after a gap, to be given back by closing.
    pub(crate) open_files: Mutex<Vec<Arc<Closable>>>,
    /// Space is reserved at most so far ahead.
    pub(super) piece_bytes: Option<u64>,
    /// At opening.
    pub(super) fork_generation: u64,
    pub(super) closed: AtomicBool,
    pub(super) state: Mutex<State>,
    pub(super) index: Arc<Mutex<Index>>,
    pub(crate) commits: GroupCommit,
    /// For a writer.
    pub(super) durable_records: AtomicU64,
    pub(crate) mark_file: Mutex<Option<MarkFile>>,
    pub(super) lock: Mutex<Option<WriterLock>>,
    /// How often this handle cut the log's end.
    pub(crate) cuts: AtomicU64,
    /// Where it cut.
    pub(crate) cut_ends: Mutex<Vec<u64>>,
    /// Held while a format's own files are read, changed and written.
    pub(crate) exclusive: Mutex<()>,
    /// The thread that syncs every so often.
    pub(super) background: OnceLock<Thread>,
    pub(crate) counters: Counters,
    pub(super) recovery: RecoveryReport,
}
