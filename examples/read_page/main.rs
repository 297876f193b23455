//! A picture of a page in, its text out: PP-OCR's models for detection and recognition, run by our kernels.
//!
//! `scripts/fetch-models.sh` fetches both models and a page. Then:
//! `cargo run --release --example read_page -- target/models/page.png`
//!
//! The text goes to the standard output, line by line; a second argument names a picture into which the boxes are drawn.

mod boxes;
mod picture;
mod recognition;

use std::path::PathBuf;
use std::time::Instant;

// Brings the CPU.
use tilewright as _;
use tilewright_session::{Model, Session};

use picture::Picture;
use recognition::Reader;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Where the models are.
const MODELS: &str = "target/models";

fn load(name: &str) -> Result<Model> {
    let path = PathBuf::from(MODELS).join(name);
    Model::load(&path)
        .map_err(|error| format!("{}: {error}; run scripts/fetch-models.sh first", path.display()).into())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let page = arguments.next().unwrap_or_else(|| format!("{MODELS}/page.png"));
    let drawn = arguments.next().unwrap_or_else(|| "target/read_page.png".to_owned());
    let mut picture = Picture::read(&PathBuf::from(page))?;

    let start = Instant::now();
    let mut detection = Session::new(&load("ppocr-det.onnx")?);
    let mut reader = Reader::new(&load("ppocr-rec.onnx")?)?;
    eprintln!("models loaded in {:.1?}", start.elapsed());

    let start = Instant::now();
    let found = boxes::find(&mut detection, &picture)?;
    eprintln!("{} lines found in {:.1?}, kernels made for this size", found.len(), start.elapsed());
    let start = Instant::now();
    boxes::find(&mut detection, &picture)?;
    eprintln!("the same again: {:.1?}", start.elapsed());

    let start = Instant::now();
    for area in &found {
        let line = reader.read(&picture.crop(*area))?;
        println!("{line}");
    }
    eprintln!("lines read in {:.1?}", start.elapsed());
    found.iter().for_each(|area| picture.draw(*area));
    picture.write(&PathBuf::from(&drawn))?;
    eprintln!("boxes drawn into {drawn}");
    Ok(())
}
