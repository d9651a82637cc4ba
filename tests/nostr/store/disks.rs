//! Stores on simulated disks, the contents of their files, and damage to the files.

use deedbook::nostr::SalvageReport;

use super::prelude::*;

pub const PAGE: usize = 4096;
pub const COPY_DIR: &str = "/rescued";
pub const MANIFEST: &str = "/events/manifest.json";
pub const COPY: &str = "/events/.deedbook/manifest";
pub const WAL: &str = "/events/wal/wal.log";
pub const FIRST: &str = "/events/data/segments/data.0.seg";

pub fn on(disk: &Sim) -> Options {
    options(disk, Durability::Manual)
        .segment_bytes(40 * PAGE as u64)
        .wal_segment_bytes(4 << 10)
        .checkpoint_bytes(1 << 20)
}

pub fn writer(disk: &Sim) -> EventStore {
    open(&on(disk))
}

pub fn reader(disk: &Sim) -> EventStore {
    on(disk).open(DIR, Mode::Read).unwrap()
}

pub fn fresh() -> (Sim, EventStore) {
    let disk = Sim::new();
    let store = writer(&disk);
    (disk, store)
}

pub fn append_and_close(options: &Options, events: &[Event]) {
    let store = open(options);
    store.append_many(events).unwrap();
    store.close().unwrap();
}

pub fn closed(events: &[Event]) -> Sim {
    let disk = Sim::new();
    append_and_close(&on(&disk), events);
    disk
}

/// A new store with segments of five pages and manual syncs, and its options.
pub fn small() -> (Sim, Options, EventStore) {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = open(&on);
    (disk, on, store)
}

/// The kinds of failed calls on an honest disk, and how often each strikes.
pub const FAULTS: [(&str, What, u64); 9] = [
    ("EIO", What::Error(Io::Other), 1),
    ("EIO for ever", What::Error(Io::Other), u64::MAX),
    ("ENOSPC", What::Error(Io::StorageFull), 1),
    ("ENOSPC for ever", What::Error(Io::StorageFull), u64::MAX),
    ("half a write, then EIO", What::Partial(Io::Other), 1),
    ("half a write, then ENOSPC", What::Partial(Io::StorageFull), 2),
    ("half a read or write", What::Short, 1),
    ("a write of 0", What::Zero, 1),
    ("death", What::Crash, 1),
];

thread_local! {
    pub static NOW: Cell<u64> = const { Cell::new(0) };
}

pub fn clock() -> u64 {
    NOW.get()
}

pub fn on_real_disk() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("events");
    (place, dir)
}

/// A disk that counts how often files are read, and how many bytes.
pub fn counting(disk: &Sim) -> (Arc<dyn Storage>, Arc<[AtomicUsize; 2]>) {
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let by_hook = counts.clone();
    let storage = watched(Arc::new(disk.clone()), move |seen| {
        if let Seen::Read(bytes) = seen {
            by_hook[0].fetch_add(1, Ordering::Relaxed);
            by_hook[1].fetch_add(bytes, Ordering::Relaxed);
        }
    });
    (storage, counts)
}

pub fn on_disk(options: &Options, disk: &Sim) -> Options {
    options.clone().storage(Arc::new(disk.clone()))
}

pub fn refused<T>(done: Result<T, Error>, kind: ErrorKind, said: &str) {
    let Err(error) = done else { panic!("{kind:?} expected") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(said), "{error}");
}

pub fn manifest(disk: &Sim) -> serde_json::Value {
    serde_json::from_slice(&read(disk, MANIFEST)).unwrap()
}

pub fn segment(id: u32) -> String {
    format!("{DIR}/data/segments/data.{id}.seg")
}

pub type Events = BTreeMap<Id, (Event, Flags)>;

pub fn events(store: &EventStore) -> Events {
    let mut found = Events::new();
    for each in store.iter(Include::All, OnCorrupt::Skip).unwrap() {
        let each = each.unwrap();
        let before = found.insert(each.event.id, (each.event, each.flags));
        assert!(before.is_none(), "an event is there twice");
    }
    found
}

pub fn live_in(events: &Events) -> usize {
    events.values().filter(|(_, flags)| flags.is_live()).count()
}

pub fn location(damage: &Damage) -> Location {
    Location { segment: damage.segment.unwrap(), offset: damage.offset as u32 }
}

/// The events that a walk gives which passes over damage, and that damage.
pub fn skipping(store: &EventStore) -> (Vec<Event>, Vec<Damage>) {
    let mut walk = store.iter(Include::All, OnCorrupt::Skip).unwrap();
    let found = walk.by_ref().map(|found| found.unwrap().event).collect();
    (found, walk.damage().to_vec())
}

pub fn short(number: u32) -> Event {
    event(1, number, 1, &[], &format!("note {number}"))
}

pub fn append(store: &EventStore, numbers: Range<u32>) {
    store.append_many(&numbers.map(short).collect::<Vec<_>>()).unwrap();
}

/// A store with some compacted segments, flags set by hand, versions, a deletion request, and several log files with
/// events after the last checkpoint. The process was killed.
pub fn world() -> (Sim, Events) {
    let (disk, store) = fresh();
    store.append_many(&notes(0..30)).unwrap();
    delete(&store, &note(2));
    store.compact(0.0, false).unwrap();
    store.append_many(&notes(30..40)).unwrap();
    delete(&store, &note(31));
    store.checkpoint().unwrap();
    let profiles = [1, 2].map(|at| event(9, at, 0, &[], &format!("profile {at}")));
    store.append_many(&profiles).unwrap();
    let request = event(0, 50, 5, &[&["e", &note(5).id.to_string()]], "");
    store.append(&request).unwrap();
    for note in notes(40..60).iter().filter(|note| note.content.len() < 100) {
        store.append(note).unwrap();
    }
    store.sync().unwrap();
    let all = events(&store);
    assert!(all.len() > 45 && live_in(&all) == all.len() - 3);
    assert!(logs(&disk).len() > 1);
    (disk.kill(), all)
}

