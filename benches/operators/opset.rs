//! The operator set: names, shapes and counts of operations.
//!
//! An operator is named `FAMILY.INDEX` for a shape of the MetaSchedule paper's set, as in `GMM.3`, or
//! `FAMILY:PARAMETERS` for any shape of a family, as in `GMM:1x96x200x33`. Operations are two for each
//! multiply-add of the dense definition (taps on padding counted, the exponentials of attention not); of a transposed convolution only the taps that
//! meet an input element count, a norm has two for each element, and a softmax nominally five.

use tilewright::Kernel;

use super::{attention, bytes, halves, kernels, memory, pieces, quantised, recurrences};

/// A family of operators.
#[derive(Clone, Copy, Debug)]
struct Family {
    name: &'static str,
    /// The parameters, in order.
    parameters: &'static [&'static str],
    /// How many of the last parameters may be left out; they are then 1.
    optional: usize,
    /// The shapes of the paper's set, in its order.
    shapes: &'static [&'static [i64]],
    resolve: fn(&[i64]) -> Option<Resolved>,
}

/// A kernel, its dimensions, and how many operations it has.
type Resolved = (fn() -> &'static Kernel, Vec<(&'static str, i64)>, i64);

/// An operator at a shape.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    /// The name it was asked for by.
    pub(crate) name: String,
    /// The kernel that computes it.
    pub(crate) kernel: fn() -> &'static Kernel,
    /// The kernel's dimensions and `usize` arguments.
    pub(crate) dims: Vec<(&'static str, i64)>,
    /// The nominal number of operations.
    pub(crate) flops: f64,
}

const CONVOLUTION: &[&str] = &["N", "H", "W", "CI", "CO", "k", "stride", "pad", "dilation", "groups"];

const CONVOLUTION_OF_BYTES: &[&str] = &["N", "H", "W", "CI", "CO", "k", "stride", "pad"];

const PRODUCT: &[&str] = &["B", "N", "M", "K"];

