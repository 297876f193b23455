//! `ptx-sim`: executes a kernel of a PTX file without a GPU.

mod arguments;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use tilewright_ptx_sim::{Kernel, Launch, Memory, Module, Options, Report};

use arguments::{Argument, Arguments, Command, Run};

fn main() -> ExitCode {
    let Command::Run(run) = Arguments::parse().command;
    match execute(&run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// A buffer that is written to a file afterwards.
struct Output {
    address: u64,
    bytes: u64,
    file: std::path::PathBuf,
}

fn execute(run: &Run) -> Result<(), String> {
    let name = run.file.display();
    let text = read(&run.file)?;
    let text = String::from_utf8(text).map_err(|_| format!("{name} is no text"))?;
    let module = Module::parse(&text).map_err(|error| format!("{name}:{error}"))?;
    let kernel = module.kernel(&run.entry).map_err(|error| format!("{name}: {error}"))?;
    let mut memory = Memory::default();
    let (params, outputs) = bind(&run.arg, &kernel, &mut memory)?;
    let launch = Launch { grid: run.grid.0, block: run.block.0, shared_bytes: run.shared, params };
    let defaults = Options::default();
    let options = Options {
        seeds: run.seed.map_or(defaults.seeds, |seed| vec![seed]),
        limit: run.limit.unwrap_or(defaults.limit),
    };
    let mut report =
        module.run(&run.entry, &launch, &mut memory, &options).map_err(|error| format!("{name}: {error}"))?;
    for output in &outputs {
        let bytes = memory.read(output.address, output.bytes).map_err(|error| error.to_string())?;
        write(&output.file, bytes)?;
        let missing = memory.unwritten(output.address).map_err(|error| error.to_string())?;
        if missing > 0 {
            report.note_unwritten(missing, &output.file.display().to_string());
        }
    }
    if !run.json {
        describe(&report);
    }
    let line = serde_json::to_string(&report).map_err(|error| error.to_string())?;
    println!("{line}");
    Ok(())
}

/// Makes the bytes of the parameters of the arguments, and the buffers that they name.
fn bind(
    arguments: &[Argument],
    kernel: &Kernel,
    memory: &mut Memory,
) -> Result<(Vec<u8>, Vec<Output>), String> {
    if arguments.len() != kernel.params.len() {
        let names: Vec<&str> = kernel.params.iter().map(|param| param.name.as_str()).collect();
        return Err(format!(
            "{} arguments, but the kernel takes {}: {}",
            arguments.len(),
            names.len(),
            names.join(", ")
        ));
    }
    let mut params = vec![0; kernel.param_bytes as usize];
    let mut outputs = Vec::new();
    for (position, (argument, param)) in arguments.iter().zip(&kernel.params).enumerate() {
        let label = format!("argument {position} (`{}`)", param.name);
        let bytes = bytes_of(argument, &label, memory, &mut outputs)?;
        if bytes.len() as u64 != param.bytes {
            return Err(format!("{label} has {} bytes, but the kernel takes {}", bytes.len(), param.bytes));
        }
        let at = param.offset as usize;
        params[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    Ok((params, outputs))
}

/// The bytes of one argument; makes the buffers that it names.
fn bytes_of(
    argument: &Argument,
    label: &str,
    memory: &mut Memory,
    outputs: &mut Vec<Output>,
) -> Result<Vec<u8>, String> {
    let address = match argument {
        Argument::Scalar(bytes) => return Ok(bytes.clone()),
        Argument::Struct(fields) => {
            let mut bytes: Vec<u8> = Vec::new();
            let mut alignment = 1;
            for field in fields {
                let field = bytes_of(field, label, memory, outputs)?;
                alignment = alignment.max(field.len());
                bytes.resize(bytes.len().next_multiple_of(field.len()), 0);
                bytes.extend(field);
            }
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
            return Ok(bytes);
        }
        Argument::In(file) => memory.allocate_with(&read(file)?, label),
        Argument::Out(bytes, file) => {
            let address = memory.allocate(*bytes, label);
            if let Ok(address) = address {
                outputs.push(Output { address, bytes: *bytes, file: file.clone() });
            }
            address
        }
        Argument::InOut(from, to) => {
            let data = read(from)?;
            let address = memory.allocate_with(&data, label);
            if let Ok(address) = address {
                outputs.push(Output { address, bytes: data.len() as u64, file: to.clone() });
            }
            address
        }
    };
    Ok(address.map_err(|error| error.to_string())?.to_le_bytes().to_vec())
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(file, bytes).map_err(|error| format!("{} cannot be written: {error}", file.display()))
}

/// Prints faults and remarks for people.
fn describe(report: &Report) {
    for finding in &report.findings {
        let place = match (finding.block, finding.thread) {
            (Some(block), Some(thread)) => format!(", block {block:?}, thread {thread:?}"),
            (Some(block), None) => format!(", block {block:?}"),
            _ => String::new(),
        };
        let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
        println!("fault in line {}{place}: {}{times}", finding.line, finding.message);
    }
    for remark in &report.remarks {
        match remark.line {
            0 => println!("remark: {}", remark.message),
            line => println!("remark on line {line}: {}", remark.message),
        }
    }
    println!("{} instructions, {} faults", report.instructions, report.findings.len());
}
