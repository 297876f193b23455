//! Calls of kernels in the body of a graph.
//!
//! A call is a name in lower case, perhaps behind a path, and its arguments in parentheses. Methods, macros, types and variants are left
//! alone, but for `reshape`, which can fail. Calls can fail, too: a `?` follows each.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use super::shapes::split;
use crate::diagnostics::Diagnostics;

/// The way in which calls of a body are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Tuned code.
    Tuned,
    /// Definitions as ordinary Rust.
    Reference,
    /// Entries in a graph.
    Recorded,
}

impl Mode {
    /// The function beside `NAME` that is called instead of it.
    fn function(self) -> Option<&'static str> {
        match self {
            Mode::Tuned => None,
            Mode::Reference => Some("reference"),
            Mode::Recorded => Some("__record"),
        }
    }

    /// The ending of the function that is called instead of a function of a type.
    fn suffix(self) -> Option<&'static str> {
        match self {
            Mode::Tuned => None,
            Mode::Reference => Some("reference"),
            Mode::Recorded => Some("record"),
        }
    }
}

/// Words that stand before parentheses without calling anything.
const KEYWORDS: [&str; 15] = [
    "as", "break", "dyn", "else", "for", "if", "impl", "in", "let", "loop", "match", "move", "mut", "return",
    "while",
];

/// Reports what a body cannot contain.
pub(super) fn check(block: &syn::Block, diagnostics: &Diagnostics) {
    for statement in &block.stmts {
        match statement {
            syn::Stmt::Item(syn::Item::Use(_) | syn::Item::Const(_)) => {}
            syn::Stmt::Item(item) => {
                diagnostics.error(item, "a graph's body holds no items", "move it out of the function");
            }
            syn::Stmt::Local(syn::Local { init: Some(init), .. }) => {
                if let syn::Expr::Closure(closure) = &*init.expr {
                    diagnostics.error(
                        closure.or1_token,
                        "a graph calls no closures",
                        "make it a function with `#[tensor_graph]`, which a graph can call",
                    );
                }
            }
            _ => {}
        }
    }
}

/// The body with its calls made in a way. `updated` are names of arguments that are updated: a call that is given such a name borrows the
/// tensor again, as any call of a function does in Rust.
pub(super) fn rewritten(block: &syn::Block, mode: Mode, updated: &[&Ident]) -> TokenStream {
    let tokens: TokenStream = block.stmts.iter().map(ToTokens::to_token_stream).collect();
    let body = Rewriter { mode, updated }.rewrite(tokens);
    quote!({ #body })
}

struct Rewriter<'a> {
    mode: Mode,
    updated: &'a [&'a Ident],
}

