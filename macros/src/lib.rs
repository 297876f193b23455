#![forbid(unsafe_code)]
//! The attributes of Tilewright, and the macro that ships records.
//!
//! - `#[tensor_kernel]` turns a tensor computation, written as plain Rust, into a kernel that can be tuned.
//! - `#[tensor_fn]` makes a function of scalars that kernels can call.
//! - `#[tensor_graph]` makes a function that calls kernels a graph, too.
//! - `#[schedule_rule]` registers a function that proposes schedules.
//! - `ship!` embeds tuning records.
//!
//! All are straight pipelines (parse, check, emit) without knowledge of the representation: they emit paths
//! into `::tilewright::__private` only. Use them through the crate `tilewright`, which documents them.

mod diagnostics;
mod graph;
mod kernel;
mod rule;
mod ship;

use proc_macro::TokenStream;

/// Makes a kernel of a function in which a tensor computation is written as plain Rust.
///
/// # The signature
/// | argument | is |
/// |---|---|
/// | `a: &Tensor<f32, M, K>` | a tensor that is read |
/// | `#[constant] w: &Tensor<f32, K, N>` | a tensor that is read, and whose contents stay the same between calls with the same tensor, such as a weight |
/// | `x: &mut Tensor<f32, M>` | a tensor that is updated in place |
/// | `stride: usize` | a parameter that is known when the kernel is compiled; it may be a dimension |
/// | `alpha: f32` | a scalar of the call |
///
/// Elements are floats (f16, bf16, f32, f64), integers of 8 to 64 bits or bool. A dimension is a name (every tensor that has it
/// agrees on it), a number, a constant of the surrounding module (`WIDTH`, where no argument has a dimension of that name, or by its
/// path, `self::N`), or a computed `{ H - KH + 1 }`. Where a dimension of an argument has the name of a constant in scope, each
/// call checks that it has the constant's value. The function returns a tensor, a tuple of tensors,
/// or nothing when it updates an argument in place.
///
/// A tensor without dimensions, `Tensor<f32>`, holds one number: `total[[]]`.
///
/// On an `impl`, the attribute makes kernels of the functions inside that have it, too; `NAME::reference` is `NAME_reference` then, and
/// so are `NAME_into` and `NAME_kernel`.
///
/// Element types can be parameters: `fn add<T: Element>(a: &Tensor<T, N>, …)`, bound by `Element`, `Number`, `Bits`, `Integer` or
/// `Float`. `NAME::kernel::<f32>()` is then the kernel for a type, and `NAME::reference` and `NAME::call_into` are generic as the call is.
///
/// `#[constant]` is a hint, not a promise. A value computed from constant tensors alone may be computed once and kept:
/// a weight in another order, an integer weight as floats. It is kept for a `Tensor` (not for views of other memory)
/// until the tensor is dropped or borrowed mutably; then it is computed anew.
///
/// # The body
/// - tensors: `let mut c = Tensor::zeros();`, `Tensor::full(value)`; one that is not returned has a type:
///   `let mut t: Tensor<f32, M, 8> = Tensor::zeros();`
/// - loops: `for i in a..b`, `a..=b`, `(a..b).step_by(n)`, bounded by dimensions, `usize` arguments and outer loops
/// - stores: `c[[i, j]] = v`, `+=`, `*=` and their like, `c[[i]] = c[[i]].max(v)`, also at indices that are data:
///   `sums[[class[[i]] as usize]] += x[[i]]`
/// - scalars: `let x = …;`, and `let mut sum = 0.0;` with `sum += …;` in a loop
/// - `if`/`else` as a statement and as a value, blocks with `let`s as values
/// - arithmetic, comparisons, logic, `as`, and the methods `exp ln sqrt rsqrt tanh erf sigmoid sin cos abs floor
///   ceil round round_ties_even trunc max min mul_add powi`
/// - elements at indices that are data: `table[[ids[[i]] as usize, j]]`
/// - calls of functions with `#[tensor_fn]`
/// - constants of the surrounding module, and `f32::NEG_INFINITY` and its like
///
/// # Accuracy
/// Products and sums of `f32` are exact up to the rounding of `f32`. `#[tensor_kernel(accuracy = 1e-5)]` lets each product of a
/// sum of products be off by that share of itself besides: `|error| ≤ 1e-5·Σ|a·b|`, and what adding up costs. Machines that
/// multiply `bf16` much faster than `f32` can then form products from `bf16` pieces; which way of computing is faster,
/// tuning finds out. How many products of pieces one product needs follows from the number:
///
/// | accuracy | products |
/// |---|---|
/// | from `2^-7`, `0.0078125` | 1 |
/// | from `2^-15`, `3.06e-5` | 3 |
/// | from `2^-24`, `5.97e-8`, which is what rounding costs a product of `f32` | 6 |
/// | less, also 0 | 9, which are exact |
///
/// With an accuracy, whatever its number, an infinite operand gives a NaN, operands above `3.39e38` count as infinite, and numbers
/// below `1.2e-38` may be taken for zero. `tilewright::core::accuracy` has the promise in full.
///
/// # Padding
/// A product of a float with a zero that stands for an element outside of a tensor, as `padded[[i + k]] * w[[k]]` with `padded` filled by
/// `if inside { x[[…]] } else { 0.0 }`, may be left out of a sum: it is zero unless `w` is infinite or a NaN. With
/// `#[tensor_kernel(multiply_padding)]` it is always formed, and such a weight gives a NaN wherever it meets padding.
///
/// # What is generated
/// - `NAME(a, b, …) -> Result<Tensor<…>, Error>`: the call, checked and tuned
/// - `NAME::reference(…)`: the definition as ordinary Rust, with the same signature
/// - `NAME::call_into(…, &mut c)`: the call with results that the caller owns
/// - `NAME::on(&device, …)` and `NAME::on_into(&device, …, &mut c)`: the same on a device, with tensors in its memory
/// - `NAME::kernel()`: the kernel itself, for tuning it
///
/// # Meaning
/// Integers wrap, and dividing one by zero gives zero. `usize` values are never negative: the reference reports a
/// subtraction or a cast that would make one. The order in which a reduction's terms are added is not fixed. Loops whose iterations
/// use what earlier ones have stored are executed in order, and so are stores whose elements may repeat.
#[proc_macro_attribute]
pub fn tensor_kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(attribute.into(), item.into()).into()
}

