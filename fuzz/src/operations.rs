//! Any sequence of operations and failures, compared with a list.
//!
//! Acknowledged deeds are present, or opening refuses, or the damage is reported. Readers never
//! return unwritten deeds.

use deedbook::Batch;
use deedbook::book::Book;
use deedbook::book::BookFormat;
use deedbook::report::Verdict;
use deedbook::storage::Storage;
use deedbook::{Durability, ErrorKind};
use deedbook::{Mode, Recovery};

use super::kit::{Event, HEADER, Input, World, deed_at, filler};
use super::views::{look, rescued};

/// Steps of a history.
const STEPS_MAX: usize = 40;
/// Bytes of all deeds of a history.
const BYTES_MAX: usize = 200 << 10;

struct Play {
    world: World,
    book: Option<Book>,
    /// The written deeds, in order.
    deeds: Vec<Event>,
    /// The number of deeds covered by a sync that returned.
    durable: usize,
    bytes: usize,
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new("/b");
    set_options(&mut world, input.u8());
    let mut play = Play { world, book: None, deeds: Vec::new(), durable: 0, bytes: 0 };
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        play.step(&mut input);
    }
    play.close();
    play.settle();
}

fn set_options(world: &mut World, how: u8) {
    world.options.durability = match how & 3 {
        0 | 1 => Durability::Manual,
        2 => Durability::Always,
        _ => Durability::Bytes(100),
    };
    let acknowledged = how & 12 == 12;
    world.options.recovery = if acknowledged { Recovery::Acknowledged } else { Recovery::Valid };
}

impl Play {
    fn step(&mut self, input: &mut Input) {
        let what = input.u8();
        match what & 15 {
            0..=3 => self.append((u32::from(what), filler(input.u8().into(), what))),
            4 => {
                let len = usize::from(input.u16());
                let len = if what < 224 { len >> 5 } else { len * 2 };
                self.append((u32::from(what), filler(len, what)));
            }
            5 | 6 => self.batch(input.u8(), what),
            7 => self.sync(),
            8 => self.close(),
            9 => {
                self.close();
                set_options(&mut self.world, input.u8());
            }
            10 => self.die(),
            11 => self.lose_sidecar(what >> 4),
            12 => self.truncate(input),
            13 => self.flip(input),
            14 => self.mend(),
            _ => self.settle(),
        }
    }

    fn writer(&mut self) -> Book {
        if let Some(book) = &self.book {
            return book.clone();
        }
        let book = self.world.options.open(&self.world.dir, Mode::Append);
        let book = book.expect("an undamaged log opens");
        self.book = Some(book.clone());
        let kept = book.len().unwrap() as usize;
        let whole = match self.world.options.recovery {
            Recovery::Acknowledged => self.durable..=self.deeds.len(),
            _ => self.deeds.len()..=self.deeds.len(),
        };
        assert!(whole.contains(&kept), "{kept} deeds kept of {whole:?}");
        self.deeds.truncate(kept);
        // Deeds kept by the opening are durable.
        self.durable = kept;
        book
    }

    fn append(&mut self, event: Event) {
        if self.bytes > BYTES_MAX {
            return;
        }
        let book = self.writer();
        let number = book.append(event.0, &event.1).unwrap();
        self.bytes += event.1.len();
        self.deeds.push(event);
        assert_eq!(number, self.deeds.len() as u64);
        self.note_durable(&book);
    }

