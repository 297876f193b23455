//! From statements to instructions.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::access::holds_barrier;
use crate::analysis::initial::{Roles, initial_values};
use crate::analysis::scope::{blocks, loops_around};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::interp::InterpError;
use crate::interp::code::{
    Access, Code, Instruction, IterName, Loop, Position, Register, Storage, ThreadNest,
};
use crate::interp::value::lanes_of_store;
use crate::program::{Buffer, Param, Program};
use crate::stmt::{Block, Copies, For, IterKind, LoopKind, Shuffle, Stmt, Store, Symbol};
use crate::visit::{for_each_stmt, substitute_stmt};

/// Compiles a whole program.
///
/// # Errors
/// [`InterpError::Malformed`].
pub(super) fn compile(program: &Program) -> Result<Code, InterpError> {
    let mut compiler = Compiler::new(program);
    compiler.declare_params();
    compiler.stmt(&program.body)?;
    compiler.emit(Instruction::Halt);
    compiler.shapes()?;
    Ok(compiler.code)
}

/// The state of compilation.
pub(super) struct Compiler<'p> {
    pub(super) program: &'p Program,
    pub(super) code: Code,
    /// Which variables are in scope; the register of a variable has the variable's number.
    scope: Vec<bool>,
    /// The memory of each buffer, when it has one.
    memory_of: FxHashMap<BufferId, u32>,
    constants: FxHashMap<u64, Register>,
    /// Registers of the statement's values by [`Expr::address`].
    pub(super) computed: FxHashMap<usize, Register>,
    /// The buffer one of whose elements the current statement updates in one step.
    updated: Option<BufferId>,
    /// The lane's register and the number of lanes, inside a statement with lanes.
    pub(super) lane: Option<(Register, u32)>,
    pub(super) block: u32,
    /// Whether the statement stands in a nest of loops over the threads of a block.
    in_threads: bool,
}

impl<'p> Compiler<'p> {
    fn new(program: &'p Program) -> Self {
        let variables = program.variables().len();
        let registers = vec![0; variables];
        Compiler {
            program,
            code: Code { registers, blocks: vec![None], ..Code::default() },
            scope: vec![false; variables],
            memory_of: FxHashMap::default(),
            constants: FxHashMap::default(),
            computed: FxHashMap::default(),
            updated: None,
            lane: None,
            block: 0,
            in_threads: false,
        }
    }

    fn declare_params(&mut self) {
        for param in self.program.params.iter() {
            match *param {
                Param::Dim(var) => {
                    let name = self.program.variable(var).name.clone();
                    let register = self.bind(var);
                    self.code.dims.push((register, name));
                }
                Param::Scalar(var, dtype) => {
                    let register = self.bind(var);
                    self.code.scalars.push((register, dtype));
                }
                Param::Buffer(buffer, _) => {
                    self.memory(buffer);
                    self.code.tensor_count += 1;
                }
            }
        }
    }

    /// The memory of a buffer; the first use of an intermediate gives it one.
    fn memory(&mut self, id: BufferId) -> u32 {
        let (program, memories) = (self.program, &mut self.code.memories);
        *self.memory_of.entry(id).or_insert_with(|| {
            let buffer = program.buffer(id);
            let tensors = program.buffer_params().enumerate();
            let param = tensors
                .filter(|(_, (param, _))| *param == id)
                .map(|(position, (_, access))| (position, access))
                .next();
            memories.push(Storage {
                id,
                name: buffer.name.clone(),
                dtype: buffer.dtype,
                shape: Box::default(),
                strides: None,
                param,
                is_private: false,
            });
            (memories.len() - 1) as u32
        })
    }

    /// The section that computes the shapes of all memories from the dimensions.
    fn shapes(&mut self) -> Result<(), InterpError> {
        self.computed.clear();
        self.code.shapes = self.here();
        for memory in 0..self.code.memories.len() {
            let id = self.code.memories[memory].id;
            if let Some(strides) = self.program.strides(id) {
                let strides = strides.iter().map(|stride| self.index(stride)).collect::<Result<_, _>>()?;
                self.code.memories[memory].strides = Some(strides);
            }
            let buffer = self.program.buffer(id);
            let shape = buffer.shape.iter().map(|extent| self.index(extent)).collect::<Result<_, _>>()?;
            self.code.memories[memory].shape = shape;
        }
        self.emit(Instruction::Halt);
        Ok(())
    }

