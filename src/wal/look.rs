//! Looking at a log before anything is decided: which files, where its head is, what the mark
//! says. Changes nothing.

use std::io;
use std::sync::Arc;

use super::format::{Codec, FORMAT, HEADER_BYTES, RECORD_BYTES_MAX, SEGMENT_BYTES, segment_name};
use super::intent::{Intent, Left};
use super::options::{Layout, Options, Recovery};
use super::place::{Head, Place, Surveyed, segment_bytes_of, survey};
use super::recover::{Findings, Subject, look};
use super::segments::Segments;
use super::settings::Settings;
use crate::error::{Error, ErrorKind, Result};
use crate::mode::Depth;
use crate::scan::{Damage, Found as Walked, Scanner, Stop, Verdict};
use crate::sidecar::{Found, Mark, MarkFile, MarkUse};
use crate::storage::{Access, File, read_full};

/// A log that was looked at, before anything is decided.
pub struct Looked {
    pub file: Arc<dyn File>,
    pub segments: Option<Arc<Segments>>,
    pub layout: Layout,
    pub codec: Codec,
    pub settings: Option<Settings>,
    pub findings: Findings,
    /// The mark, if it is this log's.
    pub mark: Option<Mark>,
    /// Segments below the head that a crash brought back.
    pub below: Vec<u64>,
    /// The head is known from the mark alone.
    pub head_lost: bool,
    /// A truncation of the end was begun: everything from there on is to be cut.
    pub cut_begun: bool,
    /// What lies where such an intent would is none, or another log's.
    pub foreign_cut: bool,
    /// Byte behind the last one there is, also behind a gap or what is to be cut.
    pub whole_end: u64,
}

impl Looked {
    /// The damage behind the valid prefix, unless that is a torn tail.
    pub fn damage(&self) -> Option<Damage> {
        self.findings.damage.clone().filter(|_| self.findings.verdict == Verdict::Corrupt)
    }

    /// Make the log durable from byte `offset` on, whoever wrote it.
    pub fn sync_from(&self, offset: u64) -> io::Result<()> {
        match &self.segments {
            Some(segments) => segments.sync_from(offset),
            None => self.file.sync_data(),
        }
    }
}

/// The error of a log that is not there.
pub fn missing(place: &Place) -> Error {
    let message = match place.single {
        true => "no such file",
        false => "no log: the directory has no segments",
    };
    Error::new(ErrorKind::Missing, message).at(&place.log)
}

/// Look at a log; changes nothing.
pub fn look_at(options: &Options, place: &Place, access: Access, depth: Depth) -> Result<Looked> {
    options.check()?;
    let storage = &*options.storage;
    let settings = Settings::load(storage, &place.sidecar)?;
    if let Some(settings) = settings {
        settings.check_layout(options.layout, &place.log)?;
    }
    let asked = options.record_bytes_max;
    let limit = settings.map_or(asked.unwrap_or(RECORD_BYTES_MAX), |settings| {
        settings.record_bytes_max.max(asked.unwrap_or(0))
    });
    let codec = Codec::new(limit);
    let found = MarkFile::load(storage, &place.sidecar)
        .map_err(|e| Error::io("read the mark", &place.sidecar, e))?;
    let mark = match found {
        Found::Mark(mark) => Some(mark),
        Found::Missing | Found::Damaged => None,
    };
    let view = Looking { options, place, access, depth, codec, settings, mark };
    let damaged = found == Found::Damaged;
    if place.single {
        return view.single(damaged);
    }
    let indices = place.indices(storage)?;
    let marker = place.head(storage)?;
    if indices.is_empty() && marker == Head::Absent {
        return Err(match mark.filter(|mark| mark.end > 0) {
            Some(mark) => lost_log(place, &mark),
            None => missing(place),
        });
    }
    let told = options.layout.and_then(Layout::segment_bytes);
    let kept = settings.and_then(|settings| settings.segment_bytes);
    let segment_bytes = match told.or(kept) {
        Some(bytes) => bytes,
        None => segment_bytes_of(place, storage, &indices, SEGMENT_BYTES)?,
    };
    let why = match marker {
        Head::At(head) => return view.segmented(&indices, head, segment_bytes, damaged),
        Head::Absent => "there is no head marker".to_string(),
        Head::Damaged(why) => format!("the head marker is damaged: {why}"),
    };
    // What the marker said may still be known to the mark, if that is this log's.
    if let Some(mark) = mark.filter(|mark| mark.start > 0)
        && let Ok(mut looked) = view.segmented(&indices, mark.start, segment_bytes, damaged)
        && looked.findings.mark == MarkUse::Used
    {
        looked.head_lost = true;
        return Ok(looked);
    }
    if indices.first() != Some(&0) {
        let message = format!(
            "{why}, and {} is missing: where the first record begins is not known",
            segment_name(0)
        );
        return Err(Error::new(ErrorKind::Corrupt, message).at(&place.log));
    }
    view.segmented(&indices, 0, segment_bytes, damaged)
}

