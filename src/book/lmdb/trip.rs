//! From LMDB to books and back: one environment, or all epochs of a pier.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Instant;

use super::copy::{Copied, Source, Target, held_before};
use super::metadata::{Top, agrees, check_meta, check_whole, is_begun, stripped};
use super::options::Options;
use super::place::{Kind, Leg, Looked, Plan, read_text};
use super::read::Environment;
use super::report::{EpochReport, Report};
use super::write::Writer;
use super::{DATA_NAME, LMDB};
use crate::Mode;
use crate::book::copying::convert::refuse_corrupt;
use crate::book::{Batch, LOG_NAME, Meta};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Storage, replace};

/// The most bytes of an environment for an event besides the jam, and for each byte of a jam: a jam
/// of 2,049 bytes takes a page of 4,096.
const EVENT_BYTES_MAX: u64 = 128;
const BYTE_SHARE_MAX: u64 = 3;

impl Options {
    /// Copy the events and the metadata of an LMDB environment to a book, or all epochs of a pier to a new pier of
    /// books. Between batches, `progress` gets the events done and the total; its error ends the work.
    ///
    /// `source` is the environment's directory, its `data.mdb`, or a pier; the writing program must have ended. The
    /// call only reads the source and makes no lock file. `dest` is the book's directory, or the new pier. The call
    /// syncs each batch, reads the batch back and compares it with the source. After an interruption, repeat the call:
    /// it compares the destination with the source from the first event on, and adds the rest. A destination with any
    /// other content is refused.
    ///
    /// A new epoch gets `epoc.txt` once the whole epoch is compared, and a new pier the metadata once all epochs are.
    /// Until then, Urbit accepts neither.
    ///
    /// # Errors
    ///
    /// Fails for a source that is damaged or open elsewhere, and for a destination that holds anything else; see
    /// [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn migrate(
        &self,
        source: impl AsRef<Path>,
        dest: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Report> {
        let (source, dest) = (source.as_ref(), dest.as_ref());
        travel(source, dest, Kind::Book, self, progress).map_err(|e| e.of(LMDB))
    }

    /// The reverse of [`migrate`](Self::migrate), with the same promises: copy a book to an LMDB environment, or a pier
    /// of books to a new pier of environments. Metadata values are stored as Urbit stores them, without trailing zeros.
    /// Needs the real disk: LMDB knows no other.
    ///
    /// # Errors
    ///
    /// Fails for a source that is damaged or open elsewhere, and for a destination that holds anything else; see
    /// [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn export(
        &self,
        source: impl AsRef<Path>,
        dest: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Report> {
        let (source, dest) = (source.as_ref(), dest.as_ref());
        travel(source, dest, Kind::Lmdb, self, progress).map_err(|e| e.of(LMDB))
    }
}

