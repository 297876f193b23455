//! The contract of leaves, checked on their instructions.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;
use tilewright_core::index::{Facts, Ranges};
use tilewright_core::program::Program;

use crate::flat::value_number::Numbers;
use crate::machine::FeatureSet;
use crate::simd::{Leaf, Refusal, Surroundings, VectorExtension, compile};

pub(super) const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// A tile of a matrix product with an operand of run-time strides.
const MATMUL: &str = "kernel matmul(M, K, in a: f32[M*K], in b: f32[K*16], out c: f32[M*16]) {
  buffer acc: f32[64] local
  for i in 0..M/4 {
    alloc acc {
      acc[lane<16>] = 0.0
      acc[lane<16> + 16] = 0.0
      acc[lane<16> + 32] = 0.0
      acc[lane<16> + 48] = 0.0
      for k in 0..K {
        acc[lane<16>] = mul_add(a[i*4*K + k], b[k*16 + lane<16>], acc[lane<16>])
        acc[lane<16> + 16] = mul_add(a[(i*4 + 1)*K + k], b[k*16 + lane<16>], acc[lane<16> + 16])
        acc[lane<16> + 32] = mul_add(a[(i*4 + 2)*K + k], b[k*16 + lane<16>], acc[lane<16> + 32])
        acc[lane<16> + 48] = mul_add(a[(i*4 + 3)*K + k], b[k*16 + lane<16>], acc[lane<16> + 48])
      }
      c[i*64 + lane<16>] = acc[lane<16>]
      c[i*64 + lane<16> + 16] = acc[lane<16> + 16]
      c[i*64 + lane<16> + 32] = acc[lane<16> + 32]
      c[i*64 + lane<16> + 48] = acc[lane<16> + 48]
    }
  }
}";

/// Conversions, rounding, choices and a number of lanes that fills no vector.
const CHAIN: &str = "kernel chain(in x: f16[37], in z: f64[37], out y: f32[37]) {
  y[lane<37>] = select(x[lane<37>] > 0.0f16, floor(x[lane<37>] as f32) / 3.0, z[lane<37>] as f32)
}";

/// More pointers than there are registers.
const POINTERS: &str = "kernel pointers(N,
  in a: f32[N*N], in b: f32[N*N], in c: f32[N*N], in d: f32[N*N], in e: f32[N*N], in f: f32[N*N],
  in g: f32[N*N], in h: f32[N*N], in i: f32[N*N], in j: f32[N*N], in k: f32[N*N], in l: f32[N*N],
  out y: f32[N*N]) {
  for m in 0..N {
    for n in 0..N/8 {
      y[m*N + n*8 + lane<8>] = a[m*N + n*8 + lane<8>] + b[n*N + m] + c[m*N + n*8 + lane<8>] + d[n*N + m]
        + e[m*N + n*8 + lane<8>] + f[n*N + m] + g[m*N + n*8 + lane<8>] + h[n*N + m]
        + i[m*N + n*8 + lane<8>] + j[n*N + m] + k[m*N + n*8 + lane<8>] + l[n*N + m]
    }
  }
}";

/// A reduction to one element.
const SUM: &str = "kernel sum(N, in x: f32[N], out y: f32[1]) {
  buffer s: f32[1] local
  alloc s { s[0] = 0.0 for i in 0..N { s[0] = s[0] + x[i] } y[0] = s[0] }
}";

/// Bytes that are put in fours, with padding.
const PACKED: &str = "kernel packed(in x: i8[1000], out y: i8[2048]) {
  for k in 0..8 {
    for n in 0..4 {
      y[k*256 + n*64 + lane<64>] =
        select((index(k*4 + lane<64>%4) < 31) & (index(n*16 + lane<64>/4) < 32), x[k*128 + lane<64>%4*32 + n*16 + lane<64>/4], 0i8)
    }
  }
}";

/// Elements that are not next to one another, of both widths.
const STRIDED: &str = "kernel strided(in x: f32[200], in z: f64[200], out y: f32[20], out w: f64[20]) {
  y[lane<20>] = x[lane<20>*9 + 3]
  w[lane<20>] = z[177 - lane<20>*3]
}";

/// A streamed result, and prefetches in two loops.
const STREAMED: &str = "kernel streamed(N, in x: f32[N*48], out y: f32[N*48] streamed) {
  @prefetch 3
  for i in 0..N {
    @prefetch 1
    for j in 0..3 { y[i*48 + j*16 + lane<16>] = x[i*48 + j*16 + lane<16>] * 2.0 }
  }
}";

