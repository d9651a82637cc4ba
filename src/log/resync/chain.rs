//! Chains: the records from a candidate on. A chain proves its candidate if it reaches a border, or the end of the
//! data.

use std::io;

use super::learnt::Walked;
use super::search::{Chain, Search, Stretch};
use super::trailers::Trailers;
use crate::scan::framing::{Framing, FramingExt};
use crate::scan::{Scanned, Scanner};
use crate::storage::READ_BYTES;

impl<F: Framing> Search<'_, F> {
    /// Walk from a candidate until the candidate is proved or the chain breaks. The last chain already has the
    /// answer for a candidate on it.
    pub(super) fn follow(&mut self, candidate: u64) -> io::Result<Chain> {
        let goal = (self.border.map(|border| border.offset), self.data_end);
        let mut known = self.learnt.chain.take().filter(|chain| chain.goal == goal);
        if let Some(chain) = &mut known
            && self.catch_up(chain, candidate)?
        {
            let led_to = self.walk(chain, candidate);
            self.learnt.chain = known;
            return led_to;
        }
        let scanner = || Scanner::of_frames(self.stretch.framing, candidate, self.reach);
        let (tail, head) = (scanner(), scanner());
        let mut chain = Walked { tail, head, records: 0, is_broken: false, goal };
        let led_to = self.walk(&mut chain, candidate);
        // A chain inside a payload is short. Keep the longer chain.
        let led_further = |known: &Walked<F>| known.head.position() > chain.head.position();
        self.learnt.chain = Some(known.filter(led_further).unwrap_or(chain));
        led_to
    }

    /// Whether a candidate is on a chain. If so, the chain begins at the candidate from now on.
    fn catch_up(&mut self, chain: &mut Walked<F>, candidate: u64) -> io::Result<bool> {
        let mut trailers = std::mem::take(&mut self.learnt.trailers);
        let mut at = chain.tail.position();
        while at < candidate && at < chain.head.position() {
            if !self.step(&mut chain.tail, &mut trailers)? {
                break;
            }
            chain.records = chain.records.saturating_sub(1);
            at = chain.tail.position();
        }
        self.learnt.trailers = trailers;
        // The record that broke the chain may be intact by itself: it only does not follow the record before.
        let is_new = chain.is_broken && chain.records == 0;
        Ok(at == candidate && !is_new)
    }

    /// Step over an intact record, or over a damaged record with a length that leads on.
    fn step(&mut self, scanner: &mut Scanner<F>, trailers: &mut Trailers) -> io::Result<bool> {
        let at = scanner.position();
        match scanner.next(&self.near)? {
            Scanned::Record { .. } => {}
            Scanned::Stop { .. } => match self.own_end(trailers, at)? {
                Some(next) => scanner.seek(next),
                None => {
                    self.pay_for_claimed(at)?;
                    return Ok(false);
                }
            },
            Scanned::End => return Ok(false),
        }
        Ok(self.learnt.search.take(scanner.position() - at))
    }

    /// Take the bytes that were read of a damaged record from the budget. The walk
    /// read only the end of a long record, if the length is there.
    fn pay_for_claimed(&mut self, at: u64) -> io::Result<()> {
        let claimed = self.claimed_end(at)?.filter(|&end| end <= self.reach);
        let most = if F::TRAILER_BYTES > 0 { READ_BYTES as u64 } else { u64::MAX };
        self.learnt.search.take(claimed.map_or(0, |end| most.min(end - at)));
        Ok(())
    }

    fn walk(&mut self, chain: &mut Walked<F>, candidate: u64) -> io::Result<Chain> {
        let mut ahead = std::mem::take(&mut self.learnt.ahead);
        let led_to = self.walk_on(chain, &mut ahead, candidate);
        self.learnt.ahead = ahead;
        led_to
    }

    fn walk_on(
        &mut self,
        chain: &mut Walked<F>,
        ahead: &mut Trailers,
        candidate: u64,
    ) -> io::Result<Chain> {
        let Stretch { framing, at, .. } = self.stretch;
        let border = self.border.filter(|border| border.offset >= candidate);
        let largest = at.saturating_add(framing.record_bytes_max());
        loop {
            let (end, records) = (chain.head.position(), chain.records);
            let broken =
                Chain { proved: seeded!(false, "broken-chain-proves" => true), end, ordinal: None };
            if let Some(border) = border {
                if end == border.offset {
                    let ordinal = border.ordinal.and_then(|next| next.checked_sub(records));
                    return Ok(Chain { proved: true, ordinal, ..broken });
                }
                if end > border.offset {
                    return Ok(broken);
                }
            }
            if records > 0 && (end >= self.data_end || end > largest) {
                return Ok(Chain { proved: true, ..broken });
            }
            if chain.is_broken {
                return Ok(broken);
            }
            match self.step(&mut chain.head, ahead)? {
                true => chain.records += 1,
                false => chain.is_broken = true,
            }
        }
    }
}
