//! A writer cuts the end of a log between two reads of a reader.

use deedbook::wal::{Layout, Options};

use super::*;
use crate::support::common::hooked::Event;

const KNOWN: usize = 60;
const RECORDS: usize = 160;
const TRIES: u64 = 40;

fn append(wal: &Wal, numbers: std::ops::Range<usize>) -> Vec<Lsn> {
    let lsns = numbers.map(|i| wal.append(&(i as u64).to_le_bytes()).unwrap()).collect();
    wal.sync().unwrap();
    lsns
}

/// The name of a way to read on, and how many records the read gives.
type Way = (&'static str, fn(&Wal) -> Result<u64>);

const WAYS: [Way; 3] = [
    ("refresh", |reader| reader.refresh().map(|_| 0)),
    ("follow", |reader| {
        let mut follow = reader.follow(None)?;
        let mut given = 0u64;
        while let Some(record) = follow.next(Duration::ZERO)? {
            assert_eq!(record.payload, given.to_le_bytes());
            given += 1;
        }
        Ok(given)
    }),
    ("walk", |reader| {
        let mut cursor = reader.cursor(.., OnCorrupt::Raise)?;
        let mut given = 0;
        while cursor.next()?.is_some() {
            given += 1;
        }
        Ok(given)
    }),
];

/// Cut the end before a reader's read number `cut`, and append before a later one.
fn read_beside_a_cut(
    (way, read): Way,
    (kept, again): (usize, usize),
    (cut, later): (u64, u64),
) -> bool {
    let storage = Hooked::default();
    let options = Options::new()
        .layout(Layout::Segmented { segment_bytes: 512 })
        .durability(Durability::Manual)
        .storage(Arc::new(storage.clone()));
    let writer = Arc::new(options.open(DIR, Mode::Create).unwrap());
    let mut lsns = append(&writer, 0..KNOWN);
    let reader = options.open(DIR, Mode::Read).unwrap();
    lsns.extend(append(&writer, KNOWN..RECORDS));
    let (cuts, reads, writes) = (writer.clone(), AtomicU64::new(0), AtomicBool::new(false));
    let (was_cut, sees) = (Arc::new(AtomicBool::new(false)), lsns[kept]);
    let tells = was_cut.clone();
    storage.watch(move |event| {
        if event != Event::Read || writes.load(Ordering::Acquire) {
            return false;
        }
        let number = reads.fetch_add(1, Ordering::AcqRel);
        writes.store(true, Ordering::Release);
        if number == cut {
            cuts.truncate_from(sees).unwrap();
            tells.store(true, Ordering::Release);
        }
        if number == cut + later {
            append(&cuts, kept..again);
        }
        writes.store(false, Ordering::Release);
        false
    });
    let found = read(&reader);
    storage.unwatch();
    if let Err(error) = found {
        let what = format!("{way}, {kept} kept, up to {again} after {later} reads, read {cut}");
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{what}: {error}");
        assert!(kept < KNOWN || way == "follow", "{what}: {error}");
    }
    writer.close().unwrap();
    was_cut.load(Ordering::Acquire)
}

/// A writer cut the end between two reads of a reader, and perhaps appended again: an error of the disk ("segment 7 has
/// 175 bytes, must have 512"), or "lost acknowledged records". The reader must wait for more, or report the cut.
#[test]
fn a_cut_between_two_reads_is_no_damage() {
    let mut reached = 0;
    for way in WAYS {
        for (kept, again) in [(90, 90), (90, RECORDS), (70, 75), (40, 40), (40, RECORDS)] {
            for later in 0..if again == kept { 1 } else { 6 } {
                let all =
                    (0..TRIES).filter(|&cut| read_beside_a_cut(way, (kept, again), (cut, later)));
                reached += all.count();
            }
        }
    }
    assert!(reached > 100, "{reached} cuts");
}
