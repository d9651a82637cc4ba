//! Any text as an event's JSON: refused with a reason, or the same event after every way through
//! JSON and records.

use deedbook::engine::nostr::{encode, parse};
use deedbook::nostr::{Event, Flags};

pub fn run(data: &[u8]) {
    let event = match Event::from_json(data) {
        Ok(event) => event,
        Err(error) => {
            assert!(!error.message().is_empty());
            return;
        }
    };
    // An event is text with one object.
    assert!(std::str::from_utf8(data).is_ok(), "an event of bytes that are no text");
    let json = event.to_json();
    assert_eq!(Event::from_json(json.as_bytes()).unwrap(), event);
    for cut in [0, 1, json.len() / 2, json.len() - 1] {
        assert!(Event::from_json(&json.as_bytes()[..cut]).is_err(), "a part of an event passes");
    }
    assert!(
        Event::from_json(format!("{json}{json}").as_bytes()).is_err(),
        "two events pass for one"
    );
    let mut record = Vec::new();
    encode(&event, Flags(0), true, 4096, &mut record).unwrap();
    let stored = parse(&record).unwrap();
    assert_eq!(stored.to_event(), event);
    let mut again = Vec::new();
    stored.write_json(&mut again);
    assert_eq!(again, json.as_bytes());
    let mut scratch = Vec::new();
    let (one, other) = (event.check_id(&mut scratch), stored.check_id(&mut scratch));
    assert_eq!(one.is_ok(), other.is_ok());
    let id = event.canonical_id();
    let mended = Event { id, ..event };
    mended.check_id(&mut scratch).unwrap();
}