const FAMILIES: &[Family] = &[
    Family {
        name: "C1D",
        parameters: &["N", "L", "CI", "CO", "k", "stride", "pad"],
        optional: 0,
        shapes: &[
            &[1, 256, 64, 128, 3, 2, 1],
            &[1, 128, 128, 256, 1, 2, 0],
            &[1, 64, 256, 256, 5, 1, 2],
            &[1, 32, 512, 512, 3, 1, 1],
        ],
        resolve: convolution1d,
    },
    Family {
        name: "C2D",
        parameters: CONVOLUTION,
        optional: 2,
        shapes: &[
            &[1, 224, 224, 3, 64, 7, 2, 3],
            &[1, 56, 56, 64, 64, 1, 1, 0],
            &[1, 14, 14, 256, 256, 3, 1, 1],
            &[1, 7, 7, 512, 512, 3, 1, 1],
        ],
        resolve: convolution2d,
    },
    Family {
        name: "C3D",
        parameters: &["N", "D", "H", "W", "CI", "CO", "k", "stride", "pad"],
        optional: 0,
        shapes: &[
            &[1, 16, 224, 224, 3, 64, 7, 2, 3],
            &[1, 16, 56, 56, 64, 64, 1, 1, 0],
            &[1, 16, 14, 14, 256, 256, 3, 1, 1],
            &[1, 16, 7, 7, 512, 512, 3, 1, 1],
        ],
        resolve: convolution3d,
    },
    Family {
        name: "DEP",
        parameters: &["N", "H", "W", "C", "k", "stride", "pad"],
        optional: 0,
        shapes: &[
            &[1, 112, 112, 32, 3, 1, 1],
            &[1, 112, 112, 64, 3, 2, 1],
            &[1, 14, 14, 512, 3, 2, 1],
            &[1, 7, 7, 1024, 3, 1, 1],
        ],
        resolve: depthwise,
    },
    Family {
        name: "DIL",
        parameters: CONVOLUTION,
        optional: 2,
        shapes: &[
            &[1, 224, 224, 3, 64, 7, 2, 3, 2],
            &[1, 56, 56, 64, 64, 1, 1, 0, 2],
            &[1, 14, 14, 256, 256, 3, 1, 1, 2],
            &[1, 7, 7, 512, 512, 3, 1, 1, 2],
        ],
        resolve: convolution2d,
    },
    Family {
        name: "GMM",
        parameters: PRODUCT,
        optional: 0,
        shapes: &[&[1, 128, 128, 128], &[1, 512, 32, 512], &[1, 512, 512, 512], &[1, 1024, 1024, 1024]],
        resolve: batch_matmul,
    },
    Family {
        name: "GRP",
        parameters: CONVOLUTION,
        optional: 2,
        shapes: &[
            &[1, 56, 56, 64, 128, 3, 2, 1, 1, 4],
            &[1, 56, 56, 64, 64, 1, 1, 0, 1, 4],
            &[1, 14, 14, 256, 256, 3, 1, 1, 1, 4],
            &[1, 7, 7, 512, 512, 3, 1, 1, 1, 4],
        ],
        resolve: convolution2d,
    },
    Family {
        name: "T2D",
        parameters: &["N", "H", "W", "CI", "CO", "k", "stride", "pad"],
        optional: 0,
        shapes: &[
            &[1, 4, 4, 512, 256, 4, 2, 1],
            &[1, 8, 8, 256, 128, 4, 2, 1],
            &[1, 16, 16, 128, 64, 4, 2, 1],
            &[1, 32, 32, 64, 3, 4, 2, 1],
        ],
        resolve: transposed,
    },
    Family {
        name: "CBR",
        parameters: &["N", "H", "W", "CI", "CO", "k", "stride", "pad"],
        optional: 0,
        shapes: &[
            &[1, 224, 224, 3, 64, 7, 2, 3],
            &[1, 56, 56, 64, 128, 3, 2, 1],
            &[1, 28, 28, 128, 256, 1, 2, 0],
            &[1, 7, 7, 512, 512, 3, 1, 1],
        ],
        resolve: bias_norm_relu,
    },
    Family {
        name: "TBG",
        parameters: &["B", "S", "H", "D"],
        optional: 0,
        shapes: &[&[1, 128, 12, 64], &[1, 128, 16, 64], &[1, 64, 12, 128], &[1, 128, 12, 128]],
        resolve: attention_scores,
    },
    Family {
        name: "NRM",
        parameters: &["B", "M", "N"],
        optional: 0,
        shapes: &[&[1, 256, 256], &[1, 512, 512], &[1, 1024, 1024], &[1, 4096, 1024]],
        resolve: norm,
    },
    Family {
        name: "SFM",
        parameters: &["M", "N"],
        optional: 0,
        shapes: &[&[256, 256], &[512, 512], &[1024, 1024], &[2048, 2048]],
        resolve: softmax,
    },
    // Not in the paper's set, so that only a shape names them: `GMM` from pieces, and products of narrow elements.
    Family { name: "GMM3", parameters: PRODUCT, optional: 0, shapes: &[], resolve: from_3_products },
    Family { name: "GMM6", parameters: PRODUCT, optional: 0, shapes: &[], resolve: from_6_products },
    Family { name: "GMM9", parameters: PRODUCT, optional: 0, shapes: &[], resolve: from_9_products },
    Family { name: "QMM", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: unsigned_matmul },
    Family { name: "SMM", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: signed_matmul },
    // Limited by memory, see `benches/bandwidth.rs`.
    Family { name: "CPY", parameters: &["M", "N"], optional: 0, shapes: &[], resolve: copy },
    Family { name: "TRN", parameters: &["M", "N"], optional: 0, shapes: &[], resolve: transpose },
    Family { name: "ADD", parameters: &["M", "N"], optional: 0, shapes: &[], resolve: add },
    Family { name: "GBE", parameters: &["M", "N"], optional: 0, shapes: &[], resolve: bias_gelu },
    Family { name: "LNM", parameters: &["M", "N"], optional: 0, shapes: &[], resolve: layer_norm },
    Family { name: "DOT", parameters: &["N"], optional: 0, shapes: &[], resolve: dot },
    Family {
        name: "ATT",
        parameters: &["H", "S", "T", "D"],
        optional: 0,
        shapes: &[],
        resolve: whole_attention,
    },
    Family { name: "RNN", parameters: &["B", "T", "I", "H"], optional: 0, shapes: &[], resolve: recurrent },
    Family { name: "UMM", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: positive_matmul },
    Family {
        name: "QCV",
        parameters: CONVOLUTION_OF_BYTES,
        optional: 0,
        shapes: &[],
        resolve: byte_convolution,
    },
    Family {
        name: "QCW",
        parameters: CONVOLUTION_OF_BYTES,
        optional: 0,
        shapes: &[],
        resolve: unsigned_weighted_convolution,
    },
    Family {
        name: "SCW",
        parameters: CONVOLUTION_OF_BYTES,
        optional: 0,
        shapes: &[],
        resolve: signed_weighted_convolution,
    },
    Family {
        name: "QCR",
        parameters: CONVOLUTION_OF_BYTES,
        optional: 0,
        shapes: &[],
        resolve: requantised_convolution,
    },
    Family { name: "XMM", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: swapped_matmul },
    Family { name: "HMM", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: half_matmul },
    Family {
        name: "QMW",
        parameters: &["M", "N", "K"],
        optional: 0,
        shapes: &[],
        resolve: unsigned_weighted,
    },
    Family { name: "SMW", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: signed_weighted },
    Family { name: "HMW", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: half_weighted },
    Family { name: "HMR", parameters: &["M", "N", "K"], optional: 0, shapes: &[], resolve: rounded_matmul },
];

