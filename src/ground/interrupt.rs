//! Ends the reading of a large log on request: while a thread opens a log, its reads call a
//! function of the caller now and then.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The caller's function; an error ends the work.
pub type Check = dyn Fn() -> io::Result<()> + Send + Sync;

/// Between two calls of the function.
const PAUSE: Duration = Duration::from_millis(50);

struct Asked {
    check: Arc<Check>,
    next: Instant,
    /// The function's error. From then on every read of the thread fails, so that neither another
    /// try nor a way around damage continues the work.
    failed: Option<io::Error>,
}

thread_local! {
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// Do work whose reads call `check`. If `check` fails, return its error, whatever the work
/// returned.
pub fn asking<T>(
    check: Option<&Arc<Check>>,
    path: &Path,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let Some(check) = check else { return work() };
    let asked = Asked { check: check.clone(), next: Instant::now() + PAUSE, failed: None };
    let outer = Restored(ASKED.replace(Some(asked)));
    let done = work();
    let failed = ASKED.take().and_then(|asked| asked.failed);
    drop(outer);
    match failed {
        Some(failed) => Err(Error::io("read the log", path, failed)),
        None => done,
    }
}

/// The function of the enclosing work, which is asked again afterwards, also after a panic.
struct Restored(Option<Asked>);

impl Drop for Restored {
    fn drop(&mut self) {
        ASKED.set(self.0.take());
    }
}

/// Called before each read.
#[inline]
pub fn ask() -> io::Result<()> {
    // A thread that is ending has no function any more.
    match ASKED.try_with(|asked| asked.borrow().is_some()) {
        Ok(true) => ask_now(),
        _ => Ok(()),
    }
}

#[cold]
fn ask_now() -> io::Result<()> {
    let check = ASKED.with_borrow_mut(|asked| match asked {
        Some(asked) if asked.failed.is_some() => Err(io::Error::other("interrupted")),
        Some(asked) if Instant::now() >= asked.next => Ok(Some(asked.check.clone())),
        _ => Ok(None),
    })?;
    let Some(check) = check else { return Ok(()) };
    // Without the borrow: the function may read logs itself.
    let failed = check().err();
    ASKED.with_borrow_mut(|asked| {
        let Some(asked) = asked else { return Ok(()) };
        asked.next = Instant::now() + PAUSE;
        asked.failed = failed;
        asked.failed.as_ref().map_or(Ok(()), |_| Err(io::Error::other("interrupted")))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn failing() -> Arc<Check> {
        Arc::new(|| Err(io::Error::other("enough")))
    }

    /// Reads until one fails, or for as long as any function would have been asked.
    fn read_on() -> Option<io::Error> {
        let begun = Instant::now();
        while begun.elapsed() < 4 * PAUSE {
            if let Err(e) = ask() {
                return Some(e);
            }
        }
        None
    }

    #[test]
    fn a_failing_function_ends_nested_work() {
        let work = || {
            assert!(read_on().is_some());
            assert!(ask().is_err(), "no read succeeds after it");
            Ok("done all the same")
        };
        let error = asking(Some(&failing()), Path::new("/log"), work).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the log: enough (/log)");
        assert!(read_on().is_none(), "asked after the work");
    }

    #[test]
    fn a_function_that_opens_a_log_runs_again() {
        let inner = || asking(Some(&failing()), Path::new("/inner"), || Ok(read_on().is_some()));
        let check: Arc<Check> = Arc::new(move || match inner() {
            Err(e) if e.to_string().contains("/inner") => Err(io::Error::other("outer")),
            other => panic!("{other:?}"),
        });
        let outer = asking(Some(&check), Path::new("/log"), || Ok(read_on().is_some()));
        assert_eq!(outer.unwrap_err().to_string(), "cannot read the log: outer (/log)");
    }
}
