//! A hash of what a program computes and how, the same on every machine and in every version.
//!
//! The hash is of the program's structure in one walk. Variables and buffers count by the order in which the walk
//! meets them; where the representation sorts by id (the terms of an index, the factors of an opaque product, the
//! operands of an opaque minimum) the parts are combined so that their order does not matter.

use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Digit, Index};
use crate::program::{Param, Program};
use crate::stmt::{Annotation, Annotations, Block, Copies, For, Guard, Iter, IterKind, Stmt, StoreKind};
use crate::text::canonical::canonical_constant;

impl Program {
    /// A 64-bit hash of the program up to the numbers of its ids and the names of its kernel, variables and buffers.
    ///
    /// Names of blocks and annotations count, because schedules refer to them; source locations do
    /// not. Programs with equal canonical forms have equal hashes. The value is the same on every platform and for every
    /// build, so that it may be stored.
    pub fn stable_hash(&self) -> u64 {
        self.hash(Detail::Everything)
    }

    /// A hash of what the program executes: equal where the [stable hashes](Program::stable_hash) are, and also for
    /// scheduled programs that differ only in what lowering drops, which is the names and annotations of blocks and loops
    /// that run once.
    pub fn execution_hash(&self) -> u64 {
        self.hash(Detail::Execution)
    }

    fn hash(&self, detail: Detail) -> u64 {
        let mut walk = Walk {
            program: self,
            detail,
            variables: vec![None; self.variables().len()],
            variable_count: 0,
            buffers: vec![None; self.buffers().len()],
            buffer_count: 0,
        };
        let mut hash = const { tag("program") };
        for param in self.params.iter() {
            let param = match *param {
                Param::Dim(var) => combine(const { tag("dim") }, walk.variable(var)),
                Param::Scalar(var, dtype) => {
                    combine(combine(const { tag("scalar") }, tag(dtype.name())), walk.variable(var))
                }
                Param::Buffer(buffer, access) => combine(tag(access.text()), walk.buffer(buffer)),
            };
            hash = combine(hash, param);
        }
        if let Some(accuracy) = self.accuracy {
            hash = combine(combine(hash, const { tag("accuracy") }), accuracy.bits());
        }
        if self.multiplies_padding {
            hash = combine(hash, const { tag("multiply_padding") });
        }
        walk.stmt(&self.body, hash)
    }
}

/// The parts of a program that a hash covers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// All that a schedule can refer to.
    Everything,
    /// Only the parts that remain after lowering.
    Execution,
}

/// Hashes a word; used for kinds of nodes, so that reordering an enum changes nothing. This is FNV-1a,
/// <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>.
const fn tag(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut position = 0;
    while position < bytes.len() {
        hash = (hash ^ bytes[position] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        position += 1;
    }
    hash
}

/// Mixes a value into a hash; the order of arguments matters. Both halves of a 128-bit product are used, so that each
/// bit of either argument reaches each bit of the result.
fn combine(hash: u64, value: u64) -> u64 {
    // Odd constants without structure: the fractional bits of the golden ratio and of the square root of two.
    const LEFT: u64 = 0x9e37_79b9_7f4a_7c15;
    const RIGHT: u64 = 0x6a09_e667_f3bc_c909;
    let product = u128::from(hash.rotate_left(29) ^ LEFT) * u128::from(value ^ RIGHT);
    (product as u64) ^ ((product >> 64) as u64) ^ hash.rotate_left(7)
}

struct Walk<'a> {
    program: &'a Program,
    detail: Detail,
    variables: Vec<Option<u64>>,
    variable_count: u64,
    buffers: Vec<Option<u64>>,
    buffer_count: u64,
}

