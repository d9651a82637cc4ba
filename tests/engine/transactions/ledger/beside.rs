//! Commits of a ledger next to other programs.

use std::thread;

use super::*;

/// Other implementations claim no index, and take the first index after the highest file.
// Promise: transaction-ledger.
#[test]
fn a_commit_replaces_no_file_of_another_program() {
    let (states, parts) = begun();
    for state in &states {
        let taken = read(state).last().unwrap().0 + 1;
        if taken > 4 {
            continue;
        }
        let path = format!("{DIR}/{taken}-{BASE}");
        let file = state.create_new(path.as_ref(), 0o600).unwrap();
        let foreign =
            [7, 0, 0, 0, 0xbb, 0x1d, 0xf2, 0x4c, b'f', b'o', b'r', b'e', b'i', b'g', b'n'];
        file.write_at(&foreign, 0).unwrap();
        file.sync_data().unwrap();
        state.sync_dir(DIR.as_ref()).unwrap();
        let check = |sim: &Sim| {
            assert!(open(sim).commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
            let mut bytes = [0; 15];
            sim.open(path.as_ref(), Access::Read).unwrap().read_at(&mut bytes, 0).unwrap();
            assert_eq!(bytes, foreign);
            let mut found = read(sim);
            found.retain(|(index, _)| *index > 1 && *index != taken);
            let found: Vec<_> = found.into_iter().map(|(_, payload)| payload).collect();
            assert_eq!(found, STAGED.concat());
        };
        let state = state.kill();
        state.record();
        drop(open(&state));
        for step in state.recorded() {
            cuts(&step, 4).iter().chain([&step.kill()]).for_each(check);
        }
        check(&state);
    }
}

/// A store opened before a commit died does not finish the commit. It may write, send and remove a
/// file meanwhile; no file of the commit gets the same index.
// Promise: transaction-ledger.
#[test]
fn stores_reuse_no_index_of_a_dead_commit() {
    let (states, _) = begun();
    for state in &states {
        let busy = state.lock(intent().parent().unwrap(), false).unwrap();
        let store = open(state);
        drop(busy);
        let before = on(state).files(DIR, BASE).unwrap();
        store.append(b"mine").unwrap();
        let fetched = store.fetch(None, None).unwrap().unwrap();
        let mine = *fetched.removable.unwrap().last().unwrap();
        assert_eq!(mine.index(), 5, "after {before:?}");
        store.remove(&[mine]).unwrap();
        drop(open(state));
        let expected = [(2, "a"), (2, "bb"), (3, STAGED[2][0]), (3, "d"), (4, "a")];
        assert_eq!(read(state)[4..], expected.map(|(index, payload)| (index, payload.into())));
    }
}

/// On a real disk, with several stores at work.
#[test]
fn commits_beside_stores_that_append_send_and_remove() {
    let dir = tempfile::tempdir().unwrap();
    let store = || LedgerStore::new(LedgerConfig::lines(dir.path(), BASE)).unwrap();
    let is_over = AtomicBool::new(false);
    let send = |store: &LedgerStore, sent: &mut Vec<String>, indexes: &mut Vec<u32>| {
        let Some(fetched) = store.fetch(Some(3), None).unwrap() else { return false };
        for mut reader in fetched.data.unwrap() {
            let mut body = String::new();
            reader.read_to_string(&mut body).unwrap();
            sent.extend(body.lines().map(String::from));
        }
        let removable = fetched.removable.unwrap();
        indexes.extend(removable.iter().map(|removable| removable.index()));
        store.remove(&removable).unwrap();
        true
    };
    let (mut sent, mut indexes) = (Vec::new(), Vec::new());
    let commit = |committer: usize| {
        for job in 0..20 {
            let store = store();
            let name = format!("job-{committer}-{job}");
            let parts: Vec<_> = (0..3)
                .flat_map(|task| {
                    let payload = format!("{name} {task}");
                    stage(&store, &name, task, 1, &[&payload, &format!("{payload}b")])
                })
                .collect();
            let id = Some(TransactionId {
                app: format!("app-{committer}"),
                query: Some("q".into()),
                version: job,
            });
            let transaction = Transaction { job: name, id };
            assert!(!store.commit_staged(&transaction, &parts).unwrap().repeated);
            assert!(store.commit_staged(&transaction, &parts).unwrap().repeated);
        }
    };
    thread::scope(|scope| {
        let writers = [scope.spawn(|| commit(0)), scope.spawn(|| commit(1))];
        let appender = scope.spawn(|| {
            let store = store();
            (0..500).for_each(|n| {
                store.append(format!("append {n}").as_bytes()).unwrap();
            });
        });
        let sender = scope.spawn(|| {
            let (store, mut sent, mut indexes) = (store(), Vec::new(), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                send(&store, &mut sent, &mut indexes);
            }
            (sent, indexes)
        });
        let ended: Vec<_> = writers.into_iter().chain([appender]).map(|t| t.join()).collect();
        // Also after a failure, or else the sender goes on forever.
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        (sent, indexes) = sender.join().unwrap();
    });
    let last = store();
    while send(&last, &mut sent, &mut indexes) {}
    assert_eq!(sent.len(), 500 + 2 * 20 * 6);
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "a record came twice");
    assert_eq!(indexes.iter().collect::<BTreeSet<_>>().len(), indexes.len(), "an index came twice");
}

/// A file system may leave a renamed file both names.
#[cfg(unix)]
#[test]
fn finishing_a_commit_removes_a_files_staged_name() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().file_mode(0o640);
    let config = || LedgerConfig::lines(dir.path(), BASE);
    let parts = stage(&options.open(config()).unwrap(), JOB, 0, 1, &["x", "y"]);
    let jobs = dir.path().join(".deedbook").join(format!("jobs-{BASE}"));
    let staged = jobs.join("staged").join(format!("{JOB}.0.0.1"));
    let named = dir.path().join(format!("0-{BASE}"));
    std::fs::hard_link(&staged, &named).unwrap();
    let Part { bytes, records, sum, .. } = parts[0];
    let lines = format!("job {JOB}\nplace 0\npart 0 0 1 {bytes} {records} {sum:08x} -\n");
    let intent = format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()));
    std::fs::write(jobs.join("transaction"), intent).unwrap();
    let store = options.open(config()).unwrap();
    assert!(!staged.exists() && !jobs.join("transaction").exists());
    assert_eq!(options.files(dir.path(), BASE).unwrap().len(), 1);
    store.append(b"z").unwrap();
    for name in [named, dir.path().join(format!("1-{BASE}"))] {
        assert_eq!(std::fs::metadata(&name).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
