//! Walking over checked records.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::ledger::codec::{Codec, FORMAT, Frame};
use crate::ledger::directory::look::Run;
use crate::scan::framing::{Frame as _, Framing};
use crate::scan::{Scanned, Scanner};
use crate::storage::File;

/// The payloads of a file's records, one after the other.
#[derive(Debug)]
pub struct Payloads {
    walk: Walk,
    path: PathBuf,
}

impl Payloads {
    /// The payloads of `walk`'s records, from the first on.
    pub(super) fn over(walk: &Walk, path: &Path) -> Self {
        Self { walk: walk.rewound(), path: path.to_path_buf() }
    }
}

impl Iterator for Payloads {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.walk.next() {
            Ok(frame) => frame.map(|frame| Ok(frame.payload(self.walk.bytes()).to_vec())),
            Err(e) => {
                self.walk.forget();
                Some(Err(fail(&self.path, e)))
            }
        }
    }
}

/// A walk over records that were checked before.
#[derive(Debug)]
pub struct Walk {
    pub file: Arc<dyn File>,
    pub codec: Codec,
    runs: Arc<[Run]>,
    /// The runs begun.
    begun: usize,
    scanner: Option<Scanner<Codec>>,
}

impl Walk {
    pub fn new(file: Arc<dyn File>, codec: Codec, runs: Arc<[Run]>) -> Self {
        Self { file, codec, runs, begun: 0, scanner: None }
    }

    pub fn rewound(&self) -> Self {
        Self::new(self.file.clone(), self.codec, self.runs.clone())
    }

    /// Free the memory; nothing more is read.
    pub fn forget(&mut self) {
        self.scanner = None;
        self.begun = self.runs.len();
    }

    /// The whole bytes of the record given last.
    pub fn bytes(&self) -> &[u8] {
        self.scanner.as_ref().map_or(&[], Scanner::bytes)
    }

    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(scanner) = &mut self.scanner {
                match scanner.next(&*self.file)? {
                    Scanned::Record { frame, .. } => return Ok(Some(frame)),
                    Scanned::End => {}
                    Scanned::Stop { offset, why } => {
                        return Err(changed(format!("byte {offset}: {}", why.reason())));
                    }
                }
            }
            let Some(run) = self.runs.get(self.begun) else { return Ok(None) };
            self.begun += 1;
            self.scanner = Some(Scanner::new(self.codec, run.start, run.end));
        }
    }

    /// The places of some records, by length, and the total length of the payloads.
    pub fn runs_of(&self, wanted: Range<u64>) -> io::Result<(Vec<Run>, u64)> {
        let (mut parts, mut payload_bytes) = (Vec::new(), 0);
        let (mut number, mut found) = (0, 0);
        for run in self.runs.iter() {
            let mut scanner = Scanner::new(self.codec.by_lengths(), run.start, run.end);
            let mut part: Option<Run> = None;
            while number < wanted.end {
                let Scanned::Record { offset, frame } = scanner.next(&*self.file)? else { break };
                if wanted.contains(&number) {
                    let part = part.get_or_insert(Run { start: offset, end: offset });
                    part.end = offset + frame.len();
                    found += 1;
                    payload_bytes += frame.payload_len();
                }
                number += 1;
            }
            parts.extend(part);
        }
        match found == wanted.end - wanted.start {
            true => Ok((parts, payload_bytes)),
            false => Err(changed(format!("{number} records, {} expected", wanted.end))),
        }
    }
}

/// The error of bytes that changed after a check found no damage.
pub fn changed(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the file was changed since: {what}"))
}

/// The error of a record that cannot be read.
pub fn fail(path: &Path, e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::InvalidData => Error::new(ErrorKind::Corrupt, e.to_string()),
        _ => Error::io("read the file", path, e),
    }
    .of(FORMAT)
    .at(path)
}
