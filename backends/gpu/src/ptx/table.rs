//! The instruction table: a row for each form of an instruction that the emitter uses.
//!
//! The emitter finds the row of an operation by its type, the printer writes the row's text, the [verifier](super::verify) checks
//! operands by the row's pattern, and a test has NVIDIA's assembler accept an instruction of each form.
//!
//! In a text, `{t}` is the type and `{s}` the type of the source. A pattern lists destinations, `=`, and sources: `t` and `s`
//! are values of these types, `p` is a predicate, `f` is an `f32`, `r` and `l` are integers of 32 and 64 bits, `h` has 16 bits, `x` is an
//! operand in special registers or the address of reserved memory, `m` a place in memory, `q` a parameter, `@` a label, `i` a number that
//! the instruction holds. `1`, `2` and `4` before `t` stand for as many values in braces.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::types::Type;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    /// The product of two 32-bit integers, in 64 bits.
    MulWide,
    /// The product of two 32-bit integers and the sum with a 64-bit one.
    MadWide,
    /// `a * b + c` of integers.
    Mad,
    /// `a * b + c`, rounded once.
    Fma,
    Div,
    Rem,
    Min,
    Max,
    /// NaN where an operand is NaN.
    Minimum,
    /// NaN where an operand is NaN.
    Maximum,
    Neg,
    Abs,
    Sqrt,
    /// The first operand's sign with the second one's magnitude.
    CopySign,
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    /// Some bits of an integer: the first one and their number follow.
    ExtractBits,
    /// An integer with some of its bits replaced: the new bits, the integer, the first one and their number.
    InsertBits,
    Equal,
    /// Not equal; true where an operand is NaN.
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Whether an operand is NaN.
    IsNan,
    /// The first operand where the predicate holds, otherwise the second.
    Select,
    Move,
    /// Reads a special register or an address.
    MoveSpecial,
    /// Two halves as one 32-bit word.
    Pack,
    /// The two halves of a 32-bit word.
    Unpack,
    /// Brings a 32-bit integer to the values of a narrower type.
    Wrap,
    /// A conversion that is exact or wraps.
    Convert,
    /// A conversion to a float, rounded to the nearest.
    ConvertRounded,
    /// To the nearest float with eleven binary digits, which products of matrices take; ties away from zero.
    RoundFactor,
    /// To an integer of the type or of a float, towards zero.
    Truncate,
    /// To the nearest integer, ties to even.
    RoundTiesEven,
    /// To the largest integer not above.
    Floor,
    /// To the smallest integer not below.
    Ceil,
    /// An address that is known to be global.
    ToGlobal,
    LoadParameter,
    /// Reads 1, 2 or 4 values beside each other.
    Load(Space, u8),
    /// Writes 1, 2 or 4 values beside each other.
    Store(Space, u8),
    /// Combines an element of memory with a value in one step.
    Update(Space, Combination),
    /// Replaces an integer in global memory where it equals the first operand; gives the old one.
    CompareAndSwap,
    /// Loads matrices of eight rows of 16 bytes from shared memory into fragments.
    LoadMatrices {
        /// 1, 2 or 4 matrices.
        count: u8,
        /// Whether elements of two bytes are exchanged across the diagonal.
        is_transposed: bool,
    },
    /// The product of two matrices in fragments, added to a third one.
    Product,
    /// Begins to copy the given number of bytes from global to shared memory.
    CopyAsync(u8),
    /// Begins to fill the given number of bytes of shared memory: the last operand is the number of bytes that are copied, and zeros follow them.
    CopyAsyncPart(u8),
    /// Makes a group of the thread's copies.
    CommitCopies,
    /// Waits until at most the given number of groups of copies are under way.
    WaitForCopies,
    /// All threads of the block wait for each other.
    Barrier,
    /// The value of the lane whose number differs in some bits. The last lane of a group and the lanes that take part follow.
    Shuffle,
    Branch,
    Return,
}

/// Where memory is, and how it is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Global,
    /// Global memory that nothing writes while the kernel runs.
    Constant,
    /// Global memory, past the caches.
    Streamed,
    Shared,
    Local,
}

