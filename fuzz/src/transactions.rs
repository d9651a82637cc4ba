//! Any lines as the record of transactions, with a right checksum: a commit appends all or nothing, a
//! repeat nothing, and no record that was there goes.

use deedbook::jobs::{Transaction, TransactionId};
use deedbook::{ErrorKind, Mode};

use super::fenced::{Fenced, open_wal, payloads, sealed, write_wal};
use super::kit::Input;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (count, version) = (input.u8() % 16, u64::from(input.u8()));
    let query = (input.u8() & 1 == 1).then(|| "q".to_string());
    let disk = Fenced::new();
    let mut written = write_wal(&disk, count);
    disk.put(".deedbook/transactions", &sealed(input.rest()));
    let wal = open_wal(&disk, Mode::Append).unwrap();
    let noted = wal.transactions();
    if let Err(error) = &noted {
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{error}");
    }
    let mut stage = wal.stage("job", 0, 1, None).unwrap();
    stage.push(b"staged").unwrap();
    let parts = [stage.finish().unwrap()];
    let id = TransactionId { app: "app".into(), query, version };
    let transaction = Transaction { job: "job".into(), id: Some(id) };
    let Ok(done) = wal.commit_staged(&transaction, &parts) else {
        assert_eq!(payloads(&wal), written);
        return;
    };
    let before = noted.unwrap().get("app").map(|noted| noted.version);
    assert_eq!(done.repeated, before.is_some_and(|before| version <= before));
    if !done.repeated {
        written.push(b"staged".to_vec());
    }
    assert_eq!(payloads(&wal), written);
    assert!(wal.commit_staged(&transaction, &parts).is_ok_and(|done| done.repeated));
    assert_eq!(payloads(&wal), written);
}
