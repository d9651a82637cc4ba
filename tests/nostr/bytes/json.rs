//! JSON: an error names every fault of every field, and the ids match the canonical form.

use deedbook::ErrorKind;
use deedbook::engine::nostr::{encode, parse};
use deedbook::nostr::{Event, Flags, Id};
use sha2::{Digest, Sha256};

use crate::support::nostr_layout::{lines, shared};

const PARTS: [(&str, &str); 7] = [
    ("id", "\"0000000000000000000000000000000000000000000000000000000000000001\""),
    ("pubkey", "\"0000000000000000000000000000000000000000000000000000000000000002\""),
    ("created_at", "4294967295"),
    ("kind", "65535"),
    ("tags", "[[\"e\",\"\\u00e9\\ud834\\udd1e\"],[]]"),
    ("content", "\"\\\"\\u0000\""),
    ("sig", SIG),
];

const SIG: &str = "\"00000000000000000000000000000000000000000000000000000000000000000\
                   000000000000000000000000000000000000000000000000000000000000003\"";

/// An event's JSON with some fields changed; `None` leaves a field out.
fn with(changes: &[(&str, Option<&str>)]) -> String {
    let value = |name: &str, value: &'static str| {
        let changed = changes.iter().find(|(changed, _)| *changed == name);
        changed.map_or(Some(value), |(_, value)| *value).map(str::to_owned)
    };
    let fields =
        PARTS.iter().filter_map(|(name, v)| Some(format!("\"{name}\":{}", value(name, v)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn refused(text: impl AsRef<[u8]>) -> String {
    let error = Event::from_json(text.as_ref()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.format(), Some("nostr"));
    error.message().to_owned()
}

/// A field with this value is refused, and the message begins so.
fn refused_for(name: &str, value: &str, beginning: &str) -> String {
    let message = refused(with(&[(name, Some(value))]));
    assert!(message.starts_with(beginning), "{message}, not {beginning}");
    message
}

#[test]
fn an_event_at_its_limits_is_read() {
    let event = Event::from_json(with(&[]).as_bytes()).unwrap();
    let mut expected = [0; 32];
    expected[31] = 1;
    assert_eq!(event.id, Id(expected));
    assert_eq!((event.created_at, event.kind, event.sig[63]), (u32::MAX, u16::MAX, 3));
    assert_eq!(event.tags, [vec!["e".to_owned(), "é𝄞".to_owned()], vec![]]);
    assert_eq!(event.content, "\"\0");
    let spaced = with(&[]).replace(',', " ,\n\t").replace(':', " : ");
    assert_eq!(Event::from_json(format!(" {spaced}\r\n ").as_bytes()).unwrap(), event);
    let unknown = with(&[]).replace("{\"id\"", "{\"more\":{\"id\":[1]},\"id\"");
    assert_eq!(Event::from_json(unknown.as_bytes()).unwrap(), event);
}

#[test]
fn a_field_missing_wrong_or_twice_is_named() {
    for (name, good) in PARTS {
        let message = refused(with(&[(name, None)]));
        assert!(message.contains(&format!("missing field `{name}`")), "{message}");
        for value in ["null", "true", "1.5", "-1", "\"a\"", "[1]", "{}", "[[1]]", "7"] {
            let number = matches!(name, "created_at" | "kind");
            if (value == "7" && number) || (value == "\"a\"" && name == "content") {
                continue;
            }
            let message = refused_for(name, value, &format!("{name}: "));
            assert!(message.contains("at column") && !message.contains("at line"), "{message}");
        }
        // A field given twice, with the same value.
        let twice = with(&[]).replace("{\"id\"", &format!("{{\"{name}\":{good},\"id\""));
        assert!(refused(twice).starts_with(&format!("{name}: given twice")));
    }
}

#[test]
fn numbers_out_of_range_report_their_limit() {
    for (name, value, text) in [
        ("created_at", "4294967296", "created_at: 4294967296, limit 4294967295"),
        ("created_at", "-1", "created_at: -1, minimum 0"),
        ("created_at", "18446744073709551615", "created_at: 18446744073709551615, limit"),
        ("created_at", "18446744073709551616", "created_at: invalid type: floating point"),
        ("created_at", "1e3", "created_at: invalid type: floating point"),
        ("kind", "65536", "kind: 65536, limit 65535"),
        ("kind", "-40000", "kind: -40000, minimum 0"),
        ("kind", "1.0", "kind: invalid type: floating point `1.0`, expected an integer"),
        ("kind", "01", "kind: invalid number"),
    ] {
        refused_for(name, value, text);
    }
}

#[test]
fn wrong_hexadecimal_length_or_case_is_reported() {
    for (name, digits) in [("id", 64), ("pubkey", 64), ("sig", 128)] {
        for len in [0, 1, digits - 2, digits - 1, digits + 1, digits + 2] {
            let value = format!("\"{}\"", "0".repeat(len));
            refused_for(name, &value, &format!("{name}: {len} bytes of text, {digits} needed"));
        }
        for (at, wrong) in [(0, 'A'), (5, 'F'), (digits - 1, 'g'), (7, ' '), (9, 'x')] {
            let mut value = "0".repeat(digits);
            value.replace_range(at..=at, &wrong.to_string());
            let expected = format!("{name}: character {wrong:?} at {at}, lower-case hexadecimal");
            refused_for(name, &format!("\"{value}\""), &expected);
        }
        // As many bytes as digits, but fewer characters.
        let value = format!("\"é{}\"", "0".repeat(digits - 2));
        refused_for(name, &value, &format!("{name}: character 'é' at 0"));
    }
}

#[test]
fn invalid_text_is_reported_with_its_field() {
    for surrogate in ["\\ud834", "\\udd1e", "\\ud834\\u0041", "\\ud834x", "\\ud834\\ud834"] {
        refused_for("content", &format!("\"a{surrogate}\""), "content: ");
        refused_for("tags", &format!("[[\"e\",\"{surrogate}\"]]"), "tags: ");
    }
    let mut bytes = with(&[("content", Some("\"@\""))]).into_bytes();
    let at = bytes.iter().position(|&byte| byte == b'@').unwrap();
    bytes[at] = 0xFF;
    assert!(refused(&bytes).starts_with("content: "));
    // Found by fuzzing: the parser did not check skipped values, and accepted a line of invalid JSON.
    let mut bytes = with(&[]).replacen('{', "{\"ots\":\"@\",", 1).into_bytes();
    bytes[8] = 0xFF;
    assert_eq!(refused(&bytes), "unknown field: not UTF-8 at column 9");
    refused_for("content", "\"a\nb\"", "content: control character");
}

#[test]
fn non_objects_and_trailing_characters_are_refused() {
    for text in ["", " ", "null", "[]", "\"a\"", "1", "{", "{\"id\"", "{]"] {
        refused(text);
    }
    for more in ["x", "{}", ",", "]", "\0"] {
        let message = refused(with(&[]) + more);
        assert!(message.contains("trailing characters"), "{message}");
    }
    let whole = with(&[]);
    for cut in 0..whole.len() {
        refused(&whole[..cut]);
    }
    // Deep nesting would overflow any stack, so the parser refuses it.
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    refused(deep);
}

#[test]
fn ids_accept_escaped_and_verbatim_control_characters() {
    let mut event = lines("data.0.expected.jsonl")[0].clone();
    event.content = "a\u{1}\u{1F}\u{7F}\n\r\t\u{8}\u{C}\"\\\u{2028}é".into();
    // Written out again: NIP-01's form, and the form that JSON serializers write.
    let head = format!("[0,\"{}\",{},1,", Id(event.pubkey), event.created_at);
    let tags = event.tags.iter().map(|tag| format!("[\"{}\",\"{}\"]", tag[0], tag[1]));
    let tags = format!("[{}]", tags.collect::<Vec<_>>().join(","));
    for controls in ["\u{1}\u{1F}", "\\u0001\\u001f"] {
        let content = format!("a{controls}\u{7F}\\n\\r\\t\\b\\f\\\"\\\\\u{2028}é");
        event.id = Id(Sha256::digest(format!("{head}{tags},\"{content}\"]")).into());
        event.check_id(&mut Vec::new()).unwrap();
    }
    assert_eq!(Event::from_json(event.to_json().as_bytes()).unwrap(), event);
    event.content.push('x');
    let error = event.check_id(&mut Vec::new()).unwrap_err();
    let (id, found) = (event.id, event.canonical_id());
    assert_eq!(error.message(), format!("id: {id}, that of the canonical form is {found}"));
}

#[test]
fn ids_are_shown_and_read_in_lower_case() {
    let id = Id(std::array::from_fn(|i| i as u8 * 7));
    assert_eq!(id.to_string().parse::<Id>().unwrap(), id);
    let error = id.to_string().to_uppercase().parse::<Id>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!("00".parse::<Id>().unwrap_err().message(), "id of 2 characters, 64 needed");
}

#[test]
fn real_and_golden_events_keep_id_and_json() {
    let mut all = lines("data.0.expected.jsonl");
    all.extend(lines("lossy.2.expected.jsonl"));
    if let Some(path) = shared("data/nostr-events.jsonl") {
        let text = std::fs::read(path).unwrap();
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let events: Vec<Event> = lines.map(|line| Event::from_json(line).unwrap()).collect();
        assert_eq!(events.len(), 2468);
        all.extend(events);
    }
    let mut scratch = Vec::new();
    for event in all {
        event.check_id(&mut scratch).unwrap();
        assert_eq!(event.canonical_id_with(&mut scratch), event.id);
        let json = event.to_json();
        assert_eq!(Event::from_json(json.as_bytes()).unwrap(), event);
        // A JSON library reads the same values.
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["content"], event.content.as_str());
        assert_eq!(value["tags"], serde_json::json!(event.tags));
        // The stored event has the same id and JSON.
        let mut record = Vec::new();
        encode(&event, Flags(0), false, 4096, &mut record).unwrap();
        let stored = parse(&record).unwrap();
        stored.check_id(&mut scratch).unwrap();
        let mut written = Vec::new();
        stored.write_json(&mut written);
        assert_eq!(written, json.as_bytes());
    }
}
