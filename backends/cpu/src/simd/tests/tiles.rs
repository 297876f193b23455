//! The use of AMX tile registers in leaves, checked on their instructions; the machine need not have them.

use std::sync::Arc;

use iced_x86::{Formatter, Instruction, IntelFormatter, Mnemonic};

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::Schedule;
use tilewright_core::target::{CpuTarget, Target};

use super::contract::{instructions, leaf_of};
use crate::simd::VectorExtension;

/// A plain machine that knows the descriptions of all intrinsics.
fn any_machine() -> Arc<Target> {
    let descriptions = crate::intrinsics::known().clone();
    Arc::new(CpuTarget { descriptions, ..CpuTarget::generic() }.into())
}

/// A matrix product in tiles of 16 × 16 sums in `rows` rows and `columns` columns, on the flat level.
pub(super) struct Tiles {
    pub(super) name: &'static str,
    pub(super) types: [&'static str; 3],
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// How many tiles deep the products are; a text, because it may be a dimension.
    pub(super) depth: &'static str,
}

pub(super) const BYTES: Tiles =
    Tiles { name: "tdpbusd", types: ["u8", "i8", "i32"], rows: 2, columns: 2, depth: "K" };

impl Tiles {
    /// One product of tiles, in the sums at `x` and `y`.
    pub(super) fn product(&self, x: &str, y: &str) -> String {
        let [a, _, c] = self.types;
        let group = if a == "bf16" { 2 } else { 4 };
        let (width, line, depth) = (16 * self.columns, 16 * group, self.depth);
        let place = format!("(({x})*16 + m)*{width} + ({y})*16 + n");
        format!(
            "intrinsic {} {{ for m in 0..16 {{ for n in 0..16 {{ for g in 0..16 {{ for r in 0..{group} {{
               acc[{place}] = acc[{place}]
                 + a[(({x})*16 + m)*{line}*{depth} + k*{line} + g*{group} + r] as {c}
                 * b[(k*16 + g)*{width}*{group} + (({y})*16 + n)*{group} + r] as {c}
             }} }} }} }} }}",
            self.name
        )
    }

    /// A kernel whose sums are an intermediate that is cleared before and copied behind.
    pub(super) fn kernel(&self, clear: &str, products: &str) -> String {
        let [a, b, c] = self.types;
        let group = if a == "bf16" { 2 } else { 4 };
        let (height, width, depth) = (16 * self.rows, 16 * self.columns, self.depth);
        let dims = if depth == "K" { "K, " } else { "" };
        let zero = if c == "f32" { "0.0" } else { "0i32" };
        let sums = height * width;
        let clear = clear.replace("WIDTH", &width.to_string()).replace("ZERO", zero);
        format!(
            "kernel tiles({dims}in a: {a}[{height}*16*{group}*{depth}], in b: {b}[{depth}*16*{group}*{width}],
                          out c: {c}[{sums}]) {{
               buffer acc: {c}[{sums}] local
               alloc acc {{
                 {clear}
                 for k in 0..{depth} {{ {products} }}
                 for i in 0..{height} {{ c[i*{width} + lane<{width}>] = max(acc[i*{width} + lane<{width}>], {zero}) }}
               }}
             }}"
        )
    }

    /// The kernel with loops over its tiles.
    pub(super) fn in_loops(&self) -> String {
        let product = self.product("x", "y");
        let (rows, columns) = (self.rows, self.columns);
        let clear = format!("for i in 0..{} {{ acc[i*WIDTH + lane<WIDTH>] = ZERO }}", 16 * rows);
        self.kernel(&clear, &format!("for x in 0..{rows} {{ for y in 0..{columns} {{ {product} }} }}"))
    }

    /// The kernel without loops over its tiles.
    pub(super) fn written_out(&self) -> String {
        let all = (0..self.rows).flat_map(|x| (0..self.columns).map(move |y| (x, y)));
        let products: String =
            all.map(|(x, y)| self.product(&x.to_string(), &y.to_string()) + "\n").collect();
        let lines = (0..16 * self.rows).map(|line| format!("acc[{line}*WIDTH + lane<WIDTH>] = ZERO\n"));
        self.kernel(&lines.collect::<String>(), &products)
    }
}

