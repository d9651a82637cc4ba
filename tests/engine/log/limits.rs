//! Records and lengths at their limits.

use super::*;

fn low(record_bytes_max: u64) -> How {
    How { record_bytes_max: Some(record_bytes_max), ..MANUAL }
}

#[test]
fn a_record_beyond_the_limit_writes_nothing() {
    for format in FORMATS {
        let (memory, at) = in_memory(format);
        let log = format.open(&at, Mode::Append, low(100)).unwrap();
        log.append(1, &[1; 100]).unwrap();
        let error = refused(log.append(1, &[1; 101]), ErrorKind::TooLarge);
        assert_eq!(error.durable(), Some(Durable::No), "{}", format.name());
        log.append(1, b"fits").unwrap();
        log.close().unwrap();
        let framing = format.framing();
        let records = [framing.encode(1, &[1; 100]), framing.encode(1, b"fits")].concat();
        let space = [framing.file_header(format.first_ordinal()), records].concat();
        let found = Files::of(&memory).space(format);
        assert!(framing.foretold(&found) == framing.foretold(&space), "{}", format.name());
    }
}

/// Only the batch's own limit was checked: records got into the log that its options then call damage.
#[test]
fn a_batch_beyond_the_logs_limit_writes_nothing() {
    for format in FORMATS {
        let (_, at) = in_memory(format);
        let log = format.open(&at, Mode::Append, low(46)).unwrap();
        log.append_batch(&[(1, vec![1; 46])]).unwrap();
        let two = [(1, b"short".to_vec()), (1, vec![1; 47])];
        let error = log.append_batch(&two).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert_eq!(log.len().unwrap(), 1, "{}", format.name());
        log.append_batch(&two[..1]).unwrap();
        log.close().unwrap();
        assert_eq!(format.read(&at).unwrap().forward(None, None, false).records.len(), 2);
    }
}

#[test]
fn impossible_limits_are_refused_everywhere() {
    for format in FORMATS {
        let specimen = Specimen::new(format, &plain(2, 20), Beside::Nothing);
        let memory = specimen.files.restore();
        let at = At::memory(&memory, specimen.path());
        for limit in [(1 << 62) + 1, u64::MAX - 4] {
            for mode in [Mode::Read, Mode::Append] {
                refused(format.open(&at, mode, low(limit)), ErrorKind::InvalidArgument);
            }
            refused(format.repair(&at, low(limit)), ErrorKind::InvalidArgument);
            refused(format.verify(&at, low(limit)), ErrorKind::InvalidArgument);
        }
        assert!(Files::of(&memory).space(format) == specimen.space);
    }
}
