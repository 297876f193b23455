//! Goldens: the words that a GPU made of single instructions, as a file that tests without a GPU compare the simulator with.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::Tally;
use crate::kernel::Case;

/// A file of goldens that is written: a line of JSON for each kernel.
pub(crate) struct Goldens(BufWriter<File>);

impl Goldens {
    /// Begins a file, with a line that says which GPU it is of.
    pub(crate) fn create(path: &Path, gpu: &str, architecture: &str) -> Result<Self, String> {
        let problem = |error| format!("{}: {error}", path.display());
        let mut goldens = Goldens(BufWriter::new(File::create(path).map_err(problem)?));
        goldens.line(&json!({"gpu": gpu, "architecture": architecture}))?;
        Ok(goldens)
    }

    /// Adds a kernel with its inputs and the outputs of the GPU.
    pub(crate) fn add(&mut self, case: &Case, inputs: &[u32], outputs: &[u32]) -> Result<(), String> {
        self.line(&json!({
            "name": case.name,
            "architecture": case.architecture,
            "words": [case.inputs, case.outputs],
            "body": case.body,
            "inputs": inputs,
            "outputs": outputs,
        }))
    }

    fn line(&mut self, value: &Value) -> Result<(), String> {
        writeln!(self.0, "{value}").and_then(|()| self.0.flush()).map_err(|error| error.to_string())
    }
}

/// Compares the simulator with each golden of a file.
pub(crate) fn replay(path: &Path, tally: &mut Tally) -> Result<(), String> {
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = BufReader::new(File::open(path).map_err(|error| problem(&error))?);
    for line in file.lines().skip(1) {
        let line = line.map_err(|error| problem(&error))?;
        let golden: Value = serde_json::from_str(&line).map_err(|error| problem(&error))?;
        let read = read(&golden).ok_or_else(|| problem(&"a line has not the fields of a golden"))?;
        let (case, inputs, outputs) = read;
        let simulated = case.simulate(&inputs);
        let outcome = simulated.and_then(|simulated| match simulated == outputs {
            true => Ok(()),
            false => Err(format!("the simulator makes {simulated:x?} where the GPU made {outputs:x?}")),
        });
        tally.note(&case.name, outcome);
    }
    Ok(())
}

fn read(golden: &Value) -> Option<(Case, Vec<u32>, Vec<u32>)> {
    let words = |name: &str| -> Option<Vec<u32>> {
        golden[name].as_array()?.iter().map(|word| u32::try_from(word.as_u64()?).ok()).collect()
    };
    let [inputs, outputs] = words("words")?[..] else { return None };
    let case = Case {
        name: golden["name"].as_str()?.to_owned(),
        architecture: u32::try_from(golden["architecture"].as_u64()?).ok()?,
        inputs: inputs as usize,
        outputs: outputs as usize,
        body: golden["body"].as_str()?.to_owned(),
    };
    Some((case, words("inputs")?, words("outputs")?))
}