fn mnemonics(instructions: &[Instruction], wanted: Mnemonic) -> usize {
    instructions.iter().filter(|own| own.mnemonic() == wanted).count()
}

fn text(instruction: &Instruction) -> String {
    let mut text = String::new();
    IntelFormatter::new().format(instruction, &mut text);
    text
}

#[test]
fn sums_stay_in_tiles_and_operands_are_loaded_once() {
    for (name, a, b, c, product) in [
        ("tdpbusd", "u8", "i8", "i32", Mnemonic::Tdpbusd),
        ("tdpbssd", "i8", "i8", "i32", Mnemonic::Tdpbssd),
        ("tdpbsud", "i8", "u8", "i32", Mnemonic::Tdpbsud),
        ("tdpbuud", "u8", "u8", "i32", Mnemonic::Tdpbuud),
        ("tdpbf16ps", "bf16", "bf16", "f32", Mnemonic::Tdpbf16ps),
    ] {
        let tiles = Tiles { name, types: [a, b, c], ..BYTES };
        for text in [tiles.in_loops(), tiles.written_out()] {
            let leaf =
                leaf_of(&text, VectorExtension::Avx512).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
            assert_eq!(leaf.without_tiles, None, "{text}");
            let instructions = instructions(&leaf);
            let body: Vec<Instruction> = tile_loop(&instructions);
            assert_eq!(mnemonics(&body, Mnemonic::Tileloadd), 4, "{name}");
            assert_eq!(mnemonics(&body, product), 4, "{name}");
            assert_eq!(mnemonics(&instructions, Mnemonic::Tilezero), 4, "{name}");
            assert_eq!(mnemonics(&instructions, Mnemonic::Tilestored), 4, "{name}");
            assert_eq!(
                mnemonics(&instructions, Mnemonic::Tileloadd),
                4,
                "{name}: sums are cleared, not loaded"
            );
        }
    }
}

/// The shortest loop with a product of tiles.
fn tile_loop(instructions: &[Instruction]) -> Vec<Instruction> {
    let is_product = |own: &Instruction| format!("{:?}", own.mnemonic()).starts_with("Tdp");
    let loops = instructions.iter().filter(|own| {
        matches!(own.mnemonic(), Mnemonic::Jl | Mnemonic::Jne) && own.near_branch_target() < own.ip()
    });
    let bodies = loops.map(|jump| {
        let range = jump.near_branch_target()..jump.ip();
        instructions.iter().filter(|own| range.contains(&own.ip())).copied().collect::<Vec<_>>()
    });
    bodies.filter(|body| body.iter().any(is_product)).min_by_key(Vec::len).expect("a loop with products")
}

#[test]
fn the_loop_over_tiles_is_loads_and_products() {
    let tiles = Tiles { depth: "9", ..BYTES };
    let leaf = leaf_of(&tiles.in_loops(), VectorExtension::Avx512).expect("a leaf");
    let body: Vec<String> = tile_loop(&instructions(&leaf)).iter().map(text).collect();
    assert_eq!(
        body,
        [
            "tileloadd tmm4,[rcx+r9]",
            "tileloadd tmm5,[rsi+r8]",
            "tdpbusd tmm0,tmm4,tmm5",
            "tileloadd tmm6,[rsi+r8+40h]",
            "tdpbusd tmm1,tmm4,tmm6",
            "tileloadd tmm4,[rcx+r9+2400h]",
            "tdpbusd tmm2,tmm4,tmm5",
            "tdpbusd tmm3,tmm4,tmm6",
            "add rcx,40h",
            "add rsi,800h",
            "sub r10,1",
        ]
    );
}

