//! The texts met so far, and how the snapshot shows them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use deedbook::{Damage, Error, Result};

/// One error, or one damage of a report.
#[derive(Debug)]
struct Text {
    situation: String,
    /// What was called; several calls may say the same.
    calls: Vec<String>,
    kind: &'static str,
    text: String,
    shape: String,
}

#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<Text>,
    situations: BTreeSet<String>,
    /// What stands for something that differs from run to run.
    placeholders: Vec<(String, &'static str)>,
    /// Each text, also those that the snapshot leaves out.
    met: BTreeSet<String>,
}

impl Texts {
    /// Begin a situation; no two have one name.
    pub fn situation(&mut self, name: impl Into<String>) -> Situation<'_> {
        let name = name.into();
        assert!(self.situations.insert(name.clone()), "two situations: {name}");
        Situation { texts: self, name }
    }

    /// Show this part of a path as that.
    pub fn replace(&mut self, part: impl Into<String>, by: &'static str) {
        self.placeholders.push((part.into(), by));
    }

    /// Note a text. The snapshot shows the first one of each shape and kind, and every call of that
    /// situation that says it.
    fn add(&mut self, situation: &str, call: &str, kind: &'static str, text: String) {
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
        self.met.insert(text.clone());
        let shape = shape(&text);
        let same = |known: &&mut Text| (known.kind, &known.shape) == (kind, &shape);
        match self.texts.iter_mut().find(same) {
            Some(known) if known.situation != situation => {}
            Some(known) if known.calls.iter().any(|known| known == call) => {}
            Some(known) => known.calls.push(call.into()),
            None => {
                let calls = vec![call.into()];
                self.texts.push(Text { situation: situation.into(), calls, kind, text, shape });
            }
        }
    }

    /// What the snapshot holds.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        let mut situation = "";
        for text in &self.texts {
            if situation != text.situation {
                let empty_line = if situation.is_empty() { "" } else { "\n" };
                situation = &text.situation;
                writeln!(shown, "{empty_line}{situation}").unwrap();
            }
            writeln!(shown, "  {} [{}]\n    {}", text.calls.join(", "), text.kind, text.text)
                .unwrap();
        }
        shown
    }

    /// Every text, a line each.
    pub fn met(&self) -> String {
        self.met.iter().map(|text| format!("{text}\n")).collect()
    }
}

/// A text without its paths and numbers: texts of one shape come from one place in `src`.
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
    let words = text.split(' ').map(|word| {
        let word = word.split_once('/').map_or(word, |(before, _)| before);
        let runs = word.split_inclusive(|char: char| !char.is_ascii_alphanumeric());
        runs.map(without_number).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A situation in which calls fail.
pub struct Situation<'a> {
    texts: &'a mut Texts,
    name: String,
}

impl Situation<'_> {
    /// A call that must fail.
    #[track_caller]
    pub fn refused<T>(&mut self, call: &str, result: Result<T>) -> &mut Self {
        match result {
            Ok(_) => panic!("{}, {call}: should have been refused", self.name),
            Err(error) => self.error(call, &error),
        }
    }

    /// A call that may fail.
    pub fn tried<T>(&mut self, call: &str, result: Result<T>) -> &mut Self {
        match result {
            Ok(_) => self,
            Err(error) => self.error(call, &error),
        }
    }

    pub fn error(&mut self, call: &str, error: &Error) -> &mut Self {
        self.texts.add(&self.name, call, error.kind().name(), error.to_string());
        self
    }

    /// The damage that a report tells of.
    pub fn damages<'a>(
        &mut self,
        call: &str,
        damages: impl IntoIterator<Item = &'a Damage>,
    ) -> &mut Self {
        for Damage { offset, end, reason, .. } in damages {
            let text = format!("{reason} (bytes {offset} to {end})");
            self.texts.add(&self.name, call, "damage", text);
        }
        self
    }
}

#[test]
fn texts_of_one_shape_differ_in_numbers_and_paths() {
    let shown = "deed 4,711: checksum 01ab, 0xFF (byte 16 of /log/book.log)";
    assert_eq!(shape(shown), "deed N: checksum N N (byte N of ");
    assert_eq!(shape(shown), shape("deed 2: checksum 5, 6 (byte 1 of DIR/0i5/book.log)"));
    assert_ne!(shape(shown), shape("deed 2: length 5, 6 (byte 1 of DIR/0i5/book.log)"));
}
