//! Every page that LMDB will follow, checked before LMDB maps the file: LMDB trusts each number in it.
//!
//! ```text
//! page      0 number 8   8 pad 2   10 flags 2   12 lower 2   14 upper 2   16 offsets of nodes, 2 each
//! overflow  0 number 8   8 pad 2   10 flags 2   12 pages of the run 4     16 value
//! node      0 low 2   2 high 2   4 flags 2   6 bytes of the key 2   8 key, then value
//!           leaf: low, high = bytes of the value     branch: low, high, flags = number of the child
//! ```
//!
//! A flag of 1 in a leaf's node means a value in a run of overflow pages; the run's number takes
//! the value's place. A flag of 2 means that the value is the record of a named database. Source:
//! `mdb.c`.

use std::path::Path;

use super::pages::{Pages, Tree};
use super::{EVENTS, META};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{u32_at, u64_at};
use crate::storage::{File, read_full};

const HEAD_BYTES: usize = 16;
const NODE_BYTES: usize = 8;
const TREE_BYTES: usize = 48;
const KEY_BYTES_MAX: usize = 511;
const NUMBER_BYTES: usize = 8;
/// LMDB keeps so many pages on the way to a leaf.
const DEPTH_MAX: u16 = 31;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;

const IN_OVERFLOW: u16 = 1;
const OF_DATABASE: u16 = 2;

/// Flags of a database for the layout of pages, and the flag for keys that are numbers.
const LAYOUT_FLAGS: u16 = 0x7e;
const NUMBER_KEYS: u16 = 8;

/// LMDB's use of the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reads both databases.
    Read,
    /// Also moves nodes, and writes over the pages in the free list.
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Free,
    Main,
    Events,
    Meta,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Free => "the free list",
            Self::Main => "the list of databases",
            Self::Events => EVENTS,
            Self::Meta => META,
        }
    }

    fn has_numbers(self) -> bool {
        matches!(self, Self::Free | Self::Events)
    }
}

/// Refuse an environment with a number that leads LMDB out of a page, a run or the file.
pub fn check(file: &dyn File, path: &Path, pages: &Pages, wanted: Use) -> Result<()> {
    let page_bytes = usize::try_from(pages.page_bytes).unwrap_or(usize::MAX);
    let count = pages.last_page + 1;
    let words = usize::try_from(count.div_ceil(64)).unwrap_or(usize::MAX);
    let mut walk = PageWalk { file, path, page_bytes, count, met: vec![0; words], wanted };
    walk.meet(0, 2)?;
    walk.tree(&pages.main, Kind::Main)?;
    if wanted == Use::Write {
        walk.tree(&pages.free, Kind::Free)?;
    }
    Ok(())
}

struct PageWalk<'a> {
    file: &'a dyn File,
    path: &'a Path,
    page_bytes: usize,
    count: u64,
    /// A bit for each page that is in use.
    met: Vec<u64>,
    wanted: Use,
}

/// A tree, and the walk's progress there.
struct Way {
    kind: Kind,
    depth: u16,
    /// The last key, of a tree whose keys are numbers.
    before: Option<u64>,
    /// Trees and free pages named by the leaves.
    found: Vec<(Tree, Kind)>,
    free: Vec<(u64, Vec<u8>)>,
}

/// A page in memory.
struct Page {
    number: u64,
    bytes: Vec<u8>,
}

/// A node's place in its page.
#[derive(Clone, Copy)]
struct Node {
    at: usize,
    flags: u16,
    key_bytes: usize,
    low: u32,
}

impl Page {
    fn u16(&self, at: usize) -> usize {
        let bytes = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
    }

    fn key(&self, node: Node) -> &[u8] {
        let at = node.at + NODE_BYTES;
        self.bytes.get(at..at + node.key_bytes).unwrap_or_default()
    }
}

