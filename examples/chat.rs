//! Continues a text with a language model from a GGUF file, and prints tokens as they come.
//!
//! `scripts/fetch-smollm2.sh` fetches SmolLM2-135M. Then:
//!
//! ```text
//! cargo run --release --example chat -- "The capital of France is"
//! cargo run --release --example chat -- --chat --top-p 0.9 "Tell me about tea."
//! cargo run --release --example chat -- --tune 10 --records target/smollm2/records "The capital of France is"
//! cargo run --release --example chat -- --records target/smollm2/records "The capital of France is"
//! ```

use std::error::Error;
use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright::tuning::{Budget, Tuner};
use tilewright_language::block::Products;
use tilewright_language::{Decoder, Sampler, Sampling, Tokenizer, gguf};

const USAGE: &str = "chat [--model FILE] [--tokens N] [--chat] [--exact] [--top-p P [--temperature T] [--seed N]] [--tune MINUTES] [--records FOLDER] TEXT

Continues TEXT. With --chat, TEXT is a message that the model answers. Without --top-p, the most likely token is taken each time.
Activations are quantised to 8 bits before each product; with --exact they are not. With --tune, the kernels of the model are tuned first, and
their records kept in FOLDER; without it, the records of FOLDER are used.";

/// The sizes at which steps of one token are tuned: tokens, and the room for keys and values.
const DECODE: [&[(&str, i64)]; 3] =
    [&[("R", 1), ("C", 64)], &[("R", 1), ("C", 128)], &[("R", 1), ("C", 256)]];

/// The sizes at which prompts are tuned.
const PREFILL: [&[(&str, i64)]; 2] = [&[("R", 64), ("C", 64)], &[("R", 512), ("C", 576)]];

/// The options of the command line.
struct Options {
    model: String,
    tokens: usize,
    chat: bool,
    products: Products,
    top_p: Option<f32>,
    temperature: f32,
    seed: u64,
    tune: Option<u64>,
    records: Option<String>,
    text: String,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        model: "target/smollm2/model.gguf".to_owned(),
        tokens: 64,
        chat: false,
        products: Products::Integers,
        top_p: None,
        temperature: 0.8,
        seed: 0,
        tune: None,
        records: None,
        text: String::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value\n\n{USAGE}"));
        match &argument[..] {
            "--model" => options.model = value()?,
            "--tokens" => options.tokens = value()?.parse()?,
            "--chat" => options.chat = true,
            "--exact" => options.products = Products::Floats,
            "--top-p" => options.top_p = Some(value()?.parse()?),
            "--temperature" => options.temperature = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--tune" => options.tune = Some(value()?.parse()?),
            "--records" => options.records = Some(value()?),
            flag if flag.starts_with("--") => return Err(format!("{flag} is unknown\n\n{USAGE}").into()),
            text => options.text = text.to_owned(),
        }
    }
    if options.text.is_empty() {
        return Err(USAGE.into());
    }
    Ok(options)
}

/// A message in the form in which ChatML models are trained.
fn message(text: &str) -> String {
    format!("<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n")
}

/// Prints the bytes of whole characters and keeps those of one that is not complete.
fn print(pending: &mut Vec<u8>) -> std::io::Result<()> {
    let complete = match std::str::from_utf8(pending) {
        Ok(text) => text.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => pending.len(),
    };
    let mut output = stdout().lock();
    output.write_all(String::from_utf8_lossy(&pending[..complete]).as_bytes())?;
    pending.drain(..complete);
    output.flush()
}

/// Tunes the kernels of steps of one token and of prompts, each in half of the time.
fn tune(decoder: &Decoder, minutes: u64, records: &str) -> Result<(), Box<dyn Error>> {
    for (is_many, sizes) in [(false, &DECODE[..]), (true, &PREFILL[..])] {
        let budget = Budget::time(Duration::from_secs(30 * minutes));
        let mut tuner = Tuner::new().records(records).progress(true);
        println!("{}", tuner.tune_graph(&decoder.graph(is_many)?, sizes, budget)?);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    tilewright::tuning::init();
    let options = options()?;
    let file = Arc::new(gguf::File::open(&options.model).map_err(|error| {
        format!("{error}\nscripts/fetch-smollm2.sh fetches a model, and --model FILE names another one")
    })?);
    let (tokenizer, decoder) = (Tokenizer::of(&file)?, Decoder::with_products(&file, options.products)?);
    if let Some(minutes) = options.tune {
        let records =
            options.records.as_deref().ok_or("--tune keeps records: name a folder with --records")?;
        tune(&decoder, minutes, records)?;
    }
    if let Some(records) = &options.records {
        tilewright::use_records(records)?;
    }
    let sampling = match options.top_p {
        None => Sampling::Greedy,
        Some(top_p) => Sampling::TopP { top_p, temperature: options.temperature },
    };
    let mut sampler = Sampler::new(sampling, options.seed)?;
    let prompt = if options.chat { message(&options.text) } else { options.text.clone() };
    let prompt = tokenizer.encode(&prompt, options.chat)?;
    if !options.chat {
        print!("{}", options.text);
    }
    let mut sequence = decoder.sequence()?;
    let start = Instant::now();
    let mut logits = decoder.extend(&mut sequence, &prompt)?;
    let first = start.elapsed();
    let (start, mut pending, mut count) = (Instant::now(), Vec::new(), 0);
    for _ in 0..options.tokens {
        let token = sampler.choose(&logits)?;
        if tokenizer.is_end(token) {
            break;
        }
        pending.extend(tokenizer.decode(token)?);
        print(&mut pending)?;
        count += 1;
        logits = decoder.extend(&mut sequence, &[token])?;
    }
    println!();
    eprintln!(
        "{} tokens of the prompt in {first:.1?}, then {count} tokens at {:.1} a second",
        prompt.len(),
        f64::from(count) / start.elapsed().as_secs_f64()
    );
    Ok(())
}
