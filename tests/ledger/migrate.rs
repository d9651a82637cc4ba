//! Migration of DirectoryStore files: whole, torn and damaged files, after any interruption. `tests/interop` does the
//! same with the crate that writes the files.

use deedbook::ledger::{FileMigration, Migration};
use proptest::prelude::*;
use serde_json::Value;

use crate::prelude::*;

const OLD: &str = "/old";
const HEADER: &str = "{ \"batch\": [";
const FOOTER: &str = "],\"sentAt\":\"2026-01-02T03:04:05.678Z\",\"writeKey\":\"key\"}";

fn old(storage: &dyn Storage, name: &str, bytes: impl AsRef<[u8]>) {
    storage.create_dir(Path::new(OLD)).unwrap();
    write_file(storage, &Path::new(OLD).join(name), bytes.as_ref());
}

fn config() -> LedgerConfig {
    small(DIR, 300)
}

fn run(options: &Options) -> Result<Vec<FileMigration>> {
    Migration::new(OLD, BASE).run(config(), options, |_, _| Ok(()))
}

fn events(options: &Options) -> Vec<String> {
    let ledger = options.open(config()).unwrap();
    let text = |payload: Vec<u8>| String::from_utf8(payload).unwrap();
    drain(&ledger).into_iter().map(text).collect()
}

fn migrated(name: &str, bytes: impl AsRef<[u8]>) -> (FileMigration, Vec<String>, Memory) {
    let (memory, options) = memory();
    old(&memory, name, bytes);
    let mut reports = run(&options).unwrap();
    assert_eq!(reports.len(), 1);
    (reports.remove(0), events(&options), memory)
}

fn batch(events: &[&str]) -> String {
    format!("{HEADER}{}", events.join(","))
}

const EVENTS: [&str; 6] = [
    r#"{"event":"page_view","n":1}"#,
    r#"{"a":[1,[2,{}],"],\"sentAt\":\""],"b":{"c":null}}"#,
    r#""only text""#,
    r#"[true,"\\\"\u00e9",-1.5e-7]"#,
    r#"{"tail":[[1,2],[3]]}"#,
    r#"{"é":"😀","empty":{},"none":[]}"#,
];

#[test]
fn files_of_the_real_store_migrate_completely() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/directory_store");
    let (memory, options) = memory();
    let (mut names, mut texts) = (Vec::new(), String::new());
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().into_string().unwrap());
        old(&memory, names.last().unwrap(), std::fs::read(entry.path()).unwrap());
    }
    names.sort();
    let active = names.iter().find(|name| !name.ends_with(".temp")).unwrap();
    let reports = run(&options).unwrap();
    assert_eq!(reports.len(), names.len());
    for (name, report) in names.iter().zip(&reports) {
        assert_eq!(report.path, Path::new(OLD).join(name));
        assert_eq!((report.active, report.removed), (name == active, true));
        assert_eq!((report.rest_from, &report.set_aside), (None, &None));
    }
    let found = events(&options);
    found.iter().for_each(|event| texts.push_str(event));
    assert_eq!(found.len(), 9);
    assert_eq!(reports.iter().map(|report| report.events).sum::<u64>(), 9);
    for number in 0..9 {
        assert!(texts.contains(&number.to_string()), "{number}: {texts}");
    }
    assert!(listing(&memory, Path::new(OLD)).is_empty());
}

