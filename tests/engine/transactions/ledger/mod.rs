//! A ledger gets whole files, once, while other stores append, send and remove.

mod beside;
mod crashes;

use deedbook::ledger::{Options, WhenFull};

use super::*;

const DIR: &str = "/spool";
const BASE: &str = "events";
const CUTS: u64 = 40;

fn on(sim: &Sim) -> Options {
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    Options::new().storage(storage).durability(Durability::Manual)
}

pub fn open(sim: &Sim) -> LedgerStore {
    let options = on(sim).file_records_max(3);
    options.open(LedgerConfig::lines(DIR, BASE)).unwrap()
}

/// Every record with its file, without a store: opening a store would finish a commit.
pub fn read(sim: &Sim) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for file in on(sim).files(DIR, BASE).unwrap() {
        let records = on(sim).open_file(&file.path).unwrap();
        let payloads = records.iter().unwrap().map(|record| record.unwrap().payload);
        found.extend(payloads.map(|payload| (file.index, String::from_utf8(payload).unwrap())));
    }
    found
}

pub fn payloads(sim: &Sim) -> Vec<String> {
    read(sim).into_iter().map(|(_, payload)| payload).collect()
}

pub fn stage(
    store: &LedgerStore,
    job: &str,
    partition: u32,
    attempt: u64,
    of: &[&str],
) -> Vec<Part> {
    let mut stage = store.stage(job, partition, attempt).unwrap();
    of.iter().for_each(|payload| stage.push(payload.as_bytes()).unwrap());
    assert_eq!(stage.len(), of.len() as u64);
    stage.finish().unwrap()
}

/// A task with smaller files than the ledger: the parts are `[a, bb]`, `[ccc.., d]`, `[a]`.
pub fn task(sim: &Sim) -> LedgerStore {
    on(sim).file_records_max(2).open(LedgerConfig::lines(DIR, BASE)).unwrap()
}

fn prepared() -> (Sim, LedgerStore, Vec<Part>) {
    match crate::transactions::prepared(Kind::Ledger) {
        (sim, Store::Ledger(store, _), parts) if parts.len() == 3 => (sim, store, parts),
        (.., parts) => panic!("{parts:?}"),
    }
}

fn begun() -> (Vec<Sim>, Vec<Part>) {
    let (sim, store, parts) = prepared();
    sim.record();
    store.commit_staged(&of_query("q", 0), &parts).unwrap();
    // In the first state, the intent has its name in the cache only.
    let states: Vec<_> = sim.recorded().iter().map(Sim::kill).filter(is_begun).skip(1).collect();
    assert!(states.len() > 5, "{}", states.len());
    (states, parts)
}

fn intent() -> PathBuf {
    Path::new(Kind::Ledger.desk()).join("transaction")
}

fn is_begun(sim: &Sim) -> bool {
    Kind::Ledger.is_begun(sim)
}

