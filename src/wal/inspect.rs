//! The inspection of a log's files: a single file or segments, the end, and the leftovers of a
//! crash or a copy. Changes nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::codec::{Codec, FORMAT, SEGMENT_BYTES, segment_name};
use super::files::{Segments, check_segments, indices, segment_bytes_of};
use super::format::WalFormat;
use super::options::{Layout, Options};
use super::proof::{check_is_log, is_ours};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Beyond, Files, Inspected, Known, Place, Space, find_end, is_of_another_file};
use crate::mode::Depth;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{Intent, Left, Mark, MarkUse, Settings, refuse_other_format};
use crate::storage::Access;
use crate::storage::segmented::Segmented;
use crate::storage::segmented::head::Head;

/// The error of a log that is not there.
fn missing(place: &Place) -> Error {
    let message = match place.single {
        true => "no such file",
        false => "no log: the directory has no segments",
    };
    Error::new(ErrorKind::Missing, message).at(&place.log)
}

/// The error of a missing log whose mark counts records.
fn lost_log(place: &Place, mark: &Mark) -> Error {
    let message = format!(
        "lost acknowledged records: the log is missing or empty, but {} records up to byte {} were \
         acknowledged; if the log was removed or a backup restored on purpose, remove the log's \
         .deedbook",
        mark.records, mark.end
    );
    Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(&place.log).offset_at(0)
}

/// Refuse a layout that is not the log's.
fn check_layout(settings: Option<Settings>, asked: Option<Layout>, log: &Path) -> Result<()> {
    let kept = settings.and_then(|settings| settings.segment_bytes);
    match (asked.and_then(Layout::segment_bytes), kept) {
        (Some(asked), Some(has)) if asked != has => {
            let message = format!("segment size {asked} asked for, the log has {has}");
            Err(Error::new(ErrorKind::InvalidArgument, message).at(log))
        }
        _ => Ok(()),
    }
}

/// A look at the files of one log.
pub(super) struct Look<'a> {
    pub(super) options: &'a Options,
    pub(super) place: &'a Place,
    pub(super) access: Access,
    pub(super) depth: Depth,
    pub(super) codec: Codec,
    pub(super) settings: Option<Settings>,
    pub(super) mark: Option<Mark>,
    pub(super) damaged_mark: bool,
}