struct Looking<'a> {
    options: &'a Options,
    place: &'a Place,
    access: Access,
    depth: Depth,
    codec: Codec,
    settings: Option<Settings>,
    mark: Option<Mark>,
}

impl Looking<'_> {
    fn single(&self, damaged_mark: bool) -> Result<Looked> {
        let log = &self.place.log;
        let opened = self.options.storage.open(log, self.access);
        let gone = opened.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        if let (true, Some(mark)) = (gone, self.mark.filter(|mark| mark.end > 0)) {
            return Err(lost_log(self.place, &mark));
        }
        let file: Arc<dyn File> = Arc::from(opened.map_err(|e| Error::io("open the log", log, e))?);
        let end = file.len().map_err(|e| Error::io("look at the log", log, e))?;
        let surveyed = Surveyed { end, ..Surveyed::default() };
        let looked = self.at(file, None, Layout::Single, 0, surveyed, damaged_mark)?;
        let known = self.settings.is_some() || looked.findings.mark != MarkUse::Missing;
        if known || self.options.recovery == Recovery::Spec {
            return Ok(looked);
        }
        match why_no_log(&looked).map_err(|e| Error::io("read the log", log, e).of(FORMAT))? {
            None => Ok(looked),
            Some(why) => {
                let message = format!("not a write-ahead log: no intact record, at byte 0 {why}");
                Err(Error::new(ErrorKind::NotALog, message).of(FORMAT).at(log).offset_at(0))
            }
        }
    }

    fn segmented(
        &self,
        indices: &[u64],
        head: u64,
        segment_bytes: u64,
        damaged_mark: bool,
    ) -> Result<Looked> {
        let storage = &self.options.storage;
        let found = survey(self.place, &**storage, indices, head, segment_bytes)?;
        let segments = Arc::new(Segments::new(
            storage.clone(),
            &self.place.dir,
            segment_bytes,
            self.access,
            self.options.file_mode,
            found.extent.clone(),
        ));
        let layout = Layout::Segmented { segment_bytes };
        self.at(segments.clone(), Some(segments), layout, head, found, damaged_mark)
    }

    fn at(
        &self,
        file: Arc<dyn File>,
        segments: Option<Arc<Segments>>,
        layout: Layout,
        head: u64,
        surveyed: Surveyed,
        damaged_mark: bool,
    ) -> Result<Looked> {
        let Self { place, codec, depth, .. } = *self;
        let fail = |e: io::Error| Error::io("read the log", &place.log, e).of(FORMAT);
        let whole_end = surveyed.end;
        let left = Intent::load(&*self.options.storage, &place.sidecar)?;
        let whole = Subject { file: &*file, file_end: whole_end, head, codec, gap: None };
        let intent = match left {
            Left::Intent(intent) if is_ours(whole, &intent).map_err(fail)? => Some(intent),
            _ => None,
        };
        let end = intent.map_or(whole_end, |intent| intent.end.min(whole_end));
        let above = |mark: &Mark| intent.is_some_and(|intent| mark.end > intent.end);
        let mark = self.mark.filter(|mark| !above(mark));
        let gap = surveyed.gap.as_deref().filter(|_| intent.is_none());
        let subject = Subject { file: &*file, file_end: end, head, codec, gap };
        let findings = look(subject, mark, damaged_mark, depth).map_err(fail)?;
        let known = matches!(findings.mark, MarkUse::Used | MarkUse::Lost);
        // The next mark takes over the index of one that is used.
        let renumbered = findings.mark == MarkUse::Used && !findings.numbered_by_mark;
        let without_index = |mark| Mark { index_entries: 0, index_chain: 0, ..mark };
        Ok(Looked {
            file,
            segments,
            layout,
            codec,
            settings: self.settings,
            findings,
            mark: mark
                .filter(|_| known)
                .map(|mark| if renumbered { without_index(mark) } else { mark }),
            below: surveyed.below,
            head_lost: false,
            cut_begun: intent.is_some(),
            foreign_cut: intent.is_none() && left != Left::Absent,
            whole_end,
        })
    }
}