/// Programs of different kinds.
pub(super) const EXAMPLES: [&str; 7] = [MATMUL, CHAIN, POINTERS, SUM, STRIDED, PACKED, STREAMED];

pub(super) fn leaf_of(text: &str, extension: VectorExtension) -> Result<Leaf, Refusal> {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let around = Surroundings {
        program: &program,
        extension,
        features: FeatureSet::all(),
        constants: Vec::new(),
        ranges: Ranges::new(),
        facts: Facts::default(),
        innermost: None,
        in_registers: FxHashSet::default(),
    };
    compile(&program.body, &around, &mut Numbers::default())
}

pub(super) fn instructions(leaf: &Leaf) -> Vec<Instruction> {
    let bytes = &leaf.code[..leaf.instruction_bytes];
    Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).iter().collect()
}

/// Whether an instruction is the end of a loop.
fn is_backward(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Jl | Mnemonic::Jne)
        && instruction.near_branch_target() < instruction.ip()
}

/// The 64-bit register that a 32-bit one is part of.
fn whole(register: Register) -> Register {
    let (first, last) = (Register::EAX as u32, Register::R15D as u32);
    match (first..=last).contains(&(register as u32)) {
        true => Register::RAX + (register as u32 - first),
        false => register,
    }
}

/// Every leaf of the examples with its instructions.
fn examples() -> Vec<(String, Leaf, Vec<Instruction>)> {
    let mut examples = Vec::new();
    for extension in [VectorExtension::Avx2, VectorExtension::Avx512] {
        for text in EXAMPLES {
            let name = format!("{} with {extension:?}", &text[7..text.find('(').unwrap_or(7)]);
            let leaf = leaf_of(text, extension).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            let instructions = instructions(&leaf);
            examples.push((name, leaf, instructions));
        }
    }
    examples
}

fn registers(instruction: &Instruction) -> impl Iterator<Item = Register> + '_ {
    (0..instruction.op_count())
        .filter(|position| instruction.op_kind(*position) == OpKind::Register)
        .map(|position| instruction.op_register(position))
}

#[test]
fn vectors_are_touched_by_vex_and_evex_encodings_only() {
    for (name, _, instructions) in examples() {
        for instruction in &instructions {
            let has_vectors = registers(instruction).any(|register| {
                register.is_xmm() || register.is_ymm() || register.is_zmm() || register.is_k()
            });
            let code = format!("{:?}", instruction.code());
            let is_modern = code.starts_with("VEX_") || code.starts_with("EVEX_");
            assert!(!has_vectors || is_modern, "{name}: {instruction}");
            assert!(!instruction.is_invalid(), "{name}");
        }
    }
}

#[test]
fn the_widest_registers_of_the_level_are_used_and_no_wider_ones() {
    for (name, _, instructions) in examples() {
        let has_zmm = instructions.iter().any(|own| registers(own).any(Register::is_zmm));
        let has_upper = instructions.iter().any(|own| registers(own).any(|register| register.is_k()));
        assert!(!name.contains("Avx2") || (!has_zmm && !has_upper), "{name}");
        if name == "matmul with Avx512" {
            assert!(has_zmm, "{name}");
        }
    }
}

#[test]
fn upper_halves_are_cleared_before_every_return_and_nothing_is_called() {
    for (name, _, instructions) in examples() {
        let mut is_clean = false;
        let mut returns = 0;
        for instruction in &instructions {
            match instruction.mnemonic() {
                Mnemonic::Vzeroupper => is_clean = true,
                Mnemonic::Ret => {
                    assert!(is_clean, "{name}");
                    returns += 1;
                }
                Mnemonic::Call | Mnemonic::Syscall | Mnemonic::Int => panic!("{name}: {instruction}"),
                _ if registers(instruction).any(|own| own.is_ymm() || own.is_zmm() || own.is_xmm()) => {
                    is_clean = false;
                }
                _ => {}
            }
        }
        assert_eq!(returns, 1, "{name}");
    }
}

