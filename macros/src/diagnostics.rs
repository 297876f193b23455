//! The accumulator of errors.
//!
//! Every error points at a token of the user's and says what to write instead. All of them are reported
//! together, so that one build shows everything there is to mend.

use std::cell::RefCell;
use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

/// The first and the last token of something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    start: Span,
    end: Span,
}

impl Extent {
    /// The extent of tokens.
    pub(crate) fn of(tokens: impl ToTokens) -> Self {
        let mut tokens = tokens.to_token_stream().into_iter();
        let start = tokens.next().map_or_else(Span::call_site, |token| token.span());
        let end = tokens.last().map_or(start, |token| token.span());
        Extent { start, end }
    }
}

/// Errors found so far. Dropping it without [`Diagnostics::finish`] is a bug of ours.
pub(crate) struct Diagnostics {
    errors: RefCell<Option<Vec<syn::Error>>>,
}

impl Diagnostics {
    /// No error yet.
    pub(crate) fn new() -> Self {
        Diagnostics { errors: RefCell::new(Some(Vec::new())) }
    }

    /// Reports `problem` at `tokens`, with `help` on what to write instead.
    pub(crate) fn error(&self, tokens: impl ToTokens, problem: impl Display, help: impl Display) {
        self.push(syn::Error::new_spanned(tokens, format!("{problem}\nhelp: {help}")));
    }

    /// As [`Diagnostics::error`], at a span.
    pub(crate) fn error_at(&self, span: Span, problem: impl Display, help: impl Display) {
        self.push(syn::Error::new(span, format!("{problem}\nhelp: {help}")));
    }

    /// As [`Diagnostics::error`], from the first to the last token of an extent.
    pub(crate) fn error_over(&self, extent: Extent, problem: impl Display, help: impl Display) {
        let (start, end) = (Ident::new("start", extent.start), Ident::new("end", extent.end));
        self.error(quote!(#start #end), problem, help);
    }

    /// How many errors there are.
    pub(crate) fn count(&self) -> usize {
        self.errors.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Adds an error that already has a span.
    pub(crate) fn push(&self, error: syn::Error) {
        if let Some(errors) = self.errors.borrow_mut().as_mut() {
            errors.push(error);
        }
    }

    /// The errors as `compile_error!` invocations, in order of discovery; `None` when there are none.
    pub(crate) fn finish(self) -> Option<TokenStream> {
        let errors = self.errors.borrow_mut().take().unwrap_or_default();
        if errors.is_empty() {
            return None;
        }
        Some(errors.iter().map(syn::Error::to_compile_error).collect())
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        assert!(
            self.errors.borrow().is_none() || std::thread::panicking(),
            "diagnostics were dropped without being reported"
        );
    }
}

/// The function that an attribute stands on; reports what else it stands on.
pub(crate) fn parse_function(
    item: &TokenStream,
    attribute: &str,
    diagnostics: &Diagnostics,
) -> Option<syn::ItemFn> {
    match syn::parse2::<syn::Item>(item.clone()) {
        Ok(syn::Item::Fn(function)) => return Some(function),
        Ok(_) => diagnostics.error(
            item.clone().into_iter().next(),
            format!("`#[{attribute}]` stands on something that is no function"),
            "put it above a `fn`",
        ),
        Err(error) => diagnostics.push(error),
    }
    None
}
