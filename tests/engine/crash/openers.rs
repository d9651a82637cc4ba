//! Two programs open one log, in turn.

use super::*;

for_every_subject! {
    /// One program opens the log and reads before taking the lock; another program appends and
    /// closes in between. The first program cut off the acknowledged records of the second.
    an_overtaken_opening_keeps_the_records_of_another,
    /// A reader that looked again took another log's end from a foreign mark for durable, or for lost.
    readers_ignore_the_mark_of_another_log,
}

#[derive(Default)]
struct Other {
    log: Option<Box<dyn Log>>,
    /// The acknowledged records of the other program; `None` after a refused open.
    acknowledged: Option<Vec<Record>>,
}

impl Other {
    fn comes_in_between(&mut self, subject: &Subject, disk: &Sim, closes: bool) {
        match subject.open(disk, ALWAYS) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Locked, "{error:?}"),
            Ok(log) => {
                log.append(3, b"from the other one").unwrap();
                self.acknowledged = Some(log.read_all().unwrap());
                match closes {
                    true => log.close().unwrap(),
                    false => self.log = Some(log),
                }
            }
        }
    }
}

fn an_overtaken_opening_keeps_the_records_of_another(subject: &Subject) {
    let acknowledged = How { recovery: Recovery::Acknowledged, ..ALWAYS };
    for (start, how) in beginnings(subject) {
        for closes in [true, false] {
            for how in [how, acknowledged] {
                for at in 1.. {
                    let disk = start.kill();
                    if !overtaken(subject, &disk, at, closes, how) {
                        assert!(at > 5, "{at} calls only");
                        break;
                    }
                }
            }
        }
    }
}

/// No log, a closed log, a log whose writer died and left a torn record, and a block of the index.
fn beginnings(subject: &Subject) -> Vec<(Sim, How)> {
    let nested = subject.nested();
    let mut beginnings = vec![(Sim::new(), ALWAYS)];
    // Small segments would make hundreds of files for one block.
    let block = if subject.steps.blocks.0.is_empty() { "Ks1" } else { "Hs1" };
    for (config, steps) in [("always", "1br"), ("manual", "1bsL>"), ("manual", block)] {
        let config = Config::named(config);
        let mut run = Run::new(subject, config, &nested);
        run.open().unwrap();
        steps.chars().for_each(|op| run.apply(op).unwrap());
        let crashes = run.disk.crashes();
        beginnings.push((crashes.state_by_chance(3), ALWAYS));
        beginnings.push((run.disk.kill(), MANUAL));
    }
    beginnings
}

/// Another program opens the log and appends before call number `at`. Returns whether the opening got there.
fn overtaken(subject: &Subject, disk: &Sim, at: u64, closes: bool, how: How) -> bool {
    let exists = subject.read(&disk.kill()).is_ok();
    let (turn, turns) = channel();
    let (go_on, goes_on) = channel::<()>();
    let hook = {
        let (calls, turn, goes_on) = (AtomicU64::new(0), turn.clone(), Mutex::new(goes_on));
        move |seen| {
            if seen == Seen::Calling && calls.fetch_add(1, Ordering::Relaxed) + 1 == at {
                let _ = turn.send(true);
                let _ = goes_on.lock().unwrap().recv();
            }
        }
    };
    let storage = watched(Arc::new(disk.clone()), hook);
    let mut others = Other::default();
    let mut reached = false;
    let opened = std::thread::scope(|scope| {
        let opener = scope.spawn(move || {
            let opened = subject.open_on(storage, how);
            let _ = turn.send(false);
            opened
        });
        reached = turns.recv().unwrap();
        if reached {
            others.comes_in_between(subject, disk, closes);
        }
        drop(go_on);
        opener.join().unwrap()
    });
    let Other { log: others, acknowledged } = others;
    let there = format!("call {at}, closes: {closes}, {how:?}");
    match opened {
        Err(error) => {
            assert!(acknowledged.is_some(), "{there}: {error:?}");
            // If there was no log at first, the other program may have created one after the check.
            let expected = !exists || error.kind() == ErrorKind::Locked;
            assert!(closes || expected, "{there}: {error:?}");
        }
        Ok(log) => {
            assert!(others.is_none(), "{there}: two writers");
            let got = log.read_all().unwrap();
            if let Some(acknowledged) = &acknowledged {
                assert_eq!(got, *acknowledged, "{there}");
            }
            log.append(4, b"goes on").unwrap();
            let goes_on = log.read_all().unwrap();
            assert_eq!(goes_on[..got.len()], got, "{there}");
            log.close().unwrap();
            assert_eq!(log_of(subject, disk), goes_on, "{there}");
            return reached;
        }
    }
    drop(others);
    assert_eq!(Some(log_of(subject, disk)), acknowledged, "{there}");
    true
}

fn readers_ignore_the_mark_of_another_log(subject: &Subject) {
    let written = |sizes: &[usize], closes: bool| {
        let disk = Sim::new();
        let log = subject.open(&disk, MANUAL).unwrap();
        for (n, size) in sizes.iter().enumerate() {
            log.append(n as u32, &vec![sizes.len() as u8; *size]).unwrap();
        }
        match closes {
            true => log.close().unwrap(),
            false => log.sync().unwrap(),
        }
        disk.kill()
    };
    // Shorter and longer logs, with records that end where others begin. The marks come from a
    // writer that closed its log, and vouch for no other length, and from a writer at work.
    let sizes = [&[30, 5][..], &[30, 40, 50, 60, 70], &[5, 5, 5, 5], &[10, 20]];
    for (sizes, closes) in sizes.into_iter().flat_map(|sizes| [(sizes, true), (sizes, false)]) {
        let (disk, foreign) = (written(&[10, 20, 30], true), written(sizes, closes));
        let reader = subject.read(&disk).unwrap();
        let records = reader.read_all().unwrap();
        let known = reader.durable().unwrap();
        let mark: PathBuf = subject.sidecar().join("mark");
        let bytes = read_file(&foreign, &mark);
        let file = disk.open(&mark, Access::Write).unwrap();
        file.set_len(0).unwrap();
        file.write_at(&bytes, 0).unwrap();
        for _ in 0..2 {
            reader.refresh().unwrap();
            let durable = reader.durable().unwrap();
            assert!(durable.is_none() || durable == known, "{sizes:?}: {durable:?}");
            assert_eq!(reader.read_all().unwrap(), records);
        }
    }
}
