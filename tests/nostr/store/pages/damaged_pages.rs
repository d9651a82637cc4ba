//! Damaged pages after a killed process, on the real disk with the index in files, which knows the events of the pages.
//! The store opens and takes events, `verify` names the page, and a repair removes the page.

use crate::store::prelude::*;

fn on() -> Options {
    on_storage(Arc::new(Disk)).index_on_disk(true)
}

fn open(dir: &Path) -> EventStore {
    on().open(dir, Mode::Append).unwrap()
}

fn article(d: &str, at: u32) -> Event {
    event(9, at, 30_023, &[&["d", d]], &format!("{d} of {at}"))
}

fn asked(at: u32, tag: &[&str]) -> Event {
    event(9, at, 5, &[tag], "")
}

fn damage(dir: &Path, at: Location) {
    let path = dir.join(format!("data/segments/data.{}.seg", at.segment));
    let mut bytes = fs::read(&path).unwrap();
    bytes[at.offset as usize + 80] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn live(store: &EventStore) -> Vec<Event> {
    let walk = store.iter(Include::Live, OnCorrupt::Skip).unwrap();
    walk.map(|found| found.unwrap().event).collect()
}

/// The store opens with the damage, reports it, and takes an event. A repair removes the damage.
fn goes_on(dir: &Path, damaged: Location, left: &[Event], what: &str) {
    let store = on().open(dir, Mode::Append).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    assert_eq!(live(&store), left, "{what}");
    let report = store.verify(Check::Id).unwrap();
    let found: Vec<Location> = report.first_faults.iter().map(location).collect();
    assert_eq!((report.faults, found), (1, vec![damaged]), "{what}");
    stored(&store, &article("more", 90));
    store.close().unwrap();
    let report = on().repair(dir, ACCEPT).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    assert!(
        report.mended && report.loss.is_some() && report.damages.len() == 1,
        "{what}: {report:?}"
    );
    let store = open(dir);
    let expected = [left, &[article("more", 90)]].concat();
    assert_eq!(live(&store), expected, "{what}");
    assert!(store.verify(Check::Id).unwrap().ok(), "{what}");
    assert_eq!(queried(&store), expected.len(), "{what}");
}

/// Opening read the older versions of the log's events, and failed at a damaged version, as did the repair, which opens
/// the store. Every append that replaced or deleted the version failed. The same if the log has the flags of the
/// damaged event.
#[test]
fn damaged_version_blocks_no_opening_append_or_repair() {
    let (first, second) = (article("a", 1), article("b", 2));
    let address = format!("30023:{}:a", Id(author(9)));
    let after = [
        ("another address", Some(article("c", 3))),
        ("a newer version of it", Some(article("a", 3))),
        ("a request for its address", Some(asked(3, &["a", &address]))),
        ("a request for its id", Some(request(9, 3, &first))),
        ("a flag by hand", None),
    ];
    for (what, third) in after {
        for is_open in [true, false] {
            let place = tempfile::tempdir().unwrap();
            let [dir, killed] = ["events", "killed"].map(|name| place.path().join(name));
            let store = open(&dir);
            let damaged = stored(&store, &first);
            stored(&store, &second);
            store.checkpoint().unwrap();
            // The store sets no flag on an unreadable event.
            if is_open && third.is_some() {
                damage(&dir, damaged);
            }
            match &third {
                Some(third) => drop(store.append(third).unwrap()),
                None => store.set_flags(damaged, Flags::DELETED).unwrap(),
            }
            store.sync().unwrap();
            copy(&dir, &killed);
            if !is_open || third.is_none() {
                damage(&killed, damaged);
            }
            let what = format!("{what}, damaged while open: {is_open}");
            let left: Vec<Event> = [second.clone()].into_iter().chain(third.clone()).collect();
            goes_on(&killed, damaged, &left, &what);
        }
    }
}

/// A damaged request hides the names of the events it deleted. Appends fail, and the error recommends a repair.
#[test]
fn a_damaged_request_ends_appends_until_a_repair() {
    let (_place, dir) = on_real_disk();
    let store = open(&dir);
    stored(&store, &article("a", 1));
    let asked = stored(&store, &request(9, 2, &article("a", 1)));
    store.close().unwrap();
    damage(&dir, asked);
    let store = open(&dir);
    for _ in 0..2 {
        let error = store.append(&note(1)).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Corrupt, Some(Durable::No)));
        assert_eq!(error.offset(), Some(asked.offset.into()));
        let said = error.to_string();
        assert!(said.contains("a deletion request") && said.contains("repair"), "{said}");
    }
    store.close().unwrap();
    assert!(on().repair(&dir, ACCEPT).unwrap().mended);
    let store = open(&dir);
    stored(&store, &note(1));
    assert_eq!(live(&store), [note(1)]);
}