/// How an update in one step combines an element with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Combination {
    Add,
    Min,
    Max,
}

/// A form of an instruction: one operation with its types.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) op: Op,
    /// As in PTX, with places for the types.
    pub(crate) text: &'static str,
    /// The types that it has; none for instructions without types.
    pub(crate) types: &'static [Type],
    /// The types of the source, for conversions.
    pub(crate) sources: &'static [Type],
    pub(crate) operands: &'static str,
}

const fn row(op: Op, text: &'static str, types: &'static [Type], operands: &'static str) -> Row {
    Row { op, text, types, sources: &[], operands }
}

const fn conversion(op: Op, text: &'static str, types: &'static [Type], sources: &'static [Type]) -> Row {
    Row { op, text, types, sources, operands: "t=s" }
}

/// A product of bytes whose second factors have the type of the source.
const fn bytes(types: &'static [Type], sources: &'static [Type]) -> Row {
    let text = "mma.sync.aligned.m16n8k32.row.col.s32.{t}.{s}.s32";
    Row { op: Op::Product, text, types, sources, operands: "4r=4r2r4r" }
}

const fn update(space: Space, how: Combination, text: &'static str, types: &'static [Type]) -> Row {
    row(Op::Update(space, how), text, types, "=mt")
}

const fn matrices(count: u8, is_transposed: bool) -> Op {
    Op::LoadMatrices { count, is_transposed }
}

use Type::{B16, B32, B64, Bf16, F16, F32, F64, Pred, S8, S16, S32, S64, Tf32, U8, U16, U32, U64};

const INTEGERS: &[Type] = &[S32, U32, S64, U64];
const FLOATS: &[Type] = &[F32, F64];
/// Types of sums in one step, which do not tell signed integers from others.
const SUMMANDS: &[Type] = &[U32, U64, F32, F64];
const ANY: &[Type] = &[B32, B64, F32, F64];
/// Elements in memory that a 32-bit register holds, extended.
const NARROW: &[Type] = &[U8, S8, U16, S16];
/// Elements in memory that fill a register.
const WHOLE: &[Type] = &[B16, B32, B64, F32, F64];
/// Elements of which two are accessed at once, and of which four are.
const PAIRS: &[Type] = &[B32, B64, F32, F64];
const QUADS: &[Type] = &[B32, F32];

/// An operation, the type of its values, and that of their source.
type Form = (Op, Option<Type>, Option<Type>);

/// The row of each form, the first one where several have it: an emitter asks for a row with each instruction.
static FORMS: LazyLock<FxHashMap<Form, &'static Row>> = LazyLock::new(|| {
    let mut forms = FxHashMap::default();
    for row in TABLE {
        for ty in Row::each(row.types) {
            for source in Row::each(row.sources) {
                forms.entry((row.op, ty, source)).or_insert(row);
            }
        }
    }
    forms
});

