//! Expansions, as text.
//!
//! Tests of the facade cover the meaning of the expansion; the tests here cover its form.

use quote::quote;

use super::expand;

fn pretty(tokens: proc_macro2::TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(tokens).expect("the expansion parses as Rust"))
}

fn matmul() -> String {
    pretty(expand(
        quote!(),
        quote! {
            /// C = A·B
            pub fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
                let mut c = Tensor::zeros();
                for i in 0..M {
                    for j in 0..N {
                        for k in 0..K {
                            c[[i, j]] += a[[i, k]] * b[[k, j]];
                        }
                    }
                }
                c
            }
        },
    ))
}

/// Every path of generated code that does not start at the crate's hidden module or at a primitive type.
fn foreign_paths(tokens: proc_macro2::TokenStream) -> Vec<String> {
    let text = tokens.to_string().replace(' ', "");
    let rest = text.replace("::tilewright::__private::", "");
    rest.match_indices("::std::")
        .chain(rest.match_indices("::core::"))
        .map(|(at, _)| rest[at..].to_owned())
        .collect()
}

#[test]
fn generated_code_names_only_the_hidden_module() {
    let item = quote! {
        pub fn scale(x: &mut Tensor<f16, M, { M + 1 }>, table: &Tensor<f32, V>, ids: &Tensor<i32, M>, s: usize, a: f32) {
            for i in (0..M).step_by(s) {
                let y = table[[ids[[i]] as usize]] * a.max(0.0);
                for j in 0..=M {
                    x[[i, j]] += y.exp() as f16;
                }
            }
        }
    };
    let tokens = expand(quote!(), item);
    syn::parse2::<syn::File>(tokens.clone()).expect("the expansion parses as Rust");
    assert_eq!(foreign_paths(tokens), Vec::<String>::new());
}

#[test]
fn the_reference_keeps_the_users_loops_and_operators() {
    let text = matmul();
    for line in ["for i in 0..M {", "for j in 0..N {", "for k in 0..K {", "a.load([i, k])? * b.load([k, j])?"]
    {
        assert!(text.contains(line), "`{line}` is missing in\n{text}");
    }
}

#[test]
fn the_builder_gets_a_reduction_for_each_way_of_writing_one() {
    for (written, update, value) in [
        ("c[[i]] += a[[i]]", "Add", "builder.load(a"),
        ("c[[i]] = c[[i]] + a[[i]]", "Add", "builder.load(a"),
        ("c[[i]] = a[[i]] * c[[i]]", "Mul", "builder.load(a"),
        ("c[[i]] = c[[i]].max(a[[i]])", "Max", "builder.load(a"),
        ("c[[i]] = a[[i]].min(c[[i]])", "Min", "builder.load(a"),
        ("c[[i]] -= a[[i]]", "Add", "UnaryOp::Neg"),
        ("c[[i]] /= a[[i]]", "Set", "BinaryOp::Div"),
    ] {
        let text = format!(
            "fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {{ let mut c = Tensor::zeros(); for i in 0..N {{ {written}; }} c }}"
        );
        let text = pretty(expand(quote!(), text.parse().expect("it is Rust")));
        assert!(text.contains(&format!("UpdateOp::{update}")), "`{written}` is no {update}:\n{text}");
        assert!(text.replace(['\n', ' '], "").contains(value), "`{written}` lacks `{value}`:\n{text}");
    }
}

#[test]
fn on_an_error_the_names_and_types_remain() {
    let text = pretty(expand(
        quote!(),
        quote! {
            pub(crate) fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
                let mut c = Tensor::zeros();
                while true {}
                c
            }
        },
    ));
    assert!(text.contains("compile_error!"), "{text}");
    for line in
        ["pub(crate) fn f<'t>(", "pub(crate) enum f {}", "pub fn reference<'t>(", "pub fn call_into<'t>("]
    {
        assert!(text.contains(line), "`{line}` is missing in\n{text}");
    }
}
