//! Filters read from JSON: each wrong one is refused by name.

use deedbook::ErrorKind;
use deedbook::nostr::{Filter, Wanted};

use super::world::{Numbers, borrowed, event, record};

#[test]
fn all_fields_are_read() {
    let (a, b) = ("0a".repeat(32), "0b".repeat(32));
    let filter = Filter::parse(&format!(
        r##"{{"ids":["{a}"],"authors":["{b}"],"kinds":[0,65535],"#e":["{a}"],"#T":["", "x"],
            "since":5,"until":18446744073709551615,"limit":0}}"##
    ))
    .unwrap();
    assert_eq!(filter.ids.unwrap().into_iter().next().unwrap().0, [0x0A; 32]);
    assert_eq!(filter.authors.unwrap().into_iter().next().unwrap(), [0x0B; 32]);
    assert_eq!(filter.kinds.unwrap().into_iter().collect::<Vec<_>>(), [0, 65_535]);
    assert_eq!(filter.tags.keys().collect::<Vec<_>>(), [&b'T', &b'e']);
    assert_eq!(filter.tags[&b'T'].iter().collect::<Vec<_>>(), ["", "x"]);
    assert_eq!((filter.since, filter.until, filter.limit), (Some(5), Some(u64::MAX), Some(0)));
    assert_eq!(Filter::parse_any(r#"[{},{"limit":3}]"#).unwrap().len(), 2);
    assert_eq!(Filter::parse_any("{}").unwrap(), [Filter::default()]);
    assert_eq!(Filter::parse_any("[]").unwrap(), []);
}

#[test]
fn a_wrong_filter_is_refused_by_name() {
    let upper = "0A".repeat(32);
    let cases = [
        ("[]", "filter: a list, an object needed"),
        (r#"{"search":"x"}"#, r#"filter: unknown field "search""#),
        (r##"{"#ab":["x"]}"##, r##"filter: unknown field "#ab""##),
        (r##"{"#1":["x"]}"##, r##"filter: unknown field "#1""##),
        (r#"{"ids":["ab"]}"#, r#"filter: ids: "ab", 64 lower-case hexadecimal digits needed"#),
        (r#"{"ids":"ab"}"#, "filter: ids: a text, a list needed"),
        (r#"{"authors":[7]}"#, "filter: authors: 7, a text needed"),
        (r##"{"#p":["x"]}"##, r##"filter: #p: "x", 64 lower-case hexadecimal digits needed"##),
        (r##"{"#t":[1]}"##, "filter: #t: 1, a text needed"),
        (r#"{"kinds":[65536]}"#, "filter: kinds: 65536, a whole number from 0 to 65,535 needed"),
        (r#"{"kinds":[1.5]}"#, "filter: kinds: 1.5, a whole number from 0 to 65,535 needed"),
        (r#"{"since":-1}"#, "filter: since: -1, a whole number from 0 on needed"),
        (r#"{"limit":"10"}"#, r#"filter: limit: "10", a whole number from 0 on needed"#),
    ];
    for (json, expected) in cases {
        let error = Filter::parse(json).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, expected));
    }
    let json = format!(r#"[{{"authors":["{upper}"]}}]"#);
    let error = Filter::parse_any(&json).unwrap_err();
    assert!(error.message().contains("lower-case"), "{error}");
    let error = Filter::parse("{").unwrap_err();
    assert!(error.message().starts_with("filter: EOF"), "{error}");
}

#[test]
fn each_filter_has_a_limit_of_its_own() {
    let filters =
        Filter::parse_any(r#"[{"kinds":[1],"limit":2},{"kinds":[1,7],"limit":1}]"#).unwrap();
    let mut numbers = Numbers(3);
    let kinds = [1, 7, 1, 1, 7];
    let events = kinds.map(|kind| record(&deedbook::nostr::Event { kind, ..event(&mut numbers) }));
    let mut wanted = Wanted::of(&filters);
    let taken = events.each_ref().map(|event| wanted.takes(&borrowed(event)));
    // The first event counts for both: nothing is left of the second's limit.
    assert_eq!(taken, [true, false, true, false, false]);
    assert!(wanted.is_satisfied());
}
