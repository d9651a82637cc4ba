//! The work of the functions, without C: the rules of vere's own code, over [`Book`].

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deedbook::book::{Book, BookFormat, Deed, LOG_NAME, Layout, Meta, Options, epoch_in_name};
use deedbook::report::Repair;
use deedbook::{Batch, Cursor, Error, ErrorKind, Mode, OnCorrupt, Recovery, Result};

/// Bytes of the mug at the begin of a buffer.
const MUG_BYTES: usize = 4;
/// A longer batch gives its memory back.
const SPARE_BYTES_MAX: usize = 32 << 20;

/// An open log.
pub struct Log {
    book: Book,
    /// The memory of the last batch. New memory of such a size comes in zeroed pages, which cost
    /// more than the rest of a save.
    spare: Mutex<Option<Batch<BookFormat>>>,
}

/// A walk over events, all present when the walk began.
pub struct Walk {
    cursor: Cursor<BookFormat>,
}

/// The options of opening a log. An existing log keeps its layout; a new log in a directory named
/// `0iN` gets the layout of vere's head. Not `Recovery::Spec`, which cuts the same bytes: `Valid`
/// first refuses the log, and the refusal can be printed.
pub fn options(path: &Path) -> Options {
    let is_new = path.join(LOG_NAME).metadata().map_or(true, |log| log.len() == 0);
    let in_slots = is_new && epoch_in_name(path).is_some();
    let layout = in_slots.then_some(Layout::Slots);
    Options::new().recovery(Recovery::Valid).layout(layout)
}

impl Log {
    fn of(book: Book) -> Self {
        Self { book, spare: Mutex::new(None) }
    }

    /// Open a log, or create a missing one. Vere goes on with the intact events after any loss. A
    /// log refused for damage is therefore repaired: the cut bytes are saved next to the log, and
    /// the loss is noted.
    pub fn init(path: &Path) -> Result<Self> {
        let options = options(path);
        let open = || options.open(path, Mode::Append);
        let book = match open() {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LostRecords) => {
                let how = Repair { force: true, accept_loss: true, dry_run: false };
                options.repair(path, how)?;
                complain(&format!("{error}; going on with what is intact"));
                open()?
            }
            opened => opened?,
        };
        Ok(Self::of(book))
    }

    /// Open a log without the rules of vere: a log with damage is refused, and stays as it is.
    pub fn open(path: &Path, options: &Options, mode: Mode) -> Result<Self> {
        options.open(path, mode).map(Self::of)
    }

    /// Wait until all appends are on stable storage.
    pub fn sync(&self) -> Result<()> {
        self.book.sync()
    }

    /// Close the log.
    pub fn exit(&self) -> Result<()> {
        self.book.close_keeping_files()
    }

    /// First and last event; zeros without events. In the layout `slots`, the event before the
    /// first one instead of the first: vere's head returns its header's value, and the callers
    /// know.
    pub fn gulf(&self) -> Result<(u64, u64)> {
        let Some(bounds) = self.book.bounds()? else { return Ok((0, 0)) };
        let before = u64::from(self.book.layout() == Layout::Slots);
        Ok((bounds.start().saturating_sub(before), *bounds.end()))
    }

    /// Append events, each with its mug. The first one must get the number `event`.
    pub fn save(&self, event: u64, events: &[&[u8]], epoch: u64) -> Result<()> {
        // In a log with events, only the number is compared, as in vere. In an empty log, the first
        // event must follow its epoch.
        let epoch = self.book.bounds()?.is_none().then_some(epoch);
        if let [alone] = events {
            let (mug, jam) = mug_and_jam(event, alone)?;
            return self.book.append_at(mug, jam, event, epoch).map(drop);
        }
        let spare = self.spare().take();
        let mut batch = spare.unwrap_or_else(|| self.book.batch());
        for (at, buffer) in events.iter().enumerate() {
            let (mug, jam) = mug_and_jam(event.saturating_add(at as u64), buffer)?;
            batch.push(mug, jam)?;
        }
        self.book.append_batch(&batch, Some(event), epoch)?;
        if batch.bytes_len() <= SPARE_BYTES_MAX {
            batch.clear();
            *self.spare() = Some(batch);
        }
        Ok(())
    }

    fn spare(&self) -> MutexGuard<'_, Option<Batch<BookFormat>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events from `first` to `last`, both included. All of them must be in the log.
    pub fn walk(&self, first: u64, last: u64) -> Result<Walk> {
        let refuse = |message| Err(Error::new(ErrorKind::OutOfRange, message));
        let Some(bounds) = self.book.bounds()? else {
            return refuse(format!("no event {first}, the log is empty"));
        };
        let (low, high) = (bounds.start(), bounds.end());
        if !bounds.contains(&first) || !bounds.contains(&last) || first > last {
            return refuse(format!("no events {first} to {last}, the log has {low} to {high}"));
        }
        let cursor = self.book.cursor(first..=last, OnCorrupt::Raise)?;
        Ok(Walk { cursor })
    }

    /// The bytes of a key of the metadata; zeros where nothing was saved.
    pub fn read_meta(&self, key: &str) -> Result<Vec<u8>> {
        let bytes = self.book.read_meta(key)?;
        // A file never saved reads as zeros, as many as the key's size.
        Ok(bytes.unwrap_or_else(|| vec![0; size_of_key(key)]))
    }

    /// Change a key of the metadata.
    pub fn save_meta(&self, key: &str, value: &[u8]) -> Result<()> {
        let wrong = |size: usize| {
            let message = format!("metadata {key:?} of {} bytes, must be {size}", value.len());
            Error::new(ErrorKind::InvalidArgument, message)
        };
        let mut meta = Meta::default();
        match key {
            "who" => {
                let bytes = value.try_into().map_err(|_| wrong(16))?;
                meta.who = Some(u128::from_le_bytes(bytes));
            }
            "fake" => {
                let [loobean] = <[u8; 1]>::try_from(value).map_err(|_| wrong(1))?;
                meta.fake = Some(loobean == 0);
            }
            "version" | "life" => {
                let number = u32::from_le_bytes(value.try_into().map_err(|_| wrong(4))?);
                let field = if key == "life" { &mut meta.life } else { &mut meta.version };
                *field = Some(number);
            }
            // Refuses the key.
            _ => return self.book.read_meta(key).map(drop),
        }
        self.book.save_meta(&meta)
    }
}

