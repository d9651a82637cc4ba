"""The seeded bugs of payloads that are read, written and checked in parts."""

from __future__ import annotations

from bug import Bug
from rows import FLIP, FULL, OVERFLOW

PAYLOAD = "src/log/payload.rs"
SCAN = "src/scan.rs"

PART_BUGS = [
    Bug(
        "parts: the last part is given before the checksum is compared",
        FLIP,
        PAYLOAD,
        "        if want > 0 && self.at + want as u64 == self.end {\n",
        "        if want == 0 && self.at + want as u64 == self.end {\n",
        [("book::in_parts", "the_last_part")],
    ),
    Bug(
        "parts: the checksum of a long record is not compared",
        FLIP,
        SCAN,
        "    Ok(Some(parse.parse_around(&head, &tail, sum)))\n",
        "    Ok(Some(parse.by_lengths().parse_around(&head, &tail, sum)))\n",
        [("book::in_parts", "the_last_part")],
    ),
    Bug(
        "parts: a long record that is only checked is held",
        OVERFLOW,
        SCAN,
        "        Self { held_max: HELD_BYTES_MAX, ..Self::new(parse, start, end) }\n",
        "        Self { held_max: u64::MAX, ..Self::new(parse, start, end) }\n",
        [("process::parts_memory", "")],
    ),
    Bug(
        "parts: a payload that ends early is filled up",
        FULL,
        PAYLOAD,
        "                    Ok(0) => {\n",
        "                    Ok(0) if read > 0 => return Ok(()),\n                    Ok(0) => {\n",
        [("book::in_parts", "a_payload_that_its_reader")],
    ),
    Bug(
        "parts: a size near 2^64 passes the limit",
        OVERFLOW,
        "src/book/codec.rs",
        "        let len = (payload_len as u64).saturating_add(MUG_BYTES);\n",
        "        let len = (payload_len as u64).wrapping_add(MUG_BYTES);\n",
        [("texts::error_texts", "every_error")],
    ),
    Bug(
        "parts: a conversion compares the lengths of long deeds only",
        FLIP,
        "src/book/convert.rs",
        "                        true => same_parts(book.jam_at(at)?, copy.jam_at(at_there)?)?,\n",
        "                        true => true,\n",
        [("book::convert", "a_copy_that_differs")],
    ),
]