#[test]
fn only_an_oversized_record_exceeds_the_staging_cap() {
    let sim = Sim::new();
    let config = LedgerConfig { max_file_size: 100, ..LedgerConfig::lines(DIR, BASE) };
    let store = on(&sim).open(config).unwrap();
    let mut stage = store.stage(JOB, 0, 1).unwrap();
    let payload = |n: usize| vec![b'a' + n as u8; if n == 3 { 300 } else { 30 }];
    (0..9).for_each(|n| stage.push(&payload(n)).unwrap());
    assert_eq!(stage.push(b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let parts = stage.finish().unwrap();
    let sizes: Vec<_> = parts.iter().map(|part| (part.sequence, part.bytes)).collect();
    assert_eq!(sizes, [(0, 76), (1, 38), (2, 308), (3, 76), (4, 76), (5, 38)]);
    store.commit_staged(&of_no_application(), &parts).unwrap();
    let fetched = store.fetch(None, None).unwrap().unwrap();
    let mut sent = Vec::new();
    for mut reader in fetched.data.unwrap() {
        reader.read_to_end(&mut sent).unwrap();
        sent.push(b'\n');
    }
    let expected: Vec<_> = (0..9).flat_map(|n| [payload(n), b"\n".to_vec()].concat()).collect();
    assert_eq!(sent, expected);
    let mut dropped = store.stage(JOB, 7, 1).unwrap();
    (0..9).for_each(|n| dropped.push(&payload(n)).unwrap());
    drop(dropped);
    assert!(store.stage(JOB, 8, 1).unwrap().finish().unwrap().is_empty());
    assert!(store.staged().unwrap().is_empty());
}

/// A store that died after making the directories had not synced their names.
#[test]
fn a_commit_without_records_is_noted_durably() {
    let sim = Sim::new();
    let store = open(&sim);
    let jobs = intent().parent().unwrap().to_path_buf();
    [jobs.parent().unwrap(), &jobs].iter().for_each(|dir| sim.create_dir(dir).unwrap());
    store.commit_staged(&of_query("q", 0), &[]).unwrap();
    for state in cuts(&sim, CUTS) {
        assert_eq!(open(&state).transactions().unwrap()["etl"].version, 0);
    }
}

#[test]
fn commits_refuse_parts_of_incomplete_or_mixed_attempts() {
    let (sim, store, parts) = prepared();
    let other = stage(&store, JOB, 2, 99, &["x"]);
    let part = |partition, sequence| {
        parts.iter().find(|p| (p.partition, p.sequence) == (partition, sequence)).unwrap().clone()
    };
    let second = Part { sequence: 1, ..other[0].clone() };
    for (parts, text) in [
        (vec![part(0, 0), part(2, 0), other[0].clone()], "by attempts 12 and 99"),
        (vec![part(0, 0), part(2, 0), second], "by attempts 12 and 99"),
        (vec![part(0, 0), part(2, 1)], "part 0 of partition 2 of job job-1 is missing"),
    ] {
        let error = store.commit_staged(&of_no_application(), &parts).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        let kind = (error.kind(), error.durable());
        assert_eq!(kind, (ErrorKind::InvalidArgument, Some(Durable::No)));
    }
    assert_eq!(payloads(&sim), BEFORE);
}

#[test]
fn a_commit_counts_against_the_total_limit() {
    for when_full in [WhenFull::Reject, WhenFull::DropOldest] {
        let (sim, store, parts) = prepared();
        drop(store);
        let held: u64 = on(&sim).files(DIR, BASE).unwrap().iter().map(|file| file.bytes).sum();
        let staged: u64 = parts.iter().map(|part| part.bytes).sum();
        let options = |bytes| on(&sim).bytes_total_max(bytes).when_full(when_full);
        let config = || LedgerConfig { max_file_size: 100, ..LedgerConfig::lines(DIR, BASE) };
        let store = options(held + staged - 1).open(config()).unwrap();
        let result = store.commit_staged(&of_app(1), &parts);
        let stats = store.stats();
        if when_full == WhenFull::Reject {
            let error = result.unwrap_err();
            let source = error.io_source().map(io::Error::kind);
            assert_eq!(source, Some(io::ErrorKind::QuotaExceeded));
            assert_eq!(error.durable(), Some(Durable::No));
            assert_eq!(
                (payloads(&sim), stats.rejected_records),
                (BEFORE.map(String::from).into(), 5)
            );
            let store = options(held + staged).open(config()).unwrap();
            store.commit_staged(&of_app(1), &parts).unwrap();
            assert_eq!(payloads(&sim), Kind::Ledger.all());
            assert!(store.append(b"x").is_err(), "the commit was counted");
        } else {
            assert_eq!(result.unwrap().records, 5);
            assert_eq!(
                (payloads(&sim), stats.dropped_records),
                (Kind::Ledger.all()[3..].to_vec(), 3)
            );
        }
    }
}

#[test]
fn ledgers_in_one_directory_have_separate_jobs() {
    let sim = Sim::new();
    let bases = ["a", "b", "quarantine", "next-a", "jobs-a"];
    let store = |base: &str| on(&sim).open(LedgerConfig::lines(DIR, base)).unwrap();
    let stores = bases.map(store);
    let parts = bases.map(|base| stage(&store(base), JOB, 0, 1, &[base]));
    for (store, parts) in stores.iter().zip(&parts) {
        assert_eq!(store.staged().unwrap().len(), 1, "the commit of another removed it");
        assert!(!store.commit_staged(&of_app(1), parts).unwrap().repeated);
    }
    for base in bases {
        let files = on(&sim).files(DIR, base).unwrap();
        let records = on(&sim).open_file(&files[0].path).unwrap();
        let found: Vec<_> = records.iter().unwrap().map(|record| record.unwrap().payload).collect();
        assert_eq!((files.len(), found), (1, vec![base.as_bytes().to_vec()]));
    }
}

#[test]
fn a_record_beyond_the_committers_limit_is_sent() {
    let sim = Sim::new();
    let config = || LedgerConfig::lines(DIR, BASE);
    let task = on(&sim).record_bytes_max(4 << 20).open(config()).unwrap();
    let mut stage = task.stage(JOB, 0, 1).unwrap();
    stage.push(&vec![b'x'; 3 << 20]).unwrap();
    let store = open(&sim);
    store.commit_staged(&of_app(1), &stage.finish().unwrap()).unwrap();
    let readers = store.fetch(None, None).unwrap().unwrap().data.unwrap();
    assert_eq!(readers[0].content_length(), 3 << 20);
}
