use super::*;
use crate::index::Index;

#[test]
fn a_dimension_of_the_description_is_any_distance() {
    let rows = TensorIntrinsic::parse(
        "kernel rows(S, in a: f32[2, S], inout c: f32[2]) {
           for i in 0..2 { for k in 0..4 {
             block c(vi: spatial 2 = i, vk: reduce 4 = k) { c[vi] = c[vi] + a[vi, vk] }
           } }
         }",
    )
    .unwrap();
    let program: Program = "kernel k(N, in x: f32[6, N, 9], inout y: f32[2]) {
        block y() { for r in 0..2 { for q in 0..4 { y[r] = y[r] + x[3*r, 5, q + 2] } } }
      }"
    .parse()
    .unwrap();
    let found = rows.matches(&program, &blocks(&program.body)[0].body).unwrap();
    let dim = Index::var(program.dims().next().unwrap().0);
    assert_eq!(found.dims, [Some(dim.scale(27))]);
    assert_eq!(found.operands[0].first, Index::constant(47));
}

#[test]
fn descriptions_have_one_form() {
    let body = "for i in 0..4 { block c(vi: spatial 4 = i) { c[vi] = c[vi] + a[vi] } }";
    let kernel = |params: &str, body: &str| format!("kernel added({params}) {{ {body} }}");
    assert!(TensorIntrinsic::parse(&kernel("in a: f32[4], inout c: f32[4]", body)).is_ok());
    for (params, body) in [
        ("in a: f32[4], out c: f32[4]", "for i in 0..4 { block c(vi: spatial 4 = i) { c[vi] = a[vi] } }"),
        (
            "in a: f32[4], inout c: f32[4]",
            "for i in 0..4 { block c(vi: spatial 4 = i) { c[vi] = a[3 - vi] } }",
        ),
        ("in a: f32[4], inout c: f32[4]", "for i in 0..2 { block c(vi: spatial 4 = i) { c[vi] = a[vi] } }"),
        (
            "N, in a: f32[N], inout c: f32[N]",
            "for i in 0..N { block c(vi: spatial N = i) { c[vi] = a[vi] } }",
        ),
        ("s: f32, inout c: f32[4]", "for i in 0..4 { block c(vi: spatial 4 = i) { c[vi] = s } }"),
    ] {
        let refused = TensorIntrinsic::parse(&kernel(params, body));
        assert!(matches!(refused, Err(DescriptionError::Form(_))), "{params} {body}: {refused:?}");
    }
}
