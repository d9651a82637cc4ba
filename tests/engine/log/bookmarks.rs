//! Bookmarks: a reader continues at its last place, in the same log only.

use super::*;

fn at() -> At {
    At::memory(&Memory::new(), "/log")
}

fn records(log: &dyn Log, from: &Bookmark, to: &Bookmark) -> Vec<Record> {
    let parts = log.between(1 << 40, from, to, false).unwrap();
    parts.into_iter().flat_map(|part| part.records).collect()
}

fn made(format: &dyn Format, events: &[Event]) -> Box<dyn Log> {
    let at = at();
    format.create(&at, events).close().unwrap();
    format.read(&at).unwrap()
}

#[test]
fn a_step_takes_up_to_its_record_limit() {
    // Several blocks of the index, and records longer than a step of bytes.
    for (formats, count, len) in [(FORMATS, 40, 30), (LARGE, 300, 3000)] {
        for format in formats {
            let log = made(format, &plain(count, len));
            let all = log.forward(None, None, false).records;
            for step in [1, 7, 64, count as u64, u64::MAX] {
                let reach = Reach { records: Some(step), ..WRITTEN };
                let mut from = log.bookmark(None).unwrap();
                let mut given = 0;
                while given < count {
                    let next = log.advance(&from, &reach).unwrap();
                    let read = records(&*log, &from, &next);
                    assert_eq!(read.len(), (count - given).min(step as usize), "{step}");
                    assert_eq!(read[..], all[given..given + read.len()]);
                    given += read.len();
                    from = next;
                }
                assert_eq!(log.advance(&from, &reach).unwrap(), from);
            }
        }
    }
}

#[test]
fn a_step_takes_at_least_one_record() {
    for format in LARGE {
        let log = made(format, &plain(200, 1500));
        let end = log.end().unwrap();
        let ends: Vec<_> = {
            let all = log.forward(None, None, false).records;
            all.iter().skip(1).map(|record| record.offset).chain([end]).collect()
        };
        for bytes in [1, 1000, 1600, 5000, 100_000, u64::MAX] {
            let reach = Reach { bytes: Some(bytes), ..WRITTEN };
            let mut from = log.bookmark(None).unwrap();
            while from.offset < end {
                let next = log.advance(&from, &reach).unwrap();
                let limit = from.offset.saturating_add(bytes);
                let least = *ends.iter().find(|end| **end > from.offset).unwrap();
                let most = *ends.iter().rfind(|end| **end <= limit).unwrap_or(&least);
                assert_eq!(next.offset, most.max(least), "{bytes} from {}", from.offset);
                from = next;
            }
        }
        // Both limits: the lower one.
        let begin = log.bookmark(None).unwrap();
        let both = |records, bytes| Reach { records: Some(records), bytes: Some(bytes), ..WRITTEN };
        assert_eq!(log.advance(&begin, &both(1, u64::MAX)).unwrap().offset, ends[0]);
        assert_eq!(log.advance(&begin, &both(u64::MAX, 1)).unwrap().offset, ends[0]);
    }
}

#[test]
fn a_bookmark_continues_with_later_appends() {
    for format in FORMATS {
        let (at, events) = (at(), plain(60, 40));
        let writer = format.create(&at, &[]);
        let empty = format.read(&at).unwrap().bookmark(None).unwrap();
        let mut from = empty;
        for chunk in events.chunks(13) {
            writer.append_batch(chunk).unwrap();
            let log = format.read(&at).unwrap();
            let next = log.advance(&from, &WRITTEN).unwrap();
            let read = records(&*log, &from, &next);
            let payloads: Vec<_> = read.iter().map(|record| &record.bytes).collect();
            assert_eq!(payloads, chunk.iter().map(|(_, bytes)| bytes).collect::<Vec<_>>());
            assert_eq!(records(&*log, &from, &next), read);
            from = next;
        }
        assert_eq!(from, format.read(&at).unwrap().advance(&empty, &WRITTEN).unwrap());
    }
}

