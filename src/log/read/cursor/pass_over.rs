//! A cursor at damage: raises an error, or notes the damage and continues after it.

use super::{Cursor, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::log::format::{Format, Stepped};
use crate::log::look::beyond_limit::{beyond_limit_advice, is_beyond_limit};
use crate::log::notice::corrupt;
use crate::log::resync::{After, Resync, Stretch, next_inside, resync};
use crate::scan::{Damage, OnCorrupt, Stop};

impl<F: Format> Cursor<F> {
    /// Go on after a place where no record can be read, or raise its damage.
    pub(super) fn pass_over(&mut self, offset: u64, why: &Stop) -> Result<()> {
        let end = self.scanner.end();
        let name = F::name_of(self.ordinal, offset);
        let mut found = self.resync(offset, why, &name).map_err(|e| self.read_error(e))?;
        if found.next.is_none() {
            found.damage = found.damage.map(|damage| self.counted(damage));
        }
        if self.on_corrupt == OnCorrupt::Raise {
            self.finished = true;
            let damage = found.damage.unwrap_or_else(|| Damage {
                offset,
                end,
                reason: format!("{name}: {}", why.reason()),
                first_lost: self.ordinal.filter(|_| F::NUMBERED),
                ..Damage::default()
            });
            return Err(self.corrupt(&damage));
        }
        if let (Some(after), None) = (self.resume, found.next) {
            // Nothing more inside the damaged record.
            if after.is_end {
                self.damages.extend(found.damage);
                self.log_passed_over();
            }
            self.resume();
            return Ok(());
        }
        seeded!(self.damages.extend(found.damage), "damage-not-noted" => ());
        self.log_passed_over();
        self.resume = found.after.or(self.resume);
        self.inside = found.inside;
        match found.next {
            Some((next, ordinal)) => {
                let proved = |damage: &Damage| damage.next_intact.is_none() || damage.next_proved;
                self.proved = self.resume.is_none() && self.damages.last().is_none_or(proved);
                self.scanner.seek(next);
                self.ordinal = ordinal;
            }
            None => {
                self.finish()?;
            }
        }
        Ok(())
    }

    /// Go on after the damaged record that a rescue read inside.
    pub(super) fn resume(&mut self) {
        if let Some(After { place: (end, ordinal), proved, .. }) = self.resume.take() {
            self.scanner.seek(end);
            self.ordinal = ordinal;
            (self.proved, self.inside) = (proved, !proved);
        }
    }

    /// At the end of the range, report the damage that no record showed.
    pub(super) fn finish(&mut self) -> Result<Option<Stepped<F>>> {
        self.finished = true;
        // A record at a cut end, and the missing end after the record, are one damage.
        let shown = |damage: &Damage| {
            let touches = |seen: &Damage| (seen.offset..=seen.end).contains(&damage.offset);
            self.damages.iter().any(touches)
        };
        let trailing = self.trailing.clone().filter(|damage| !shown(damage));
        match trailing.map(|damage| self.counted(damage)) {
            None => Ok(None),
            Some(damage) if self.on_corrupt == OnCorrupt::Raise => Err(self.corrupt(&damage)),
            Some(damage) => {
                self.damages.push(damage);
                self.log_passed_over();
                Ok(None)
            }
        }
    }

    /// Damage at the end of the range. If the end is missing, and the number of the record there is
    /// known, count the records lost from here to there.
    fn counted(&self, damage: Damage) -> Damage {
        let Some(missing) = self.trailing.as_ref() else { return damage };
        let end = self.source.evidence.known_end_after(missing.end.saturating_sub(1));
        let end = end.filter(|end| end.offset == missing.end).and_then(|end| end.ordinal);
        let lost = end.zip(self.ordinal).and_then(|(end, at)| end.checked_sub(at));
        let lost = lost.filter(|&lost| lost > 0);
        let (Some(lost), None) = (lost, damage.records_lost) else { return damage };
        let plural = if lost == 1 { " is" } else { "s are" };
        Damage {
            first_lost: self.ordinal.filter(|_| F::NUMBERED),
            records_lost: Some(lost),
            reason: format!("{}; {lost} acknowledged {}{plural} lost", damage.reason, F::NOUN),
            ..damage
        }
    }

    fn resync(&mut self, at: u64, why: &Stop, name: &str) -> std::io::Result<Resync> {
        let Source { file, format, framing, evidence, .. } = &self.source;
        let (file, end) = (&**file, self.resume.map_or(self.scanner.end(), |after| after.place.0));
        let beyond_limit = is_beyond_limit(format, file, at, why, end)?;
        let (framing, ordinal, rescue) = (*framing, self.ordinal, self.rescue);
        let stretch = Stretch { file, framing, at, end, ordinal, rescue };
        let mut found = match self.resume {
            Some(_) => next_inside(stretch, why, name, &mut self.learnt)?,
            None => resync(stretch, why, name, evidence, beyond_limit, &mut self.learnt)?,
        };
        if let Some(damage) = &mut found.damage {
            if beyond_limit {
                damage.reason.push_str(&beyond_limit_advice::<F>());
            }
            if !F::NUMBERED {
                damage.first_lost = None;
            }
        }
        Ok(found)
    }

    fn corrupt(&self, damage: &Damage) -> Error {
        corrupt::<F>(&self.source.path, damage, ErrorKind::Corrupt)
    }
}
