//! Properties of the text form, over arbitrary programs and over hostile texts.
//!
//! `TILEWRIGHT_CASES` sets the number of cases of each property, for long runs.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::program::Program;
use crate::text::generate;
use crate::verify::{Level, verify};

/// Steps through the pool of ids without a common factor with its size.
const STRIDES: [u32; 4] = [1, 199, 77, 63];

fn config() -> ProptestConfig {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Pieces of texts that the lexer accepts.
const PIECES: &[&str] = &[
    "kernel",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "N",
    "i",
    "a",
    "in",
    "out",
    ":",
    "f32",
    "i64",
    ",",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    ">",
    "..",
    "0",
    "1",
    "8",
    "for",
    "block",
    "if",
    "else",
    "alloc",
    "buffer",
    "local",
    "spatial",
    "reduce",
    "where",
    "at",
    "\"x:1:2\"",
    "@",
    "unroll",
    "lane",
    "value",
    "index",
    "min",
    "max",
    "select",
    "mul_add",
    "bounded",
    "bitcast",
    "as",
    "exp",
    "true",
    "1.5",
    "9223372036854775807",
    "1152921504606846976",
    "::",
    "NAN",
    "!",
    "<<",
    "==",
    "init",
    "parallel",
    "//",
    "\n",
    "\"",
    "€",
];

/// Reading any text ends; and a program that was read can be printed, read again and checked.
fn survives(text: &str) {
    let Ok(program) = text.parse::<Program>() else { return };
    let printed = program.to_string();
    for level in Level::ALL {
        if let Err(errors) = verify(&program, level) {
            let rendered = errors.render(&program);
            assert!(rendered.len() > printed.len(), "{printed}{errors}");
        }
    }
    // Printing may parenthesise and merge, so that the printed form can exceed a limit that the original kept.
    if let Ok(again) = printed.parse::<Program>() {
        assert_eq!(again.to_string(), printed, "the text changes when it is printed again");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn printing_and_parsing_are_inverse(choices in vec(any::<u32>(), 0..300), stride in 0usize..4) {
        let program = generate::program(&choices, STRIDES[stride]);
        let text = program.to_string();
        let again: Program = match text.parse() {
            Ok(again) => again,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        let canonical = program.canonical();
        prop_assert_eq!(&again.to_string(), &text);
        prop_assert!(again == canonical, "{}\n{:#?}\n{:#?}", text, again, canonical);
        prop_assert!(canonical.canonical() == canonical, "the canonical form has another\n{}", text);
        prop_assert_eq!(again.stable_hash(), program.stable_hash(), "{}", text);
    }

    #[test]
    fn numbering_does_not_count(choices in vec(any::<u32>(), 0..300), stride in 1usize..4) {
        let plain = generate::program(&choices, STRIDES[0]);
        let renumbered = generate::program(&choices, STRIDES[stride]);
        prop_assert_eq!(plain.to_string(), renumbered.to_string());
        prop_assert!(plain.canonical() == renumbered.canonical());
        prop_assert_eq!(plain.stable_hash(), renumbered.stable_hash(), "{}", plain);
    }

    #[test]
    fn arbitrary_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..400)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_pieces_are_read_without_panic(pieces in vec(0..PIECES.len(), 0..200)) {
        let text: Vec<&str> = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        survives(&text.join(" "));
        survives(&format!("kernel f(N, in a: i64[N]) {{ for i in 0..N {{ {}", text.join(" ")));
    }

    #[test]
    fn damaged_texts_are_read_without_panic(
        choices in vec(any::<u32>(), 0..200),
        damages in vec((any::<u32>(), 0..PIECES.len(), 0u8..3), 1..6),
    ) {
        let mut text = generate::program(&choices, 1).to_string();
        for (at, piece, damage) in damages {
            let mut at = at as usize % (text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            match damage {
                0 => text.insert_str(at, PIECES[piece]),
                1 => text.truncate(at),
                _ => {
                    let end = text[at..].char_indices().nth(3).map_or(text.len(), |(end, _)| at + end);
                    text.replace_range(at..end, PIECES[piece]);
                }
            }
            survives(&text);
        }
    }
}

/// Short texts that describe large programs.
#[test]
fn hostile_texts_end_in_an_error() {
    let wrap = |body: &str| format!("kernel f(N, M, in a: i64[N], out b: i64[N]) {{ b[0] = {body} }}");
    let index = |body: &str| wrap(&format!("index({body})"));
    let many = |piece: &str, count: usize| piece.repeat(count);
    let square = |inner: String| format!("({inner})*(N + M + 1)");
    let tower = (0..60).fold("N + M".to_owned(), |inner, _| square(inner));
    let exploding = (0..30).fold("N".to_owned(), |inner, _| format!("(N + M + a[0])*min({inner}, M)"));
    let texts = [
        wrap(&many("(", 100_000)),
        wrap(&many("exp(", 100_000)),
        wrap(&many("-", 100_000)),
        wrap(&format!("1{}", many(" + 1", 100_000))),
        wrap(&format!("1{}", many(" as f32", 100_000))),
        index(&many("(", 100_000)),
        index(&format!("N{}", many("*N", 100_000))),
        index(&tower),
        index(&exploding),
        index("N*1152921504606846976*1152921504606846976"),
        index("(N/1152921504606846976)%1152921504606846976/2"),
        index("1152921504606846976 + 1152921504606846976"),
        index("lane<4294967295>"),
        index("lane<1>"),
        index("value(a[0] as f32)"),
        index(&format!("value(1{})", many("*(a[0] + a[1])", 64))),
        wrap("300u8"),
        wrap("1e39"),
        wrap("1.5i32"),
        many("kernel f() { for i in 0..1 {", 1),
        format!("kernel f() {{{}", many("for i in 0..1 {", 100_000)),
        format!("kernel f() {{{}", (0..100_000).map(|i| format!("if true {{ // {i}\n")).collect::<String>()),
        many(" ", (1 << 20) + 1),
        "kernel f() { @x 9223372036854775808 for i in 0..1 {} }".to_owned(),
        "kernel f() { block b() at \"x:1\" {} }".to_owned(),
    ];
    for text in texts {
        let beginning: String = text.chars().take(80).collect();
        assert!(text.parse::<Program>().is_err(), "accepted: {beginning}");
    }
}

/// A deep text within the limits can be read and worked with.
#[test]
fn deep_texts_are_read() {
    let wrap = |body: String| format!("kernel f(N, in a: f32[N], out b: f32[N]) {{ b[0] = {body} }}");
    let texts = [
        wrap(format!("a[0]{}", " + a[0]".repeat(400))),
        wrap(format!("{}a[0]{}", "exp(".repeat(90), ")".repeat(90))),
        wrap(format!("a[N{}]", "*N".repeat(200))),
        wrap(format!("a[{}N{}]", "min(N + (".repeat(40), ")/3, 7)".repeat(40))),
        format!("kernel f() {{ {} {} }}", "if true {".repeat(98), "}".repeat(98)),
    ];
    for text in texts {
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(program.stable_hash(), program.canonical().stable_hash(), "{text}");
        survives(&text);
    }
}

/// The hash is stored in records: a change of its value makes every record stale.
#[test]
fn the_stable_hash_stays() {
    let program: Program = "kernel f(N, alpha: f32, in a: f32[N, 4], out b: f32[N]) {
        buffer t: f32[N] local
        @unroll 16
        parallel for i in 0..N {
            for j in 0..4 {
                block t(v: spatial N = i, r: reduce 4 = j) where i < N {
                    init { t[v] = 0.0 }
                    t[v] = mul_add(a[v, r], alpha, t[v])
                }
            }
        }
        for i in 0..N {
            block b(w: spatial N = i) {
                b[w] = select(t[w] > 1.5, exp(t[w]), index(w/3%2*N) as f32)
            }
        }
    }"
    .parse()
    .expect("the program is well-formed");
    assert_eq!(program.stable_hash(), 9_399_173_758_237_731_454);
}

/// Which differences the hash shows, and which it ignores.
#[test]
fn the_stable_hash_sees_content_and_nothing_else() {
    let text = "kernel f(N, in a: f32[N], out b: f32[N]) {
        for i in 0..N {
            block c(v: spatial N = i) at \"a.rs:1:1\" { b[v] = a[v] + 1.0 }
        }
    }";
    let hash =
        |text: &str| text.parse::<Program>().unwrap_or_else(|error| panic!("{error}: {text}")).stable_hash();
    let original = hash(text);
    for (from, to) in [("f(", "g("), ("a.rs:1:1", "b.rs:2:3"), ("for i in", "for k in"), ("= i)", "= k)")] {
        let same = text.replace("for i in", "for k in").replace("= i)", "= k)").replace(from, to);
        assert_eq!(hash(&same), original, "{from} -> {to}");
    }
    let changes = [
        ("1.0", "2.0"),
        ("a[v] + 1.0", "1.0 + a[v]"),
        ("f32", "f64"),
        ("block c", "block d"),
        ("for i", "parallel for i"),
        ("for i", "@unroll 4 for i"),
        ("0..N", "0..N + 1"),
        ("spatial", "reduce"),
        ("out b", "inout b"),
        ("f32[N]) {", "f32[N]) accuracy 0.0 {"),
        ("f32[N]) {", "f32[N]) accuracy 1e-5 {"),
        ("= i)", "= i) where i < 3"),
        ("a[v] + 1.0 }", "a[v] + 1.0 b[v] = 1.0 }"),
        ("{ b[v] = a[v] + 1.0 }", "{ if true { b[v] = a[v] + 1.0 } }"),
        ("{ b[v] = a[v] + 1.0 }", "{ init { } b[v] = a[v] + 1.0 }"),
    ];
    for (from, to) in changes {
        let other = text.replace(from, to);
        assert_ne!(other, text, "the change {from} -> {to} changes nothing");
        assert_ne!(hash(&other), original, "{from} -> {to}");
    }
}

/// Parts that a schedule may refer to, but that lowering drops, do not change the hash.
#[test]
fn the_execution_hash_sees_what_is_left_after_lowering() {
    let hash = |text: &str| {
        text.parse::<Program>().unwrap_or_else(|error| panic!("{error}: {text}")).execution_hash()
    };
    let text = "kernel f(N, in a: f32[N], out b: f32[N]) {
        for i in 0..N {
            @unroll 16
            block c(v: spatial N = i) { b[v] = a[v] + 1.0 }
        }
    }";
    let original = hash(text);
    for (from, to) in [
        ("@unroll 16", ""),
        ("16", "64"),
        ("block c", "block d"),
        ("for i", "parallel for k in 0..1 { for i"),
    ] {
        let same = text.replace(from, to) + if to.ends_with("for i") { "}" } else { "" };
        assert_ne!(same, text, "the change {from} -> {to} changes nothing");
        assert_eq!(hash(&same), original, "{from} -> {to}");
    }
    let changes = [
        ("for i", "parallel for i"),
        ("for i", "@unroll_factor 4 for i"),
        ("1.0", "2.0"),
        ("= i)", "= i) where i < 3"),
    ];
    for (from, to) in changes {
        assert_ne!(hash(&text.replace(from, to)), original, "{from} -> {to}");
    }
}
