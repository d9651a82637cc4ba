//! The measurements. Each store is used as its documentation shows.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use deedbook::Batch;
use deedbook::Mode;
use deedbook::wal::WalFormat;
use deedbook::wal::{Layout, Options, Wal};
use okaywal::{Configuration, LogVoid};

use crate::harness::{Arguments, Bench, random_bytes, timed, total};

/// If set: fill this log and exit with the log open.
pub const DEATH: &str = "DEEDBOOK_PEERS_DIES";

const HEADER_BYTES: usize = 8;
const PAYLOAD_BYTES: usize = 256;
const FRAME_BYTES: usize = PAYLOAD_BYTES + HEADER_BYTES;
/// Bytes of a payload in the logs that the run opens.
const SMALL_BYTES: usize = 64;
pub const BATCH: usize = 1000;
/// Records of a killed process, half of them unsynced.
const ORPHANS: usize = 200_000;
const OPENS: usize = 20;

pub const APPEND: &str = "append, 1 thread";
pub const APPEND_8: &str = "append, 8 threads";
pub const BATCHES: &str = "append_batch of 1,000";
pub const COMMIT: &str = "durable commit, 1 thread";
pub const COMMIT_16: &str = "durable commit, 16 threads";
pub const SCAN: &str = "recovery scan, records of 256 bytes";
pub const SCAN_SMALL: &str = "recovery scan, records of 64 bytes";
pub const OPEN: &str = "open after a clean close, 10^5 records";
pub const OPEN_LARGE: &str = "open after a clean close, 10^7 records";
pub const KILLED: &str = "open for appending after kill -9";

pub const PLAIN: &str = "plain write";
pub const SINGLE: &str = "deedbook, one file";
pub const SEGMENTED: &str = "deedbook, segments";
pub const PEER: &str = "wal-db, one file";
pub const PEER_SEGMENTED: &str = "wal-db, segments";
pub const OKAYWAL: &str = "okaywal";
pub const GROWING: &str = "pwrite + fdatasync, file growing";
pub const RESERVED: &str = "pwrite + fdatasync, space reserved";
/// The limit that waking sixteen threads sets to commits, whatever the log does.
pub const WAKING: &str = "no log: all wait for one pwrite + fdatasync";
pub const ENCODED: &str = "deedbook, segments, encoding counted";
pub const READ: &str = "read in blocks of 256 KiB";

/// The payloads, and the number of records of each row.
pub struct Data {
    payloads: Vec<u8>,
    frames: Vec<u8>,
    pub records: usize,
    pub commits: usize,
    scanned: usize,
    opened: [usize; 2],
    dir: std::path::PathBuf,
}

impl Data {
    pub fn new(given: &Arguments) -> Self {
        let records = given.count(200_000);
        Self {
            payloads: random_bytes(records * PAYLOAD_BYTES, 1),
            frames: random_bytes(records * FRAME_BYTES, 2),
            records,
            commits: given.count(2000),
            scanned: given.count(2_000_000),
            opened: [given.count(100_000), given.count(10_000_000)],
            dir: given.dir.clone(),
        }
    }

    /// Size of the log in an appending row.
    pub fn bytes(&self) -> usize {
        self.frames.len()
    }

    /// The payloads of one thread of several.
    fn share(&self, thread: usize, threads: usize) -> std::slice::ChunksExact<'_, u8> {
        let bytes = self.records / threads * PAYLOAD_BYTES;
        self.payloads[thread * bytes..][..bytes].chunks_exact(PAYLOAD_BYTES)
    }

    fn commits(&self) -> std::slice::ChunksExact<'_, u8> {
        self.payloads[..self.commits * PAYLOAD_BYTES].chunks_exact(PAYLOAD_BYTES)
    }
}

fn create(dir: &Path, segmented: bool) -> Wal {
    let layout = match segmented {
        true => Layout::Segmented { segment_bytes: deedbook::wal::Options::SEGMENT_BYTES },
        false => Layout::Single,
    };
    let options = Options::new().layout(layout);
    options.open(dir.join("log"), Mode::Create).unwrap()
}

