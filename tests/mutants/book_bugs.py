"""The seeded bugs that only Book can have: its codec, its header, its numbers."""

from __future__ import annotations

from bug import Bug
from rows import ADVICE, FLIP, HEAD, LENGTH, OVERFLOW, PLACE, POWER, REPLACED

FORMAT = "src/book/format.rs"
CODEC = "src/book/codec.rs"
RESYNC = "src/log/resync/mod.rs"
SEARCH_AFTER = "src/log/resync/search.rs"
LENGTHS = "src/log/resync/lengths.rs"
CHAIN = "src/log/resync/chain.rs"

BOOK_BUGS = [
    Bug(
        "book: the length trailer is not compared",
        LENGTH,
        CODEC,
        "        if trailer != len {\n",
        "        if false && trailer != len {\n",
        [("engine::answers", "matrix::a_record_that_holds_records")],
    ),
    Bug(
        "book: checksums are not compared",
        FLIP,
        CODEC,
        "stored.filter(|&stored| stored != crc) {\n",
        "stored.filter(|&stored| stored != crc && false) {\n",
        [("engine::answers", "matrix::a_record_that_holds_records")],
    ),
    Bug(
        "book: the limit of a length is not checked",
        LENGTH,
        CODEC,
        "        if len > self.deed_bytes_max {\n",
        "        if false && len > self.deed_bytes_max {\n",
        [("lib", "codec")],
    ),
    Bug(
        "book: the header follows the deeds",
        POWER,
        "src/log/append.rs",
        "        if state.extent.records == 0 {\n            // Before the records",
        "        if state.extent.records == u64::MAX {\n            // Before the records",
        [("book::golden", "golden_logs_are_written")],
    ),
    Bug(
        "book: gaps in the event numbers are accepted",
        OVERFLOW,
        "src/log/append.rs",
        "wanted.ordinal.filter(|&wanted| wanted != ordinal)",
        "wanted.ordinal.filter(|&wanted| wanted < ordinal)",
        [("book::numbers", "a_batch_that_leaves_a_gap")],
    ),
    Bug(
        "book: a missing log is created again below its mark",
        REPLACED,
        FORMAT,
        "load_mark(options, place)?.0.filter(|mark| mark.records > 0) {\n",
        "load_mark(options, place)?.0.filter(|mark| mark.records == u64::MAX) {\n",
        [("engine::log", "sidecar::a_log_removed_under")],
    ),
    Bug(
        "book: a header that contradicts the mark is believed",
        HEAD,
        FORMAT,
        "        if header.damage.is_none() && header.first != first {\n",
        "        if header.damage.is_none() && header.first == u64::MAX {\n",
        [("book::regressions", "verify_calls_a_damaged_first")],
    ),
    Bug(
        "book: a first number of 0 before deeds is believed",
        HEAD,
        FORMAT,
        "    } else if header.first == 0 && damaged {\n",
        "    } else if header.first == u64::MAX && damaged {\n",
        [("book::limits", "deeds_after_a_header")],
    ),
    Bug(
        "book: numbers in a header overflow",
        OVERFLOW,
        FORMAT,
        "    } else if header.first.checked_add(records).is_none() {\n",
        "    } else if header.first.checked_add(records) == Some(0) {\n",
        [("book::limits", "a_header_whose_numbers")],
    ),
    Bug(
        "book: a header that contradicts the directory's name is believed",
        HEAD,
        "src/book/epoch.rs",
        "    (named.checked_add(1) != Some(first)).then(",
        "    (named.checked_add(1) == Some(u64::MAX)).then(",
        [("book::numbers", "a_log_under_a_wrong_name")],
    ),
    Bug(
        "book: other bytes are taken for a torn log",
        PLACE,
        FORMAT,
        "            refuse_other_bytes(log, &findings)?;\n",
        "            let _ = refuse_other_bytes;\n",
        [("texts::error_texts", "every_error")],
    ),
    Bug(
        "book: the length after a damaged record is not asked for its begin",
        FLIP,
        SEARCH_AFTER,
        "        if let Some(offset) = self.end_by_trailer(at)? {\n            return self.after",
        "        if let Some(offset) = self.end_by_trailer(at)?.filter(|_| self.stretch.rescue) {\n"
        "            return self.after",
        [("book::regressions", "a_damaged_length_that_points")],
    ),
    Bug(
        "book: a damaged length that meets the next one's hides it",
        FLIP,
        SEARCH_AFTER,
        "        if !self.parses_at(end)?\n",
        "        if end == 0\n            && !self.parses_at(end)?\n",
        [("book::regressions", "a_damaged_length_that_meets")],
    ),
    Bug(
        "book: zeros are a trailer",
        FLIP,
        CODEC,
        "        self.claimed_len(trailer)\n",
        "        Some(u64_at(trailer, 0)?.saturating_add(self.layout.framing_bytes()))\n",
        [("book::regressions", "zeros_are_no_trailer")],
    ),
    Bug(
        "book: a mark of an older version begins at byte 0",
        ADVICE,
        FORMAT,
        "    let start = |mark: Mark| if mark.start == 0 { HEADER_BYTES } else { mark.start };\n",
        "    let start = |mark: Mark| mark.start;\n",
        [("book::recovery", "a_mark_that_does_not_say")],
    ),
]
