//! Damage in several epochs of a pier at once, in header, middle and tail: every reader gives one answer.

use crate::pier::support::*;

type Change = fn(&mut Vec<u8>);

/// Changes of a log, and whether its first, middle and last deeds stay intact.
const CHANGES: [(&str, Change, [bool; 3]); 6] = [
    ("nothing", |_| {}, [true; 3]),
    ("a damaged magic", |log| log[0] ^= 1, [true; 3]),
    ("a damaged number of the first event", |log| log[9] ^= 1, [true; 3]),
    ("a damaged first deed", |log| log[16 + 12] ^= 1, [false, true, true]),
    (
        "a damaged last deed",
        |log| {
            let at = log.len() - 13;
            log[at] ^= 1
        },
        [true, true, false],
    ),
    (
        "damaged deeds at both ends",
        |log| {
            log[16 + 12] ^= 1;
            let at = log.len() - 13;
            log[at] ^= 1;
        },
        [false, true, false],
    ),
];

/// The events of the parts that other processes read, at one deed a part.
fn by_parts(disk: &Sim) -> Vec<u64> {
    let (on, mut events) = (options(disk), Vec::new());
    for split in reading(disk).splits(1, ..).unwrap() {
        let mut part = Book::read_split(&split, &on, .., OnCorrupt::Skip, true).unwrap();
        while let Some(deed) = part.next().unwrap() {
            events.push(deed.event.unwrap());
        }
    }
    events
}

#[test]
fn damage_in_several_epochs_has_one_answer() {
    let whole = three_epochs();
    let epochs = [(0, 1..=3), (3, 4..=5), (5, 6..=9)];
    assert_eq!(all(&reading(&whole)), (1..=9).collect::<Vec<_>>());
    for first in &CHANGES {
        for second in &CHANGES {
            for third in &CHANGES {
                let disk = whole.kill();
                let (mut expected, mut is_damaged) = (Vec::new(), false);
                for ((number, events), (what, change, stays)) in
                    epochs.iter().zip([first, second, third])
                {
                    let path = epoch(*number).join("book.log");
                    let mut log = read_file(&disk, &path);
                    change(&mut log);
                    put(&disk, &path, &log);
                    let (begin, end) = (*events.start(), *events.end());
                    let stays = |&event: &u64| match event {
                        event if event == begin => stays[0],
                        event if event == end => stays[2],
                        _ => stays[1],
                    };
                    expected.extend(events.clone().filter(stays));
                    is_damaged |= *what != "nothing";
                }
                let what = format!("{}, {}, {}", first.0, second.0, third.0);
                assert_eq!(read(&reading(&disk), OnCorrupt::Skip), expected, "{what}");
                assert_eq!(by_parts(&disk), expected, "{what}, by parts");
                let report = options(&disk).verify_pier("/zod").unwrap();
                // A copy has the intact deeds, and a stub for each lost deed before another deed.
                let copied = options(&disk).salvage_pier(PIER, COPY).unwrap();
                assert_eq!(
                    (copied.total.records, copied.ok()),
                    (expected.len() as u64, !is_damaged)
                );
                let last = *expected.last().unwrap();
                let lost: Vec<u64> = (1..last).filter(|event| !expected.contains(event)).collect();
                assert_eq!(copied.total.stubs, lost, "{what}");
                let copy = options(&disk).open_pier(COPY, Mode::Read).unwrap();
                for event in 1..=last {
                    let deed = copy.read(event).unwrap();
                    let wanted = match lost.contains(&event) {
                        true => (0x79ff_04e8, vec![2]),
                        false => (event as u32, jam(event)),
                    };
                    assert_eq!((deed.mug, deed.jam), wanted, "{what}, event {event} of the copy");
                }
                assert_eq!(copy.last().unwrap(), last);
                let counted: u64 = report.epochs.iter().map(|(_, report)| report.records).sum();
                assert_eq!((counted, report.ok()), (expected.len() as u64, !is_damaged), "{what}");
                let pier = reading(&disk);
                // Damage is raised here, that of a header too. No other event comes in its place.
                for event in 1..=9 {
                    match pier.read(event) {
                        Ok(deed) => assert_eq!((deed.mug, deed.jam), (event as u32, jam(event))),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}"),
                    }
                }
            }
        }
    }
}