#[test]
fn every_ending_that_a_store_leaves_is_accepted() {
    let torn = &FOOTER[..30];
    for end in [
        String::new(),
        ",".into(),
        FOOTER.into(),
        torn.into(),
        FOOTER.repeat(3),
        format!("{torn}{FOOTER}{torn}"),
        format!(",{FOOTER}"),
        "],\"sentAt\":\"2026-01-02T03:04:05.678Z\",\"writeKey\":\"k],\"sentAt\":\"x\\\"}".into(),
    ] {
        for count in 1..=EVENTS.len() {
            let text = format!("{}{end}", batch(&EVENTS[..count]));
            let (report, events, memory) = migrated("7-events", &text);
            assert_eq!(events, EVENTS[..count], "{text}");
            assert_eq!((report.rest_reason, report.removed), (None, true), "{text}");
            assert!(quarantined(&memory).is_empty());
        }
    }
    // A file without an event, and a file whose header a failed finishing left out.
    for (text, expected) in [
        (String::new(), &[][..]),
        (HEADER.into(), &[]),
        (HEADER[..5].into(), &[]),
        (FOOTER.into(), &[]),
        (format!("{HEADER}{FOOTER}"), &[]),
        (format!(",{}{FOOTER}", EVENTS.join(",")), &EVENTS),
        (format!("{{\"batch\":[ {} ]{}", EVENTS.join(" ,\n"), &FOOTER[1..]), &EVENTS),
    ] {
        let (report, events, _) = migrated("7-events.temp", &text);
        assert_eq!(events, expected, "{text}");
        assert_eq!((report.rest_from, report.removed), (None, true), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, reason) in [
        (batch(&["{\"a\":1,}"]), "byte 19: a name in quotes expected, '}' found"),
        (batch(&["{\"a\" 1}"]), "byte 17: ':' expected, '1' found"),
        (batch(&["[1 2]"]), "byte 15: ',' or ']' expected, '2' found"),
        (batch(&["{\"a\":1]"]), "byte 18: ',' or '}' expected, ']' found"),
        (batch(&["\"a\u{1}\""]), "byte 14: the rest of a string expected, byte 0x01 found"),
        (batch(&["\"\\x\""]), "byte 14: an escaped character expected, 'x' found"),
        (batch(&["\"\\u00g0\""]), "byte 17: a hexadecimal digit expected, 'g' found"),
        (batch(&["-"]), "byte 13: a digit expected, the file ends"),
        (batch(&["{}x"]), "byte 14: ',' or ']' expected, 'x' found"),
        (batch(&["nul"]), "byte 15: null expected, the file ends"),
        ("{ \"butch\": [".into(), "byte 4: { \"batch\": [ expected, 'u' found"),
        ("PK".into(), "byte 0: { \"batch\": [ expected, 'P' found"),
        (
            batch(&["{}],1"]),
            "byte 14: ],\"sentAt\":\"...\",\"writeKey\":\"...\"} and the end of the file expected, \
             ']' found",
        ),
    ] {
        let (report, _, _) = migrated("7-events", &text);
        assert_eq!(report.rest_reason.as_deref(), Some(reason), "{text}");
    }
    let mut bytes = batch(&["\"ab\""]).into_bytes();
    bytes[14] = 0xFF;
    let (report, ..) = migrated("7-events", &bytes);
    assert_eq!(report.rest_reason.unwrap(), "byte 14: UTF-8 expected, byte 0xff found");
}

#[test]
fn migration_keeps_events_before_damage_and_every_byte() {
    let text = format!("{}{FOOTER}", batch(&EVENTS));
    let ends: Vec<_> = (1..=EVENTS.len()).map(|count| batch(&EVENTS[..count]).len()).collect();
    for at in 0..text.len() {
        for change in (0..8).map(|bit| 1 << bit).chain([0x0E, 0x51, 0xFF]) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= change;
            let (memory, options) = memory();
            old(&memory, "7-events.temp", &bytes);
            let report = run(&options).unwrap().remove(0);
            let ledger = options.open(config()).unwrap();
            let events = drain(&ledger);
            let there = format!("byte {at} ^ {change:02x}: {report:?}");
            let before = ends.iter().filter(|end| **end <= at).count();
            if report.is_foreign() {
                assert!(at < HEADER.len() && !report.removed && events.is_empty(), "{there}");
                assert_eq!(read_file(&memory, &report.path), bytes);
                continue;
            }
            assert!(events.len() >= before, "{there}");
            for (event, text) in events.iter().zip(&EVENTS[..before]) {
                assert_eq!(event, text.as_bytes(), "{there}");
            }
            // The quarantine has every byte that did not become an event.
            let end = report.rest_from.map_or(bytes.len(), |from| from as usize);
            for event in &events {
                assert!(bytes[..end].windows(event.len()).any(|there| there == event), "{there}");
            }
            let aside = quarantined(&memory).into_values().next();
            assert_eq!(aside, report.rest_from.map(|_| bytes[end..].to_vec()), "{there}");
            assert!(report.removed);
        }
    }
}

