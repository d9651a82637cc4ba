//! Commits of staged records, which a backup has whole or not at all.

use super::*;

const KINDS: [&str; 4] = ["packed", "slots", "segments", "single"];
const STAGED: [&[u8]; 3] = [b"staged 1", b"staged 2", b"staged 3"];

fn book_at(storage: &Arc<dyn Storage>, log: &str, mode: Mode) -> Book {
    book::Options::new().storage(storage.clone()).open(log, mode).unwrap()
}

fn wal_at(storage: &Arc<dyn Storage>, log: &str, mode: Mode) -> Wal {
    wal::Options::new().storage(storage.clone()).open(log, mode).unwrap()
}

/// Another process commits three records, of an application or of none.
fn commit(storage: &Arc<dyn Storage>, kind: &Kind, app: Option<&str>) {
    let id = app.map(|app| TransactionId { app: app.into(), query: None, version: 0 });
    let transaction = Transaction { job: "job".into(), id };
    macro_rules! commit_to {
        ($log:expr, $($tag:expr)?) => {{
            let log = $log;
            let mut stage = log.stage("job", 0, 1, None).unwrap();
            STAGED.iter().for_each(|payload| stage.push($($tag,)? payload).unwrap());
            let part = stage.finish().unwrap();
            log.commit_staged(&transaction, &[part]).unwrap();
            log.close().unwrap();
        }};
    }
    match ["packed", "slots"].contains(&kind.name) {
        true => commit_to!(book_at(storage, LOG, Mode::Append), 7),
        false => commit_to!(wal_at(storage, LOG, Mode::Append),),
    }
}

/// How many of the staged records the backup has, and whether it knows the application.
fn committed(storage: &Arc<dyn Storage>, kind: &Kind) -> (usize, bool) {
    let found = (kind.read)(storage, Path::new(COPY)).unwrap();
    let noted = match ["packed", "slots"].contains(&kind.name) {
        true => book_at(storage, COPY, Mode::Append).transactions().unwrap(),
        false => wal_at(storage, COPY, Mode::Append).transactions().unwrap(),
    };
    let staged = found.iter().filter(|one| STAGED.contains(&&one[..])).count();
    (staged, noted.contains_key("app"))
}

// Promise: backup-beside.
#[test]
fn a_backup_copies_commits_whole_or_never() {
    for kind in KINDS.map(Kind::named) {
        for app in [Some("app"), None] {
            let (mut at, mut calls, mut whole) = (1, u64::MAX, 0);
            while at <= calls {
                let sim = disk();
                write(&sim, &kind, 0);
                let writer = on(&sim);
                let act = move || commit(&writer, &kind, app);
                let (storage, count) = before_call(on(&sim), at, act);
                back_up(storage).unwrap_or_else(|e| panic!("{}, call {at}: {e:?}", kind.name));
                calls = count.load(Ordering::Relaxed);
                let found = committed(&on(&sim), &kind);
                let is_whole = found == (3, app.is_some());
                assert!(is_whole || found == (0, false), "{}, call {at}: {found:?}", kind.name);
                whole += u64::from(is_whole);
                back_up(on(&sim)).unwrap();
                assert_eq!(committed(&on(&sim), &kind), (3, app.is_some()), "{}, {at}", kind.name);
                at += 1;
            }
            assert!(whole > 0 && whole < at, "{}: {whole} of {at}", kind.name);
        }
    }
}

#[test]
fn a_backup_copies_or_refuses_an_unfinished_commit() {
    for kind in KINDS.map(Kind::named) {
        let sim = disk();
        write(&sim, &kind, 0);
        let sim = sim.kill();
        sim.record();
        commit(&on(&sim), &kind, None);
        let (mut refused, mut copied) = (0, 0);
        for moment in sim.recorded() {
            // The writer has died: nobody ends its commit.
            let moment = moment.kill();
            match back_up(on(&moment)) {
                Ok(_) => copied += 1,
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{}: {e:?}", kind.name);
                    assert!(e.to_string().contains("has begun and does not end"), "{e}");
                    refused += 1;
                }
            }
            if read(&moment, &kind, COPY).is_ok() {
                let (staged, _) = committed(&on(&moment), &kind);
                assert!([0, 3].contains(&staged), "{}: {staged}", kind.name);
            }
        }
        assert!(refused > 2 && copied > 2, "{}: {refused} refused, {copied} copied", kind.name);
    }
}
