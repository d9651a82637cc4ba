//! Other threads during a commit.

use std::sync::mpsc::RecvTimeoutError;

use super::*;

/// Holds a commit up after it has stored all events, while it notes its transaction. Nothing that
/// `act` does with the handle may return before the commit goes on.
fn waits_for_a_commit(act: impl FnOnce(&EventStore) + Send) -> Sim {
    let (sim, store, parts) = prepared();
    drop(store);
    let (holds, held) = channel();
    let (release, released) = channel::<()>();
    let (once, looked_at) = (Mutex::new(Some((holds, released))), sim.clone());
    let storage = watched(Arc::new(sim.clone()), move |_| {
        let names = looked_at.list("/events/.deedbook".as_ref()).unwrap_or_default();
        if !names.contains(&"transactions.tmp".into()) {
            return;
        }
        let first = once.lock().unwrap().take();
        if let Some((holds, released)) = first {
            holds.send(()).unwrap();
            released.recv().unwrap();
        }
    });
    let store = options(&sim, 40).storage(storage).open("/events", Mode::Append).unwrap();
    let (done, returned) = channel();
    std::thread::scope(|scope| {
        let committing = scope.spawn(|| store.commit_staged(&of_app(1), &parts).unwrap());
        held.recv().unwrap();
        let acting = scope.spawn(|| {
            act(&store);
            done.send(()).unwrap();
        });
        let waited = returned.recv_timeout(Duration::from_millis(300));
        release.send(()).unwrap();
        assert_eq!(committing.join().unwrap().records, 5);
        acting.join().unwrap();
        assert_eq!(waited, Err(RecvTimeoutError::Timeout), "it did not wait");
    });
    sim
}

#[test]
fn threads_commit_one_after_the_other() {
    let sim = waits_for_a_commit(|store| {
        let id = TransactionId { app: "other".into(), query: None, version: 3 };
        let transaction = Transaction { job: "job-2".into(), id: Some(id) };
        let mut stage = store.stage("job-2", 0, 1).unwrap();
        stage.push(&event("of another thread")).unwrap();
        let parts = [stage.finish().unwrap()];
        assert_eq!(store.commit_staged(&transaction, &parts).unwrap().records, 1);
    });
    let reader = open(&sim, 40, Mode::Read).unwrap();
    let noted = reader.transactions().unwrap();
    let noted: Vec<_> = noted.iter().map(|(app, last)| (app.as_str(), last.version)).collect();
    assert_eq!(noted, [("etl", 1), ("other", 3)]);
    assert_eq!(read(&reader).len(), KIND.all().len() + 1);
}

/// Another process opens the store right after the close, and may begin a commit itself.
#[test]
fn a_close_waits_for_a_commit() {
    let sim = waits_for_a_commit(|store| store.close().unwrap());
    assert_eq!(KIND.read(&sim), KIND.all());
}