/// The shapes of each family that are measured when none is named.
const MEASURED: [usize; 2] = [0, 2];

/// The names of the operators that are measured when none is named.
pub(crate) fn names() -> Vec<String> {
    let paper = FAMILIES.iter().filter(|family| !family.shapes.is_empty());
    paper.flat_map(|family| MEASURED.map(|index| format!("{}.{index}", family.name))).collect()
}

/// The operator of a name.
pub(crate) fn operator(name: &str) -> Result<Operator, String> {
    let known = || FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(", ");
    let form = "FAMILY.INDEX as in `GMM.0`, or FAMILY:SHAPE as in `GMM:1x96x200x33`";
    let (family, place) =
        name.split_once(['.', ':']).ok_or_else(|| format!("`{name}` is no operator: expected {form}"))?;
    let family = FAMILIES
        .iter()
        .find(|candidate| candidate.name == family)
        .ok_or_else(|| format!("`{name}`: there is no family `{family}`, only {}", known()))?;
    let parameters = if name.contains(':') { parse(family, place) } else { look_up(family, place) };
    let parameters = parameters.map_err(|problem| format!("`{name}`: {problem}"))?;
    let (kernel, dims, flops) = (family.resolve)(&parameters)
        .ok_or_else(|| format!("`{name}`: the result would have no elements, or too many"))?;
    Ok(Operator { name: name.to_owned(), kernel, dims, flops: flops as f64 })
}

/// The shape of the paper's set with an index, with the optional parameters added.
fn look_up(family: &Family, index: &str) -> Result<Vec<i64>, String> {
    let found = index.parse::<usize>().ok().and_then(|index| family.shapes.get(index));
    let shape = found.ok_or_else(|| format!("`{}` has no shape {index}", family.name))?;
    complete(family, shape.to_vec())
}

fn parse(family: &Family, text: &str) -> Result<Vec<i64>, String> {
    let numbers: Option<Vec<i64>> = text.split('x').map(|number| number.parse().ok()).collect();
    complete(family, numbers.ok_or_else(|| format!("`{text}` is not numbers with `x` between them"))?)
}

fn complete(family: &Family, mut shape: Vec<i64>) -> Result<Vec<i64>, String> {
    let most = family.parameters.len();
    if !(most - family.optional..=most).contains(&shape.len()) {
        let parameters = family.parameters.join("x");
        return Err(format!("{} numbers given, expected {parameters}", shape.len()));
    }
    shape.resize(most, 1);
    let least = |name: &&str| i64::from(**name != *"pad");
    match family.parameters.iter().zip(&shape).find(|(name, value)| **value < least(name)) {
        Some((name, value)) => Err(format!("{name} is {value}")),
        None => Ok(shape),
    }
}

/// The extent of a convolution's result.
fn output(input: i64, kernel: i64, stride: i64, pad: i64, dilation: i64) -> Option<i64> {
    let reach = dilation.checked_mul(kernel - 1)?.checked_add(1)?;
    let room = pad.checked_mul(2)?.checked_add(input)?.checked_sub(reach)?;
    (room >= 0).then(|| room / stride + 1)
}

fn product(factors: &[i64]) -> Option<i64> {
    factors.iter().try_fold(1i64, |product, &factor| product.checked_mul(factor))
}

fn convolution1d(p: &[i64]) -> Option<Resolved> {
    let &[n, l, ci, co, k, stride, pad] = p else { return None };
    let flops = product(&[2, n, output(l, k, stride, pad, 1)?, co, k, ci])?;
    let dims = vec![("N", n), ("L", l), ("CI", ci), ("CO", co), ("K", k), ("stride", stride), ("pad", pad)];
    Some((kernels::conv1d::kernel, dims, flops))
}

