//! `ship!`: records become part of the program.
//!
//! The files are read once here, so that what is broken is a compile error, and embedded by `include_str!`, so that a
//! change of one makes cargo compile the crate again.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, LitStr, Result};

/// The version of the records' format, which every line states.
const FORMAT_VERSION: u64 = 1;

/// A file that keeps an empty directory under version control. It is embedded too: the tuner touches a neighbour of
/// each file that it makes, and cargo thereby notices a new file.
const KEEPER: &str = ".gitkeep";

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
    let mut records = Vec::new();
    let mut keepers = Vec::new();
    for name in files {
        if !name.ends_with(EXTENSION) {
            keepers.push(embedded(&name, "include_bytes"));
            continue;
        }
        check(&package.join(&name), &name).map_err(|message| Error::new(literal.span(), message))?;
        let content = embedded(&name, "include_str");
        records.push(quote!((#name, #content)));
    }
    Ok(quote! {
        const _: () = {
            #(const _: &[u8] = #keepers;)*
            ::tilewright::__private::inventory::submit! {
                ::tilewright::__private::ShippedRecords { files: &[#(#records),*] }
            }
        };
    })
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

/// Checks that every line is a record of a version that can be read; what it says is checked when it is used.
fn check(path: &Path, name: &str) -> std::result::Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read `{name}`: {error}"))?;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("{name}:{}", number + 1);
        let record: serde_json::Value = serde_json::from_str(line)
            .map_err(|error| format!("{place}: not a tuning record: {error}; remove the line"))?;
        match record.get("version").map(serde_json::Value::as_u64) {
            Some(Some(FORMAT_VERSION)) => {}
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
    Ok(())
}

/// `include_str!(…)` of a file of the package.
fn embedded(name: &str, include: &str) -> TokenStream {
    let include = syn::Ident::new(include, Span::call_site());
    let path = format!("/{name}");
    quote!(::core::#include!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #path)))
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

    #[test]
    fn every_file_is_embedded_in_order() {
        let line = "{\"version\":1}\n\n{\"version\":1}\n";
        let files =
            [("tuned/b.jsonl", line), ("tuned/a.jsonl", line), ("tuned/.gitkeep", ""), ("tuned/x.txt", "?")];
        let package = Package::new("order", &files);
        let code = package.ship(quote!("tuned/")).expect("all is well");
        let position = |name: &str| code.find(&format!("\"/tuned/{name}\"")).expect(name);
        assert!(position("a.jsonl") < position("b.jsonl"), "{code}");
        assert!(code.contains(".gitkeep") && !code.contains("x.txt"), "{code}");
        let one = package.ship(quote!("tuned/a.jsonl")).expect("a file does as well");
        assert!(one.contains("a.jsonl") && !one.contains("b.jsonl"), "{one}");
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
