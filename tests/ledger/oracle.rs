//! A store on a simulated disk, and what is known of its events: which must be there, which may, and
//! which must not.

use std::collections::BTreeSet;
use std::path::Path;

use deedbook::ledger::{LedgerStore, Options, Removable};
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Durable, Error, ErrorKind, Result};

use crate::support::{BASE, DIR, event, listing, number_of, on, shown, small};

/// Records in a file: with two, nearly every history rotates.
pub const FILE_RECORDS: u64 = 2;

/// What is known of the events.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Their append returned, or failed without saying that they are absent.
    pub tried: BTreeSet<u64>,
    /// Their append returned: the death of the process does not take them.
    pub written: BTreeSet<u64>,
    /// A power cut does not take them either.
    pub durable: BTreeSet<u64>,
    /// Their removal was begun.
    pub leaving: BTreeSet<u64>,
    /// Their removal returned.
    pub removed: BTreeSet<u64>,
    /// The highest index that a fetch gave.
    pub shown: Option<u32>,
    /// Whether what is removed stays so.
    pub removal_is_durable: bool,
}

impl Known {
    /// Whether a ledger may hold these events, after the death of the process or a power cut.
    pub fn judge(&self, got: &[u64], power: bool) -> Result<(), String> {
        let there: BTreeSet<u64> = got.iter().copied().collect();
        if there.len() != got.len() || !got.is_sorted() {
            return Err(format!("twice, or out of order: {got:?}"));
        }
        if let Some(stranger) = got.iter().find(|number| !self.tried.contains(number)) {
            return Err(format!("event {stranger} was never appended: {got:?}"));
        }
        let must = if power { &self.durable } else { &self.written };
        let gone = |number: &&u64| !there.contains(number) && !self.leaving.contains(number);
        if let Some(lost) = must.iter().find(gone) {
            return Err(format!("event {lost} is lost: {got:?}"));
        }
        if (!power || self.removal_is_durable)
            && let Some(back) = got.iter().find(|number| self.removed.contains(number))
        {
            return Err(format!("event {back} was removed: {got:?}"));
        }
        Ok(())
    }
}

/// A history in the making.
pub struct Run {
    pub disk: Sim,
    pub options: Options,
    pub known: Known,
    pub ledger: Option<LedgerStore>,
    next: u64,
    /// Events in the file being written.
    in_file: u64,
    /// Bytes written since the last sync, for a durability that counts them.
    unsynced_bytes: u64,
    fetched: Vec<(Removable, Vec<u64>)>,
}

pub fn options(disk: &Sim, durability: Durability) -> Options {
    Options { durability, file_records_max: Some(FILE_RECORDS), ..on(disk.clone()) }
}

impl Run {
    pub fn new(durability: Durability) -> Self {
        let disk = Sim::new();
        let removal_is_durable = durability != Durability::None;
        Self {
            options: options(&disk, durability),
            disk,
            known: Known { removal_is_durable, ..Known::default() },
            ledger: None,
            next: 0,
            in_file: 0,
            unsynced_bytes: 0,
            fetched: Vec::new(),
        }
    }

    fn ledger(&self) -> LedgerStore {
        self.ledger.clone().expect("the ledger is open")
    }

    pub fn open(&mut self) -> Result<()> {
        self.ledger = Some(self.options.open(small(DIR, 100_000))?);
        Ok(())
    }

    /// Do one step: a short event, one longer than a sector, a batch over three files, a sync, a
    /// fetch, a removal of what was fetched last, another life, a reset.
    pub fn apply(&mut self, op: char) -> Result<()> {
        let ledger = self.ledger();
        match op {
            'a' => self.append(1, 10),
            'b' => self.append(1, 1200),
            'm' => self.append(5, 40),
            's' => {
                ledger.sync()?;
                self.all_durable();
                Ok(())
            }
            'f' => self.fetch(&ledger),
            'x' => self.remove(&ledger),
            'r' => {
                let closed = ledger.close();
                drop(ledger);
                self.ledger = None;
                closed?;
                self.in_file = 0;
                if self.options.durability != Durability::None {
                    self.all_durable();
                }
                self.open()
            }
            'z' => {
                self.known.leaving.extend(&self.known.written);
                ledger.reset()?;
                self.known.removed.extend(&self.known.written);
                self.in_file = 0;
                self.fetched.clear();
                Ok(())
            }
            op => panic!("no step {op}"),
        }
    }

