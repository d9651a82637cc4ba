//! The functions `u3_book_*` of Urbit's Book for C, and three functions `deedbook_*`, as declared in
//! `include/book.h`.
//!
//! The functions are thin: the module `log` does the work. Here pointers become references, results
//! become loobeans, and no panic crosses the border.

// The pointers of C become references here.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod additions;
mod log;

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;

use deedbook::{BackupOptions, Error, ErrorKind, Result};
use libc::{size_t, ssize_t};

use log::{Log, Walk, complain, stat};

/// Yes.
pub const C3Y: u8 = 0;
/// No.
pub const C3N: u8 = 1;

/// `u3_book`: an open log.
pub struct U3Book(Log);

/// `u3_book_walk`: a walk over events. The members are the header's.
#[repr(C)]
pub struct U3BookWalk {
    walk: *mut Walk,
    next: u64,
    last: u64,
    offset: u64,
    live: u8,
}

/// The callback of `u3_book_read`.
pub type ReadEvent = unsafe extern "C" fn(*mut c_void, u64, size_t, *mut c_void) -> u8;
/// The callback of `u3_book_read_meta`.
pub type ReadMeta = unsafe extern "C" fn(*mut c_void, ssize_t, *mut c_void);

/// Open the log in a directory; null if that fails.
///
/// # Safety
///
/// `path` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_init(path: *const c_char) -> *mut U3Book {
    let opened = guarded(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { path_of(path) }?;
        Ok(Box::into_raw(Box::new(U3Book(Log::init(path)?))))
    });
    opened.unwrap_or(ptr::null_mut())
}

/// Close a log.
///
/// # Safety
///
/// `book` is null, or from `u3_book_init` or `deedbook_open` and not used after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_exit(book: *mut U3Book) {
    if book.is_null() {
        return;
    }
    // SAFETY: from Box::into_raw by the caller's promise, and given back once.
    let book = unsafe { Box::from_raw(book) };
    guarded(|| book.0.exit());
}

/// Print what is in a log to standard error.
///
/// # Safety
///
/// `path` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_stat(path: *const c_char) {
    guarded(|| {
        // SAFETY: the caller's promise.
        let lines = stat(unsafe { path_of(path) }?)?;
        complain(&format!("info:\n{}", lines.join("\n")));
        Ok(())
    });
}

/// Copy a log next to its writer, or bring such a copy up to date.
///
/// # Safety
///
/// `path` and `target` are null or strings of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_backup(path: *const c_char, target: *const c_char) -> u8 {
    loobean(|| {
        // SAFETY: the caller's promise.
        let (path, target) = unsafe { (path_of(path)?, path_of(target)?) };
        BackupOptions::new().backup(path, target, |_| Ok(())).map(drop)
    })
}

/// First and last event; zeros without events.
///
/// # Safety
///
/// `book` is null or open; `low` and `high` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_gulf(book: *mut U3Book, low: *mut u64, high: *mut u64) -> u8 {
    loobean(|| {
        // SAFETY: the caller's promise.
        let (first, last) = unsafe { log_of(book) }?.gulf()?;
        check(!low.is_null() && !high.is_null(), "no place for the bounds")?;
        // SAFETY: not null, and can be written by the caller's promise.
        unsafe {
            low.write(first);
            high.write(last);
        }
        Ok(())
    })
}

/// Append events.
///
/// # Safety
///
/// `book` is null or open; `buffers` and `sizes` have `len` items each, and each buffer its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_save(
    book: *mut U3Book,
    event: u64,
    len: u64,
    buffers: *mut *mut c_void,
    sizes: *mut size_t,
    epoch: u64,
) -> u8 {
    loobean(|| {
        // SAFETY: the caller's promise.
        let log = unsafe { log_of(book) }?;
        let count = usize::try_from(len).map_err(|_| misuse("more events than memory"))?;
        check(count == 0 || !(buffers.is_null() || sizes.is_null()), "no events")?;
        let events = (0..count).map(|at| {
            // SAFETY: `at` is below `count`, and the caller promises `count` items in both arrays.
            let (buffer, size) = unsafe { (*buffers.add(at), *sizes.add(at)) };
            // SAFETY: as above, for the buffer and its size.
            unsafe { bytes_of(buffer, size) }
        });
        log.save(event, &events.collect::<Result<Vec<&[u8]>>>()?, epoch)
    })
}

