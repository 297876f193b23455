//! Matching against the descriptions, and mappings onto them.

use tilewright_core::analysis::scope::blocks;
use tilewright_core::index::Index;
use tilewright_core::intrinsic::{Match, TensorIntrinsic};
use tilewright_core::program::Program;

use super::known;

fn named(name: &str) -> &'static TensorIntrinsic {
    known().get(name).unwrap_or_else(|| panic!("no description of {name}"))
}

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
    named(name).matches(&program, &body)
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
    let found = offsets.map(|name| named(name).offset());
    assert_eq!(found, [Some(128), Some(-128), None, None]);
}

#[test]
fn operands_begin_where_the_tile_does() {
    let body = "c[vi, vj*16 + y] + a[vi, vk*4 + x] as i32 * b[vj, vk, y, x] as i32";
    let text = with_body(body);
    let program: Program = text.parse().unwrap();
    let block = blocks(&program.body)[0].clone();
    let found = named("vpdpbusd_16").matches(&program, &block.body).unwrap();
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

fn mapped(text: &str) -> Vec<Vec<usize>> {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let block = blocks(&program.body)[0];
    let intrinsic = named("vpdpbusd_16");
    intrinsic.mappings(&program, block).into_iter().map(|mapping| mapping.iters).collect()
}

const PRODUCT: &str = "kernel p(in a: u8[5, 7, 9], in b: i8[5, 9, 11], out c: i32[5, 7, 11]) {
  for n in 0..5 { for i in 0..7 { for j in 0..11 { for k in 0..9 {
    block c(vn: spatial 5 = n, vi: spatial 7 = i, vj: spatial 11 = j, vk: reduce 9 = k) {
      init { c[vn, vi, vj] = 0i32 }
      c[vn, vi, vj] = c[vn, vi, vj] + BODY
    }
  } } } }
}";

#[test]
fn operands_decide_which_iterators_are_lanes() {
    for body in ["a[vn, vi, vk] as i32 * b[vn, vk, vj] as i32", "b[vn, vk, vj] as i32 * a[vn, vi, vk] as i32"]
    {
        assert_eq!(mapped(&PRODUCT.replace("BODY", body)), [[2, 3]], "{body}");
    }
    let other = PRODUCT.replace("a: u8", "a: i8").replace("b: i8", "b: u8");
    let other = other.replace("BODY", "a[vn, vi, vk] as i32 * b[vn, vk, vj] as i32");
    assert_eq!(mapped(&other), [[1, 3]], "the unsigned operand is broadcast");
    let floats = "(a[vn, vi, vk] as i32 + 1i32) * b[vn, vk, vj] as i32";
    assert!(mapped(&PRODUCT.replace("BODY", floats)).is_empty());
}

#[test]
fn an_iterator_inside_a_sum_is_a_lane_where_the_operand_can_stay() {
    let text = "kernel conv(in x: u8[9, 8], in w: i8[3, 8, 16], out y: i32[7, 16]) {
      for h in 0..7 { for o in 0..16 { for r in 0..3 { for c in 0..8 {
        block y(vh: spatial 7 = h, vo: spatial 16 = o, vr: reduce 3 = r, vc: reduce 8 = c) {
          init { y[vh, vo] = 0i32 }
          y[vh, vo] = y[vh, vo] + x[vh + vr, vc] as i32 * w[vr, vc, vo] as i32
        }
      } } } }
    }";
    assert_eq!(mapped(text), [[1, 3]]);
    // Four taps are neighbours in the image when the taps are along its last dimension.
    let along = text.replace("x: u8[9, 8]", "x: u8[8, 9]").replace("x[vh + vr, vc]", "x[vc, vh + vr]");
    assert_eq!(mapped(&along), [[1, 2], [1, 3]]);
    let apart = along.replace("x: u8[8, 9]", "x: u8[8, 16]").replace("vh + vr", "vh + 2*vr");
    assert_eq!(mapped(&apart), [[1, 3]]);
}

#[test]
fn rows_of_a_tile_may_be_points_of_an_image() {
    let text = "kernel conv(in x: u8[33, 64], in w: i8[3, 64, 16], out y: i32[16, 16]) {
      for h in 0..16 { for o in 0..16 { for r in 0..3 { for c in 0..64 {
        block y(vh: spatial 16 = h, vo: spatial 16 = o, vr: reduce 3 = r, vc: reduce 64 = c) {
          init { y[vh, vo] = 0i32 }
          y[vh, vo] = y[vh, vo] + x[2*vh + vr, vc] as i32 * w[vr, vc, vo] as i32
        }
      } } } }
    }";
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let block = blocks(&program.body)[0];
    let mappings = named("tdpbusd").mappings(&program, block);
    let found = mappings.iter().find(|mapping| mapping.iters == [0, 1, 3, 3]).expect("rows are points");
    let movable: Vec<bool> = found.operands.iter().map(|operand| operand.is_movable).collect();
    assert_eq!(movable, [false, true, true]);
}
