//! Stores on a simulated disk, and the facts known of their events: required, allowed and forbidden events.

use std::collections::BTreeSet;
use std::path::Path;

use deedbook::ledger::{LedgerStore, Options, Removable};
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Durable, Error, Result};

pub use super::known::Known;
use super::known::SECOND_FROM;
use super::spool::{BASE, DIR, event, listing, number_of, on, shown, small};

/// Records in a file: with two, nearly every history rotates.
pub const FILE_RECORDS: u64 = 2;

#[derive(Default)]
pub struct Store {
    pub ledger: Option<LedgerStore>,
    next: u64,
    written: BTreeSet<u64>,
    in_file: BTreeSet<u64>,
    /// Bytes written since the last sync, for a durability that counts them.
    unsynced_bytes: u64,
    fetched: Vec<(Removable, Vec<u64>)>,
}

impl Store {
    fn forget(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }
}

/// A history in the making: two stores on one directory. One store acts at a time. A history need not open the second.
pub struct Run {
    pub disk: Sim,
    pub options: Options,
    pub known: Known,
    stores: [Store; 2],
    acting: usize,
}

pub fn options(disk: &Sim, durability: Durability) -> Options {
    on(disk.clone()).durability(durability).file_records_max(FILE_RECORDS)
}

impl Run {
    pub fn new(durability: Durability) -> Self {
        Self::on(Sim::new(), durability)
    }

    pub fn on(disk: Sim, durability: Durability) -> Self {
        let removal_is_durable = durability != Durability::None;
        let second = Store { next: SECOND_FROM, ..Store::default() };
        Self {
            options: options(&disk, durability),
            disk,
            known: Known { removal_is_durable, ..Known::default() },
            stores: [Store::default(), second],
            acting: 0,
        }
    }

    pub fn store(&mut self) -> &mut Store {
        &mut self.stores[self.acting]
    }

    fn ledger(&self) -> LedgerStore {
        self.stores[self.acting].ledger.clone().expect("the ledger is open")
    }

    fn beside(&self) -> &BTreeSet<u64> {
        &self.stores[1 - self.acting].in_file
    }

    pub fn open(&mut self) -> Result<()> {
        self.store().ledger = Some(self.options.open(small(DIR, 100_000))?);
        Ok(())
    }

    /// The processes died and left the disk with the known facts. New processes continue.
    pub fn crashed(&mut self, disk: Sim, known: Known) -> Result<()> {
        self.stores.iter_mut().for_each(Store::forget);
        self.options = options(&disk, self.options.durability);
        (self.disk, self.known) = (disk, known);
        self.open()
    }

    /// Do one step: a short event, an event longer than a sector, a batch over three files, a sync, a fetch, a removal
    /// of the last fetched files, a reopening, a reset; or let the other store act from now on.
    pub fn apply(&mut self, op: char) -> Result<()> {
        let ledger = self.ledger();
        match op {
            'a' => self.append(1, 10),
            'b' => self.append(1, 1200),
            'm' => self.append(5, 40),
            's' => {
                ledger.sync()?;
                self.all_durable();
                // Nothing is noted, so a sync covers every file, whichever store finished it.
                if self.options.durability == Durability::None {
                    let there = self.known.written.difference(self.beside()).copied();
                    let there: Vec<u64> = there.collect();
                    self.known.durable.extend(there);
                }
                Ok(())
            }
            'f' => self.fetch(&ledger),
            'x' => self.remove(&ledger),
            'r' => {
                let closed = ledger.close();
                drop(ledger);
                self.store().ledger = None;
                closed?;
                if self.options.durability != Durability::None {
                    self.all_durable();
                }
                self.store().forget();
                self.open()
            }
            'z' => {
                let there: Vec<_> = self.known.tried.difference(self.beside()).copied().collect();
                self.known.leaving.extend(&there);
                ledger.reset()?;
                self.known.removed.extend(&there);
                let store = self.store();
                store.in_file.clear();
                store.fetched.clear();
                Ok(())
            }
            'w' => {
                self.acting = 1 - self.acting;
                if self.store().ledger.is_none() { self.open() } else { Ok(()) }
            }
            op => panic!("no step {op}"),
        }
    }

