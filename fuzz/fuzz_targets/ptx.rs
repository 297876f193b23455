#![no_main]

use tilewright_ptx_sim::{Launch, Memory, Module, Options};

// Reads a module of PTX and runs its kernels for a while; no text may lead to a panic or take much memory.
libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(module) = Module::parse(text) else { return };
    for name in module.kernels() {
        let Ok(kernel) = module.kernel(name) else { continue };
        let launch = Launch {
            block: kernel.required_threads.unwrap_or([32, 1, 1]),
            params: vec![0; kernel.param_bytes.min(1 << 16) as usize],
            ..Launch::default()
        };
        let options = Options { seeds: vec![0], limit: 20_000 };
        let _ = module.run(name, &launch, &mut Memory::with_limit(1 << 24), &options);
    }
});
