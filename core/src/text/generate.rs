//! Programs made from arbitrary numbers, for tests.
//!
//! The programs use every form of the representation and mention only what is in scope, but need not be well-formed.
//! Ids are handed out in an order that is independent of the program's content, so that one content can be had with
//! several numberings.

use std::sync::Arc;

use crate::accuracy::Accuracy;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::program::{Access, Alignment, Buffer, Param, Program, Scope, VariableKind};
use crate::stmt::{
    Alloc, Annotation, Annotations, Block, Copies, For, Guard, If, Intrinsic, Iter, IterKind, Location,
    LoopKind, Shuffle, Stmt, Store, StoreKind,
};
use crate::swizzle::Swizzle;
use crate::thread_axis::ThreadAxis;

/// More variables and buffers than a program uses.
const POOL: u32 = 200;
const NAMES: [&str; 12] = ["i", "j", "k", "i", "x", "for", "a b", "", "i_1", "λ", "exp", "value"];

/// A program made of `choices`, its ids handed out in steps of `stride`, which has no factor in common with 200.
pub(crate) fn program(choices: &[u32], stride: u32) -> Program {
    let mut generator = Generator::new(choices, stride);
    generator.params();
    generator.intermediates();
    let count = generator.below(4) + 2;
    let body = generator.stmts(count, 0);
    generator.program.body = body;
    generator.program
}

struct Generator<'a> {
    choices: std::slice::Iter<'a, u32>,
    program: Program,
    next_id: u32,
    stride: u32,
    next_buffer: u32,
    /// Variables in scope that may stand in an index.
    variables: Vec<VarId>,
    scalars: Vec<(VarId, DType)>,
    buffers: Vec<BufferId>,
}

