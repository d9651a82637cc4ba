//! The texts met, and the lines of the snapshot.

use std::fmt::Write as _;

use crate::support::prelude::*;

#[derive(Debug)]
struct Text {
    situation: String,
    kind: &'static str,
    text: String,
}

#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<Text>,
    situations: BTreeSet<String>,
    /// The words in the place of values that differ from run to run.
    placeholders: Vec<(String, &'static str)>,
    /// The parts of the texts met, each with its kind of error.
    parts: BTreeSet<(&'static str, String)>,
}

impl Texts {
    /// Begin a situation; the name must be new.
    pub fn situation(&mut self, name: impl Into<String>) -> Situation<'_> {
        let name = name.into();
        assert!(self.situations.insert(name.clone()), "two situations: {name}");
        Situation { texts: self, name }
    }

    /// Show a part of a path as a placeholder.
    pub fn replace(&mut self, part: impl Into<String>, by: &'static str) {
        self.placeholders.push((part.into(), by));
    }

    /// Note a text, if a part is new for the kind of error.
    fn add(&mut self, situation: &str, kind: &'static str, text: String) {
        let pid = format!("({})", std::process::id());
        let mut text = text.replace(&pid, "(PID)").replace('\0', "\\0");
        // The numbers of one error differ from system to system.
        while let Some((before, after)) = text.split_once(" (os error ") {
            let rest = after.split_once(')').map_or("", |(_, rest)| rest);
            text = format!("{before}{rest}");
        }
        for (part, by) in &self.placeholders {
            text = text.replace(part, by);
        }
        // A report has the same reasons as an error.
        let of_error = if kind == "damage" { "corrupt" } else { kind };
        let is_new = |part: String| self.parts.insert((of_error, part));
        if parts(&text).into_iter().map(is_new).filter(|&is_new| is_new).count() > 0 {
            self.texts.push(Text { situation: situation.into(), kind, text });
        }
    }

    pub fn shown(&self) -> String {
        let (mut shown, mut situation) = (String::new(), "");
        for text in &self.texts {
            if situation != text.situation {
                let empty_line = if situation.is_empty() { "" } else { "\n" };
                situation = &text.situation;
                writeln!(shown, "{empty_line}{situation}").unwrap();
            }
            writeln!(shown, "  [{}] {}", text.kind, text.text).unwrap();
        }
        shown
    }
}

/// The parts of a text without paths and numbers: each part is made in one place in `src`.
fn parts(text: &str) -> Vec<String> {
    let ends = [";", ":", " (", ")"];
    let mut parts = vec![shape(text)];
    for end in ends {
        parts =
            parts.iter().flat_map(|part| part.split(end)).map(|part| part.trim().into()).collect();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// A text without paths and numbers: equal shapes come from one place in `src`.
fn shape(text: &str) -> String {
    let without_number = |run: &str| {
        let word = run.trim_end_matches(|char: char| !char.is_ascii_alphanumeric());
        // Also 0xff, and 0i5, which names an epoch.
        let is_digit = |char: char| char.is_ascii_hexdigit() || char == 'x' || char == 'i';
        let is_number = word.contains(|char: char| char.is_ascii_digit());
        match is_number && word.chars().all(is_digit) {
            true => format!("N{}", &run[word.len()..]),
            false => run.to_string(),
        }
    };
    let text = text.replace(',', "").replace("DIR", "");
    let mut before = "";
    let words = text.split(' ').map(|word| {
        // The text includes the value that a number must have.
        if std::mem::replace(&mut before, word) == "be" {
            return word.to_string();
        }
        let word = word.split_once('/').map_or(word, |(before, _)| before);
        let runs = word.split_inclusive(|char: char| !char.is_ascii_alphanumeric());
        runs.map(without_number).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

pub struct Situation<'a> {
    texts: &'a mut Texts,
    name: String,
}

impl Situation<'_> {
    #[track_caller]
    pub fn refused<T>(&mut self, call: &str, result: Result<T>) -> &mut Self {
        match result {
            Ok(_) => panic!("{}, {call}: should have been refused", self.name),
            Err(error) => self.error(call, &error),
        }
    }

    /// A call that may fail. `call` is for readers of the situations.
    pub fn tried<T>(&mut self, call: &str, result: Result<T>) -> &mut Self {
        match result {
            Ok(_) => self,
            Err(error) => self.error(call, &error),
        }
    }

    pub fn error(&mut self, _call: &str, error: &Error) -> &mut Self {
        self.texts.add(&self.name, error.kind().name(), error.to_string());
        self
    }

    pub fn damages<'a>(
        &mut self,
        _call: &str,
        damages: impl IntoIterator<Item = &'a Damage>,
    ) -> &mut Self {
        for Damage { offset, end, reason, .. } in damages {
            let text = format!("{reason} (bytes {offset} to {end})");
            self.texts.add(&self.name, "damage", text);
        }
        self
    }
}

#[test]
fn equal_shapes_differ_only_in_numbers_and_paths() {
    let shown = "deed 4,711: checksum 01ab, 0xFF (byte 16 of /log/book.log)";
    assert_eq!(shape(shown), "deed N: checksum N N (byte N of ");
    assert_eq!(shape(shown), shape("deed 2: checksum 5, 6 (byte 1 of DIR/0i5/book.log)"));
    assert_ne!(shape(shown), shape("deed 2: length 5, 6 (byte 1 of DIR/0i5/book.log)"));
}
