//! The cost model's features for register tiles, for padding, and for the memory that operands come from.

use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, RunContext};
use tilewright_search::cpu::features::{describe, extract};

/// The loads per multiply-add of a product whose register tile has `rows` rows of `vectors` vectors of eight.
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
    described(&text, registers, "loads_per_operation")
}

/// A size that is described of the first block of a program.
fn described(text: &str, registers: u32, name: &str) -> f32 {
    let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let cpu = CpuTarget { vector_bits: 256, vector_registers: registers, ..CpuTarget::generic() };
    let described = describe(&program, &cpu);
    let mut values = described.iter().flat_map(|block| &block.own);
    let value = values.find(|value| value.name == name).expect("it is described");
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

#[test]
fn taps_that_are_written_out_share_what_they_load() {
    let filter = |kind: &str| {
        let text = format!(
            "kernel filter(in x: f32[6, 8], in w: f32[3, 8], out y: f32[4, 8]) {{
  {kind}for k in 0..3 {{
    unrolled for i in 0..4 {{
      vectorized for j in 0..8 {{
        block y(vi: spatial 4 = i, vj: spatial 8 = j, vk: reduce 3 = k) {{
          y[vi, vj] = y[vi, vj] + x[vi + vk, vj] * w[vk, vj]
        }}
      }}
    }}
  }}
}}
"
        );
        described(&text, 32, "loads_per_operation")
    };
    // A tile stores its four sums once, each store like three loads. With twelve multiply-adds in a row it
    // loads six rows and three vectors of the filter; one tap after the other loads four rows and one vector each.
    assert!((filter("unrolled ") - 21.0 / 12.0).abs() < 0.01, "{}", filter("unrolled "));
    assert!((filter("") - 9.0 / 4.0).abs() < 0.01, "{}", filter(""));
}

#[test]
fn conditions_that_all_lanes_decide_alike_are_no_comparisons() {
    let padded = |condition: &str| {
        let text = format!(
            "kernel padded(in x: f32[8, 8], in n: i32[8], out y: f32[10, 8]) {{
  for i in 0..10 {{
    vectorized for j in 0..8 {{
      block y(vi: spatial 10 = i, vj: spatial 8 = j) {{
        y[vi, vj] = select({condition}, x[vi - 1, vj], 0.0)
      }}
    }}
  }}
}}
"
        );
        ["comparisons", "conditional_loads", "uniform_conditional_loads"]
            .map(|name| described(&text, 32, name).round())
    };
    assert_eq!(padded("(vi >= 1) & (vi < 9)"), [0.0, 0.0, 80.0]);
    assert_eq!(padded("(vi >= 1) & (vj < 4)"), [240.0, 80.0, 0.0]);
    // Data choose between values that all lanes have.
    assert_eq!(padded("n[vj] < 4"), [160.0, 0.0, 0.0]);
    // Data have to be compared, once for all lanes, and the load is one of a vector.
    assert_eq!(padded("n[vi - 1] < 4"), [160.0, 0.0, 80.0]);
}

#[test]
fn rows_that_data_choose_are_one_each_time() {
    let text = "kernel rows(in table: f32[1000, 64], in ids: i64[4, 3], out y: f32[4, 3, 64]) {
  for i in 0..4 {
    for j in 0..3 {
      vectorized for l in 0..64 {
        block y(vi: spatial 4 = i, vj: spatial 3 = j, vl: spatial 64 = l) {
          y[vi, vj, vl] = table[bounded(ids[vi, vj], 0..1000), vl]
        }
      }
    }
  }
}
";
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let described = describe(&program, &CpuTarget::generic());
    let (_, values) = described[0].buffers.iter().find(|(name, _)| &**name == "table").expect("it is read");
    let unique = values.iter().find(|value| value.name == "unique_bytes").expect("it is described");
    assert_eq!(unique.value.exp2().round() - 1.0, (4 * 3 * 64 * 4) as f32);
}

/// The share of the peak that the draft model expects of a program where the last cache is so large.
fn expected_share(text: &str, l3_bytes: u64) -> f32 {
    let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    // So many cores that all of the cache is theirs.
    let context = RunContext::from(CpuTarget { l3_bytes, cores: 16, ..CpuTarget::generic() }).with_threads(1);
    extract(&program, &context).expect("the program is well-formed").prior()
}

#[test]
fn what_the_last_cache_keeps_from_call_to_call_does_not_come_from_memory() {
    // Two tensors of 4 MiB.
    let doubled = "kernel doubled(in x: f32[1048576], out y: f32[1048576]) {
  for i in 0..262144 {
    vectorized for j in 0..4 {
      block y(vi: spatial 1048576 = i*4 + j) {
        y[vi] = x[vi] * 2.0
      }
    }
  }
}
";
    let [small, fitting, larger] = [4, 16, 64].map(|mebibytes| expected_share(doubled, mebibytes << 20));
    assert!(fitting > 1.3 * small, "{fitting} where all fits, {small} where not");
    assert_eq!(fitting, larger);
}

