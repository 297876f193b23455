//! The tensor intrinsics of GPUs, as data: products of small matrices by the tensor cores, which the threads of a warp start
//! together on operands in fragments.
//!
//! The fragments are those of section "Matrix multiply-accumulate operation using `mma` instruction" of the PTX ISA, 8.0.

use std::sync::LazyLock;

use tilewright_core::accuracy::{Accuracy, ROUNDED_FACTORS};
use tilewright_core::dtype::DType;
use tilewright_core::intrinsic::{FragmentLayout, IntrinsicSet, TensorIntrinsic};
use tilewright_core::program::Program;
use tilewright_core::schedule::Schedule;
use tilewright_core::stmt::Symbol;
use tilewright_core::target::{GpuTarget, Target};

use crate::ptx::types::Type;

/// A product of matrices of 16 × `depth` and `depth` × 8 elements, which is added to one of 16 × 8.
pub(crate) struct Product {
    name: &'static str,
    factors: [DType; 2],
    sum: DType,
    depth: i64,
    /// The type of the first factor, by which the instruction is found in the table.
    pub(crate) ty: Type,
    /// The type of the second factor, where it is another one.
    pub(crate) second: Option<Type>,
}

const fn product_of(name: &'static str, factor: DType, sum: DType, depth: i64, ty: Type) -> Product {
    Product { name, factors: [factor, factor], sum, depth, ty, second: None }
}

const PRODUCTS: [Product; 7] = [
    product_of("mma_m16n8k16_bf16", DType::BF16, DType::F32, 16, Type::Bf16),
    product_of("mma_m16n8k16_f16", DType::F16, DType::F32, 16, Type::F16),
    product_of("mma_m16n8k8_tf32", DType::F32, DType::F32, 8, Type::Tf32),
    product_of("mma_m16n8k32_s8", DType::I8, DType::I32, 32, Type::S8),
    product_of("mma_m16n8k32_u8", DType::U8, DType::I32, 32, Type::U8),
    Product {
        name: "mma_m16n8k32_u8_s8",
        factors: [DType::U8, DType::I8],
        second: Some(Type::S8),
        ..product_of("", DType::U8, DType::I32, 32, Type::U8)
    },
    Product {
        name: "mma_m16n8k32_s8_u8",
        factors: [DType::I8, DType::U8],
        second: Some(Type::U8),
        ..product_of("", DType::I8, DType::I32, 32, Type::S8)
    },
];

/// The suffix of the products whose second operand has its columns as rows.
const TRANSPOSED: &str = "_nt";

static KNOWN: LazyLock<IntrinsicSet> = LazyLock::new(|| {
    let described = PRODUCTS.iter().flat_map(|product| [product.described(false), product.described(true)]);
    IntrinsicSet::new(described).expect("distinct names")
});

/// The descriptions of all instructions that some GPU has. Products whose names end in `_nt` take the second operand with its
/// columns as rows. Products of `tf32` round their factors, as [`round_products`](Schedule::round_products) does.
pub fn known() -> &'static IntrinsicSet {
    &KNOWN
}

/// A target whose schedules may name all intrinsics, which the emitter writes as instructions.
pub fn with_intrinsics(target: GpuTarget) -> GpuTarget {
    let intrinsics: Vec<Symbol> = known().iter().map(|intrinsic| intrinsic.name().clone()).collect();
    GpuTarget { intrinsics, descriptions: known().clone(), ..target }
}

/// The product of a name.
pub(crate) fn product(name: &str) -> Option<&'static Product> {
    let name = name.strip_suffix(TRANSPOSED).unwrap_or(name);
    PRODUCTS.iter().find(|product| product.name == name)
}

impl Product {
    /// Whether factors are rounded when they are multiplied.
    pub(crate) fn rounds_factors(&self) -> bool {
        self.factors[0] == DType::F32
    }

    fn described(&self, is_transposed: bool) -> TensorIntrinsic {
        let Product { name, factors: [left, right], sum, depth, .. } = self;
        let suffix = if is_transposed { TRANSPOSED } else { "" };
        let (rows, second) = if is_transposed { (8, "vj, vk") } else { (*depth, "vk, vj") };
        let factor_as_sum = if self.rounds_factors() { String::new() } else { format!(" as {sum}") };
        let text = format!(
            "kernel {name}{suffix}(A, B, C, in a: {left}[16, A], in b: {right}[{rows}, B], inout c: {sum}[16, C]) {{
               for i in 0..16 {{ for j in 0..8 {{ for k in 0..{depth} {{
                 block c(vi: spatial 16 = i, vj: spatial 8 = j, vk: reduce {depth} = k) {{
                   c[vi, vj] = c[vi, vj] + a[vi, vk]{factor_as_sum} * b[{second}]{factor_as_sum}
                 }}
               }} }} }}
             }}"
        );
        let program = text.parse().expect("a program");
        let program = if self.rounds_factors() { rounded(program) } else { program };
        let described = TensorIntrinsic::new(program).expect("well described");
        described.of_warp(self.layouts(is_transposed)).expect("layouts of these sizes")
    }

    /// The layouts of the two factors and of the sum. A register holds neighbours along the depth.
    fn layouts(&self, is_transposed: bool) -> Vec<FragmentLayout> {
        let [first, second] = match self.factors[0].bits() {
            32 => ["lane c0 c1 r0 r1 r2 slot r3 c2", "lane r0 r1 c0 c1 c2 slot r2"],
            8 => ["lane c2 c3 r0 r1 r2 slot c0 c1 r3 c4", "lane r2 r3 c0 c1 c2 slot r0 r1 r4"],
            _ => ["lane c1 c2 r0 r1 r2 slot c0 r3 c3", "lane r1 r2 c0 c1 c2 slot r0 r3"],
        };
        let exchanged = |text: &str| {
            let exchange = |word: &str| match word.split_at(1) {
                ("r", number) => format!("c{number}"),
                ("c", number) => format!("r{number}"),
                _ => word.to_owned(),
            };
            text.split(' ').map(exchange).collect::<Vec<_>>().join(" ")
        };
        let second = if is_transposed { exchanged(second) } else { second.to_owned() };
        let sum = "lane c1 c2 r0 r1 r2 slot c0 r3".to_owned();
        [first.to_owned(), second, sum].iter().map(|text| text.parse().expect("a layout")).collect()
    }
}

/// A product of `f32` with its factors rounded.
fn rounded(mut program: Program) -> Program {
    program.accuracy = Accuracy::new(ROUNDED_FACTORS);
    let mut schedule = Schedule::new(program, Target::generic_cpu(), 0);
    let block = schedule.get_block("c").expect("the block is there");
    schedule.round_products(block).expect("a sum of products");
    schedule.program().clone()
}
