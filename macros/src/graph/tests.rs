//! Expansions, as text.

use quote::quote;

use super::expand;

fn expansion() -> String {
    let item = quote! {
        /// Two layers.
        pub fn network(model: &Model, x: &Tensor<f32, N, 64>, steps: usize) -> Tensor<f32, N, { W + 1 }> {
            let [rows, _] = x.shape();
            let mut y = layers::linear(x, &model.weight);
            for step in (0..steps) {
                y = Gate::open(&y, f32::from(step as u8)).reshape([rows / 2, 2 * W]);
            }
            let list = Vec::with_capacity(steps);
            finish(y.slice(0), Some(list))
        }
    };
    let tokens = expand(quote!(), item);
    syn::parse2::<syn::File>(tokens.clone()).expect("the expansion parses as Rust");
    tokens.to_string().replace(' ', "")
}

#[test]
fn calls_of_kernels_are_found_and_nothing_else() {
    let text = expansion();
    for expected in [
        "layers::linear(x,&model.weight)?;",
        "layers::linear::reference(x,&model.weight)?;",
        "layers::linear::__record(x,&model.weight)?;",
        "Gate::open(&y,f32::from(stepasu8))?.reshape([rows/2,2*W])?;",
        "Gate::open_reference(&y,f32::from(stepasu8))?.reshape([rows/2,2*W])?;",
        "Gate::open_record(&y,f32::from(stepasu8))?.record_reshape([::tilewright::__private::graph::Dim::from(rows/2),",
        "forstepin(0..steps){",
        "Vec::with_capacity(steps);",
        "finish::reference(y.slice(0),Some(list))?",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn every_extent_is_checked() {
    let text = expansion();
    assert!(text.contains("letN=x.shape()[0usize];"), "{text}");
    assert!(text.contains("\"argument`x`\",(1usize,\"64\"),x.shape()[1usize],64usize,"), "{text}");
    assert!(text.contains("\"theresult\",(1usize,\"W+1\")"), "{text}");
}
