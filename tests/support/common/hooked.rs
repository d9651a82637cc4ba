//! Files in memory: a test watches the calls, and fails them in the middle.

use crate::support::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Allocate,
    Read,
    Write(usize),
    Half,
    Sync,
}

type Watch = dyn Fn(Event) -> bool + Send + Sync;

#[derive(Clone, Default)]
pub struct Hook(Arc<Mutex<Option<Arc<Watch>>>>);

/// Files in memory, with a function before each of these calls. `true` makes the second half of a write fail.
pub type Hooked = Around<Hook>;

impl Default for Hooked {
    fn default() -> Self {
        Self::on(Memory::new(), Hook::default())
    }
}

impl Hooked {
    pub fn watch(&self, watch: impl Fn(Event) -> bool + Send + Sync + 'static) {
        *self.by.0.lock().unwrap() = Some(Arc::new(watch));
    }

    pub fn unwatch(&self) {
        *self.by.0.lock().unwrap() = None;
    }
}

impl Hook {
    fn ask(&self, event: Event) -> bool {
        let watch = self.0.lock().unwrap().clone();
        watch.is_some_and(|watch| watch(event))
    }
}

impl Between for Hook {
    fn before(&self, call: Call, _path: &Path) -> io::Result<()> {
        match call {
            Call::Read => drop(self.ask(Event::Read)),
            Call::Allocate => drop(self.ask(Event::Allocate)),
            Call::Sync => drop(self.ask(Event::Sync)),
            _ => {}
        }
        Ok(())
    }

    fn write(&self, file: &dyn File, _path: &Path, buf: &[u8], offset: u64) -> io::Result<usize> {
        if !self.ask(Event::Write(buf.len())) {
            return file.write_at(buf, offset);
        }
        file.write_at(&buf[..buf.len() / 2], offset)?;
        self.ask(Event::Half);
        Err(io::ErrorKind::StorageFull.into())
    }
}
