//! A relay over an event store as a process: `examples/relay.rs`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A relay process. Dropping it kills it.
pub struct Relay {
    process: Child,
    pub url: String,
}

impl Relay {
    /// Over the store in a directory, which acknowledges synced events.
    pub fn on(directory: &Path) -> Self {
        let tests = std::env::current_exe().unwrap();
        let program: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples/relay");
        assert!(program.exists(), "cargo build --example relay first: {}", program.display());
        let mut process =
            Command::new(program).arg(directory).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().into() }
    }

    /// Stop as Ctrl+C does.
    pub fn stop(mut self) {
        let number = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
    }

    /// End at once, as a crash does.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
