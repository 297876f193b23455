//! Definitions: the reference against the program that is built from it, on odd shapes; calls and their errors.

mod calls;
mod corners;
mod functions;
mod generics;
mod harness;
mod kernels;
mod methods;
mod recurrences;
mod strided;
mod tensor_fns;

use harness::{Call, agree, float};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;

/// One test for each kernel: dimensions (then `usize` arguments), scalars, bounds of indices.
macro_rules! kernels {
    ($module:ident: $($name:ident: $([$($dim:expr),*])+ $(, scalars $scalars:expr)? $(, bounds $bounds:expr)?;)*) => {$(
        #[test]
        fn $name() {
            for dims in [$(&[$($dim),*][..]),+] {
                let call = Call { dims, scalars: &[], bounds: &[] };
                $(let call = Call { scalars: &$scalars, ..call };)?
                $(let call = Call { bounds: &$bounds, ..call };)?
                agree($module::$name::kernel(), &call);
            }
        }
    )*};
}

kernels! { kernels:
    matmul: [1, 1, 1] [7, 5, 3] [13, 17, 11];
    matmul_by_scalar: [1, 1, 1] [5, 7, 3];
    quantised_matmul: [3, 7, 5], scalars [Constant::Int(3)];
    quantise: [1] [37], scalars [float(DType::F32, 0.07)];
    conv2d: [7, 5, 3, 3, 3, 2, 1, 1, 1] [7, 6, 2, 3, 2, 3, 2, 2, 2] [3, 3, 1, 3, 3, 1, 1, 0, 1];
    depthwise: [3, 3, 1] [7, 5, 3];
    softmax: [1, 1] [3, 17];
    layer_norm: [1, 1] [5, 7];
    attention: [1, 1] [7, 5], scalars [float(DType::F32, 0.3)];
    relu_in_place: [3, 5];
    axpy: [17], scalars [float(DType::F32, 0.7)];
    momentum: [17], scalars [float(DType::F32, 0.1)];
    embedding: [11, 3, 7], bounds [("ids", 11)];
    tables: [1] [37] [256];
    max_pool: [7, 5] [2, 2];
    extremes: [3, 7];
    propagating_extremes: [9, 7] [2, 37];
    functions: [29];
    functions_in_double: [29];
    half_precision: [29];
    integers: [31];
    masks: [1] [31];
    branches: [1, 1] [5, 7], scalars [float(DType::F32, 0.4)];
    gelu: [19];
    swap: [19];
    strided: [1, 1] [17, 4] [19, 23];
    shuffle: [3, 5] [1, 7];
    shapes: [3, 5] [5, 3];
    blur: [1] [11];
    kernel: [5], scalars [float(DType::F32, 0.5), float(DType::F32, 0.25)];
    repeat: [5];
}

kernels! { corners:
    constants: [7] [1];
    scopes: [5];
    accumulators: [3, 7] [1, 1], bounds [("ids", 8)];
    inference: [9];
    edges: [9];
    positions: [5, 4] [7, 9];
    transposed_conv: [3, 2, 3, 2, 1] [4, 1, 2, 3, 2] [1, 1, 1, 1, 3];
    inner_tensor: [3, 5];
    chained_gather: [7, 5, 6], bounds [("first", 6), ("second", 7)];
    r#move: [5], scalars [float(DType::F32, 0.3)];
    mixed_precision: [11], scalars [float(DType::BF16, 1.5), float(DType::F16, 0.25), float(DType::F64, 0.1)];
}

kernels! { functions:
    functions_of_floats: [1] [37];
    integers_of_all_widths: [1] [37], scalars [Constant::Int(3)];
    integer_reductions: [1, 1] [7, 5];
}

kernels! { tensor_fns:
    gated: [1, 1] [5, 7], scalars [float(DType::F32, 0.6)];
    sums: [1, 1] [5, 7];
    other_types: [1] [23];
    constant_dims: [1, 3] [4, 3];
}

kernels! { recurrences:
    cumulative: [1, 1] [5, 7] [0, 3];
    recurrent: [2, 3, 4, 5] [1, 1, 1, 1];
    sweep: [6, 7] [3, 3];
    mandelbrot: [9, 5];
    horner: [5, 4] [3, 0];
    histogram: [11, 3, 5], bounds [("ids", 5)];
    overlap_add: [4, 5, 2];
    extreme_places: [1, 1] [5, 9];
    greatest_of_all: [1, 1] [4, 7];
}
