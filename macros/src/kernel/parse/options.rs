//! The options in the brackets of the attribute.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;

use crate::diagnostics::Diagnostics;

const ACCURACY: &str = "write how far a product of two `f32` may be off, relative to itself: at least 0 and less than 1, \
                        as in `accuracy = 1e-5`";

/// The accuracy in the options, if there is one; reports what is wrong with the options.
pub(super) fn accuracy(attribute: &TokenStream, diagnostics: &Diagnostics) -> Option<f64> {
    let list = match Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated.parse2(attribute.clone()) {
        Ok(list) => list,
        Err(error) => {
            diagnostics.error_at(
                error.span(),
                error,
                "write `#[tensor_kernel]` or `#[tensor_kernel(accuracy = 1e-5)]`",
            );
            return None;
        }
    };
    let mut found = None;
    for (number, meta) in list.iter().enumerate() {
        if !meta.path().is_ident("accuracy") {
            diagnostics.error(
                meta.path(),
                "a kernel has no such option",
                "the only one is `accuracy`; what is specific to a shape or a machine is chosen by tuning",
            );
        } else if list.iter().take(number).any(|other| other.path().is_ident("accuracy")) {
            diagnostics.error(meta.path(), "`accuracy` is given twice", "remove one of them");
        } else {
            found = value(meta, diagnostics);
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
