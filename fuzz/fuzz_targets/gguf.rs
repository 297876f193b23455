#![no_main]

use tilewright_language::{Decoder, Tokenizer, gguf};

// Reads a file, its tokenizer and its sizes; no bytes may lead to a panic or take much more memory than they are.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = gguf::File::from_bytes(bytes) else { return };
    for name in file.names() {
        let tensor = file.tensor(name).expect("the file has it");
        drop(tilewright_language::block::dequantise(tensor.kind, tensor.bytes));
    }
    if let Ok(tokenizer) = Tokenizer::of(&file) {
        drop(tokenizer.encode("It's a test of 42 <|im_end|>\n", true));
    }
    drop(Decoder::of(&std::sync::Arc::new(file)));
});
