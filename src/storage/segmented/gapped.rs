//! Files with gaps between them, read as one file: gaps read as zeros.

use std::io;

use super::Segmented;
use crate::ground::slice::part_mut;
use crate::storage::{File, FileId};

/// Runs of segments in order, each with its first byte and the byte after its end.
#[derive(Debug)]
pub struct Gapped {
    parts: Vec<(u64, u64, Segmented)>,
}

impl Gapped {
    /// Make one file of the given parts.
    pub fn new(parts: Vec<(u64, u64, Segmented)>) -> Self {
        Self { parts }
    }

    /// The first part that ends after a byte.
    fn part_from(&self, offset: u64) -> Option<&(u64, u64, Segmented)> {
        self.parts.iter().find(|(_, end, _)| offset < *end)
    }
}

impl File for Gapped {
    fn len(&self) -> io::Result<u64> {
        Ok(self.parts.last().map_or(0, |&(_, end, _)| end))
    }

    fn id(&self) -> io::Result<FileId> {
        self.parts.first().map_or(Ok(FileId::default()), |(_, _, file)| file.id())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some((start, end, file)) = self.part_from(offset) else { return Ok(0) };
        let within = |until: u64| (until - offset).min(buf.len() as u64) as usize;
        match offset < *start {
            true => {
                let len = within(*start);
                part_mut(buf, ..len).fill(0);
                Ok(len)
            }
            false => {
                let len = within(*end);
                file.read_at(part_mut(buf, ..len), offset)
            }
        }
    }

    fn data_from(&self, offset: u64) -> io::Result<u64> {
        Ok(self.part_from(offset).map_or(u64::MAX, |&(start, _, _)| start.max(offset)))
    }
}
