//! Passes the crate's log lines to Python's `logging`.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Whether the interpreter ends: its modules vanish, and a thread may wait for the GIL forever.
static ENDED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// See [`raised`].
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

struct Bridge;

impl Log for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Info
    }

    /// The syncing thread calls this without the GIL. A logger's exception must not fail a sync.
    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let ended = ENDED.load(Ordering::Acquire);
        let is_logged = !ended && Python::try_attach(|py| log_in_python(py, record)).is_some();
        // As Python does with a warning without a handler.
        if !is_logged && record.level() <= Level::Warn {
            let _ = writeln!(io::stderr(), "deedbook: {}", record.args());
        }
    }

    fn flush(&self) {}
}

fn log_in_python(py: Python<'_>, record: &Record<'_>) {
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
        Err(raised) if is_of_a_signal(py, &raised) => RAISED.set(Some(raised)),
        Err(raised) => raised.write_unraisable(py, None),
        Ok(_) => {}
    }
}

/// Whether a signal's handler raised this: Ctrl-C, or a program's exception for SIGTERM. Python
/// runs handlers in the main thread, between any two instructions, also in a logger.
fn is_of_a_signal(py: Python<'_>, raised: &PyErr) -> bool {
    let is_main = || -> PyResult<bool> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?;
        threading.call_method0("current_thread").map(|current| current.is(&main))
    };
    !raised.is_instance_of::<PyException>(py) && is_main().unwrap_or(false)
}

/// Take the exception of a signal from while the core logged a line. The core's caller raises it.
pub fn raised() -> Option<PyErr> {
    RAISED.take()
}

/// Raise the exception of an earlier signal, or of a signal from while the core logged a line.
pub fn check_signals(py: Python<'_>) -> PyResult<()> {
    raised().map_or_else(|| py.check_signals(), Err)
}

#[pyfunction]
fn ended() {
    ENDED.store(true, Ordering::Release);
}

/// Once per process; an existing logger stays.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if log::set_logger(&Bridge).is_ok() {
        log::set_max_level(LevelFilter::Info);
        // atexit runs backwards: functions registered earlier run later, and may log.
        let atexit = module.py().import("atexit")?;
        atexit.call_method1("register", (wrap_pyfunction!(ended, module)?,))?;
    }
    Ok(())
}
