//! The options in the brackets of the attribute.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;

use crate::diagnostics::Diagnostics;

const OPTIONS: &str = "the options are `target`, `after`, `before`, `replace` and `name`";
const TARGETS: [&str; 3] = ["cpu", "gpu", "any"];

/// The options of a rule.
#[derive(Default)]
pub(super) struct Options {
    pub(super) target: String,
    pub(super) after: Vec<String>,
    pub(super) before: Vec<String>,
    pub(super) replace: Option<String>,
    pub(super) name: Option<String>,
}

/// Parses the options; reports what is wrong with them.
pub(super) fn parse(attribute: TokenStream, diagnostics: &Diagnostics) -> Options {
    let mut options = Options::default();
    let list = match Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated.parse2(attribute) {
        Ok(list) => list,
        Err(error) => {
            diagnostics.error_at(
                error.span(),
                error,
                "write options as `target = \"cpu\", after = \"name\"`",
            );
            return options;
        }
    };
    let mut seen: Vec<String> = Vec::new();
    for meta in &list {
        let key = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
        if seen.contains(&key) {
            diagnostics.error(meta.path(), format!("`{key}` is given twice"), several(&key));
            continue;
        }
        option(&mut options, &key, meta, diagnostics);
        seen.push(key);
    }
    if !seen.iter().any(|key| key == "target") {
        diagnostics.error_at(
            Span::call_site(),
            "the rule's target is missing",
            "write `#[schedule_rule(target = \"cpu\")]`",
        );
    }
    options
}

fn several(key: &str) -> String {
    match key {
        "after" | "before" => format!("give all names in one list: `{key} = [\"one\", \"two\"]`"),
        _ => "remove one of them".to_owned(),
    }
}

fn option(options: &mut Options, key: &str, meta: &syn::Meta, diagnostics: &Diagnostics) {
    if !["target", "after", "before", "replace", "name"].contains(&key) {
        diagnostics.error(meta.path(), "a rule has no such option", OPTIONS);
        return;
    }
    let syn::Meta::NameValue(pair) = meta else {
        diagnostics.error(meta, format!("`{key}` has no value"), format!("write `{key} = \"…\"`"));
        return;
    };
    let Some(values) = strings(&pair.value) else {
        diagnostics.error(
            &pair.value,
            format!("the value of `{key}` is not a name"),
            match key {
                "after" | "before" => format!("write `{key} = \"name\"` or `{key} = [\"one\", \"two\"]`"),
                _ => format!("write `{key} = \"name\"`"),
            },
        );
        return;
    };
    match (key, values.as_slice()) {
        ("after", _) => options.after = values,
        ("before", _) => options.before = values,
        (_, [one]) => match key {
            "target" if !TARGETS.contains(&one.as_str()) => diagnostics.error(
                &pair.value,
                format!("there is no target `{one}`"),
                "the targets are `cpu`, `gpu`, and `any` for all of them",
            ),
            "target" => options.target.clone_from(one),
            "replace" => options.replace = Some(one.clone()),
            _ => options.name = Some(one.clone()),
        },
        _ => diagnostics.error(
            &pair.value,
            format!("`{key}` has one value"),
            format!("write `{key} = \"name\"`"),
        ),
    }
}

/// A string, or a list of strings; none of them empty.
fn strings(value: &syn::Expr) -> Option<Vec<String>> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) if !text.value().is_empty() => {
            Some(vec![text.value()])
        }
        syn::Expr::Array(array) => {
            let values = array.elems.iter().map(strings).collect::<Option<Vec<_>>>()?;
            Some(values.into_iter().flatten().collect())
        }
        _ => None,
    }
}
