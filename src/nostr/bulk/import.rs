//! Import of events as JSON lines: parsed and checked on all cores, stored in the order of the lines.

use std::io::{self, BufRead, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::setters::setters;
use crate::ground::slice;
use crate::nostr::bytes::event::Event;
use crate::nostr::bytes::signature;
use crate::nostr::pages::on_all_cores::gone;
use crate::nostr::pages::options::Options;
use crate::nostr::store::append::Outcome;
use crate::nostr::store::handle::EventStore;
use crate::nostr::store::records::Records;

/// The size of the parts of lines handed to a core.
const PART_BYTES: usize = 1 << 20;
/// The number of bad lines to keep in the report; later bad lines are counted and written to
/// `aside` only.
const BAD_LINES_KEPT: usize = 1000;

/// The checks of an event, in addition to its form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// No check.
    None,
    /// The id must be the hash of the content.
    #[default]
    Id,
    /// The id must be the hash, and the signature must be the author's.
    Signature,
}

/// The options of an import; see the fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The checks of each event.
    pub check: Check,
    /// The number of threads that parse and check; 0 stands for the number of cores.
    pub threads: usize,
    /// The limit of a line, bytes: a longer line is bad.
    pub line_bytes_max: usize,
    /// Whether the first bad line ends the import. Otherwise the import reports the line and
    /// continues.
    pub stop_at_bad: bool,
    /// The report of an interrupted import of the same lines: the import skips as many bytes
    /// unread, and continues the counts. Call [`EventStore::sync`](crate::nostr::EventStore::sync)
    /// before you keep a report: a power cut may lose uncommitted events.
    pub after: ImportReport,
    /// The name of the lines' file in errors.
    pub source: PathBuf,
}

impl Default for ImportOptions {
    fn default() -> Self {
        let (check, line_bytes_max, after) = (Check::Id, 128 << 20, ImportReport::default());
        Self {
            check,
            threads: 0,
            line_bytes_max,
            stop_at_bad: false,
            after,
            source: "lines".into(),
        }
    }
}

setters! {
    ImportOptions {
        check: Check,
        threads: usize,
        line_bytes_max: usize,
        stop_at_bad: bool,
        after: ImportReport,
        source: PathBuf,
    }
    optional {}
}

impl ImportOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A line without a valid event, or with an event too large for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The number of the line, from 1 on.
    pub line: u64,
    /// The error of the line.
    pub reason: String,
}

/// The report of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Lines read, including empty lines.
    pub lines: u64,
    /// Bytes of the lines read.
    pub bytes: u64,
    /// Events stored.
    pub stored: u64,
    /// Stored events for which a newer version counts.
    pub superseded: u64,
    /// Events that were stored before.
    pub duplicates: u64,
    /// Events not stored, because their author deleted them.
    pub deleted: u64,
    /// Events not stored, because they are expired.
    pub expired: u64,
    /// Events of kinds that the store does not keep.
    pub ephemeral: u64,
    /// Lines without a valid event.
    pub bad: u64,
    /// The first 1,000 bad lines.
    pub bad_lines: Vec<BadLine>,
}

/// Lines, and the place of the first.
struct Chunk {
    first_line: u64,
    text: Vec<u8>,
    /// The ends of the lines.
    ends: Vec<usize>,
    /// The number of bytes read; the text has only a part of a line that is too long.
    bytes: u64,
}

/// The parsed lines of a chunk.
struct Parsed {
    records: Records,
    bad: Vec<(BadLine, Vec<u8>)>,
    lines: u64,
    bytes: u64,
}

