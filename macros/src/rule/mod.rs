//! `#[schedule_rule]`: the function as it is, an entry in the registry, and `NAME::rule()`, the same entry for
//! those who collect rules by hand.

mod options;
mod signature;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::diagnostics::Diagnostics;
use options::Options;

/// Expands the attribute on a function.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let diagnostics = Diagnostics::new();
    let options = options::parse(attribute, &diagnostics);
    signature::check(&function.sig, &diagnostics);
    match diagnostics.finish() {
        None => {
            let entry = entry(&function, &options);
            quote!(#function #entry)
        }
        // The function stays, used by nothing.
        Some(errors) => quote!(#errors #[allow(dead_code)] #function),
    }
}

fn entry(item: &syn::ItemFn, options: &Options) -> TokenStream {
    let (function, visibility) = (&item.sig.ident, &item.vis);
    let name = options.name.clone().unwrap_or_else(|| function.to_string());
    let Options { target, after, before, .. } = options;
    let replace = match &options.replace {
        Some(name) => quote!(::tilewright::__private::Some(#name)),
        None => quote!(::tilewright::__private::None),
    };
    let document = format!("The schedule rule `{name}`, for rule sets that are put together by hand.");
    quote_spanned! {function.span()=>
        #[doc = #document]
        #[allow(non_camel_case_types)]
        #visibility enum #function {}

        impl #function {
            /// The rule with its name and its place among others.
            #visibility const fn rule() -> ::tilewright::__private::RuleEntry {
                ::tilewright::__private::RuleEntry {
                    name: #name,
                    target: #target,
                    after: &[#(#after),*],
                    before: &[#(#before),*],
                    replace: #replace,
                    apply: #function,
                    file: ::tilewright::__private::file!(),
                    line: ::tilewright::__private::line!(),
                }
            }
        }

        ::tilewright::__private::inventory::submit! { #function::rule() }
    }
}
