use super::*;
use crate::index::Index;

const PACKED: &str = "
kernel packed(M, in a: u8[M, 8], in b: i8[3, 2, 16, 4], inout c: i32[M, 48]) {
  for i in 0..M {
    for jo in 0..3 {
      for ko in 0..2 {
        block c(vi: spatial M = i, vj: spatial 3 = jo, vk: reduce 2 = ko) {
          for x in 0..4 {
            for y in 0..16 {
              c[vi, vj*16 + y] = BODY
            }
          }
        }
      }
    }
  }
}";

fn matched(text: &str, name: &str) -> Option<Match> {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let body = blocks(&program.body)[0].body.clone();
    named(name).expect("a built-in intrinsic").matches(&program, &body)
}

fn with_body(body: &str) -> String {
    PACKED.replace("BODY", body)
}

#[test]
fn a_packed_tile_is_a_dot_product_whatever_the_order_of_factors() {
    for body in [
        "c[vi, vj*16 + y] + a[vi, vk*4 + x] as i32 * b[vj, vk, y, x] as i32",
        "b[vj, vk, y, x] as i32 * a[vi, vk*4 + x] as i32 + c[vi, vj*16 + y]",
    ] {
        let found = matched(&with_body(body), "vpdpbusd_16").expect(body);
        let strides: Vec<Vec<i64>> = found
            .operands
            .iter()
            .map(|operand| operand.strides.iter().map(|stride| stride.as_constant().unwrap()).collect())
            .collect();
        assert_eq!(strides, [vec![1], vec![4, 1], vec![1]], "{body}");
        assert!(found.dims.is_empty());
    }
}

#[test]
fn pairs_of_halves_are_a_dot_product_of_their_own() {
    let body = "c[vi, vj*16 + y] + a[vi, vk*2 + x] as f32 * b[vj, vk, y, x] as f32";
    let text = with_body(body).replace("a: u8[M, 8]", "a: bf16[M, 4]").replace("c: i32", "c: f32");
    let text = text.replace("b: i8[3, 2, 16, 4]", "b: bf16[3, 2, 16, 2]").replace("0..4", "0..2");
    let found = matched(&text, "vdpbf16ps_16").expect("it is one");
    assert_eq!(found.operands[1].strides, [2, 1].map(Index::constant));
    assert_eq!(matched(&text, "vpdpbusd_16"), None);
    assert_eq!(matched(&text.replace("bf16", "f16"), "vdpbf16ps_16"), None);
}

#[test]
fn an_offset_is_part_of_what_an_intrinsic_computes() {
    let text = |first: &str, second: &str| {
        let body = format!("c[vi, vj*16 + y] + {first} * {second}");
        with_body(&body).replace("a: u8", "a: i8")
    };
    let (plain, offset) = ("[vi, vk*4 + x] as i32", "[vj, vk, y, x] as i32");
    let cases = [
        (text(&format!("(a{plain} + 128i32)"), &format!("b{offset}")), "vpdpbssd_offset_a_16"),
        (text(&format!("(b{offset} + 128i32)"), &format!("a{plain}")), "vpdpbssd_offset_b_16"),
        (text(&format!("a{plain}"), &format!("b{offset}")), "vpdpbssd_16"),
    ];
    for (text, own) in &cases {
        for (_, name) in &cases {
            assert_eq!(matched(text, name).is_some(), name == own, "{name} in {text}");
        }
        let wrong = text.replace("128", "127");
        assert_eq!(matched(&wrong, own).is_some(), *own == "vpdpbssd_16", "{wrong}");
    }
    let offsets = ["vpdpbssd_offset_a_8", "vpdpbuud_offset_b_4", "vpdpbssd_16", "vdpbf16ps_16"];
    let found = offsets.map(|name| named(name).expect("a built-in intrinsic").offset());
    assert_eq!(found, [Some(128), Some(-128), None, None]);
}

#[test]
fn operands_begin_where_the_tile_does() {
    let body = "c[vi, vj*16 + y] + a[vi, vk*4 + x] as i32 * b[vj, vk, y, x] as i32";
    let text = with_body(body);
    let program: Program = text.parse().unwrap();
    let block = blocks(&program.body)[0].clone();
    let found = named("vpdpbusd_16").unwrap().matches(&program, &block.body).unwrap();
    let var = |position: usize| Index::var(block.iters[position].var);
    assert_eq!(found.operands[0].first, &var(0).scale(8) + &var(2).scale(4));
    assert_eq!(found.operands[1].first, &var(1).scale(128) + &var(2).scale(64));
    assert_eq!(found.operands[2].first, &var(0).scale(48) + &var(1).scale(16));
}

