//! Texts that no situation of these tests meets, and why.

const LOGGED: &str = "the writer logs it, and goes on: tests/wal_keep.rs";
const FAILING_DISK: &str = "needs a failing disk below LMDB, which knows no simulated one";

/// The text as the source has it, and the reason.
pub const UNMET: &[(&str, &str)] = &[
    ("read the environment", FAILING_DISK),
    ("list the epochs", FAILING_DISK),
    ("read the events", FAILING_DISK),
    ("measure the log", FAILING_DISK),
    ("sign the epoch", FAILING_DISK),
    ("read the epoch", FAILING_DISK),
    ("write the environment", FAILING_DISK),
    ("write the events", FAILING_DISK),
    ("write the metadata", FAILING_DISK),
    ("event {event} of {bytes} bytes, LMDB writes {VALUE_BYTES_MAX}", "takes 2 GiB"),
    ("not there", "needs a destination that another program cuts while it is compared"),
    ("payload of {len} bytes, Arrow binary holds 2^31 - 1", "takes 2 GiB"),
    ("a batch of {bytes} bytes after {rows} lines, limit {BYTES_MAX}", "src/nostr/parsed.rs does"),
    ("arrow: {e}", "Arrow refuses none of the columns that we make"),
    (
        "opened before a fork, by the parent; open it again in this process",
        "a test process has threads, and must not fork: tests/python/test_wal.py",
    ),
    (
        "the log was truncated while it was checked, again and again: check it once more",
        "needs a writer that truncates during five checks in a row",
    ),
    ("start the sync thread", "needs a system without room for a thread"),
    ("{} is not where the index says", "needs an index and a mark that are wrong alike"),
    ("data length", "no entry whose checksum holds has data of another shape"),
    ("column {name:?}, the event store's log has none", "nothing makes columns of it"),
    (", saved to {}", "a part of a log line"),
    (", set aside as {}", "a part of a log line"),
    (", by finishing a truncation that a crash interrupted", "a part of a log line"),
    ("read what to retain", LOGGED),
    ("remove what to retain", LOGGED),
    ("the file that says what to drop is damaged: ask again, which replaces it", LOGGED),
    ("age_max_ms {ms}\n", "what a file holds"),
    ("segment_bytes {bytes}\n", "what a file holds"),
    ("records {records}\nfirst {first}\noffset {offset}\n", "what a file holds"),
    ("the file was cut, or its disk failed, under the map", "only through the map, on Linux"),
    ("another process cut the file to {len} bytes, it had {}", "only through the map, on Linux"),
    ("an earlier sync failed: {why}", "the log is poisoned before its segments are asked again"),
    ("the directory was locked for {wait:?}", "takes half a minute: src/ledger/directory.rs"),
    ("{held} events are counted, but {first} to {last} are there", "needs a damaged count in LMDB"),
    ("the environment was opened for metadata alone", "nothing appends to such a one"),
    ("the metadata is {stored:?}, and {:?} in the source", "needs a disk that loses writes"),
    ("the metadata that was written is not there", "needs a disk that loses writes"),
    ("event {wanted} expected, {found} found", "the bounds are asked before"),
    ("the end of the log", "the bounds are asked before"),
    (
        "each epoch takes up to two open files: raise the limit (ulimit -n), or drop epochs with retain",
        "needs a process that may open few files: tests/python/test_pier.py",
    ),
    ("the log was written since its events were counted", "tests/lmdb/source.rs does"),
    ("every epoch was dropped while it was checked: check again", "tests/pier/retain.rs does"),
    ("payload of {len} bytes, this machine addresses {}", "needs a machine of 32 bits"),
    ("part of {} bytes, or {count} parts, beyond 2^32", "takes 4 GiB"),
    (
        "event {event} of the copy is not that of the source",
        "tests/convert/main.rs does, on a disk that stores another byte",
    ),
    (
        "lsn {lsn}: not {records} records from {start} to {end}",
        "needs an index and a mark that are wrong alike",
    ),
];