impl Look<'_> {
    pub(super) fn single(&self) -> Result<Inspected<WalFormat>> {
        let log = &self.place.log;
        let opened = self.place.open(&*self.options.storage, self.access);
        let gone = opened.as_ref().is_err_and(|e| e.kind() == ErrorKind::Missing);
        match self.mark.filter(|mark| gone && mark.end > 0) {
            Some(mark) => return Err(lost_log(self.place, &mark)),
            None if gone => return Err(missing(self.place)),
            None => {}
        }
        let file = opened?;
        let end = file.len().map_err(|e| Error::io("look at the log", log, e))?;
        let format = WalFormat::new(self.codec, Layout::Single);
        self.at(format, Space::new(file, 0, end))
    }

    pub(super) fn segmented(&self) -> Result<Inspected<WalFormat>> {
        let (place, storage) = (self.place, &*self.options.storage);
        let indices = indices(storage, place)?;
        let marker = Head::load(storage, &place.dir)?;
        if indices.is_empty() && marker == Head::Absent {
            refuse_other_format(storage, &place.dir, FORMAT)?;
            return Err(match self.mark.filter(|mark| mark.end > 0) {
                Some(mark) => lost_log(place, &mark),
                None => missing(place),
            });
        }
        check_layout(self.settings, self.options.layout, &place.log)?;
        let named = self.options.layout.and_then(Layout::segment_bytes);
        let kept = self.settings.and_then(|settings| settings.segment_bytes);
        let segment_bytes = match named.or(kept) {
            Some(bytes) => bytes,
            None => segment_bytes_of(place, storage, &indices, SEGMENT_BYTES)?,
        };
        let why = match marker {
            Head::At(head) => {
                let above = indices.last().is_some_and(|&last| last >= head / segment_bytes);
                if above || head.is_multiple_of(segment_bytes) {
                    return self.with_head(&indices, head, segment_bytes);
                }
                let message = format!("the head is byte {head}, but the log ends before it");
                return self.without_head(&indices, segment_bytes, message);
            }
            Head::Absent => "there is no head marker".to_string(),
            Head::Damaged(why) => format!("the head marker is damaged: {why}"),
        };
        // The log's own mark may still know the head.
        if let Some(mark) = self.mark.filter(|mark| mark.start > 0)
            && let Ok(mut found) = self.with_head(&indices, mark.start, segment_bytes)
            && self.has_head_of(&found, &mark)?
        {
            found.space.head_is_lost = true;
            found.mended.push(Damage {
                offset: mark.start,
                end: mark.start,
                reason: format!("{why}; the mark says that the log begins at byte {}", mark.start),
                next_intact: Some(mark.start),
                next_proved: true,
                ..Damage::default()
            });
            return Ok(found);
        }
        let mut found = self.with_head(&indices, 0, segment_bytes)?;
        if indices.first() != Some(&0) {
            // Intact records are readable all the same.
            let message = format!(
                "{why}, and {} is missing: where the first record begins is not known",
                segment_name(0)
            );
            refuse_writing(&mut found, message);
        }
        Ok(found)
    }

    /// Whether the log begins at the mark's begin. Later records may be damaged or missing: without
    /// the mark's head, dropped records would come back.
    fn has_head_of(&self, found: &Inspected<WalFormat>, mark: &Mark) -> Result<bool> {
        let Inspected { findings, space, .. } = found;
        Ok(match findings.mark {
            MarkUse::Used => true,
            MarkUse::Lost if findings.extent.records == 0 => {
                let another = is_of_another_file(space, mark);
                !another.map_err(|e| Error::io("look at the log", &self.place.log, e))?
            }
            MarkUse::Lost => true,
            // The intent of a cut is the log's, and has the same head.
            _ => found.cut_begun(),
        })
    }

    /// From the first segment there is, for reading.
    fn without_head(
        &self,
        indices: &[u64],
        segment_bytes: u64,
        message: String,
    ) -> Result<Inspected<WalFormat>> {
        let first = indices.first().copied().unwrap_or(0);
        let start = first.saturating_mul(segment_bytes).min(1 << 62);
        let mut found = self.with_head(indices, start, segment_bytes)?;
        refuse_writing(&mut found, message);
        Ok(found)
    }

    fn with_head(
        &self,
        indices: &[u64],
        head: u64,
        segment_bytes: u64,
    ) -> Result<Inspected<WalFormat>> {
        let storage = &self.options.storage;
        let found =
            check_segments(self.place, &**storage, indices, head, segment_bytes, self.access)?;
        let Segments { extent, end, gap, only_readable, fits } = found;
        let segments = Arc::new(Segmented::new(
            storage.clone(),
            &self.place.dir,
            segment_name,
            segment_bytes,
            self.access,
            self.options.file_mode,
            extent,
        ));
        let beyond = match gap.is_some() && self.access == Access::Read {
            true => {
                let (whole, end) = segments
                    .with_orphans()
                    .map_err(|e| Error::io("look at the segments", &self.place.dir, e))?;
                Some(Beyond { file: Arc::new(whole), end })
            }
            false => None,
        };
        let layout = Layout::Segmented { segment_bytes };
        let format = WalFormat::new(self.codec, layout);
        let space = Space {
            files: Files::Segments(segments.clone()),
            gap: gap.clone(),
            beyond,
            piece_bytes: Some(segment_bytes),
            ..Space::new(segments, head, end)
        };
        let mut found = self.at(format, space)?;
        if let Some(gap) = gap.filter(|_| only_readable) {
            if self.options.layout.is_some() && !fits {
                // No segment has the size that the caller named: the files are another log's.
                let known = self.settings.is_some() || self.mark.is_some();
                let kind = if known { ErrorKind::Corrupt } else { ErrorKind::NotALog };
                return Err(Error::new(kind, gap).at(&self.place.log));
            }
            refuse_writing(&mut found, gap);
        }
        if found.findings.verdict == Verdict::Torn {
            // The first damage ends the log, and so does the gap.
            found.space.beyond = None;
        }
        Ok(found)
    }

    fn at(&self, format: WalFormat, mut space: Space) -> Result<Inspected<WalFormat>> {
        let Self { place, codec, depth, damaged_mark, settings, .. } = *self;
        let fail = |e: io::Error| Error::io("read the log", &place.log, e).of(FORMAT);
        let left = match Intent::load(&*self.options.storage, &place.sidecar)? {
            Left::Intent(intent) if !is_ours(&space, codec, &intent).map_err(fail)? => {
                Left::Foreign
            }
            left => left,
        };
        if let Left::Intent(intent) = &left {
            space.end = intent.end.min(space.end);
            space.gap = None;
            space.beyond = None;
        }
        let above = |mark: &Mark| matches!(left, Left::Intent(intent) if mark.end > intent.end);
        let mark = self.mark.filter(|mark| !above(mark));
        let known = Known { mark, damaged_mark, first: None, is_ours: false, depth };
        let findings = find_end(&format, &space, known).map_err(fail)?;
        // The next mark takes over the index of a used mark.
        let renumbered = findings.mark == MarkUse::Used && !findings.numbered_by_mark;
        let without_index = |mark| Mark { index_entries: 0, index_chain: 0, ..mark };
        let mark = mark.map(|mark| if renumbered { without_index(mark) } else { mark });
        let mut found =
            Inspected { settings, left, ..Inspected::new(format, space, findings, mark) };
        if depth != Depth::Begin {
            check_is_log(place, &mut found)?;
        }
        Ok(found)
    }
}

/// Report damage in the files that no cut repairs.
fn refuse_writing(found: &mut Inspected<WalFormat>, why: String) {
    let findings = &mut found.findings;
    findings.verdict = Verdict::Corrupt;
    let (offset, end) = (findings.extent.end, findings.file_end);
    let damage = findings.damage.get_or_insert_with(|| Damage { offset, end, ..Damage::default() });
    if !damage.reason.contains(&why) {
        damage.reason = match damage.reason.is_empty() {
            true => why.clone(),
            false => format!("{why}; {}", damage.reason),
        };
    }
    found.only_readable = Some(why);
}
