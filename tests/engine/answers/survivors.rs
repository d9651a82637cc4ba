//! Breakage by seeded bugs that no earlier test noticed.

use super::*;

/// Records can fill a damaged record's payload to its last byte, and lead on to the log's own: readers gave them as
/// proved. Zeros passed for the head of a record without payload, and led from an inner record to the log's next one.
#[test]
fn readers_ignore_contents_of_a_damaged_payload() {
    for (format, zeros) in FORMATS.into_iter().flat_map(|format| [(format, false), (format, true)])
    {
        let framing = format.framing();
        let inner = framing.encode(7, &[0xa1; 20]);
        let rest = if zeros { vec![0; 8] } else { framing.encode(7, &[0xa2; 30]) };
        let mut events = plain(6, 30);
        events[2].1 = [&[0x55; 5][..], &inner, &rest].concat();
        for beside in [Beside::Closed(6), Beside::Open(6), Beside::Nothing] {
            let (specimen, _, at) = broken(format, &events, beside, |specimen, space| {
                let begin = specimen.edges[2];
                match zeros {
                    // The damaged length ends between the zeros: some lie after it.
                    true => space[begin + framing.length().start] -= 4,
                    false => space[begin + framing.head() + 2] ^= 1,
                }
            });
            ways_give(&specimen, &at, &all_but(6, &[2]));
        }
    }
}

/// A damaged length led over the mark's end to a later record, and readers left out the intact ones between. A known
/// border between two records is better evidence than one length.
#[test]
fn a_length_across_a_known_border_is_ignored() {
    for format in FORMATS {
        let framing = format.framing();
        for beside in [Beside::Closed(4), Beside::Open(4)] {
            let (specimen, _, at) = broken(format, &plain(8, 40), beside, |specimen, space| {
                let (begin, end) = (specimen.edges[1], specimen.edges[2]);
                let more = (specimen.edges[6] - end) as u32;
                let length = &mut space[begin..][framing.length()];
                let was = u32::from_le_bytes(*length.first_chunk().unwrap());
                length[..4].copy_from_slice(&(was + more).to_le_bytes());
                // The length at the record's end is damaged, too.
                space[end - 12..end].fill(0xff);
            });
            all_give(&specimen, &at, &all_but(8, &[1]));
        }
    }
}

/// A writer writes the head of a long record last. For a while the payload stands there alone, and
/// may hold whole records. A waiting follower took the inner records for proof of damage.
#[test]
fn a_follower_waits_for_an_unwritten_head() {
    let wait = Duration::from_millis(1300);
    let follow = |format: &dyn Format| {
        let framing = format.framing();
        let inner = [framing.encode(7, &[0xa1; 20]), framing.encode(7, &[0xa2; 30])].concat();
        let mut events = plain(3, 30);
        events[2].1 = [&inner[..], &[0x99; 500]].concat();
        let (specimen, memory, at) =
            broken(format, &events, Beside::Closed(2), |specimen, space| {
                space.truncate(specimen.edges[2]);
            });
        let reader = format.read(&at).unwrap();
        let begin = specimen.edges[2];
        let mut space = specimen.space[..specimen.edges[3] - 100].to_vec();
        space[begin..begin + framing.head()].fill(0);
        for (path, bytes) in &specimen.broken(&space).bytes {
            write_file(&memory, path, bytes);
        }
        let walk = reader.follow_for(wait);
        assert_eq!(walk.records.len(), 2, "{}", format.name());
        assert!(walk.error.is_none(), "{}: {:?}", format.name(), walk.error);
    };
    std::thread::scope(|scope| {
        for format in FORMATS {
            scope.spawn(move || follow(format));
        }
    });
}
