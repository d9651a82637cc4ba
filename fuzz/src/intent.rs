//! Any lines as the intent of a commit, with a right checksum, and a staged file: no path that they give
//! leaves the log's directory, and no record that was there goes.

use std::sync::Arc;

use deedbook::ledger::{LedgerConfig, Options as LedgerOptions};
use deedbook::{Durability, Mode, book};

use super::fenced::{Fenced, LOG, open_wal, payloads, sealed, write_wal};
use super::kit::Input;

/// The target: the format and the staged file's size, then lines; after a zero byte, the staged file.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let format = input.u8() % 4;
    let rest = input.rest();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (lines, staged) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let disk = Fenced::new();
    let sidecar = match format {
        2 => ".deedbook/jobs-events",
        3 => ".urb/log/.deedbook",
        _ => ".deedbook",
    };
    let lay = || {
        disk.put(&format!("{sidecar}/staged/job.1.0.2"), staged);
        disk.put(&format!("{sidecar}/transaction"), &sealed(lines));
    };
    let options =
        || book::Options::new().storage(Arc::new(disk.clone())).durability(Durability::Manual);
    match format {
        0 => {
            let book = options().open(LOG, Mode::Append).unwrap();
            book.append(1, b"one").unwrap();
            book.close().unwrap();
            lay();
            let _ = options().open(LOG, Mode::Append);
            let book = options().open(LOG, Mode::Read).unwrap();
            assert_eq!(book.read(1).unwrap().jam, b"one");
        }
        1 => {
            let written = write_wal(&disk, 5);
            lay();
            let _ = open_wal(&disk, Mode::Append);
            let left = payloads(&open_wal(&disk, Mode::Read).unwrap());
            assert!(left.starts_with(&written), "{left:?}");
        }
        2 => {
            let open = || {
                let options = LedgerOptions::new().storage(Arc::new(disk.clone()));
                options.open(LedgerConfig::lines(LOG, "events"))
            };
            let ledger = open().unwrap();
            ledger.append(b"one").unwrap();
            ledger.close().unwrap();
            lay();
            let Ok(ledger) = open() else { return };
            let _ = ledger.append(b"two");
            let _ = ledger.fetch(None, None);
        }
        _ => {
            let pier = options().open_pier(LOG, Mode::Append).unwrap();
            pier.append(1, b"one").unwrap();
            pier.close().unwrap();
            lay();
            let _ = options().open_pier(LOG, Mode::Append);
            let pier = options().open_pier(LOG, Mode::Read).unwrap();
            assert_eq!(pier.read(1).unwrap().jam, b"one");
        }
    }
}
