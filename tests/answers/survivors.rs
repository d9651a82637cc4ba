//! What seeded bugs broke without any test noticing.

use deedbook::{ErrorKind, Mode, Recovery};

use crate::FORMATS;
use crate::specimen::{Beside, Files};
use crate::subject::{How, MANUAL, refused};
use crate::views::{broken, plain};

/// A saved tail could be opened for writing, which put a `.deedbook` of its own beside it: nothing
/// held that it is there to be read and salvaged.
#[test]
fn a_saved_tail_is_not_opened_for_writing() {
    for format in FORMATS {
        let (_, memory, at) = broken(format, &plain(12, 30), Beside::Nothing, |specimen, space| {
            space[specimen.edges[4] + format.framing().length().start] ^= 1;
        });
        let spec = How { recovery: Recovery::Spec, ..MANUAL };
        let log = format.open(&at, Mode::Append, spec).unwrap();
        let tail = at.other(log.recovery().saved_to.expect("what is cut is saved"));
        log.close().unwrap();
        let before = Files::unlocked(&memory);
        refused(format.open(&tail, Mode::Append, MANUAL), ErrorKind::ReadOnly);
        assert!(Files::unlocked(&memory) == before, "{}: changed", format.name());
    }
}

/// Records that fill the payload of a damaged one to its last byte lead on to the log's own records,
/// as if they were some: taken before the damaged record's own length, they were given as proved.
#[test]
fn records_that_fill_a_damaged_payload_are_not_given() {
    for format in FORMATS {
        let framing = format.framing();
        let inner = [framing.encode(7, &[0xa1; 20]), framing.encode(7, &[0xa2; 30])].concat();
        let mut events = plain(6, 30);
        events[2].1 = [&[0x55; 5][..], &inner].concat();
        for beside in [Beside::Closed(6), Beside::Open(6), Beside::Nothing] {
            let (_, _, at) = broken(format, &events, beside, |specimen, space| {
                space[specimen.edges[2] + framing.head() + 2] ^= 1;
            });
            let walk = format.read(&at).unwrap().forward(None, None, true);
            let given: Vec<_> = walk.records.iter().map(|record| &record.bytes).collect();
            let kept: Vec<_> = [0, 1, 3, 4, 5].map(|i: usize| &events[i].1).into();
            assert!(given == kept, "{}, {beside:?}: {:?}", format.name(), walk.records);
        }
    }
}
