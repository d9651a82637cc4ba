//! The functions that Vere does not have.

use std::ffi::{CStr, c_char};
use std::ptr;

use deedbook::Mode;
use deedbook::detect::Kind;
use libc::size_t;

use crate::log::{self, Log};
use crate::{U3Book, guarded, log_of, loobean, misuse, path_of, text_of};

/// `deedbook_options`: how `deedbook_open` opens a log. The members are the header's.
#[repr(C)]
pub struct DeedbookOptions {
    size: size_t,
    mode: *const c_char,
    recovery: *const c_char,
    durability: *const c_char,
    deed_bytes_max: u64,
}

/// Open the log in a directory as the options say; null if that fails.
///
/// # Safety
///
/// `path` is null or a string of C. `options` is null or can be read, and its texts are null or strings of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deedbook_open(
    path: *const c_char,
    options: *const DeedbookOptions,
) -> *mut U3Book {
    let opened = guarded(|| {
        // SAFETY: the caller's promise.
        let (path, given) = unsafe { (path_of(path)?, options.as_ref()) };
        let (mut options, mut mode) = (log::options(path), Mode::Append);
        if let Some(given) = given {
            let known = size_of::<DeedbookOptions>();
            if given.size != known {
                return Err(misuse(&format!("options of {} bytes, must be {known}", given.size)));
            }
            let text = |text: *const c_char| match text.is_null() {
                true => Ok(None),
                // SAFETY: not null, and a string by the caller's promise.
                false => unsafe { text_of(text) }.map(Some),
            };
            mode = match text(given.mode)? {
                Some("r") => Mode::Read,
                None | Some("a") => Mode::Append,
                Some("x") => Mode::Create,
                Some(mode) => {
                    return Err(misuse(&format!("mode {mode:?}, must be \"r\", \"a\" or \"x\"")));
                }
            };
            if let Some(recovery) = text(given.recovery)? {
                options = options.recovery(recovery.parse()?);
            }
            if let Some(durability) = text(given.durability)? {
                options = options.durability(durability.parse()?);
            }
            if given.deed_bytes_max != 0 {
                options = options.deed_bytes_max(given.deed_bytes_max);
            }
        }
        Ok(Box::into_raw(Box::new(U3Book(Log::open(path, &options, mode)?))))
    });
    opened.unwrap_or(ptr::null_mut())
}

/// Wait until all events appended so far are on stable storage.
///
/// # Safety
///
/// `book` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deedbook_sync(book: *mut U3Book) -> u8 {
    // SAFETY: the caller's promise.
    loobean(|| unsafe { log_of(book) }?.sync())
}

/// The name of the format at a path; null without a log, or if the format is uncertain.
///
/// # Safety
///
/// `path` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn deedbook_detect(path: *const c_char) -> *const c_char {
    // SAFETY: the caller's promise.
    let found = guarded(|| Kind::detect(unsafe { path_of(path) }?, None));
    let names = [c"book", c"pier", c"wal", c"ledger", c"nostr"];
    let name = found
        .flatten()
        .and_then(|kind| names.into_iter().find(|name| name.to_bytes() == kind.name().as_bytes()));
    name.map_or(ptr::null(), CStr::as_ptr)
}