/// All forms.
pub(crate) static TABLE: &[Row] = &[
    row(Op::Add, "add.{t}", INTEGERS, "t=tt"),
    row(Op::Add, "add.rn.{t}", FLOATS, "t=tt"),
    row(Op::Sub, "sub.{t}", INTEGERS, "t=tt"),
    row(Op::Sub, "sub.rn.{t}", FLOATS, "t=tt"),
    row(Op::Mul, "mul.lo.{t}", INTEGERS, "t=tt"),
    row(Op::Mul, "mul.rn.{t}", FLOATS, "t=tt"),
    row(Op::MulWide, "mul.wide.{t}", &[S32, U32], "l=tt"),
    row(Op::MadWide, "mad.wide.{t}", &[S32, U32], "l=ttl"),
    row(Op::Mad, "mad.lo.{t}", INTEGERS, "t=ttt"),
    row(Op::Fma, "fma.rn.{t}", FLOATS, "t=ttt"),
    row(Op::Div, "div.{t}", INTEGERS, "t=tt"),
    row(Op::Div, "div.rn.{t}", FLOATS, "t=tt"),
    row(Op::Rem, "rem.{t}", INTEGERS, "t=tt"),
    row(Op::Min, "min.{t}", INTEGERS, "t=tt"),
    row(Op::Max, "max.{t}", INTEGERS, "t=tt"),
    row(Op::Min, "min.{t}", &[F64], "t=tt"),
    row(Op::Max, "max.{t}", &[F64], "t=tt"),
    row(Op::Minimum, "min.NaN.{t}", &[F32], "t=tt"),
    row(Op::Maximum, "max.NaN.{t}", &[F32], "t=tt"),
    row(Op::Neg, "neg.{t}", &[S32, S64, F32, F64], "t=t"),
    row(Op::Abs, "abs.{t}", &[S32, S64, F32, F64], "t=t"),
    row(Op::Sqrt, "sqrt.rn.{t}", FLOATS, "t=t"),
    row(Op::CopySign, "copysign.{t}", FLOATS, "t=tt"),
    row(Op::And, "and.{t}", &[Pred, B32, B64], "t=tt"),
    row(Op::Or, "or.{t}", &[Pred, B32, B64], "t=tt"),
    row(Op::Xor, "xor.{t}", &[Pred, B32, B64], "t=tt"),
    row(Op::Not, "not.{t}", &[Pred, B32, B64], "t=t"),
    row(Op::ShiftLeft, "shl.{t}", &[B32, B64], "t=tr"),
    row(Op::ShiftRight, "shr.{t}", INTEGERS, "t=tr"),
    row(Op::ExtractBits, "bfe.{t}", &[S32, U32], "t=trr"),
    row(Op::InsertBits, "bfi.{t}", &[B32], "t=ttrr"),
    row(Op::Equal, "setp.eq.{t}", &[S32, U32, S64, U64, F32, F64], "p=tt"),
    row(Op::NotEqual, "setp.ne.{t}", INTEGERS, "p=tt"),
    row(Op::NotEqual, "setp.neu.{t}", FLOATS, "p=tt"),
    row(Op::Less, "setp.lt.{t}", &[S32, U32, S64, U64, F32, F64], "p=tt"),
    row(Op::LessEqual, "setp.le.{t}", &[S32, U32, S64, U64, F32, F64], "p=tt"),
    row(Op::Greater, "setp.gt.{t}", &[S32, U32, S64, U64, F32, F64], "p=tt"),
    row(Op::GreaterEqual, "setp.ge.{t}", &[S32, U32, S64, U64, F32, F64], "p=tt"),
    row(Op::IsNan, "setp.nan.{t}", FLOATS, "p=tt"),
    row(Op::Select, "selp.{t}", ANY, "t=ttp"),
    row(Op::Move, "mov.{t}", &[Pred, B16, B32, B64, F32, F64], "t=t"),
    row(Op::MoveSpecial, "mov.{t}", &[U32, U64], "t=x"),
    // Between registers of different classes and the same size.
    conversion(Op::Move, "mov.b32", &[B32, F32], &[F32, B32]),
    conversion(Op::Move, "mov.b64", &[B64, F64], &[F64, B64]),
    row(Op::Pack, "mov.{t}", &[B32], "t=2h"),
    row(Op::Unpack, "mov.{t}", &[B32], "2h=t"),
    conversion(Op::Convert, "cvt.{t}.{s}", &[S64], &[S32]),
    conversion(Op::Convert, "cvt.{t}.{s}", &[U64], &[U32]),
    conversion(Op::Convert, "cvt.{t}.{s}", &[U32], &[U64]),
    row(Op::Wrap, "cvt.s32.{t}", &[S8, S16], "r=r"),
    row(Op::Wrap, "cvt.u32.{t}", &[U8, U16], "r=r"),
    conversion(Op::Convert, "cvt.{t}.{s}", &[U32], &[U16]),
    conversion(Op::Convert, "cvt.{t}.{s}", &[U16], &[U32]),
    conversion(Op::Convert, "cvt.{t}.{s}", &[F32], &[F16]),
    conversion(Op::Convert, "cvt.{t}.{s}", &[F64], &[F32]),
    conversion(Op::ConvertRounded, "cvt.rn.{t}.{s}", &[F16, Bf16], &[F32]),
    conversion(Op::ConvertRounded, "cvt.rn.{t}.{s}", &[F32], &[F64]),
    conversion(Op::ConvertRounded, "cvt.rn.{t}.{s}", &[F32, F64], INTEGERS),
    row(Op::RoundFactor, "cvt.rna.{t}.f32", &[Tf32], "r=f"),
    conversion(Op::Truncate, "cvt.rzi.{t}.{s}", INTEGERS, FLOATS),
    row(Op::Truncate, "cvt.rzi.{t}.{t}", FLOATS, "t=t"),
    row(Op::RoundTiesEven, "cvt.rni.{t}.{t}", FLOATS, "t=t"),
    row(Op::Floor, "cvt.rmi.{t}.{t}", FLOATS, "t=t"),
    row(Op::Ceil, "cvt.rpi.{t}.{t}", FLOATS, "t=t"),
    row(Op::ToGlobal, "cvta.to.global.{t}", &[U64], "t=t"),
    row(Op::LoadParameter, "ld.param.{t}", NARROW, "r=q"),
    row(Op::LoadParameter, "ld.param.{t}", WHOLE, "t=q"),
    row(Op::Load(Space::Global, 1), "ld.global.{t}", NARROW, "r=m"),
    row(Op::Load(Space::Global, 1), "ld.global.{t}", WHOLE, "t=m"),
    row(Op::Load(Space::Global, 2), "ld.global.v2.{t}", PAIRS, "2t=m"),
    row(Op::Load(Space::Global, 4), "ld.global.v4.{t}", QUADS, "4t=m"),
    row(Op::Store(Space::Global, 1), "st.global.{t}", NARROW, "=mr"),
    row(Op::Store(Space::Global, 1), "st.global.{t}", WHOLE, "=mt"),
    row(Op::Store(Space::Global, 2), "st.global.v2.{t}", PAIRS, "=m2t"),
    row(Op::Store(Space::Global, 4), "st.global.v4.{t}", QUADS, "=m4t"),
    row(Op::Load(Space::Constant, 1), "ld.global.nc.{t}", NARROW, "r=m"),
    row(Op::Load(Space::Constant, 1), "ld.global.nc.{t}", WHOLE, "t=m"),
    row(Op::Load(Space::Constant, 2), "ld.global.nc.v2.{t}", PAIRS, "2t=m"),
    row(Op::Load(Space::Constant, 4), "ld.global.nc.v4.{t}", QUADS, "4t=m"),
    row(Op::Store(Space::Streamed, 1), "st.global.cs.{t}", NARROW, "=mr"),
    row(Op::Store(Space::Streamed, 1), "st.global.cs.{t}", WHOLE, "=mt"),
    row(Op::Store(Space::Streamed, 2), "st.global.cs.v2.{t}", PAIRS, "=m2t"),
    row(Op::Store(Space::Streamed, 4), "st.global.cs.v4.{t}", QUADS, "=m4t"),
    row(Op::Load(Space::Shared, 1), "ld.shared.{t}", NARROW, "r=m"),
    row(Op::Load(Space::Shared, 1), "ld.shared.{t}", WHOLE, "t=m"),
    row(Op::Load(Space::Shared, 2), "ld.shared.v2.{t}", PAIRS, "2t=m"),
    row(Op::Load(Space::Shared, 4), "ld.shared.v4.{t}", QUADS, "4t=m"),
    row(Op::Store(Space::Shared, 1), "st.shared.{t}", NARROW, "=mr"),
    row(Op::Store(Space::Shared, 1), "st.shared.{t}", WHOLE, "=mt"),
    row(Op::Store(Space::Shared, 2), "st.shared.v2.{t}", PAIRS, "=m2t"),
    row(Op::Store(Space::Shared, 4), "st.shared.v4.{t}", QUADS, "=m4t"),
    row(Op::Load(Space::Local, 1), "ld.local.{t}", NARROW, "r=m"),
    row(Op::Load(Space::Local, 1), "ld.local.{t}", WHOLE, "t=m"),
    row(Op::Load(Space::Local, 2), "ld.local.v2.{t}", PAIRS, "2t=m"),
    row(Op::Load(Space::Local, 4), "ld.local.v4.{t}", QUADS, "4t=m"),
    row(Op::Store(Space::Local, 1), "st.local.{t}", NARROW, "=mr"),
    row(Op::Store(Space::Local, 1), "st.local.{t}", WHOLE, "=mt"),
    row(Op::Store(Space::Local, 2), "st.local.v2.{t}", PAIRS, "=m2t"),
    row(Op::Store(Space::Local, 4), "st.local.v4.{t}", QUADS, "=m4t"),
    update(Space::Global, Combination::Add, "red.global.add.{t}", SUMMANDS),
    update(Space::Global, Combination::Min, "red.global.min.{t}", INTEGERS),
    update(Space::Global, Combination::Max, "red.global.max.{t}", INTEGERS),
    update(Space::Shared, Combination::Add, "red.shared.add.{t}", SUMMANDS),
    update(Space::Shared, Combination::Min, "red.shared.min.{t}", INTEGERS),
    update(Space::Shared, Combination::Max, "red.shared.max.{t}", INTEGERS),
    row(Op::CompareAndSwap, "atom.global.cas.{t}", &[B32], "t=mtt"),
    row(matrices(1, false), "ldmatrix.sync.aligned.m8n8.x1.shared.b16", &[], "1r=m"),
    row(matrices(2, false), "ldmatrix.sync.aligned.m8n8.x2.shared.b16", &[], "2r=m"),
    row(matrices(4, false), "ldmatrix.sync.aligned.m8n8.x4.shared.b16", &[], "4r=m"),
    row(matrices(1, true), "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", &[], "1r=m"),
    row(matrices(2, true), "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", &[], "2r=m"),
    row(matrices(4, true), "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", &[], "4r=m"),
    row(Op::Product, "mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32", &[Bf16, F16], "4f=4r2r4f"),
    row(Op::Product, "mma.sync.aligned.m16n8k8.row.col.f32.{t}.{t}.f32", &[Tf32], "4f=4r2r4f"),
    row(Op::Product, "mma.sync.aligned.m16n8k32.row.col.s32.{t}.{t}.s32", &[S8, U8], "4r=4r2r4r"),
    bytes(&[U8], &[S8]),
    bytes(&[S8], &[U8]),
    row(Op::CopyAsync(4), "cp.async.ca.shared.global", &[], "=mmi"),
    row(Op::CopyAsync(8), "cp.async.ca.shared.global", &[], "=mmi"),
    row(Op::CopyAsync(16), "cp.async.cg.shared.global", &[], "=mmi"),
    row(Op::CopyAsyncPart(4), "cp.async.ca.shared.global", &[], "=mmir"),
    row(Op::CopyAsyncPart(8), "cp.async.ca.shared.global", &[], "=mmir"),
    row(Op::CopyAsyncPart(16), "cp.async.cg.shared.global", &[], "=mmir"),
    row(Op::CommitCopies, "cp.async.commit_group", &[], "="),
    row(Op::WaitForCopies, "cp.async.wait_group", &[], "=i"),
    row(Op::Barrier, "bar.sync 0", &[], "="),
    row(Op::Shuffle, "shfl.sync.bfly.b32", &[B32, F32], "t=trrr"),
    row(Op::Branch, "bra", &[], "=@"),
    row(Op::Return, "ret", &[], "="),
];

impl Row {
    /// The row of an operation on values of a type, or on none, that come from those of `source`.
    pub(crate) fn find(op: Op, ty: Option<Type>, source: Option<Type>) -> Option<&'static Row> {
        FORMS.get(&(op, ty, source)).copied()
    }

    /// The types in a list; none alone where the list is empty.
    fn each(types: &'static [Type]) -> impl Iterator<Item = Option<Type>> {
        let none = types.is_empty().then_some(None);
        types.iter().copied().map(Some).chain(none)
    }
}
