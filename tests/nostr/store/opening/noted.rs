//! Damaged pages that a check found are remembered: opening does not read what a checkpoint covers.

use crate::store::prelude::*;

#[test]
fn store_with_known_damage_refuses_writers() {
    let disk = closed(&notes(0..5));
    // Change a byte of the second event, or change it back.
    let flip = || flip_page(&disk, FIRST, 2);
    let refused = |on: Options, mode, said: &str| {
        let error = on.open(DIR, mode).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(8192)), "{error}");
        assert!(error.message().contains(said), "{error}");
    };
    let is_noted = || refused(on(&disk), Mode::Append, "an earlier check found this damage");
    let verified = || reader(&disk).verify(Default::default()).unwrap();
    flip();
    writer(&disk).close().unwrap();
    for mode in [Mode::Read, Mode::Append] {
        refused(on(&disk).check_all(true), mode, "");
    }
    is_noted();
    assert!(verified().noted);
    is_noted();

    // Put the right byte back.
    flip();
    is_noted();
    let report = verified();
    assert!(report.ok() && !report.noted, "{report:?}");
    on(&disk).check_all(true).open(DIR, Mode::Append).unwrap().close().unwrap();

    flip();
    assert!(verified().noted);
    assert!(mended(&disk, ALL).unwrap().mended);
    writer(&disk).append(&note(9)).unwrap();
}
