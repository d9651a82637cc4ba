//! Any bytes as the directory of a ledger: files and names, the counter, the settings, the
//! quarantine. Every reader agrees with an oracle that knows only the layout, and changes nothing.
//! Fetching, removing and appending have the expected results.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use deedbook::ledger::{LedgerReader, LedgerStore, OnCorrupt, Options};
use deedbook::report::Verdict;
use deedbook::storage::Storage;
use deedbook::{ErrorKind, OnCorrupt as Pass};

use super::kit::{Input, Records, Watch, crc32};
use super::ledger::judge::{expect, judge_with};
use super::ledger::spool::{
    BASE, DIR, around, body, body_of, event, file_of, listing, on, parse, payloads, record,
};

const FILES_MAX: usize = 5;
const SIDECAR: &str = "/spool/.deedbook";
const QUARANTINE: &str = "/spool/.deedbook/quarantine";
const RECORDS: Records = Records {
    encode: |_, payload| record(payload),
    field: |field, _| match field % 3 {
        0 => usize::from(field >> 3) % 4,
        1 => 4 + usize::from(field >> 3) % 4,
        _ => 8 + usize::from(field >> 3) % 8,
    },
    // The oracle tries every byte for a record.
    bytes_max: 6 << 10,
};
const AROUND: [&[u8]; 3] = [b"[", b"]", b","];

/// The target.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let on_corrupt = match input.u8() % 3 {
        0 => OnCorrupt::Quarantine,
        1 => OnCorrupt::Skip,
        _ => OnCorrupt::Stop,
    };
    let disk = Watch::default();
    lay_out(&disk, &mut input);
    let options = on(disk.clone()).on_corrupt(on_corrupt);
    let spool = Spool::of(&disk, on_corrupt);
    let before = everything(&disk);
    spool.is_read(&options);
    let [header, footer, separator] = AROUND;
    let opened = options.open(around(header, footer, separator));
    assert_eq!(everything(&disk), before, "looking changed something");
    match opened {
        Ok(ledger) => {
            spool.is_fetched(&ledger, &mut input);
            spool.is_removed(&ledger, &mut input);
            spool.goes_on(&ledger);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotALog, "{error}"),
    }
}

/// Create the files from the input.
fn lay_out(disk: &Watch, input: &mut Input) {
    for dir in [DIR, SIDECAR, QUARANTINE] {
        disk.create_dir(Path::new(dir)).expect("a directory");
    }
    for _ in 0..FILES_MAX {
        let what = input.u8();
        let index = u32::from(what >> 4);
        match what & 15 {
            0 => break,
            1..=7 => put(disk, DIR, &format!("{index}-{BASE}"), &image(input)),
            8 => {
                let index = input.edge() as u32;
                put(disk, DIR, &format!("{index}-{BASE}"), &image(input));
            }
            9 => {
                let names = ["07-events", "4294967296-events", "-events", "1-event", "book.log"];
                put(disk, DIR, names[index as usize % 5], &image(input));
            }
            10 => {
                let text = format!("next {}\n", input.edge());
                let sum = crc32(text.as_bytes());
                put(disk, SIDECAR, "next-events", format!("{text}crc {sum:08x}\n").as_bytes());
            }
            11 => put(disk, SIDECAR, "next-events", &image(input)),
            12 => {
                let format = ["ledger", "ledger", "wal", "other"][index as usize % 4];
                let text = format!("format {format}\nrecord_bytes_max {}\n", input.edge());
                let sum = crc32(text.as_bytes());
                put(disk, SIDECAR, "settings", format!("{text}crc {sum:08x}\n").as_bytes());
            }
            13 => put(disk, SIDECAR, "settings", &image(input)),
            _ => put(disk, QUARANTINE, &format!("{index}-{BASE}"), &image(input)),
        }
    }
}

fn image(input: &mut Input) -> Vec<u8> {
    let mut bytes = Vec::new();
    RECORDS.pieces(input, &mut bytes);
    bytes.truncate(RECORDS.bytes_max);
    bytes
}