impl Rewriter<'_> {
    fn rewrite(&self, tokens: TokenStream) -> TokenStream {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut found = TokenStream::new();
        let mut position = 0;
        while position < tokens.len() {
            match (&tokens[position], tokens.get(position + 1)) {
                (TokenTree::Ident(name), Some(TokenTree::Group(arguments)))
                    if arguments.delimiter() == Delimiter::Parenthesis && !is_keyword(name) =>
                {
                    found.extend(self.call(&tokens[..position], name, arguments));
                    position += 2;
                }
                (TokenTree::Group(group), _) => {
                    found.extend([TokenTree::Group(self.inside(group))]);
                    position += 1;
                }
                (other, _) => {
                    found.extend([other.clone()]);
                    position += 1;
                }
            }
        }
        found
    }

    /// A group with its contents rewritten.
    fn inside(&self, group: &Group) -> Group {
        let mut rewritten = Group::new(group.delimiter(), self.rewrite(group.stream()));
        rewritten.set_span(group.span());
        rewritten
    }

    /// `name(arguments)` behind other tokens.
    fn call(&self, before: &[TokenTree], name: &Ident, arguments: &Group) -> TokenStream {
        let mode = self.mode;
        let own = self.inside(arguments);
        let question = question_mark(name.span());
        if is_punct(before.last(), '.') {
            return match (name == "reshape", mode) {
                (false, _) => quote!(#name #own),
                (true, Mode::Recorded) => {
                    let shape = Group::new(Delimiter::Parenthesis, shape(&own));
                    quote_spanned!(name.span()=> record_reshape #shape #question)
                }
                (true, _) => quote!(#name #own #question),
            };
        }
        if !calls_by_name(before, name) {
            return quote!(#name #own);
        }
        let own = self.borrowed_again(&own);
        match owner(before) {
            Some(owner) if is_type(owner) => match mode.suffix() {
                None => quote!(#name #own #question),
                Some(suffix) => {
                    let name = format_ident!("{name}_{suffix}", span = name.span());
                    quote!(#name #own #question)
                }
            },
            _ => match mode.function() {
                None => quote!(#name #own #question),
                Some(function) => {
                    let function = Ident::new(function, name.span());
                    quote_spanned!(name.span()=> #name::#function #own #question)
                }
            },
        }
    }

    /// Arguments with `&mut *x` for `x`, where that is a reference to a tensor that is updated.
    fn borrowed_again(&self, arguments: &Group) -> Group {
        let arguments_again = split(arguments.stream()).into_iter().map(|argument| match &argument[..] {
            [TokenTree::Ident(name)] if self.updated.contains(&name) => quote!(&mut *#name),
            _ => argument.into_iter().collect(),
        });
        let mut group = Group::new(arguments.delimiter(), quote!(#(#arguments_again),*));
        group.set_span(arguments.span());
        group
    }
}

fn is_keyword(name: &Ident) -> bool {
    KEYWORDS.iter().any(|word| name == word)
}

/// Whether a name before parentheses is that of a kernel or graph: no method, type or variant, and no function of a type of Rust's own, such
/// as `Vec::new()` or `f32::from(…)`.
pub(super) fn calls_by_name(before: &[TokenTree], name: &Ident) -> bool {
    !is_keyword(name)
        && !is_punct(before.last(), '.')
        && name.to_string().starts_with(|first: char| first.is_lowercase() || first == '_')
        && !owner(before).is_some_and(is_foreign)
}

/// The segment in front of the last one of a path: `Layer` of `layers::Layer::forward`.
pub(super) fn owner(before: &[TokenTree]) -> Option<&Ident> {
    let [.., TokenTree::Ident(owner), first, second] = before else { return None };
    (is_punct(Some(first), ':') && is_punct(Some(second), ':')).then_some(owner)
}

pub(super) fn is_type(name: &Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}

/// Whether a type certainly has no kernels: one of Rust's own.
fn is_foreign(name: &Ident) -> bool {
    const TYPES: [&str; 14] = [
        "Arc",
        "Box",
        "Default",
        "HashMap",
        "Iterator",
        "None",
        "Option",
        "Rc",
        "Result",
        "Some",
        "String",
        "Tensor",
        "TensorView",
        "Vec",
    ];
    let name = name.to_string();
    TYPES.contains(&&*name)
        || name == "usize"
        || tilewright_vocabulary::DType::ALL.iter().any(|dtype| dtype.name() == name)
}

pub(super) fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn question_mark(span: Span) -> Punct {
    let mut question = Punct::new('?', Spacing::Alone);
    question.set_span(span);
    question
}

/// The extents of a shape in brackets, which may be numbers or extents of the graph.
fn shape(arguments: &Group) -> TokenStream {
    let mut tokens = arguments.stream().into_iter();
    let (Some(TokenTree::Group(list)), None) = (tokens.next(), tokens.next()) else {
        return arguments.stream();
    };
    if list.delimiter() != Delimiter::Bracket {
        return arguments.stream();
    }
    let mut extents = vec![TokenStream::new()];
    for token in list.stream() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => extents.push(TokenStream::new()),
            _ => extents.last_mut().expect("there is one").extend([token]),
        }
    }
    let extents = extents.into_iter().filter(|extent| !extent.is_empty());
    quote!([#(::tilewright::__private::graph::Dim::from(#extents)),*])
}