#[test]
fn what_differs_is_refused() {
    for (body, why) in [
        ("c[vi, vj*16 + y] + a[vi, vk*4 + x] as i32 * b[vj, vk, y, 3 - x] as i32", "a row runs backwards"),
        ("c[vi, vj*16 + y] + a[vi, vk*4 + x] as i32 * b[vj, vk, 15 - y, x] as i32", "lanes run backwards"),
        ("c[vi, vj*16 + y] - a[vi, vk*4 + x] as i32 * b[vj, vk, y, x] as i32", "another operator"),
        ("c[vi, vj*16 + y] + a[vi, vk*4] as i32 * b[vj, vk, y, x] as i32", "an operand stays"),
        ("c[vi, vj*16] + a[vi, vk*4 + x] as i32 * b[vj, vk, y, x] as i32", "another element is updated"),
        ("c[vi, vj*16 + y] + b[vj, vk, y, x] as i32 * b[vj, vk, y, x] as i32", "the types are others"),
        ("c[vi, vj*16 + y] + a[vi, vk*4 + x*y/8] as i32 * b[vj, vk, y, x] as i32", "no linear index"),
    ] {
        assert_eq!(matched(&with_body(body), "vpdpbusd_16"), None, "{why}: {body}");
    }
    let body = "c[vi, vj*16 + y] + a[vi, vk*4 + x] as i32 * b[vj, vk, y, x] as i32";
    assert_eq!(matched(&with_body(body), "vpdpbusd_8"), None, "another number of lanes");
    let apart = with_body(body).replace("b: i8[3, 2, 16, 4]", "b: i8[3, 2, 16, 8]");
    assert_eq!(matched(&apart, "vpdpbusd_16"), None, "the groups of four lie apart");
}

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

/// A matrix product whose second operand is packed as the tiles of AMX want it.
const TILES: &str = "
kernel tiles(M, in a: A[16*M, 256], in b: B[64/G, 48, G], inout c: C[16*M, 48]) {
  for i in 0..M {
    for jo in 0..3 {
      block c(vi: spatial M = i, vj: spatial 3 = jo) {
        for x in 0..16 {
          for y in 0..16 {
            for k in 0..16 {
              for r in 0..G {
                c[16*vi + x, vj*16 + y] = c[16*vi + x, vj*16 + y] + a[16*vi + x, 64 + k*G + r] as C * b[k, vj*16 + y, r] as C
              }
            }
          }
        }
      }
    }
  }
}";

fn tiles(a: &str, b: &str, c: &str) -> String {
    let group = if a == "bf16" { "2" } else { "4" };
    let text = TILES.replace("64/G", "16").replace('G', group);
    text.replace("A[", &format!("{a}["))
        .replace("B[", &format!("{b}["))
        .replace("C[", &format!("{c}["))
        .replace("as C", &format!("as {c}"))
}

#[test]
fn products_of_tiles_are_known_by_their_types() {
    let types = [
        ("tdpbusd", "u8", "i8", "i32"),
        ("tdpbssd", "i8", "i8", "i32"),
        ("tdpbsud", "i8", "u8", "i32"),
        ("tdpbuud", "u8", "u8", "i32"),
        ("tdpbf16ps", "bf16", "bf16", "f32"),
    ];
    for (_, a, b, c) in types {
        let text = tiles(a, b, c);
        for (name, other_a, other_b, _) in types {
            let is_own = (a, b) == (other_a, other_b);
            assert_eq!(matched(&text, name).is_some(), is_own, "{name} in\n{text}");
        }
    }
}

#[test]
fn rows_of_tiles_lie_any_multiple_of_a_group_apart() {
    let text = tiles("u8", "i8", "i32");
    let found = matched(&text, "tdpbusd").unwrap();
    let strides: Vec<Vec<i64>> = found
        .operands
        .iter()
        .map(|operand| operand.strides.iter().map(|stride| stride.as_constant().unwrap()).collect())
        .collect();
    assert_eq!(strides, [vec![256, 4, 1], vec![192, 4, 1], vec![48, 1]]);
    assert_eq!(found.dims, [64, 48, 48].map(|distance| Some(Index::constant(distance))));
    for (row, is_one) in [("260]", true), ("258]", false), ("4*M]", true), ("M]", false)] {
        assert_eq!(matched(&text.replace("256]", row), "tdpbusd").is_some(), is_one, "{row}");
    }
    let apart = text.replace("b: i8[16, 48, 4]", "b: i8[16, 48, 8]");
    assert_eq!(matched(&apart, "tdpbusd"), None, "the groups of four lie apart");
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

#[test]
fn a_name_is_registered_once() {
    let text = "kernel only_once(inout c: f32[4]) {
        for i in 0..4 { block c(vi: spatial 4 = i) { c[vi] = c[vi] + c[vi] } }
      }";
    let describe = || TensorIntrinsic::parse(text).unwrap();
    assert!(named("only_once").is_none());
    register(describe()).unwrap();
    assert_eq!(named("only_once").unwrap().description(), describe().description());
    assert_eq!(register(describe()).unwrap_err(), DescriptionError::Taken("only_once".into()));
}
