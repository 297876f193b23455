#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    tilewright_fuzz::entry::program(text);
});