/// Create a file. An existing file stays unchanged.
fn put(disk: &Watch, dir: &str, name: &str, bytes: &[u8]) {
    if let Ok(file) = disk.create_new(&Path::new(dir).join(name), 0o600)
        && !bytes.is_empty()
    {
        assert_eq!(file.write_at(bytes, 0).expect("memory"), bytes.len());
    }
}

type Listing = BTreeMap<String, Vec<u8>>;

fn everything(disk: &Watch) -> [Listing; 3] {
    [DIR, SIDECAR, QUARANTINE].map(|dir| listing(disk, Path::new(dir)))
}

/// The index in a file name of the specification.
fn index_of(name: &str) -> Option<u32> {
    let index: u32 = name.strip_suffix("-events")?.parse().ok()?;
    (format!("{index}-events") == name).then_some(index)
}

/// A file of the ledger.
struct Held {
    bytes: Vec<u8>,
    sent: Vec<Vec<u8>>,
    /// Whether the file goes to the quarantine.
    kept: bool,
}

/// The expected results for a directory.
struct Spool {
    disk: Watch,
    /// By index.
    files: BTreeMap<u32, Held>,
    strangers: Listing,
    before: [Listing; 3],
}

impl Spool {
    fn of(disk: &Watch, on_corrupt: OnCorrupt) -> Self {
        let before = everything(disk);
        let (ours, strangers): (Listing, Listing) =
            before[0].clone().into_iter().partition(|(name, _)| index_of(name).is_some());
        let limit = limit(&before[1]);
        let held = |bytes: Vec<u8>| {
            let (expected, skipped) = (expect(&bytes), judge_with(&bytes, limit, "a file"));
            let (sent, kept) = match on_corrupt {
                OnCorrupt::Skip => (skipped.sent, skipped.kept),
                OnCorrupt::Quarantine => (expected.prefix, expected.verdict == Verdict::Corrupt),
                _ => (expected.prefix, false),
            };
            // A file without records to send goes to the quarantine unless blank.
            let blank = bytes.iter().all(|&byte| byte == 0);
            let kept = if sent.is_empty() { !blank } else { kept };
            Held { bytes, sent, kept }
        };
        let files = ours.into_iter().map(|(name, bytes)| (index_of(&name).unwrap(), held(bytes)));
        Self { disk: disk.clone(), files: files.collect(), strangers, before }
    }

    /// The files with records to send.
    fn sent(&self) -> impl Iterator<Item = (u32, &Held)> {
        self.files.iter().filter(|(_, held)| !held.sent.is_empty()).map(|(&i, held)| (i, held))
    }

    /// Check reading without a store.
    fn is_read(&self, options: &Options) {
        let infos = options.files(DIR, BASE).expect("listed");
        let found = infos.iter().map(|info| (info.index, info.bytes, info.active));
        assert!(found.eq(self.files.iter().map(|(&i, held)| (i, held.bytes.len() as u64, false))));
        let reports = options.verify(DIR, BASE).expect("verified");
        let copies = options.salvage(DIR, BASE, "/copy").expect("salvaged");
        assert_eq!((reports.len(), copies.len()), (infos.len(), infos.len()));
        for ((info, report), copy) in infos.iter().zip(&reports).zip(&copies) {
            let Held { bytes, .. } = &self.files[&info.index];
            let expected = expect(bytes);
            let ((file, report), (of, copy)) = (report, copy);
            assert_eq!((file, of), (info, info));
            assert_eq!(
                (report.verdict, report.valid_end),
                (expected.verdict, expected.valid_end as u64)
            );
            let log = options.open_file(&info.path).expect("opened");
            let prefix = log.iter().expect("the first").map_while(Result::ok);
            assert!(prefix.map(|record| record.payload).eq(expected.prefix));
            let (mut cursor, mut count, mut end) =
                (log.cursor(Pass::Skip).expect("a cursor"), 0, 0);
            while let Some(record) = cursor.next().expect("damage is passed over") {
                let at = record.offset as usize;
                assert!(at >= end, "two records share bytes");
                let (payload, len) = parse(bytes, at).expect("an intact record");
                assert_eq!(record.payload, payload);
                (count, end) = (count + 1, at + len);
            }
            assert_eq!(report.records, count);
            // Rescued records are intact, too, and lie at the reported places.
            let mut rescued = Vec::new();
            for run in &copy.runs {
                let mut at = run.source_offset as usize;
                for _ in 0..run.records {
                    let (payload, len) = parse(bytes, at).expect("an intact record");
                    rescued.push(payload.to_vec());
                    at += len;
                }
            }
            assert_eq!(copy.records, rescued.len() as u64);
            let sure = copy.records - copy.uncertain;
            assert!((sure..=copy.records).contains(&count), "{count} of {copy:?}");
            let copied = copy.copy.as_ref().map(|path| {
                listing(&self.disk, path.parent().unwrap())
                    [path.file_name().unwrap().to_str().unwrap()]
                .clone()
            });
            assert_eq!(copied.unwrap_or_default(), file_of(&rescued));
        }
    }