impl Walk<'_> {
    fn variable(&mut self, id: VarId) -> u64 {
        let Some(slot) = self.variables.get_mut(id.0 as usize) else { return const { tag("unknown") } };
        *slot.get_or_insert_with(|| {
            self.variable_count += 1;
            self.variable_count
        })
    }

    fn buffer(&mut self, id: BufferId) -> u64 {
        match self.buffers.get(id.0 as usize) {
            None => return const { tag("unknown") },
            Some(Some(hash)) => return *hash,
            Some(None) => {}
        }
        self.buffer_count += 1;
        let buffer = self.program.buffer(id);
        let mut hash = combine(tag(buffer.dtype.name()), tag(buffer.scope.text()));
        hash = combine(hash, self.buffer_count);
        hash = self.indices(&buffer.shape, hash);
        let is_parameter = self.program.access(id).is_some();
        if let Some(strides) = self.program.strides(id).filter(|_| is_parameter) {
            hash = combine(hash, const { tag("strides") });
            hash = self.indices(strides, hash);
        }
        if self.program.has_fixed_scope(id) && !is_parameter {
            hash = combine(hash, const { tag("fixed") });
        }
        for (axis, alignment) in self.program.alignments(id).filter(|_| !is_parameter) {
            hash = combine(combine(hash, const { tag("aligned") }), axis as u64);
            hash = combine(combine(hash, alignment.factor as u64), alignment.offset as u64);
        }
        if let Some(swizzle) = self.program.swizzle(id).filter(|_| !is_parameter) {
            hash = combine(combine(hash, const { tag("swizzled") }), swizzle.row as u64);
        }
        self.buffers[id.0 as usize] = Some(hash);
        hash
    }

    /// Sequences leave no trace of their own, so that their nesting does not count.
    fn stmt(&mut self, stmt: &Stmt, hash: u64) -> u64 {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().fold(hash, |hash, stmt| self.stmt(stmt, hash)),
            Stmt::For(node) => self.for_loop(node, hash),
            Stmt::Block(node) => self.block(node, hash),
            Stmt::Store(node) => {
                let hash = match node.kind {
                    StoreKind::Plain => hash,
                    StoreKind::Async => combine(hash, const { tag("async") }),
                    StoreKind::Atomic => combine(hash, const { tag("atomic") }),
                };
                let hash = combine(combine(hash, const { tag("store") }), self.buffer(node.buffer));
                let hash = self.indices(&node.indices, hash);
                combine(hash, self.expr(&node.value))
            }
            Stmt::If(node) => {
                let hash = combine(combine(hash, const { tag("if") }), self.expr(&node.condition));
                let hash = self.braced(&node.then, hash);
                node.otherwise.iter().fold(hash, |hash, stmt| self.braced(stmt, hash))
            }
            Stmt::Alloc(node) => {
                let hash = combine(combine(hash, const { tag("alloc") }), self.buffer(node.buffer));
                self.braced(&node.body, hash)
            }
            Stmt::Intrinsic(node) => {
                let hash = combine(combine(hash, const { tag("intrinsic") }), tag(&node.name));
                self.braced(&node.body, hash)
            }
            Stmt::Barrier => combine(hash, const { tag("barrier()") }),
            Stmt::Copies(Copies::Commit) => combine(hash, const { tag("commit_copies()") }),
            Stmt::Copies(Copies::Wait(left)) => {
                combine(combine(hash, const { tag("wait_copies()") }), u64::from(*left))
            }
            Stmt::Shuffle(node) => {
                let hash = combine(combine(hash, const { tag("shuffle") }), u64::from(node.mask));
                self.braced(&node.body, hash)
            }
        }
    }

    fn braced(&mut self, stmt: &Stmt, hash: u64) -> u64 {
        let hash = self.stmt(stmt, combine(hash, const { tag("{") }));
        combine(hash, const { tag("}") })
    }

    fn for_loop(&mut self, node: &For, hash: u64) -> u64 {
        if self.detail == Detail::Execution && node.extent.is(1) {
            return self.stmt(&node.body, hash);
        }
        let hash = combine(combine(hash, const { tag("for") }), tag(node.kind.text()));
        let hash = combine(hash, self.variable(node.var));
        let hash = combine(hash, self.index(&node.extent));
        self.braced(&node.body, annotations(&node.annotations, hash))
    }

    fn block(&mut self, node: &Block, hash: u64) -> u64 {
        let is_named = self.detail == Detail::Everything;
        let hash = combine(hash, const { tag("block") });
        let hash = if is_named { combine(hash, tag(&node.name)) } else { hash };
        let hash = node.iters.iter().fold(hash, |hash, iter| self.iter(iter, hash));
        let hash = node.guards.iter().fold(hash, |hash, guard| self.guard(guard, hash));
        let hash = if is_named { annotations(&node.annotations, hash) } else { hash };
        let hash = node.init.iter().fold(hash, |hash, init| {
            let hash = combine(hash, const { tag("init") });
            self.braced(init, hash)
        });
        self.braced(&node.body, hash)
    }

    fn iter(&mut self, iter: &Iter, hash: u64) -> u64 {
        let kind = match iter.kind {
            IterKind::Spatial => const { tag("spatial") },
            IterKind::Reduce => const { tag("reduce") },
            IterKind::Ordered => const { tag("ordered") },
        };
        let hash = combine(combine(hash, kind), self.variable(iter.var));
        let hash = combine(hash, self.index(&iter.extent));
        combine(hash, self.index(&iter.binding))
    }

    fn guard(&mut self, guard: &Guard, hash: u64) -> u64 {
        let hash = combine(combine(hash, const { tag("guard") }), self.index(&guard.index));
        combine(hash, self.index(&guard.bound))
    }

    fn indices(&mut self, indices: &[Index], hash: u64) -> u64 {
        let hash = combine(hash, indices.len() as u64);
        indices.iter().fold(hash, |hash, index| combine(hash, self.index(index)))
    }

    fn index(&mut self, index: &Index) -> u64 {
        let start = combine(const { tag("index") }, index.constant_part() as u64);
        index.terms().iter().fold(start, |sum, term| {
            let term = combine(self.digit(&term.digit), term.coefficient as u64);
            sum.wrapping_add(combine(const { tag("term") }, term))
        })
    }

    fn digit(&mut self, digit: &Digit) -> u64 {
        let base = match &digit.base {
            Base::Var(var) => combine(const { tag("var") }, self.variable(*var)),
            Base::Lane(lanes) => combine(const { tag("lane") }, u64::from(*lanes)),
            Base::Sum(sum) => self.index(sum),
            Base::Value(value) => self.opaque(value),
        };
        if digit.is_whole() {
            base
        } else {
            combine(combine(base, digit.divisor as u64), digit.modulus as u64)
        }
    }

    /// A value inside an index: products and minima are kept there in an order that depends on ids.
    fn opaque(&mut self, value: &Expr) -> u64 {
        match value.kind() {
            ExprKind::Binary(BinaryOp::Mul, ..) => combine(const { tag("product") }, self.factors(value)),
            ExprKind::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
                let operands = [a, b].map(|operand| combine(const { tag("operand") }, self.opaque(operand)));
                combine(tag(op.text()), operands[0].wrapping_add(operands[1]))
            }
            ExprKind::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), a, b) => {
                let left = combine(tag(op.text()), self.opaque(a));
                combine(left, self.opaque(b))
            }
            _ => self.expr(value),
        }
    }

    fn factors(&mut self, value: &Expr) -> u64 {
        match value.kind() {
            ExprKind::Binary(BinaryOp::Mul, a, b) => self.factors(a).wrapping_add(self.factors(b)),
            _ => combine(const { tag("factor") }, self.opaque(value)),
        }
    }

    fn expr(&mut self, expr: &Expr) -> u64 {
        let dtype = tag(expr.dtype().name());
        let kind = match expr.kind() {
            ExprKind::Constant(constant) => {
                let bits = match canonical_constant(*constant) {
                    Constant::Int(value) => value as u64,
                    Constant::Float(bits) => bits,
                };
                return combine(combine(dtype, const { tag("constant") }), bits);
            }
            ExprKind::Scalar(var) => return combine(const { tag("scalar") }, self.variable(*var)),
            ExprKind::Index(index) => return self.index(index),
            ExprKind::Load(buffer, indices) => {
                let hash = combine(const { tag("load") }, self.buffer(*buffer));
                return self.indices(indices, hash);
            }
            ExprKind::Bounded(value, extent) => {
                let hash = combine(const { tag("bounded") }, self.expr(value));
                return combine(hash, self.index(extent));
            }
            ExprKind::Unary(op, _) => tag(op.text()),
            ExprKind::Binary(op, ..) => tag(op.text()),
            ExprKind::MulAdd(..) => const { tag("mul_add") },
            ExprKind::Select(..) => const { tag("select") },
            ExprKind::Cast(_) => combine(dtype, const { tag("cast") }),
            ExprKind::Bitcast(_) => combine(dtype, const { tag("bitcast") }),
        };
        expr.operands().into_iter().fold(kind, |hash, operand| combine(hash, self.expr(operand)))
    }
}

fn annotations(annotations: &Annotations, hash: u64) -> u64 {
    annotations.iter().fold(hash, |hash, (key, value)| {
        let value = match value {
            Annotation::Int(value) => combine(const { tag("int") }, *value as u64),
            Annotation::Text(text) => combine(const { tag("text") }, tag(text)),
            Annotation::Numbers(numbers) => {
                numbers.iter().fold(const { tag("numbers") }, |hash, number| combine(hash, *number as u64))
            }
        };
        combine(combine(hash, tag(key)), value)
    })
}