/// Call a function with each of some events.
///
/// # Safety
///
/// `book` is null or open; `read` can be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_read(
    book: *mut U3Book,
    context: *mut c_void,
    event: u64,
    len: u64,
    read: Option<ReadEvent>,
) -> u8 {
    loobean(|| {
        // SAFETY: the caller's promise.
        let log = unsafe { log_of(book) }?;
        let read = read.ok_or_else(|| misuse("no function to call"))?;
        if len == 0 {
            return log.walk(event, event).map(drop);
        }
        let last = event.checked_add(len - 1).ok_or_else(|| misuse("events beyond 2^64"))?;
        let mut walk = log.walk(event, last)?;
        while let Some((event, mut buffer)) = walk.next()? {
            // SAFETY: the caller's promise; the buffer lives until the call returns.
            let answer = unsafe { read(context, event, buffer.len(), buffer.as_mut_ptr().cast()) };
            check(answer == C3Y, "the caller's function ended the reading")?;
        }
        Ok(())
    })
}

/// Call a function with a key of the metadata.
///
/// # Safety
///
/// `book` is null or open; `key` is null or a string of C; `read` can be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_read_meta(
    book: *mut U3Book,
    context: *mut c_void,
    key: *const c_char,
    read: Option<ReadMeta>,
) {
    let bytes = guarded(|| {
        // SAFETY: the caller's promise.
        let (log, key) = unsafe { (log_of(book)?, text_of(key)?) };
        log.read_meta(key)
    });
    let Some(read) = read else { return };
    match bytes {
        // SAFETY: the caller's promise; the bytes live until the call returns.
        Some(mut bytes) => unsafe {
            read(context, bytes.len() as ssize_t, bytes.as_mut_ptr().cast());
        },
        // SAFETY: the caller's promise.
        None => unsafe { read(context, -1, ptr::null_mut()) },
    }
}

/// Change a key of the metadata.
///
/// # Safety
///
/// `book` is null or open; `key` is null or a string of C; `value` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_save_meta(
    book: *mut U3Book,
    key: *const c_char,
    size: size_t,
    value: *mut c_void,
) -> u8 {
    loobean(|| {
        // SAFETY: the caller's promise.
        let (log, key, value) = unsafe { (log_of(book)?, text_of(key)?, bytes_of(value, size)?) };
        log.save_meta(key, value)
    })
}

/// Begin a walk.
///
/// # Safety
///
/// `book` is null or open; `walk` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_walk_init(
    book: *mut U3Book,
    walk: *mut U3BookWalk,
    next: u64,
    last: u64,
) -> u8 {
    if walk.is_null() {
        return C3N;
    }
    let begun = guarded(|| {
        // SAFETY: the caller's promise.
        let walk = unsafe { log_of(book) }?.walk(next, last)?;
        Ok(Box::into_raw(Box::new(walk)))
    });
    let live = if begun.is_some() { C3Y } else { C3N };
    let begun = begun.unwrap_or(ptr::null_mut());
    // SAFETY: not null, and writable by the caller's promise. The old contents are not read.
    unsafe { walk.write(U3BookWalk { walk: begun, next, last, offset: 0, live }) };
    live
}

