//! Checks of fixed extents when the program is compiled.
//!
//! A signature is a list of lists of numbers, one for each argument: an extent that is a number, `-1 - n` for the dimension with the
//! number `n`, [`UNKNOWN`] for a computed one; nothing for what is no tensor. Where arguments of a graph go straight into a call, the
//! compiler compares both signatures.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

use super::body;
use super::signature::{Argument, Dim, Form, Graph, Tensor};

/// An extent of which nothing is known.
pub(crate) const UNKNOWN: i64 = i64::MIN;

/// `NAME::__SHAPES`
pub(crate) fn constant(arguments: &[Vec<i64>]) -> TokenStream {
    let arguments = arguments.iter().map(|extents| quote!(&[#(#extents),*]));
    quote! {
        #[doc(hidden)]
        pub const __SHAPES: &'static [&'static [i64]] = &[#(#arguments),*];
    }
}

/// The signature of a graph.
pub(super) fn of_graph(graph: &Graph) -> Vec<Vec<i64>> {
    let shape = |argument: &Argument| match argument {
        Argument::Tensor { form: Form::Read | Form::Updated, tensor, .. } => extents(graph, tensor),
        Argument::Tensor { form: Form::UpdatedList, .. } | Argument::Other(_) => Vec::new(),
    };
    graph.arguments.iter().map(shape).collect()
}

fn extents(graph: &Graph, tensor: &Tensor) -> Vec<i64> {
    let extent = |dim: &Dim| match dim {
        Dim::Symbol(name) => {
            graph.dims.iter().position(|known| known == name).map_or(UNKNOWN, |position| -1 - position as i64)
        }
        Dim::Value(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. })) => {
            number.base10_parse().unwrap_or(UNKNOWN)
        }
        Dim::Value(_) => UNKNOWN,
    };
    tensor.dims.iter().map(extent).collect()
}

/// A check for each call in the body that is given arguments of the graph.
pub(super) fn checks(graph: &Graph) -> TokenStream {
    let body: TokenStream = graph.block.stmts.iter().map(ToTokens::to_token_stream).collect();
    let mut renamed = Vec::new();
    bound_names(body.clone(), &mut renamed);
    let mut checks = TokenStream::new();
    calls(body, &mut |path, arguments| {
        let shapes: Vec<Vec<i64>> = arguments
            .iter()
            .map(|argument| {
                let name = plain_name(argument).filter(|name| !renamed.iter().any(|other| other == *name));
                let tensor = name.and_then(|name| tensor(graph, name));
                tensor.map_or_else(Vec::new, |tensor| extents(graph, tensor))
            })
            .collect();
        if shapes.iter().flatten().any(|extent| *extent > 0) {
            let shapes = shapes.iter().map(|extents| quote!(&[#(#extents),*]));
            let span = path.last().expect("a path has a name").span();
            let path: TokenStream = path.iter().cloned().collect();
            checks.extend(quote_spanned! {span=>
                const _: () = ::tilewright::__private::graph::check_call(#path::__SHAPES, &[#(#shapes),*]);
            });
        }
    });
    checks
}

fn tensor<'g>(graph: &'g Graph, name: &Ident) -> Option<&'g Tensor> {
    graph.arguments.iter().find_map(|argument| match argument {
        Argument::Tensor { name: own, form: Form::Read | Form::Updated, tensor } if own == name => {
            Some(&**tensor)
        }
        _ => None,
    })
}

/// `x`, `&x` or `&*x`
fn plain_name(argument: &[TokenTree]) -> Option<&Ident> {
    match argument {
        [TokenTree::Ident(name)] => Some(name),
        [first, TokenTree::Ident(name)] if body::is_punct(Some(first), '&') => Some(name),
        [first, second, TokenTree::Ident(name)]
            if body::is_punct(Some(first), '&') && body::is_punct(Some(second), '*') =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// A visitor of calls, which gets the path and the arguments of each.
type CallVisitor<'a> = &'a mut dyn FnMut(&[TokenTree], &[Vec<TokenTree>]);

/// Visits each call of a kernel or graph by its own name.
fn calls(tokens: TokenStream, visit: CallVisitor<'_>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (position, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            calls(group.stream(), visit);
        }
        let (TokenTree::Ident(name), Some(TokenTree::Group(arguments))) = (token, tokens.get(position + 1))
        else {
            continue;
        };
        let before = &tokens[..position];
        let is_call = arguments.delimiter() == Delimiter::Parenthesis
            && body::calls_by_name(before, name)
            && !body::owner(before).is_some_and(body::is_type);
        if is_call {
            let start = path_start(before);
            visit(&tokens[start..=position], &split(arguments.stream()));
        }
    }
}

/// Where the path begins whose last segment stands behind these tokens.
fn path_start(before: &[TokenTree]) -> usize {
    let mut start = before.len();
    while start >= 2
        && body::is_punct(before.get(start - 1), ':')
        && body::is_punct(before.get(start - 2), ':')
    {
        start -= 2;
        if start >= 1 && matches!(before[start - 1], TokenTree::Ident(_)) {
            start -= 1;
        }
    }
    start
}

pub(super) fn split(arguments: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut found = vec![Vec::new()];
    for token in arguments {
        if body::is_punct(Some(&token), ',') {
            found.push(Vec::new());
        } else {
            found.last_mut().expect("there is one").push(token);
        }
    }
    found
}

/// The names in patterns of `let` and `for`, and of closures: they may stand for something else than an argument.
pub(super) fn bound_names(tokens: TokenStream, names: &mut Vec<Ident>) {
    let mut in_pattern = false;
    for token in tokens {
        match &token {
            TokenTree::Ident(word) if word == "let" || word == "for" => in_pattern = true,
            TokenTree::Ident(word) if word == "in" => in_pattern = false,
            TokenTree::Ident(name) if in_pattern => names.push(name.clone()),
            TokenTree::Punct(punct) if punct.as_char() == '=' || punct.as_char() == ';' => in_pattern = false,
            TokenTree::Punct(punct) if punct.as_char() == '|' => in_pattern = !in_pattern,
            TokenTree::Group(group) if in_pattern => identifiers(group.stream(), names),
            TokenTree::Group(group) => bound_names(group.stream(), names),
            _ => {}
        }
    }
}

/// All identifiers, also those in groups.
fn identifiers(tokens: TokenStream, names: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => names.push(name),
            TokenTree::Group(group) => identifiers(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