fn travel(
    source: &Path,
    dest: &Path,
    to: Kind,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<Report> {
    let began = Instant::now();
    let storage = &*options.book.storage;
    let plan = Plan::of(storage, source, dest, to)?;
    options.check_epochs(&plan)?;
    let trip = Trip { storage, options, to, top: plan.top.as_ref().map(Top::read).transpose()? };
    let looked: Vec<_> = plan.parts.iter().map(|part| trip.look(part)).collect::<Result<_>>()?;
    check_order(&plan, &looked)?;
    if let Some(top) = &trip.top {
        top.check_events(&plan, &looked)?;
    }
    if let (Some(top), Some((_, dest))) = (&trip.top, &plan.top) {
        top.check_dest(dest)?;
    }
    let chosen = || plan.parts.iter().zip(&looked).filter(|(part, _)| options.has(part));
    let all: u64 = chosen().map(|(_, log)| count(log.events.as_ref())).sum();
    let mut done = 0;
    let mut noted = |events: u64| {
        done += events;
        progress(done, all)
    };
    let mut epochs = Vec::new();
    for (part, log) in chosen() {
        epochs.push(trip.bring(part, log, &mut noted)?);
    }
    if let (Some(top), Some((_, dest)), false) = (&trip.top, &plan.top, options.dry_run)
        && (options.epochs.is_none() || trip.is_whole(&plan, &looked)?)
    {
        top.save(dest)?;
    }
    let found = epochs.iter().map(|log| log.found).sum();
    let meta = trip.top.as_ref().map(|top| top.meta);
    Ok(Report {
        source: source.to_path_buf(),
        dest: dest.to_path_buf(),
        dry_run: options.dry_run,
        events: epochs.iter().map(|log| count(log.events.as_ref())).sum(),
        bytes: epochs.iter().map(|log| log.bytes).sum(),
        found,
        resumed_from: (found > 0).then(|| missing_from(&epochs)).flatten(),
        meta: meta.or(epochs.first().map(|log| log.meta)).unwrap_or_default(),
        epochs,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn count(events: Option<&RangeInclusive<u64>>) -> u64 {
    events.map_or(0, |range| range.end() - range.start() + 1)
}

fn missing_from(epochs: &[EpochReport]) -> Option<u64> {
    epochs.iter().find_map(|log| {
        let events = log.events.as_ref()?;
        (log.found < count(Some(events))).then(|| events.start() + log.found)
    })
}

/// The epochs of a pier must follow one another.
fn check_order(plan: &Plan, looked: &[Looked]) -> Result<()> {
    if plan.top.is_none() {
        return Ok(());
    }
    let mut before: Option<u64> = None;
    for (part, log) in plan.parts.iter().zip(looked) {
        let refuse = |message| Err(Error::new(ErrorKind::Contiguity, message).at(&part.source));
        if let Some(before) = before.filter(|before| *before != log.epoch) {
            let epoch = log.epoch;
            return refuse(format!("epoch {epoch} comes after an epoch that ends with {before}"));
        }
        let first = log.events.as_ref().map(|range| *range.start());
        if let Some(first) = first.filter(|first| log.epoch.checked_add(1) != Some(*first)) {
            return refuse(format!("epoch {} begins with event {first}", log.epoch));
        }
        before = Some(log.events.as_ref().map_or(log.epoch, |range| *range.end()));
    }
    Ok(())
}

struct Trip<'a> {
    storage: &'a dyn Storage,
    options: &'a Options,
    to: Kind,
    top: Option<Top>,
}

impl Trip<'_> {
    fn open(&self, part: &Leg) -> Result<Source> {
        match part.kind {
            Kind::Lmdb => Environment::open(&part.source).map(Source::Lmdb),
            Kind::Book => {
                // Accept the source's own layout.
                let options = crate::book::Options { layout: None, ..self.options.book.clone() };
                let book = options.open(&part.source, Mode::Read)?;
                refuse_corrupt(&book)?;
                Ok(Source::Book(book))
            }
        }
    }

    /// Open the destination of a part.
    fn open_dest(&self, part: &Leg) -> Result<Source> {
        match self.to {
            Kind::Lmdb => Environment::open(&part.dest).map(Source::Lmdb),
            Kind::Book => self.options.book.open(&part.dest, Mode::Read).map(Source::Book),
        }
    }

    fn look(&self, part: &Leg) -> Result<Looked> {
        let source = self.open(part)?;
        let events = source.view().bounds()?;
        let first = events.as_ref().map(|range| range.start() - 1);
        let own = || match &source {
            Source::Book(book) => book.epoch(),
            Source::Lmdb(_) => Ok(0),
        };
        let epoch = part.epoch.or(first).map_or_else(own, Ok)?;
        let meta = match (source.view().meta()?, &self.top) {
            (none, Some(top)) if none == Meta::default() => top.meta,
            (own, _) => own,
        };
        if self.to == Kind::Book {
            check_whole(meta).map_err(|e| e.at(source.view().path()))?;
        }
        Ok(Looked { epoch, events, meta })
    }

    fn bring(
        &self,
        part: &Leg,
        log: &Looked,
        noted: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<EpochReport> {
        let source = self.open(part)?;
        check_counted(&source, log)?;
        let copied = match self.options.dry_run {
            true => self.compare(part, &source, log, noted)?,
            false => self.write(part, &source, log, noted)?,
        };
        let (source, dest) = (part.source.clone(), part.dest.clone());
        let Looked { epoch, events, meta } = log.clone();
        let Copied { bytes, found, .. } = copied;
        Ok(EpochReport { source, dest, epoch, events, bytes, found, meta })
    }

    /// Fail if a program wrote to the source in the meantime.
    fn check_unchanged(&self, part: &Leg, source: &Source, log: &Looked) -> Result<()> {
        match source {
            Source::Lmdb(environment) => environment.check_unchanged(),
            // A reader keeps the end from its opening.
            Source::Book(_) => check_counted(&self.open(part)?, log),
        }
    }

    /// Compare instead of `write`.
    fn compare(
        &self,
        part: &Leg,
        source: &Source,
        log: &Looked,
        noted: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Copied> {
        let name = if self.to == Kind::Book { LOG_NAME } else { DATA_NAME };
        let mut copied = Copied::default();
        if is_begun(self.storage, &part.dest.join(name)) {
            let there = self.open_dest(part)?;
            check_meta(there.view().meta()?, log.meta, &part.dest)?;
            if let Some(held) = held_before(there.view(), log.events.as_ref())? {
                copied.found = count(Some(&held));
                let kind = ErrorKind::AlreadyExists;
                copied.bytes = source.view().compare(there.view(), held, kind, noted)?;
            }
        }
        copied.events = copied.found;
        let rest = log.events.as_ref().map(|range| range.start() + copied.found..=*range.end());
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            copied.bytes += source.view().count(rest, noted)?;
        }
        self.check_unchanged(part, source, log)?;
        Ok(copied)
    }

    fn write(
        &self,
        part: &Leg,
        source: &Source,
        log: &Looked,
        noted: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Copied> {
        part.make_dirs(self.storage, self.options.book.file_mode)?;
        let mut target = self.target(part, log)?;
        check_meta(target.view().meta()?, log.meta, &part.dest)?;
        let copied = match &log.events {
            Some(range) => target.fill(source.view(), range, noted)?,
            None => held_before(target.view(), None).map(|_| Copied::default())?,
        };
        if log.meta != Meta::default() {
            match &target {
                Target::Book(book, _) => book.save_meta(&log.meta)?,
                Target::Lmdb(writer, _) => writer.save(&stripped(&log.meta))?,
            }
        }
        let stored = target.view().meta()?;
        if !agrees(stored, log.meta) {
            let message = format!("the metadata is {stored:?}, and {:?} in the source", log.meta);
            return Err(Error::new(ErrorKind::Corrupt, message).at(&part.dest));
        }
        self.check_unchanged(part, source, log)?;
        if let Target::Book(book, _) = &target {
            book.close()?;
        }
        drop(target);
        self.sign(part)?;
        Ok(copied)
    }

    fn target(&self, part: &Leg, log: &Looked) -> Result<Target> {
        if self.to == Kind::Book {
            let (durability, epoch) = (Durability::Manual, Some(log.epoch));
            let options = crate::book::Options { durability, epoch, ..self.options.book.clone() };
            let batch = Batch::new(options.deed_bytes_max);
            let book = options.open(&part.dest, Mode::Append)?;
            return Ok(Target::Book(book, batch));
        }
        let size = match &log.events {
            None => 0,
            Some(range) => {
                let bytes = self.open_len(part)?;
                let events = count(Some(range)).saturating_mul(EVENT_BYTES_MAX);
                bytes.saturating_mul(BYTE_SHARE_MAX).saturating_add(events)
            }
        };
        Ok(Target::Lmdb(Writer::open(&part.dest, Some(size))?, super::copy::Chunk::default()))
    }

    /// Bytes of the source's file, which its jams do not exceed.
    fn open_len(&self, part: &Leg) -> Result<u64> {
        let path = part.source.join(if part.kind == Kind::Book { LOG_NAME } else { DATA_NAME });
        self.storage
            .open(&path, Access::Read)
            .and_then(|file| file.len())
            .map_err(|e| Error::io("measure the log", &path, e))
    }

    /// Whether all epochs are at the destination, signed and with as many events.
    fn is_whole(&self, plan: &Plan, looked: &[Looked]) -> Result<bool> {
        for (part, log) in plan.parts.iter().zip(looked) {
            let signed = read_text(self.storage, &part.dest.join("epoc.txt"))?;
            if signed.as_deref() != Some(self.to.version().as_bytes())
                || self.open_dest(part)?.view().bounds()? != log.events
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Write the version of a finished epoch. The last step: Urbit accepts no epoch without a version.
    fn sign(&self, part: &Leg) -> Result<()> {
        if part.epoch.is_none() {
            return Ok(());
        }
        let mode = self.options.book.file_mode;
        let store = |name: &str, text: &[u8]| {
            let path = part.dest.join(name);
            replace(self.storage, &path, text, mode)
                .map_err(|e| Error::io("sign the epoch", &path, e))
        };
        if let Some(text) = read_text(self.storage, &part.source.join("vere.txt"))? {
            store("vere.txt", &text)?;
        }
        store("epoc.txt", self.to.version().as_bytes())
    }
}

/// Refuse a log whose events differ from the first count.
fn check_counted(source: &Source, log: &Looked) -> Result<()> {
    if source.view().bounds()? == log.events {
        return Ok(());
    }
    let message = "the log was written since its events were counted";
    let error = Error::new(ErrorKind::Locked, message).at(source.view().path());
    Err(error.with_advice("end the program that writes it first"))
}
