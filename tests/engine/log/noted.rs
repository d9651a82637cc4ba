//! A check notes the damage it finds.
//!
//! A newcomer damaged a log in its middle. `verify` named the place, and the next opening for writing went on: opening
//! does not read the bytes below the mark. The damage came to light again months later.

use super::*;

/// A closed log of 300 records, and its files with a changed byte in the tenth record.
fn damaged(format: &dyn Format) -> (Specimen<'_>, Memory, At) {
    let events: Vec<_> = (0..300).map(|i| event_of(i, 400)).collect();
    let specimen = Specimen::new(format, &events, Beside::Closed(events.len()));
    let memory = specimen.files.restore();
    flip(&specimen, &memory);
    let at = At::memory(&memory, specimen.path());
    (specimen, memory, at)
}

fn flip(specimen: &Specimen<'_>, memory: &Memory) {
    let mut space = Files::of(memory).space(specimen.format);
    let payload = &specimen.events[9].1;
    let place = |bytes: &[u8]| bytes.windows(8).position(|part| part == &payload[4..12]);
    let at = place(&specimen.space).unwrap();
    space[at] ^= 1;
    for (path, bytes) in Files::of(memory).with_space(specimen.format, &space).bytes {
        if read_file(memory, &path) != bytes {
            write_file(memory, &path, &bytes);
        }
    }
}

#[test]
fn known_damage_refuses_an_open_for_writing() {
    for format in with_sums() {
        let (specimen, memory, at) = damaged(format);
        format.open(&at, Mode::Append, MANUAL).unwrap().close().unwrap();

        // A check puts nothing next to another program's log; its opening sees the damage itself.
        let bare = Files::of(&memory).without_sidecar().restore();
        let report = format.verify_rest(&At::memory(&bare, specimen.path()), MANUAL, &[]).unwrap();
        assert!(!report.ok() && !report.noted);
        assert!(!bare.is_dir(&format.sidecar(&at.path)), "{}", format.name());

        let report = format.verify_rest(&at, MANUAL, &[]).unwrap();
        assert!(report.noted && !report.ok(), "{}: {report:?}", format.name());
        let before = Files::unlocked(&memory);
        let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        assert_eq!(error.offset(), Some(report.damages[0].offset), "{error}");
        assert!(error.message().contains(&report.damages[0].reason), "{error}");
        assert_eq!(Files::unlocked(&memory), before, "{}", format.name());
        assert_eq!(format.read(&at).unwrap().len().unwrap(), 300);

        flip(&specimen, &memory);
        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        let report = format.verify_rest(&at, MANUAL, &[]).unwrap();
        assert!(report.ok() && !report.noted, "{report:?}");
        format.open(&at, Mode::Append, MANUAL).unwrap();
    }
}

#[test]
fn a_repair_ends_the_refusal() {
    for format in with_sums() {
        let (_, _, at) = damaged(format);
        assert!(format.verify_rest(&at, MANUAL, &[]).unwrap().noted);
        // Intact records lie after the damage: only a forced repair removes them.
        format.repair(&at, MANUAL).unwrap_err();
        refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        for dry_run in [true, false] {
            let how = Repair { force: true, accept_loss: true, dry_run };
            format.repair_as(&at, MANUAL, how).unwrap();
            let opened = format.open(&at, Mode::Append, MANUAL);
            assert_eq!(opened.is_ok(), !dry_run, "{}", format.name());
        }
    }
}

/// In `slots`, records have no checksums; the index has one for each block.
#[test]
fn a_rotten_block_is_noted() {
    let events: Vec<_> = (0..1500).map(|i| event_of(i, 400)).collect();
    let slots = LARGE[3];
    let specimen = Specimen::new(slots, &events, Beside::Closed(events.len()));
    let memory = specimen.files.restore();
    let at = At::memory(&memory, specimen.path());
    let log = slots.open(&at, Mode::Append, MANUAL).unwrap();
    log.sync().unwrap();
    log.commit(0, b"a batch of its own").unwrap();
    log.close().unwrap();
    drop(log);
    flip(&specimen, &memory);
    let report = slots.verify_rest(&at, MANUAL, &[]).unwrap();
    assert!(report.noted && report.damages[0].reason.contains("of the block"), "{report:?}");
    refused(slots.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
    slots.repair_as(&at, MANUAL, Repair::default()).unwrap();
    slots.open(&at, Mode::Append, MANUAL).unwrap();
}

#[test]
fn a_damaged_note_refuses_and_names_itself() {
    for format in with_sums() {
        let (specimen, memory, at) = damaged(format);
        assert!(format.verify_rest(&at, MANUAL, &[]).unwrap().noted);
        let note = format.sidecar(&at.path).join("damage");
        let mut bytes = read_file(&memory, &note);
        bytes[7] ^= 1;
        write_file(&memory, &note, &bytes);
        let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        assert!(error.message().contains("verify the log again"), "{error}");
        flip(&specimen, &memory);
        assert!(format.verify_rest(&at, MANUAL, &[]).unwrap().ok());
        format.open(&at, Mode::Append, MANUAL).unwrap();
    }
}

#[test]
fn opening_reads_all_on_request() {
    for format in with_sums() {
        let (specimen, memory, at) = damaged(format);
        let open = |mode| match format.framing().is_book() {
            true => book::options(&at, MANUAL).check_all(true).open(&at.path, mode).map(drop),
            false => wal::ANY.options(&at, MANUAL).check_all(true).open(&at.path, mode).map(drop),
        };
        for mode in [Mode::Read, Mode::Append] {
            refused(open(mode), ErrorKind::Corrupt);
        }
        flip(&specimen, &memory);
        for mode in [Mode::Read, Mode::Append] {
            open(mode).unwrap();
        }
    }
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    let options = book::options(&At::memory(&memory, DIR), MANUAL).check_all(true);
    options.open("/log/new", Mode::Create).unwrap();
}
