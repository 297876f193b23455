//! `#[schedule_rule]`: the function as it is, its entry as `NAME::ENTRY`, and that entry in the registry.

mod options;
mod signature;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::diagnostics::{Diagnostics, parse_function};
use options::Options;

/// Expands the attribute on a function.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let diagnostics = Diagnostics::new();
    let Some(function) = parse_function(&item, "schedule_rule", &diagnostics) else {
        let errors = diagnostics.finish();
        return quote!(#errors #item);
    };
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

fn entry(function: &syn::ItemFn, options: &Options) -> TokenStream {
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let name = options.name.clone().unwrap_or_else(|| ident.to_string());
    let Options { target, after, before, .. } = options;
    let replace = match &options.replace {
        Some(name) => quote!(::tilewright::__private::Some(#name)),
        None => quote!(::tilewright::__private::None),
    };
    let doc = format!("The entry of the rule [`{ident}`](fn@{ident}).");
    quote_spanned! {ident.span()=>
        #[allow(non_camel_case_types)]
        #[doc = #doc]
        #visibility enum #ident {}
        impl #ident {
            /// The rule, for naming it in a set explicitly.
            #visibility const ENTRY: ::tilewright::__private::RuleEntry = ::tilewright::__private::RuleEntry {
                name: #name,
                target: #target,
                after: &[#(#after),*],
                before: &[#(#before),*],
                replace: #replace,
                apply: #ident,
                module: ::tilewright::__private::module_path!(),
                file: ::tilewright::__private::file!(),
                line: ::tilewright::__private::line!(),
            };
        }
        ::tilewright::__private::inventory::submit! { #ident::ENTRY }
    }
}
