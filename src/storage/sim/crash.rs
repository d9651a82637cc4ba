//! The states that a power cut can leave.

use std::sync::Arc;

use super::Sim;
use super::content::{Content, SECTOR_BYTES, SectorRef, garbage, mix, spliced};
use super::machine::{Machine, Node};

/// The sizes to try between the durable and the written size are dense up to this many sectors
/// after the last written sector.
const SECTORS_AFTER: u64 = 2;

/// One choice of a power cut.
#[derive(Debug)]
enum Axis {
    /// Whether a change of names is kept.
    Change(usize),
    /// How long a file is.
    Len { inode: u64, options: Vec<u64> },
    /// Whether the unsynced bytes after the durable end are zeros or garbage.
    Fill { inode: u64 },
    /// A sector's content: pick 0 is the content before, or the fill.
    Sector { inode: u64, at: u64, options: Vec<SectorRef> },
}

impl Axis {
    fn options(&self) -> u64 {
        match self {
            Self::Change(_) | Self::Fill { .. } => 2,
            Self::Len { options, .. } => options.len() as u64,
            Self::Sector { options, .. } => options.len() as u64 + 1,
        }
    }
}

/// All states that a power cut now can leave; see [`Sim::crashes`].
#[derive(Debug)]
pub struct Crashes {
    machine: Machine,
    axes: Vec<Axis>,
}

/// One of the states, not yet built.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    picks: Vec<u64>,
    seed: u64,
    /// Any byte, not only the likely ones, may be the end of a file.
    odd_lens: bool,
}

impl Crashes {
    pub(super) fn new(mut machine: Machine) -> Self {
        let mut axes: Vec<Axis> = (0..machine.changes.len()).map(Axis::Change).collect();
        // Only inodes that a name on the disk may lead to.
        let possible: Vec<u64> = {
            let durable = machine.dirs.values().flat_map(|dir| dir.durable.values().copied());
            let pending = machine.changes.iter().flat_map(|change| &change.0);
            durable.chain(pending.filter_map(|(.., inode)| *inode)).collect()
        };
        machine.files.retain(|inode, _| possible.contains(inode));
        for (&inode, node) in &machine.files {
            axes_of(inode, node, &mut axes);
        }
        Self { machine, axes }
    }

    /// The number of states; at most `u64::MAX`. Some may be equal. The count covers only the
    /// likely sizes of a file: every size that the file had, one byte less, and whole sectors.
    pub fn count(&self) -> u64 {
        self.axes.iter().fold(1u64, |count, axis| count.saturating_mul(axis.options()))
    }

    /// The machine after the power is back, in state number `index`, below [`Crashes::count`]. Number 0 keeps nothing
    /// unsynced.
    pub fn state(&self, index: u64) -> Sim {
        self.build(&self.nth(index))
    }

    /// As [`Crashes::state`], in a state by chance, the same for the same seed: anything, nearly all or nearly nothing
    /// kept.
    pub fn state_by_chance(&self, seed: u64) -> Sim {
        self.build(&self.sample(seed))
    }

    /// State number `index`, not yet built.
    #[doc(hidden)]
    pub fn nth(&self, index: u64) -> Choice {
        let mut rest = index;
        let pick = |axis: &Axis| {
            let options = axis.options();
            let pick = rest % options;
            rest /= options;
            pick
        };
        Choice { picks: self.axes.iter().map(pick).collect(), seed: index, odd_lens: false }
    }

    /// A state by chance, not yet built.
    #[doc(hidden)]
    pub fn sample(&self, seed: u64) -> Choice {
        let mut state = mix(seed);
        let mut next = |below: u64| {
            state = mix(state);
            state % below.max(1)
        };
        let (manner, odd_lens) = (next(4), next(4) == 0);
        let rare = 1 + next(8);
        let pick = |axis: &Axis| {
            let last = axis.options() - 1;
            match manner {
                0 | 1 => next(last + 1),
                2 if next(rare) > 0 => last,
                3 if next(rare) > 0 => 0,
                _ => next(last + 1),
            }
        };
        Choice { picks: self.axes.iter().map(pick).collect(), seed, odd_lens }
    }