impl PageWalk<'_> {
    fn refuse<T>(&self, page: u64, message: impl std::fmt::Display) -> Result<T> {
        let error = Error::new(ErrorKind::Corrupt, format!("page {page}: {message}"));
        Err(error.at(self.path).offset_at(page.saturating_mul(self.page_bytes as u64)))
    }

    /// Note that pages are in use. Each is in use once.
    fn meet(&mut self, first: u64, count: u64) -> Result<()> {
        let last = first.checked_add(count).filter(|end| *end <= self.count);
        let Some(end) = last else {
            let message =
                format!("a run of pages ({count}) begins here, but the file has {}", self.count);
            return self.refuse(first, message);
        };
        for page in first..end {
            let bit = 1 << (page % 64);
            match self.met.get_mut((page / 64) as usize) {
                Some(word) if *word & bit == 0 => *word |= bit,
                _ => return self.refuse(page, "two places lead to this page, expected 1"),
            }
        }
        Ok(())
    }

    /// Read the first bytes of a page, and compare its number and flags with the expected ones.
    fn read(&self, number: u64, bytes: usize, flags: u16) -> Result<Page> {
        let mut page = Page { number, bytes: vec![0; bytes] };
        let at = number * self.page_bytes as u64;
        let read = read_full(self.file, &mut page.bytes, at)
            .map_err(|e| Error::io("read the environment", self.path, e).offset_at(at))?;
        if read < bytes {
            return self.refuse(number, format!("{read} bytes are there, expected {bytes}"));
        }
        let own = u64_at(&page.bytes, 0).unwrap_or(0);
        if own != number {
            return self.refuse(number, format!("its head has the number {own}"));
        }
        let found = page.u16(10);
        if found != usize::from(flags) {
            return self.refuse(number, format!("flags {found:04x}, expected {flags:04x}"));
        }
        Ok(page)
    }

    fn tree(&mut self, tree: &Tree, kind: Kind) -> Result<()> {
        let name = kind.name();
        let refuse = |message: String| Err(Error::new(ErrorKind::Corrupt, message).at(self.path));
        let flags = if kind.has_numbers() { NUMBER_KEYS } else { 0 };
        if tree.flags & LAYOUT_FLAGS != flags {
            return refuse(format!("{name} has flags {:04x}, expected {flags:04x}", tree.flags));
        }
        let depths = if tree.root == u64::MAX { 0..=0 } else { 1..=DEPTH_MAX };
        if !depths.contains(&tree.depth) {
            let (first, last) = depths.into_inner();
            return refuse(format!("{name} is {} deep, expected {first} to {last}", tree.depth));
        }
        if tree.root == u64::MAX {
            return Ok(());
        }
        let (found, free) = (Vec::new(), Vec::new());
        let mut way = Way { kind, depth: tree.depth, before: None, found, free };
        self.visit(tree.root, 1, &mut way)?;
        for (page, numbers) in std::mem::take(&mut way.free) {
            self.meet_free(page, &numbers)?;
        }
        way.found.iter().try_for_each(|(tree, kind)| self.tree(tree, *kind))
    }

    fn visit(&mut self, number: u64, level: u16, way: &mut Way) -> Result<()> {
        self.meet(number, 1)?;
        let is_leaf = level == way.depth;
        let page = self.read(number, self.page_bytes, if is_leaf { LEAF } else { BRANCH })?;
        let nodes = self.nodes(&page, is_leaf, way.kind)?;
        for (at, node) in nodes.iter().enumerate() {
            self.check_key(&page, *node, !is_leaf && at == 0, way)?;
            if is_leaf {
                self.leaf_node(&page, *node, way)?;
            } else {
                let child = u64::from(node.low) | u64::from(node.flags) << 32;
                self.visit(child, level + 1, way)?;
            }
        }
        Ok(())
    }

    /// The nodes of a page. Each must have head and key in the page.
    fn nodes(&self, page: &Page, is_leaf: bool, kind: Kind) -> Result<Vec<Node>> {
        let (lower, upper) = (page.u16(12), page.u16(14));
        if lower < HEAD_BYTES
            || !lower.is_multiple_of(2)
            || lower > upper
            || upper > self.page_bytes
        {
            let message = format!("its space is from {lower} to {upper} of {}", self.page_bytes);
            return self.refuse(page.number, message);
        }
        let count = (lower - HEAD_BYTES) / 2;
        // LMDB itself leaves a branch of the free list with a single child for a while.
        let least = if is_leaf || kind == Kind::Free { 1 } else { 2 };
        if count < least {
            return self.refuse(page.number, format!("{count} nodes, expected {least} or more"));
        }
        let mut nodes = Vec::with_capacity(count);
        for index in 0..count {
            let at = page.u16(HEAD_BYTES + 2 * index);
            let key_bytes = page.u16(at.saturating_add(6));
            let end = at + NODE_BYTES + key_bytes;
            if at < upper || !at.is_multiple_of(2) || end > self.page_bytes {
                let message = format!(
                    "node {index} from {at} to {end}, but nodes lie from {upper} to {}",
                    self.page_bytes
                );
                return self.refuse(page.number, message);
            }
            let low = u32_at(&page.bytes, at).unwrap_or(0);
            nodes.push(Node { at, flags: page.u16(at + 4) as u16, key_bytes, low });
        }
        if self.wanted == Use::Write {
            self.check_packed(page, &nodes, is_leaf, upper)?;
        }
        Ok(nodes)
    }

    /// LMDB moves nodes by size, and the sizes must add up.
    fn check_packed(&self, page: &Page, nodes: &[Node], is_leaf: bool, upper: usize) -> Result<()> {
        let node_max = (((self.page_bytes - HEAD_BYTES) / 2) & !1) - 2;
        let mut places: Vec<(usize, usize)> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let value = match is_leaf {
                false => 0,
                true if node.flags & IN_OVERFLOW != 0 => NUMBER_BYTES,
                true => node.low as usize,
            };
            let bytes = (NODE_BYTES + node.key_bytes).saturating_add(value);
            if bytes > node_max {
                let message = format!("a node of {bytes} bytes, at most {node_max}");
                return self.refuse(page.number, message);
            }
            places.push((node.at, bytes.next_multiple_of(2)));
        }
        places.sort_unstable();
        let mut end = upper;
        for (at, bytes) in places {
            if at != end {
                return self.refuse(page.number, format!("a node at {at}, expected at {end}"));
            }
            end = at + bytes;
        }
        if end != self.page_bytes {
            let message = format!("its nodes end at {end}, expected {}", self.page_bytes);
            return self.refuse(page.number, message);
        }
        Ok(())
    }

    fn check_key(&self, page: &Page, node: Node, lowest: bool, way: &mut Way) -> Result<()> {
        // The first key of a branch stands for everything below the second.
        if lowest && node.key_bytes == 0 {
            return Ok(());
        }
        let (least, most) = if way.kind.has_numbers() { (8, 8) } else { (1, KEY_BYTES_MAX) };
        if !(least..=most).contains(&node.key_bytes) {
            let (bytes, name) = (node.key_bytes, way.kind.name());
            let message = format!("a key of {bytes} bytes, expected {least} to {most} in {name}");
            return self.refuse(page.number, message);
        }
        if page.bytes.get(10).is_some_and(|flags| u16::from(*flags) == LEAF)
            && way.kind.has_numbers()
        {
            let key = u64_at(page.key(node), 0).unwrap_or(0);
            if let Some(before) = way.before.filter(|before| *before >= key) {
                return self.refuse(page.number, format!("key {key} comes after key {before}"));
            }
            way.before = Some(key);
        }
        Ok(())
    }

    fn leaf_node(&mut self, page: &Page, node: Node, way: &mut Way) -> Result<()> {
        let known = if way.kind == Kind::Main { IN_OVERFLOW | OF_DATABASE } else { IN_OVERFLOW };
        if node.flags & !known != 0 {
            let message = format!("a node with flags {:04x}, known are {known:04x}", node.flags);
            return self.refuse(page.number, message);
        }
        let at = node.at + NODE_BYTES + node.key_bytes;
        let in_page = if node.flags & IN_OVERFLOW != 0 { NUMBER_BYTES } else { node.low as usize };
        let Some(value) = at.checked_add(in_page).and_then(|end| page.bytes.get(at..end)) else {
            let left = self.page_bytes.saturating_sub(at);
            let message = format!("a value of {in_page} bytes, but the page has {left} left");
            return self.refuse(page.number, message);
        };
        let run = match node.flags & IN_OVERFLOW {
            0 => None,
            _ => Some(self.run(u64_at(value, 0).unwrap_or(0), u64::from(node.low))?),
        };
        match (way.kind, page.key(node)) {
            (Kind::Main, name) if name == EVENTS.as_bytes() || name == META.as_bytes() => {
                let sized = (node.flags, value.len()) == (OF_DATABASE, TREE_BYTES);
                let Some(tree) = Tree::of(value, 0).filter(|_| sized) else {
                    let message = format!(
                        "the record of {} has {in_page} bytes and flags {:04x}, expected {TREE_BYTES} \
                         and {OF_DATABASE:04x}",
                        String::from_utf8_lossy(name),
                        node.flags
                    );
                    return self.refuse(page.number, message);
                };
                let kind = if name == EVENTS.as_bytes() { Kind::Events } else { Kind::Meta };
                way.found.push((tree, kind));
            }
            (Kind::Free, _) => {
                let numbers = match run {
                    None => value.to_vec(),
                    Some(run) => {
                        let page = self.read(run, HEAD_BYTES + node.low as usize, OVERFLOW)?;
                        page.bytes.get(HEAD_BYTES..).unwrap_or_default().to_vec()
                    }
                };
                way.free.push((page.number, numbers));
            }
            _ => {}
        }
        Ok(())
    }

    /// Check a run of overflow pages for so many bytes; returns the first page.
    fn run(&mut self, first: u64, bytes: u64) -> Result<u64> {
        self.meet(first, 1)?;
        let page = self.read(first, HEAD_BYTES, OVERFLOW)?;
        let pages = u64::from(u32_at(&page.bytes, 12).unwrap_or(0));
        let needed = (HEAD_BYTES as u64 + bytes).div_ceil(self.page_bytes as u64);
        if pages < needed {
            let message = format!("a run of {pages} pages, but its {bytes} bytes take {needed}");
            return self.refuse(first, message);
        }
        self.meet(first + 1, pages - 1)?;
        Ok(first)
    }

    /// Check an entry of the free list: a count, and as many pages, in descending order.
    fn meet_free(&mut self, page: u64, numbers: &[u8]) -> Result<()> {
        let count = u64_at(numbers, 0).unwrap_or(u64::MAX);
        let held = (numbers.len() / NUMBER_BYTES).saturating_sub(1) as u64;
        if count > held {
            return self.refuse(page, format!("{count} free pages, but {held} are named"));
        }
        let mut before = self.count;
        for index in 1..=count as usize {
            let free = u64_at(numbers, index * NUMBER_BYTES).unwrap_or(0);
            if free >= before {
                return self.refuse(page, format!("free page {free} comes after {before}"));
            }
            self.meet(free, 1)?;
            before = free;
        }
        Ok(())
    }
}
