//! What lies where a copy is to lie: of an earlier attempt, of another book, of another program.

use std::path::Path;

use deedbook::ErrorKind;
use deedbook::book::{Layout, Meta, Mode, convert};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;

use crate::common::{read_file, write_file};
use crate::{SOURCE, TARGET, begun, converted, events, is_there, log_of, on};

/// The metadata that a killed conversion had renamed already became that of the next copy, of another book.
#[test]
fn metadata_that_a_killed_conversion_left_is_not_that_of_the_next_copy() {
    let disk = begun(Layout::Packed);
    let other = on(disk.clone()).open("/other", Mode::Create).unwrap();
    other.append(1, b"without metadata").unwrap();
    other.close().unwrap();
    let again = |disk: &Sim| {
        let done = convert("/other", TARGET, Layout::Slots, &on(disk.clone()), |_, _| Ok(()));
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
        // And if that one loses power.
        for later in moment.recorded() {
            let crashes = later.crashes();
            for index in 0..crashes.count().min(10) {
                let image = crashes.build(&crashes.sample(index));
                if !is_there(&image) {
                    again(&image);
                }
                check(&image);
            }
        }
    }
    assert!(tried > 0);
}

/// Metadata, or what we keep beside a log, may be another book's: nothing is written over it.
#[test]
fn a_directory_with_a_part_of_another_book_is_no_place_for_a_copy() {
    for (name, is_dir) in [("meta.bin", false), (".deedbook", true), ("book.log", false)] {
        let disk = begun(Layout::Packed);
        disk.create_dir(Path::new(TARGET)).unwrap();
        let path = Path::new(TARGET).join(name);
        match is_dir {
            true => disk.create_dir(&path).unwrap(),
            false => write_file(&disk, &path, b"another one's"),
        }
        let error = converted(&disk, TARGET, Layout::Slots).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        assert_eq!(error.path(), Some(&*path));
        assert_eq!(disk.list(Path::new(TARGET)).unwrap(), [name]);
        assert!(is_dir || read_file(&disk, &path) == b"another one's");
    }
}

/// Two at once would write one log.
#[test]
fn a_conversion_to_the_place_of_another_one_that_runs_is_refused() {
    let disk = begun(Layout::Packed);
    let mut tried = 0;
    let report = convert(SOURCE, TARGET, Layout::Slots, &on(disk.clone()), |_, _| {
        let error = converted(&disk, TARGET, Layout::Slots).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        tried += 1;
        Ok(())
    });
    assert_eq!(report.unwrap().deeds, 40);
    assert!(tried > 0);
    assert_eq!(log_of(&disk, TARGET), events());
}
