//! One damaged log, salvaged and opened for write.

use std::ops::Range;

use crate::support::formats::oracle::Piece;
use crate::support::judge::Case;
use crate::support::prelude::*;

impl Case<'_> {
    /// Salvage copies every record with a correct checksum, except in a torn tail.
    pub fn salvage(&self) {
        let (what, answer) = (self.what, self.answer);
        let Specimen { format, how, .. } = self.specimen;
        let to = format.path_in(Path::new("/copy"));
        self.memory.create_dir(to.parent().unwrap()).unwrap();
        let report = match format.salvage(&self.at, &to, *how) {
            Ok(report) => report,
            Err(error) => {
                assert!(self.is_nothing_known() || self.space.is_empty(), "{}: {error}", what());
                return;
            }
        };
        let copy = format.read(&self.at.other(to)).unwrap();
        let copied = copy.forward(None, None, false);
        assert!(copied.error.is_none(), "{}: {:?}", what(), copied.error);
        assert_eq!(report.records, copied.records.len() as u64, "{}", what());
        let runs: u64 = report.runs.iter().map(|run| run.records).sum();
        assert_eq!(report.records, runs, "{}: {report:?}", what());
        let copied = copied.events();
        let event = |piece: &Piece| {
            let (head, around) = (format.framing().head(), format.framing().around());
            let tag = match format.framing() {
                Framing::Book | Framing::Slots => {
                    u32::from_le_bytes(*self.space[piece.at + 8..].first_chunk().unwrap())
                }
                Framing::Wal | Framing::Toy => 0,
            };
            let payload = &self.space[piece.at + head..][..piece.len - around];
            (tag, payload.to_vec())
        };
        if answer.ambiguous {
            let missing = answer.pieces.iter().find(|piece| {
                self.specimen.edges.contains(&piece.at) && !copied.contains(&event(piece))
            });
            assert_eq!(missing, None, "{}: not salvaged", what());
            return;
        }
        let expected: Vec<_> = answer.pieces.iter().map(event).collect();
        let (got, all) = (copied.len(), expected.len());
        assert!(copied == expected, "{}: salvaged {got} of {all}: {report:?}", what());
        let mut pieces = answer.pieces.iter();
        for run in &report.runs {
            let first = pieces.next().unwrap();
            let at = (run.source_offset as usize, run.proved);
            assert_eq!(at, (first.at, first.proved), "{}: {report:?}", what());
            for _ in 1..run.records {
                pieces.next();
            }
        }
    }

    /// Opening for write refuses and changes nothing, or keeps every record that a reader returned before.
    pub fn opening(&self, before: &BTreeMap<PathBuf, Vec<u8>>) {
        let (what, answer, specimen) = (self.what, self.answer, self.specimen);
        let Specimen { format, how, .. } = specimen;
        let given = answer.given().count();
        match format.open(&self.at, Mode::Append, *how) {
            Err(error) => {
                let is_corrupt =
                    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LostRecords);
                // Only a repair removes a torn first record.
                let kinds = [ErrorKind::NotALog, ErrorKind::Corrupt];
                let is_foreign = self.is_nothing_known() && kinds.contains(&error.kind());
                let is_fair = is_foreign || is_corrupt && answer.verdict == "corrupt";
                assert!(is_fair, "{}: refused: {error:?}", what());
                let mut after = Files::unlocked(self.memory);
                after.retain(|path, _| before.contains_key(path));
                assert!(after == *before, "{}: refused, but changed", what());
            }
            Ok(log) => {
                let was_written = self.space[specimen.edges[0].min(self.space.len())..]
                    .iter()
                    .any(|&byte| byte != 0);
                // An intact head marker identifies a log, and so does a header with a magic.
                let has_magic = format.framing() == Framing::Toy;
                let has_marker = specimen.edges[0] > format.framing().start() || has_magic;
                let is_foreign = self.is_nothing_known() && was_written && !has_marker;
                assert!(!is_foreign, "{}: a foreign file", what());
                self.must_open(&*log);
                let kept = log.forward(None, None, true).records;
                // Opening moves the mark to the end. Without trailers, records proved only by the old end are no longer
                // proved.
                let end = specimen.evidence.acknowledged;
                let unproved = has_magic && end.is_some_and(|end| end < self.space.len());
                let are_all = kept.len() == given || unproved && kept.len() < given;
                assert!(answer.ambiguous || are_all, "{}: kept {kept:?}", what());
                if answer.verdict == "corrupt" {
                    return;
                }
                log.append(5, b"one more").unwrap();
                log.close().unwrap();
                let again = format.read(&self.at).unwrap().forward(None, None, false);
                assert!(again.error.is_none(), "{}: {:?}", what(), again.error);
                assert_eq!(again.records.len(), kept.len() + 1, "{}", what());
                assert_eq!(again.records[..kept.len()], kept, "{}", what());
            }
        }
    }

    /// Opening refuses visible losses of acknowledged records, and saves removed bytes.
    fn must_open(&self, log: &dyn Log) {
        let (what, answer) = (self.what, self.answer);
        let Specimen { evidence, edges, .. } = self.specimen;
        if let Some(acknowledged) = evidence.acknowledged {
            let end = edges.iter().position(|&edge| edge == acknowledged).unwrap();
            let last = end.checked_sub(1).map(|i| edges[i]..edges[i + 1]);
            let is_there = |last: Range<usize>| {
                self.space.get(last.clone()) == Some(&self.specimen.space[last])
            };
            assert!(last.is_none_or(is_there), "{}: opened, with its end lost", what());
        }
        let opened = log.recovery();
        if answer.verdict == "torn" {
            let data = self.space.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
            let torn = &self.space[answer.valid_end..data.max(answer.valid_end)];
            let saved = opened.saved_to.as_ref().map(|path| read_file(self.memory, path));
            let saved = saved.unwrap_or_default();
            // Segments after a gap have files of their own.
            let is_saved = match self.is_whole {
                true => saved.starts_with(torn),
                false => torn.starts_with(&saved) || saved.starts_with(torn),
            };
            assert!(is_saved, "{}: cut and not saved: {opened:?}", what());
        }
        if answer.verdict != "corrupt" {
            assert_eq!(opened.verdict.name(), answer.verdict, "{}: {opened:?}", what());
        }
    }
}
