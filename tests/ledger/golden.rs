//! The golden files: read, and written byte for byte.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::prelude::*;
use crate::support::common::hex;
use crate::support::store::events;

const FOOTER: &[u8] = br#"],"sentAt":"2026-01-01T00:00:00Z","writeKey":"k"}"#;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ledger")
}

fn manifest() -> Vec<Value> {
    let text = fs::read_to_string(data().join("manifest.json")).unwrap();
    serde_json::from_str::<Vec<Value>>(&text).unwrap()
}

fn json(dir: &Path) -> LedgerConfig {
    LedgerConfig {
        header: Box::new(|| br#"{"batch":["#.to_vec()),
        footer: Box::new(|| FOOTER.to_vec()),
        separator: b",".to_vec(),
        ..LedgerConfig::lines(dir, BASE)
    }
}

fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    events::copy(&data().join(name), dir.path());
    dir
}

#[test]
fn golden_files_give_the_manifests_records_and_bodies() {
    for case in manifest() {
        let name = case["name"].as_str().unwrap();
        let expected = case["expect"].as_object().unwrap();
        let dir = copy(name);
        for (config, kind) in [(json(dir.path()), "json_batch"), (small(dir.path(), 100), "jsonl")]
        {
            let ledger = LedgerStore::new(config).unwrap();
            let readers = ledger.fetch(None, None).unwrap().unwrap().data.unwrap();
            assert_eq!(readers.len(), expected.len(), "{name}");
            let indexes: Vec<_> = readers.iter().map(|reader| reader.index()).collect();
            assert!(indexes.is_sorted(), "{name}: {indexes:?}");
            for mut reader in readers {
                let file = reader.path().file_name().unwrap().to_str().unwrap().to_string();
                let expected = &expected[&file];
                let records = expected["records"].as_array().unwrap();
                let records: Vec<_> =
                    records.iter().map(|record| hex(record.as_str().unwrap())).collect();
                assert_eq!(payloads(&reader), records, "{name}/{file}");
                assert_eq!(reader.verdict().name(), expected["tail"], "{name}/{file}");
                let body = body(&mut reader);
                let len = format!("{kind}_len");
                assert_eq!(body.len() as u64, expected[&len].as_u64().unwrap(), "{name}/{file}");
                let sum = format!("{kind}_sha256");
                let of_body = Sha256::digest(&body);
                assert_eq!(of_body[..], hex(expected[&sum].as_str().unwrap()), "{name}/{file}");
            }
        }
        let reports = Options::default().verify(dir.path(), BASE).unwrap();
        assert_eq!(reports.len(), expected.len(), "{name}");
        for (file, report) in reports {
            let file = file.path.file_name().unwrap().to_str().unwrap().to_string();
            let expected = &expected[&file];
            assert_eq!(report.verdict.name(), expected["tail"], "{name}/{file}");
            let left = expected["bytes_after_valid_prefix"].as_u64().unwrap();
            assert_eq!(report.file_end - report.valid_end, left, "{name}/{file}");
        }
    }
}

#[test]
fn the_golden_files_are_written_byte_for_byte() {
    for name in ["two-files", "numeric-order"] {
        let dir = tempfile::tempdir().unwrap();
        let golden = data().join(name);
        let by_number = match name {
            "two-files" => ["0-events", "1-events"],
            _ => ["9-events", "10-events"],
        };
        if name == "numeric-order" {
            // Another store was there before.
            fs::write(dir.path().join("8-events"), b"").unwrap();
        }
        let ledger = LedgerStore::new(small(dir.path(), 475_000)).unwrap();
        for file in by_number {
            let bytes = fs::read(golden.join(file)).unwrap();
            append_each(&ledger, &prefix(&bytes).0);
            drop(ledger.fetch(Some(0), None).unwrap());
            assert_eq!(fs::read(dir.path().join(file)).unwrap(), bytes, "{name}/{file}");
        }
    }
}

#[test]
fn names_outside_the_grammar_are_left_alone() {
    let dir = copy("numeric-order");
    let ledger = LedgerStore::new(small(dir.path(), 100)).unwrap();
    ledger.append(b"{}").unwrap();
    ledger.reset().unwrap();
    assert!(!ledger.has_data().unwrap());
    let left = names(&deedbook::storage::Disk, dir.path());
    assert_eq!(left, ["07-events", "8-events-old", "notes.txt"]);
    ledger.append(b"{}").unwrap();
    ledger.close().unwrap();
    assert!(dir.path().join("12-events").exists(), "indexes go on");
}

/// One file as columns, past its damage: the second record is lost, and the others keep their numbers.
#[cfg(feature = "arrow")]
#[test]
fn a_file_is_read_as_arrow_batches() {
    use arrow_array::{BinaryArray, Int64Array};
    let dir = copy("midcorrupt");
    let file = Options::default().open_file(dir.path().join("0-events")).unwrap();
    let cursor = file.cursor(deedbook::OnCorrupt::Skip).unwrap();
    let mut batches =
        deedbook::Batches::new(cursor, &["record", "payload"], 1000, 1 << 20).unwrap();
    let batch = batches.next().unwrap().unwrap();
    let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    assert_eq!(numbers.values(), &[0, 2, 3, 4]);
    let payloads = batch.column(1).as_any().downcast_ref::<BinaryArray>().unwrap();
    assert!(payloads.iter().all(|payload| payload.unwrap().starts_with(b"{")));
    assert!(batches.next().is_none());
    assert_eq!(batches.damages().len(), 1);
    let raised = file.iter().unwrap().last().unwrap().unwrap_err();
    assert_eq!(raised.kind(), deedbook::ErrorKind::Corrupt);
    assert_eq!(raised.path(), Some(file.path()));
}