#[test]
fn registers_that_belong_to_the_caller_are_saved() {
    let mut saved_some = false;
    for (name, _, instructions) in examples() {
        let of = |mnemonic| -> Vec<Register> {
            let own = instructions.iter().filter(|own| own.mnemonic() == mnemonic);
            own.map(Instruction::op0_register).collect()
        };
        let (pushed, mut popped) = (of(Mnemonic::Push), of(Mnemonic::Pop));
        popped.reverse();
        assert_eq!(pushed, popped, "{name}");
        saved_some |= !pushed.is_empty();
        for instruction in &instructions {
            let written = registers(instruction).next().map(whole);
            let is_saved = written.is_none_or(|own| !SAVED.contains(&own) || pushed.contains(&own));
            assert!(is_saved, "{name}: {instruction}");
        }
        let frame = |mnemonic| -> u64 {
            let own = instructions.iter().filter(|own| own.mnemonic() == mnemonic);
            own.filter(|own| own.op0_register() == Register::RSP).map(|own| own.immediate(1)).sum()
        };
        assert_eq!(frame(Mnemonic::Sub), frame(Mnemonic::Add), "{name}");
    }
    assert!(saved_some, "an example has to need many registers");
}

#[test]
fn innermost_loops_begin_at_cache_lines() {
    for (name, _, instructions) in examples() {
        let backwards = instructions
            .iter()
            .filter(|own| is_backward(own))
            .min_by_key(|own| own.ip() - own.near_branch_target());
        if let Some(jump) = backwards {
            assert_eq!(jump.near_branch_target() % 64, 0, "{name}: {jump}");
        }
    }
}

/// The instructions of the shortest loop.
fn innermost_loop(instructions: &[Instruction]) -> Vec<&Instruction> {
    let backwards = instructions.iter().filter(|own| is_backward(own));
    let jump = backwards.min_by_key(|own| own.ip() - own.near_branch_target()).expect("a loop");
    let body = jump.near_branch_target()..jump.ip();
    instructions.iter().filter(|own| body.contains(&own.ip())).collect()
}

#[test]
fn accumulators_are_never_moved_in_a_loop() {
    let leaf = leaf_of(MATMUL, VectorExtension::Avx512).expect("a leaf");
    let instructions = instructions(&leaf);
    let body = innermost_loop(&instructions);
    let count =
        |mnemonics: &[Mnemonic]| body.iter().filter(|own| mnemonics.contains(&own.mnemonic())).count();
    let products = [Mnemonic::Vfmadd132ps, Mnemonic::Vfmadd213ps, Mnemonic::Vfmadd231ps];
    assert_eq!(count(&products), 4);
    // One vector is loaded, the elements are operands in memory, and nothing else is done with vectors.
    assert_eq!(count(&[Mnemonic::Vmovups]), 1);
    assert_eq!(body.iter().filter(|own| registers(own).any(Register::is_zmm)).count(), 5);
}

/// A tile of dot products: the intrinsic, the types of operands and sums, rows, and the lanes of a vector.
fn dot_products(name: &str, [a, b, c]: [&str; 3], rows: usize, vectors: usize, lanes: usize) -> String {
    let (tile, group) = (rows * vectors * lanes, if a == "bf16" { 2 } else { 4 });
    let zero = if c == "f32" { "0.0" } else { "0i32" };
    let (mut start, mut step, mut end) = (String::new(), String::new(), String::new());
    for (row, vector) in (0..rows).flat_map(|row| (0..vectors).map(move |vector| (row, vector))) {
        let place = (row * vectors + vector) * lanes;
        start += &format!("acc[lane<{lanes}> + {place}] = {zero}\n");
        end += &format!("c[lane<{lanes}> + {place}] = acc[lane<{lanes}> + {place}]\n");
        step += &format!(
            "intrinsic {name}_{lanes} {{ for i in 0..{lanes} {{ for r in 0..{group} {{
               acc[{place} + i] = acc[{place} + i]
                 + a[{row}*{group}*K + k*{group} + r] as {c} * b[k*{} + {} + i*{group} + r] as {c}
             }} }} }}\n",
            group * vectors * lanes,
            group * vector * lanes
        );
    }
    format!(
        "kernel dots(K, in a: {a}[{rows}*{group}*K], in b: {b}[K*{}], out c: {c}[{tile}]) {{
           buffer acc: {c}[{tile}] local
           alloc acc {{ {start} for k in 0..K {{ {step} }} {end} }}
         }}",
        group * vectors * lanes
    )
}