    fn append(&mut self, count: u64, longest: u64) -> Result<()> {
        let (ledger, store) = (self.ledger(), &mut self.stores[self.acting]);
        let numbers: Vec<u64> = (store.next..store.next + count).collect();
        store.next += count;
        self.known.tried.extend(&numbers);
        let payloads: Vec<_> = numbers.iter().map(|&number| event(number, longest)).collect();
        let appended = match &payloads[..] {
            [payload] => ledger.append(payload).map(drop),
            _ => ledger.append_many(&payloads).map(drop),
        };
        if let Err(error) = &appended {
            if error.durable() == Some(Durable::No) {
                self.known.tried.retain(|number| !numbers.contains(number));
            }
            // The file was closed: the contents of the next file are unknown.
            store.in_file.clear();
            return appended;
        }
        for (number, payload) in numbers.into_iter().zip(&payloads) {
            self.known.written.insert(number);
            let store = self.store();
            store.written.insert(number);
            store.in_file.insert(number);
            store.unsynced_bytes += payload.len() as u64 + 8;
            if store.in_file.len() as u64 == FILE_RECORDS {
                self.finished();
            }
        }
        let unsynced_bytes = self.store().unsynced_bytes;
        match self.options.durability {
            Durability::Always => self.all_durable(),
            Durability::Bytes(bytes) if unsynced_bytes >= bytes => self.all_durable(),
            _ => {}
        }
        Ok(())
    }

    fn all_durable(&mut self) {
        let store = &mut self.stores[self.acting];
        self.known.durable.extend(&store.written);
        store.unsynced_bytes = 0;
    }

    fn finished(&mut self) {
        self.store().in_file.clear();
        if matches!(self.options.durability, Durability::Rotate | Durability::Manual) {
            self.all_durable();
        }
    }

    fn fetch(&mut self, ledger: &LedgerStore) -> Result<()> {
        let fetched = ledger.fetch(None, None)?;
        self.finished();
        let mut sent = Vec::new();
        for reader in fetched.iter().flat_map(|fetched| fetched.data.iter().flatten()) {
            let numbers = reader.payloads().map(|payload| payload.map(|bytes| number_of(&bytes)));
            sent.push(numbers.collect::<Result<Vec<_>>>()?);
        }
        let removable = fetched.and_then(|fetched| fetched.removable).unwrap_or_default();
        let shown = removable.iter().map(Removable::index);
        self.known.shown = shown.chain(self.known.shown).max();
        self.store().fetched = removable.into_iter().zip(sent).collect();
        Ok(())
    }

    /// Whether the last fetch returned all appended events, without removed events and without the file that the other
    /// store is writing.
    pub fn judge_fetched(&self) -> Result<(), String> {
        let fetched = &self.stores[self.acting].fetched;
        let got: Vec<u64> = fetched.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        if let Some(early) = got.iter().find(|number| self.beside().contains(number)) {
            return Err(format!("event {early} is in a file that is still written: {got:?}"));
        }
        let held = &self.stores[1 - self.acting].fetched;
        let leased: BTreeSet<u64> = held.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        if let Some(twice) = got.iter().find(|number| leased.contains(number)) {
            return Err(format!("event {twice} is in a file that the other store leased: {got:?}"));
        }
        let known = self.known.written.iter().copied();
        let here = |number: &u64| !self.beside().contains(number) && !leased.contains(number);
        let finished = Known { written: known.filter(here).collect(), ..self.known.clone() };
        finished.judge(&got, false)
    }

    fn remove(&mut self, ledger: &LedgerStore) -> Result<()> {
        let fetched = &mut self.store().fetched;
        let sent = match fetched.len() {
            0 | 1 => std::mem::take(fetched),
            _ => fetched.split_off(1),
        };
        let numbers: Vec<u64> = sent.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        self.known.leaving.extend(&numbers);
        let items: Vec<_> = sent.into_iter().map(|(item, _)| item).collect();
        ledger.remove(&items)?;
        self.known.removed.extend(&numbers);
        Ok(())
    }
}

/// Open a disk after a crash, fetch everything, and judge it; then append, and check that the new event is durable and
/// has a new index. Returns the events found.
pub fn recover(disk: &Sim, known: &Known, power: bool) -> Result<Vec<u64>, String> {
    let fail = |doing: &str, error: Error| format!("{doing}: {error:?}");
    let ledger = options(disk, Durability::Always).open(small(DIR, 100_000));
    let ledger = ledger.map_err(|e| fail("opening", e))?;
    let fetched = ledger.fetch(None, None).map_err(|e| fail("fetching", e))?;
    let files = fetched.as_ref().map(shown).unwrap_or_default();
    let got: Vec<u64> =
        files.iter().flat_map(|(_, found)| found.iter().map(|e| number_of(e))).collect();
    known.judge(&got, power)?;
    // The files are intact, and nothing else is in the directory.
    let names = listing(disk, Path::new(DIR));
    if let Some(name) = names.keys().find(|name| !name.ends_with(BASE)) {
        return Err(format!("a file {name}"));
    }
    ledger.append(&event(99_999, 0)).map_err(|e| fail("appending", e))?;
    drop(ledger);
    let crashes = disk.crashes();
    let worst = crashes.state(0);
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
