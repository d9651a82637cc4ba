//! Peers are given events that are parsed on all cores, as our import does it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::stores::BATCH;

/// Parse the lines of a file, and have the events taken in their order, [`BATCH`] at a time.
pub fn parsed<T: Send>(
    path: &Path,
    parse: impl Fn(&[u8]) -> T + Sync,
    mut take: impl FnMut(Vec<T>),
) {
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    let parse = &parse;
    thread::scope(|scope| {
        // One queue a thread, taken from in turn: the batches keep their order.
        let (mut queues, mut results) = (Vec::new(), Vec::new());
        for _ in 0..threads {
            let (give, batches) = sync_channel::<Vec<u8>>(1);
            let (done, result) = sync_channel(1);
            scope.spawn(move || {
                for text in batches {
                    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
                    done.send(lines.map(parse).collect()).unwrap();
                }
            });
            queues.push(give);
            results.push(result);
        }
        scope.spawn(move || {
            let mut lines = BufReader::with_capacity(1 << 20, File::open(path).unwrap());
            for queue in queues.iter().cycle() {
                match batch(&mut lines) {
                    text if text.is_empty() => return,
                    text => queue.send(text).unwrap(),
                }
            }
        });
        for result in results.iter().cycle() {
            let Ok(events) = result.recv() else { return };
            take(events);
        }
    });
}

fn batch(lines: &mut impl BufRead) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..BATCH {
        if lines.read_until(b'\n', &mut text).unwrap() == 0 {
            break;
        }
    }
    text
}