/// A footer closes a torn array, or an object around an array: the result looks like an event.
#[test]
fn file_cut_anywhere_migrates_its_complete_events() {
    let text = batch(&EVENTS);
    for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let ends = (1..=EVENTS.len()).map(|count| batch(&EVENTS[..count]).len());
        let ends: Vec<_> = ends.take_while(|end| *end <= cut).collect();
        let torn = ends.last().map_or(HEADER.len(), |end| end + 1);
        for footers in 0..4 {
            let text = format!("{}{}", &text[..cut], FOOTER.repeat(footers));
            let (report, events, memory) = migrated("7-events.temp", &text);
            let what = format!("cut at {cut}, {footers} footers: {report:?}");
            assert_eq!(events, EVENTS[..ends.len()], "{what}");
            let rest = text.as_bytes().get(torn..).filter(|_| cut > torn);
            let aside = rest.map(|rest| (format!("7-events.temp.cut-{torn}"), rest.to_vec()));
            assert!(quarantined(&memory).into_iter().eq(aside), "{what}");
            assert_eq!(report.set_aside.is_some(), cut > torn, "{what}");
            assert_eq!(report.removed, !report.is_foreign(), "{what}");
            assert!(cut < HEADER.len() || report.removed, "{what}");
        }
    }
    let (report, events, _) = migrated("7-events", format!("{HEADER}1,23"));
    assert_eq!((events, report.rest_from), (vec!["1".to_string()], Some(14)), "more digits?");
}

#[test]
fn files_migrate_by_number_and_other_names_stay() {
    let (memory, options) = memory();
    for name in ["10-events.temp", "9-events.temp", "2-events", "11-events"] {
        old(&memory, name, batch(&[&format!("\"{name}\"")]));
    }
    let others =
        ["07-events", "+1-events", "3-event", "events", "4-events.tmp", "5-events.temp.temp"];
    others.iter().for_each(|name| old(&memory, name, batch(&["1"])));
    run(&options).unwrap();
    let expected = ["2-events", "9-events.temp", "10-events.temp", "11-events"];
    assert_eq!(events(&options), expected.map(|name| format!("\"{name}\"")));
    assert_eq!(listing(&memory, Path::new(OLD)).len(), others.len());
    // The store replaces the text after the last full stop of the base.
    old(&memory, "20-my.events", batch(&["20"]) + ",");
    old(&memory, "21-my.temp", batch(&["21"]) + FOOTER);
    let migration = Migration::new(OLD, "my.events");
    assert_eq!(migration.run(config(), &options, |_, _| Ok(())).unwrap().len(), 2);
}

#[test]
fn dry_migration_changes_nothing_and_reports_the_result() {
    let (memory, options) = memory();
    old(&memory, "1-events.temp", batch(&EVENTS) + FOOTER);
    old(&memory, "2-events", batch(&["{}", "{"]));
    let mut told = Vec::new();
    let reports = Migration::new(OLD, BASE).inspect(&options, |done, all| {
        told.push((done, all));
        Ok(())
    });
    let reports = reports.unwrap();
    assert_eq!(reports.iter().map(|report| report.events).collect::<Vec<_>>(), [6, 1]);
    assert_eq!((reports[0].rest_from, reports[1].rest_from), (None, Some(15)));
    assert!(reports.iter().all(|report| !report.removed && report.set_aside.is_none()));
    assert_eq!(listing(&memory, Path::new(OLD)).len(), 2);
    assert!(!memory.is_dir(Path::new(DIR)));
    let all = reports.iter().map(|report| report.bytes).sum::<u64>();
    assert!(told.is_sorted() && told.last() == Some(&(all, all)), "{told:?}");
}