#[test]
fn tiles_are_configured_first_and_released_last() {
    let leaf = leaf_of(&BYTES.in_loops(), VectorExtension::Avx512).expect("a leaf");
    let instructions = instructions(&leaf);
    assert_eq!(mnemonics(&instructions, Mnemonic::Ldtilecfg), 1);
    let first = instructions.iter().position(|own| format!("{:?}", own.mnemonic()).starts_with('T'));
    let configured = instructions.iter().position(|own| own.mnemonic() == Mnemonic::Ldtilecfg);
    assert!(configured < first);
    let place = instructions[configured.unwrap()].memory_displacement64() as usize;
    let configuration = &leaf.code[place..place + 64];
    assert_eq!((configuration[0], &configuration[16..18], configuration[48]), (1, &[64, 0][..], 16));
    let released = instructions.iter().position(|own| own.mnemonic() == Mnemonic::Tilerelease).unwrap();
    assert_eq!(instructions[released + 1].mnemonic(), Mnemonic::Vzeroupper);
    assert_eq!(mnemonics(&instructions, Mnemonic::Ret), 1, "there is one way out");
    let plain = leaf_of(
        "kernel k(in x: f32[16], out y: f32[16]) { y[lane<16>] = x[lane<16>] }",
        VectorExtension::Avx512,
    );
    let plain = super::contract::instructions(&plain.expect("a leaf"));
    assert_eq!(mnemonics(&plain, Mnemonic::Ldtilecfg) + mnemonics(&plain, Mnemonic::Tilerelease), 0);
}

#[test]
fn every_shape_of_up_to_six_tiles_fits() {
    for (rows, columns) in [(1, 1), (1, 2), (2, 1), (3, 1), (1, 4), (2, 2), (3, 2), (2, 3), (1, 6), (6, 1)] {
        let tiles = Tiles { rows, columns, ..BYTES };
        let leaf = leaf_of(&tiles.in_loops(), VectorExtension::Avx512).expect("a leaf");
        assert_eq!(leaf.without_tiles, None, "{rows} x {columns}");
        let body = tile_loop(&instructions(&leaf));
        assert_eq!(mnemonics(&body, Mnemonic::Tdpbusd), rows * columns);
        assert_eq!(mnemonics(&body, Mnemonic::Tilestored) + mnemonics(&body, Mnemonic::Tilezero), 0);
    }
}

#[test]
fn sums_that_cannot_stay_in_tiles_are_loaded_and_stored_around_products() {
    let product = BYTES.product("x", "y");
    let loops = format!("for x in 0..2 {{ for y in 0..2 {{ {product} }} }}");
    let clear = "for i in 0..32 { acc[i*WIDTH + lane<WIDTH>] = ZERO }";
    for (text, why) in [
        (Tiles { rows: 2, columns: 4, ..BYTES }.in_loops(), "eight tiles"),
        (BYTES.kernel(clear, &format!("{loops} acc[k] = 7i32")), "the sums are touched in between"),
        (BYTES.kernel(clear, &format!("{loops} c[k] = acc[k]")), "the sums are read in between"),
        (BYTES.kernel(clear, &format!("if k < 3 {{ {loops} }}")), "a product is not always made"),
        (
            BYTES.kernel(clear, &loops.replace("((x)*16 + m)*32 + (y)", "((x)*8 + m)*32 + (y)")),
            "tiles overlap",
        ),
    ] {
        let leaf =
            leaf_of(&text, VectorExtension::Avx512).unwrap_or_else(|refusal| panic!("{why}: {refusal}"));
        assert_eq!(leaf.without_tiles, None, "{why}");
        let instructions = instructions(&leaf);
        let products = mnemonics(&instructions, Mnemonic::Tdpbusd);
        assert_eq!((products > 0, mnemonics(&instructions, Mnemonic::Tilestored)), (true, products), "{why}");
    }
}

#[test]
fn products_that_follow_each_other_share_the_registers_of_their_sums() {
    // Eight tiles do not stay in registers while the loop over `k` runs.
    let tiles = Tiles { rows: 2, columns: 4, depth: "12", ..BYTES };
    let text = tiles.kernel("for i in 0..32 { acc[i*WIDTH + lane<WIDTH>] = ZERO }", "PRODUCTS");
    let product = |step: usize| tiles.product("x", "y").replace("k*", &format!("(k*3 + {step})*"));
    let steps = [0, 1, 2].map(product).join("\n");
    let text = text
        .replace("PRODUCTS", &format!("for x in 0..2 {{ for y in 0..4 {{ {steps} }} }}"))
        .replace("for k in 0..12", "for k in 0..4");
    let leaf = leaf_of(&text, VectorExtension::Avx512).expect("a leaf");
    let instructions = instructions(&leaf);
    let count = |mnemonic| mnemonics(&instructions, mnemonic);
    let counted = [Mnemonic::Tdpbusd, Mnemonic::Tilestored, Mnemonic::Tileloadd].map(count);
    assert_eq!(counted, [3, 1, 7], "three products, with two operands each");
}

