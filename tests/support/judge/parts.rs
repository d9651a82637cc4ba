//! A check shared by several readers gives the report of a single reader.

use crate::support::judge::Case;
use crate::support::prelude::*;

impl Case<'_> {
    /// In parts of the damaged log, and in parts of the log before the damage.
    pub fn shared(&self) {
        let Specimen { format, how, .. } = *self.specimen;
        let alone = format.verify_rest(&self.at, how, &[]).unwrap();
        let mut all = vec![format.read(&self.at).unwrap().parts(1).unwrap()];
        all.extend([1, 3].map(|records| self.specimen.parts(records)));
        for parts in all {
            let shared = share(format, &self.at, how, &parts).unwrap();
            assert_eq!(shared, alone, "{}: shared by {parts:#?}", (self.what)());
        }
    }
}

/// All parts but the last are checked separately; the report covers the rest.
pub fn share(format: &dyn Format, at: &At, how: How, parts: &[Split]) -> Result<VerifyReport> {
    let all_but_last = parts.split_last().map_or(&[][..], |(_, before)| before);
    let checked = all_but_last.iter().map(|part| format.check_part(part, at, how));
    let intact = checked.take_while(|part| part.as_ref().is_ok_and(|part| part.ok())).count();
    format.verify_rest(at, how, &parts[..intact])
}

impl Specimen<'_> {
    pub fn parts(&self, records: usize) -> Vec<Split> {
        let whole = self.part.get_or_init(|| {
            let at = At::memory(&self.files.restore(), self.path());
            let mut parts = self.format.read(&at).unwrap().parts(1 << 40).unwrap();
            assert_eq!(parts.len(), 1, "{parts:?}");
            parts.remove(0)
        });
        assert_eq!(whole.records, Some(self.events.len() as u64));
        let part = |edges: &[usize]| Split {
            ordinal: whole.ordinal.map(|first| {
                first + self.edges.iter().position(|edge| *edge == edges[0]).unwrap() as u64
            }),
            records: Some(edges.len() as u64 - 1),
            offset: edges[0] as u64,
            end: *edges.last().unwrap() as u64,
            ..whole.clone()
        };
        let begins = (0..self.events.len()).step_by(records);
        begins.map(|i| part(&self.edges[i..self.edges.len().min(i + records + 1)])).collect()
    }
}
