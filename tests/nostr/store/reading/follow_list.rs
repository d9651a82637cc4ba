//! Example 3 of the document: a follow list of 5,000 tags, whose record has 160,450 bytes.

use crate::store::prelude::*;
use crate::support::plain::read_file;

const RECORD_BYTES: usize = 160_450;
/// The fixed part, the count of tags, and each tag with a value of 26 bytes.
const WITHOUT_CONTENT: usize = 150 + 2 + 5_000 * 32;
const CONTINUATION_PAGES: u16 = 39;

#[test]
fn follow_list_takes_39_pages_after_the_first() {
    for checksums in [false, true] {
        let memory = Memory::new();
        let options = Options::new().storage(Arc::new(memory.clone())).index_on_disk(false);
        let options = options.checksums(checksums).small(true);
        let store = options.open(DIR, Mode::Create).unwrap();
        let names: Vec<_> = (0..5_000).map(|number| format!("{number:026}")).collect();
        let tags: Vec<_> = names.iter().map(|name| ["p", name]).collect();
        let tags: Vec<_> = tags.iter().map(|tag| &tag[..]).collect();
        let trailer = if checksums { 8 } else { 0 };
        let content = "x".repeat(RECORD_BYTES - WITHOUT_CONTENT - trailer);
        let list = event(1, 1_655_000_000, 3, &tags, &content);
        let events = [note(1), list.clone(), note(2)];
        events.iter().for_each(|event| {
            store.append(event).unwrap();
        });
        store.checkpoint().unwrap();
        assert_eq!(walked(&store, Include::All).len(), 3);
        let [_, at, next] = [0, 1, 2].map(|i| walked(&store, Include::All)[i].location.offset);
        assert_eq!((next - at) as usize, (1 + CONTINUATION_PAGES as usize) * PAGE);
        let segment = read_file(&memory, Path::new(FIRST));
        let head = &segment[at as usize..];
        assert_eq!(head[..4], (RECORD_BYTES as u32).to_be_bytes());
        assert_eq!(head[5..7], CONTINUATION_PAGES.to_be_bytes());
        assert_eq!(store.find(&list.id).unwrap().unwrap().event, list);
        store.close().unwrap();
        let store = options.open(DIR, Mode::Append).unwrap();
        assert_eq!(all(&store), events);
        assert!(store.verify(Check::Id).unwrap().ok());
    }
}