/// A scheduled matrix product: tiles of sums in an intermediate, and an operand in packed rows.
fn scheduled(name: &str, types: [&str; 3]) -> Program {
    let [a, b, c] = types;
    let group = if a == "bf16" { 2 } else { 4 };
    let zero = if c == "f32" { "0.0" } else { "0i32" };
    let text = format!(
        "kernel scheduled(M, K, in a: {a}[32*M, {line}*K], in b: {b}[16*K, 96, {group}], out c: {c}[32*M, 96]) {{
           for i in 0..32*M {{ for j in 0..96 {{ for k in 0..{line}*K {{
             block c(vi: spatial 32*M = i, vj: spatial 96 = j, vk: reduce {line}*K = k) {{
               init {{ c[vi, vj] = {zero} }}
               c[vi, vj] = c[vi, vj] + a[vi, vk] as {c} * b[vk/{group}, vj, vk%{group}] as {c}
             }}
           }} }} }}
         }}",
        line = 16 * group
    );
    let program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut schedule = Schedule::new(program, any_machine(), 0);
    let block = schedule.get_block("c").unwrap();
    let copy = schedule.cache_write(block, Scope::Local).unwrap();
    let [i, j, k] = schedule.get_loops(block).unwrap()[..] else { panic!("three loops") };
    let split = |schedule: &mut Schedule, place, inner: &[i64]| {
        let factors: Vec<_> = [None].into_iter().chain(inner.iter().copied().map(Some)).collect();
        schedule.split(place, &factors).unwrap()
    };
    let [i0, i1, i2] = split(&mut schedule, i, &[2, 16])[..] else { panic!("three loops") };
    let [j0, j1, j2] = split(&mut schedule, j, &[2, 16])[..] else { panic!("three loops") };
    let [k0, k1, k2] = split(&mut schedule, k, &[16, group])[..] else { panic!("three loops") };
    schedule.reorder(&[i0, j0, k0, i1, j1, i2, j2, k1, k2]).unwrap();
    schedule.reverse_compute_at(copy, j0).unwrap();
    schedule.decompose_reduction(block, k0).unwrap();
    schedule.tensorize(i2, name).unwrap();
    let options = LowerOptions { intrinsics: vec![name.into()], ..LowerOptions::default() };
    lower(schedule.program(), &options).unwrap()
}

#[test]
fn scheduled_products_are_lowered_to_tiles() {
    for (name, a, b, c, product) in [
        ("tdpbusd", "u8", "i8", "i32", Mnemonic::Tdpbusd),
        ("tdpbf16ps", "bf16", "bf16", "f32", Mnemonic::Tdpbf16ps),
    ] {
        let text = scheduled(name, [a, b, c]).to_string();
        let leaf =
            leaf_of(&text, VectorExtension::Avx512).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
        assert_eq!(leaf.without_tiles, None, "{text}");
        let instructions = instructions(&leaf);
        let body = tile_loop(&instructions);
        assert_eq!((mnemonics(&body, Mnemonic::Tileloadd), mnemonics(&body, product)), (4, 4), "{text}");
        assert_eq!(mnemonics(&instructions, Mnemonic::Tilezero), 4, "{text}");
    }
}

#[test]
fn sums_of_one_product_each_need_no_register_across_loops() {
    let tiles = Tiles { rows: 1, columns: 1, depth: "1", ..BYTES };
    let clear = "for i in 0..16 { acc[i*WIDTH + lane<WIDTH>] = ZERO }";
    let text = tiles.kernel(clear, &tiles.product("0", "0"));
    let (head, body) = text.split_once("alloc acc").expect("an allocation");
    let text = format!("{head} for again in 0..5 {{ alloc acc {body} }}");
    let leaf = leaf_of(&text, VectorExtension::Avx512).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
    assert_eq!(leaf.without_tiles, None);
    assert_eq!(mnemonics(&instructions(&leaf), Mnemonic::Tdpbusd), 1);
}