/// The next event of a walk, in memory that the caller frees.
///
/// # Safety
///
/// `walk` is null or from `u3_book_walk_init`; `size` and `buffer` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_walk_next(
    walk: *mut U3BookWalk,
    size: *mut size_t,
    buffer: *mut *mut c_void,
) -> u8 {
    // SAFETY: null or valid by the caller's promise, and not used elsewhere meanwhile.
    let Some(state) = (unsafe { walk.as_mut() }) else { return C3N };
    if state.live != C3Y || size.is_null() || buffer.is_null() {
        return C3N;
    }
    // SAFETY: a live walk is from Box::into_raw, and has no other owner.
    let Some(steps) = (unsafe { state.walk.as_mut() }) else { return C3N };
    let step = guarded(|| {
        let Some((event, bytes)) = steps.next()? else { return Ok(None) };
        Ok(Some((event, copied(&bytes)?, bytes.len())))
    });
    match step.flatten() {
        Some((event, bytes, len)) => {
            state.next = event.saturating_add(1);
            // SAFETY: not null, and can be written by the caller's promise.
            unsafe {
                size.write(len);
                buffer.write(bytes);
            }
            C3Y
        }
        None => {
            // SAFETY: the caller's promise.
            unsafe { u3_book_walk_done(walk) };
            C3N
        }
    }
}

/// End a walk.
///
/// # Safety
///
/// `walk` is null or from `u3_book_walk_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn u3_book_walk_done(walk: *mut U3BookWalk) {
    // SAFETY: null or valid by the caller's promise, and not used elsewhere meanwhile.
    let Some(state) = (unsafe { walk.as_mut() }) else { return };
    state.live = C3N;
    let steps = std::mem::replace(&mut state.walk, ptr::null_mut());
    if !steps.is_null() {
        // SAFETY: from Box::into_raw, and given back once, as the place is null from now on.
        let steps = unsafe { Box::from_raw(steps) };
        guarded(|| {
            drop(steps);
            Ok(())
        });
    }
}

/// The value; `None` after an error or a panic, with a line on standard error.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Some(value),
        Ok(Err(error)) => {
            complain(&error.to_string());
            None
        }
        // The panic hook has printed the message.
        Err(_) => None,
    }
}

fn loobean(work: impl FnOnce() -> Result<()>) -> u8 {
    if guarded(work).is_some() { C3Y } else { C3N }
}

fn misuse(what: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, what)
}

fn check(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(misuse(what)) }
}

/// Bytes in memory that the caller releases with `free`.
fn copied(bytes: &[u8]) -> Result<*mut c_void> {
    // SAFETY: `malloc` accepts any size; at least one byte, because null would mean an error.
    let memory = unsafe { libc::malloc(bytes.len().max(1)) };
    check(!memory.is_null(), "no memory for the event")?;
    // SAFETY: the memory is new, and has at least as many bytes.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len()) };
    Ok(memory)
}

/// # Safety
///
/// `book` is null or open.
unsafe fn log_of<'a>(book: *mut U3Book) -> Result<&'a Log> {
    // SAFETY: the caller's promise.
    let book = unsafe { book.as_ref() };
    book.map(|book| &book.0).ok_or_else(|| misuse("no log: the handle is null"))
}

/// # Safety
///
/// `bytes` is null or has `size` bytes.
unsafe fn bytes_of<'a>(bytes: *mut c_void, size: size_t) -> Result<&'a [u8]> {
    check(!bytes.is_null() && size <= isize::MAX as usize, "no bytes: the pointer is null")?;
    // SAFETY: not null, no larger than memory, and readable by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), size) })
}

/// # Safety
///
/// `text` is null or a string of C.
unsafe fn text_of<'a>(text: *const c_char) -> Result<&'a str> {
    check(!text.is_null(), "no text: the pointer is null")?;
    // SAFETY: not null, and a string by the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| misuse("the text is not UTF-8"))
}

/// # Safety
///
/// `path` is null or a string of C.
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a Path> {
    check(!path.is_null(), "no path: the pointer is null")?;
    // SAFETY: not null, and a string by the caller's promise.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    #[cfg(unix)]
    let path = {
        use std::os::unix::ffi::OsStrExt;
        Path::new(std::ffi::OsStr::from_bytes(bytes))
    };
    #[cfg(not(unix))]
    let path = std::str::from_utf8(bytes).map(Path::new).map_err(|_| misuse("no UTF-8"))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_no() {
        assert_eq!(loobean(|| panic!("met in a test")), C3N);
        assert_eq!(loobean(|| Err(misuse("met in a test"))), C3N);
        assert_eq!(loobean(|| Ok(())), C3Y);
        assert!(guarded::<u8>(|| panic!("met in a test")).is_none());
    }
}
