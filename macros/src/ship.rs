//! `ship!`: records become part of the program.
//!
//! The files are read once here, so that a broken line is a compile error. Of the records of one kernel, shape and machine, calls
//! use the best one, and that one alone is embedded, compressed. The compiler reads the files, too (`include_bytes!`), so that a change
//! of one makes cargo compile the crate again; the program holds nothing of that.

use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use serde_json::Value;
use syn::{Error, LitByteStr, LitStr, Result};
use tilewright_vocabulary::{Timed, rank};

/// The version of the records' format, which every line states.
const FORMAT_VERSION: u64 = 1;

/// A file that keeps an empty directory under version control. It is embedded too: the tuner touches a neighbour of
/// each file that it makes, and cargo thereby notices a new file.
const KEEPER: &str = ".gitkeep";

/// The fields that say what a record is of.
const KEY: [&str; 5] = ["kernel", "program", "shape", "params", "target"];

/// Fields that only tuning and reports need.
const UNNEEDED: [&str; 2] = ["predicted", "rules"];

/// How hard to compress, of 0 to 10.
const COMPRESSION: u8 = 9;

/// The extension of files of records.
const EXTENSION: &str = "jsonl";

/// Embeds the records at the path that `input` names, relative to the package's directory.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    expand_in(package.as_deref(), input).unwrap_or_else(Error::into_compile_error)
}

fn expand_in(package: Option<&Path>, input: TokenStream) -> Result<TokenStream> {
    let literal: LitStr = syn::parse2(input).map_err(|error| {
        let message = "expected a directory or a file of tuning records: `ship!(\"tuned/\")`";
        Error::new(error.span(), message)
    })?;
    let package = package.ok_or_else(|| {
        Error::new(literal.span(), "the package's directory is unknown: CARGO_MANIFEST_DIR is not set")
    })?;
    let path = literal.value();
    let files = files(package, &path).map_err(|message| Error::new(literal.span(), message))?;
    let mut watched = Vec::new();
    let mut records = Vec::new();
    for name in files {
        watched.push(watch(&name));
        if name.ends_with(EXTENSION) {
            let read = read(&package.join(&name), &name);
            records.extend(read.map_err(|message| Error::new(literal.span(), message))?);
        }
    }
    let lines: String = best(records).iter().map(|record| format!("{record}\n")).collect();
    let bytes = LitByteStr::new(&compress_to_vec(lines.as_bytes(), COMPRESSION), Span::call_site());
    Ok(quote! {
        const _: () = {
            #(const _: &[u8] = #watched;)*
            ::tilewright::__private::inventory::submit! {
                ::tilewright::__private::ShippedRecords { name: #path, compressed: #bytes }
            }
        };
    })
}

/// The best record of each kernel, shape and machine, in the order of the first lines of these. Failures are of no use to calls.
fn best(records: Vec<Value>) -> Vec<Value> {
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for record in records {
        if record.get("kind").is_some() || record.get("median_ns").is_none() {
            continue;
        }
        let key = KEY.map(|field| record.get(field).cloned().unwrap_or_default()).to_vec();
        match groups.iter_mut().find(|(known, _)| known.as_array() == Some(&key)) {
            Some((_, members)) => members.push(record),
            None => groups.push((Value::Array(key), vec![record])),
        }
    }
    groups.into_iter().filter_map(|(_, members)| best_of(members)).collect()
}

/// The best of records of one kernel, shape and machine, without the fields that calls do not need.
fn best_of(mut members: Vec<Value>) -> Option<Value> {
    let timed = |record: &Value| Timed {
        time: record.get("time").and_then(Value::as_u64).unwrap_or(0),
        median_ns: record.get("median_ns").and_then(Value::as_f64).unwrap_or(f64::INFINITY),
        is_confirmed: record.get("confirmed").and_then(Value::as_bool).unwrap_or(false),
        trace: record.get("trace").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let facts: Vec<Timed<String>> = members.iter().map(timed).collect();
    let (first, _) = *rank(&facts).first()?;
    let mut record = members.swap_remove(first);
    let fields = record.as_object_mut()?;
    UNNEEDED.iter().for_each(|field| drop(fields.remove(*field)));
    Some(record)
}

/// The names of the files to embed, relative to the package, in order.
fn files(package: &Path, path: &str) -> std::result::Result<Vec<String>, String> {
    let place = package.join(path);
    if place.is_file() {
        return match path.ends_with(&format!(".{EXTENSION}")) {
            true => Ok(vec![path.to_owned()]),
            false => {
                Err(format!("`{path}` is no file of tuning records: its name must end in `.{EXTENSION}`"))
            }
        };
    }
    if !place.is_dir() {
        return Err(format!(
            "there is no `{path}` in this package; run `cargo bench` to tune, which makes it, or make a directory \
             with an empty file `{KEEPER}` in it to ship without records"
        ));
    }
    let failed = |error: std::io::Error| format!("cannot list `{path}`: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(&place).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().into_string();
        let name = name.map_err(|name| format!("the name of {name:?} in `{path}` is not Unicode"))?;
        if name == KEEPER || name.ends_with(&format!(".{EXTENSION}")) {
            names.push(format!("{}/{name}", path.trim_end_matches('/')));
        }
    }
    if names.is_empty() {
        return Err(format!(
            "`{path}` holds no tuning records; run `cargo bench` to tune, or put an empty file `{KEEPER}` into it to \
             ship without records"
        ));
    }
    names.sort();
    Ok(names)
}

/// The lines of a file, each checked to be of a version that can be read; the rest is checked when a record is used.
fn read(path: &Path, name: &str) -> std::result::Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read `{name}`: {error}"))?;
    let mut records = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("{name}:{}", number + 1);
        let record: Value = serde_json::from_str(line)
            .map_err(|error| format!("{place}: not a tuning record: {error}; remove the line"))?;
        match record.get("version").map(Value::as_u64) {
            Some(Some(FORMAT_VERSION)) => records.push(record),
            Some(_) => {
                let found = &record["version"];
                return Err(format!(
                    "{place}: a record of format version {found}, expected {FORMAT_VERSION}; remove the line and tune again"
                ));
            }
            None => {
                return Err(format!("{place}: not a tuning record: it states no `version`; remove the line"));
            }
        }
    }
    Ok(records)
}