/// Makes a function of scalars that kernels can call.
///
/// `#[tensor_fn] pub fn silu(x: f32) -> f32 { x / (1.0 + (-x).exp()) }` is an ordinary function with the arithmetic of kernels
/// (integers wrap, transcendental functions are those of the kernel language), and kernels call it by its name or
/// path, also from other modules and crates: `y[[i]] = silu(x[[i]]);`. It takes any number of element types and gives one.
/// The body is made of `let`s, `if … { … } else { … }`, arithmetic, methods, constants of the module and calls of other
/// `#[tensor_fn]`s, and ends with its value. It cannot call itself.
#[proc_macro_attribute]
pub fn tensor_fn(attribute: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand_function(attribute.into(), item.into()).into()
}

/// Makes a graph of a function that calls kernels.
///
/// The function is ordinary Rust: loops over layers, conditions, structures that hold weights. Its arguments are tensors,
/// `&Tensor<f32, N, K>` with the dimensions of kernels, and anything else. Kernels and other graphs are called by their names or
/// paths, and their results are tensors; no `?` is written. `x.reshape([a, b])` gives the same elements another shape.
///
/// ```ignore
/// #[tensor_graph]
/// fn encode(model: &Model, ids: &Tensor<i32, B, S>) -> Tensor<f32, B, H> {
///     let mut x = embed(ids, &model.words).reshape([B * S, model.width]);
///     for layer in &model.layers {
///         x = run_layer(layer, &x);
///     }
///     mean(&x.reshape([B, S, model.width]))
/// }
/// ```
///
/// # What is generated
/// - `NAME(…) -> Result<Tensor<…>, Error>`: the function, with tuned kernels
/// - `NAME::reference(…)`: the function, with the references of all kernels
/// - `NAME::graph(…) -> Result<KernelGraph, Error>`: the function as data, from the arguments that are no tensors. A session of
///   `tilewright-session` runs it: `Model::from_kernels`.
///
/// # Shapes
/// Element types and ranks are checked when the program is compiled, and so are extents that are numbers, where an argument goes
/// straight into a call. Other extents are checked by each call, and while a graph is recorded
/// for all sizes at once: numbers that differ are an error then, and extents that cannot be shown to be equal are one when a session
/// loads the graph. Dimensions of the arguments can be used as numbers; while a graph is recorded they are names, which can be computed
/// with and passed on, and not compared.
///
/// # Limits
/// A call is a name in lower case with arguments in parentheses, perhaps behind a path. Other functions are called as methods, or before
/// the graph. Kernels that update a tensor in place, closures that call kernels, methods with `self` and parameters of types are
/// refused.
#[proc_macro_attribute]
pub fn tensor_graph(attribute: TokenStream, item: TokenStream) -> TokenStream {
    graph::expand(attribute.into(), item.into()).into()
}

/// Registers a function as a schedule rule.
///
/// The function is `fn rule(s: &mut Schedule, block: BlockRv) -> RuleResult` and stays as it is. Linking it is enough
/// to have it applied; `rule::ENTRY` names it explicitly, for a set of rules that is put together by hand. The options
/// are
///
/// | option | is |
/// |---|---|
/// | `target = "cpu"` | the kind of target that the rule is for: `"cpu"`, `"gpu"`, or `"any"` for every kind; required |
/// | `after = "name"` | it runs after this rule; `["one", "two"]` for several |
/// | `before = "name"` | it runs before this rule, or these |
/// | `replace = "name"` | it stands in the place of this rule |
/// | `name = "name"` | its own name, when it is not the function's |
#[proc_macro_attribute]
pub fn schedule_rule(attribute: TokenStream, item: TokenStream) -> TokenStream {
    rule::expand(attribute.into(), item.into()).into()
}

/// Embeds tuning records, so that calls find them without any file at run time.
///
/// The argument is a directory of files whose names end in `.jsonl`, or one such file, relative to the package's
/// directory: `tilewright::ship!("tuned/");` stands once in the application, as an item. Of the records of one kernel, shape and
/// machine, the one that calls use is embedded, compressed to some hundred bytes; the other trials stay out of the program. A line
/// that is no record is a compile error that names file and line. To ship before anything is tuned, put an empty file `.gitkeep` into the
/// directory.
#[proc_macro]
pub fn ship(input: TokenStream) -> TokenStream {
    ship::expand(input.into()).into()
}
