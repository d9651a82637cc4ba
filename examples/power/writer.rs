//! The process that is struck.

use std::io::Write;
use std::path::Path;

use deedbook::book::{Batch, Book, Mode, Options};
use deedbook::{Durability, Durable, Error, ErrorKind};

use crate::Random;
use crate::ledger::event_of;

/// Whoever reads is told at once; a line is one write.
fn say(line: &str) {
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}

fn say_error(error: &Error) {
    say(&format!("e {} {}", error.kind().name(), error.to_string().replace('\n', " ")));
}

/// `open DIR`: recover, and be struck meanwhile.
pub fn open(dir: &str) {
    say("w 0 0 0");
    if let Err(error) = Book::append_to(dir).and_then(|book| book.close()) {
        say_error(&error);
    }
}

/// `write DIR DURABILITY SEED STEPS BYTES`: append until struck, or for so many steps; after so
/// many bytes only little is appended.
pub fn write(args: &[String]) {
    let [dir, durability, seed, steps, bytes] = args else { panic!("{args:?}") };
    let options = Options { durability: durability.parse().unwrap(), ..Options::default() };
    let seed: u64 = seed.parse().unwrap();
    let mut random = Random(seed);
    let (mut left, mut bytes_left) = (steps.parse::<u64>().unwrap(), bytes.parse::<u64>().unwrap());
    let mut openings = 0;
    while left > 0 && openings < 8 {
        openings += 1;
        let opened = options.open(Path::new(dir), Mode::Append);
        let book = match opened {
            Ok(book) => book,
            Err(error) => {
                say_error(&error);
                continue;
            }
        };
        say(&format!("r {}", book.last().unwrap()));
        while left > 0 {
            left -= 1;
            if let Err(error) = step(&book, &options, &mut random, &mut bytes_left) {
                say_error(&error);
                if error.kind() == ErrorKind::Poisoned || random.below(8) == 0 {
                    break;
                }
            }
        }
        let last = book.last().unwrap();
        match book.close() {
            Ok(()) if options.durability != Durability::Never => say(&format!("d {last}")),
            Ok(()) => {}
            Err(error) => say_error(&error),
        }
    }
    say(".");
}

fn step(
    book: &Book,
    options: &Options,
    random: &mut Random,
    bytes_left: &mut u64,
) -> Result<(), Error> {
    let first = book.last()? + 1;
    let seed = random.draw();
    let what = random.below(16);
    if what == 0 {
        // Between two syncs of others.
        std::thread::sleep(std::time::Duration::from_micros(random.below(2000)));
    }
    if what <= 2 {
        book.sync()?;
        say(&format!("d {}", first - 1));
        return Ok(());
    }
    let count = if what < 5 { 1 + random.below(40) } else { 1 };
    let mut batch = Batch::new(options.deed_bytes_max);
    for number in first..first + count {
        let (mug, jam) = event_of(number, seed);
        batch.push(mug, &jam)?;
    }
    if batch.bytes_len() as u64 > *bytes_left {
        std::thread::sleep(std::time::Duration::from_micros(500));
        book.sync()?;
        say(&format!("d {}", first - 1));
        return Ok(());
    }
    say(&format!("w {first} {count} {seed}"));
    let appended = if count == 1 {
        let (mug, jam) = event_of(first, seed);
        book.append(mug, &jam)
    } else {
        book.append_batch(&batch, None, None)
    };
    if let Err(error) = appended {
        if error.durable() == Some(Durable::No) {
            say(&format!("x {first} {count}"));
        }
        return Err(error);
    }
    *bytes_left -= batch.bytes_len() as u64;
    say(&format!("a {first} {count}"));
    if options.durability == Durability::Always {
        say(&format!("d {}", first + count - 1));
    } else if let Some(last) = book.durable_last()? {
        say(&format!("d {last}"));
    }
    Ok(())
}
