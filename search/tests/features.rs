//! What the cost model sees of register tiles.

use tilewright_core::program::Program;
use tilewright_core::target::Target;
use tilewright_search::features::describe;

/// The loads per multiply-add of a product whose register tile has so many rows of so many vectors of eight.
fn loads_per_operation(rows: i64, vectors: i64, registers: u32) -> f32 {
    let columns = 8 * vectors;
    let text = format!(
        "kernel tile(in a: f32[{rows}, 64], in b: f32[64, {columns}], out c: f32[{rows}, {columns}]) {{
  for k in 0..64 {{
    unrolled for i in 0..{rows} {{
      vectorized for j in 0..{columns} {{
        block c(vi: spatial {rows} = i, vj: spatial {columns} = j, vk: reduce 64 = k) {{
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }}
      }}
    }}
  }}
}}
"
    );
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let target = Target { vector_bits: 256, vector_registers: registers, ..Target::generic_cpu() };
    let described = describe(&program, &target);
    let values = described.iter().flat_map(|block| &block.own);
    let value =
        values.into_iter().find(|value| value.name == "loads_per_operation").expect("it is described");
    value.value.exp2() - 1.0
}

#[test]
fn operands_of_a_tile_are_loaded_once_where_registers_hold_them() {
    // Six rows of two vectors take 12 registers, the vectors 2, and the element that passes by one.
    let held = loads_per_operation(6, 2, 16);
    assert!((0.66..0.75).contains(&held), "{held}");
    let larger = loads_per_operation(7, 2, 32);
    assert!(larger < held, "{larger} where there are 32 registers");
}

#[test]
fn a_tile_that_leaves_no_register_for_operands_loads_them_each_time() {
    let (held, passing) = (loads_per_operation(7, 2, 32), loads_per_operation(7, 2, 16));
    assert!(passing > held + 0.8, "{passing} and {held}");
    assert!(passing > loads_per_operation(6, 2, 16), "{passing}");
}
