//! Any bytes for log, mark, index and metadata: look, open, append, close, look again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deedbook::Batch;
use deedbook::ErrorKind;
use deedbook::book::BookFormat;
use deedbook::book::Layout;
use deedbook::report::MarkUse;
use deedbook::report::Verdict;
use deedbook::{Mode, Recovery};

use super::kit::{
    Event, HEADER, Input, Slot, World, deed, event_at, filler, has_intact_slot, header, image,
    pieces, strict,
};
use super::views::look;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.u8();
    let mut world = World::new(["/b", "/b", "/0i0", "/0i7"][usize::from(how & 3)]);
    world.options.deed_bytes_max = [1 << 32, 1 << 32, 1 << 20, 300][usize::from(how >> 2 & 3)];
    world.options.recovery = match how >> 4 & 3 {
        0 | 1 => Recovery::Valid,
        2 => Recovery::Acknowledged,
        _ => Recovery::Spec,
    };
    let named = how & 2 != 0;
    let honest = arrange(&mut input, &world, how >> 6);
    let view = look(&world, honest);
    if let Some(view) = view.as_ref().filter(|view| view.layout != Layout::Packed) {
        // The oracle knows only `packed`.
        if view.layout == Layout::Padded {
            let before = world.files();
            let refused = world.options.open(&world.dir, Mode::Append).unwrap_err();
            assert_eq!((refused.kind(), before), (ErrorKind::Unsupported, world.files()));
        }
        return;
    }
    if honest && let Some(view) = &view {
        // Reading gives exactly the intact deeds before the first damage; past damage in the header
        // these first.
        let log = world.log();
        let places = strict(&log, world.options.deed_bytes_max);
        // If the header never reached the disk, no later byte belongs to the log.
        let headless = log.get(8..HEADER) == Some(&[0; 8]) && view.verdict == Verdict::Torn;
        let places = if headless { &[][..] } else { &places };
        let there: Vec<_> = places.iter().map(|place| event_at(&log, *place)).collect();
        let seen = match &view.past_header {
            Some(past) => past.iter().take(there.len()).cloned().collect(),
            None => view.events(),
        };
        let same = seen.iter().map(|(mug, jam)| (*mug, &jam[..])).eq(there.iter().copied());
        assert!(same, "{} deeds read, {} intact", seen.len(), there.len());
    }
    mended(&world, honest);
    appended(&mut input, &world, honest, named);
}

/// Write log and sidecar. Returns `false` for a forged sidecar.
fn arrange(input: &mut Input, world: &World, sidecar: u8) -> bool {
    let log = if sidecar == 0 { image(input) } else { healthy(input) };
    world.put(&world.log_path(), &log);
    let limit = world.options.deed_bytes_max;
    let mut honest = true;
    if sidecar == 0 {
        return honest;
    }
    // A mark that was true when stored.
    let places = strict(&log, limit);
    let count = input.below(places.len() + 1);
    let first = u64::from_le_bytes(log[8..16].try_into().unwrap());
    let mut slot = Slot::of(first.max(1), &places, count, world.log_id());
    slot.seq = input.u8().into();
    let what = input.u8();
    if sidecar == 2 && what & 3 == 0 {
        honest = false;
        (0..=what >> 6).for_each(|_| slot.lie(input));
    }
    let mut mark = slot.bytes();
    mark.resize(1024, 0);
    if what & 4 != 0 {
        mark.rotate_right(512);
    }
    if sidecar == 3 {
        let len = usize::from(input.u8());
        let raw = input.bytes(len);
        match what & 3 {
            0 => mark = raw.to_vec(),
            _ => mark.iter_mut().skip(usize::from(what >> 3) * 4).zip(raw).for_each(|(m, r)| {
                *m ^= r;
            }),
        }
    }
    if what & 8 != 0 {
        let len = usize::from(input.u8());
        world.put(&world.sidecar("index"), input.bytes(len));
    }
    if what & 16 != 0 {
        let len = usize::from(input.u8());
        world.put(&world.dir.join("meta.bin"), input.bytes(len));
    }
    world.put(&world.sidecar("mark"), &mark);
    if sidecar == 3 && has_intact_slot(&mark) && mark[..128] != slot.bytes() {
        honest = false;
    }
    // Damage the log after storing the mark.
    let mut damaged = log;
    pieces(input, &mut damaged);
    world.put(&world.log_path(), &damaged);
    honest
}

/// A log without damage.
fn healthy(input: &mut Input) -> Vec<u8> {
    let mut log = header([1, 1, 8, 100][usize::from(input.u8() & 3)]);
    for _ in 0..input.u8() & 31 {
        let len = usize::from(input.u8());
        match len {
            250.. => log.extend(deed(1, &filler(len * 160, 9))),
            _ => log.extend(deed(input.u32(), &filler(len, len as u8))),
        }
    }
    log
}