#[test]
fn a_tile_of_dot_products_stays_in_registers() {
    let bytes = ("vpdpbusd", ["u8", "i8", "i32"], Mnemonic::Vpdpbusd);
    let halves = ("vdpbf16ps", ["bf16", "bf16", "f32"], Mnemonic::Vdpbf16ps);
    for (extension, (name, types, mnemonic), rows, vectors, lanes) in [
        (VectorExtension::Avx512, bytes, 6, 4, 16),
        (VectorExtension::Avx2, bytes, 5, 2, 8),
        (VectorExtension::Avx512, bytes, 6, 2, 8),
        (VectorExtension::Avx512, halves, 6, 4, 16),
        (VectorExtension::Avx512, halves, 5, 3, 8),
    ] {
        let leaf = leaf_of(&dot_products(name, types, rows, vectors, lanes), extension).expect("a leaf");
        let instructions = instructions(&leaf);
        let body = innermost_loop(&instructions);
        let count = |mnemonic| body.iter().filter(|own| own.mnemonic() == mnemonic).count();
        assert_eq!(count(mnemonic), rows * vectors, "{extension:?}");
        // The rows' elements are broadcast, the vectors are loaded once, and nothing else is done with vectors.
        assert_eq!(count(Mnemonic::Vpbroadcastd) + count(Mnemonic::Vbroadcastss), rows, "{extension:?}");
        let on_vectors = |own: &&&Instruction| registers(own).any(|own| own.is_vector_register());
        assert_eq!(body.iter().filter(on_vectors).count(), rows * vectors + rows + vectors, "{extension:?}");
    }
}

#[test]
fn either_factor_of_a_dot_product_of_halves_may_be_in_memory() {
    for (rows, vectors) in [(1, 3), (3, 1)] {
        let text = dot_products("vdpbf16ps", ["bf16", "bf16", "f32"], rows, vectors, 16);
        let instructions = instructions(&leaf_of(&text, VectorExtension::Avx512).expect("a leaf"));
        let body = innermost_loop(&instructions);
        let products = body.iter().filter(|own| own.mnemonic() == Mnemonic::Vdpbf16ps);
        assert_eq!(products.filter(|own| own.op2_kind() == OpKind::Memory).count(), 3, "{rows} rows");
    }
}

#[test]
fn products_with_an_offset_take_one_more_operation_for_each_operand_that_has_it() {
    for (name, types, factor) in [
        ("vpdpbssd_offset_a", ["i8", "i8", "i32"], "a"),
        ("vpdpbssd_offset_b", ["i8", "i8", "i32"], "b"),
        ("vpdpbuud_offset_a", ["u8", "u8", "i32"], "a"),
        ("vpdpbuud_offset_b", ["u8", "u8", "i32"], "b"),
    ] {
        let offset = if types[0] == "i8" { "128i32" } else { "-128i32" };
        let text = dot_products(name, types, 5, 3, 16);
        let text = match factor {
            "a" => text
                .replace("+ r] as i32 * b", &format!("+ r] as i32 + {offset}) * b"))
                .replace("+ a[", "+ (a["),
            _ => {
                text.replace("* b[", "* (b[").replace("+ r] as i32\n", &format!("+ r] as i32 + {offset})\n"))
            }
        };
        let leaf =
            leaf_of(&text, VectorExtension::Avx512).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
        let instructions = instructions(&leaf);
        let body = innermost_loop(&instructions);
        let count = |mnemonic| body.iter().filter(|own| own.mnemonic() == mnemonic).count();
        // Bits are flipped where a vector is loaded from, and nothing else is done with vectors.
        let flipped = if factor == "a" { 5 } else { 3 };
        assert_eq!((count(Mnemonic::Vpdpbusd), count(Mnemonic::Vpxord)), (5 * 3, flipped), "{name}");
        let on_vectors = |own: &&&Instruction| registers(own).any(|own| own.is_vector_register());
        assert_eq!(body.iter().filter(on_vectors).count(), 5 * 3 + 5 + 3, "{name}");
    }
}

