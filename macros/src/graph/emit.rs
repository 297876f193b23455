//! The functions that stand in the place of a graph.
//!
//! | item | does |
//! |---|---|
//! | `fn NAME` | calls the kernels, tuned |
//! | `NAME::reference` | calls their references |
//! | `NAME::graph` | records the graph, for a session |

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;

use super::body::{Mode, rewritten};
use super::shapes;
use super::signature::{Argument, Dim, Form, Graph, Tensor, local};

/// The code for a graph without errors.
pub(super) fn graph(graph: &Graph) -> TokenStream {
    let (name, visibility, attributes) = (&graph.name, &graph.visibility, &graph.attributes);
    let owned = |tensor: &Tensor| {
        let (path, element, rank) = (&tensor.path, &tensor.element, tensor.dims.len());
        quote!(#path<#element, #rank>)
    };
    let arguments = arguments(graph, &|tensor| tensor_view(tensor), &owned);
    let returned = returned(&graph.results, &owned);
    let lifetime = lifetime(graph);
    let result = quote!(::tilewright::__private::Result<#returned, ::tilewright::__private::Error>);
    let views: TokenStream = tensors(graph)
        .filter(|(_, form, _)| *form == Form::Read)
        .map(|(name, _, tensor)| {
            let view = tensor_view(tensor);
            quote!(let #name: #view = ::tilewright::__private::Into::into(#name);)
        })
        .collect();
    let (checks, tuned) = (shapes::checks(graph), body(graph, Mode::Tuned));
    let own_shapes = shapes::constant(&shapes::of_graph(graph));
    let reference = body(graph, Mode::Reference);
    let (recorded, entry) = (record(graph), entry(graph));
    let doc = format!("What belongs to the graph [`{name}`](fn@{name}) beside its call.");
    let errors = "\n# Errors\nWhen shapes do not fit, or a kernel fails.";
    quote! {
        #(#attributes)*
        #[doc = #errors]
        #[allow(non_snake_case, unused_parens, clippy::too_many_arguments)]
        #visibility fn #name #lifetime(#(#arguments),*) -> #result {
            #checks
            #views
            #tuned
        }
        #[allow(non_camel_case_types)]
        #[doc = #doc]
        #visibility enum #name {}
        impl #name {
            /// The same by the references of all kernels.
            ///
            /// # Errors
            /// When shapes do not fit, or an index is out of bounds.
            #[allow(non_snake_case, unused_parens, clippy::too_many_arguments)]
            pub fn reference #lifetime(#(#arguments),*) -> #result {
                #views
                #reference
            }
            #entry
            #recorded
            #own_shapes
        }
    }
}

fn tensors(graph: &Graph) -> impl Iterator<Item = (&Ident, Form, &Tensor)> {
    graph.arguments.iter().filter_map(|argument| match argument {
        Argument::Tensor { name, form, tensor } => Some((name, *form, &**tensor)),
        Argument::Other(_) => None,
    })
}

