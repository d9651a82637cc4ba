//! Work on parts of a store on all cores, which tells its progress and ends with an error of it.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use super::import::gone;
use super::progress::{Progress, REPORT_BYTES};
use crate::error::Result;

/// What a thread says.
enum News<T> {
    /// So many more bytes are done.
    Bytes(u64),
    /// All of a part is done.
    Part(usize, Result<T>),
}

/// Do the same work on every part; gives the results in the order of the parts. `work` calls what it gets
/// with the bytes of each step. Progress is reported in this thread.
pub fn on_all_cores<P: Sync, T: Send>(
    parts: &[P],
    work: impl Fn(&P, &mut dyn FnMut(u64) -> Result<()>) -> Result<T> + Sync,
    progress: &mut Progress<'_>,
) -> Result<Vec<T>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(parts.len());
    if threads < 2 {
        return parts.iter().map(|part| work(part, &mut |bytes| progress.add(bytes))).collect();
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // An error below drops `news`, and the threads end with their next step.
        let (give, news) = sync_channel(4 * threads);
        for _ in 0..threads {
            let (give, next, work) = (give.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(part) = parts.get(at) else { return };
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
        let mut results: Vec<Option<T>> = parts.iter().map(|_| None).collect();
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
