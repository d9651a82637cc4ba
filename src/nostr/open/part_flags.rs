//! Flags that the write-ahead log has, for a segment that is read alone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use super::logged_flags::{Hiding, hide, last_events, logged_flags};
use super::look::look;
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::Id;
use crate::nostr::log::entry::{HEADER_BYTES, WAL_NAME, file_name};
use crate::nostr::log::files::numbers;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::segment::Segment;
use crate::nostr::pages::segments::Segments;
use crate::storage::end_of_data;
use crate::storage::{Access, Storage, read_full};

/// Have a segment that is read alone, as a part of its store, hide what the write-ahead log says is replaced or
/// deleted. Parts that are read one after the other share a reading of the log.
pub fn hide_logged_in(options: &Options, segment: Segment) -> Result<Segment> {
    let Some(dir) = segment.path().ancestors().nth(3).map(Path::to_owned) else {
        return Ok(segment);
    };
    let mut segments = Segments::new(&dir, options.storage.clone());
    if segment.path().parent() != Some(&*segments.dir) {
        return Ok(segment);
    }
    let id = segment.header().segment;
    // What is wrong with others does not concern this one.
    let unless_io = |e: Error| if e.kind() == ErrorKind::Io { Err(e) } else { Ok(()) };
    let files = segments.list().or_else(|e| unless_io(e).map(|()| BTreeMap::new()))?;
    if let Some((&last, path)) = files.last_key_value().filter(|(last, _)| **last > id) {
        segments.open(last, path, Access::Read, options).or_else(unless_io)?;
    }
    segments.insert(id, segment.clone());
    if options.storage.is_dir(&dir.join(WAL_NAME)) {
        let last = last_events(&segments)?;
        let read = LogRead::of(options, &dir, id, last)?;
        let logged = match read.kept() {
            Some(logged) => logged,
            None => {
                let (mut logged, has_more) = logged_flags(&read.last, options, &dir, &segments)?;
                if has_more && let Some(segment) = of_reader(options, &dir, id)? {
                    return Ok(segment);
                }
                logged.retain(|at, _| at.segment == id);
                let logged = Arc::new(logged);
                read.keep(logged.clone());
                logged
            }
        };
        hide(&logged, &mut segments)?;
    }
    Ok(segments.by_id.remove(&id).map_or(segment, |open| open.segment))
}

/// The segment as a reader of the whole store has it. `None` if the store is refused: damage in other segments does not
/// concern this segment.
fn of_reader(options: &Options, dir: &Path, id: u32) -> Result<Option<Segment>> {
    match look(dir, options, true) {
        Err(e) if e.kind() == ErrorKind::Io => Err(e),
        Err(_) => Ok(None),
        Ok((_, mut state)) => Ok(state.segments.by_id.remove(&id).map(|open| open.segment)),
    }
}

/// The flags that the last part took from the log: the next part of the same segment needs the same.
static KEPT: Mutex<Option<(LogRead, Arc<Hiding>)>> = Mutex::new(None);

/// Identifies a segment and the log at one moment. A log only grows, or goes on in another file.
struct LogRead {
    storage: Weak<dyn Storage>,
    dir: PathBuf,
    segment: u32,
    last: Vec<Id>,
    /// The numbers and sizes of the files.
    files: Vec<(u64, u64)>,
    /// The header of the newest file.
    header: [u8; HEADER_BYTES],
    /// The byte at which its entries end, and the 8 bytes before it.
    end: (u64, [u8; 8]),
}

impl LogRead {
    fn of(options: &Options, dir: &Path, segment: u32, last: Vec<Id>) -> Result<Self> {
        let (storage, wal_dir) = (Arc::downgrade(&options.storage), dir.join(WAL_NAME));
        let (mut files, mut header, mut end) = (Vec::new(), [0; HEADER_BYTES], (0, [0; 8]));
        for number in numbers(&*options.storage, &wal_dir)? {
            let path = wal_dir.join(file_name(number));
            let failed = |e| Error::io("read the log", &path, e);
            let file = match options.storage.open(&path, Access::Read) {
                // It was removed meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                file => file.map_err(failed)?,
            };
            let len = file.len().map_err(failed)?;
            files.push((number, len));
            // Room is reserved after the entries.
            end.0 = end_of_data(&*file, 0, len).map_err(failed)?;
            read_full(&*file, &mut end.1, end.0.saturating_sub(8)).map_err(failed)?;
            read_full(&*file, &mut header, 0).map_err(failed)?;
        }
        Ok(Self { storage, dir: dir.to_owned(), segment, last, files, header, end })
    }

    /// The flags, if they were kept. None while another thread holds the lock: a child that was forked meanwhile
    /// would wait for ever.
    fn kept(&self) -> Option<Arc<Hiding>> {
        let kept = KEPT.try_lock().ok()?;
        kept.as_ref().filter(|(read, _)| read == self).map(|(_, logged)| logged.clone())
    }

    fn keep(self, logged: Arc<Hiding>) {
        if let Ok(mut kept) = KEPT.try_lock() {
            *kept = Some((self, logged));
        }
    }
}

impl PartialEq for LogRead {
    fn eq(&self, other: &Self) -> bool {
        let of_log = |read: &Self| (read.header, read.end, read.segment);
        of_log(self) == of_log(other)
            && (&self.files, &self.last) == (&other.files, &other.last)
            && self.dir == other.dir
            && std::ptr::addr_eq(self.storage.as_ptr(), other.storage.as_ptr())
    }
}