#[test]
fn streamed_stores_are_in_memory_before_the_return_and_have_a_substitute() {
    for extension in [VectorExtension::Avx2, VectorExtension::Avx512] {
        let instructions = instructions(&leaf_of(STREAMED, extension).expect("a leaf"));
        let position = |mnemonic| instructions.iter().rposition(|own| own.mnemonic() == mnemonic);
        let last_store = position(Mnemonic::Vmovntps).expect("a streamed store");
        let fence = position(Mnemonic::Sfence).expect("a fence");
        assert!(last_store < fence && fence < position(Mnemonic::Ret).expect("a return"));
        let is_ordinary =
            |own: &&Instruction| own.mnemonic() == Mnemonic::Vmovups && own.op0_kind() == OpKind::Memory;
        let count = |mnemonic| instructions.iter().filter(|own| own.mnemonic() == mnemonic).count();
        assert_eq!(instructions.iter().filter(is_ordinary).count(), count(Mnemonic::Vmovntps));
    }
    // Elements that the leaf reads again belong in a cache.
    let text = STREAMED.replace("* 2.0", "* y[i*48 + lane<16>]").replace("out y", "inout y");
    let own = instructions(&leaf_of(&text, VectorExtension::Avx512).expect("a leaf"));
    assert!(own.iter().all(|own| own.mnemonic() != Mnemonic::Vmovntps));
    // Rows of 40 bytes begin anywhere in a line.
    let own = instructions(&leaf_of(&STREAMED.replace("48", "50"), VectorExtension::Avx512).expect("a leaf"));
    assert!(own.iter().all(|own| own.mnemonic() != Mnemonic::Vmovntps));
}

#[test]
fn each_line_is_asked_for_once_in_each_iteration() {
    let text = "kernel sums(in x: f32[4096], in z: f32[4096], out y: f32[16]) {
      buffer s: f32[16] local
      alloc s {
        s[lane<16>] = 0.0
        @prefetch 8
        for i in 0..64 {
          s[lane<16>] = mul_add(x[i*32 + lane<16>], z[i], s[lane<16>])
          s[lane<16>] = mul_add(x[i*32 + 16 + lane<16>], z[i], s[lane<16>])
          s[lane<16>] = s[lane<16>] + x[i*32 + lane<16>]
        }
        y[lane<16>] = s[lane<16>]
      }
    }";
    let instructions = instructions(&leaf_of(text, VectorExtension::Avx512).expect("a leaf"));
    let body = innermost_loop(&instructions);
    let prefetched: Vec<u64> = body
        .iter()
        .filter(|own| own.mnemonic() == Mnemonic::Prefetcht0)
        .map(|own| own.memory_displacement64())
        .collect();
    // Two lines of `x`, eight iterations of 128 bytes ahead; `z` goes through its lines in small steps.
    assert_eq!(prefetched, [1024, 1088]);
}

#[test]
fn products_of_other_signs_are_one_instruction_where_there_is_one() {
    // On vectors of 256 bits, `leaf_of` has every feature there is.
    for (name, signs, mnemonic) in [
        ("vpdpbssd", ["i8", "i8", "i32"], Mnemonic::Vpdpbssd),
        ("vpdpbuud", ["u8", "u8", "i32"], Mnemonic::Vpdpbuud),
        ("vpdpbsud", ["i8", "u8", "i32"], Mnemonic::Vpdpbusd),
    ] {
        let text = dot_products(name, signs, 5, 2, 8);
        let instructions = instructions(&leaf_of(&text, VectorExtension::Avx2).expect("a leaf"));
        let body = innermost_loop(&instructions);
        assert_eq!(body.iter().filter(|own| own.mnemonic() == mnemonic).count(), 10, "{name}");
    }
}

/// Rows of sums of products, of as many columns each.
fn rows_of_sums(rows: usize, columns: usize) -> String {
    let all = |line: &dyn Fn(usize) -> String| (0..rows).map(line).collect::<Vec<_>>().join("\n");
    let sums = |row: usize| format!("acc[lane<{columns}> + {}]", row * columns);
    let zeros = all(&|row| format!("{} = 0.0", sums(row)));
    let products = all(&|row| {
        let sums = sums(row);
        format!("{sums} = mul_add(a[k*{rows} + {row}], b[k*{columns} + lane<{columns}>], {sums})")
    });
    let results = all(&|row| format!("c[lane<{columns}> + {}] = {}", row * columns, sums(row)));
    let elements = rows * columns;
    format!(
        "kernel sums(K, in a: f32[K*{rows}], in b: f32[K*{columns}], out c: f32[{elements}]) {{
           buffer acc: f32[{elements}] local
           alloc acc {{ {zeros} for k in 0..K {{ {products} }} {results} }}
         }}"
    )
}

