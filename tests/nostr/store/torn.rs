//! Events that a power cut tore in a segment, while the write-ahead log has them whole.

use std::sync::Arc;

use deedbook::nostr::{Check, Event, Flags, Outcome};
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Mode};

use crate::support::store::events::{all, changed, event, note, read, write};
use crate::support::store::world::{DIR, options};

const SECTOR: usize = 512;

/// Write an event with or without a checksum, commit it, lose some of its bytes in the segment, and open the
/// store with either option.
fn torn(last: &Event, lost: impl Fn(&[u8]) -> std::ops::Range<usize>) {
    for (written, opened) in [(false, true), (false, false), (true, false), (true, true)] {
        let what = format!("written with checksums: {written}, opened with: {opened}");
        let disk = Sim::new();
        let on = options(&disk, Durability::Manual);
        let store = on.clone().checksums(written).open(DIR, Mode::Append).unwrap();
        store.append(&note(1)).unwrap();
        store.checkpoint().unwrap();
        let Outcome::Stored(at) = store.append(last).unwrap() else { panic!("{what}") };
        store.append(&note(2)).unwrap();
        store.commit().unwrap();
        let image = disk.kill();
        drop(store);
        changed(&image, &format!("{DIR}/data/segments/data.{}.seg", at.segment), |bytes| {
            let page = &mut bytes[at.offset as usize..];
            let lost = lost(page);
            page[lost].fill(0);
        });
        let on = on.checksums(opened).storage(Arc::new(image));
        let store = on.open(DIR, Mode::Append).unwrap();
        let events = [note(1), last.clone(), note(2)];
        assert_eq!(all(&store), events, "{what}: {:?}", store.opening());
        assert_eq!(store.opening().appended_again, 2, "{what}");
        let found = store.find(&last.id).unwrap().unwrap();
        assert_eq!((&found.event, found.flags), (last, Flags::default()), "{what}");
        let report = store.verify(Check::Id).unwrap();
        assert!(report.is_ok(), "{what}: {report:?}");
        store.close().unwrap();
        assert_eq!(all(&on.open(DIR, Mode::Read).unwrap()), events, "{what}");
    }
}

/// Events were stored without checksums, and a power cut took a sector of one of them. An opening with the default
/// options, under which events get checksums, took what was left for an event: it stayed, and the
/// whole one of the log was appended after it.
#[test]
fn an_event_without_a_checksum_that_is_torn_is_taken_from_the_log_whatever_the_options() {
    for tags in [&[&["t", "deedbook"][..]][..], &[]] {
        let last = event(9, 1_700_000_009, 1, tags, &"x".repeat(1_500));
        torn(&last, |_| SECTOR..2 * SECTOR);
        torn(&last, |_| 2 * SECTOR..3 * SECTOR);
    }
}

/// The same where the sector had only a part of the signature, which no id covers.
#[test]
fn an_event_without_a_checksum_whose_signature_is_torn_is_taken_from_the_log() {
    let last = event(9, 1_700_000_009, 1, &[], &"x".repeat(1_500));
    torn(&last, |page| {
        let sig = page.windows(64).position(|bytes| bytes == last.sig).unwrap();
        sig + 30..sig + 64
    });
}

/// Neither the log nor a checksum vouched for an event that a power cut left in the segment. An opening with the
/// default options took it for one, whatever was left of it.
#[test]
fn an_event_without_a_checksum_that_the_log_lost_needs_a_true_id_and_a_true_signature() {
    let lines = include_str!("../../data/nostr/events.jsonl");
    let signed = Event::from_json(lines.lines().next().unwrap().as_bytes()).unwrap();
    let nothing: &[u8] = &[];
    for lost in [nothing, signed.content.as_bytes(), &signed.sig[30..]] {
        let disk = Sim::new();
        let on = options(&disk, Durability::Manual);
        let store = on.clone().checksums(false).open(DIR, Mode::Append).unwrap();
        store.append(&note(1)).unwrap();
        store.checkpoint().unwrap();
        let wal = &format!("{DIR}/wal/wal.log");
        let log = read(&disk, wal);
        let Outcome::Stored(at) = store.append(&signed).unwrap() else { panic!() };
        let image = disk.kill();
        drop(store);
        write(&image, wal, &log);
        changed(&image, &format!("{DIR}/data/segments/data.{}.seg", at.segment), |bytes| {
            let page = &mut bytes[at.offset as usize..];
            if !lost.is_empty() {
                let begin = page.windows(lost.len()).position(|bytes| bytes == lost).unwrap();
                page[begin..begin + lost.len()].fill(0);
            }
        });
        let store = on.storage(Arc::new(image)).open(DIR, Mode::Append).unwrap();
        let (mut events, stays) = (vec![note(1)], lost.is_empty());
        events.extend(stays.then(|| signed.clone()));
        assert_eq!(all(&store), events, "{} bytes lost", lost.len());
        assert_eq!(store.opening().saved.len(), usize::from(!stays));
    }
}