pub fn salvaged(disk: &Sim) -> (SalvageReport, Events) {
    let before = files(disk);
    let report = copied(disk, COPY_DIR).unwrap();
    assert_eq!(files(disk), before, "the source was changed");
    let store = on(disk).open(COPY_DIR, Mode::Append).unwrap();
    assert!(store.verify(Check::Id).unwrap().ok());
    let found = events(&store);
    assert_eq!(report.events, found.len() as u64);
    let live = live_in(&found);
    assert_eq!(report.hidden > 0, live < found.len());
    assert_eq!(queried(&store), live);
    (report, found)
}

pub fn copied(disk: &Sim, to: &str) -> Result<SalvageReport, Error> {
    on(disk).salvage(Path::new(DIR), Path::new(to))
}

pub fn salvaged_by(options: &Options) -> SalvageReport {
    options.salvage(Path::new(DIR), Path::new(COPY_DIR)).unwrap()
}

pub fn mended(disk: &Sim, may: Repair) -> Result<RepairReport, Error> {
    on(disk).repair(Path::new(DIR), may)
}

pub const DRY: Repair = Repair { dry_run: true, force: false, accept_loss: false };
pub const PLAIN: Repair = Repair { dry_run: false, force: false, accept_loss: false };
pub const FORCE: Repair = Repair { dry_run: false, force: true, accept_loss: false };
pub const ACCEPT: Repair = Repair { dry_run: false, force: false, accept_loss: true };
pub const ALL: Repair = Repair { dry_run: false, force: true, accept_loss: true };

pub fn listed(disk: &Sim, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = snapshot(disk, dir);
    found.retain(|path, _| !path.ends_with("lock"));
    found
}

pub fn files(disk: &Sim) -> BTreeMap<PathBuf, Vec<u8>> {
    listed(disk, Path::new(DIR))
}

pub fn ids(disk: &Sim) -> Vec<u32> {
    (0..60).filter(|id| disk.open(Path::new(&segment(*id)), Access::Read).is_ok()).collect()
}

pub fn last_segment(disk: &Sim) -> String {
    segment(*ids(disk).last().unwrap())
}

/// The files of the write-ahead log in order. The file without a number is the first.
pub fn logs(disk: &Sim) -> Vec<String> {
    let mut logs: Vec<String> = listed(disk, Path::new("/events/wal"))
        .into_keys()
        .map(|path| path.to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".log") && !path.contains(".deedbook"))
        .collect();
    logs.sort_by_key(|path| (path.len(), path.clone()));
    logs
}

pub fn newest_log(disk: &Sim) -> String {
    logs(disk).pop().unwrap()
}

pub fn last_byte(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).unwrap()
}

/// Whether a file holds saved bytes that were cut off another file.
pub fn is_cut(path: &Path) -> bool {
    path.to_string_lossy().contains(".cut-")
}

pub fn remove(disk: &Sim, path: &str) {
    disk.remove(Path::new(path)).unwrap();
}

pub fn remove_manifests(disk: &Sim) {
    [MANIFEST, COPY].iter().for_each(|path| remove(disk, path));
}

fn remove_all(disk: &Sim, dir: &str) {
    listed(disk, Path::new(dir)).into_keys().for_each(|path| disk.remove(&path).unwrap());
}

pub fn remove_sidecar(disk: &Sim) {
    remove_all(disk, "/events/wal/.deedbook");
}

pub fn remove_log(disk: &Sim) {
    remove_all(disk, "/events/wal");
}

pub fn flip_page(disk: &Sim, segment: &str, page: usize) {
    changed(disk, segment, |bytes| bytes[page * PAGE + 80] ^= 1);
}

pub fn zero_pages(disk: &Sim, pages: Range<usize>) {
    changed(disk, FIRST, |bytes| bytes[pages.start * PAGE..pages.end * PAGE].fill(0));
}

/// Change a byte of the first entry in the newest file of the log.
pub fn flip_log(disk: &Sim) {
    changed(disk, &newest_log(disk), |bytes| bytes[24 + 60] ^= 1);
}

pub fn zero_last(disk: &Sim, pages: Range<usize>) {
    changed(disk, &last_segment(disk), |bytes| {
        let len = bytes.len();
        bytes[len - pages.end * PAGE..len - pages.start * PAGE].fill(0);
    });
}

/// Copies of a disk, each with one flipped bit in the log, and the place of the bit.
pub fn flipped_logs(disk: &Sim, step: usize) -> impl Iterator<Item = (String, Sim)> + '_ {
    logs(disk).into_iter().flat_map(move |log| {
        let used = last_byte(&read(disk, &log));
        (0..used).step_by(step).map(move |at| {
            let flipped = disk.kill();
            changed(&flipped, &log, |bytes| bytes[at] ^= 0x10);
            (format!("{log}, byte {at}"), flipped)
        })
    })
}

/// The world without the last three pages of its last segment, and with a damaged first entry in the newest log file:
/// only the log has the intact events after the damaged entry.
pub fn damaged_log_alone() -> (Sim, Events) {
    let (disk, all) = world();
    zero_last(&disk, 0..3);
    flip_log(&disk);
    (disk, all)
}