/// `include_bytes!(…)` of a file of the package.
fn watch(name: &str) -> TokenStream {
    let path = format!("/{name}");
    quote!(::core::include_bytes!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package directory of its own for each test, removed at the end.
    struct Package(PathBuf);

    impl Package {
        fn new(test: &str, files: &[(&str, &str)]) -> Self {
            let directory =
                std::env::temp_dir().join(format!("tilewright-ship-{}-{test}", std::process::id()));
            fs::create_dir_all(directory.join("tuned")).expect("a place for temporary files");
            for (name, content) in files {
                fs::write(directory.join(name), content).expect("a place for temporary files");
            }
            Package(directory)
        }

        fn ship(&self, input: TokenStream) -> std::result::Result<String, String> {
            expand_in(Some(&self.0), input)
                .map(|tokens| tokens.to_string())
                .map_err(|error| error.to_string())
        }
    }

    impl Drop for Package {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn line(kernel: &str, time: u64, median_ns: f64, rest: &str) -> String {
        format!(
            r#"{{"version":1,"kernel":"{kernel}","program":"1","shape":{{"N":4}},"target":"cpu;threads=1","median_ns":{median_ns},"time":{time},"trace":"trace {time}","rules":["a"]{rest}}}"#
        )
    }

    #[test]
    fn the_line_that_calls_would_use_is_embedded_and_every_file_watched() {
        let failed = r#"{"version":1,"kernel":"f","error":"crash: no"}"#;
        let run = r#"{"version":1,"kind":"run","kernel":"b","median_ns":1.0}"#;
        let confirmed = line("b", 1, 9.0, r#","confirmed":true"#);
        let first = [line("b", 3, 5.0, ""), confirmed, line("c", 1, 7.0, ""), failed.to_owned()].join("\n");
        let second = [line("c", 2, 6.0, ""), run.to_owned(), line("a", 1, 3.0, "")].join("\n\n");
        let files = [
            ("tuned/b.jsonl", first.as_str()),
            ("tuned/c.jsonl", second.as_str()),
            ("tuned/.gitkeep", ""),
            ("tuned/x.txt", "?"),
        ];
        let package = Package::new("best", &files);
        let code = package.ship(quote!("tuned/")).expect("all is well");
        for name in ["b.jsonl", "c.jsonl", ".gitkeep"] {
            assert!(code.contains(&format!("\"/tuned/{name}\"")), "{name}: {code}");
        }
        assert!(!code.contains("x.txt"), "{code}");
        let files = files_of(&package);
        let kept: Vec<(String, u64)> = best(files)
            .iter()
            .map(|record| (record["kernel"].as_str().unwrap().to_owned(), record["time"].as_u64().unwrap()))
            .collect();
        assert_eq!(kept, [("b".to_owned(), 1), ("c".to_owned(), 2), ("a".to_owned(), 1)]);
    }

    fn files_of(package: &Package) -> Vec<Value> {
        let names = files(&package.0, "tuned/").expect("a directory");
        let records = names.iter().filter(|name| name.ends_with(EXTENSION));
        records.flat_map(|name| read(&package.0.join(name), name).expect("records")).collect()
    }

    #[test]
    fn only_needed_fields_are_embedded() {
        let record: Value =
            serde_json::from_str(&line("b", 1, 5.0, r#","predicted":0.5"#)).expect("a record");
        let kept = best(vec![record]).remove(0);
        assert!(
            kept.get("predicted").is_none() && kept.get("rules").is_none() && kept.get("trace").is_some()
        );
    }

    #[test]
    fn what_is_broken_is_named_with_file_and_line() {
        for (line, message) in [
            ("{\"version\":1", "tuned/a.jsonl:2: not a tuning record: EOF"),
            ("{\"version\":2}", "tuned/a.jsonl:2: a record of format version 2, expected 1"),
            ("{}", "tuned/a.jsonl:2: not a tuning record: it states no `version`"),
            ("[[[", "tuned/a.jsonl:2: not a tuning record"),
        ] {
            let package =
                Package::new("broken", &[("tuned/a.jsonl", &format!("{{\"version\":1}}\n{line}\n"))]);
            let error = package.ship(quote!("tuned")).expect_err(line);
            assert!(error.starts_with(message), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_missing_is_explained() {
        let package = Package::new("missing", &[("other.txt", "")]);
        for (input, message) in [
            (quote!("absent/"), "there is no `absent/` in this package; run `cargo bench`"),
            (quote!("tuned/"), "`tuned/` holds no tuning records"),
            (quote!("other.txt"), "its name must end in `.jsonl`"),
            (quote!(tuned), "expected a directory or a file of tuning records"),
            (quote!(), "expected a directory or a file of tuning records"),
        ] {
            let error = package.ship(input).expect_err(message);
            assert!(error.contains(message), "{error}");
        }
    }
}