    pub(super) fn here(&self) -> Position {
        self.code.instructions.len() as Position
    }

    pub(super) fn emit(&mut self, instruction: Instruction) -> Position {
        self.code.instructions.push(instruction);
        self.here() - 1
    }

    /// Lets a jump that was emitted before go to the next instruction.
    pub(super) fn land(&mut self, jump: Position) {
        let here = self.here();
        match &mut self.code.instructions[jump as usize] {
            Instruction::Jump { target }
            | Instruction::JumpUnless { target, .. }
            | Instruction::JumpUnlessLess { target, .. }
            | Instruction::JumpUnlessZero { target, .. } => *target = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }

    pub(super) fn register(&mut self) -> Register {
        self.code.registers.push(0);
        (self.code.registers.len() - 1) as Register
    }

    pub(super) fn constant(&mut self, bits: u64) -> Register {
        let registers = &mut self.code.registers;
        *self.constants.entry(bits).or_insert_with(|| {
            registers.push(bits);
            (registers.len() - 1) as Register
        })
    }

    /// Brings a variable into scope.
    fn bind(&mut self, var: VarId) -> Register {
        self.scope[var.0 as usize] = true;
        var.0
    }

    fn unbind(&mut self, var: VarId) {
        self.scope[var.0 as usize] = false;
    }

    /// The register of a variable in scope.
    pub(super) fn variable(&self, var: VarId) -> Result<Register, InterpError> {
        match self.scope.get(var.0 as usize) {
            Some(true) => Ok(var.0),
            Some(false) => {
                let name = &self.program.variable(var).name;
                Err(InterpError::Malformed(format!("variable `{name}` is used outside of its scope")))
            }
            None => Err(InterpError::Malformed(format!("{var:?} is no variable of the program"))),
        }
    }

    /// A load or store of a buffer.
    pub(super) fn access(
        &mut self,
        buffer: BufferId,
        indices: &[Index],
        dtype: DType,
    ) -> Result<u32, InterpError> {
        let Buffer { name, dtype: expected, shape, .. } = self.program.buffer(buffer);
        if *expected != dtype || shape.len() != indices.len() {
            let (rank, count) = (shape.len(), indices.len());
            return Err(InterpError::Malformed(format!(
                "`{name}`, {expected} of rank {rank}, is accessed as {dtype} with {count} indices"
            )));
        }
        let memory = self.memory(buffer);
        let indices = indices.iter().map(|index| self.index(index)).collect::<Result<_, _>>()?;
        let is_atomic = self.updated == Some(buffer);
        self.code.accesses.push(Access { memory, indices, block: self.block, is_atomic });
        Ok((self.code.accesses.len() - 1) as u32)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), InterpError> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.stmt(stmt)),
            Stmt::For(node) => self.for_loop(node),
            Stmt::Block(node) => self.block(node),
            Stmt::Store(node) => self.store(node),
            Stmt::If(node) => {
                let otherwise = self.jump_unless(&node.condition)?;
                self.stmt(&node.then)?;
                let Some(alternative) = &node.otherwise else {
                    self.land(otherwise);
                    return Ok(());
                };
                let end = self.emit(Instruction::Jump { target: 0 });
                self.land(otherwise);
                self.stmt(alternative)?;
                self.land(end);
                Ok(())
            }
            Stmt::Alloc(node) => {
                let memory = self.memory(node.buffer);
                self.emit(Instruction::Forget { memory });
                self.stmt(&node.body)
            }
            Stmt::Intrinsic(node) => self.stmt(&node.body),
            Stmt::Barrier if self.in_threads => {
                self.emit(Instruction::Barrier);
                Ok(())
            }
            Stmt::Copies(Copies::Commit) => {
                self.emit(Instruction::CommitCopies);
                Ok(())
            }
            Stmt::Copies(Copies::Wait(left)) => {
                self.emit(Instruction::WaitForCopies { left: *left });
                Ok(())
            }
            Stmt::Shuffle(node) if self.in_threads => self.shuffle(node),
            Stmt::Barrier | Stmt::Shuffle(_) => Err(InterpError::Malformed(
                "threads wait for each other outside of the loops over the threads of a block".to_owned(),
            )),
        }
    }

    fn shuffle(&mut self, node: &Shuffle) -> Result<(), InterpError> {
        let Stmt::Store(store) = &node.body else {
            return Err(InterpError::Malformed("an exchange between threads is no store".to_owned()));
        };
        self.computed.clear();
        let value = self.value(&store.value)?;
        let to = self.register();
        self.emit(Instruction::Shuffle { value, to, mask: node.mask });
        self.computed.clear();
        let access = self.access(store.buffer, &store.indices, store.value.dtype())?;
        self.emit(Instruction::Store { access, value: to });
        Ok(())
    }

    fn jump_unless(&mut self, condition: &Expr) -> Result<Position, InterpError> {
        if condition.dtype() != DType::Bool {
            return Err(InterpError::Malformed("the condition of an `if` is no bool".to_owned()));
        }
        self.computed.clear();
        let condition = self.value(condition)?;
        Ok(self.emit(Instruction::JumpUnless { condition, target: 0 }))
    }

    /// The nest of loops over the threads of a block that wait for each other, from its outermost loop.
    fn threads(&mut self, node: &For) -> Result<(), InterpError> {
        let mut extents = Vec::new();
        let mut body = node;
        loop {
            self.computed.clear();
            extents.push((body.var, self.index(&body.extent)?));
            match &body.body {
                Stmt::For(inner) if is_over_threads(inner) => body = inner,
                _ => break,
            }
        }
        let loops = extents.into_iter().map(|(var, extent)| (self.bind(var), extent)).collect::<Vec<_>>();
        let number = self.code.thread_nests.len();
        let enter = self.emit(Instruction::Threads { number: number as u32 });
        let mut private = Vec::new();
        for_each_stmt(&body.body, &mut |stmt| {
            if let Stmt::Alloc(node) = stmt {
                private.push(self.memory(node.buffer));
            }
        });
        private.iter().for_each(|memory| self.code.memories[*memory as usize].is_private = true);
        let variables = loops.clone();
        self.code.thread_nests.push(ThreadNest { loops, private, body: enter + 1, end: 0 });
        self.in_threads = true;
        self.stmt(&body.body)?;
        self.in_threads = false;
        self.emit(Instruction::EndThread);
        self.code.thread_nests[number].end = self.here();
        variables.into_iter().for_each(|(var, _)| self.unbind(VarId(var)));
        Ok(())
    }

    fn for_loop(&mut self, node: &Arc<For>) -> Result<(), InterpError> {
        if is_over_threads(node) && !self.in_threads && holds_barrier(&node.body) {
            return self.threads(node);
        }
        self.initial_values(node)?;
        self.computed.clear();
        let extent = self.index(&node.extent)?;
        let var = self.bind(node.var);
        // The threads of a reduction combine their values: its initial value comes first.
        let reduces = || blocks(&node.body).iter().any(|block| Roles::of(block).reduces(node.var));
        let is_unordered = node.kind.is_unordered() && !(is_over_threads(node) && reduces());
        let number = self.begin_loop(var, extent, is_unordered);
        self.stmt(&node.body)?;
        self.end_loop(number);
        self.unbind(node.var);
        Ok(())
    }

    /// Runs the initial values of blocks whose reductions have no point, in place of a loop without iterations. Elements that
    /// cannot be determined stay undefined.
    fn initial_values(&mut self, node: &Arc<For>) -> Result<(), InterpError> {
        let stmt = Stmt::For(node.clone());
        for block in blocks(&stmt) {
            let Some(init) = &block.init else { continue };
            let roles = Roles::of(block);
            if !roles.reduces(node.var) {
                continue;
            }
            let mut init = init.clone();
            substitute_stmt(&mut init, &|var| {
                Some(block.iters.iter().find(|iter| iter.var == var)?.binding.clone())
            });
            let loops = loops_around(&stmt, block.id).unwrap_or_default();
            if let Ok(Some(nest)) = initial_values(block, init, &block.guards, &roles, loops.into_iter()) {
                self.stmt(&nest)?;
            }
        }
        Ok(())
    }

    fn begin_loop(&mut self, var: Register, extent: Register, is_parallel: bool) -> u32 {
        let counter = self.register();
        let number = self.code.loops.len() as u32;
        let enter = self.emit(Instruction::Enter { number });
        self.code.loops.push(Loop { var, counter, extent, is_parallel, body: enter + 1, end: 0 });
        number
    }

    fn end_loop(&mut self, number: u32) {
        self.emit(Instruction::Next { number });
        self.code.loops[number as usize].end = self.here();
    }

    fn block(&mut self, node: &Block) -> Result<(), InterpError> {
        let outside = self.block;
        self.block = self.code.blocks.len() as u32;
        self.code.blocks.push(Some(node.name.clone()));
        self.computed.clear();
        let mut skips = Vec::with_capacity(node.guards.len());
        for guard in &node.guards {
            let (a, b) = (self.index(&guard.index)?, self.index(&guard.bound)?);
            skips.push(self.emit(Instruction::JumpUnlessLess { a, b, target: 0 }));
        }
        self.bind_iters(node)?;
        if let Some(init) = &node.init {
            let mut later = Vec::new();
            for iter in node.iters.iter().filter(|iter| iter.kind == IterKind::Reduce) {
                later.push(self.emit(Instruction::JumpUnlessZero { a: iter.var.0, target: 0 }));
            }
            self.stmt(init)?;
            later.into_iter().for_each(|jump| self.land(jump));
        }
        self.stmt(&node.body)?;
        node.iters.iter().for_each(|iter| self.unbind(iter.var));
        skips.into_iter().for_each(|jump| self.land(jump));
        self.block = outside;
        Ok(())
    }

    fn bind_iters(&mut self, node: &Block) -> Result<(), InterpError> {
        let mut values = Vec::with_capacity(node.iters.len());
        for iter in &node.iters {
            values.push((self.index(&iter.binding)?, self.index(&iter.extent)?));
        }
        for (iter, (value, extent)) in node.iters.iter().zip(values) {
            let name = self.program.variable(iter.var).name.clone();
            self.code.iters.push(IterName { block: node.name.clone(), iter: name });
            let number = (self.code.iters.len() - 1) as u32;
            self.emit(Instruction::CheckIter { value, extent, iter: number });
            let to = self.bind(iter.var);
            self.emit(Instruction::Copy { to, from: value });
        }
        Ok(())
    }

    fn store(&mut self, node: &Store) -> Result<(), InterpError> {
        if self.program.access(node.buffer).is_some_and(|access| !access.is_written()) {
            let name: &Symbol = &self.program.buffer(node.buffer).name;
            return Err(InterpError::Malformed(format!("input `{name}` is stored to")));
        }
        self.computed.clear();
        let lanes = lanes_of_store(node);
        if lanes == 1 {
            self.updated = node.is_atomic().then_some(node.buffer);
            let value = self.value(&node.value)?;
            let access = self.access(node.buffer, &node.indices, node.value.dtype())?;
            self.updated = None;
            self.emit(match node.is_async() {
                true => Instruction::StoreAsync { access, value },
                false => Instruction::Store { access, value },
            });
            return Ok(());
        }
        let lane = self.register();
        let extent = self.constant(u64::from(lanes));
        let number = self.begin_loop(lane, extent, false);
        self.lane = Some((lane, lanes));
        let value = self.value(&node.value)?;
        let access = self.access(node.buffer, &node.indices, node.value.dtype())?;
        self.emit(Instruction::Pend { access, value });
        self.lane = None;
        self.end_loop(number);
        self.emit(Instruction::Commit { access, is_async: node.is_async() });
        Ok(())
    }
}

/// Whether the iterations of a loop are threads of one block.
fn is_over_threads(node: &For) -> bool {
    matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_block())
}