fn open_plain(dir: &Path) -> File {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true).open(dir.join("log")).unwrap()
}

/// Run `work` with the number of a thread, in `threads` threads at once.
fn in_threads(threads: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

/// Unsynced records that survive a crash of the process after the call. Not okaywal, because okaywal syncs every entry.
pub fn appending<'a>(bench: &mut Bench<'a>, data: &'a Data) {
    for (row, threads) in [(APPEND, 1), (APPEND_8, 8)] {
        let count = data.records / threads * threads;
        bench.case(row, PLAIN, move |dir| {
            let (file, end) = (open_plain(dir), AtomicU64::new(0));
            timed(count, || {
                in_threads(threads, |thread| {
                    let bytes = data.records / threads * FRAME_BYTES;
                    let frames = &data.frames[thread * bytes..][..bytes];
                    for frame in frames.chunks_exact(FRAME_BYTES) {
                        let at = end.fetch_add(FRAME_BYTES as u64, Ordering::Relaxed);
                        file.write_all_at(frame, at).unwrap();
                    }
                });
            })
        });
        for (store, segmented) in [(SINGLE, false), (SEGMENTED, true)] {
            bench.case(row, store, move |dir| {
                let wal = create(dir, segmented);
                timed(count, || {
                    in_threads(threads, |thread| {
                        for payload in data.share(thread, threads) {
                            wal.append(payload).unwrap();
                        }
                    });
                })
            });
        }
        for (store, segmented) in [(PEER, false), (PEER_SEGMENTED, true)] {
            bench.case(row, store, move |dir| match segmented {
                false => {
                    let wal = wal_db::Wal::open(dir.join("log")).unwrap();
                    timed(count, || append_peer(&wal, data, threads))
                }
                true => {
                    let log = dir.join("log");
                    let wal =
                        wal_db::Wal::open_segmented(log, deedbook::wal::Options::SEGMENT_BYTES)
                            .unwrap();
                    timed(count, || append_peer(&wal, data, threads))
                }
            });
        }
    }
    bench.case(BATCHES, PLAIN, |dir| {
        let mut file = open_plain(dir);
        timed(data.records, || {
            for part in data.frames.chunks(BATCH * FRAME_BYTES) {
                std::io::Write::write_all(&mut file, part).unwrap();
            }
        })
    });
    for (store, segmented) in [(SINGLE, false), (SEGMENTED, true)] {
        bench.case(BATCHES, store, move |dir| {
            let batches: Vec<Batch<WalFormat>> = data
                .payloads
                .chunks(BATCH * PAYLOAD_BYTES)
                .map(|part| {
                    let mut batch =
                        Batch::<WalFormat>::new(deedbook::wal::Options::RECORD_BYTES_MAX);
                    fill(&mut batch, part);
                    batch
                })
                .collect();
            let wal = create(dir, segmented);
            timed(data.records, || {
                for batch in &batches {
                    wal.append_batch(batch).unwrap();
                }
            })
        });
    }
    bench.case(BATCHES, ENCODED, |dir| {
        let wal = create(dir, true);
        timed(data.records, || {
            let mut batch = Batch::<WalFormat>::new(deedbook::wal::Options::RECORD_BYTES_MAX);
            for part in data.payloads.chunks(BATCH * PAYLOAD_BYTES) {
                batch.clear();
                fill(&mut batch, part);
                wal.append_batch(&batch).unwrap();
            }
        })
    });
}

fn fill(batch: &mut Batch<WalFormat>, payloads: &[u8]) {
    for payload in payloads.chunks_exact(PAYLOAD_BYTES) {
        batch.push(payload).unwrap();
    }
}

fn append_peer<S: wal_db::WalStore>(wal: &wal_db::Wal<S>, data: &Data, threads: usize) {
    in_threads(threads, |thread| {
        for payload in data.share(thread, threads) {
            let _lsn = wal.append(payload).unwrap();
        }
    });
}

