//! The names of files: a creation tries a limited number of taken names, and a store starts as quickly with many files.

use crate::prelude::*;

fn path_of(index: u32) -> PathBuf {
    Path::new(DIR).join(format!("{index}-{BASE}"))
}

fn len_of(memory: &Memory, index: u32) -> u64 {
    memory.open(&path_of(index), Access::Read).unwrap().len().unwrap()
}

/// Another program, which takes names between a store's look at the directory and the creation of a file.
#[derive(Clone)]
struct Taking {
    memory: Memory,
    names: u32,
}

impl Between for Taking {
    fn before(&self, call: Call, path: &Path) -> io::Result<()> {
        if call == Call::Create && path == path_of(0) {
            (0..self.names).for_each(|index| put(&self.memory, index, b""));
        }
        Ok(())
    }
}

#[test]
fn creation_gives_up_after_a_thousand_taken_names() {
    for names in [999, 1000] {
        let memory = Memory::new();
        let options = on(Around::on(memory.clone(), Taking { memory: memory.clone(), names }));
        let ledger = options.open(small(DIR, 100)).unwrap();
        if names == 1000 {
            let error = refused(ledger.append(&event(0, 0)), ErrorKind::Locked);
            assert_eq!(error.durable(), Some(Durable::No));
            let message = "1000 names in a row up to index 999 are taken";
            assert!(error.message().contains(message), "{error}");
            assert_eq!(error.path(), Some(Path::new(DIR)));
        }
        ledger.append(&event(0, 0)).unwrap();
        assert_eq!(len_of(&memory, names), 32);
    }
}

/// Start-up lists the directory once, and opens no waiting file.
#[test]
fn starting_makes_equal_calls_for_many_files() {
    let many = of_tier("DEEDBOOK_LEDGER_FILES") as u32;
    let calls = [1, many].map(|files| {
        let (memory, options) = memory();
        options.open(small(DIR, 100)).unwrap();
        (0..files).for_each(|index| put(&memory, index, b"one waiting file"));
        let (storage, calls) = before_call(Arc::new(memory.clone()), u64::MAX, || ());
        let options = deedbook::ledger::Options::new().storage(storage);
        let ledger = options.open(small(DIR, 100)).unwrap();
        let opened = calls.load(Ordering::Relaxed);
        ledger.append(&event(0, 0)).unwrap();
        assert_eq!(len_of(&memory, files), 32);
        (opened, calls.load(Ordering::Relaxed))
    });
    assert_eq!(calls[0], calls[1], "{many} files");
    assert!(calls[1].1 < 40, "{calls:?}");
}
