//! The options in the brackets of the attribute.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;

use crate::diagnostics::Diagnostics;

/// The names of all options.
const OPTIONS: [&str; 2] = ["accuracy", "multiply_padding"];

const ACCURACY: &str = "write how far a product of two `f32` may be off, relative to itself: at least 0 and less than 1, \
                        as in `accuracy = 1e-5`";

/// What stands in the brackets.
#[derive(Default)]
pub(super) struct Options {
    pub(super) accuracy: Option<f64>,
    pub(super) multiplies_padding: bool,
}

/// The options; reports what is wrong with them.
pub(super) fn options(attribute: &TokenStream, diagnostics: &Diagnostics) -> Options {
    let mut found = Options::default();
    let list = match Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated.parse2(attribute.clone()) {
        Ok(list) => list,
        Err(error) => {
            diagnostics.error_at(
                error.span(),
                error,
                "write `#[tensor_kernel]` or `#[tensor_kernel(accuracy = 1e-5)]`",
            );
            return found;
        }
    };
    for (number, meta) in list.iter().enumerate() {
        let name = OPTIONS.into_iter().find(|name| meta.path().is_ident(name));
        match name {
            None => diagnostics.error(
                meta.path(),
                "a kernel has no such option",
                "there are `accuracy` and `multiply_padding`; what is specific to a shape or a machine is chosen by tuning",
            ),
            Some(name) if list.iter().take(number).any(|other| other.path().is_ident(name)) => {
                diagnostics.error(meta.path(), format!("`{name}` is given twice"), "remove one of them");
            }
            Some("accuracy") => found.accuracy = value(meta, diagnostics),
            Some(_) => match meta {
                syn::Meta::Path(_) => found.multiplies_padding = true,
                _ => diagnostics.error(meta, "`multiply_padding` takes no value", "write the word alone"),
            },
        }
    }
    found
}

fn value(meta: &syn::Meta, diagnostics: &Diagnostics) -> Option<f64> {
    let syn::Meta::NameValue(pair) = meta else {
        diagnostics.error(meta, "`accuracy` has no value", ACCURACY);
        return None;
    };
    let number = match &pair.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(number), .. }) => {
            number.base10_parse::<f64>().ok()
        }
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.base10_parse::<f64>().ok(),
        _ => None,
    };
    let Some(number) = number else {
        diagnostics.error(&pair.value, "the value of `accuracy` is not a number", ACCURACY);
        return None;
    };
    if !(0.0..1.0).contains(&number) {
        diagnostics.error(&pair.value, "the value of `accuracy` is out of range", ACCURACY);
        return None;
    }
    Some(number)
}
