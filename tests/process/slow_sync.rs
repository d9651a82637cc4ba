//! A sync that takes long is logged through the `log` facade, and no other. The logger is the
//! process's, so this is a binary of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deedbook::storage::Memory;
use deedbook::wal::{Mode, Options};

use crate::support::watch::{Seen, watched};

static LOGGED: Mutex<Vec<(log::Level, String, String)>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let logged = (record.level(), record.target().into(), record.args().to_string());
        LOGGED.lock().unwrap().push(logged);
    }
    fn flush(&self) {}
}

#[test]
fn slow_syncs_are_logged_and_fast_ones_are_not() {
    log::set_logger(&Logger).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let delay = Arc::new(AtomicU64::new(0));
    let hook = {
        let delay = delay.clone();
        move |seen| {
            if seen == Seen::Synced {
                std::thread::sleep(Duration::from_millis(delay.load(Ordering::Relaxed)));
            }
        }
    };
    let storage = watched(Arc::new(Memory::new()), hook);
    let slow_sync = Duration::from_millis(500);
    let options = Options::new().storage(storage).slow_sync(slow_sync);
    let wal = options.open("/log", Mode::Create).unwrap();
    wal.commit(b"fast").unwrap();
    assert_eq!(*LOGGED.lock().unwrap(), []);
    delay.store(600, Ordering::Relaxed);
    wal.commit(b"slow").unwrap();
    delay.store(0, Ordering::Relaxed);
    wal.commit(b"fast again").unwrap();
    wal.close().unwrap();
    let logged = LOGGED.lock().unwrap();
    assert_eq!(logged.len(), 1, "{logged:?}");
    let (level, target, text) = &logged[0];
    assert_eq!((*level, target.as_str()), (log::Level::Warn, "deedbook"));
    assert!(text.starts_with("slow sync: ") && text.contains("limit 500.0ms"), "{text}");
    assert!(text.contains("/log"), "{text}");
}
