//! Kernels that compute each element on its own.

use crate::support::{Call, parse, scheduled};

/// One thread for each element, and a condition where blocks are not full.
const BOUND: &str = "%0 = get_block \"y\"
%1 = get_loops %0
%2, %3 = split %1, [none, 64]
bind %2, \"block_x\"
bind %3, \"thread_x\"";

#[test]
fn sums_of_any_length() {
    for len in [1, 2, 63, 64, 65, 127, 1000] {
        let program = parse(&format!(
            "kernel add(in a: f32[{len}], in b: f32[{len}], out y: f32[{len}]) {{
  for i in 0..{len} {{
    block y(v: spatial {len} = i) {{
      y[v] = a[v] + b[v]
    }}
  }}
}}"
        ));
        Call::random(&program, &[], len).check(&scheduled(&program, BOUND));
    }
}

/// Bytes name elements of tables, one for each thread and four.
#[test]
fn tables_by_bytes() {
    let vectors = BOUND.replace("%2, %3 = split %1, [none, 64]", "%2, %3, %4 = split %1, [none, 16, 4]");
    let vectors = vectors + "\nvectorize %4";
    for (element, len) in [("u8", 65), ("i8", 64), ("f32", 127), ("i32", 1000)] {
        let program = parse(&format!(
            "kernel look_up(in x: u8[{len}], in t: {element}[256], out y: {element}[{len}]) {{
  for i in 0..{len} {{
    block y(v: spatial {len} = i) {{
      y[v] = t[value(x[v] as i64)]
    }}
  }}
}}"
        ));
        for schedule in [BOUND, &vectors] {
            Call::random(&program, &[], len).check(&scheduled(&program, schedule));
        }
    }
}

#[test]
fn symbolic_lengths() {
    let program = parse(
        "kernel scale(n, in a: f32[n], out y: f32[n]) {
  for i in 0..n {
    block y(v: spatial n = i) {
      y[v] = a[v] * 3.0
    }
  }
}",
    );
    let flat = scheduled(&program, BOUND);
    for len in [0, 1, 64, 100] {
        Call::random(&program, &[len], 7).check(&flat);
    }
}