    /// Fetch some files, then all files, twice.
    fn is_fetched(&self, ledger: &LedgerStore, input: &mut Input) {
        assert_eq!(ledger.has_data().expect("asked"), !self.files.is_empty());
        let (count, max_bytes) = (usize::from(input.u8() & 7), u64::from(input.u16() & 0x3fff));
        let (mut wanted, mut room) = (Vec::new(), max_bytes);
        for (&index, held) in &self.files {
            let bytes = held.bytes.len() as u64;
            if wanted.len() == count || (!wanted.is_empty() && bytes > room) {
                break;
            }
            if !held.sent.is_empty() {
                wanted.push(index);
                room = room.saturating_sub(bytes);
            }
        }
        let fetched = ledger.fetch(Some(count), Some(max_bytes)).expect("fetched");
        let given = fetched.iter().flat_map(|fetched| fetched.data.iter().flatten());
        assert!(given.map(LedgerReader::index).eq(wanted));
        for _ in 0..2 {
            let fetched = ledger.fetch(None, None).expect("fetched");
            let mut readers = fetched.and_then(|fetched| fetched.data).unwrap_or_default();
            assert!(
                readers.iter().map(LedgerReader::index).eq(self.sent().map(|(index, _)| index))
            );
            for (reader, (_, held)) in readers.iter_mut().zip(self.sent()) {
                is_sent(reader, &held.sent, input);
            }
        }
        let there = listing(&self.disk, Path::new(DIR));
        for (name, bytes) in &there {
            assert_eq!(self.before[0].get(name), Some(bytes), "{name}");
        }
        assert_eq!(there.len(), self.sent().count() + self.strangers.len());
    }

