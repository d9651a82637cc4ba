//! Events torn by a power cut in a segment: the write-ahead log has the whole event, or lost it.

use crate::store::prelude::*;

const SECTOR: usize = 512;

/// Write and commit an event with or without a checksum, lose some of its bytes in the segment, and open the store with
/// either option.
fn torn(last: &Event, lost: impl Fn(&[u8]) -> Range<usize>) {
    for (written, opened) in [(false, true), (false, false), (true, false), (true, true)] {
        let what = format!("written with checksums: {written}, opened with: {opened}");
        let disk = Sim::new();
        let on = options(&disk, Durability::Manual);
        let store = open(&on.clone().checksums(written));
        store.append(&note(1)).unwrap();
        store.checkpoint().unwrap();
        let at = stored(&store, last);
        store.append(&note(2)).unwrap();
        store.sync().unwrap();
        let image = disk.kill();
        changed(&image, &segment(at.segment), |bytes| {
            let page = &mut bytes[at.offset as usize..];
            let lost = lost(page);
            page[lost].fill(0);
        });
        let on = on.checksums(opened).storage(Arc::new(image));
        let store = open(&on);
        let events = [note(1), last.clone(), note(2)];
        assert_eq!(all(&store), events, "{what}: {:?}", store.opening());
        assert_eq!(store.opening().appended_again, 2, "{what}");
        let found = store.find(&last.id).unwrap().unwrap();
        assert_eq!((&found.event, found.flags), (last, Flags::default()), "{what}");
        let report = store.verify(Check::Id).unwrap();
        assert!(report.ok(), "{what}: {report:?}");
        store.close().unwrap();
        assert_eq!(all(&on.open(DIR, Mode::Read).unwrap()), events, "{what}");
    }
}

/// A power cut lost a sector of an event without a checksum. An opening with the default options, under which events
/// get checksums, took the torn bytes for an event, kept them, and appended the log's whole event after them. The same
/// for a sector with a part of the signature, which no id covers.
#[test]
fn torn_event_without_checksum_comes_from_the_log() {
    for tags in [&[&["t", "deedbook"][..]][..], &[]] {
        let last = event(9, 1_700_000_009, 1, tags, &"x".repeat(1_500));
        torn(&last, |_| SECTOR..2 * SECTOR);
        torn(&last, |_| 2 * SECTOR..3 * SECTOR);
        torn(&last, |page| {
            let sig = page.windows(64).position(|bytes| bytes == last.sig).unwrap();
            sig + 30..sig + 64
        });
    }
}

/// A power cut lost an event without a checksum from the log, and left all or a part of the event in the segment.
/// Opening accepted an event with half of its signature, because the id covers all other fields. An opening with the
/// default options accepted any rest. With a manifest, the log alone decides.
#[test]
fn event_outside_the_log_needs_checksum_or_signature() {
    let lines = include_str!("../../../data/nostr/events.jsonl");
    let signed = Event::from_json(lines.lines().next().unwrap().as_bytes()).unwrap();
    let cases: [(&Event, &[u8], bool); 4] = [
        (&signed, &[], true),
        (&signed, signed.content.as_bytes(), false),
        (&signed, &signed.sig[30..], false),
        (&note(9), &[], false),
    ];
    // The log has events after the checkpoint or none, the manifest is there or lost, and the store opens with either
    // option.
    let stores =
        [(0, true, false), (0, true, true), (1, true, false), (1, true, true), (1, false, false)];
    for (&(last, lost, stays), (logged, is_known, checksums)) in
        cases.iter().flat_map(|case| stores.map(|store| (case, store)))
    {
        let stays = stays && !is_known;
        let disk = Sim::new();
        let on = options(&disk, Durability::Manual).checksums(false);
        let store = open(&on);
        store.append(&note(1)).unwrap();
        store.checkpoint().unwrap();
        store.append_many(&[note(2)][..logged]).unwrap();
        let log = read(&disk, WAL);
        let at = stored(&store, last);
        let image = disk.kill();
        write(&image, WAL, &log);
        if !is_known {
            remove_manifests(&image);
        }
        changed(&image, &segment(at.segment), |bytes| {
            let page = &mut bytes[at.offset as usize..];
            let begin = page.windows(lost.len().max(1)).position(|bytes| bytes.starts_with(lost));
            page[begin.unwrap()..][..lost.len()].fill(0);
        });
        let what =
            format!("{} bytes lost, {logged} logged, manifest {is_known}, {checksums}", lost.len());
        let on = on_disk(&on, &image).checksums(checksums);
        let store = open(&on);
        let opening = store.opening();
        assert_eq!(opening.saved.len(), usize::from(!stays), "{what}: {opening:?}");
        let mut events = vec![note(1), note(2)];
        events.truncate(1 + logged);
        events.extend(stays.then_some(last.clone()));
        assert_eq!(live(&store), events, "{what}");
        store.close().unwrap();
        assert_eq!(live(&on.open(DIR, Mode::Read).unwrap()), events);
    }
}
