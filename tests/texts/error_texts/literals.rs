//! The texts of errors in the source: every string literal outside of comments, unit tests and log lines that holds a
//! space or names an operation.

use crate::error_texts::unmet::UNMET;
use crate::support::prelude::*;

const DIRS: [&str; 6] = ["log", "book", "wal", "storage", "sidecar", "transaction"];
const FILES: [&str; 20] = [
    "commit.rs",
    "saving.rs",
    "mode.rs",
    "durability.rs",
    "error.rs",
    "scan/mod.rs",
    "scan/damage.rs",
    "scan/framing.rs",
    "nostr/log/checkpoints.rs",
    "nostr/log/codec.rs",
    "nostr/log/entry.rs",
    "nostr/log/files.rs",
    "nostr/arrow/parsed.rs",
    "nostr/store/records.rs",
    "nostr/log/replay.rs",
    "nostr/arrow/stage_arrow.rs",
    "nostr/store/transact.rs",
    "nostr/log/wal.rs",
    "nostr/log/wal_options.rs",
    "nostr/log/wal_state.rs",
];
/// After these calls, a single word is a text, too: "cannot sync: ...".
const DOING: [&str; 3] = ["io(", "fail(", "broken(Error::io("];

#[derive(Debug, PartialEq, Eq)]
struct Literal {
    line: usize,
    text: String,
    /// Whether the text names the failed operation.
    doing: bool,
}

/// The texts of the source that no situation meets.
pub fn unmet(root: &Path, met: &str) -> Vec<String> {
    let mut paths: Vec<PathBuf> = FILES.iter().map(|name| root.join("src").join(name)).collect();
    DIRS.iter().for_each(|dir| sources(&root.join("src").join(dir), &mut paths));
    paths.sort();
    let mut unused: Vec<_> = UNMET.iter().map(|(text, _)| *text).collect();
    let mut unmet = Vec::new();
    for path in paths {
        let source = fs::read_to_string(&path).unwrap();
        for Literal { line, text, doing } in literals(&source) {
            let part = match doing {
                true => format!("cannot {text}: "),
                false => longest_part(&text),
            };
            // A shorter part does not identify its text.
            if part.trim().len() < 5 || met.contains(&part) {
                continue;
            }
            if UNMET.iter().any(|(known, _)| *known == text) {
                unused.retain(|known| *known != text);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display();
            unmet.push(format!("{name}:{line}: {text:?}"));
        }
    }
    unmet.extend(unused.iter().map(|text| format!("unmet.rs: {text:?} is met, or gone")));
    unmet
}

fn sources(dir: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // The simulated disk is a tool of tests.
        if name == "sim" || name == "sim.rs" || name == "tests.rs" {
            continue;
        }
        match path.is_dir() {
            true => sources(&path, paths),
            false if name.ends_with(".rs") => paths.push(path),
            false => {}
        }
    }
}

/// The longest part of a format string between its arguments.
fn longest_part(text: &str) -> String {
    let parts = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    parts.max_by_key(|part| part.len()).unwrap_or_default().to_string()
}

fn literals(source: &str) -> Vec<Literal> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = code[at..].find(['"', '/', '\'']) {
        at += next;
        let rest = &code[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with('"') {
            let (text, len) = literal(rest);
            let before = code[..at].trim_end();
            let statement = &before[before.rfind([';', '{', '}']).map_or(0, |end| end + 1)..];
            let logged = ["lines::info(", "warn("].iter().any(|log| statement.contains(log));
            let doing = DOING.iter().any(|call| before.ends_with(call));
            if !logged && (doing || text.contains(' ')) {
                found.push(Literal { line: code[..at].matches('\n').count() + 1, text, doing });
            }
            at += len;
        } else if rest.starts_with('\'') {
            at += character(rest);
        } else {
            at += 1;
        }
    }
    found
}

/// The text of a literal, and its length in the source.
fn literal(source: &str) -> (String, usize) {
    let mut text = String::new();
    let mut chars = source.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (text, at + 1),
            '\\' => match chars.next().unwrap().1 {
                '\n' => while chars.next_if(|(_, char)| char.is_whitespace()).is_some() {},
                'n' => text.push('\n'),
                other => text.push(other),
            },
            char => text.push(char),
        }
    }
    panic!("a literal without an end: {text}");
}

/// The length of a character literal; of a lifetime, 1.
fn character(source: &str) -> usize {
    let inner = &source[1..];
    let len = match inner.strip_prefix('\\') {
        Some(escaped) => 1 + escaped.find('\'').map_or(0, |end| end.max(1)),
        None => inner.chars().next().map_or(0, char::len_utf8),
    };
    if inner[len..].starts_with('\'') { len + 2 } else { 1 }
}

/// The assumptions of the check.
#[test]
fn literals_are_found_where_errors_are_made() {
    let source = "//! \"not in a comment\"\nfn f<'a>() { let c = ['\"', '\\''];\n\
                  let m = format!(\"the log {x} has \\\n    two lines\");\n\
                  io(\"sync\", e); lines::warn(format_args!(\"not in the log\")); g(\"word\") }\n\
                  #[cfg(test)]\nmod tests { \"not in a test\" }";
    let found: Vec<_> = literals(source).into_iter().map(|literal| literal.text).collect();
    assert_eq!(found, ["the log {x} has two lines", "sync"]);
    assert_eq!(longest_part("a {x} longer {y:?} b"), " longer ");
}