    /// The machine after the power is back: the state is durable, and there are no faults.
    #[doc(hidden)]
    pub fn build(&self, choice: &Choice) -> Sim {
        let mut machine = self.machine.clone();
        let changes = std::mem::take(&mut machine.changes);
        let mut edited: Option<Edit<'_>> = None;
        for (axis, &pick) in self.axes.iter().zip(&choice.picks) {
            let inode = match axis {
                Axis::Change(at) => {
                    if let Some(change) = changes.get(*at).filter(|_| pick == 1) {
                        change.apply(&mut machine.dirs);
                    }
                    continue;
                }
                Axis::Len { inode, .. } | Axis::Fill { inode } | Axis::Sector { inode, .. } => {
                    inode
                }
            };
            if edited.as_ref().is_none_or(|edit| edit.inode != *inode) {
                finish(edited.take(), &mut machine, choice);
                edited = self.machine.files.get(inode).map(|node| Edit::new(*inode, node));
            }
            if let Some(edit) = &mut edited {
                edit.set(axis, pick, choice);
            }
        }
        finish(edited, &mut machine, choice);
        for dir in machine.dirs.values_mut() {
            if dir.entries != dir.durable {
                let dir = Arc::make_mut(dir);
                dir.entries.clone_from(&dir.durable);
            }
        }
        machine.sweep();
        for node in machine.files.values_mut() {
            // A node without an axis, but a failed sync may have left the cache different from the
            // disk.
            if !node.is_clean() || node.cache.hash() != node.durable.hash() {
                *node = Arc::new(Node::settled(node.durable.clone()));
            }
        }
        Sim::of(machine)
    }
}

fn axes_of(inode: u64, node: &Node, axes: &mut Vec<Axis>) {
    if node.is_clean() {
        return;
    }
    let durable = node.durable.len;
    let longest = node.lens.iter().copied().fold(durable, u64::max);
    let shortest = node.lens.iter().copied().fold(durable, u64::min);
    let sector = SECTOR_BYTES as u64;
    let mut options = vec![durable];
    options.extend(&node.lens);
    options.extend(node.lens.iter().map(|len| len.saturating_sub(1)).filter(|&len| len > shortest));
    let last = node.versions.keys().next_back().map_or(0, |last| last + SECTORS_AFTER);
    options.extend((shortest / sector + 1..=last).map(|at| at * sector));
    options.retain(|&len| (shortest..=longest).contains(&len));
    options.sort_unstable();
    options.dedup();
    // Order by distance from the durable size, so that pick 0 keeps nothing.
    options.sort_by_key(|&len| (len != durable, len));
    if options.len() > 1 {
        axes.push(Axis::Len { inode, options });
    }
    if longest > durable {
        axes.push(Axis::Fill { inode });
    }
    for (&at, versions) in &node.versions {
        let before = node.durable.sector(at);
        let mut options: Vec<SectorRef> = Vec::new();
        for version in versions {
            let known = version == before && at < durable / sector;
            if !known && !options.contains(version) {
                options.push(version.clone());
            }
        }
        if !options.is_empty() {
            axes.push(Axis::Sector { inode, at, options });
        }
    }
}

/// A file in the making.
struct Edit<'a> {
    inode: u64,
    node: &'a Node,
    content: Content,
    len: u64,
    fill: bool,
    kept: Vec<u64>,
}

impl<'a> Edit<'a> {
    fn new(inode: u64, node: &'a Node) -> Self {
        let (content, len) = (node.durable.clone(), node.durable.len);
        Self { inode, node, content, len, fill: false, kept: Vec::new() }
    }

    fn set(&mut self, axis: &Axis, pick: u64, choice: &Choice) {
        match axis {
            Axis::Change(_) => {}
            Axis::Fill { .. } => self.fill = pick == 1,
            Axis::Len { options, .. } => {
                let at = |pick: u64| options.get(pick as usize).copied().unwrap_or(self.len);
                let (low, high) = options
                    .iter()
                    .fold((u64::MAX, 0), |(low, high), &len| (low.min(len), high.max(len)));
                let span = high - low + 1;
                self.len = match choice.odd_lens {
                    // Mostly where the data is, not far out in reserved space.
                    true => low + mix(choice.seed ^ self.inode) % span.min(4096),
                    false => at(pick),
                };
            }
            Axis::Sector { at, options, .. } => {
                if let Some(version) = pick.checked_sub(1).and_then(|i| options.get(i as usize)) {
                    self.content.put(*at, version.clone());
                    self.kept.push(*at);
                }
            }
        }
    }
}

fn finish(edit: Option<Edit<'_>>, machine: &mut Machine, choice: &Choice) {
    let Some(mut edit) = edit else { return };
    let (durable, sector) = (edit.node.durable.len, SECTOR_BYTES as u64);
    if edit.fill && edit.len > durable {
        for at in durable / sector..edit.len.div_ceil(sector) {
            if !edit.kept.contains(&at) {
                let stale = garbage(choice.seed ^ mix(edit.inode ^ (at << 20)));
                let keep = durable.saturating_sub(at * sector).min(sector) as usize;
                edit.content.put(at, spliced(edit.content.sector(at), keep, &stale));
            }
        }
    }
    edit.content.cut_to(edit.len);
    machine.files.insert(edit.inode, Arc::new(Node::settled(edit.content)));
}