#[test]
fn bookmarks_stop_at_their_goal_or_durable_end() {
    for format in FORMATS {
        let (at, events) = (at(), plain(20, 40));
        let writer = format.create(&at, &events[..8]);
        writer.sync().unwrap();
        let durable = writer.end().unwrap();
        writer.append_batch(&events[8..]).unwrap();
        for log in [format.read(&at).unwrap(), writer.duplicate()] {
            let begin = log.bookmark(None).unwrap();
            assert_eq!(log.advance(&begin, &Reach::default()).unwrap().offset, durable);
            let written = log.advance(&begin, &WRITTEN).unwrap();
            assert_eq!(written.offset, writer.end().unwrap());
            assert_eq!(log.advance(&written, &Reach::default()).unwrap(), written);
            let first = Reach { records: Some(10), ..WRITTEN };
            let goal = log.advance(&begin, &first).unwrap();
            let reach = Reach { to: Some(goal), ..WRITTEN };
            for (from, to) in [(begin, goal), (goal, goal), (written, written)] {
                assert_eq!(log.advance(&from, &reach).unwrap(), to);
            }
        }
    }
}

/// Expects this error from another log at the path, for every bookmark of the first one.
fn refuses(format: &dyn Format, events: &[Event], other: &[Event], kind: ErrorKind) {
    let log = made(format, events);
    let begin = log.bookmark(None).unwrap();
    let end = log.advance(&begin, &WRITTEN).unwrap();
    let middle = log.advance(&begin, &Reach { records: Some(11), ..WRITTEN }).unwrap();
    let there = made(format, other);
    for bookmark in [middle, end] {
        let error = refused(there.advance(&bookmark, &WRITTEN), kind);
        assert!(error.to_string().contains(&bookmark.offset.to_string()), "{error}");
        refused(there.between(1 << 20, &begin, &bookmark, true), kind);
    }
}

#[test]
fn another_log_of_the_same_length_is_refused() {
    for format in FORMATS {
        let events = plain(30, 40);
        // Logs often begin alike.
        for alike in [0, 1] {
            let mut other = events.clone();
            for (_, bytes) in other.iter_mut().skip(alike) {
                bytes[7] ^= 0x55;
            }
            refuses(format, &events, &other, ErrorKind::NotALog);
            // Records of other lengths: no record begins at the bookmark.
            for others in [plain(200, 17), plain(4, 900)] {
                let other = [&events[..alike], &others].concat();
                refuses(format, &events, &other, ErrorKind::NotALog);
            }
        }
    }
}

#[test]
fn a_bookmark_tells_shorter_logs_from_other_logs() {
    for format in FORMATS {
        let (events, shorter) = (plain(30, 40), plain(5, 40));
        refuses(format, &events, &shorter, ErrorKind::OutOfRange);
        refuses(format, &events, &[], ErrorKind::OutOfRange);
        let mut other = shorter.clone();
        other[0].1[7] ^= 0x55;
        refuses(format, &events, &other, ErrorKind::NotALog);
    }
}

#[test]
fn a_bookmark_has_the_offset_of_its_record() {
    for format in FORMATS {
        let log = made(format, &plain(50, 40));
        for record in log.forward(None, None, false).records {
            let found = log.bookmark(record.ordinal).unwrap();
            assert_eq!(found.offset, record.offset);
            let walked = log.bookmark(None).unwrap();
            if found != walked {
                let before = Reach { to: Some(found), ..WRITTEN };
                assert_eq!(log.advance(&walked, &before).unwrap(), found);
            }
        }
        let end = log.end().unwrap();
        refused(log.bookmark(Some(end + 1000)), ErrorKind::OutOfRange);
    }
}

#[test]
fn what_was_dropped_is_out_of_range() {
    let format = &crate::support::formats::wal::TINY;
    let at = at();
    format.create(&at, &plain(60, 40)).close().unwrap();
    let wal = format.options(&at, MANUAL).open(&at.path, Mode::Append).unwrap();
    let begin = wal.bookmark().unwrap();
    let kept = wal.advance(&begin, &Reach { records: Some(40), ..WRITTEN }).unwrap();
    wal.truncate_before(deedbook::wal::Lsn(kept.offset)).unwrap();
    let error = refused(wal.advance(&begin, &WRITTEN), ErrorKind::OutOfRange);
    assert!(error.to_string().contains(&wal.head().unwrap().to_string()), "{error}");
    // The record before the bookmark is gone, too: no evidence against the bookmark is left.
    assert!(wal.advance(&kept, &WRITTEN).unwrap().offset > kept.offset);
}
