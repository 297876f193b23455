//! Texts that are nearly right: programs, traces and records with bytes, words and lines changed. None may lead to a
//! panic, run for long or take much memory. The fuzz targets run the same entry points; `TILEWRIGHT_CASES` sets how
//! many cases of each sort there are.

#[path = "../fuzz/src/entry.rs"]
#[expect(unreachable_pub, reason = "they are the fuzz targets' library too")]
mod entry;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tilewright_core::schedule::Rng;

/// A case that takes this long hangs. Most take less than a thousandth of a second.
const HANGS: Duration = Duration::from_secs(60);

/// How much more memory than at its start the test may ever use, in KiB.
const MEMORY: u64 = 1 << 20;

/// Values at the edges of what is allowed, and words that change what is around them.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "64",
    "65",
    "1024",
    "1025",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e308",
    "1e-400",
    "nan",
    "f32::INFINITY",
    "",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ",",
    ":",
    "..",
    "%0",
    "%4294967295",
    "*",
    "/",
    "%",
    "M",
    "vi",
    "lane<8>",
    "lane<4294967295>",
    "bounded(",
    "select(",
    "for",
    "if",
    "block",
    "init",
    "alloc",
    "reduce",
    "spatial",
    "\u{0}",
    "\u{fffd}",
    "𝕏",
    "\"",
    "\\",
    "null",
    "[[[[[[[[[[[[[[[[",
    "((((((((((((((((",
];

fn cases() -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000)
}

/// Every golden program, as many as a file holds.
fn programs() -> Vec<String> {
    let mut texts = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("core/tests/golden");
    for directory in fs::read_dir(root).expect("the golden files are there") {
        for file in fs::read_dir(directory.expect("an entry").path()).expect("a directory") {
            let text = fs::read_to_string(file.expect("an entry").path()).expect("a text");
            texts.extend(text.split("// after ").map(|part| format!("// {part}")));
        }
    }
    texts.sort();
    texts
}

fn traces() -> Vec<String> {
    [
        "%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n%4, %5 = split %1, [none, 4]\n%6, %7 = split %2, [6, 8]\n\
         reorder [%4, %6, %3, %5, %7]\nparallel %4\nunroll %5\nvectorize %7\n",
        "%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n%4, %5, %6, %7 = sample_perfect_tile %2, 4, 16 !decision [2, 3, 2, 4]\n\
         %8, %9, %10, %11 = split %2, [%4, %5, %6, %7]\n%12 = cache_write %0, \"local\"\nreverse_compute_at %12, %8\n",
        "%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n%4, %5 = split %3, [8, 4]\n%6, %7 = rfactor %0, %4, 0\n",
        "%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n%4 = fuse [%1, %2]\n%5 = decompose_reduction %0, %3\n\
         annotate block %0, \"max_parallel\", 16\n%6 = cache_read %0, 1, \"global\"\n\
         %7 = sample_categorical [0, 16, 64], [0.25, 0.5, 0.25] !decision #1\nannotate block %0, \"unroll\", %7\n",
        "%0 = get_block \"dot\"\n%1, %2 = get_loops %0\n%3, %4 = split %1, [2, 16]\ntensorize loop %4, \"vpdpbusd_16\"\n",
    ]
    .iter()
    .map(|steps| format!("trace v1\n{steps}"))
    .collect()
}

fn records() -> Vec<String> {
    let line = |trace: &String| {
        let trace = trace.replace('\n', "\\n").replace('"', "\\\"").replace("\\\\n", "\\n");
        format!(
            "{{\"version\":1,\"kernel\":\"matmul\",\"program\":\"0123456789abcdef\",\"shape\":{{\"M\":8,\"N\":16}},\
             \"target\":\"cpu;threads=2\",\"median_ns\":1234.5,\"spread\":0.01,\"max_rel_err\":1e-6,\"confirmed\":true,\
             \"seed\":1,\"trial\":3,\"tilewright\":\"0.1.0\",\"cpu\":\"a CPU\",\"time\":1800000000,\"trace\":\"{trace}\"}}\n"
        )
    };
    let mut texts: Vec<String> = traces().iter().map(line).collect();
    texts.push(entry::lines_beside_records());
    texts.push(texts.concat());
    texts
}

/// Draws nearly right texts.
struct Mutator {
    corpus: Vec<String>,
    rng: Rng,
}

impl Mutator {
    fn text(&mut self) -> Vec<u8> {
        let mut text = self.pick();
        for _ in 0..1 + self.rng.below(4) {
            text = match self.rng.below(3) {
                0 => self.bytes(text),
                1 => self.words(&text),
                _ => self.lines(&text),
            };
        }
        text
    }

