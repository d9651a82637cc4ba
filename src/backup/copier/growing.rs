//! A growing file: the next backup writes after the durable bytes of the target.

use std::io;
use std::path::PathBuf;

use super::super::source::unusable;
use super::{Copier, Step, Stop, open_source, same_part};
use crate::error::{Error, ErrorKind};
use crate::ground::slice::part;
use crate::storage::Access;

/// The comparison covers this many bytes before the durable end of the backup's file.
const COMPARED_BYTES: u64 = 64 << 10;

/// A growing file.
#[derive(Clone, Debug)]
pub struct Growing {
    pub source: PathBuf,
    pub target: PathBuf,
    /// The byte of the log at which the file begins.
    pub base: u64,
    /// The copy begins at this byte.
    pub start: u64,
    /// The copy ends before this byte.
    pub end: u64,
}

impl Copier<'_> {
    /// The number of durable bytes in the target's file; an error if they belong to another log.
    /// The target stays unchanged. The target has the first `durable` bytes of the log durably.
    pub fn check(&self, file: &Growing, durable: u64) -> Step<u64> {
        let Growing { source, target, base, start, end } = file;
        let there = match self.storage.open(target, Access::Read) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(*start),
            opened => opened.map_err(|e| unusable("open the copy", target, e))?,
        };
        let len = there.len().map_err(|e| Error::io("look at the copy", target, e))?;
        let kept = match self.touched.get(target) {
            Some(&kept) => kept,
            None if self.target.was_interrupted() => durable.saturating_sub(*base),
            None => len,
        };
        let kept = kept.min(len);
        let wrong = if kept > *end {
            format!("{kept} bytes, the log has {end}")
        } else {
            let from = kept.saturating_sub(COMPARED_BYTES).max(*start).min(kept);
            if kept <= *start
                || same_part(&*open_source(self.storage, source)?, &*there, from, kept, source)?
            {
                return Ok(kept.max(*start));
            }
            format!("other bytes before byte {kept} than the log")
        };
        let message = format!(
            "{} is no beginning of {}: it has {wrong}. One of them is damaged (verify both), it is the backup \
             of another log, or this log lost its end and was written again: choose another directory",
            target.display(),
            source.display()
        );
        Err(Error::new(ErrorKind::InvalidArgument, message).into())
    }

    /// Copy the bytes of a growing file after the first `kept` ones, durably.
    pub fn grow(&mut self, file: &Growing, kept: u64) -> Step<()> {
        let Growing { source, target, base, start, end } = file;
        let write = |e| Error::io("write the copy", target, e);
        let read = match kept < *end {
            true => Some(open_source(self.storage, source)?),
            false => None,
        };
        let is_there = self.is_file(target)?;
        if !is_there {
            drop(self.create(target, source)?);
        }
        let written = self
            .storage
            .open(target, Access::Write)
            .map_err(|e| unusable("open the copy", target, e))?;
        let len = written.len().map_err(write)?;
        if is_there && kept >= *end && len <= (*end).max(*start) {
            return Ok(());
        }
        self.target.begin()?;
        self.touched.entry(target.clone()).or_insert(kept);
        if len > *end {
            // An interrupted copy left more.
            written.set_len((*end).max(*start)).map_err(write)?;
        }
        let (mut at, mut block) = (kept, Vec::new());
        while let Some(read) = read.as_deref().filter(|_| at < *end) {
            let bytes = self.piece(read, at, *end, &mut block, source)?;
            if bytes == 0 {
                return Err(Stop::Changed(format!(
                    "{} ends {} bytes too early",
                    source.display(),
                    end - at
                )));
            }
            self.write(&*written, part(&block, ..bytes), at, target)?;
            at += bytes as u64;
            if self.unnoted >= self.target.noted_every {
                written.sync_data().map_err(write)?;
                self.sync_names()?;
                self.target.note(base + at)?;
                self.unnoted = 0;
            }
        }
        self.done(&*written, target)?;
        Ok(())
    }
}