#[test]
fn sums_that_are_not_cleared_are_loaded() {
    let clear = "for i in 0..32 { acc[i*WIDTH + lane<WIDTH>] = ZERO }";
    for other in [
        clear.replace("ZERO", "1i32"),
        clear.replace("0..32", "0..31"),
        format!("{clear} acc[5] = 1i32"),
        "for i in 0..32 { acc[i*WIDTH + lane<WIDTH>] = c[i*WIDTH + lane<WIDTH>] }".to_owned(),
    ] {
        let text = BYTES.in_loops().replace("for i in 0..32 { acc[i*32 + lane<32>] = 0i32 }", &other);
        let text = text.replace("WIDTH", "32").replace("ZERO", "0i32").replace("out c", "inout c");
        let leaf = leaf_of(&text, VectorExtension::Avx512).expect("a leaf");
        let instructions = instructions(&leaf);
        assert_eq!(leaf.without_tiles, None, "{other}");
        assert_eq!(mnemonics(&instructions, Mnemonic::Tilezero), 0, "{other}");
        assert_eq!(mnemonics(&instructions, Mnemonic::Tileloadd), 8, "{other}");
    }
}

/// A product of `f32` from `products` products of pieces; the pieces of the second factor are packed.
fn from_pieces(products: i64) -> Program {
    let text = "kernel product(in a: f32[64, 128], in b: f32[128, 96], out c: f32[64, 96]) accuracy 0.0001 {
       for i in 0..64 { for j in 0..96 { for k in 0..128 {
         block c(vi: spatial 64 = i, vj: spatial 96 = j, vk: reduce 128 = k) {
           init { c[vi, vj] = 0.0 }
           c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
         }
       } } }
     }";
    let program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut schedule = Schedule::new(program, any_machine(), 0);
    let block = schedule.get_block("c").unwrap();
    let (_, pieces) = schedule.split_products(block, products).unwrap();
    let packed = "(p, k, j) -> (p, k/2, j, k%2)".parse().unwrap();
    schedule.transform_layout(pieces, "write", 0, packed).unwrap();
    let copy = schedule.cache_write(block, Scope::Local).unwrap();
    let [i, j, p, k] = schedule.get_loops(block).unwrap()[..] else { panic!("four loops") };
    let split = |schedule: &mut Schedule, place, inner: &[i64]| {
        let factors: Vec<_> = [None].into_iter().chain(inner.iter().copied().map(Some)).collect();
        schedule.split(place, &factors).unwrap()
    };
    let [i0, i1, i2] = split(&mut schedule, i, &[2, 16])[..] else { panic!("three loops") };
    let [j0, j1, j2] = split(&mut schedule, j, &[2, 16])[..] else { panic!("three loops") };
    let [k0, k1, k2] = split(&mut schedule, k, &[16, 2])[..] else { panic!("three loops") };
    schedule.reorder(&[i0, j0, p, k0, i1, j1, i2, j2, k1, k2]).unwrap();
    schedule.reverse_compute_at(copy, j0).unwrap();
    schedule.decompose_reduction(block, p).unwrap();
    schedule.tensorize(i2, "tdpbf16ps").unwrap();
    let options = LowerOptions { intrinsics: vec!["tdpbf16ps".into()], ..LowerOptions::default() };
    lower(schedule.program(), &options).unwrap()
}

#[test]
fn sums_of_products_of_pieces_stay_in_tiles() {
    for products in [3, 6, 9] {
        let text = from_pieces(products).to_string();
        let leaf =
            leaf_of(&text, VectorExtension::Avx512).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
        assert_eq!(leaf.without_tiles, None, "{text}");
        let instructions = instructions(&leaf);
        for wanted in [Mnemonic::Tilezero, Mnemonic::Tdpbf16ps, Mnemonic::Tileloadd, Mnemonic::Tilestored] {
            assert_eq!(mnemonics(&instructions, wanted), 4, "{products} products, {wanted:?}\n{text}");
        }
    }
}
