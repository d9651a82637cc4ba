//! A file's bytes in sectors. Versions share sectors, so copies are cheap.

use std::io;
use std::sync::Arc;

use crate::ground::slice::{part, part_mut};

/// A disk writes a sector whole or not at all.
#[doc(hidden)]
pub const SECTOR_BYTES: usize = 512;

/// One sector's bytes and their hash.
#[derive(Debug, PartialEq, Eq)]
pub struct Sector {
    bytes: [u8; SECTOR_BYTES],
    hash: u64,
}

/// A sector; `None` is all zeros.
pub type SectorRef = Option<Arc<Sector>>;

/// Spread the bits of a number: the finaliser of SplitMix64.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of some bytes.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
    for &byte in words.remainder() {
        hash = (hash.rotate_left(23) ^ u64::from(byte)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
    mix(hash)
}

/// A sector with the given bytes.
fn sector(bytes: [u8; SECTOR_BYTES]) -> SectorRef {
    if bytes == [0; SECTOR_BYTES] {
        return None;
    }
    Some(Arc::new(Sector { hash: hash_bytes(&bytes), bytes }))
}

fn bytes_of(sector: &SectorRef) -> [u8; SECTOR_BYTES] {
    sector.as_ref().map_or([0; SECTOR_BYTES], |sector| sector.bytes)
}

/// The first `keep` bytes of one sector, then those of another.
pub fn spliced(head: &SectorRef, keep: usize, rest: &SectorRef) -> SectorRef {
    let mut bytes = bytes_of(rest);
    for (to, from) in bytes.iter_mut().zip(bytes_of(head)).take(keep) {
        *to = from;
    }
    sector(bytes)
}

/// Bytes that nobody wrote, the same for the same seed.
pub fn garbage(seed: u64) -> SectorRef {
    let mut bytes = [0; SECTOR_BYTES];
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(seed ^ ((i as u64) << 32)).to_le_bytes());
    }
    sector(bytes)
}

/// A file's bytes. Missing sectors are zeros.
#[derive(Clone, Debug, Default)]
pub struct Content {
    sectors: Vec<SectorRef>,
    /// Size in bytes.
    pub len: u64,
}

impl Content {
    /// Sector number `at`.
    pub fn sector(&self, at: u64) -> &SectorRef {
        usize::try_from(at).ok().and_then(|at| self.sectors.get(at)).unwrap_or(&None)
    }

    /// Replace sector number `at`; the size stays.
    pub fn put(&mut self, at: u64, sector: SectorRef) {
        let Ok(at) = usize::try_from(at) else { return };
        if self.sectors.len() <= at {
            if sector.is_none() {
                return;
            }
            self.sectors.resize(at + 1, None);
        }
        if let Some(place) = self.sectors.get_mut(at) {
            *place = sector;
        }
    }

    /// Read at most `buf.len()` bytes.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let there = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (mut done, mut at) = (0, offset);
        while done < there {
            let from = (at % SECTOR_BYTES as u64) as usize;
            let count = (SECTOR_BYTES - from).min(there - done);
            let target = part_mut(buf, done..done + count);
            match self.sector(at / SECTOR_BYTES as u64) {
                None => target.fill(0),
                Some(sector) => {
                    target.copy_from_slice(part(&sector.bytes, from..from + count));
                }
            }
            done += count;
            at += count as u64;
        }
        done
    }

    /// Write all of `buf`; reports the sectors changed.
    pub fn write(
        &mut self,
        buf: &[u8],
        offset: u64,
        mut changed: impl FnMut(u64, &SectorRef),
    ) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|&end| end <= 1 << 48);
        let end = end.ok_or(io::ErrorKind::FileTooLarge)?;
        let (mut rest, mut at) = (buf, offset);
        while !rest.is_empty() {
            let from = (at % SECTOR_BYTES as u64) as usize;
            let (now, later) = rest.split_at((SECTOR_BYTES - from).min(rest.len()));
            let number = at / SECTOR_BYTES as u64;
            let mut bytes = bytes_of(self.sector(number));
            part_mut(&mut bytes, from..from + now.len()).copy_from_slice(now);
            let sector = sector(bytes);
            changed(number, &sector);
            self.put(number, sector);
            at += now.len() as u64;
            rest = later;
        }
        self.len = self.len.max(end);
        Ok(())
    }

    /// Cut or extend with zeros; reports the sectors changed.
    pub fn set_len(&mut self, len: u64, mut changed: impl FnMut(u64, &SectorRef)) {
        if len < self.len {
            let full = (len / SECTOR_BYTES as u64) as usize;
            let keep = (len % SECTOR_BYTES as u64) as usize;
            if let Some(last) = self.sectors.get_mut(full).filter(|last| last.is_some()) {
                let cut = spliced(last, keep, &None);
                if cut != *last {
                    changed(full as u64, &cut);
                    *last = cut;
                }
            }
            for (at, sector) in self.sectors.iter().enumerate().skip(full + 1) {
                if sector.is_some() {
                    changed(at as u64, &None);
                }
            }
            self.sectors.truncate(full + 1);
        }
        self.len = len;
    }

    /// Set the size and drop all bytes after the end, even if sectors were put there.
    pub fn cut_to(&mut self, len: u64) {
        self.len = u64::MAX;
        self.set_len(len, |_, _| ());
    }

    /// A number that equal contents share.
    pub fn hash(&self) -> u64 {
        let mut hash = mix(self.len);
        for (at, sector) in self.sectors.iter().enumerate() {
            if let Some(sector) = sector {
                hash = hash.wrapping_add(mix(sector.hash ^ mix(at as u64)));
            }
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_cuts_leave_zeros() {
        let (mut content, mut model) = (Content::default(), Vec::<u8>::new());
        for step in 0..2000u64 {
            let (at, len) = (mix(step) % 3000, (mix(step ^ 99) % 1200) as usize);
            if step % 5 == 0 {
                content.set_len(at, |_, _| ());
                model.resize(at as usize, 0);
            } else {
                let bytes = vec![(step % 251) as u8; len];
                content.write(&bytes, at, |_, _| ()).unwrap();
                let end = at as usize + len;
                model.resize(model.len().max(end), 0);
                model[at as usize..end].copy_from_slice(&bytes);
            }
            let mut read = vec![9; 5000];
            let n = content.read(&mut read, 0);
            assert_eq!(read[..n], model, "step {step}");
        }
    }

    #[test]
    fn equal_bytes_have_equal_hashes() {
        let mut short = Content::default();
        short.write(&[1; 700], 0, |_, _| ()).unwrap();
        let mut long = Content::default();
        long.write(&[1; 2000], 0, |_, _| ()).unwrap();
        assert_ne!(short.hash(), long.hash());
        long.set_len(700, |_, _| ());
        assert_eq!(short.hash(), long.hash());
    }
}
