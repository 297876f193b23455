//! A picture of a page in, its text out: PP-OCR's models for detection and recognition, run by our kernels.
//!
//! `scripts/fetch-models.sh` fetches both models and a page. Then:
//! `cargo run --release --example read_page -- target/models/page.png`
//!
//! The text goes to the standard output, line by line; a second argument names a picture into which the boxes are drawn. Options:
//! `--models FOLDER` takes other models, for instance quantised ones; `--boxes` prints the box of each line before its text; `--inputs FOLDER`
//! writes what the models see into `FOLDER/det` and `FOLDER/rec`, as calibration data for `tilewright model quantise`.

mod boxes;
mod picture;
mod recognition;

use std::path::{Path, PathBuf};
use std::time::Instant;

// Brings the CPU.
use tilewright as _;
use tilewright_session::{HostTensor, Model, Session, npy};

use picture::Picture;
use recognition::Reader;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Where the models are, unless the arguments name another folder.
const MODELS: &str = "target/models";

/// The arguments of the program.
struct Arguments {
    page: PathBuf,
    drawn: PathBuf,
    models: PathBuf,
    inputs: Option<PathBuf>,
    boxes: bool,
}

impl Arguments {
    fn read() -> Result<Self> {
        let mut own = Arguments {
            page: Path::new(MODELS).join("page.png"),
            drawn: "target/read_page.png".into(),
            models: MODELS.into(),
            inputs: None,
            boxes: false,
        };
        let mut paths = Vec::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut folder =
                || arguments.next().map(PathBuf::from).ok_or(format!("{argument} needs a folder"));
            match &argument[..] {
                "--models" => own.models = folder()?,
                "--inputs" => own.inputs = Some(folder()?),
                "--boxes" => own.boxes = true,
                _ => paths.push(PathBuf::from(argument)),
            }
        }
        let mut paths = paths.into_iter();
        own.page = paths.next().unwrap_or(own.page);
        own.drawn = paths.next().unwrap_or(own.drawn);
        Ok(own)
    }

    fn load(&self, name: &str) -> Result<Model> {
        let path = self.models.join(name);
        Model::load(&path)
            .map_err(|error| format!("{}: {error}; run scripts/fetch-models.sh first", path.display()).into())
    }

    /// Writes what a model sees, if it is wanted.
    fn keep(&self, model: &str, number: usize, input: &HostTensor) -> Result<()> {
        let Some(inputs) = &self.inputs else { return Ok(()) };
        let folder = inputs.join(model);
        std::fs::create_dir_all(&folder)?;
        Ok(npy::write(&folder.join(format!("{number:03}.npy")), input)?)
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::read()?;
    let mut picture = Picture::read(&arguments.page)?;

    let start = Instant::now();
    let mut detection = Session::new(&arguments.load("ppocr-det.onnx")?);
    let mut reader = Reader::new(&arguments.load("ppocr-rec.onnx")?)?;
    eprintln!("models loaded in {:.1?}", start.elapsed());

    let start = Instant::now();
    arguments.keep("det", 0, &boxes::input(&picture)?)?;
    let found = boxes::find(&mut detection, &picture)?;
    eprintln!("{} lines found in {:.1?}, kernels made for this size", found.len(), start.elapsed());
    let start = Instant::now();
    boxes::find(&mut detection, &picture)?;
    eprintln!("the same again: {:.1?}", start.elapsed());

    let start = Instant::now();
    for (number, area) in found.iter().enumerate() {
        let input = recognition::input(&picture.crop(*area))?;
        arguments.keep("rec", number, &input)?;
        let line = reader.read(&input)?;
        if arguments.boxes {
            print!("{} {} {} {} ", area.left, area.top, area.right, area.bottom);
        }
        println!("{line}");
    }
    eprintln!("lines read in {:.1?}", start.elapsed());
    found.iter().for_each(|area| picture.draw(*area));
    picture.write(&arguments.drawn)?;
    eprintln!("boxes drawn into {}", arguments.drawn.display());
    Ok(())
}
