#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbook_fuzz::open_on_bytes::run(data));
