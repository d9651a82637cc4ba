//! Crashes during a repair.

use super::*;

for_every_subject! {
    /// A crash at any step of a repair leaves the log as before, or cut with the rest saved next to it.
    a_repair_loses_no_byte_at_any_crash,
}

fn a_repair_loses_no_byte_at_any_crash(subject: &Subject) {
    for without_mark in [true, false] {
        let disk = Sim::new();
        let log = subject.open(&disk, ALWAYS).unwrap();
        let mut offsets = Vec::new();
        for n in 1..8u8 {
            offsets.push(log.end().unwrap());
            log.append(0, &[n; 100]).unwrap();
        }
        let kept = log.read_all().unwrap()[..2].to_vec();
        log.close().unwrap();
        drop(log);
        damage(subject, &disk, subject.telling_byte(offsets[2], offsets[3]));
        if without_mark {
            // Without the mark, only a scan finds the damage.
            disk.remove(&subject.sidecar().join("mark")).unwrap();
            disk.sync_dir(&subject.sidecar()).unwrap();
        }
        let (whole, cut) = (log_bytes(subject, &disk), offsets[2] as usize);
        let first = subject.files(&disk)[0].0.clone();
        let beside = first.parent().unwrap();
        let repair = |disk: &Sim| subject.repair(disk);
        disk.record();
        repair(&disk).unwrap();
        let mut checked = 0;
        for moment in disk.recorded() {
            for after in states(&moment, 60) {
                checked += 1;
                if log_bytes(subject, &after).len() < whole.len() {
                    let names = after.list(beside).unwrap();
                    let saved =
                        names.iter().filter(|name| name.to_string_lossy().contains(".cut-"));
                    let saved: Vec<_> =
                        saved.map(|name| read_file(&after, &beside.join(name))).collect();
                    assert!(saved.contains(&whole[cut..].to_vec()), "{} saved", saved.len());
                    // The cut log is the new state: opening reports no missing records.
                    let log = subject.open(&after.kill(), MANUAL).unwrap();
                    assert_eq!(log.read_all().unwrap(), kept);
                }
                repair(&after).unwrap();
                let log = subject.open(&after, MANUAL).unwrap();
                assert_eq!(log.read_all().unwrap(), kept);
                log.append(9, b"goes on").unwrap();
                assert_eq!(log.read_all().unwrap().len(), 3);
            }
        }
        assert!(checked > 20, "{checked}");
    }
    let missing = subject.repair(&Sim::new()).unwrap_err();
    assert!(matches!(missing.kind(), ErrorKind::Missing | ErrorKind::Io), "{missing:?}");
}
