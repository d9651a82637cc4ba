//! Damage in logs with an index, and chains in a payload longer than any index block.

use super::*;

/// A payload full of records, longer than any chain the engine once believed for the length alone.
/// It lies below the mark, under a head claiming nearly all of it. Readers give none of the records.
#[test]
fn readers_ignore_records_inside_a_long_payload() {
    for format in LARGE {
        let framing = format.framing();
        let inner: Vec<u8> = plain(150, 63_000)
            .iter()
            .flat_map(|(tag, bytes)| framing.encode(*tag, bytes))
            .collect();
        assert!(inner.len() > 9 << 20);
        let mut events = plain(6, 40);
        events[2].1 = [&[0xff; 3][..], &inner, &[0xff; 40]].concat();
        for beside in [Beside::Open(6), Beside::Closed(6), Beside::Nothing] {
            let (specimen, _, at) = broken(format, &events, beside, |specimen, space| {
                // A length 16 below the true length, and no trailer to correct it.
                let (at, end) = (specimen.edges[2], specimen.edges[3]);
                let length = &mut space[at..][format.framing().length()];
                let was = u32::from_le_bytes(*length.first_chunk().unwrap());
                length[..4].copy_from_slice(&(was - 16).to_le_bytes());
                space[end - 12..end].fill(0xff);
            });
            ways_give(&specimen, &at, &all_but(6, &[2]));
        }
    }
}

#[test]
fn readers_agree_about_damage_in_an_indexed_log() {
    for format in LARGE {
        let framing = format.framing();
        for beside in besides(24) {
            let specimen = Specimen::new(format, &plain(24, 19_000), beside);
            let case = |what: &str, change: &dyn Fn(&mut Vec<u8>)| {
                let mut space = specimen.space.clone();
                change(&mut space);
                judge(&specimen, &space, &|| what.to_string());
            };
            let edge = |i: usize| specimen.edges[i];
            for i in [0, 3, 11, 12, 23] {
                for byte in [framing.length().start, framing.length().start + 1, framing.head() + 9]
                {
                    case(&format!("byte {byte} of record {i}"), &|space| {
                        space[edge(i) + byte] ^= 2;
                    });
                }
                case(&format!("sector at record {i} lost"), &|space| {
                    space[edge(i)..edge(i) + 512].fill(0);
                });
                case(&format!("records {i} and on cut"), &|space| space.truncate(edge(i) + 700));
            }
            for (i, j) in [(2, 3), (2, 20), (11, 23), (5, 12)] {
                case(&format!("sectors in records {i} and {j} lost"), &|space| {
                    for i in [i, j] {
                        space[edge(i) + 600..edge(i) + 1112].fill(0);
                    }
                });
                case(&format!("lengths of records {i} and {j}"), &|space| {
                    space[edge(i) + framing.length().start] ^= 1;
                    space[edge(j) + framing.length().start + 1] ^= 1;
                });
            }
        }
    }
    all_passed();
}

/// A log without its end, damaged near the beginning or intact, can still be split for many readers:
/// the engine cuts the log into parts at the borders in the index.
#[test]
fn a_damaged_log_splits_at_its_index_borders() {
    for (format, damaged) in
        LARGE.into_iter().flat_map(|format| [(format, &[1, 12][..]), (format, &[])])
    {
        let (specimen, _, at) =
            broken(format, &plain(24, 19_000), Beside::Closed(24), |specimen, space| {
                for i in damaged {
                    space[specimen.edges[*i]..][..512].fill(0);
                }
                space.truncate(specimen.edges[22] + 700);
            });
        let what = || format!("{}, damaged: {damaged:?}", format.name());
        let log = format.read(&at).unwrap();
        let parts = log.splits(1, None, None, true).unwrap();
        let many = parts.iter().filter(|part| !part.records.is_empty()).count();
        assert!(many > 5, "{}: {many} parts of 24 records of 19,000 bytes", what());
        let given = parts.iter().flat_map(|part| part.records.iter().map(|r| r.offset as usize));
        let expected = all_but(22, damaged).into_iter().map(|i| specimen.edges[i]);
        assert!(given.eq(expected), "{}", what());
    }
}
