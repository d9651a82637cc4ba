//! What the crate tells the `log` facade, to Python's `logging`.

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

struct Bridge;

impl Log for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Info
    }

    /// The thread that syncs calls it without the GIL. A logger that raises must not fail a sync.
    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        Python::attach(|py| {
            let logged = py.import("logging").and_then(|logging| {
                let logger = logging.call_method1("getLogger", (record.target(),))?;
                let name = match record.level() {
                    Level::Error => "error",
                    Level::Warn => "warning",
                    _ => "info",
                };
                logger.call_method1(name, ("%s", record.args().to_string()))
            });
            match logged {
                // Python's code takes signals. Ctrl-C is for the caller of the core, not for a line.
                Err(raised) if raised.is_instance_of::<PyKeyboardInterrupt>(py) => interrupt(py),
                Err(raised) => raised.write_unraisable(py, None),
                Ok(_) => {}
            }
        });
    }

    fn flush(&self) {}
}

/// Have the next check for signals raise `KeyboardInterrupt`.
fn interrupt(py: Python<'_>) {
    let asked = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
    if let Err(raised) = asked {
        raised.write_unraisable(py, None);
    }
}

/// Once per process; another logger that is there already stays.
pub fn install() {
    if log::set_logger(&Bridge).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}
