//! Following a log that another process writes.

use crate::prelude::*;

fn next_event(
    follow: &mut deedbook::Follow<deedbook::book::BookFormat>,
    wait: u64,
) -> deedbook::Result<Option<u64>> {
    Ok(follow.next(Duration::from_millis(wait))?.and_then(|deed| deed.event))
}

#[test]
fn a_follower_obeys_timeouts_and_returns_new_deeds() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Manual);
    let writer = options.open(dir.path(), Mode::Create).unwrap();
    let reader = Book::open(dir.path()).unwrap();
    let mut follow = reader.follow(None).unwrap();
    let start = Instant::now();
    assert_eq!(next_event(&mut follow, 60).unwrap(), None);
    assert!((60..2000).contains(&(start.elapsed().as_millis() as u64)));
    assert_eq!(next_event(&mut follow, 0).unwrap(), None);
    let mut batch = Batch::<BookFormat>::new(100);
    batch.push(1, b"a").unwrap();
    batch.push(1, b"b").unwrap();
    writer.append_batch(&batch, None, Some(70)).unwrap();
    assert_eq!(next_event(&mut follow, 2000).unwrap(), Some(71));
    assert_eq!(next_event(&mut follow, 2000).unwrap(), Some(72));
    assert_eq!(next_event(&mut follow, 0).unwrap(), None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            writer.append(1, &vec![1; 300_000]).unwrap();
        });
        assert_eq!(next_event(&mut follow, 5000).unwrap(), Some(73));
    });
    let mut later = reader.follow(Some(75)).unwrap();
    for _ in 0..3 {
        writer.append(1, b"x").unwrap();
    }
    assert_eq!(next_event(&mut later, 2000).unwrap(), Some(75));
    writer.close().unwrap();
    reader.close().unwrap();
    refused(next_event(&mut later, 2000), ErrorKind::Closed);
}

#[test]
fn a_follower_tells_not_yet_from_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), &Options::default(), &events(2, 30));
    let path = dir.path().join("book.log");
    let whole = log(1, &events(2, 30));
    let third = deed(3, &[7; 100]);
    let reader = Book::open(dir.path()).unwrap();
    let mut follow = reader.follow(Some(3)).unwrap();
    // Half a deed, with reserved space after it: the writer may still be writing.
    for torn in
        [[&whole[..], &third[..60]].concat(), [&whole[..], &third[..60], &[0; 400]].concat()]
    {
        fs::write(&path, torn).unwrap();
        assert_eq!(next_event(&mut follow, 1500).unwrap(), None);
    }
    // An intact deed after a damaged deed proves the damage.
    let mut damaged = third.clone();
    damaged[50] ^= 1;
    fs::write(&path, [&whole[..], &damaged, &deed(4, b"intact")].concat()).unwrap();
    let start = Instant::now();
    let error = loop {
        match next_event(&mut follow, 300) {
            Ok(None) => assert!(start.elapsed() < Duration::from_secs(10), "never noticed"),
            Ok(Some(event)) => panic!("{event} is damaged"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(whole.len() as u64)));
    assert_eq!(error.next_intact(), Some((whole.len() + damaged.len()) as u64));
    fs::write(&path, [&whole[..], &third, &deed(4, b"intact")].concat()).unwrap();
    assert_eq!(next_event(&mut follow, 2000).unwrap(), Some(3));
}
