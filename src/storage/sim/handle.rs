//! An open file of the simulated machine.

use std::io;
use std::sync::Arc;

use super::fault::{Call, What};
use super::machine::Node;
use super::{Inner, Sim, failure};
use crate::ground::slice::{part, part_mut};
use crate::storage::{Access, File, FileId};

/// An open file; it still works after its name is removed.
#[derive(Debug)]
pub struct Handle {
    sim: Sim,
    inode: u64,
    access: Access,
}

impl Handle {
    /// The file with that inode.
    pub fn new(sim: Sim, inode: u64, access: Access) -> Self {
        Self { sim, inode, access }
    }

    fn node<'a>(&self, inner: &'a Inner) -> io::Result<&'a Node> {
        let node = inner.machine.files.get(&self.inode);
        Ok(node.ok_or(io::ErrorKind::NotFound)?)
    }

    fn node_mut<'a>(&self, inner: &'a mut Inner) -> io::Result<&'a mut Node> {
        if self.access == Access::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let node = inner.machine.files.get_mut(&self.inode);
        Ok(Arc::make_mut(node.ok_or(io::ErrorKind::NotFound)?))
    }
}

impl File for Handle {
    fn len(&self) -> io::Result<u64> {
        self.sim.act(Call::Len, |inner, _| Ok(self.node(inner)?.cache.len))
    }

    fn id(&self) -> io::Result<FileId> {
        self.sim.act(Call::Id, |_, _| Ok(FileId { device: 1, inode: self.inode, created_ns: 0 }))
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        self.sim.act(Call::Id, |inner, _| Ok(!inner.machine.has_name(self.inode)))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.sim.act(Call::Read, |inner, what| {
            let count = match what {
                Some(What::Short) => buf.len().div_ceil(2),
                _ => buf.len(),
            };
            let target = part_mut(buf, ..count);
            Ok(self.node(inner)?.cache.read(target, offset))
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.sim.act(Call::Write, |inner, what| {
            let node = self.node_mut(inner)?;
            let half = part(buf, ..buf.len().div_ceil(2));
            match what {
                Some(What::Lie) => Ok(buf.len()),
                Some(What::Zero) => Ok(0),
                Some(What::Short) => node.write(half, offset).map(|()| half.len()),
                Some(What::Partial(kind)) => {
                    node.write(half, offset)?;
                    Err(failure(kind))
                }
                Some(What::Misdirect(by)) => {
                    node.write(buf, offset.saturating_add(by)).map(|()| buf.len())
                }
                _ => node.write(buf, offset).map(|()| buf.len()),
            }
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.sim.act(Call::SetLen, |inner, _| {
            self.node_mut(inner)?.set_len(len);
            Ok(())
        })
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.sim.act(Call::Allocate, |inner, _| {
            if !inner.machine.allocates {
                return Ok(false);
            }
            let node = self.node_mut(inner)?;
            if len > node.cache.len {
                node.set_len(len);
            }
            Ok(true)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sim.act(Call::Sync, |inner, what| match what {
            Some(What::Error(kind)) => {
                inner.machine.fail_sync(self.inode, inner.calls);
                Err(failure(kind))
            }
            Some(What::Lie) => Ok(()),
            _ => {
                inner.machine.sync_file(self.inode);
                Ok(())
            }
        })
    }
}