    fn pick(&mut self) -> Vec<u8> {
        let position = self.rng.below(self.corpus.len());
        self.corpus[position].clone().into_bytes()
    }

    fn bytes(&mut self, mut text: Vec<u8>) -> Vec<u8> {
        if text.is_empty() {
            return text;
        }
        let (at, other) = (self.rng.below(text.len()), self.rng.below(text.len()));
        match self.rng.below(5) {
            0 => text[at] ^= 1 << self.rng.below(8),
            1 => text[at] = self.rng.below(256) as u8,
            2 => drop(text.drain(at.min(other)..at.max(other))),
            3 => text.truncate(at),
            _ => {
                let part = text[at.min(other)..at.max(other)].to_vec();
                text.splice(at..at, part);
            }
        }
        text
    }

    fn words(&mut self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text);
        let mut words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect();
        if words.is_empty() {
            return Vec::new();
        }
        let (at, other) = (self.rng.below(words.len()), self.rng.below(words.len()));
        let word = WORDS[self.rng.below(WORDS.len())];
        match self.rng.below(4) {
            0 => words[at] = word,
            1 => words.insert(at, word),
            2 => words.swap(at, other),
            _ => drop(words.remove(at)),
        }
        words.concat().into_bytes()
    }

    fn lines(&mut self, text: &[u8]) -> Vec<u8> {
        let (text, donor) = (String::from_utf8_lossy(text).into_owned(), self.pick());
        let donor = String::from_utf8_lossy(&donor).into_owned();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let donors: Vec<&str> = donor.split_inclusive('\n').collect();
        if lines.is_empty() || donors.is_empty() {
            return donor.into_bytes();
        }
        let (at, other) = (self.rng.below(lines.len()), self.rng.below(lines.len()));
        let new = donors[self.rng.below(donors.len())];
        match self.rng.below(5) {
            0 => lines[at] = new,
            1 => lines.insert(at, new),
            2 => lines.swap(at, other),
            3 => drop(lines.remove(at)),
            _ => lines.extend_from_within(at..),
        }
        lines.concat().into_bytes()
    }
}

/// The most memory that this process has ever used, in KiB, where the system says.
fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

/// A text, and since when it is being tried.
type Tried = (Instant, Vec<u8>);

/// Runs an entry point on every text of a corpus and on mutations of them.
fn try_all(corpus: Vec<String>, seed: u64, entry: fn(&[u8]) -> bool) {
    // The text that is being tried, and since when: a hang is reported with its text.
    let current: Arc<Mutex<Option<Tried>>> = Arc::default();
    let watched = Arc::downgrade(&current);
    std::thread::spawn(move || {
        while let Some(current) = watched.upgrade() {
            if let Some((since, text)) = &*current.lock().expect("no thread panics with it")
                && since.elapsed() > HANGS
            {
                eprintln!("this text hangs:\n{}", String::from_utf8_lossy(text));
                std::process::abort();
            }
            drop(current);
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let before = memory();
    let mut mutator = Mutator { corpus: corpus.clone(), rng: Rng::new(seed) };
    let mutations = (0..cases()).map(|_| mutator.text());
    for text in corpus.into_iter().map(String::into_bytes).chain(mutations) {
        *current.lock().expect("no thread panics with it") = Some((Instant::now(), text.clone()));
        let result = catch_unwind(AssertUnwindSafe(|| entry(&text)));
        assert!(result.is_ok(), "this text panics:\n{}", String::from_utf8_lossy(&text));
        if let Some((before, after)) = before.zip(memory()) {
            assert!(after < before + MEMORY, "{after} KiB with\n{}", String::from_utf8_lossy(&text));
        }
    }
}

/// A text as far as it is one; bytes that are none are a matter of whoever reads it.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn programs_that_are_nearly_right_are_harmless() {
    try_all(programs(), 1, |bytes| entry::program(&lossy(bytes)));
}

#[test]
fn the_texts_that_are_changed_are_right() {
    for text in traces() {
        assert!(entry::trace(&text), "{text}");
    }
    for text in records() {
        assert!(entry::record(text.as_bytes()), "{text}");
    }
    assert!(programs().iter().filter(|text| entry::program(text)).count() > 50);
}

#[test]
fn traces_that_are_nearly_right_are_harmless() {
    try_all(traces(), 2, |bytes| entry::trace(&lossy(bytes)));
}

#[test]
fn records_that_are_nearly_right_are_harmless() {
    try_all(records(), 3, entry::record);
}