/// The lifetime of tensors that are read.
fn lifetime(graph: &Graph) -> Option<TokenStream> {
    tensors(graph).any(|(_, form, _)| form == Form::Read).then(|| quote!(<'t>))
}

fn tensor_view(tensor: &Tensor) -> TokenStream {
    let (element, rank) = (&tensor.element, tensor.dims.len());
    quote!(::tilewright::__private::TensorView<'t, #element, #rank>)
}

/// The arguments of a function, by the types of tensors that are read and of those that are updated.
fn arguments(
    graph: &Graph,
    read: &dyn Fn(&Tensor) -> TokenStream,
    updated: &dyn Fn(&Tensor) -> TokenStream,
) -> Vec<TokenStream> {
    let argument = |argument: &Argument| match argument {
        Argument::Tensor { name, form, tensor } => {
            let (read, updated) = (read(tensor), updated(tensor));
            match form {
                Form::Read => quote!(#name: impl ::tilewright::__private::Into<#read>),
                Form::Updated => quote!(#name: &mut #updated),
                Form::UpdatedList => quote!(#name: &mut [#updated]),
            }
        }
        Argument::Other(typed) => quote!(#typed),
    };
    graph.arguments.iter().map(argument).collect()
}

fn returned(results: &[Tensor], ty: &dyn Fn(&Tensor) -> TokenStream) -> TokenStream {
    let types: Vec<TokenStream> = results.iter().map(ty).collect();
    match &types[..] {
        [one] => one.clone(),
        types => quote!((#(#types),*)),
    }
}

/// The extents of the arguments, the body and the checks of its results.
fn body(graph: &Graph, mode: Mode) -> TokenStream {
    let (dims, body) = (dims(graph), rewritten(&graph.block, mode, &updated(graph)));
    let outputs: Vec<Ident> =
        (0..graph.results.len()).map(|position| local(&format!("output_{position}"))).collect();
    let pattern = match &outputs[..] {
        [one] => quote!(#one),
        outputs => quote!((#(#outputs),*)),
    };
    let checks = graph.results.iter().zip(&outputs).enumerate().flat_map(|(position, (tensor, output))| {
        let text =
            if graph.results.len() == 1 { "the result".to_owned() } else { format!("result {position}") };
        checks(graph, &text, output, tensor)
    });
    quote! {
        #dims
        let #pattern = #body;
        #(#checks)*
        ::tilewright::__private::Ok(#pattern)
    }
}

/// The names that are references to tensors to update all over the body.
fn updated(graph: &Graph) -> Vec<&Ident> {
    let body: TokenStream = graph.block.stmts.iter().map(ToTokens::to_token_stream).collect();
    let mut renamed = Vec::new();
    shapes::bound_names(body, &mut renamed);
    tensors(graph)
        .filter(|(name, form, _)| *form != Form::Read && !renamed.contains(name))
        .map(|(name, ..)| name)
        .collect()
}

/// `let M = a.shape()[0];` for each dimension, and checks of all other places.
fn dims(graph: &Graph) -> TokenStream {
    let mut lets = TokenStream::new();
    let mut later = TokenStream::new();
    let mut known: Vec<&Ident> = Vec::new();
    let title = graph.name.unraw().to_string();
    for (name, form, tensor) in tensors(graph) {
        for (axis, dim) in tensor.dims.iter().enumerate() {
            if let Dim::Symbol(symbol) = dim
                && !known.contains(&symbol)
            {
                known.push(symbol);
                let (argument, dimension) = (name.unraw().to_string(), dim.text());
                let tensor = match form {
                    Form::Read | Form::Updated => quote!(#name),
                    Form::UpdatedList => {
                        quote!(::tilewright::__private::graph::first(#title, #argument, #dimension, #name)?)
                    }
                };
                lets.extend(quote! {
                    #[allow(unused_variables)]
                    let #symbol = #tensor.shape()[#axis];
                });
            }
        }
    }
    for (name, form, tensor) in tensors(graph) {
        let checks = checks(graph, &format!("argument `{}`", name.unraw()), name, tensor);
        match form {
            Form::Read | Form::Updated => later.extend(checks),
            Form::UpdatedList => later.extend(quote!(for #name in #name.iter() { #(#checks)* })),
        }
    }
    quote!(#lets #later)
}

/// Checks of every extent of a tensor.
fn checks(graph: &Graph, text: &str, name: &Ident, tensor: &Tensor) -> Vec<TokenStream> {
    let title = graph.name.unraw().to_string();
    let check = |(axis, dim): (usize, &Dim)| {
        let dimension = dim.text();
        let expected = match dim {
            Dim::Symbol(symbol) => quote!(#symbol),
            Dim::Value(value) => quote!(#value),
        };
        quote! {
            ::tilewright::__private::graph::check_extent(
                #title, #text, (#axis, #dimension), #name.shape()[#axis], #expected,
            )?;
        }
    };
    tensor.dims.iter().enumerate().map(check).collect()
}

/// `NAME::__record`: the body while a graph is recorded.
fn record(graph: &Graph) -> TokenStream {
    let operand = |tensor: &Tensor| {
        let (element, rank) = (&tensor.element, tensor.dims.len());
        quote!(::tilewright::__private::graph::Operand<'t, #element, #rank>)
    };
    let traced = |tensor: &Tensor| {
        let (element, rank) = (&tensor.element, tensor.dims.len());
        quote!(::tilewright::__private::graph::Traced<#element, #rank>)
    };
    let arguments = arguments(graph, &operand, &traced);
    let traced = returned(&graph.results, &traced);
    let operands = tensors(graph).filter(|(_, form, _)| *form == Form::Read).map(|(name, _, tensor)| {
        let ty = operand(tensor);
        quote!(let #name = <#ty>::trace(::tilewright::__private::Into::into(#name))?;)
    });
    let (body, lifetime) = (body(graph, Mode::Recorded), lifetime(graph));
    quote! {
        #[doc(hidden)]
        #[allow(non_snake_case, unused_parens, clippy::all, clippy::pedantic, clippy::nursery)]
        pub fn __record #lifetime(#(#arguments),*)
            -> ::tilewright::__private::Result<#traced, ::tilewright::__private::Error>
        {
            #[allow(unused_imports)]
            use ::tilewright::__private::graph::Reshape as _;
            #(#operands)*
            #body
        }
    }
}

/// `NAME::graph`: the graph as data.
fn entry(graph: &Graph) -> TokenStream {
    let others = graph.arguments.iter().filter_map(|argument| match argument {
        Argument::Other(typed) => Some(quote!(#typed)),
        Argument::Tensor { name, form: Form::UpdatedList, .. } => Some(quote!(#name: usize)),
        Argument::Tensor { .. } => None,
    });
    let (name, title, dims) = (&graph.name, graph.name.unraw().to_string(), &graph.dims);
    let texts = dims.iter().map(|dim| dim.unraw().to_string());
    let inputs = tensors(graph).map(|(name, form, tensor)| input(name, form, tensor));
    let passed = graph.arguments.iter().map(|argument| match argument {
        Argument::Tensor { name, form: Form::Read, .. } => quote!(#name),
        Argument::Tensor { name, .. } => quote!(&mut #name),
        Argument::Other(typed) => {
            let pattern = &typed.pat;
            quote!(#pattern)
        }
    });
    let outputs: Vec<Ident> =
        (0..graph.results.len()).map(|position| format_ident!("output_{position}")).collect();
    let pattern = match &outputs[..] {
        [one] => quote!(#one),
        outputs => quote!((#(#outputs),*)),
    };
    let results = outputs.iter().enumerate().map(
        |(position, output)| quote!(::tilewright::__private::graph::GraphOutput::result(#position, #output)),
    );
    let updated = tensors(graph).map(|(name, form, _)| {
        let text = name.unraw().to_string();
        match form {
            Form::Read => quote!(),
            Form::Updated => {
                quote!(outputs.push(::tilewright::__private::graph::GraphOutput::updated(#text, #name));)
            }
            Form::UpdatedList => quote! {
                outputs.extend(::tilewright::__private::graph::GraphOutput::updated_list(#text, &#name));
            },
        }
    });
    quote! {
        /// The graph as data, for a session. Dimensions of the arguments are names; other tensors that the function reads are constants. In the
        /// place of a list of tensors to update stands how many they are.
        ///
        /// # Errors
        /// When the shapes of a call certainly do not fit.
        #[allow(non_snake_case, unused_mut, unused_variables, clippy::too_many_arguments)]
        pub fn graph(#(#others),*)
            -> ::tilewright::__private::Result<
                ::tilewright::__private::graph::KernelGraph, ::tilewright::__private::Error,
            >
        {
            ::tilewright::__private::graph::record(#title, || {
                #(let #dims = ::tilewright::__private::graph::Dim::symbol(#texts);)*
                #(#inputs)*
                let #pattern = #name::__record(#(#passed),*)?;
                let mut outputs = ::tilewright::__private::vec![#(#results),*];
                #(#updated)*
                ::tilewright::__private::Ok(outputs)
            })
        }
    }
}

/// The stand-ins of an argument.
fn input(name: &Ident, form: Form, tensor: &Tensor) -> TokenStream {
    let (element, rank, text) = (&tensor.element, tensor.dims.len(), name.unraw().to_string());
    let extents = tensor.dims.iter().map(|dim| match dim {
        Dim::Symbol(symbol) => quote!(#symbol),
        Dim::Value(value) => quote!(::tilewright::__private::graph::Dim::from(#value)),
    });
    let shape = quote!([#(#extents),*]);
    match form {
        Form::Read => {
            quote!(let #name = ::tilewright::__private::graph::input::<#element, #rank>(#text, #shape)?;)
        }
        Form::Updated => {
            quote!(let mut #name = ::tilewright::__private::graph::input::<#element, #rank>(#text, #shape)?;)
        }
        Form::UpdatedList => quote! {
            let mut #name = ::tilewright::__private::graph::inputs::<#element, #rank>(#text, #name, #shape)?;
        },
    }
}