    fn batch(&mut self, count: u8, what: u8) {
        if self.bytes > BYTES_MAX {
            return;
        }
        let book = self.writer();
        let mut batch = Batch::<BookFormat>::new(1 << 32);
        let mut events = Vec::new();
        for i in 0..count {
            let event = (u32::from(i), filler(usize::from(what ^ i), i));
            batch.push(event.0, &event.1).unwrap();
            self.bytes += event.1.len();
            events.push(event);
        }
        let next = self.deeds.len() as u64 + 1;
        let wrong = book.append_batch(&batch, Some(next + 1), None).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Contiguity);
        match what >> 4 & 3 {
            0 => assert_eq!(book.append_unsynced(&batch).unwrap(), next),
            _ => assert_eq!(book.append_batch(&batch, Some(next), None).unwrap(), next),
        }
        self.deeds.extend(events);
        self.note_durable(&book);
    }

    fn note_durable(&mut self, book: &Book) {
        let durable = book.durable_last().unwrap().unwrap() as usize;
        assert!(durable >= self.durable && durable <= self.deeds.len());
        self.durable = durable;
    }

    fn sync(&mut self) {
        let book = self.writer();
        book.sync().unwrap();
        self.durable = self.deeds.len();
        assert_eq!(book.durable_last().unwrap(), Some(self.durable as u64));
    }

    fn close(&mut self) {
        if let Some(book) = self.book.take() {
            book.close().unwrap();
            book.close().unwrap();
            assert_eq!(book.append(0, b"").unwrap_err().kind(), ErrorKind::Closed);
            self.durable = self.deeds.len();
        }
    }

    /// Remove a tail left by an earlier crash.
    fn calm(&mut self) {
        if !self.world.log().is_empty() {
            self.writer();
        }
        self.close();
    }

    /// kill -9: the page cache survives, but not the process and the locks.
    fn die(&mut self) {
        let left = self.world.after_death();
        self.book = None;
        self.world = left;
    }

    fn lose_sidecar(&mut self, which: u8) {
        self.close();
        for (i, name) in ["mark", "index", "lock"].iter().enumerate() {
            if which >> i & 1 == 0 {
                let _ = self.world.storage.remove(&self.world.sidecar(name));
            }
        }
    }

    /// Whether the log has a mark.
    fn marked(&self) -> bool {
        self.world.read(&self.world.sidecar("mark")).is_some()
    }

    /// Another program cuts the file.
    fn truncate(&mut self, input: &mut Input) {
        self.close();
        let log = self.world.log();
        if log.is_empty() {
            return;
        }
        let cut = input.below(log.len() + 1);
        let behind = self.kept_by(&log, cut);
        self.world.put(&self.world.log_path(), &log[..cut]);
        let before = self.world.files();
        let marked = self.marked();
        let opened = self.world.options.open(&self.world.dir, Mode::Append);
        let lost = marked && behind < self.durable;
        match opened {
            Ok(book) => {
                assert!(!lost, "{behind} of {} acknowledged deeds are left", self.durable);
                assert!(cut == 0 || cut >= HEADER, "a header cut off was opened");
                let kept = book.len().unwrap() as usize;
                let least = if marked { self.durable } else { behind };
                assert!((least..=behind).contains(&kept), "{kept} kept of {least} to {behind}");
                self.book = Some(book);
                self.deeds.truncate(kept);
                self.durable = kept;
            }
            Err(error) => {
                assert_eq!(before, self.world.files());
                if lost && cut >= HEADER {
                    assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
                    let view = look(&self.world, true).expect("still readable");
                    assert_eq!(view.events(), self.deeds[..behind]);
                    assert!(view.failed.is_some(), "a loss that reading does not tell");
                }
                // Bytes without a whole deed may be another kind of file.
                let strange = error.kind() == ErrorKind::NotALog && behind == 0;
                let header = cut > 0 && cut < HEADER;
                assert!(lost || strange || header, "nothing acknowledged is lost: {error:?}");
                self.world.put(&self.world.log_path(), &log);
            }
        }
    }

    /// The number of whole deeds before a byte.
    fn kept_by(&self, log: &[u8], cut: usize) -> usize {
        let (mut at, mut count) = (HEADER, 0);
        while let Some(place) = deed_at(log, at, 1 << 32).filter(|place| place.end <= cut) {
            (at, count) = (place.end, count + 1);
        }
        count
    }

    /// A byte rots: the log reports the damage, and never reads past it silently. Then the byte is
    /// restored or repaired.
    fn flip(&mut self, input: &mut Input) {
        self.calm();
        let log = self.world.log();
        if log.len() <= HEADER {
            return;
        }
        let at = HEADER + input.below(log.len() - HEADER);
        let with = input.u8().max(1);
        let mut rotten = log.clone();
        rotten[at] ^= with;
        let good = self.kept_by(&log, at);
        self.world.put(&self.world.log_path(), &rotten);
        let before = self.world.files();

        match look(&self.world, true) {
            Some(view) => {
                assert_eq!(view.events(), self.deeds[..good], "byte {at} ^ {with:#x}");
                let report = self.world.check().unwrap();
                assert!(!report.ok(), "rot unnoticed: {report:?}");
                let (rescued, _) = rescued(&self.world).unwrap();
                let mut rest = self.deeds.iter();
                let in_order = rescued.iter().all(|event| rest.any(|deed| deed == event));
                assert!(in_order, "salvage gave what was never written");
                if self.marked() {
                    assert_eq!(report.verdict, Verdict::Corrupt);
                    assert!(rescued.len() + 1 >= self.deeds.len(), "one byte, many deeds lost");
                }
            }
            None => assert_eq!(good, 0, "reading refused"),
        }
        let kept = match self.world.options.open(&self.world.dir, Mode::Append) {
            Err(_) => {
                assert_eq!(before, self.world.files());
                None
            }
            Ok(book) => Some(book.len().unwrap() as usize),
        };
        let all = self.deeds.len();
        if let Some(kept) = kept {
            let last = good + 1 == all && !self.marked();
            assert!(kept == all || (last && kept == good), "{kept} of {all} kept, byte {at}");
        }
        if input.u8() & 1 == 0 || good == 0 {
            // Restore the log and the sidecar.
            for (path, bytes) in &before {
                self.world.put(path, bytes);
            }
            self.world.put(&self.world.log_path(), &log);
            return;
        }
        let report = self
            .world
            .options
            .repair(
                &self.world.dir,
                deedbook::report::Repair { force: true, accept_loss: true, dry_run: false },
            )
            .unwrap();
        assert_eq!(report.cut_bytes > 0, kept != Some(good), "{report:?}");
        self.deeds.truncate(good);
        self.durable = good;
    }

    /// Repairing an undamaged log changes nothing.
    fn mend(&mut self) {
        self.calm();
        if self.world.log().is_empty() {
            return;
        }
        let log = self.world.log();
        let report = self
            .world
            .options
            .repair(
                &self.world.dir,
                deedbook::report::Repair { force: true, accept_loss: true, dry_run: false },
            )
            .unwrap();
        assert_eq!((report.cut_bytes, report.saved.len()), (0, 0));
        assert_eq!(log, self.world.log());
        self.durable = self.deeds.len();
    }

    /// Readers see the whole log, with or without a writer.
    fn settle(&self) {
        if self.world.log().is_empty() {
            return;
        }
        let view = look(&self.world, true).expect("an undamaged log can be read");
        assert_eq!(view.failed, None);
        assert_eq!(view.events(), self.deeds);
        assert_ne!(view.verdict, Verdict::Corrupt);
        let Some(book) = &self.book else { return };
        let deeds: Vec<_> = book.iter(..).unwrap().map(Result::unwrap).collect();
        assert!(
            deeds
                .iter()
                .map(|deed| (deed.mug, &deed.jam))
                .eq(self.deeds.iter().map(|(m, j)| (*m, j)))
        );
        if let Some((mug, jam)) = self.deeds.last() {
            let last = book.read(self.deeds.len() as u64).unwrap();
            assert_eq!((last.mug, &last.jam), (*mug, jam));
        }
    }
}