/// A store with a damaged request, killed after the intent of a commit was written and before anything was appended.
fn begun(place: &Path) -> PathBuf {
    let [dir, killed] = ["events", "killed"].map(|name| place.join(name));
    let store = open(&dir);
    let asked = stored(&store, &asked(2, &["e", &"ab".repeat(32)]));
    store.close().unwrap();
    let (from, to, intent) = (dir.clone(), killed.clone(), dir.join(".deedbook/transaction"));
    let storage = watched(Arc::new(Disk), move |seen| {
        if seen == Seen::Calling && intent.exists() && !to.exists() {
            copy(&from, &to);
        }
    });
    let store = on().storage(storage).open(&dir, Mode::Append).unwrap();
    let mut stage = store.stage("job", 0, 0).unwrap();
    stage.push(&note(1)).unwrap();
    let parts = [stage.finish().unwrap()];
    let transaction = Transaction { job: "job".into(), id: None };
    assert_eq!(store.commit_staged(&transaction, &parts).unwrap().records, 1);
    vouch_for(&killed.join(".deedbook/events"));
    damage(&killed, asked);
    killed
}

/// Because of a damaged request, neither the commit nor the repair could end.
#[test]
fn repair_lets_a_begun_commit_end() {
    let place = tempfile::tempdir().unwrap();
    let dir = begun(place.path());
    let error = on().open(&dir, Mode::Append).unwrap_err();
    assert!(error.to_string().contains("a deletion request"), "{error}");
    assert!(on().repair(&dir, ACCEPT).unwrap().mended);
    let store = open(&dir);
    assert_eq!(live(&store), [note(1)]);
    assert!(store.staged().unwrap().is_empty());
}

/// The staged events are lost, so the commit cannot end. The repair removes the damage first.
#[test]
fn repair_removes_damage_before_ending_a_commit() {
    let place = tempfile::tempdir().unwrap();
    let dir = begun(place.path());
    fs::remove_dir_all(dir.join(".deedbook/staged")).unwrap();
    on().repair(&dir, ACCEPT).unwrap_err();
    on().open(&dir, Mode::Read).unwrap().abandon_transaction().unwrap().unwrap();
    assert!(open(&dir).verify(Check::Id).unwrap().ok());
}

/// One damaged page ended every query of a reader, and every query with an event there by the index.
#[test]
fn queries_and_counts_skip_damage_only_on_request() {
    let (_place, dir) = on_real_disk();
    let store = open(&dir);
    let damaged = stored(&store, &article("a", 1));
    let intact = article("b", 2);
    stored(&store, &intact);
    store.close().unwrap();
    damage(&dir, damaged);
    let refused = |error: Option<Error>| {
        let error = error.unwrap();
        let place = (ErrorKind::Corrupt, Some(u64::from(damaged.offset)));
        assert_eq!((error.kind(), error.offset()), place);
    };
    let all = [Filter::default()];
    for mode in [Mode::Read, Mode::Append] {
        let store = on().open(&dir, mode).unwrap();
        refused(store.query(&all).err());
        let answer = store.query_with(&all, OnCorrupt::Skip, &mut || Ok(())).unwrap();
        let (found, passed) = answer;
        let found: Vec<Event> = found.into_iter().map(|found| found.event).collect();
        assert_eq!(found, std::slice::from_ref(&intact), "{mode:?}");
        let [page] = &passed[..] else { panic!("{mode:?}: {passed:?}") };
        let end = u64::from(damaged.offset) + 4096;
        assert_eq!((page.segment, location(page), page.end), (Some(0), damaged, end));
        refused(store.census().err());
        let census = store.census_with(OnCorrupt::Skip, &mut |_| Ok(())).unwrap();
        assert_eq!((census.events, &census.damage), (1, &passed));
        // Damage elsewhere hides no event. A missing event may have been on the damaged page.
        assert_eq!(store.find(&intact.id).unwrap().unwrap().event, intact);
        refused(store.find(&article("a", 1).id).err());
    }
}