#[test]
fn what_cannot_be_migrated_is_refused() {
    let (memory, options) = memory();
    refused(run(&options), ErrorKind::Missing);
    old(&memory, "1-events", batch(&EVENTS));
    let same = Migration::new(OLD, BASE).run(small(OLD, 300), &options, |_, _| Ok(()));
    refused(same, ErrorKind::InvalidArgument);
    let held = memory.lock(Path::new(OLD), false).unwrap();
    refused(run(&options), ErrorKind::Locked);
    drop(held);
    let short = options.clone().record_bytes_max(30);
    let error = refused(run(&short), ErrorKind::TooLarge);
    let at = batch(&EVENTS[..2]).len() as u64;
    assert_eq!((error.path(), error.offset()), (Some(Path::new("/old/1-events")), Some(at)));
    // The same for a torn event of unknown length.
    old(&memory, "0-events", batch(&["{}", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"]));
    assert_eq!(refused(run(&short), ErrorKind::TooLarge).path(), error.path());
    assert_eq!(listing(&memory, Path::new(OLD)).len(), 1, "the torn one is done");
}

/// The process crashes or the power fails at each call of a migration, and a second run completes it.
#[test]
fn interrupted_migration_loses_nothing_and_repeats_one_file() {
    let disk = Sim::new();
    let files = [("1-events.temp", &EVENTS[..3], FOOTER), ("2-events", &EVENTS[3..], ",{\"torn")];
    for (name, events, end) in files {
        old(&disk, name, batch(events) + end);
    }
    // The disk has every byte of the old files.
    let disk = disk.crashes().build(&choices(&disk, 2, 0)[1]);
    let options = |disk: &Sim| Options::new().storage(Arc::new(disk.clone()));
    disk.record();
    run(&options(&disk)).unwrap();
    let (mut states, mut repeated) = (0, 0);
    for (call, moment) in disk.recorded().into_iter().enumerate() {
        let powered = choices(&moment, 40, 0);
        let powered = powered.iter().map(|choice| moment.crashes().build(choice));
        for image in std::iter::once(moment.kill()).chain(powered) {
            states += 1;
            run(&options(&image)).unwrap();
            let mut counts = BTreeMap::new();
            for event in events(&options(&image)) {
                *counts.entry(event).or_insert(0) += 1;
            }
            let of = |event: &&str| counts.get(*event).copied().unwrap_or(0);
            for event in EVENTS {
                assert!((1..=2).contains(&of(&event)), "call {call}: {counts:?}");
            }
            let twice = files.iter().filter(|(_, events, _)| events.iter().any(|e| of(e) == 2));
            let twice = twice.count();
            assert!(twice <= 1, "call {call}: {counts:?}");
            repeated += twice;
            assert!(!quarantined(&image).is_empty(), "call {call}: the rest is lost");
            assert!(listing(&image, Path::new(OLD)).is_empty());
        }
    }
    assert!(states > 100 && repeated > 10, "{states} states, {repeated}");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "[\\]\\[{}\",:\\\\]{0,12}".prop_map(Value::from),
        Just(Value::from("],\"sentAt\":\"")),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Whether the whole array is JSON to another parser. `None` if the two parsers differ: lone surrogates, numbers beyond
/// f64, and a trailing comma, which a store may leave.
fn by_serde(inside: &[u8]) -> Option<Option<Vec<Value>>> {
    let trimmed = inside.trim_ascii_end();
    if trimmed.ends_with(b",") || inside.windows(2).any(|two| two == b"\\u") {
        return None;
    }
    match serde_json::from_slice(&[b"[", inside, b"]"].concat()) {
        Err(e) if e.to_string().contains("number out of range") => None,
        // The last bytes may be a torn footer.
        Err(_) if (1..FOOTER.len()).any(|len| inside.ends_with(&FOOTER.as_bytes()[..len])) => None,
        parsed => Some(parsed.ok()),
    }
}

proptest! {
    #[test]
    fn json_check_agrees_with_another_parser(
        values in prop::collection::vec(any_value(), 1..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..3),
    ) {
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        let mut inside = texts.join(",").into_bytes();
        for (at, byte, how) in changes {
            if inside.is_empty() {
                break;
            }
            let (at, byte) = (at.index(inside.len()), b"[]{}\",:\\ -0.eEtn\n\x01\xff"[byte as usize % 19]);
            match how {
                0 => inside[at] = byte,
                1 => inside.insert(at, byte),
                _ => drop(inside.remove(at)),
            }
        }
        if let Some(parsed) = by_serde(&inside) {
            let bytes = [HEADER.as_bytes(), &inside, FOOTER.as_bytes()].concat();
            let (memory, options) = memory();
            old(&memory, "1-events.temp", &bytes);
            let report = run(&options).unwrap().remove(0);
            prop_assert_eq!(report.rest_from.is_none(), parsed.is_some(), "{:?}", report);
            if let Some(values) = parsed {
                let ledger = options.open(config()).unwrap();
                let found: Vec<Value> = drain(&ledger)
                    .iter()
                    .map(|event| serde_json::from_slice(event).unwrap())
                    .collect();
                prop_assert_eq!(found, values);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (memory, options) = memory();
        old(&memory, "1-events.temp", [HEADER.as_bytes(), &bytes].concat());
        run(&options).unwrap();
    }
}
