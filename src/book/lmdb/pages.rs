//! The meta pages of a `data.mdb`, read before LMDB maps the file: LMDB trusts them.
//!
//! ```text
//! page    0 number 8   8 pad 2   10 flags 2 (8 = meta)   12 lower, upper 4   16 meta
//! meta    0 magic 4   4 version 4   8 address 8   16 map size 8
//!         24 free: page size 4, flags 2, ...   72 main   120 last page 8   128 transaction 8
//! ```
//!
//! In the byte order of the writing machine. Source: `mdb.c` of LMDB 0.9, `MDB_meta`.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result, grouped};
use crate::ground::slice::{there, u32_at, u64_at};
use crate::storage::{File, read_full};

const META_PAGE_BYTES: usize = 16 + 136;
const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_FLAG: u16 = 8;
const TRANSACTION_MAX: u64 = 1 << 62;
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 512..=65_536;

/// The newer of the two meta pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The last transaction that was committed.
    pub transaction: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The last page that is in use.
    pub last_page: u64,
    /// The free list.
    pub free: Tree,
    /// The list of databases.
    pub main: Tree,
}

/// LMDB's record of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub flags: u16,
    /// Pages from the root to a leaf, both counted.
    pub depth: u16,
    /// The root's number; all bits are set of a database without entries.
    pub root: u64,
}

impl Tree {
    /// The record at a byte.
    pub fn of(bytes: &[u8], at: usize) -> Option<Self> {
        let [a, b, c, d] = u32_at(bytes, at + 4)?.to_le_bytes();
        let (flags, depth) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        Some(Self { flags, depth, root: u64_at(bytes, at + 40)? })
    }
}

impl Pages {
    /// Read both meta pages; refuse values that LMDB would take on trust.
    pub fn read(file: &dyn File, path: &Path) -> Result<Self> {
        let len = || file.len().map_err(|e| Error::io("read the environment", path, e));
        let file_bytes = len()?;
        let first = Page::read(file, path, 0, file_bytes)?;
        let second = Page::read(file, path, first.page_bytes, file_bytes)?;
        if second.page_bytes != first.page_bytes {
            let message = format!(
                "pages of {} bytes, but of {} in the second meta page",
                first.page_bytes, second.page_bytes
            );
            return Err(Error::new(ErrorKind::Corrupt, message).at(path));
        }
        let (number, newest) = match second.transaction > first.transaction {
            true => (1, second),
            false => (0, first),
        };
        let needed = newest.last_page.checked_add(1).and_then(|n| n.checked_mul(first.page_bytes));
        match needed {
            Some(needed) if needed <= file_bytes => {}
            _ => {
                let message = format!(
                    "the environment is cut off: {} bytes, but its last page is number {} of {} \
                     bytes each",
                    grouped(file_bytes),
                    grouped(newest.last_page),
                    grouped(first.page_bytes)
                );
                return Err(Error::new(ErrorKind::Corrupt, message).at(path));
            }
        }
        let Page { page_bytes, last_page, transaction, free, main } = newest;
        // A transaction more must not be number 0 again.
        if transaction > TRANSACTION_MAX {
            let message = format!("transaction {transaction}, at most {TRANSACTION_MAX} expected");
            return Err(Error::new(ErrorKind::Corrupt, message).at(path));
        }
        // LMDB compares the numbers of both meta pages, and then reads the page of the number's last
        // bit: a page that nobody checked.
        if transaction % 2 != number {
            let message = format!(
                "transaction {transaction} in meta page {number}, expected in page {}",
                transaction % 2
            );
            let error = Error::new(ErrorKind::Corrupt, message).at(path);
            return Err(error.offset_at(number * page_bytes));
        }
        Ok(Self { file_bytes, transaction, page_bytes, last_page, free, main })
    }
}

#[derive(Clone, Copy)]
struct Page {
    page_bytes: u64,
    last_page: u64,
    transaction: u64,
    free: Tree,
    main: Tree,
}

impl Page {
    fn read(file: &dyn File, path: &Path, at: u64, file_bytes: u64) -> Result<Self> {
        let refuse = |kind, message| Err(Error::new(kind, message).at(path).offset_at(at));
        let mut bytes = [0; META_PAGE_BYTES];
        let read = read_full(file, &mut bytes, at)
            .map_err(|e| Error::io("read the environment", path, e))?;
        if read < META_PAGE_BYTES {
            let message = format!(
                "no LMDB environment: {} bytes end before its meta page",
                grouped(file_bytes)
            );
            return refuse(ErrorKind::NotALog, message);
        }
        let magic = u32_at(&bytes, 16).unwrap_or(0);
        if magic != MAGIC {
            let message = format!("no LMDB environment: magic {magic:08x}, must be {MAGIC:08x}");
            return refuse(ErrorKind::NotALog, message);
        }
        let version = u32_at(&bytes, 20).unwrap_or(0);
        if version != VERSION {
            let message = format!("an LMDB environment of version {version}, known is {VERSION}");
            return refuse(ErrorKind::Unsupported, message);
        }
        let flags = u16::from_le_bytes([bytes[10], bytes[11]]);
        if flags & META_FLAG == 0 {
            let message = format!("a page with flags {flags:04x} where a meta page must be");
            return refuse(ErrorKind::Corrupt, message);
        }
        let page_bytes = u64::from(u32_at(&bytes, 40).unwrap_or(0));
        if !page_bytes.is_power_of_two() || !PAGE_BYTES.contains(&page_bytes) {
            let message =
                format!("pages of {page_bytes} bytes, a power of two from 512 to 65536 expected");
            return refuse(ErrorKind::Corrupt, message);
        }
        let at = |at| u64_at(&bytes, at).unwrap_or(0);
        let tree = |at| there(Tree::of(&bytes, at));
        let (last_page, transaction) = (at(16 + 120), at(16 + 128));
        Ok(Self { page_bytes, last_page, transaction, free: tree(16 + 24), main: tree(16 + 72) })
    }
}
