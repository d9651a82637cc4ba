//! The reference implementation's writer, by the byte table of `FORMAT.md` and without a line of the crate; and logs of
//! the reference that both writers extend.

use crate::slots::support::*;

const MAGIC: u32 = 0x424F_4F4B;
const PLACES: [usize; 2] = [0, 4096];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    fir: u64,
    las: u64,
    seq: u64,
    bat: u64,
    sum: u32,
}

impl Slot {
    fn bytes(self) -> Vec<u8> {
        let numbers = [self.fir, self.las, self.seq, self.bat].map(u64::to_le_bytes).concat();
        let magic = [MAGIC.to_le_bytes(), 1u32.to_le_bytes()].concat();
        let body = [&magic[..], &numbers, &self.sum.to_le_bytes()].concat();
        [&body[..], &crc32(&body).to_le_bytes()].concat()
    }

    /// `None` if the checksum does not match.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let sum = u32::from_le_bytes(*bytes[40..].first_chunk().unwrap());
        let slot = Self { fir: number(8), las: number(16), seq: number(24), bat: number(32), sum };
        (slot.bytes() == bytes[..48]).then_some(slot)
    }
}

/// The start of each deed, and the end of the last deed.
fn borders(log: &[u8], count: u64) -> Option<Vec<usize>> {
    let mut borders = vec![DEEDS_AT];
    for _ in 0..count {
        let at = borders[borders.len() - 1];
        let len = u64::from_le_bytes(*log.get(at..)?.first_chunk()?);
        let end = at.checked_add(16)?.checked_add(usize::try_from(len).ok()?)?;
        (log.get(end - 8..end)? == len.to_le_bytes()).then(|| borders.push(end))?;
    }
    Some(borders)
}

/// The newest slot with a whole batch, the place of the slot, and the end of the last deed.
fn current(log: &[u8]) -> (usize, Slot, usize) {
    let found = PLACES.iter().enumerate().filter_map(|(place, &at)| {
        let slot = Slot::parse(&log[at..])?;
        let borders = borders(log, slot.las - slot.fir)?;
        let end = borders[borders.len() - 1];
        let batch = &log[borders[borders.len() - 1 - slot.bat as usize]..end];
        (slot.bat == 0 || crc32(batch) == slot.sum).then_some((place, slot, end))
    });
    // The first of two slots with the same number wins.
    found.rev().max_by_key(|(_, slot, _)| slot.seq).unwrap()
}

/// Save a batch: the deeds go after the last committed deed, and the slot that is not current counts them.
fn save(log: &mut Vec<u8>, events: &[Event]) {
    let (place, slot, end) = current(log);
    log.truncate(end);
    let batch = deeds(events);
    log.extend_from_slice(&batch);
    let bat = events.len() as u64;
    let next =
        Slot { fir: slot.fir, las: slot.las + bat, seq: slot.seq + 1, bat, sum: crc32(&batch) };
    let at = PLACES[1 - place];
    log[at..at + 48].copy_from_slice(&next.bytes());
}

// Promise: slots-reference.
#[test]
fn the_model_writes_what_the_reference_wrote() {
    let all = golden_events();
    let mut log = golden_log("head-empty", &[]);
    for (batch, name, count) in [(0..2, None, 2), (2..3, None, 3), (3..5, Some("head-5x3"), 5)] {
        save(&mut log, &all[batch]);
        if let Some(name) = name {
            assert_eq!(log, golden_log(name, &all[..count]));
        }
    }
    for (empty, name) in [("head-empty", "head-3x1"), ("head-empty100", "head-epoch100")] {
        let mut log = golden_log(empty, &[]);
        save(&mut log, &all[..3]);
        assert_eq!(log, golden_log(name, &all[..3]), "{name}");
    }
}

/// Logs of the reference, their directory, the deeds in the file, and the last deed that counts. `head-torn` is left
/// out: its newer slot counts missing deeds, and our writer replaces the slot when it opens the log.
const LOGS: [(&str, &str, usize, u64); 7] = [
    ("head-3x1", "0i0", 3, 3),
    ("head-5x3", "0i0", 5, 5),
    ("head-empty", "0i0", 0, 0),
    ("head-epoch100", "0i100", 3, 103),
    ("head-empty100", "0i100", 0, 100),
    ("head-badolder", "0i0", 5, 5),
    ("head-badnewest", "0i0", 5, 3),
];

/// By one handle, by a handle for each batch, and by a handle without a sidecar.
// Promise: slots-reference.
#[test]
fn appends_to_reference_logs_have_reference_bytes() {
    let more: Vec<Event> = (1..8u32).map(|n| (n << 20, vec![n as u8; 37 * n as usize])).collect();
    for (name, dir, held, last) in LOGS {
        let log = golden_log(name, &golden_events()[..held]);
        if let Some(golden) = golden() {
            assert!(bytes(&golden.join(name).join(dir)) == log, "{name}");
        }
        for (reopened, alone) in [(false, false), (true, false), (true, true)] {
            let mut expected = log.clone();
            let (_dir, path) = place(dir, &log);
            let mut book = Book::append_to(&path).unwrap();
            assert_eq!(book.last().unwrap(), last, "{name}");
            let mut from = 0;
            for count in [2, 1, 3, 1] {
                let batch = &more[from..from + count];
                append(&book, batch, &[count]);
                save(&mut expected, batch);
                assert!(bytes(&path) == expected, "{name} after {count} of {from}");
                from += count;
                if reopened {
                    book.close().unwrap();
                    if alone {
                        fs::remove_dir_all(path.join(".deedbook")).unwrap();
                    }
                    book = Book::append_to(&path).unwrap();
                }
            }
            book.close().unwrap();
            assert!(bytes(&path) == expected, "{name} after closing");
        }
    }
}
