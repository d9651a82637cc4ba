//! Files at the target of a conversion: from an earlier attempt, from another book, or from another program.

use crate::convert::{SOURCE, STATES, TARGET, begun, converted, events, is_there, log_of, on};
use crate::prelude::*;
use crate::support::crashes::images;

/// A killed conversion had already renamed its metadata, and the next copy, of another book, took the metadata over.
#[test]
fn a_copy_ignores_metadata_of_a_killed_conversion() {
    let disk = begun(Layout::Packed);
    let other = on(disk.clone()).open("/other", Mode::Create).unwrap();
    other.append(1, b"without metadata").unwrap();
    other.close().unwrap();
    let again = |disk: &Sim| {
        let done = on(disk.clone()).convert("/other", TARGET, Layout::Slots, |_, _| Ok(()));
        assert_eq!(done.unwrap().deeds, 1);
    };
    let check = |disk: &Sim| {
        assert_eq!(log_of(disk, TARGET), [(1, b"without metadata".to_vec())]);
        let copy = on(disk.clone()).open(TARGET, Mode::Read).unwrap();
        assert_eq!(copy.meta().unwrap(), Meta::default());
    };
    disk.record();
    converted(&disk, TARGET, Layout::Slots).unwrap();
    let mut tried = 0;
    for moment in disk.recorded() {
        let names = moment.list(Path::new(TARGET)).unwrap_or_default();
        if is_there(&moment) || !names.iter().any(|name| name == "meta.bin") {
            continue;
        }
        tried += 1;
        moment.record();
        again(&moment);
        check(&moment);
        // The second conversion may lose power, too.
        for later in moment.recorded() {
            for image in cuts(&later, 10) {
                if !is_there(&image) {
                    again(&image);
                }
                check(&image);
            }
        }
    }
    assert!(tried > 0);
}

#[test]
fn a_conversion_overwrites_no_part_of_another_book() {
    for (name, is_dir) in [("meta.bin", false), (".deedbook", true), ("book.log", false)] {
        let disk = begun(Layout::Packed);
        disk.create_dir(Path::new(TARGET)).unwrap();
        let path = Path::new(TARGET).join(name);
        match is_dir {
            true => {
                disk.create_dir(&path).unwrap();
                write_file(&disk, &path.join("transactions"), b"another one's");
            }
            false => write_file(&disk, &path, b"another one's"),
        }
        let error = refused(converted(&disk, TARGET, Layout::Slots), ErrorKind::AlreadyExists);
        assert_eq!(error.path(), Some(&*path));
        assert_eq!(disk.list(Path::new(TARGET)).unwrap(), [name]);
        assert!(is_dir || read_file(&disk, &path) == b"another one's");
    }
}

/// A conversion replaced a log, with acknowledged deeds, that a writer had created there in the meantime.
#[test]
fn a_log_that_a_writer_made_meanwhile_stays() {
    for (closes, kind) in [(true, ErrorKind::AlreadyExists), (false, ErrorKind::Locked)] {
        let disk = begun(Layout::Packed);
        let mut writer = None;
        let done = on(disk.clone()).convert(SOURCE, TARGET, Layout::Slots, |_, _| {
            if writer.is_none() {
                let book = on(disk.clone()).open(TARGET, Mode::Append)?;
                book.append(7, b"acknowledged")?;
                book.sync()?;
                book.save_meta(&Meta { life: Some(9), ..Meta::default() })?;
                if closes {
                    book.close()?;
                }
                writer = Some(book);
            }
            Ok(())
        });
        assert_eq!(done.unwrap_err().kind(), kind);
        drop(writer);
        assert_eq!(log_of(&disk, TARGET), [(7, b"acknowledged".to_vec())]);
        let book = on(disk.clone()).open(TARGET, Mode::Read).unwrap();
        assert_eq!(book.meta().unwrap().life, Some(9));
        let mut names = disk.list(Path::new(TARGET)).unwrap();
        names.sort();
        assert_eq!(names, [".deedbook", "book.log", "meta.bin"]);
    }
}

/// A copy without deeds had its log but not yet its mark, and began with event 1.
#[test]
fn an_empty_copy_keeps_its_epoch_after_crashes() {
    for to in [Layout::Packed, Layout::Slots] {
        let disk = Sim::new();
        let empty = on(disk.clone()).epoch(100).open(SOURCE, Mode::Create).unwrap();
        empty.close().unwrap();
        disk.record();
        assert_eq!(converted(&disk, TARGET, to).unwrap(), 0);
        let mut whole = 0;
        for moment in disk.recorded() {
            for image in images(&moment, STATES) {
                match is_there(&image) {
                    true => whole += 1,
                    false => assert_eq!(converted(&image, TARGET, to).unwrap(), 0),
                }
                let copy = on(image).open(TARGET, Mode::Read).unwrap();
                assert_eq!(copy.epoch().unwrap(), 100, "{to:?}");
            }
        }
        assert!(whole > 5, "{whole} with a copy");
    }
}

/// The directory existed before and was not synced: a power cut lost the directory and the copy.
#[test]
fn a_copy_in_an_unsynced_directory_becomes_durable() {
    let disk = begun(Layout::Packed);
    disk.create_dir(Path::new(TARGET)).unwrap();
    assert_eq!(converted(&disk, TARGET, Layout::Slots).unwrap(), 40);
    assert!(cuts(&disk, STATES).iter().all(|image| log_of(image, TARGET) == events()));
}
