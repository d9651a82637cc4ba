//! The simulated machine's content: the caches, the disk, and the unsynced changes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use super::content::{Content, SectorRef, hash_bytes, mix};

/// Inode of the root directory.
pub const ROOT: u64 = 1;

/// Names in a directory, with their inodes.
pub type Entries = BTreeMap<OsString, u64>;

/// A file: the cache, the disk, and the writes since the last sync.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The bytes that programs see.
    pub cache: Content,
    /// The bytes that every power cut leaves.
    pub durable: Content,
    /// Unsynced sectors, each with every content since the last sync, oldest first.
    pub versions: BTreeMap<u64, Vec<SectorRef>>,
    /// The file's sizes since the last sync, if the size changed.
    pub lens: Vec<u64>,
}

impl Node {
    /// A file whose content is on the disk.
    pub fn settled(content: Content) -> Self {
        Self { cache: content.clone(), durable: content, ..Self::default() }
    }

    /// Whether everything that programs see is on the disk, as far as the system knows.
    pub fn is_clean(&self) -> bool {
        self.versions.is_empty() && self.lens.is_empty()
    }

    /// Write to the cache.
    pub fn write(&mut self, buf: &[u8], offset: u64) -> io::Result<()> {
        let Self { cache, versions, durable, lens } = self;
        let end = offset.saturating_add(buf.len() as u64);
        cache.write(buf, offset, |at, sector| {
            versions.entry(at).or_default().push(sector.clone());
        })?;
        if end > durable.len {
            lens.push(cache.len);
        }
        Ok(())
    }

    /// Cut or extend in the cache.
    pub fn set_len(&mut self, len: u64) {
        if len == self.cache.len && len == self.durable.len {
            return;
        }
        let Self { cache, versions, lens, .. } = self;
        cache.set_len(len, |at, sector| versions.entry(at).or_default().push(sector.clone()));
        lens.push(len);
    }

    /// A sync: all bytes of the cache are on the disk now.
    pub fn sync(&mut self) {
        for (at, versions) in std::mem::take(&mut self.versions) {
            self.durable.put(at, versions.last().cloned().flatten());
        }
        if !self.lens.is_empty() {
            self.durable.cut_to(self.cache.len);
            self.lens.clear();
        }
    }

    /// A failed sync: some dirty bytes have reached the disk, anything from none to all. The system
    /// takes the rest for clean and will not write them again.
    pub fn fail_sync(&mut self, seed: u64) {
        let manner = mix(seed) % 4;
        let draw = |what: u64| mix(seed ^ mix(what));
        let is_kept = |what: u64| match manner {
            0 => false,
            1 => true,
            _ => draw(what) % 2 == 0,
        };
        let Self { cache, durable, versions, lens } = self;
        for (at, versions) in std::mem::take(versions).into_iter().filter(|(at, _)| is_kept(*at)) {
            let newest = versions.len().saturating_sub(1);
            // An older version: the system wrote the older sector by itself, then missed the
            // newest.
            let version =
                if manner == 3 { (draw(at) >> 32) as usize % versions.len() } else { newest };
            durable.put(at, versions.get(version).cloned().flatten());
        }
        let len = if !lens.is_empty() && is_kept(u64::MAX) { cache.len } else { durable.len };
        lens.clear();
        durable.cut_to(len);
    }
}

/// A directory: the names in the cache and on the disk.
#[derive(Clone, Debug, Default)]
pub struct Dir {
    /// The names that programs see.
    pub entries: Entries,
    /// The names that every power cut leaves.
    pub durable: Entries,
}

/// One change of names, which happens as a whole or not at all: directory, name, inode.
#[derive(Clone, Debug)]
pub struct Change(pub Vec<(u64, OsString, Option<u64>)>);

impl Change {
    /// Whether the change touches the directory.
    pub fn touches(&self, dir: u64) -> bool {
        self.0.iter().any(|(at, ..)| *at == dir)
    }

    /// Apply the change to the disk.
    pub fn apply(&self, dirs: &mut BTreeMap<u64, Arc<Dir>>) {
        for (dir, name, inode) in &self.0 {
            let Some(dir) = dirs.get_mut(dir) else { continue };
            set(&mut Arc::make_mut(dir).durable, name, *inode);
        }
    }
}

fn set(entries: &mut Entries, name: &OsStr, inode: Option<u64>) {
    match inode {
        Some(inode) => entries.insert(name.to_os_string(), inode),
        None => entries.remove(name),
    };
}

/// All files and directories. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Files by inode.
    pub files: BTreeMap<u64, Arc<Node>>,
    /// Directories by inode.
    pub dirs: BTreeMap<u64, Arc<Dir>>,
    /// Changes of names since the last sync of their directories, oldest first.
    pub changes: Vec<Change>,
    /// Inodes given so far.
    pub inodes: u64,
    /// Whether the sync of a file makes names durable as well.
    pub kinder: bool,
    /// Whether space can be reserved.
    pub allocates: bool,
    /// Decides what a failed sync leaves, and the order of names in a listing.
    pub seed: u64,
}

impl Machine {
    /// An empty root directory.
    pub fn new() -> Self {
        Self {
            files: BTreeMap::new(),
            dirs: BTreeMap::from([(ROOT, Arc::default())]),
            changes: Vec::new(),
            inodes: ROOT,
            kinder: false,
            allocates: false,
            seed: 0,
        }
    }

