//! Expansions, as text.
//!
//! What the expansion means is tested through the facade; here stands only what its form promises.

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

#[test]
fn show() {
    println!("{}", matmul());
}
