#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        // The library of the index panics over damaged files, which is caught. libFuzzer's hook would end the process
        // before that. A panic that nothing catches still ends it.
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    },
    |data: &[u8]| deedbook_fuzz::index_open::run(data)
);