impl EventStore {
    /// Store the events of JSON lines. Stored events are skipped, so you can repeat an interrupted
    /// import, or continue after its last known report ([`ImportOptions::after`]). `aside` gets the
    /// bad lines unchanged, each in one call. `progress` gets the report so far, and may commit the
    /// store. If reading the lines fails, the lines before are stored, and then the call returns
    /// the error.
    ///
    /// # Errors
    ///
    /// Fails if the events cannot be stored. A bad line is no error: the report counts it. An error
    /// of `progress` ends the work and is returned.
    pub fn import(
        &self,
        lines: &mut dyn BufRead,
        options: &ImportOptions,
        mut aside: Option<&mut dyn Write>,
        progress: &mut dyn FnMut(&ImportReport) -> Result<()>,
    ) -> Result<ImportReport> {
        let threads = match options.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        let mut report = options.after.clone();
        let store = &self.shared.options;
        thread::scope(|scope| {
            // Each thread has a queue, and the queues are read in turn: the parts keep their order.
            let mut workers = Vec::with_capacity(threads);
            for _ in 0..threads {
                let (give, parts) = sync_channel::<Chunk>(1);
                let (done, results) = sync_channel::<Parsed>(1);
                scope.spawn(move || {
                    for part in parts {
                        if done.send(parse(&part, options, store)).is_err() {
                            return;
                        }
                    }
                });
                workers.push((give, results));
            }
            let mut reader = Parts {
                lines,
                next_line: report.lines + 1,
                limit: options.line_bytes_max,
                source: &options.source,
                failed: None,
            };
            reader.skip(report.bytes)?;
            let (mut given, mut taken) = (0usize, 0usize);
            loop {
                let part = match given - taken < threads {
                    true => reader.next(),
                    false => None,
                };
                let at = |count: usize| workers.get(count % threads);
                match (part, at(given), at(taken)) {
                    (Some(part), Some((give, _)), _) => {
                        given += 1;
                        give.send(part).map_err(|_| gone())?;
                    }
                    (None, _, Some((_, results))) if given > taken => {
                        taken += 1;
                        let parsed = results.recv().map_err(|_| gone())?;
                        self.take(parsed, options, &mut aside, &mut report)?;
                        progress(&report)?;
                    }
                    _ => return reader.failed.map_or(Ok(report), Err),
                }
            }
        })
    }

    fn take(
        &self,
        mut parsed: Parsed,
        options: &ImportOptions,
        aside: &mut Option<&mut dyn Write>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let outcomes = self.append_records(&mut parsed.records)?;
        for outcome in outcomes {
            match outcome {
                Outcome::Stored(_) => report.stored += 1,
                Outcome::Superseded(_) => {
                    report.stored += 1;
                    report.superseded += 1;
                }
                Outcome::Duplicate(_) => report.duplicates += 1,
                Outcome::Deleted => report.deleted += 1,
                Outcome::Expired => report.expired += 1,
                Outcome::Ephemeral => report.ephemeral += 1,
            }
        }
        report.lines += parsed.lines;
        report.bytes += parsed.bytes;
        for (bad, mut text) in parsed.bad {
            if options.stop_at_bad {
                let message = format!("line {}: {}", bad.line, bad.reason);
                return Err(self.shared.refused(ErrorKind::InvalidArgument, &message));
            }
            report.bad += 1;
            if let Some(aside) = aside {
                // Write the line in one call.
                text.push(b'\n');
                let written = aside.write_all(&text);
                written.map_err(|e| Error::io("write a bad line aside", self.path(), e))?;
            }
            if report.bad_lines.len() < BAD_LINES_KEPT {
                report.bad_lines.push(bad);
            }
        }
        Ok(())
    }
}

/// Reads whole lines in parts.
struct Parts<'a> {
    lines: &'a mut dyn BufRead,
    next_line: u64,
    limit: usize,
    source: &'a Path,
    /// The error that ended the lines, if any.
    failed: Option<Error>,
}