    /// The inode of a path, if something is there.
    pub fn find(&self, path: &Path) -> Option<u64> {
        let mut at = ROOT;
        for part in path.components() {
            match part {
                Component::Normal(name) => at = *self.dirs.get(&at)?.entries.get(name)?,
                Component::ParentDir => return None,
                _ => {}
            }
        }
        Some(at)
    }

    /// The inode of a directory.
    pub fn find_dir(&self, path: &Path) -> io::Result<u64> {
        let found = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        let found = Some(found).filter(|found| self.dirs.contains_key(found));
        found.ok_or_else(|| io::ErrorKind::NotADirectory.into())
    }

    /// The inode of a file.
    pub fn find_file(&self, path: &Path) -> io::Result<u64> {
        let found = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        if self.dirs.contains_key(&found) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(found)
    }

    fn place(&self, path: &Path) -> io::Result<(u64, OsString)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.find_dir(path.parent().unwrap_or(Path::new("")))?, name.to_os_string()))
    }

    fn change(&mut self, change: Change) {
        for (dir, name, inode) in &change.0 {
            if let Some(dir) = self.dirs.get_mut(dir) {
                set(&mut Arc::make_mut(dir).entries, name, *inode);
            }
        }
        self.changes.push(change);
    }

    /// Give a path, which must be free, a new inode.
    pub fn create(&mut self, path: &Path, dir: bool) -> io::Result<u64> {
        let (parent, name) = self.place(path)?;
        if self.find(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.inodes += 1;
        let inode = self.inodes;
        match dir {
            true => drop(self.dirs.insert(inode, Arc::default())),
            false => drop(self.files.insert(inode, Arc::default())),
        }
        self.change(Change(vec![(parent, name, Some(inode))]));
        Ok(inode)
    }

    /// Rename a file, replacing a file at the new name; or rename a directory to a free name.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from).ok_or(io::ErrorKind::NotFound)?;
        let is_dir = |inode: &u64| self.dirs.contains_key(inode);
        if self.find(to).is_some_and(|there| is_dir(&inode) || is_dir(&there)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let ((from_dir, from_name), (to_dir, to_name)) = (self.place(from)?, self.place(to)?);
        let gone = (from_dir, from_name, None);
        self.change(Change(vec![gone, (to_dir, to_name, Some(inode))]));
        Ok(())
    }

    /// Remove a file's name.
    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find_file(path)?;
        let (parent, name) = self.place(path)?;
        self.change(Change(vec![(parent, name, None)]));
        Ok(())
    }

    /// Remove an empty directory's name.
    pub fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.find_dir(path)?;
        if self.dirs.get(&inode).is_some_and(|dir| !dir.entries.is_empty()) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = self.place(path)?;
        self.change(Change(vec![(parent, name, None)]));
        Ok(())
    }

    /// Names in a directory, in an order that only `moment` and the seed decide.
    pub fn list(&self, dir: &Path, moment: u64) -> io::Result<Vec<OsString>> {
        let dir = self.dirs.get(&self.find_dir(dir)?);
        let mut names: Vec<OsString> =
            dir.map(|dir| dir.entries.keys().cloned().collect()).unwrap_or_default();
        let seed = self.seed_at(moment);
        names.sort_by_key(|name| mix(seed ^ hash_bytes(name.as_encoded_bytes())));
        Ok(names)
    }

    /// The sync of a file failed.
    pub fn fail_sync(&mut self, inode: u64, moment: u64) {
        let seed = self.seed_at(moment);
        if let Some(node) = self.files.get_mut(&inode) {
            Arc::make_mut(node).fail_sync(seed);
        }
    }

    fn seed_at(&self, moment: u64) -> u64 {
        mix(self.seed ^ mix(moment))
    }

    /// A directory's names are on the disk now.
    pub fn sync_dir(&mut self, dir: u64) {
        let (touched, rest) =
            std::mem::take(&mut self.changes).into_iter().partition(|change| change.touches(dir));
        self.changes = rest;
        let touched: Vec<Change> = touched;
        touched.iter().for_each(|change| change.apply(&mut self.dirs));
    }

    /// A file's bytes are on the disk now, on a kinder system all names as well.
    pub fn sync_file(&mut self, inode: u64) {
        if let Some(node) = self.files.get_mut(&inode).filter(|node| !node.is_clean()) {
            Arc::make_mut(node).sync();
        }
        if self.kinder {
            for change in std::mem::take(&mut self.changes) {
                change.apply(&mut self.dirs);
            }
        }
    }

    /// Whether programs see a name of the inode.
    pub fn has_name(&self, inode: u64) -> bool {
        self.dirs.values().any(|dir| dir.entries.values().any(|&entry| entry == inode))
    }

    /// Drop files and directories that no name leads to.
    pub fn sweep(&mut self) {
        let mut reached = vec![ROOT];
        let mut at = 0;
        while let Some(inode) = reached.get(at) {
            if let Some(dir) = self.dirs.get(inode) {
                reached.extend(dir.entries.values());
            }
            at += 1;
        }
        self.dirs.retain(|inode, _| reached.contains(inode));
        self.files.retain(|inode, _| reached.contains(inode));
    }

    /// A number that equal disks share: names, inodes and bytes.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0u64;
        for (inode, node) in &self.files {
            hash = hash.wrapping_add(mix(node.cache.hash() ^ mix(*inode)));
        }
        for (inode, dir) in &self.dirs {
            for (name, entry) in &dir.entries {
                let name = hash_bytes(name.as_encoded_bytes());
                hash = hash.wrapping_add(mix(name ^ mix(*inode) ^ mix(entry.wrapping_mul(3))));
            }
        }
        hash
    }
}
