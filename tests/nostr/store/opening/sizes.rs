//! The settings are the store's: sizes of pages and segments, batches, checkpoints and the compaction ratio.
//!
//! A run next to the Go reference found it: opening its store of 8192-byte pages without a size began a segment of
//! 4096-byte pages. The reference has one size for all, so that its next events lay askew.

use crate::store::prelude::*;

fn unnamed(disk: &Sim) -> Options {
    let mut options = Options::new().storage(Arc::new(disk.clone()));
    options.durability = Some(Durability::Manual);
    options.index_on_disk(false).small(true)
}

fn append(options: &Options, numbers: Range<u32>) {
    append_and_close(options, &numbers.map(short).collect::<Vec<_>>());
}

fn pages(disk: &Sim) -> Vec<(u32, usize)> {
    let of = |id: &u32| {
        let bytes = read(disk, &segment(*id));
        let size = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        (size, bytes.len().div_ceil(size as usize))
    };
    ids(disk).iter().map(of).collect()
}

fn made(page_bytes: u32) -> Sim {
    let disk = Sim::new();
    let options = unnamed(&disk).page_bytes(page_bytes);
    append(&options.segment_bytes(4 * u64::from(page_bytes)), 0..4);
    disk
}

#[test]
fn opening_without_sizes_keeps_the_sizes() {
    for size in [1024, 2048, 4096, 8192, 16384, 32768, 65536] {
        let disk = made(size);
        append(&unnamed(&disk), 4..8);
        assert_eq!(pages(&disk), [(size, 4), (size, 4), (size, 3)]);
    }
}

#[test]
fn store_without_manifest_keeps_its_last_page_size() {
    let disk = made(8192);
    remove_manifests(&disk);
    append(&unnamed(&disk), 4..8);
    assert_eq!(pages(&disk), [(8192, 4), (8192, 6)]);
}

#[test]
fn named_sizes_change_later_openings() {
    let disk = made(8192);
    append(&unnamed(&disk).page_bytes(4096).segment_bytes(3 * 4096), 4..5);
    append(&unnamed(&disk), 5..8);
    assert_eq!(pages(&disk), [(8192, 4), (8192, 2), (4096, 3), (4096, 3)]);
    let larger = unnamed(&disk).page_bytes(16_384);
    open(&larger).append(&short(8)).unwrap();
    let killed = on_disk(&larger, &disk.kill());
    assert_eq!(live(&open(&killed)), (0..9).map(short).collect::<Vec<_>>());
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A store with no default setting.
fn with_settings() -> Sim {
    let disk = made(8192);
    let named = unnamed(&disk).batch_interval(millis(70)).batch_bytes(3 << 20);
    let named = named.checkpoint_bytes(5 << 20).checkpoint_interval(millis(70_000));
    append(&named.compaction_ratio(0.4), 4..5);
    disk
}

/// Page size, segment size, ratio, times and bytes of batches and checkpoints of a handle.
type Settings = (u32, u64, f64, [Duration; 2], [u64; 2]);

const KEPT: Settings =
    (8192, 4 * 8192, 0.4, [Duration::from_millis(70), Duration::from_secs(70)], [3 << 20, 5 << 20]);

fn settings(options: &Options, mode: Mode) -> Settings {
    let store = options.open(DIR, mode).unwrap();
    let options = store.options();
    (
        options.page_bytes.unwrap(),
        options.segment_bytes.unwrap(),
        options.compaction_ratio.unwrap(),
        [options.batch_interval, options.checkpoint_interval].map(Option::unwrap),
        [options.batch_bytes, options.checkpoint_bytes].map(Option::unwrap),
    )
}

#[test]
fn opening_without_settings_keeps_the_settings() {
    let disk = with_settings();
    for mode in [Mode::Read, Mode::Append, Mode::Append] {
        assert_eq!(settings(&unnamed(&disk), mode), KEPT, "{mode:?}");
    }
    // The copy replaces a lost manifest.
    remove(&disk, MANIFEST);
    assert_eq!(settings(&unnamed(&disk), Mode::Append), KEPT);
}

#[test]
fn named_settings_change_later_openings_of_writers_only() {
    let disk = with_settings();
    let named = unnamed(&disk).compaction_ratio(0.3).batch_interval(millis(80));
    let mut changed = KEPT;
    (changed.2, changed.3[0]) = (0.3, millis(80));
    assert_eq!(settings(&named, Mode::Read), changed);
    assert_eq!(settings(&unnamed(&disk), Mode::Read), KEPT);
    assert_eq!(settings(&named, Mode::Append), changed);
    assert_eq!(settings(&unnamed(&disk), Mode::Append), changed);
}

#[test]
fn a_salvage_and_a_repair_keep_the_settings() {
    let disk = with_settings();
    unnamed(&disk).salvage(DIR, COPY_DIR).unwrap();
    let store = unnamed(&disk).open(COPY_DIR, Mode::Read).unwrap();
    assert_eq!(store.options().compaction_ratio, Some(0.4));
    assert_eq!(store.options().page_bytes, Some(8192));
    drop(store);
    remove(&disk, &segment(0));
    assert!(unnamed(&disk).repair(Path::new(DIR), ALL).unwrap().mended);
    assert_eq!(settings(&unnamed(&disk), Mode::Append), KEPT);
}

/// Another program may store a value out of range.
#[test]
fn settings_out_of_range_are_the_defaults() {
    let disk = with_settings();
    let mut changed = manifest(&disk);
    changed["compaction_ratio"] = 7.into();
    changed["wal_config"]["batch_interval_ms"] = 5000.into();
    changed["wal_config"]["batch_size_bytes"] = "many".into();
    write(&disk, MANIFEST, changed.to_string().as_bytes());
    let mut expected = KEPT;
    (expected.2, expected.3[0], expected.4[0]) = (0.2, millis(100), 10 << 20);
    assert_eq!(settings(&unnamed(&disk), Mode::Append), expected);
}
