//! A disk that stores other bytes than it was given.

use crate::support::prelude::*;

#[derive(Clone, Copy, Debug)]
pub struct Flips {
    name: &'static str,
    of: &'static [u8],
}

/// The disk changes the last of the bytes `of` in every write of them to a file with the name.
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

    fn allocate(&self, _file: &dyn File, _path: &Path, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
}
