//! Random programs.
//!
//! Every index is reduced to the size of its buffer, guarded by a condition, or inside by construction, so
//! that each program is valid. Programs are drawn from a seed; a failure prints the program.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tilewright_core::annotation::{PREFETCH, PREFETCH_SIBLINGS};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, UnaryOp};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::{Access, Buffer, Param, Program, Scope, VariableKind};
use tilewright_core::stmt::{Alloc, Annotations, For, If, LoopKind, Stmt};
use tilewright_core::tensor::{AnyTensor, Random};

use crate::support::Call;

/// Elements of every tensor of a random program.
const LEN: i64 = 97;
/// The largest value of the symbolic dimension.
const LARGEST_DIM: u64 = 6;

struct Writer {
    random: Random,
    program: Program,
    dim: VarId,
    inputs: Vec<(BufferId, DType)>,
    outputs: Vec<(BufferId, DType)>,
    /// Loop variables in scope.
    vars: Vec<VarId>,
    /// Intermediates in scope: with constant places only, or anywhere.
    locals: Vec<(BufferId, DType, bool)>,
    lanes: u32,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let mut program = Program::new("random");
        let dim = program.add_variable("N", VariableKind::Dim);
        program.add_param(Param::Dim(dim));
        let mut writer = Writer {
            random: Random::new(seed),
            program,
            dim,
            inputs: Vec::new(),
            outputs: Vec::new(),
            vars: Vec::new(),
            locals: Vec::new(),
            lanes: 1,
        };
        for &dtype in DType::COMPUTED {
            let input = writer.add_buffer(dtype, LEN, Scope::Global, Some(Access::Input));
            writer.inputs.push((input, dtype));
        }
        for _ in 0..2 {
            let dtype = writer.dtype();
            let scope = writer.pick(&[Scope::Global, Scope::Streamed]);
            let output = writer.add_buffer(dtype, LEN, scope, Some(Access::InOut));
            writer.outputs.push((output, dtype));
        }
        writer
    }

    fn add_buffer(&mut self, dtype: DType, len: i64, scope: Scope, access: Option<Access>) -> BufferId {
        let shape = vec![Index::constant(len)];
        let buffer = self.program.add_buffer(Buffer { name: "b".into(), dtype, shape, scope });
        if let Some(access) = access {
            self.program.add_param(Param::Buffer(buffer, access));
        }
        buffer
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    fn dtype(&mut self) -> DType {
        self.pick(DType::COMPUTED)
    }

    /// An index of any value.
    fn wild_index(&mut self, with_lanes: bool) -> Index {
        let mut index = Index::constant(self.below(40) as i64 - 10);
        for var in self.vars.clone().into_iter().chain([self.dim]) {
            let coefficient = self.pick(&[0, 1, 2, 5, 8, -3]);
            index = index.add_scaled(&Index::var(var), coefficient);
        }
        if self.below(4) == 0 && !self.vars.is_empty() {
            let var = self.pick(&self.vars.clone());
            let digit = Index::var(var).offset(3).floor_div(2).modulo(3);
            index = index.add_scaled(&digit, 7);
        }
        if with_lanes && self.lanes > 1 {
            let stride = self.pick(&[1, 1, 1, 2, -1, 9, 0]);
            index = index.add_scaled(&Index::lane(self.lanes), stride);
        }
        index
    }

    /// An index inside a tensor.
    fn index(&mut self, with_lanes: bool) -> Index {
        if self.below(3) > 0 && with_lanes && self.lanes > 1 {
            // Contiguous, as nearly all are.
            let start = self.wild_index(false).modulo(LEN - i64::from(self.lanes));
            return &start + &Index::lane(self.lanes);
        }
        self.wild_index(with_lanes).modulo(LEN)
    }

    fn load(&mut self, dtype: DType) -> Expr {
        let local = self.locals.iter().copied().find(|local| local.1 == dtype);
        if let (Some((buffer, _, constant)), true) = (local, self.below(2) == 0) {
            let index = self.local_index(constant);
            return Expr::load(dtype, buffer, [index]);
        }
        let (outputs, inputs) = (self.outputs.clone(), self.inputs.clone());
        let sources: Vec<BufferId> =
            outputs.into_iter().chain(inputs).filter(|(_, ty)| *ty == dtype).map(|(id, _)| id).collect();
        let source = self.pick(&sources);
        let index = self.index(true);
        if self.below(4) > 0 {
            return Expr::load(dtype, source, [index]);
        }
        let wild = self.wild_index(true);
        let value = Expr::index(wild.clone());
        let above = Expr::binary(BinaryOp::Ge, value.clone(), Expr::int(DType::I64, 0));
        let below = Expr::binary(BinaryOp::Lt, value, Expr::int(DType::I64, LEN));
        let otherwise =
            if self.below(2) == 0 { Expr::zero(dtype) } else { Expr::load(dtype, source, [index]) };
        let inside = Expr::binary(BinaryOp::And, above, below);
        Expr::select(inside, Expr::load(dtype, source, [wild]), otherwise)
    }

    /// A place in an intermediate of 16 elements.
    fn local_index(&mut self, constant: bool) -> Index {
        if constant {
            return match self.lanes {
                lanes @ 2..=16 => Index::lane(lanes),
                _ => Index::constant(self.below(16) as i64),
            };
        }
        self.wild_index(true).modulo(16)
    }

    fn constant(&mut self, dtype: DType) -> Expr {
        match dtype {
            DType::Bool => Expr::bool(self.below(2) == 0),
            DType::U8 => Expr::int(dtype, self.below(256) as i64),
            dtype if dtype.is_int() => Expr::int(dtype, dtype.wrap(self.below(200) as i64 - 100)),
            _ => Expr::float(dtype, self.random.unit() * 50.0),
        }
    }

    fn value(&mut self, dtype: DType, depth: u32) -> Expr {
        if depth == 0 {
            return match self.below(5) {
                0 => self.constant(dtype),
                1 if dtype == DType::I64 => {
                    let index = self.wild_index(true);
                    Expr::index(index)
                }
                _ => self.load(dtype),
            };
        }
        let depth = depth - 1;
        match self.below(10) {
            0 | 1 => self.unary(dtype, depth),
            2 => {
                let condition = self.value(DType::Bool, depth.min(1));
                Expr::select(condition, self.value(dtype, depth), self.value(dtype, depth))
            }
            3 if dtype != DType::Bool => {
                let from = self.dtype();
                Expr::cast(dtype, self.value(from, depth))
            }
            4 if dtype.is_float() => {
                Expr::mul_add(self.value(dtype, depth), self.value(dtype, depth), self.value(dtype, depth))
            }
            _ => self.binary(dtype, depth),
        }
    }

    fn unary(&mut self, dtype: DType, depth: u32) -> Expr {
        use UnaryOp::*;
        let op = match dtype {
            DType::Bool => Not,
            dtype if dtype.is_int() => self.pick(&[Neg, Not, Abs]),
            _ => self.pick(&[Neg, Abs, Sqrt, Floor, Ceil, Round, RoundTiesEven, Trunc]),
        };
        Expr::unary(op, self.value(dtype, depth))
    }

    fn binary(&mut self, dtype: DType, depth: u32) -> Expr {
        use BinaryOp::*;
        if dtype == DType::Bool {
            let op = self.pick(&[Eq, Ne, Lt, Le, Gt, Ge, And, Or, Xor]);
            let operands = if op.is_comparison() { self.dtype() } else { dtype };
            return Expr::binary(op, self.value(operands, depth), self.value(operands, depth));
        }
        let op = match dtype.is_int() {
            true => self.pick(&[Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr]),
            false => self.pick(&[Add, Sub, Mul, Div, Rem, Min, Max]),
        };
        let shared = self.value(dtype, depth);
        let other = if self.below(6) == 0 { shared.clone() } else { self.value(dtype, depth) };
        Expr::binary(op, shared, other)
    }

    fn store(&mut self) -> Stmt {
        self.lanes = self.pick(&[1, 1, 2, 3, 4, 8, 16, 21]);
        let local = self.locals.last().copied().filter(|_| self.lanes <= 16);
        if let (Some((buffer, dtype, constant)), true) = (local, self.below(2) == 0) {
            let index = match constant {
                true => self.local_index(true),
                // Two lanes must not write one element: their order would not be defined.
                false if self.lanes == 1 => self.wild_index(false).modulo(16),
                false => Index::lane(self.lanes),
            };
            return Stmt::store(buffer, [index], self.value(dtype, 2));
        }
        let outputs = self.outputs.clone();
        let (buffer, dtype) = self.pick(&outputs);
        let start = self.wild_index(false).modulo(LEN - 3 * i64::from(self.lanes));
        let stride = self.pick(&[1, 1, 1, 3]);
        let index = start.add_scaled(&Index::lane(self.lanes), if self.lanes > 1 { stride } else { 0 });
        let depth = 1 + self.below(3) as u32;
        Stmt::store(buffer, [index], self.value(dtype, depth))
    }

    fn stmt(&mut self, depth: u32) -> Stmt {
        if depth == 0 {
            return self.store();
        }
        match self.below(6) {
            0 => Stmt::seq((0..2 + self.below(2)).map(|_| self.stmt(depth - 1)).collect::<Vec<_>>()),
            1 | 2 => self.repeat(depth),
            3 => {
                self.lanes = 1;
                let condition = self.value(DType::Bool, 2);
                let then = self.stmt(depth - 1);
                let otherwise = (self.below(2) == 0).then(|| self.stmt(depth - 1));
                Stmt::If(std::sync::Arc::new(If { condition, then, otherwise }))
            }
            4 => self.intermediate(depth),
            _ => self.store(),
        }
    }

    fn repeat(&mut self, depth: u32) -> Stmt {
        let var = self.program.add_variable("i", VariableKind::Loop);
        let id = self.program.fresh_loop();
        let extent = match self.below(4) {
            0 => Index::var(self.dim),
            1 => Index::var(self.dim).offset(3).floor_div(2),
            _ => Index::constant(self.below(5) as i64),
        };
        self.vars.push(var);
        let body = self.stmt(depth - 1);
        self.vars.pop();
        let mut annotations = Annotations::default();
        if self.below(3) == 0 {
            PREFETCH.set(&mut annotations, self.below(9) as i64);
        }
        if self.below(4) == 0 {
            PREFETCH_SIBLINGS.set(&mut annotations, true);
        }
        Stmt::For(std::sync::Arc::new(For { id, var, extent, kind: LoopKind::Serial, annotations, body }))
    }

    fn intermediate(&mut self, depth: u32) -> Stmt {
        let dtype = self.dtype();
        let scope = self.pick(&[Scope::Local, Scope::Global]);
        let buffer = self.add_buffer(dtype, 16, scope, None);
        let constant = self.below(3) > 0;
        self.lanes = 16;
        let start = Stmt::store(buffer, [Index::lane(16)], self.value(dtype, 1));
        self.locals.push((buffer, dtype, constant));
        let body = Stmt::seq([start, self.stmt(depth - 1), self.stmt(depth - 1)]);
        self.locals.pop();
        Stmt::Alloc(std::sync::Arc::new(Alloc { buffer, body }))
    }
}

/// A random program with arguments for it.
fn draw(seed: u64) -> (Program, Call) {
    let mut writer = Writer::new(seed);
    let stmts: Vec<Stmt> = (0..3).map(|_| writer.stmt(4)).collect();
    let dim = writer.below(LARGEST_DIM + 1) as i64;
    let mut program = writer.program;
    program.body = Stmt::seq(stmts);
    let tensors = program
        .buffer_params()
        .enumerate()
        .map(|(n, (buffer, _))| {
            let dtype = program.buffer(buffer).dtype;
            AnyTensor::random(dtype, &[LEN as usize], seed ^ n as u64).expect("a small tensor")
        })
        .collect();
    (program, Call { dims: vec![dim], scalars: Vec::new(), tensors })
}

/// The same cases in every run; `TILEWRIGHT_CASES` sets how many.
fn config() -> ProptestConfig {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x6370_7500),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_programs_mean_what_the_reference_says(seed: u64) {
        let (program, call) = draw(seed);
        call.check(&program);
    }
}