fn convolution2d(p: &[i64]) -> Option<Resolved> {
    let &[n, h, w, ci, co, k, stride, pad, dilation, groups] = p else { return None };
    if ci % groups != 0 || co % groups != 0 {
        return None;
    }
    let (oh, ow) = (output(h, k, stride, pad, dilation)?, output(w, k, stride, pad, dilation)?);
    let flops = product(&[2, n, oh, ow, co, k, k, ci / groups])?;
    let mut dims = plane(n, h, w, k);
    dims.extend([("CI", ci), ("CO", co), ("stride", stride), ("pad", pad)]);
    dims.extend([("dilation", dilation), ("groups", groups)]);
    Some((kernels::conv2d::kernel, dims, flops))
}

fn convolution3d(p: &[i64]) -> Option<Resolved> {
    let &[n, d, h, w, ci, co, k, stride, pad] = p else { return None };
    let output = |input| output(input, k, stride, pad, 1);
    let flops = product(&[2, n, output(d)?, output(h)?, output(w)?, co, k, k, k, ci])?;
    let mut dims = plane(n, h, w, k);
    dims.extend([("D", d), ("KD", k), ("CI", ci), ("CO", co), ("stride", stride), ("pad", pad)]);
    Some((kernels::conv3d::kernel, dims, flops))
}

fn depthwise(p: &[i64]) -> Option<Resolved> {
    let &[n, h, w, c, k, stride, pad] = p else { return None };
    let flops = product(&[2, n, output(h, k, stride, pad, 1)?, output(w, k, stride, pad, 1)?, c, k, k])?;
    let mut dims = plane(n, h, w, k);
    dims.extend([("C", c), ("stride", stride), ("pad", pad)]);
    Some((kernels::depthwise_conv2d::kernel, dims, flops))
}

fn transposed(p: &[i64]) -> Option<Resolved> {
    let &[n, h, w, ci, co, k, stride, pad] = p else { return None };
    let output = |input: i64| (input - 1) * stride - 2 * pad + k;
    if output(h) < 1 || output(w) < 1 {
        return None;
    }
    let flops = product(&[2, n, output(h), output(w), co, k, k, ci])? / (stride * stride);
    let mut dims = plane(n, h, w, k);
    dims.extend([("CI", ci), ("CO", co), ("stride", stride), ("pad", pad)]);
    Some((kernels::conv2d_transpose::kernel, dims, flops))
}

fn bias_norm_relu(p: &[i64]) -> Option<Resolved> {
    let &[n, h, w, ci, co, k, stride, pad] = p else { return None };
    let (oh, ow) = (output(h, k, stride, pad, 1)?, output(w, k, stride, pad, 1)?);
    let elements = product(&[n, oh, ow, co])?;
    let flops = product(&[2, elements, k, k, ci])?.checked_add(elements.checked_mul(4)?)?;
    let mut dims = plane(n, h, w, k);
    dims.extend([("CI", ci), ("CO", co), ("stride", stride), ("pad", pad)]);
    Some((kernels::conv2d_bias_norm_relu::kernel, dims, flops))
}

fn plane(n: i64, h: i64, w: i64, k: i64) -> Vec<(&'static str, i64)> {
    vec![("N", n), ("H", h), ("W", w), ("KH", k), ("KW", k)]
}

fn batch_matmul(p: &[i64]) -> Option<Resolved> {
    batch_product(kernels::batch_matmul::kernel, p)
}

fn from_3_products(p: &[i64]) -> Option<Resolved> {
    batch_product(pieces::batch_matmul_3::kernel, p)
}

fn from_6_products(p: &[i64]) -> Option<Resolved> {
    batch_product(pieces::batch_matmul_6::kernel, p)
}

fn from_9_products(p: &[i64]) -> Option<Resolved> {
    batch_product(pieces::batch_matmul_9::kernel, p)
}

fn batch_product(kernel: fn() -> &'static Kernel, p: &[i64]) -> Option<Resolved> {
    let &[b, n, m, k] = p else { return None };
    Some((kernel, vec![("B", b), ("N", n), ("M", m), ("K", k)], product(&[2, b, n, m, k])?))
}

fn attention_scores(p: &[i64]) -> Option<Resolved> {
    let &[b, s, h, d] = p else { return None };
    let dims = vec![("B", b), ("S", s), ("H", h), ("D", d)];
    Some((kernels::transpose_batch_matmul::kernel, dims, product(&[2, b, h, s, s, d])?))
}

fn norm(p: &[i64]) -> Option<Resolved> {
    let &[b, m, n] = p else { return None };
    Some((kernels::norm::kernel, vec![("B", b), ("M", m), ("N", n)], product(&[2, b, m, n])?))
}

fn softmax(p: &[i64]) -> Option<Resolved> {
    let &[m, n] = p else { return None };
    Some((kernels::softmax::kernel, vec![("M", m), ("N", n)], product(&[5, m, n])?))
}