/// Records that are on stable storage after the call.
pub fn committing<'a>(bench: &mut Bench<'a>, data: &'a Data) {
    let frames = &data.frames[..data.commits * FRAME_BYTES];
    for (store, reserve) in [(GROWING, 0), (RESERVED, frames.len())] {
        bench.case(COMMIT, store, move |dir| {
            let file = open_plain(dir);
            reserve_space(&file, reserve);
            timed(data.commits, || {
                for (i, frame) in frames.chunks_exact(FRAME_BYTES).enumerate() {
                    file.write_all_at(frame, (i * FRAME_BYTES) as u64).unwrap();
                    file.sync_data().unwrap();
                }
            })
        });
    }
    bench.case(COMMIT_16, WAKING, move |dir| {
        let file = open_plain(dir);
        reserve_space(&file, frames.len());
        timed(16 * data.commits, || wait_together(&file, frames, 16))
    });
    for (row, threads) in [(COMMIT, 1), (COMMIT_16, 16)] {
        let count = threads * data.commits;
        for (store, segmented) in [(SINGLE, false), (SEGMENTED, true)] {
            bench.case(row, store, move |dir| {
                let wal = create(dir, segmented);
                timed(count, || {
                    in_threads(threads, |_| {
                        for payload in data.commits() {
                            wal.commit(payload).unwrap();
                        }
                    });
                })
            });
        }
        bench.case(row, PEER, move |dir| {
            let wal = wal_db::Wal::open(dir.join("log")).unwrap();
            timed(count, || commit_peer(&wal, data, threads))
        });
        bench.case(row, PEER_SEGMENTED, move |dir| {
            let wal =
                wal_db::Wal::open_segmented(dir.join("log"), deedbook::wal::Options::SEGMENT_BYTES)
                    .unwrap();
            timed(count, || commit_peer(&wal, data, threads))
        });
        bench.case(row, OKAYWAL, move |dir| {
            // Large enough to avoid checkpoints, which are the work of another store.
            let configuration = Configuration::default_for(dir.join("log"))
                .preallocate_bytes(64 << 20)
                .checkpoint_after_bytes(60 << 20);
            let log = configuration.open(LogVoid).unwrap();
            let done = timed(count, || {
                in_threads(threads, |_| {
                    for payload in data.commits() {
                        let mut entry = log.begin_entry().unwrap();
                        entry.write_chunk(payload).unwrap();
                        entry.commit().unwrap();
                    }
                });
            });
            log.shutdown().unwrap();
            done
        });
    }
}

/// The last thread to arrive writes and syncs one frame, and then all continue.
fn wait_together(file: &File, frames: &[u8], threads: usize) {
    let (round, led) = (Mutex::new((0, 0)), Condvar::new());
    in_threads(threads, |_| {
        for (i, frame) in frames.chunks_exact(FRAME_BYTES).enumerate() {
            let mut now = round.lock().unwrap();
            now.0 += 1;
            if now.0 < threads {
                let _now = led.wait_while(now, |now| now.1 == i).unwrap();
                continue;
            }
            drop(now);
            file.write_all_at(frame, (i * FRAME_BYTES) as u64).unwrap();
            file.sync_data().unwrap();
            *round.lock().unwrap() = (0, i + 1);
            led.notify_all();
        }
    });
}

fn commit_peer<S: wal_db::WalStore>(wal: &wal_db::Wal<S>, data: &Data, threads: usize) {
    in_threads(threads, |_| {
        for payload in data.commits() {
            let _lsn = wal.append_and_sync(payload).unwrap();
        }
    });
}

fn reserve_space(file: &File, bytes: usize) {
    use std::os::fd::AsRawFd;
    if bytes > 0 {
        // SAFETY: a system call on a descriptor that is open as long as `file` is.
        let done = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as i64) };
        assert_eq!(done, 0, "posix_fallocate");
        file.sync_all().unwrap();
    }
}

/// The directory of a closed log with equal records in one file.
fn closed_log(dir: &Path, records: usize, size: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(dir).unwrap();
    let wal = create(dir.path(), false);
    append_equal(&wal, records, size);
    wal.close().unwrap();
    dir
}

