//! The texts met so far, and how the file shows them.

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
}

#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<Text>,
    situations: BTreeSet<String>,
    /// What stands for something that differs from run to run.
    placeholders: Vec<(String, &'static str)>,
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
        let same = |known: &&mut Text| {
            known.situation == situation && (known.kind, &known.text) == (kind, &text)
        };
        match self.texts.iter_mut().rev().find(same) {
            Some(known) if known.calls.iter().any(|known| known == call) => {}
            Some(known) => known.calls.push(call.into()),
            None => {
                let calls = vec![call.into()];
                self.texts.push(Text { situation: situation.into(), calls, kind, text });
            }
        }
    }

    /// What the file holds.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        let mut situation = "";
        for text in &self.texts {
            if situation != text.situation {
                situation = &text.situation;
                write!(shown, "\n{situation}\n").unwrap();
            }
            write!(shown, "  {} [{}]\n    {}\n", text.calls.join(", "), text.kind, text.text)
                .unwrap();
        }
        shown
    }
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

/// The situations that two versions of the file do not have alike, as each of them says it.
pub fn differences(was: &str, is: &str) -> String {
    let (was, is): (Vec<_>, Vec<_>) = (was.split("\n\n").collect(), is.split("\n\n").collect());
    let mut shown = String::new();
    let name = |block: &str| block.lines().next().unwrap_or_default().to_string();
    let names: BTreeSet<_> = was.iter().chain(&is).map(|block| name(block)).collect();
    for situation in names {
        let of = |blocks: &[&str]| {
            let block = blocks.iter().find(|block| name(block) == situation);
            block.map_or("(nothing)", |block| block.trim_end()).to_string()
        };
        let (before, after) = (of(&was), of(&is));
        if before != after {
            write!(shown, "--- the file says\n{before}\n--- the crate says\n{after}\n\n").unwrap();
        }
    }
    shown
}
