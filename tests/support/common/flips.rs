//! A disk that stores other bytes than it was given.

use std::io;
use std::path::Path;

use deedbook::storage::{Disk, File};

use crate::support::around::{Around, Between};

#[derive(Clone, Copy, Debug)]
pub struct Flips {
    name: &'static str,
    of: &'static [u8],
}

/// The disk, on which the last of these bytes is changed on its way into files of one name, wherever they are
/// written. They must be written at once.
pub fn flips(name: &'static str, of: &'static [u8]) -> Around<Flips> {
    Around::on(Disk, Flips { name, of })
}

impl Between for Flips {
    fn write(&self, file: &dyn File, path: &Path, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut changed = buf.to_vec();
        let found = buf.windows(self.of.len()).position(|bytes| bytes == self.of);
        if let Some(at) = found.filter(|_| path.ends_with(self.name)) {
            changed[at + self.of.len() - 1] ^= 1;
        }
        file.write_at(&changed, offset)
    }

    fn allocate(&self, _file: &dyn File, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
}
