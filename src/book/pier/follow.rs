//! Reading deeds as they are appended, on into the epochs that begin meanwhile.

use std::time::{Duration, Instant};

use super::Pier;
use super::part::of_part;
use super::places::Named;
use crate::book::format::BookFormat;
use crate::book::{self, Deed};
use crate::error::{ErrorKind, Result};
use crate::log::Format;
use crate::mode::Mode;

/// Between two looks for a new epoch.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Follows a pier from a given event on.
#[derive(Debug)]
pub struct Follow {
    pier: Pier,
    /// The first event to give.
    start: u64,
    /// The last event given.
    given: Option<u64>,
    /// The followed epoch, by a handle of its own: a roll closes the writer's handle.
    number: u64,
    follow: book::Follow,
}

impl Pier {
    /// Follow the pier from event `start` on (`None` or 0: from the first event). If `start` was dropped,
    /// [`Follow::next`] fails.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn follow(&self, start: Option<u64>) -> Result<Follow> {
        let start = start.unwrap_or(0);
        let begin = || -> Result<Follow> {
            let (number, dir) = self.with(|parts| {
                let found = parts.iter().rev().find(|part| part.number < start).or(parts.first());
                let named = found.map(|part| (part.number, part.dir.clone()));
                Ok(named.unwrap_or((0, self.shared.dir.clone())))
            })?;
            let follow = self.follow_epoch(&Named { number, dir }, start)?;
            Ok(Follow { pier: self.clone(), start, given: None, number, follow })
        };
        match begin() {
            // A writer may have dropped the epoch since this handle looked.
            Err(error) if error.kind() == ErrorKind::Missing => {
                self.find_more()?;
                begin()
            }
            begun => begun,
        }
    }

    fn follow_epoch(&self, named: &Named, start: u64) -> Result<book::Follow> {
        of_part(self.options()).open(&named.dir, Mode::Read)?.follow(Some(start))
    }
}

impl Follow {
    /// The next deed, after waiting for at most `wait`. `None`: not yet. As
    /// [`Follow::next`](crate::Follow::next).
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Deed>> {
        let deadline = Instant::now().checked_add(wait);
        loop {
            self.pier.shared.usable()?;
            let now = Instant::now();
            let left = deadline.map_or(LOOK_EVERY, |at| at.saturating_duration_since(now));
            if let Some(deed) = self.within(left.min(LOOK_EVERY))? {
                return Ok(Some(deed));
            }
            if let Some(after) = self.pier.after(self.number)? {
                // The epoch is finished by now, and may have got more deeds before.
                if let Some(deed) = self.within(Duration::ZERO)? {
                    return Ok(Some(deed));
                }
                self.check_not_dropped(after.number)?;
                match self.pier.follow_epoch(&after, self.start) {
                    // A writer may have dropped the epoch since this handle looked.
                    Err(error) if error.kind() == ErrorKind::Missing => {
                        self.pier.find_more()?;
                        if self.pier.after(self.number)?.as_ref() == Some(&after) {
                            return Err(error);
                        }
                    }
                    follow => (self.follow, self.number) = (follow?, after.number),
                }
            } else if left.is_zero() {
                return Ok(None);
            }
        }
    }

    fn within(&mut self, wait: Duration) -> Result<Option<Deed>> {
        // A pier may begin after the start.
        self.check_not_dropped(self.number)?;
        let deed = self.follow.next(wait)?.map(BookFormat::own);
        if let Some(deed) = &deed {
            self.given = deed.event.or(self.given);
        }
        Ok(deed)
    }

    /// Refuse to pass over dropped events that the follower has not given. All events up to
    /// `number`, the last event before an epoch, must have been given, or lie before the start.
    fn check_not_dropped(&self, number: u64) -> Result<()> {
        match self.given.or(self.start.checked_sub(1)) {
            Some(last) if last < number => {
                let message = format!("the events after {last}, up to {number}, were dropped");
                Err(self.pier.shared.error(ErrorKind::OutOfRange, message))
            }
            _ => Ok(()),
        }
    }
}
