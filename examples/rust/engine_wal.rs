//! The write-ahead log of a small storage engine: a map in memory, whose changes are logged first.
//!
//! ```sh
//! cargo run --example engine_wal -- DIR set color blue
//! cargo run --example engine_wal -- DIR get color
//! ```
//!
//! Opening loads the last checkpoint, a file with the whole map, and replays the log after it. A checkpoint
//! lets the log drop the records before it. A crash at any moment loses no change that `set` returned from.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use deedbook::Mode;
use deedbook::wal::{Layout, Lsn, Options, Wal};

/// Changes between two checkpoints.
const CHECKPOINT_EVERY: u64 = 1000;

struct Engine {
    map: BTreeMap<String, String>,
    wal: Wal,
    checkpoint: PathBuf,
    since: u64,
}

impl Engine {
    fn open(dir: &Path) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(dir)?;
        let options = Options::new().layout(Layout::Segmented { segment_bytes: 1 << 20 });
        let wal = options.open(dir.join("wal"), Mode::Append)?;
        let mut engine =
            Self { map: BTreeMap::new(), wal, checkpoint: dir.join("checkpoint"), since: 0 };
        let start = engine.load()?;
        for record in engine.wal.iter(start..)? {
            apply(&mut engine.map, &record?.payload)?;
            engine.since += 1;
        }
        Ok(engine)
    }

    /// The checkpoint's first line is the LSN from which the log goes on; then come the changes.
    fn load(&mut self) -> Result<Lsn, Box<dyn Error>> {
        let text = match fs::read_to_string(&self.checkpoint) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(self.wal.head()?),
            read => read?,
        };
        let (lsn, changes) = text.split_once('\n').ok_or("the checkpoint is empty")?;
        changes.lines().try_for_each(|change| apply(&mut self.map, change.as_bytes()))?;
        Ok(Lsn(lsn.parse()?))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Box<dyn Error>> {
        if key.contains(['\t', '\n']) || value.contains('\n') {
            return Err("a key has no tab, and nothing has a new line".into());
        }
        let change = format!("{key}\t{value}");
        self.wal.commit(change.as_bytes())?; // on stable storage before anybody sees it
        apply(&mut self.map, change.as_bytes())?;
        self.since += 1;
        if self.since >= CHECKPOINT_EVERY { self.write_checkpoint() } else { Ok(()) }
    }

    /// Replace the checkpoint, then drop the records that it has.
    fn write_checkpoint(&mut self) -> Result<(), Box<dyn Error>> {
        let end = self.wal.end()?;
        let beside = self.checkpoint.with_extension("new");
        let mut file = io::BufWriter::new(File::create(&beside)?);
        writeln!(file, "{end}")?;
        for (key, value) in &self.map {
            writeln!(file, "{key}\t{value}")?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&beside, &self.checkpoint)?;
        File::open(self.checkpoint.parent().ok_or("no directory")?)?.sync_all()?;
        self.wal.truncate_before(end)?; // only now: a crash before leaves records that are replayed
        self.since = 0;
        Ok(())
    }
}

fn apply(map: &mut BTreeMap<String, String>, change: &[u8]) -> Result<(), Box<dyn Error>> {
    let (key, value) = std::str::from_utf8(change)?.split_once('\t').ok_or("no tab in a change")?;
    map.insert(key.into(), value.into());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [dir, "set", key, value] => Engine::open(Path::new(dir))?.set(key, value),
        [dir, "checkpoint"] => Engine::open(Path::new(dir))?.write_checkpoint(),
        [dir, "get", key] => {
            let engine = Engine::open(Path::new(dir))?;
            println!("{}", engine.map.get(key).ok_or("no such key")?);
            Ok(())
        }
        _ => Err("usage: engine_wal DIR set KEY VALUE | get KEY | checkpoint".into()),
    }
}