impl Parts<'_> {
    fn next(&mut self) -> Option<Chunk> {
        let mut text = Vec::with_capacity(PART_BYTES + 4096);
        let (first_line, mut bytes, mut ends) = (self.next_line, 0, Vec::new());
        while text.len() < PART_BYTES && self.failed.is_none() {
            let before = text.len();
            match self.line(&mut text) {
                Ok(0) => break,
                Ok(read) => {
                    self.next_line += 1;
                    bytes += read;
                    ends.push(text.len());
                }
                Err(error) => {
                    // The last line may be incomplete.
                    text.truncate(before);
                    self.failed = Some(error);
                }
            }
        }
        (!text.is_empty()).then_some(Chunk { first_line, text, ends, bytes })
    }

    /// Add the next line; returns its size in bytes.
    fn line(&mut self, text: &mut Vec<u8>) -> Result<u64> {
        // The longest valid line and its line break: the kept part of a longer line is too long
        // even without the break.
        let kept = (self.limit as u64).saturating_add(2);
        let read = std::io::Read::take(&mut *self.lines, kept).read_until(b'\n', text);
        let read = read.map_err(|e| failed(self.source, e))? as u64;
        if read < kept || text.last() == Some(&b'\n') {
            return Ok(read);
        }
        // The beginning is kept, to report the line; the rest is skipped.
        text.push(b'\n');
        Ok(read + self.skip_line()?)
    }

    /// Skip the rest of a line; returns its size in bytes.
    fn skip_line(&mut self) -> Result<u64> {
        let (mut skipped, source) = (0, self.source);
        loop {
            let there = self.lines.fill_buf().map_err(|e| failed(source, e))?;
            let end = there.iter().position(|&byte| byte == b'\n');
            let len = end.map_or(there.len(), |at| at + 1);
            self.lines.consume(len);
            skipped += len as u64;
            if end.is_some() || len == 0 {
                return Ok(skipped);
            }
        }
    }

    /// Skip so many bytes, or up to the end.
    fn skip(&mut self, mut bytes: u64) -> Result<()> {
        let source = self.source;
        while bytes > 0 {
            let there = self.lines.fill_buf().map_err(|e| failed(source, e))?.len();
            let len = there.min(usize::try_from(bytes).unwrap_or(usize::MAX));
            if len == 0 {
                return Ok(());
            }
            self.lines.consume(len);
            bytes -= len as u64;
        }
        Ok(())
    }
}

fn failed(source: &Path, error: io::Error) -> Error {
    Error::io("read the events", source, error)
}

fn parse(part: &Chunk, options: &ImportOptions, store: &Options) -> Parsed {
    let (records, bytes) = (Records::default(), part.bytes);
    let mut parsed = Parsed { records, bad: Vec::new(), lines: 0, bytes };
    let (mut scratch, mut from) = (Vec::new(), 0);
    for &end in &part.ends {
        let text = slice::part(&part.text, from..end);
        from = end;
        let line = part.first_line + parsed.lines;
        parsed.lines += 1;
        let text = trimmed(text);
        if let Err(reason) = record_line(text, &mut parsed.records, options, store, &mut scratch) {
            parsed.bad.push((BadLine { line, reason }, text.to_vec()));
            if options.stop_at_bad {
                break;
            }
        }
    }
    parsed
}

/// A line without its line break.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Add the checked record of a line's event; returns false for an empty line. An error names the
/// fault of the line: an event too large for the store is a fault, too.
pub(crate) fn record_line(
    line: &[u8],
    records: &mut Records,
    options: &ImportOptions,
    store: &Options,
    scratch: &mut Vec<u8>,
) -> Result<bool, String> {
    let Some(event) = event_in(line, options, scratch)? else { return Ok(false) };
    records.push(&event, store).map_err(|e| e.message().to_owned())?;
    Ok(true)
}

fn event_in(
    line: &[u8],
    options: &ImportOptions,
    scratch: &mut Vec<u8>,
) -> Result<Option<Event>, String> {
    // This check comes first: a longer line may be incomplete.
    if line.len() > options.line_bytes_max {
        return Err(format!("longer than {} bytes", options.line_bytes_max));
    }
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    check(line, options.check, scratch).map(Some).map_err(|e| e.message().to_owned())
}

fn check(text: &[u8], check: Check, scratch: &mut Vec<u8>) -> Result<Event> {
    let event = Event::from_json(text)?;
    if check != Check::None {
        event.check_id(scratch)?;
    }
    if check == Check::Signature {
        signature::check(event.id, &event.pubkey, &event.sig)?;
    }
    Ok(event)
}