#[test]
fn columns_that_fill_no_vector_take_one_product() {
    for (columns, vectors) in [(13, 2), (15, 2), (11, 2), (7, 1), (3, 1)] {
        let leaf = leaf_of(&rows_of_sums(4, columns), VectorExtension::Avx2).expect("a leaf");
        let instructions = instructions(&leaf);
        let body = innermost_loop(&instructions);
        let count =
            |chosen: &dyn Fn(Mnemonic) -> bool| body.iter().filter(|own| chosen(own.mnemonic())).count();
        let is_product = |own| format!("{own:?}").starts_with("Vfmadd");
        assert_eq!(count(&is_product), 4 * vectors, "{columns} columns");
        assert_eq!(count(&|own| own == Mnemonic::Vpmaskmovd), 1, "{columns} columns");
        // A store under a vector mask takes tens of cycles on some processors.
        let is_store = |own: &&Instruction| own.op0_kind() == OpKind::Memory;
        assert!(!instructions.iter().filter(is_store).any(|own| own.mnemonic() == Mnemonic::Vpmaskmovd));
    }
}

#[test]
fn vectors_of_any_number_of_lanes_share_a_broadcast() {
    for (extension, columns) in [
        (VectorExtension::Avx512, 32),
        (VectorExtension::Avx512, 24),
        (VectorExtension::Avx512, 29),
        (VectorExtension::Avx2, 16),
        (VectorExtension::Avx2, 12),
    ] {
        let leaf = leaf_of(&rows_of_sums(4, columns), extension).expect("a leaf");
        let instructions = instructions(&leaf);
        let body = innermost_loop(&instructions);
        let is_broadcast =
            |own: &&&Instruction| matches!(own.mnemonic(), Mnemonic::Vbroadcastss | Mnemonic::Vpbroadcastd);
        let broadcasts = body.iter().filter(is_broadcast).count();
        let embedded = body.iter().filter(|own| own.is_broadcast()).count();
        assert_eq!((broadcasts, embedded), (4, 0), "{columns} columns for {extension:?}");
    }
}

#[test]
fn lanes_are_summed_in_registers() {
    let text = "kernel total(in x: f32[N16], out y: f32[1]) {
      buffer s: f32[LANES] local
      buffer t: f32[HALF] local
      alloc s { alloc t {
        s[lane<LANES>] = 0.0
        for i in 0..8 { s[lane<LANES>] = s[lane<LANES>] + x[i*LANES + lane<LANES>] }
        t[lane<HALF>] = s[lane<HALF>] + s[lane<HALF> + HALF]
        y[0] = t[0] + t[1]
      } }
    }";
    for (extension, lanes) in [VectorExtension::Avx2, VectorExtension::Avx512]
        .into_iter()
        .flat_map(|extension| [4, 8, 16].map(|lanes| (extension, lanes)))
    {
        let text = text.replace("N16", &(8 * lanes).to_string()).replace("LANES", &lanes.to_string());
        let text = text.replace("HALF", &(lanes / 2).to_string());
        let instructions =
            instructions(&leaf_of(&text, extension).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")));
        let is_store = |own: &&Instruction| own.op0_kind() == OpKind::Memory;
        let vectors = |own: &&Instruction| registers(own).any(Register::is_vector_register);
        let stores = instructions.iter().filter(is_store).filter(vectors).count();
        assert_eq!(stores, 1, "{extension:?}, {lanes} lanes");
    }
}

#[test]
fn rows_that_end_inside_a_vector_are_summed_in_registers() {
    let text = "kernel total(in x: f32[77], out y: f32[1]) {
      buffer s: f32[64] local
      buffer t: f32[32] local
      buffer u: f32[16] local
      buffer v: f32[8] local
      buffer w: f32[4] local
      alloc s { alloc t { alloc u { alloc v { alloc w {
        s[lane<16>] = x[lane<16>] + select(index(lane<16>) < index(13), x[lane<16> + 64], 0.0)
        s[lane<48> + 16] = x[lane<48> + 16]
        t[lane<32>] = s[lane<32>] + s[lane<32> + 32]
        u[lane<16>] = t[lane<16>] + t[lane<16> + 16]
        v[lane<8>] = u[lane<8>] + u[lane<8> + 8]
        w[lane<4>] = v[lane<4>] + v[lane<4> + 4]
        y[0] = (w[0] + w[1]) + (w[2] + w[3])
      } } } } }
    }";
    for extension in [VectorExtension::Avx2, VectorExtension::Avx512] {
        let leaf = leaf_of(text, extension).unwrap_or_else(|refusal| panic!("{extension:?}: {refusal}"));
        let stores = instructions(&leaf).iter().filter(|own| is_store(own)).count();
        assert_eq!(stores, 1, "{extension:?}");
    }
}

