//! Texts that are nearly right: none may lead to a panic or take much memory. The fuzz target `ptx` does the same without an end.

use tilewright_ptx_sim::{Launch, Memory, Module, Options};

use crate::compilers::{CUDA, TRITON};
use crate::support::Random;

const SGEMM: &str = include_str!("../kernels/sgemm.ptx");

/// Words that change what is around them, and numbers at the edges.
const WORDS: &[&str] = &[
    "",
    "0",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "0x",
    "0f3F80",
    "1e999",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ";",
    ":",
    "@",
    "!",
    "|",
    "_",
    ".",
    "::",
    "<",
    ">",
    "<4294967295>",
    "%r1",
    "%f1",
    "%p1",
    "%tid.x",
    ".b8",
    ".pred",
    ".v4",
    ".shared",
    ".param",
    ".func",
    ".entry k",
    "bra",
    "call",
    "ret;",
    "//",
    "/*",
    "\"",
    "\0",
    "é",
];

/// Reads a text, and runs its kernels if it is right, for a while.
fn try_out(text: &str) {
    let Ok(module) = Module::parse(text) else { return };
    let names: Vec<String> = module.kernels().map(str::to_owned).collect();
    for name in names {
        let Ok(kernel) = module.kernel(&name) else { continue };
        let launch = Launch {
            block: kernel.required_threads.unwrap_or([32, 1, 1]),
            params: vec![0; kernel.param_bytes.min(1 << 16) as usize],
            ..Launch::default()
        };
        let options = Options { seeds: vec![0], limit: 20_000 };
        let mut memory = Memory::with_limit(1 << 24);
        // Errors are right; panics are not.
        let _ = module.run(&name, &launch, &mut memory, &options);
    }
}

#[test]
fn changed_texts_do_no_harm() {
    let mut random = Random(11);
    let texts = [SGEMM, CUDA, TRITON].map(|text| text.lines().collect::<Vec<&str>>());
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    for case in 0..cases {
        let mut text: Vec<String> = texts[case % texts.len()].iter().map(|line| (*line).to_owned()).collect();
        for _ in 0..1 + random.next() % 3 {
            let at = (random.next() % text.len() as u64) as usize;
            let word = WORDS[(random.next() % WORDS.len() as u64) as usize];
            match random.next() % 4 {
                0 => text[at] = word.to_owned(),
                1 => {
                    let other = (random.next() % text.len() as u64) as usize;
                    text.swap(at, other);
                }
                2 => {
                    let mut words: Vec<&str> = text[at].split_whitespace().collect();
                    if !words.is_empty() {
                        let place = (random.next() % words.len() as u64) as usize;
                        words[place] = word;
                    }
                    text[at] = words.join(" ");
                }
                _ => {
                    let copy = text[at].clone();
                    text.push(copy);
                }
            }
        }
        try_out(&text.join("\n"));
    }
}

#[test]
fn what_is_not_known_is_an_error_with_its_line() {
    let of = |body: &str| {
        let text = crate::support::module(&format!(
            ".visible .entry k() {{ .reg .b32 %r<4>; .reg .f32 %f<4>;\n{body}\nret; }}"
        ));
        Module::parse(&text).err().map(|error| (error.line, error.message))
    };
    let cases = [
        ("frobnicate.b32 %r1, %r2;", "unknown instruction"),
        ("add.rn.s32 %r1, %r2, %r3;", "unknown modifier `.s32`"),
        ("ld.global.sideways.u32 %r1, [%r2];", "unknown modifier `.sideways`"),
        ("add.s32 %r1, %r9, %r3;", "`%r9` is not declared"),
        ("add.s32 %r1, %f2, %r3;", "declared as .f32"),
        ("add.s32 %r1, %r2;", "takes 3 operands"),
        ("bra NOWHERE;", "`NOWHERE` is declared nowhere"),
        ("mov.u32 %r1, %what.x;", "unknown"),
        (".frob 3;", "no meaning inside functions"),
    ];
    for (body, wanted) in cases {
        let (line, message) = of(body).unwrap_or_else(|| panic!("`{body}` is accepted"));
        assert_eq!(line, 5, "{body}");
        assert!(message.contains(wanted), "{body}: {message}");
    }
}