    /// Remove one file, then all files.
    fn is_removed(&self, ledger: &LedgerStore, input: &mut Input) {
        let fetched = ledger.fetch(None, None).expect("fetched");
        let items = fetched.and_then(|fetched| fetched.removable).unwrap_or_default();
        if let Some(one) = items.get(input.below(items.len())) {
            ledger.remove(&[*one]).expect("removed");
            let left = listing(&self.disk, Path::new(DIR));
            assert!(!left.contains_key(&format!("{}-events", one.index())));
            assert_eq!(left.len(), items.len() - 1 + self.strangers.len());
        }
        for _ in 0..2 {
            ledger.remove(&items).expect("removed");
            assert_eq!(listing(&self.disk, Path::new(DIR)), self.strangers);
            assert!(!ledger.has_data().expect("asked"));
        }
        // Old files of the quarantine keep their names, and each newly quarantined file is there,
        // too.
        let quarantine = listing(&self.disk, Path::new(QUARANTINE));
        let mut wanted: Vec<_> = self.before[2].values().collect();
        wanted.extend(self.files.values().filter(|held| held.kept).map(|held| &held.bytes));
        let mut found: Vec<_> = quarantine.values().collect();
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted);
        assert!(self.before[2].iter().all(|(name, bytes)| quarantine.get(name) == Some(bytes)));
    }

    /// A new event gets the index after all earlier indexes.
    fn goes_on(&self, ledger: &LedgerStore) {
        let highest = self.files.keys().next_back().map_or(0, |&index| u64::from(index) + 1);
        let next = counted(&self.before[1]).max(highest);
        let payload = event(1, 0);
        match (u32::try_from(next), ledger.append(&payload)) {
            (Ok(next), Ok(position)) => {
                assert_eq!((position.file, position.record), (next, 0));
                let fetched = ledger.fetch(None, None).expect("fetched").expect("the event");
                let readers = fetched.data.expect("readers");
                assert_eq!((readers.len(), readers[0].index()), (1, next));
                assert_eq!(payloads(&readers[0]), [payload]);
            }
            (Err(_), Err(error)) => assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}"),
            (next, appended) => panic!("next index {next:?}, {appended:?}"),
        }
        ledger.reset().expect("reset");
        assert_eq!(listing(&self.disk, Path::new(DIR)), self.strangers);
    }
}

/// The text of a file in the sidecar, if its checksum holds.
fn summed<'a>(sidecar: &'a Listing, name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(sidecar.get(name)?).ok()?;
    let (text, sum) = text.split_at_checked(text.len().checked_sub("crc 01234567\n".len())?)?;
    (sum == format!("crc {:08x}\n", crc32(text.as_bytes()))).then_some(text)
}

/// The counter, if intact.
fn counted(sidecar: &Listing) -> u64 {
    let next = |text: &str| text.strip_prefix("next ")?.strip_suffix('\n')?.parse().ok();
    summed(sidecar, "next-events").and_then(next).unwrap_or(0)
}

/// The limit of a payload: from the settings of a ledger if above the default, else the default.
fn limit(sidecar: &Listing) -> u64 {
    let limit = |text: &str| {
        let rest = text.strip_prefix("format ledger\nrecord_bytes_max ")?;
        let limit = rest.strip_suffix('\n')?.parse().ok()?;
        (deedbook::ledger::Options::RECORD_BYTES_MAX..=u64::from(u32::MAX) - 8)
            .contains(&limit)
            .then_some(limit)
    };
    summed(sidecar, "settings")
        .and_then(limit)
        .unwrap_or(deedbook::ledger::Options::RECORD_BYTES_MAX)
}

/// Read a body at once, again, and from any place in any portions; then some of the records.
fn is_sent(reader: &mut LedgerReader, sent: &[Vec<u8>], input: &mut Input) {
    let [header, footer, separator] = AROUND;
    let whole = |sent: &[Vec<u8>]| body_of(header, sent, separator, footer);
    let wanted = whole(sent);
    assert_eq!((reader.content_length(), payloads(reader)), (wanted.len() as u64, sent.to_vec()));
    assert_eq!(body(reader), wanted);
    let from = input.below(wanted.len() + 1);
    reader.seek(SeekFrom::Start(from as u64)).expect("sought");
    let (mut got, mut portion) = (Vec::new(), vec![0; 1 + usize::from(input.u8())]);
    loop {
        match reader.read(&mut portion).expect("read") {
            0 => break,
            count => got.extend_from_slice(&portion[..count]),
        }
    }
    assert_eq!(got, wanted[from..]);
    let (first, count) = (input.below(sent.len()), input.below(sent.len() + 2));
    let last = (first + count).min(sent.len());
    let part = reader.part(first as u64..(first + count) as u64).expect("a part");
    match part {
        None => assert!(first >= last),
        Some(mut part) => assert_eq!(body(&mut part), whole(&sent[first..last])),
    }
    reader.rewind().expect("sought");
    assert_eq!(body(reader), wanted);
}