fn unsigned_matmul(p: &[i64]) -> Option<Resolved> {
    matmul(bytes::matmul_u8i8::kernel, p)
}

fn signed_matmul(p: &[i64]) -> Option<Resolved> {
    matmul(bytes::matmul_i8i8::kernel, p)
}

fn positive_matmul(p: &[i64]) -> Option<Resolved> {
    matmul(bytes::matmul_u8u8::kernel, p)
}

fn swapped_matmul(p: &[i64]) -> Option<Resolved> {
    matmul(bytes::matmul_i8u8::kernel, p)
}

fn half_matmul(p: &[i64]) -> Option<Resolved> {
    matmul(halves::matmul_bf16::kernel, p)
}

fn unsigned_weighted(p: &[i64]) -> Option<Resolved> {
    matmul(bytes::weighted_u8i8::kernel, p)
}

fn signed_weighted(p: &[i64]) -> Option<Resolved> {
    matmul(bytes::weighted_i8i8::kernel, p)
}

fn half_weighted(p: &[i64]) -> Option<Resolved> {
    matmul(halves::weighted_bf16::kernel, p)
}

fn rounded_matmul(p: &[i64]) -> Option<Resolved> {
    matmul(halves::matmul_bf16_rounded::kernel, p)
}

fn byte_convolution(p: &[i64]) -> Option<Resolved> {
    convolution_of_bytes(bytes::conv2d_nhwc_u8i8::kernel, p)
}

fn unsigned_weighted_convolution(p: &[i64]) -> Option<Resolved> {
    convolution_of_bytes(quantised::weighted_conv2d_u8i8::kernel, p)
}

fn signed_weighted_convolution(p: &[i64]) -> Option<Resolved> {
    convolution_of_bytes(quantised::weighted_conv2d_i8i8::kernel, p)
}

fn requantised_convolution(p: &[i64]) -> Option<Resolved> {
    convolution_of_bytes(quantised::requantised_conv2d_u8i8::kernel, p)
}

fn convolution_of_bytes(kernel: fn() -> &'static Kernel, p: &[i64]) -> Option<Resolved> {
    let &[n, h, w, ci, co, k, stride, pad] = p else { return None };
    let (oh, ow) = (output(h, k, stride, pad, 1)?, output(w, k, stride, pad, 1)?);
    let mut dims = plane(n, h, w, k);
    dims.extend([("CI", ci), ("CO", co), ("stride", stride), ("pad", pad)]);
    Some((kernel, dims, product(&[2, n, oh, ow, co, k, k, ci])?))
}

fn matmul(kernel: fn() -> &'static Kernel, p: &[i64]) -> Option<Resolved> {
    let &[m, n, k] = p else { return None };
    Some((kernel, vec![("M", m), ("N", n), ("K", k)], product(&[2, m, n, k])?))
}

fn copy(p: &[i64]) -> Option<Resolved> {
    matrix(memory::copy::kernel, p, 1)
}

fn transpose(p: &[i64]) -> Option<Resolved> {
    matrix(memory::transpose::kernel, p, 1)
}

fn add(p: &[i64]) -> Option<Resolved> {
    matrix(memory::add::kernel, p, 1)
}

fn bias_gelu(p: &[i64]) -> Option<Resolved> {
    matrix(memory::bias_gelu::kernel, p, 6)
}

fn layer_norm(p: &[i64]) -> Option<Resolved> {
    matrix(memory::layer_norm::kernel, p, 8)
}

fn recurrent(p: &[i64]) -> Option<Resolved> {
    let &[b, t, i, h] = p else { return None };
    let flops = product(&[2, b, t, h, i.checked_add(h)?])?;
    Some((recurrences::recurrent::kernel, vec![("B", b), ("T", t), ("I", i), ("H", h)], flops))
}

fn dot(p: &[i64]) -> Option<Resolved> {
    let &[n] = p else { return None };
    Some((memory::dot::kernel, vec![("N", n)], product(&[2, n])?))
}

fn whole_attention(p: &[i64]) -> Option<Resolved> {
    let &[h, s, t, d] = p else { return None };
    let dims = vec![("H", h), ("S", s), ("T", t), ("D", d)];
    Some((attention::attention::kernel, dims, product(&[4, h, s, t, d])?))
}

/// A kernel on a matrix, with a number of operations for each element.
fn matrix(kernel: fn() -> &'static Kernel, p: &[i64], operations: i64) -> Option<Resolved> {
    let &[m, n] = p else { return None };
    Some((kernel, vec![("M", m), ("N", n)], product(&[operations, m, n])?))
}