#[test]
fn rows_in_other_pages_each_cost_translations() {
    // Each step of a sum reads a vector of another row. The rows lie beside each other in few pages, or each has pages of its own.
    let columns = |row: i64| {
        let text = format!(
            "kernel columns(in x: f32[128, {row}], in w: f32[128], out y: f32[8, 4]) {{
  for i in 0..8 {{
    for k in 0..128 {{
      vectorized for l in 0..4 {{
        block y(vi: spatial 8 = i, vl: spatial 4 = l, vk: reduce 128 = k) {{
          y[vi, vl] = y[vi, vl] + x[vk, vi*4 + vl] * w[vk]
        }}
      }}
    }}
  }}
}}
"
        );
        expected_share(&text, 0)
    };
    let (dense, apart) = (columns(32), columns(1056));
    assert!(
        dense > 1.5 * apart,
        "{dense} of the peak with rows beside each other, {apart} with pages between them"
    );
}

#[test]
fn rows_of_a_column_compete_for_the_places_of_a_cache() {
    // A tile of 14 pixels of a column and one vector of channels: the rows of the image lie at a distance of a multiple of 4 KiB, or of a line more.
    let column = |channels: i64| {
        let text = format!(
            "kernel column(in x: f32[14, 14, {channels}], in w: f32[512, 4], out y: f32[14, 14, 4]) {{
  for i in 0..14 {{
    for k in 0..512 {{
      unrolled for j in 0..14 {{
        vectorized for l in 0..4 {{
          block y(vi: spatial 14 = i, vj: spatial 14 = j, vl: spatial 4 = l, vk: reduce 512 = k) {{
            y[vj, vi, vl] = y[vj, vi, vl] + x[vj, vi, vk] * w[vk, vl]
          }}
        }}
      }}
    }}
  }}
}}
"
        );
        expected_share(&text, 0)
    };
    let (multiple, other) = (column(512), column(528));
    assert!(other > 1.2 * multiple, "{multiple} of the peak at 28 KiB, {other} with lines more");
}

#[test]
fn a_few_rows_in_turns_are_followed_and_many_are_not() {
    // Sums of columns of 65,536 elements each, a vector of every row in turns.
    let sums = |rows: i64| {
        let text = format!(
            "kernel sums(in x: f32[{rows}, 65536], out y: f32[65536]) {{
  for i in 0..4096 {{
    for k in 0..{rows} {{
      vectorized for l in 0..16 {{
        block y(vi: spatial 65536 = i*16 + l, vk: reduce {rows} = k) {{
          y[vi] = y[vi] + x[vk, vi]
        }}
      }}
    }}
  }}
}}
"
        );
        expected_share(&text, 0)
    };
    let (few, many) = (sums(16), sums(256));
    assert!(few > 1.1 * many, "{few} of the peak with 16 rows in turns, {many} with 256");
}

#[test]
fn rows_that_are_transposed_in_registers_come_once() {
    // Lanes along the rows of a matrix, inside a loop along its columns. At a distance of a power of two rows compete for a few
    // places of the first-level cache, which does not matter where a block of them is read at once.
    let transposed = |columns: i64| {
        let text = format!(
            "kernel transposed(in x: f32[1024, {columns}], out y: f32[1024, 1024]) {{
  for i in 0..64 {{
    for j in 0..1024 {{
      vectorized for l in 0..16 {{
        block y(vi: spatial 1024 = i*16 + l, vj: spatial 1024 = j) {{
          y[vj, vi] = x[vi, vj]
        }}
      }}
    }}
  }}
}}
"
        );
        expected_share(&text, 0)
    };
    let (power, other) = (transposed(4096), transposed(4112));
    assert!(power > 0.9 * other, "{power} of the peak with rows of 16 KiB, {other} with a line more");
}

#[test]
fn matrices_that_are_packed_ahead_come_from_memory() {
    // Each of 64 rows of a product reads 16 MiB.
    let rows = |access: &str, copy: &str, matrix: &str| {
        format!(
            "kernel rows(in a: f32[64, 1024], {access} b: f32[1024, 4096], out c: f32[64, 4096]) {{
{copy}  for i in 0..64 {{
    for j in 0..128 {{
      for k in 0..1024 {{
        unrolled for v in 0..8 {{
          vectorized for l in 0..4 {{
            block c(vi: spatial 64 = i, vj: spatial 4096 = j*32 + v*4 + l, vk: reduce 1024 = k) {{
              init {{
                c[vi, vj] = 0.0
              }}
              c[vi, vj] = c[vi, vj] + a[vi, vk] * {matrix}
            }}
          }}
        }}
      }}
    }}
  }}
}}
"
        )
    };
    let copy = "  buffer packed: f32[128, 1024, 32] global
  for j in 0..128 {
    for k in 0..1024 {
      for l in 0..32 {
        block packed(vj: spatial 128 = j, vk: spatial 1024 = k, vl: spatial 32 = l) {
          packed[vj, vk, vl] = b[vk, vj*32 + vl]
        }
      }
    }
  }
";
    let packed = rows("constant", copy, "packed[vj/32, vk, vj%32]");
    let [from_memory, cached] = [8, 64].map(|mebibytes| expected_share(&packed, mebibytes << 20));
    assert!(cached > 1.3 * from_memory, "{cached} where all is cached, {from_memory} where not");
    // Panels are read from the first element to the last, and columns of a matrix are not.
    let plain = expected_share(&rows("in", "", "b[vk, vj]"), 8 << 20);
    assert!(plain < from_memory && from_memory < 2.0 * plain, "{from_memory} in panels, {plain} in rows");
}
