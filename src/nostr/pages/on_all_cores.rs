//! Process the parts of a store on all cores, with progress. An error of the callback ends the
//! work.

use std::num::NonZero;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::progress::{Progress, REPORT_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::{Mutex, lock};

/// A message from a worker thread.
enum News<T> {
    /// So many more bytes are done.
    Bytes(u64),
    /// A part is done.
    Part(usize, Result<T>),
}

/// The bytes that one thread reads about as fast as several, because threads take time to begin.
const ALONE_BYTES: u64 = 1 << 20;

/// The number of cores available to the process.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Do the same work on every part; returns the results in the order of the parts. `work` gets a
/// function to call with the bytes of each step. This thread reports the progress.
pub fn on_all_cores<P: Send, T: Send>(
    parts: impl ExactSizeIterator<Item = P> + Send,
    work: impl Fn(P, &mut dyn FnMut(u64) -> Result<()>) -> Result<T> + Sync,
    progress: &mut Progress<'_>,
) -> Result<Vec<T>> {
    let threads = if progress.total() < ALONE_BYTES { 1 } else { cores() };
    in_threads(threads, parts, work, progress)
}

/// Like [`on_all_cores`], in `threads` threads at most.
pub fn in_threads<P: Send, T: Send>(
    threads: usize,
    parts: impl ExactSizeIterator<Item = P> + Send,
    work: impl Fn(P, &mut dyn FnMut(u64) -> Result<()>) -> Result<T> + Sync,
    progress: &mut Progress<'_>,
) -> Result<Vec<T>> {
    let count = parts.len();
    let threads = threads.min(count);
    if threads < 2 {
        return parts.map(|part| work(part, &mut |bytes| progress.add(bytes))).collect();
    }
    let parts = Mutex::new(parts.enumerate());
    thread::scope(|scope| {
        // An error below drops `news`, and the threads end with their next step.
        let (give, news) = sync_channel(4 * threads);
        for _ in 0..threads {
            let (give, parts, work) = (give.clone(), &parts, &work);
            scope.spawn(move || {
                loop {
                    let Some((at, part)) = lock(parts).next() else { return };
                    let mut waiting = 0;
                    let done = work(part, &mut |bytes| {
                        waiting += bytes;
                        match waiting < REPORT_BYTES {
                            true => Ok(()),
                            false => give
                                .send(News::Bytes(std::mem::take(&mut waiting)))
                                .map_err(|_| gone()),
                        }
                    });
                    if give.send(News::Part(at, done)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(give);
        let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
        for one in news {
            match one {
                News::Bytes(bytes) => progress.add(bytes)?,
                News::Part(at, done) => {
                    let done = done?;
                    if let Some(result) = results.get_mut(at) {
                        *result = Some(done);
                    }
                }
            }
        }
        results.into_iter().map(|part| part.ok_or_else(gone)).collect()
    })
}

/// A thread ended early: it panicked, and joining the thread resumes the panic.
pub(crate) fn gone() -> Error {
    Error::new(ErrorKind::Io, "a thread that looks at events ended")
}