#[test]
fn lanes_before_an_end_are_one_comparison_of_whole_vectors() {
    let text = "kernel padded(in x: f32[64], out y: f32[128]) {
      for i in 0..8 { y[i*16 + lane<16>] = select(index(i*16 + lane<16>) < index(61), x[i*8 + lane<16>], 0.0) }
    }";
    for (extension, vectors) in [(VectorExtension::Avx2, 2), (VectorExtension::Avx512, 1)] {
        let leaf = leaf_of(text, extension).unwrap_or_else(|refusal| panic!("{extension:?}: {refusal}"));
        let stores = innermost_loop(&instructions(&leaf)).into_iter().filter(|own| is_store(own)).count();
        assert_eq!(stores, vectors, "{extension:?}");
    }
}

#[test]
fn a_mark_that_is_wrong_is_not_believed() {
    let text = dot_products("vpdpbusd", ["u8", "i8", "i32"], 1, 1, 16);
    let text = text.replace("acc[0 + i]\n", "1i32 + acc[0 + i]\n");
    assert_eq!(leaf_of(&text, VectorExtension::Avx512).err(), Some(Refusal::Mark));
}

/// Sums in 31 rows, each of which needs all the others.
const WIDE: usize = 31;

fn wide() -> String {
    let rows: Vec<String> = (0..WIDE).map(|row| format!("lane<16> + {}", 16 * row)).collect();
    let start: String = rows.iter().map(|row| format!("acc[{row}] = 0.0\n")).collect();
    // None can be given up early.
    let step: String = rows
        .iter()
        .map(|row| format!("acc[{row}] = (x[k] + 1.0) * (x[k + 1] + 2.0) + acc[{row}]\n"))
        .collect();
    let end: String = rows.iter().map(|row| format!("y[{row}] = acc[{row}]\n")).collect();
    format!(
        "kernel wide(in x: f32[11], out y: f32[496]) {{
           buffer acc: f32[496] local
           alloc acc {{ {start} for k in 0..10 {{ {step} }} {end} }}
         }}"
    )
}

#[test]
fn sums_that_registers_cannot_hold_are_in_memory() {
    let leaf = leaf_of(&wide(), VectorExtension::Avx512).unwrap();
    let stores = |instructions: &[&Instruction]| {
        instructions.iter().filter(|one| one.mnemonic() == Mnemonic::Vmovups && is_store(one)).count()
    };
    assert_eq!(stores(&innermost_loop(&instructions(&leaf))), WIDE);
}

/// A tile of values that are computed once, and sums that each of them is added to: together too many for the registers.
#[test]
fn sums_are_in_registers_before_other_intermediates() {
    let rows = |count: usize| (0..count).map(|row| format!("lane<16> + {}", 16 * row)).collect::<Vec<_>>();
    let (tile, sums) = (rows(16), rows(18));
    let lines = |rows: &[String], line: &dyn Fn(&str) -> String| -> String {
        rows.iter().map(|row| line(row)).collect()
    };
    let text = format!(
        "kernel tile(in x: f32[512], in w: f32[2560], out y: f32[288]) {{
           buffer tile: f32[256] local
           buffer acc: f32[288] local
           alloc acc {{
             {}
             for k in 0..10 {{ alloc tile {{ {} {} }} }}
             {}
           }}
         }}",
        lines(&sums, &|row| format!("acc[{row}] = 0.0\n")),
        lines(&tile, &|row| format!("tile[{row}] = w[k*256 + {row}] * 2.0\n")),
        tile.iter()
            .flat_map(|one| {
                sums.iter().map(move |row| format!("acc[{row}] = x[k] * tile[{one}] + acc[{row}]\n"))
            })
            .collect::<String>(),
        lines(&sums, &|row| format!("y[{row}] = acc[{row}]\n")),
    );
    let leaf = leaf_of(&text, VectorExtension::Avx512).unwrap();
    let instructions = instructions(&leaf);
    let stores = innermost_loop(&instructions).into_iter().filter(|one| is_store(one)).count();
    assert_eq!(stores, tile.len(), "the tile alone is in memory");
}

/// Whether an instruction writes memory with a vector.
fn is_store(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Memory && instruction.op1_kind() == OpKind::Register
}
