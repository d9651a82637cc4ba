//! The promises of the project, page by page.

use crate::report::{Against, Page, Promise};
use crate::rows::{
    APPEND, APPEND_8, BATCHES, COMMIT, COMMIT_16, GROWING, OKAYWAL, OPEN, OPEN_LARGE, PEER,
    PEER_SEGMENTED, PLAIN, SCAN, SCAN_SMALL, SEGMENTED, SINGLE,
};
use crate::spools::{self, DIRECTORY, LEDGER};

const fn times(row: &'static str, store: &'static str, factor: f64, peer: &'static str) -> Promise {
    Promise { row, store, against: Against::Times(factor, row, peer) }
}

const fn rate(row: &'static str, rate: f64) -> Promise {
    Promise { row, store: SINGLE, against: Against::Rate(rate) }
}

const fn group(store: &'static str) -> Promise {
    Promise { row: COMMIT_16, store, against: Against::Times(10.0, COMMIT, store) }
}

/// The Speed table in the WAL's issue, and opening.
pub const WAL: Page = Page {
    file: "wal",
    title: "Speed of the write-ahead log beside its peers",
    peers: "Rust, wal-db 1.1.0, okaywal 0.3.1",
    python: "python.md",
    promises: &[
        times(APPEND, SINGLE, 5.0, PEER),
        times(APPEND, SEGMENTED, 5.0, PEER_SEGMENTED),
        times(APPEND_8, SINGLE, 8.0, PEER),
        times(APPEND_8, SEGMENTED, 8.0, PEER_SEGMENTED),
        times(BATCHES, SINGLE, 0.9, PLAIN),
        times(BATCHES, SEGMENTED, 0.9, PLAIN),
        times(COMMIT, SINGLE, 1.2, GROWING),
        times(COMMIT, SEGMENTED, 1.2, GROWING),
        times(COMMIT, SEGMENTED, 1.0, OKAYWAL),
        group(SINGLE),
        group(SEGMENTED),
        times(COMMIT_16, SINGLE, 1.0, PEER),
        times(COMMIT_16, SEGMENTED, 1.0, PEER_SEGMENTED),
        times(COMMIT_16, SEGMENTED, 1.0, OKAYWAL),
        rate(SCAN, 15e6),
        rate(SCAN_SMALL, 15e6),
        rate(OPEN, 200.0),
        rate(OPEN_LARGE, 200.0),
        Promise { row: OPEN_LARGE, store: SINGLE, against: Against::Times(0.5, OPEN, SINGLE) },
        times(OPEN, SINGLE, 1.0, PEER),
        times(OPEN_LARGE, SINGLE, 1.0, PEER),
    ],
    notes: "Appends survive kill -9 when they return; commits a power cut. `append_batch` is given \
            encoded batches, as the plain write is; with encoding see below. A scan opens for \
            reading without the sidecar, warm; records are checksummed. okaywal syncs every entry, \
            so it has commits only.",
};

/// The ledger's page.
pub const LEDGERS: Page = Page {
    file: "ledger-rust",
    title: "Speed of the ledger beside DirectoryStore",
    peers: "Rust, transientdb 0.2.5",
    python: "ledger.md",
    promises: &[
        times(spools::EACH, LEDGER, 1.0, DIRECTORY),
        times(spools::BATCHES, LEDGER, 1.0, DIRECTORY),
        Promise { row: spools::FETCH, store: LEDGER, against: Against::Rate(1e9) },
    ],
    notes: "Appends survive kill -9 when they return. DirectoryStore takes JSON values and writes \
            them as text, and syncs nothing; it has no batches, so it is given the values one by \
            one there, too. The ledger and the plain write are given batches that are encoded; \
            with encoding see below. What is read lies in the system's memory. The ledger compares \
            the checksum of every record when the file is fetched and again while it is read; \
            DirectoryStore gives a path, whose file is read as it is.",
};