impl<'a> Generator<'a> {
    fn new(choices: &'a [u32], stride: u32) -> Self {
        let mut program = Program::new("generated");
        let buffer = Buffer { name: "unused".into(), dtype: DType::F32, shape: vec![], scope: Scope::Global };
        let mut names = [""; POOL as usize];
        for number in 0..POOL {
            names[(number * stride % POOL) as usize] = NAMES[number as usize % NAMES.len()];
        }
        for name in names {
            program.add_variable(name, VariableKind::Loop);
        }
        for _ in 0..8 {
            program.add_buffer(buffer.clone());
        }
        Generator {
            choices: choices.iter(),
            program,
            next_id: 0,
            stride,
            next_buffer: 0,
            variables: Vec::new(),
            scalars: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// A number below `count`; 0 when the choices are used up.
    fn below(&mut self, count: u32) -> u32 {
        self.choices.next().map_or(0, |choice| choice % count)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    fn variable(&mut self) -> VarId {
        self.next_id += 1;
        VarId((self.next_id - 1) * self.stride % POOL)
    }

    fn buffer(&mut self, scope: Scope) -> BufferId {
        let id = BufferId(self.next_buffer * self.stride % 8);
        self.next_buffer += 1;
        let name = self.pick(&NAMES).into();
        let dtype = self.pick(&DType::ALL);
        let shape = (0..self.below(3)).map(|_| self.index(0).multiply(&self.index(0)).offset(1)).collect();
        *self.program.buffer_mut(id) = Buffer { name, dtype, shape, scope };
        if self.below(4) == 0 {
            let strides = self.program.buffer(id).shape.clone();
            self.program.set_strides(id, strides);
        }
        if self.below(3) == 0 {
            let alignment = Alignment { factor: 16, offset: i64::from(self.below(16)) };
            self.program.align(id, self.buffers.len() % 2, alignment);
        }
        if self.below(4) == 0 {
            let row = self.pick(&[0, 8, 64]);
            self.program.set_swizzle(id, Swizzle { row });
        }
        self.buffers.push(id);
        id
    }

    fn params(&mut self) {
        let accuracies = [None, Accuracy::new(0.0), Accuracy::new(1e-5), Accuracy::new(0.25)];
        self.program.accuracy = self.pick(&accuracies);
        self.program.multiplies_padding = self.below(4) == 0;
        for _ in 0..self.below(4) {
            let dim = self.variable();
            self.variables.push(dim);
            self.program.add_param(Param::Dim(dim));
        }
        for _ in 0..self.below(3) {
            let (scalar, dtype) = (self.variable(), self.pick(&[DType::I64, DType::F32]));
            self.scalars.push((scalar, dtype));
            self.program.add_param(Param::Scalar(scalar, dtype));
        }
        for _ in 0..=self.below(3) {
            let access = self.pick(&Access::ALL);
            let scope = self.pick(&[Scope::Global, Scope::Streamed]);
            let buffer = self.buffer(scope);
            self.program.add_param(Param::Buffer(buffer, access));
        }
    }

    fn intermediates(&mut self) {
        for _ in 0..self.below(3) {
            let scope = self.pick(&[Scope::Global, Scope::Local]);
            let buffer = self.buffer(scope);
            if self.below(3) == 0 {
                self.program.fix_scope(buffer, scope);
            }
        }
    }

    fn stmts(&mut self, count: u32, depth: u32) -> Stmt {
        let stmts: Vec<Stmt> = (0..count).map(|_| self.stmt(depth)).collect();
        // Raw, so that sequences nest.
        Stmt::Seq(Arc::new(stmts))
    }

    fn stmt(&mut self, depth: u32) -> Stmt {
        match if depth >= 4 { 0 } else { self.below(10) } {
            0..=2 => self.store(),
            3 | 4 => self.for_loop(depth),
            5 => self.block(depth),
            6 => {
                let (condition, count) = (self.expr(2), self.below(3));
                let then = self.stmts(count, depth + 1);
                let otherwise = (self.below(2) == 1).then(|| self.stmts(1, depth + 1));
                Stmt::If(Arc::new(If { condition, then, otherwise }))
            }
            8 => match self.below(4) {
                0 => Stmt::Barrier,
                1 => Stmt::Copies(Copies::Commit),
                2 => Stmt::Copies(Copies::Wait(self.below(4))),
                _ => Stmt::Shuffle(Arc::new(Shuffle { mask: 1 + self.below(31), body: self.store() })),
            },
            7 => {
                let (name, body) = (self.pick(&["dot", "two words"]).into(), self.stmts(1, depth + 1));
                Stmt::Intrinsic(Arc::new(Intrinsic { name, body }))
            }
            _ => {
                let buffers = self.buffers.clone();
                let buffer = self.pick(&buffers);
                Stmt::Alloc(Arc::new(Alloc { buffer, body: self.stmts(1, depth + 1) }))
            }
        }
    }

    fn store(&mut self) -> Stmt {
        let buffers = self.buffers.clone();
        let buffer = self.pick(&buffers);
        let indices: Vec<Index> = (0..self.below(3)).map(|_| self.index(2)).collect();
        let indices = indices.into_iter().collect();
        let value = self.expr(3);
        let kind = if self.below(4) == 1 { self.pick(&StoreKind::ALL) } else { StoreKind::Plain };
        Stmt::Store(Arc::new(Store { buffer, indices, value, kind }))
    }

    fn annotations(&mut self) -> Annotations {
        let count = self.below(3);
        let mut entry = || {
            let key = self.pick(&["my_crate.rows", "tile", "two words", "for"]);
            let value = match self.below(3) {
                1 => Annotation::Numbers((0..self.below(4)).map(|number| i64::from(number) - 1).collect()),
                0 => Annotation::Int(i64::from(self.below(100)) - 50),
                _ => Annotation::Text(self.pick(&["SSRSRS", "\"\\\n\u{1}", ""]).into()),
            };
            (key.into(), value)
        };
        (0..count).map(|_| entry()).collect()
    }

    fn for_loop(&mut self, depth: u32) -> Stmt {
        let extent = self.index(1);
        let var = self.variable();
        let axis = self.pick(&ThreadAxis::ALL);
        let kinds = [
            LoopKind::Serial,
            LoopKind::Parallel,
            LoopKind::Vectorized,
            LoopKind::Unrolled,
            LoopKind::Bound(axis),
        ];
        let (kind, annotations, id) = (self.pick(&kinds), self.annotations(), self.program.fresh_loop());
        self.variables.push(var);
        let count = self.below(3) + 1;
        let body = self.stmts(count, depth + 1);
        self.variables.pop();
        Stmt::For(Arc::new(For { id, var, extent, kind, annotations, body }))
    }

    fn block(&mut self, depth: u32) -> Stmt {
        let iters: Vec<Iter> = (0..self.below(4))
            .map(|_| {
                let (extent, binding) = (self.index(1), self.index(2));
                let kind = self.pick(&IterKind::ALL);
                Iter { var: self.variable(), extent, kind, binding }
            })
            .collect();
        let guards =
            (0..self.below(3)).map(|_| Guard { index: self.index(2), bound: self.index(1) }).collect();
        let annotations = self.annotations();
        let id = self.program.fresh_block();
        let location = (self.below(2) == 1).then(|| Location {
            file: "src/a \"b\".rs".into(),
            line: self.below(9) + 1,
            column: 3,
        });
        let outer = self.variables.len();
        self.variables.extend(iters.iter().map(|iter| iter.var));
        let init = (self.below(2) == 1).then(|| self.stmts(1, depth + 1));
        let body = self.stmts(2, depth + 1);
        self.variables.truncate(outer);
        let name = self.pick(&["block", "c", "a b", ""]).into();
        Stmt::Block(Arc::new(Block { id, name, iters, guards, init, body, annotations, location }))
    }

    fn index(&mut self, depth: u32) -> Index {
        let small = i64::from(self.below(9));
        match if depth == 0 { self.below(3) } else { self.below(14) } {
            0 => Index::constant(small - 4),
            1 | 2 if self.variables.is_empty() => Index::lane(8),
            1 | 2 => Index::var(self.pick(&self.variables.clone())),
            3 => self.index(depth - 1).floor_div(small + 1),
            4 => self.index(depth - 1).modulo(small + 1),
            5 => self.index(depth - 1).scale(small - 4),
            6 | 7 => &self.index(depth - 1) + &self.index(depth - 1),
            8 => &self.index(depth - 1) - &self.index(depth - 1),
            9 => self.index(depth - 1).multiply(&self.index(depth - 1)),
            10 => self.index(depth - 1).minimum(&self.index(depth - 1)),
            11 => self.index(depth - 1).divide(&self.index(depth - 1)),
            12 => self.index(depth - 1).remainder(&self.index(depth - 1)),
            _ => {
                let value = self.expr(depth);
                Index::value(Expr::cast(DType::I64, value))
            }
        }
    }

    fn constant(&mut self) -> Expr {
        let dtype = self.pick(&DType::ALL);
        if dtype == DType::Bool {
            return Expr::bool(self.below(2) == 1);
        }
        if !dtype.is_float() {
            let value = match dtype {
                DType::I64 => self.pick(&[0, 1, 1000, -77]),
                DType::U64 => self.pick(&[0, 255, -1, i64::MIN]),
                dtype if dtype.is_unsigned() => self.pick(&[0, 255]),
                _ => self.pick(&[0, -1, 127, -128]),
            };
            return Expr::int(dtype, dtype.wrap(value));
        }
        let special =
            [0.0, -0.0, 1.0, 0.1, -2.5e-3, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
        match self.below(4) {
            0 => Expr::float(dtype, f64::from(f32::from_bits(self.below(u32::MAX)))),
            1 => Expr::new(dtype, ExprKind::Constant(Constant::Float(0x7ff8_0000_0000_0001))),
            _ => Expr::float(dtype, self.pick(&special)),
        }
    }

    fn expr(&mut self, depth: u32) -> Expr {
        match if depth == 0 { self.below(3) } else { self.below(12) } {
            0 => self.constant(),
            1 if self.scalars.is_empty() => self.constant(),
            1 => {
                let (var, dtype) = self.pick(&self.scalars.clone());
                Expr::new(dtype, ExprKind::Scalar(var))
            }
            2 => Expr::index(self.index(depth.min(2))),
            3 => {
                let buffer = self.pick(&self.buffers.clone());
                let indices: Vec<Index> = (0..self.below(3)).map(|_| self.index(depth.min(2))).collect();
                Expr::load(self.program.buffer(buffer).dtype, buffer, indices)
            }
            4 => Expr::unary(self.pick(UnaryOp::ALL), self.expr(depth - 1)),
            5 | 6 => {
                let (left, right) = (self.expr(depth - 1), self.expr(depth - 1));
                Expr::binary(self.pick(BinaryOp::ALL), left.clone(), Expr::cast(left.dtype(), right))
            }
            7 => Expr::mul_add(self.expr(depth - 1), self.expr(depth - 1), self.expr(depth - 1)),
            8 => Expr::select(self.expr(depth - 1), self.expr(depth - 1), self.expr(depth - 1)),
            9 => Expr::new(self.pick(&DType::ALL), ExprKind::Cast(self.expr(depth - 1))),
            10 => Expr::new(self.pick(&DType::ALL), ExprKind::Bitcast(self.expr(depth - 1))),
            _ => {
                let value = self.expr(depth - 1);
                Expr::new(value.dtype(), ExprKind::Bounded(value, self.index(1)))
            }
        }
    }
}
