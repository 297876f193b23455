//! The arguments of the program.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};

/// Executes PTX without a GPU and reports races, uninitialised reads, accesses out of bounds, deadlocks and more.
///
/// Exit codes: 0 when the kernel was executed, whatever was found; 1 when it could not be; 2 when the arguments cannot be
/// understood.
#[derive(Parser, Debug)]
#[command(name = "ptx-sim", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(Run),
}

/// Executes a kernel; the last line of the output is a JSON object with findings and remarks
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// A file of PTX
    pub(crate) file: PathBuf,
    /// The name of the kernel
    #[arg(long)]
    pub(crate) entry: String,
    /// Blocks: `x,y,z`
    #[arg(long, default_value = "1,1,1", value_name = "X,Y,Z")]
    pub(crate) grid: Extents,
    /// Threads of a block: `x,y,z`
    #[arg(long, default_value = "1,1,1", value_name = "X,Y,Z")]
    pub(crate) block: Extents,
    /// Bytes of dynamic shared memory
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub(crate) shared: u64,
    /// One schedule with this seed; without it there are three, whose results are compared
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Stops a kernel that executes more instructions of threads
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<u64>,
    /// Prints nothing but the JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// An argument, for each parameter in order: `in:FILE`, `out:BYTES=FILE`, `inout:FILE=FILE`, `i8:N`,
    /// `i16:N`, `i32:N`, `i64:N`, `f32:X`, `f64:X`, `ptr:0`; `struct:A+B+…` is a structure by value whose fields are such arguments, each aligned to
    /// its size
    #[arg(long, value_name = "KIND:VALUE", allow_hyphen_values = true)]
    pub(crate) arg: Vec<Argument>,
}

/// Extents along x, y and z; those that are left out are 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extents(pub(crate) [u32; 3]);

impl FromStr for Extents {
    type Err = String;

    fn from_str(text: &str) -> Result<Extents, String> {
        let mut extents = [1; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 3 {
            return Err(format!("`{text}` has more than three numbers"));
        }
        for (extent, part) in extents.iter_mut().zip(parts) {
            *extent = part.trim().parse().map_err(|_| format!("`{part}` is no number"))?;
        }
        Ok(Extents(extents))
    }
}

/// An argument of the kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Argument {
    In(PathBuf),
    Out(u64, PathBuf),
    InOut(PathBuf, PathBuf),
    Scalar(Vec<u8>),
    /// Fields of a structure that is passed by value.
    Struct(Vec<Argument>),
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Argument, String> {
        let (kind, value) = text.split_once(':').ok_or_else(|| {
            format!("`{text}` has no kind: it has to begin with one such as `in:` or `i32:`")
        })?;
        let number = || format!("`{value}` is no number of the kind `{kind}`");
        let pair =
            || value.split_once('=').ok_or_else(|| format!("`{text}` has no `=` before the name of a file"));
        Ok(match kind {
            "in" => Argument::In(value.into()),
            "out" => {
                let (bytes, file) = pair()?;
                let bytes = bytes.parse().map_err(|_| format!("`{bytes}` is no number of bytes"))?;
                Argument::Out(bytes, file.into())
            }
            "inout" => {
                let (from, to) = pair()?;
                Argument::InOut(from.into(), to.into())
            }
            "i8" => Argument::Scalar(integer(value, 1).ok_or_else(number)?),
            "i16" => Argument::Scalar(integer(value, 2).ok_or_else(number)?),
            "i32" => Argument::Scalar(integer(value, 4).ok_or_else(number)?),
            "i64" => Argument::Scalar(integer(value, 8).ok_or_else(number)?),
            "f32" => {
                let value: f32 = value.parse().map_err(|_| number())?;
                Argument::Scalar(value.to_le_bytes().to_vec())
            }
            "f64" => {
                let value: f64 = value.parse().map_err(|_| number())?;
                Argument::Scalar(value.to_le_bytes().to_vec())
            }
            "ptr" if value == "0" => Argument::Scalar(0_u64.to_le_bytes().to_vec()),
            "ptr" => return Err("only `ptr:0`, the null pointer, is possible".into()),
            "struct" => {
                let fields: Result<Vec<Argument>, String> = value.split('+').map(str::parse).collect();
                Argument::Struct(fields?)
            }
            _ => return Err(format!("`{kind}` is no kind of argument: see --help")),
        })
    }
}

/// The little-endian bytes of an integer, signed or unsigned, if it fits into this number of bytes.
fn integer(text: &str, bytes: usize) -> Option<Vec<u8>> {
    let wide: i128 = text.parse().ok()?;
    let range = 1_i128 << (8 * bytes);
    (-range / 2..range).contains(&wide).then(|| wide.to_le_bytes()[..bytes].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_signed_or_unsigned() {
        assert_eq!(integer("-1", 2), Some(vec![0xff, 0xff]));
        assert_eq!(integer("65535", 2), Some(vec![0xff, 0xff]));
        assert_eq!(integer("65536", 2), None);
        assert_eq!(integer("-32769", 2), None);
        assert_eq!(integer("18446744073709551615", 8), Some(vec![0xff; 8]));
    }

    #[test]
    fn structures_have_fields() {
        let fields = vec![Argument::Scalar(vec![1, 0, 0, 0]), Argument::Scalar(vec![2, 0])];
        assert_eq!("struct:i32:1+i16:2".parse(), Ok(Argument::Struct(fields)));
        assert!("struct:i32:1+x".parse::<Argument>().is_err());
    }
}