fn append_equal(wal: &Wal, records: usize, size: usize) {
    let payload = random_bytes(size, 3);
    let mut batch = Batch::<WalFormat>::new(deedbook::wal::Options::RECORD_BYTES_MAX);
    for _ in 0..BATCH {
        batch.push(&payload).unwrap();
    }
    for _ in 0..records / BATCH {
        wal.append_unsynced(&batch).unwrap();
    }
}

/// Made on the first use, because the logs are large.
type Made = std::cell::OnceCell<tempfile::TempDir>;

fn drop_sidecar(log: &Path) {
    let sidecar = log.with_file_name(".deedbook");
    if sidecar.exists() {
        std::fs::remove_dir_all(sidecar).unwrap();
    }
}

/// The cost of opening: a scan of the whole log, the mark alone, or a log after `kill -9`.
pub fn opening<'a>(bench: &mut Bench<'a>, data: &'a Data) {
    for (row, size) in [(SCAN, PAYLOAD_BYTES), (SCAN_SMALL, SMALL_BYTES)] {
        let records = data.scanned / BATCH * BATCH;
        let made = std::rc::Rc::new(Made::new());
        let log = move || {
            let made = made.clone();
            move || made.get_or_init(|| closed_log(&data.dir, records, size)).path().join("log")
        };
        let path = log();
        bench.case(row, READ, move |_| {
            let (mut file, mut block) = (File::open(path()).unwrap(), vec![0; 256 << 10]);
            timed(records, || while file.read(&mut block).unwrap() > 0 {})
        });
        let path = log();
        bench.case(row, SINGLE, move |_| {
            let path = path();
            drop_sidecar(&path);
            timed(records, || {
                let wal = Wal::open(&path).unwrap();
                assert_eq!(wal.recovery().scanned_records, records as u64);
            })
        });
        let path = log();
        bench.case(row, PEER, move |_| {
            let path = path();
            timed(records, || drop(wal_db::Wal::open(path).unwrap()))
        });
    }
    for (row, records) in [(OPEN, data.opened[0]), (OPEN_LARGE, data.opened[1])] {
        let made = std::rc::Rc::new(Made::new());
        for (store, mode) in [("deedbook, reading", Mode::Read), (SINGLE, Mode::Append)] {
            let made = made.clone();
            bench.case(row, store, move |_| {
                let log = made.get_or_init(|| closed_log(&data.dir, records, SMALL_BYTES));
                let log = log.path().join("log");
                total((0..OPENS).map(|_| {
                    let mut opened = None;
                    let done = timed(1, || {
                        opened = Some(Options::default().open(&log, mode).unwrap());
                    });
                    let wal = opened.unwrap();
                    assert!(wal.recovery().by_mark() && wal.len().unwrap() == records as u64);
                    wal.close().unwrap();
                    done
                }))
            });
        }
        bench.case(row, PEER, move |_| {
            let log = made.get_or_init(|| closed_log(&data.dir, records, SMALL_BYTES));
            timed(1, || drop(wal_db::Wal::open(log.path().join("log")).unwrap()))
        });
    }
    bench.case(KILLED, SINGLE, |dir| {
        let log = orphan(dir);
        timed(1, || assert_eq!(Wal::append_to(log).unwrap().len().unwrap(), ORPHANS as u64))
    });
    bench.case(KILLED, PEER, |dir| {
        let log = orphan(dir);
        timed(1, || drop(wal_db::Wal::open(log).unwrap()))
    });
}

/// A log whose writer died: another process exits with the log open.
fn orphan(dir: &Path) -> std::path::PathBuf {
    let mut command = Command::new(std::env::current_exe().unwrap());
    assert!(command.env(DEATH, dir).status().unwrap().success());
    dir.join("log")
}

/// Fill a log, sync half of it, and exit: no destructor runs, nothing is truncated or marked.
pub fn die(dir: &Path) -> ! {
    let wal = create(dir, false);
    append_equal(&wal, ORPHANS / 2, PAYLOAD_BYTES);
    wal.sync().unwrap();
    let payload = random_bytes(PAYLOAD_BYTES, 3);
    for _ in 0..ORPHANS / 2 {
        wal.append(&payload).unwrap();
    }
    std::process::exit(0);
}
