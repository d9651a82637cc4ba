//! Makes the docstrings of the stub, `deedbook/_core.pyi`, into a macro for the classes.
//!
//! `doc!("Book".append)` is the method's docstring in the stub, and `doc!("Book")` the class's
//! docstring. A name missing in the stub is a compiler error. The script reads the stub line by
//! line, as `ruff format` writes stubs. Any other format ends the build.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

const STUB: &str = "deedbook/_core.pyi";
const QUOTES: &str = "\"\"\"";

type Result<T> = std::result::Result<T, String>;

fn main() -> Result<()> {
    #[allow(clippy::print_stdout)] // cargo reads it
    {
        println!("cargo:rerun-if-changed={STUB}");
        println!("cargo:rerun-if-changed=build.rs");
    }
    let stub = fs::read_to_string(STUB).map_err(|error| format!("{STUB}: {error}"))?;
    let out = env::var("OUT_DIR").map_err(|error| format!("OUT_DIR: {error}"))?;
    let out = Path::new(&out).join("docs.rs");
    fs::write(&out, macro_of(&docs(&stub)?)?).map_err(|error| format!("{}: {error}", out.display()))
}

/// A docstring, and the name of the documented item.
struct Doc {
    class: Option<String>,
    name: String,
    text: String,
}

fn macro_of(docs: &[Doc]) -> Result<String> {
    let mut text = String::from("macro_rules! doc {\n");
    for Doc { class, name, text: doc } in docs {
        let key = class.as_ref().map_or(format!("{name:?}"), |class| format!("{class:?}.{name}"));
        writeln!(text, "    ({key}) => {{ {doc:?} }};").map_err(|error| error.to_string())?;
    }
    Ok(text + "}\n")
}

/// Every docstring of the classes, their members, and the functions.
fn docs(stub: &str) -> Result<Vec<Doc>> {
    let mut lines = Lines { lines: stub.lines().collect(), next: 0 };
    let mut docs: Vec<Doc> = Vec::new();
    let mut known = HashSet::new();
    let mut class: Option<String> = None;
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if indent == 0 && !code.is_empty() {
            class = None;
        }
        let Some((word, name)) = definition(code) else {
            if code.starts_with(QUOTES) && indent > 0 {
                return Err(lines.error("a docstring of nothing"));
            }
            continue;
        };
        let owner = class.clone();
        if indent != if owner.is_some() { 4 } else { 0 } {
            return Err(lines.error("a definition within another, which has no docstring here"));
        }
        if word == "class" {
            class = Some(name.to_owned());
        }
        if !lines.end_of_header()? {
            continue;
        }
        let Some(text) = lines.docstring(indent + 4)? else { continue };
        // Only one overload of a method has a docstring.
        if !known.insert((owner.clone(), name.to_owned())) {
            return Err(lines.error(&format!("a second docstring of {name}")));
        }
        docs.push(Doc { class: owner, name: name.to_owned(), text });
    }
    match docs.is_empty() {
        true => Err(format!("{STUB} has no docstring")),
        false => Ok(docs),
    }
}

/// `class` or `def`, and the name.
fn definition(code: &str) -> Option<(&str, &str)> {
    let (word, rest) = code.split_once(' ')?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    let name = rest.get(..end)?;
    (matches!(word, "class" | "def") && !name.is_empty()).then_some((word, name))
}

struct Lines<'a> {
    lines: Vec<&'a str>,
    /// Number of the next line to read, counted from 0.
    next: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.next).copied();
        self.next += 1;
        line
    }

    fn error(&self, what: &str) -> String {
        let line = self.next.checked_sub(1).and_then(|line| self.lines.get(line));
        format!("{STUB}:{}: {what}: {:?}", self.next, line.copied().unwrap_or("the end"))
    }

    /// Go to the end of a header that begins in the last line. Returns whether a body follows.
    fn end_of_header(&mut self) -> Result<bool> {
        let mut line = self.lines.get(self.next - 1).copied().unwrap_or_default();
        let mut depth = 0;
        loop {
            depth += depth_of(line);
            if depth == 0 && line.ends_with(": ...") {
                return Ok(false);
            }
            if depth == 0 && line.ends_with(':') {
                return Ok(true);
            }
            if depth <= 0 {
                return Err(self.error("a header that ends neither with ':' nor with '...'"));
            }
            line = self.next().ok_or_else(|| self.error("a header without an end"))?;
        }
    }

    /// The docstring that begins with the next line, as `inspect.cleandoc` returns docstrings.
    fn docstring(&mut self, indent: usize) -> Result<Option<String>> {
        let mut line = self.next().unwrap_or_default();
        let margin = " ".repeat(indent);
        let Some(first) = line.strip_prefix(&margin).and_then(|line| line.strip_prefix(QUOTES))
        else {
            if line.contains(QUOTES) {
                return Err(self.error("a docstring with another margin or a prefix"));
            }
            self.next -= 1; // the line may be a definition
            return Ok(None);
        };
        let mut text = String::new();
        let mut part = first;
        loop {
            if line.contains('\\') {
                return Err(self.error("a backslash in a docstring"));
            }
            let (held, ends) = match part.split_once(QUOTES) {
                Some((held, "")) => (held, true),
                Some(_) => return Err(self.error("something after a docstring")),
                None => (part, false),
            };
            text += held.trim_end();
            if ends {
                break;
            }
            text.push('\n');
            line = self.next().ok_or_else(|| self.error("a docstring without an end"))?;
            part = match line.strip_prefix(&margin) {
                Some(part) => part,
                None if line.trim().is_empty() => "",
                None => return Err(self.error("a line of a docstring left of its margin")),
            };
        }
        match text.trim() {
            "" => Err(self.error("an empty docstring")),
            text => Ok(Some(text.to_owned())),
        }
    }
}

/// How many brackets more a line opens than it closes.
fn depth_of(line: &str) -> i32 {
    let mut within = None;
    line.chars().fold(0, |depth, letter| match (within, letter) {
        (Some(quote), _) => {
            within = (letter != quote).then_some(quote);
            depth
        }
        (None, '"' | '\'') => {
            within = Some(letter);
            depth
        }
        (None, '(' | '[' | '{') => depth + 1,
        (None, ')' | ']' | '}') => depth - 1,
        (None, _) => depth,
    })
}