/// Why a file that nothing beside it knows is no log at all: nothing in it is intact, and it does not
/// begin like a record that a crash left incomplete. It is something that was named by mistake, and
/// opening it for writing must not cut it away as a torn tail.
fn why_no_log(looked: &Looked) -> io::Result<Option<String>> {
    let Findings { tip, verdict, data_end, file_end, .. } = looked.findings;
    if verdict != Verdict::Torn || tip.records > 0 || data_end == 0 {
        return Ok(None);
    }
    let Walked::Stop { why, .. } = Scanner::new(looked.codec, 0, file_end).next(&*looked.file)?
    else {
        return Ok(None);
    };
    let torn = match &why {
        Stop::Incomplete { .. } => true,
        Stop::Blank => false,
        Stop::Bad(bad) if bad.what == "length" => false,
        Stop::Bad(_) => {
            let mut header = [0; HEADER_BYTES as usize];
            read_full(&*looked.file, &mut header, 0)?;
            let [_, _, _, _, length @ ..] = header;
            HEADER_BYTES + u64::from(u32::from_le_bytes(length)) >= data_end
        }
    };
    Ok((!torn).then(|| why.reason()))
}

/// Whether the intent was made for this log: the same file that begins at the same byte with the same
/// record, and has the one that is to be the last. Of a log that is to be emptied the first record may
/// be gone already, or torn if it never was durable, but no other one can have come in its place.
fn is_ours(log: Subject<'_>, intent: &Intent) -> io::Result<bool> {
    let Subject { file, file_end, head, codec, .. } = log;
    let within = (head..=file_end).contains(&intent.end);
    if intent.start != head || !within || !intent.file.is_still(file.id()?) {
        return Ok(false);
    }
    if intent.end == head {
        return Ok(match Scanner::new(codec, head, file_end).next(file)? {
            Walked::Record { frame, .. } => frame.crc == intent.first_sum,
            Walked::Stop { .. } | Walked::End => true,
        });
    }
    if intent.last_offset < head || intent.last_offset >= intent.end {
        return Ok(false);
    }
    if stored_sum(file, head)? != Some(intent.first_sum) {
        return Ok(false);
    }
    let mut scanner = Scanner::new(codec, intent.last_offset, intent.end);
    let Walked::Record { frame, .. } = scanner.next(file)? else { return Ok(false) };
    Ok(frame.crc == intent.last_sum && scanner.position() == intent.end)
}

/// The checksum that a record's header has, whether it fits the payload or not.
pub fn stored_sum(file: &dyn File, offset: u64) -> io::Result<Option<u32>> {
    let mut sum = [0; 4];
    let read = read_full(file, &mut sum, offset)?;
    Ok((read == sum.len()).then_some(u32::from_le_bytes(sum)))
}

/// The error of a log that is gone while its mark says what was in it.
pub fn lost_log(place: &Place, mark: &Mark) -> Error {
    let message = format!(
        "lost acknowledged records: the log is missing or empty, {} records up to byte {} were \
         acknowledged; if it was removed on purpose, remove .deedbook beside it",
        mark.records, mark.end
    );
    Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(&place.log).offset_at(0)
}
