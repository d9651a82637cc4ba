#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbook_fuzz::index_open::run(data));