impl Walk {
    /// The next event with its mug, in one buffer; `None` after the last one.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(Deed { event, mug, jam, .. }) = self.cursor.next()? else { return Ok(None) };
        Ok(Some((event.unwrap_or(0), [&mug.to_le_bytes()[..], jam].concat())))
    }
}

fn mug_and_jam(event: u64, buffer: &[u8]) -> Result<(u32, &[u8])> {
    let Some((mug, jam)) = buffer.split_first_chunk::<MUG_BYTES>() else {
        let message = format!("event {event} of {} bytes, 4 at least", buffer.len());
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    };
    Ok((u32::from_le_bytes(*mug), jam))
}

/// The facts about a log, in lines.
pub fn stat(path: &Path) -> Result<Vec<String>> {
    let book = Book::open(path)?;
    let (first, last) = book.bounds()?.map_or((0, 0), |bounds| (*bounds.start(), *bounds.end()));
    let recovery = book.recovery();
    let meta = book.meta()?;
    let mut lines = vec![
        format!("  file: {}", book.path().display()),
        format!("  layout: {}", book.layout().name()),
        format!("  first event: {first}"),
        format!("  last event: {last}"),
        format!("  file size: {} bytes, {} of them events", recovery.file_end, book.end()?),
        format!("  left: {}", recovery.verdict.name()),
    ];
    if let Some(who) = meta.who {
        lines.push(format!("  who: {who:#x}"));
        lines.push(format!("  version: {}", meta.version.unwrap_or(0)));
        lines.push(format!("  fake: {}", if meta.fake == Some(true) { "yes" } else { "no" }));
        lines.push(format!("  life: {}", meta.life.unwrap_or(0)));
    }
    Ok(lines)
}

/// A line on standard error.
pub fn complain(what: &str) {
    use std::io::Write;
    // If nobody reads standard error, the return value still reports the failure.
    let _ = writeln!(std::io::stderr(), "book: {what}");
}

fn size_of_key(key: &str) -> usize {
    match key {
        "who" => 16,
        "fake" => 1,
        _ => 4,
    }
}