    fn append(&mut self, count: u64, longest: u64) -> Result<()> {
        let numbers: Vec<u64> = (self.next..self.next + count).collect();
        self.next += count;
        self.known.tried.extend(&numbers);
        let payloads: Vec<_> = numbers.iter().map(|&number| event(number, longest)).collect();
        let appended = match &payloads[..] {
            [payload] => self.ledger().append(payload),
            _ => self.ledger().append_many(&payloads),
        };
        if let Err(error) = &appended {
            if error.durable() == Some(Durable::No) {
                self.known.tried.retain(|number| !numbers.contains(number));
            }
            // The file was closed: which events are in the next one is not known any more.
            self.in_file = 0;
            return appended;
        }
        for (number, payload) in numbers.into_iter().zip(&payloads) {
            self.known.written.insert(number);
            self.in_file += 1;
            self.unsynced_bytes += payload.len() as u64 + 8;
            if self.in_file == FILE_RECORDS {
                self.finished();
            }
        }
        match self.options.durability {
            Durability::Always => self.all_durable(),
            Durability::Bytes(bytes) if self.unsynced_bytes >= bytes => self.all_durable(),
            _ => {}
        }
        Ok(())
    }

    fn all_durable(&mut self) {
        self.known.durable.extend(&self.known.written);
        self.unsynced_bytes = 0;
    }

    /// The file being written is finished.
    fn finished(&mut self) {
        self.in_file = 0;
        if matches!(self.options.durability, Durability::Rotate | Durability::Manual) {
            self.all_durable();
        }
    }

    fn fetch(&mut self, ledger: &LedgerStore) -> Result<()> {
        let fetched = ledger.fetch(None, None)?;
        self.finished();
        let Some(fetched) = fetched else {
            self.fetched.clear();
            return Ok(());
        };
        let indexes = fetched.removable.iter().flatten().map(Removable::index);
        self.known.shown = indexes.chain(self.known.shown).max();
        let mut sent = Vec::new();
        for reader in fetched.data.iter().flatten() {
            let (mut walk, mut numbers) = (reader.payloads(), Vec::new());
            while let Some(payload) = walk.next()? {
                numbers.push(number_of(payload));
            }
            sent.push(numbers);
        }
        self.fetched = fetched.removable.unwrap().into_iter().zip(sent).collect();
        Ok(())
    }

    /// All but the first file that was fetched, or that one alone.
    fn remove(&mut self, ledger: &LedgerStore) -> Result<()> {
        let sent = match self.fetched.len() {
            0 | 1 => std::mem::take(&mut self.fetched),
            _ => self.fetched.split_off(1),
        };
        let numbers: Vec<u64> = sent.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        self.known.leaving.extend(&numbers);
        let items: Vec<_> = sent.into_iter().map(|(item, _)| item).collect();
        ledger.remove(&items)?;
        self.known.removed.extend(&numbers);
        Ok(())
    }
}

/// Open a disk after a crash, fetch everything, and judge it; then go on, and see that what is
/// appended now is durable and has a new index. Returns what was found.
pub fn recover(disk: &Sim, known: &Known, power: bool) -> Result<Vec<u64>, String> {
    let fail = |doing: &str, error: Error| format!("{doing}: {error:?}");
    let ledger = options(disk, Durability::Always).open(small(DIR, 100_000));
    let ledger = ledger.map_err(|e| fail("opening", e))?;
    let fetched = ledger.fetch(None, None).map_err(|e| fail("fetching", e))?;
    let files = fetched.as_ref().map(shown).unwrap_or_default();
    let got: Vec<u64> =
        files.iter().flat_map(|(_, found)| found.iter().map(|e| number_of(e))).collect();
    known.judge(&got, power)?;
    // What is there is intact, and nothing else is in the directory.
    let names = listing(disk, Path::new(DIR));
    if let Some(name) = names.keys().find(|name| !name.ends_with(BASE)) {
        return Err(format!("a file {name}"));
    }
    ledger.append(&event(99_999, 0)).map_err(|e| fail("appending", e))?;
    drop(ledger);
    let crashes = disk.crashes();
    let worst = crashes.build(&crashes.nth(0));
    let ledger = options(&worst, Durability::Always).open(small(DIR, 100_000));
    let ledger = ledger.map_err(|e| fail("opening again", e))?;
    let fetched = ledger.fetch(None, None).map_err(|e| fail("fetching again", e))?;
    let files = shown(fetched.as_ref().ok_or("the last event is lost")?);
    let (index, last) = files.last().ok_or("no file")?;
    if last.iter().map(|e| number_of(e)).next_back() != Some(99_999) {
        return Err("the last event is lost".into());
    }
    match known.shown {
        Some(shown) if *index <= shown => Err(format!("index {index} after {shown} was given")),
        _ => Ok(got),
    }
}

/// Whether an error is one that a broken disk may cause.
pub fn expect_typed(error: &Error) -> Result<(), String> {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::Missing => Ok(()),
        _ => Err(format!("unexpected {error:?}")),
    }
}