/// Repair a copy: the repair cuts and saves the damage found by verify, or changes nothing.
fn mended(world: &World, honest: bool) {
    let world = world.after_death();
    let before = world.files();
    let log = world.log();
    let verified = world.check();
    match world.options.repair(
        &world.dir,
        deedbook::report::Repair { force: true, accept_loss: true, dry_run: false },
    ) {
        Err(_) => assert_eq!(before, world.files(), "a refused repair changed something"),
        Ok(report) => {
            let after = world.log();
            assert!(log.starts_with(&after));
            assert_eq!((log.len() - after.len()) as u64, report.cut_bytes);
            saved(&world, &log[after.len()..], report.saved.first());
            if honest {
                let verified = verified.expect("repaired, so it could be verified");
                assert_eq!(after.len() as u64, verified.valid_end, "{verified:?}");
                let again = world.check().unwrap();
                assert_eq!(again.verdict, Verdict::Clean, "{again:?}");
                assert!(again.ok());
            }
        }
    }
}

/// The cut bytes lie next to the log, without zeros at the end.
fn saved(world: &World, cut: &[u8], to: Option<&PathBuf>) {
    let kept = to.map(|path| world.read(path).unwrap()).unwrap_or_default();
    let (same, rest) = cut.split_at(kept.len());
    assert_eq!(same, &kept[..]);
    assert!(rest.iter().all(|&byte| byte == 0), "bytes cut and not saved");
}

fn appended(input: &mut Input, world: &World, honest: bool, named: bool) {
    let before: BTreeMap<_, _> = world.files();
    let log = world.log();
    let limit = world.options.deed_bytes_max;
    let verified = world.check();
    let book = match world.options.open(&world.dir, Mode::Append) {
        Ok(book) => book,
        Err(error) => {
            assert_eq!(before, world.files(), "a refused writer changed something: {error}");
            let fine = verified.is_ok_and(|report| report.verdict != Verdict::Corrupt);
            let other = named || error.kind() == ErrorKind::LostRecords;
            assert!(!honest || !fine || other, "verify finds no fault, a writer: {error:?}");
            return;
        }
    };
    let report = book.recovery().clone();
    let opened = world.log();
    if log.is_empty() {
        assert_eq!(opened.len(), HEADER);
    } else {
        assert!(log.starts_with(&opened), "opening changed what it kept");
        assert_eq!((log.len() - opened.len()) as u64, report.cut_bytes);
    }
    let places = strict(&opened, limit);
    let whole = places.last().map_or(HEADER, |place| place.end) == opened.len();
    let spec = world.options.recovery == Recovery::Spec;
    if spec {
        saved(world, log.get(opened.len()..).unwrap_or_default(), report.saved_to.as_ref());
    }
    if honest {
        if let (MarkUse::Used, Some(durable), false) = (report.mark, report.durable_end, spec) {
            assert!(opened.len() as u64 >= durable, "acknowledged deeds cut");
        }
        // Damage may remain only where a quick opening does not look, and verify reports such
        // damage.
        let verdict = verified.as_ref().map(|report| report.verdict);
        assert!(whole || matches!(verdict, Ok(Verdict::Corrupt | Verdict::Torn)));
        let clean = matches!(verdict, Ok(Verdict::Clean));
        let may_cut = world.options.recovery == Recovery::Acknowledged;
        assert!(!clean || may_cut || opened.len() == log.len(), "a clean log was cut");
        if whole {
            assert_eq!(book.len().unwrap(), places.len() as u64);
        }
    }

    // Append, close, and find the old and the new deeds.
    let mut new: Vec<Event> = Vec::new();
    for _ in 0..input.u8() & 3 {
        let event = (input.u32(), filler(input.u8().into(), 3));
        match book.append(event.0, &event.1) {
            Ok(_) => new.push(event),
            Err(error) => assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}"),
        }
    }
    let mut batch = Batch::<BookFormat>::new(limit);
    (0..input.u8() & 7).for_each(|i| batch.push(i.into(), &[i; 40]).unwrap());
    match book.append_batch(&batch, None, None) {
        Ok(_) => new.extend((0..batch.len()).map(|i| (i as u32, vec![i as u8; 40]))),
        Err(error) => assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}"),
    }
    if input.u8() & 1 == 0 {
        book.sync().unwrap();
    }
    book.close().unwrap();
    let closed = world.log();
    let encoded: Vec<u8> = new.iter().flat_map(|(mug, jam)| deed(*mug, jam)).collect();
    assert_eq!(closed[HEADER..], [&opened[HEADER..], &encoded].concat());
    if !honest || !whole {
        look(world, false);
        return;
    }
    let view = look(world, true).expect("a log just written can be read");
    let old = places.iter().map(|place| event_at(&opened, *place));
    let old = old.map(|(mug, jam)| (mug, jam.to_vec()));
    assert_eq!(view.events(), old.chain(new).collect::<Vec<_>>());
    assert_eq!((view.failed, view.verdict), (None, Verdict::Clean));
    let report = world.check().unwrap();
    assert!(report.ok() && report.verdict == Verdict::Clean, "{report:?}");
}
