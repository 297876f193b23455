//! Executing instructions.

use crate::expr::Constant;
use crate::interp::code::{Code, Instruction, Loop, Position, Register};
use crate::interp::copies::CopiesUnderWay;
use crate::interp::memory::Memory;
use crate::interp::threads::{Action, Sharing};
use crate::interp::{InterpError, Options, operators};
use crate::program::Access as ParamAccess;
use crate::tensor::{AnyTensor, Random};

/// Executes a program; see [`crate::interp::Interpreter::run`].
pub(super) fn execute(
    code: &Code,
    options: Options,
    dims: &[i64],
    scalars: &[Constant],
    buffers: &mut [AnyTensor],
) -> Result<(), InterpError> {
    check_count("dimensions", code.dims.len(), dims.len())?;
    check_count("scalars", code.scalars.len(), scalars.len())?;
    check_count("tensors", code.tensor_count, buffers.len())?;
    let mut machine = Machine::new(code, options);
    for ((register, name), &value) in code.dims.iter().zip(dims) {
        check_extent(name, value)?;
        machine.registers[*register as usize] = value as u64;
    }
    for (&(register, dtype), &value) in code.scalars.iter().zip(scalars) {
        machine.registers[register as usize] = operators::constant(dtype, value);
    }
    machine.run(code.shapes)?;
    let (shapes, strides) = (machine.shapes()?, machine.strides()?);
    machine.memories = Memory::for_all(code, shapes, strides, buffers)?;
    machine.run(0)?;
    machine.check_outputs()
}

fn check_count(sort: &'static str, expected: usize, found: usize) -> Result<(), InterpError> {
    if expected == found { Ok(()) } else { Err(InterpError::Count { sort, expected, found }) }
}

fn check_extent(name: &str, value: i64) -> Result<(), InterpError> {
    if value >= 0 { Ok(()) } else { Err(InterpError::Dimension { name: name.to_owned(), value }) }
}

/// Why execution stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The section is at its end.
    Halt,
    /// A thread waits at a barrier; the position behind it.
    Barrier(Position),
    /// A thread waits for the value of its partner; the position behind.
    Shuffle { next: Position, value: Register, to: Register, mask: u32 },
    /// A thread is at its end.
    EndThread,
}

pub(super) struct Machine<'c, 'a> {
    pub(super) code: &'c Code,
    pub(super) registers: Vec<u64>,
    pub(super) memories: Vec<Memory<'a>>,
    pub(super) sharing: Sharing,
    /// Elements that are stored asynchronously and have not arrived.
    pub(super) copies: CopiesUnderWay,
    /// Stores of the current statement that wait for their commit.
    pending: Vec<(usize, u64)>,
    /// The order of iterations of each running loop that does not run from 0.
    pub(super) orders: Vec<Vec<u64>>,
    random: Option<Random>,
}

impl<'c, 'a> Machine<'c, 'a> {
    fn new(code: &'c Code, options: Options) -> Self {
        Machine {
            code,
            registers: code.registers.clone(),
            memories: Vec::new(),
            sharing: Sharing::default(),
            copies: CopiesUnderWay::default(),
            pending: Vec::new(),
            orders: vec![Vec::new(); code.loops.len()],
            random: options.parallel_order_seed.map(Random::new),
        }
    }

    fn shapes(&self) -> Result<Vec<Vec<i64>>, InterpError> {
        let shape_of = |storage: &crate::interp::code::Storage| {
            let shape: Vec<i64> = storage.shape.iter().map(|&extent| self.int(extent)).collect();
            if storage.param.is_none() {
                // Nothing is computed over a negative extent, as in `Program::bind_dims`.
                return Ok(shape.into_iter().map(|extent| extent.max(0)).collect());
            }
            shape.iter().try_for_each(|&extent| check_extent(&storage.name, extent))?;
            Ok(shape)
        };
        self.code.memories.iter().map(shape_of).collect()
    }

    /// The distances of the elements of each memory that is not dense.
    fn strides(&self) -> Result<Vec<Option<Vec<i64>>>, InterpError> {
        let strides_of = |storage: &crate::interp::code::Storage| {
            let Some(strides) = &storage.strides else { return Ok(None) };
            let strides: Vec<i64> = strides.iter().map(|&stride| self.int(stride)).collect();
            strides.iter().try_for_each(|&stride| check_extent(&storage.name, stride))?;
            Ok(Some(strides))
        };
        self.code.memories.iter().map(strides_of).collect()
    }

    #[inline]
    fn get(&self, register: Register) -> u64 {
        self.registers[register as usize]
    }

    #[inline]
    pub(super) fn int(&self, register: Register) -> i64 {
        self.get(register) as i64
    }

    #[inline]
    fn set(&mut self, register: Register, value: u64) {
        self.registers[register as usize] = value;
    }

    /// Executes one section, or a thread to its next barrier.
    pub(super) fn run(&mut self, start: Position) -> Result<Stop, InterpError> {
        let code = self.code;
        let mut at = start as usize;
        loop {
            let mut next = at + 1;
            match code.instructions[at] {
                Instruction::Unary { function, to, a } => self.set(to, function(self.get(a))),
                Instruction::Binary { function, to, a, b } => {
                    self.set(to, function(self.get(a), self.get(b)));
                }
                Instruction::Ternary { function, to, a, b, c } => {
                    self.set(to, function(self.get(a), self.get(b), self.get(c)));
                }
                Instruction::Copy { to, from } => self.set(to, self.get(from)),
                Instruction::Digit { to, base, divisor, modulus } => {
                    self.set(to, digit(self.int(base), divisor, modulus) as u64);
                }
                Instruction::Sum { to, first, last, constant } => {
                    let sum = self.sum(first, last, constant);
                    self.set(to, sum as u64);
                }
                Instruction::Load { to, access } => {
                    let value = self.load(access)?;
                    self.set(to, value);
                }
                Instruction::Store { access, value } => self.store(access, self.get(value))?,
                Instruction::Pend { access, value } => {
                    let position = self.position(access, "store")?;
                    self.pending.push((position, self.get(value)));
                }
                Instruction::StoreAsync { access, value } => {
                    let position = self.position(access, "store")?;
                    self.store_at(access, position, self.get(value), true)?;
                }
                Instruction::Commit { access, is_async } => self.commit(access, is_async)?,
                Instruction::CommitCopies => self.copies.commit(self.sharing.thread),
                Instruction::WaitForCopies { left } => self.wait_for_copies(left)?,
                Instruction::Jump { target } => next = target as usize,
                Instruction::JumpUnless { condition, target } if self.get(condition) == 0 => {
                    next = target as usize;
                }
                Instruction::JumpUnlessLess { a, b, target } if self.int(a) >= self.int(b) => {
                    next = target as usize;
                }
                Instruction::JumpUnlessZero { a, target } if self.get(a) != 0 => next = target as usize,
                Instruction::JumpUnless { .. }
                | Instruction::JumpUnlessLess { .. }
                | Instruction::JumpUnlessZero { .. } => {}
                Instruction::CheckIter { value, extent, iter } => self.check_iter(value, extent, iter)?,
                Instruction::CheckIndex { value, extent, block } => self.check_index(value, extent, block)?,
                Instruction::Enter { number } => next = self.enter(number),
                Instruction::Next { number } => next = self.repeat(number, next),
                Instruction::Forget { memory } => {
                    self.copies.forget(memory);
                    self.memories[memory as usize].forget();
                }
                Instruction::Threads { number } => next = self.threads(number)?,
                Instruction::EndThread => return Ok(Stop::EndThread),
                Instruction::Barrier => return Ok(Stop::Barrier(next as Position)),
                Instruction::Shuffle { value, to, mask } => {
                    return Ok(Stop::Shuffle { next: next as Position, value, to, mask });
                }
                Instruction::Halt => return Ok(Stop::Halt),
            }
            at = next;
        }
    }

    #[inline]
    fn sum(&self, first: u32, last: u32, constant: i64) -> i64 {
        let terms = &self.code.terms[first as usize..last as usize];
        terms.iter().fold(constant, |sum, &(register, coefficient)| {
            sum.wrapping_add(self.int(register).wrapping_mul(coefficient))
        })
    }

    #[inline]
    fn position(&self, access: u32, action: &'static str) -> Result<usize, InterpError> {
        let node = &self.code.accesses[access as usize];
        match self.memories[node.memory as usize].position(node, &self.registers) {
            Some(position) => Ok(position),
            None => Err(self.out_of_bounds(access, action)),
        }
    }

    #[inline]
    fn load(&mut self, access: u32) -> Result<u64, InterpError> {
        let position = self.position(access, "load")?;
        let memory = self.code.accesses[access as usize].memory as usize;
        self.note(access, position, Action::Load)?;
        self.memories[memory].load(position).ok_or_else(|| self.undefined(access))
    }

    #[inline]
    fn store(&mut self, access: u32, value: u64) -> Result<(), InterpError> {
        let position = self.position(access, "store")?;
        self.store_at(access, position, value, false)
    }

    #[inline]
    fn store_at(
        &mut self,
        access: u32,
        position: usize,
        value: u64,
        is_async: bool,
    ) -> Result<(), InterpError> {
        let memory = self.code.accesses[access as usize].memory;
        self.note(access, position, Action::Store)?;
        self.memories[memory as usize].store(position, value);
        if is_async {
            self.copies.start(self.sharing.thread, memory, position);
        }
        Ok(())
    }

    fn commit(&mut self, access: u32, is_async: bool) -> Result<(), InterpError> {
        let pending = std::mem::take(&mut self.pending);
        for (position, value) in &pending {
            self.store_at(access, *position, *value, is_async)?;
        }
        // Keeps the memory of the list.
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    /// Notes an access of a thread to memory that it may share.
    #[inline]
    fn note(&mut self, access: u32, position: usize, action: Action) -> Result<(), InterpError> {
        if !self.copies.is_empty() {
            self.check_arrived(self.code.accesses[access as usize].memory, position, action)?;
        }
        if self.sharing.thread.is_none() {
            return Ok(());
        }
        let memory = self.code.accesses[access as usize].memory as usize;
        if self.code.memories[memory].is_private {
            return Ok(());
        }
        let action = if self.code.accesses[access as usize].is_atomic { Action::Update } else { action };
        match self.sharing.note(memory, position, action) {
            None => Ok(()),
            Some(other) => Err(self.race(access, action, other)),
        }
    }

    /// The numbers below `count` in the order in which threads run.
    pub(super) fn order_of(&mut self, count: usize) -> Vec<usize> {
        match &mut self.random {
            None => (0..count).collect(),
            Some(random) => {
                permutation(count as u64, random).into_iter().map(|number| number as usize).collect()
            }
        }
    }

    pub(super) fn name_of(&self, memory: u32) -> &str {
        &self.code.memories[memory as usize].name
    }

    fn enter(&mut self, number: u32) -> usize {
        let node = &self.code.loops[number as usize];
        let extent = self.int(node.extent);
        if extent <= 0 {
            return node.end as usize;
        }
        if let (true, Some(random)) = (node.is_parallel, &mut self.random) {
            self.orders[number as usize] = permutation(extent as u64, random);
        }
        self.set(node.counter, 0);
        self.set_variable(number, node, 0);
        node.body as usize
    }

    #[inline]
    fn repeat(&mut self, number: u32, behind: usize) -> usize {
        let node = &self.code.loops[number as usize];
        let counter = self.get(node.counter) + 1;
        if counter >= self.get(node.extent) {
            return behind;
        }
        self.set(node.counter, counter);
        self.set_variable(number, node, counter);
        node.body as usize
    }

    #[inline]
    fn set_variable(&mut self, number: u32, node: &Loop, counter: u64) {
        let order = &self.orders[number as usize];
        let value = if order.is_empty() { counter } else { order[counter as usize] };
        self.set(node.var, value);
    }

    #[inline]
    fn check_iter(&self, value: Register, extent: Register, iter: u32) -> Result<(), InterpError> {
        let (value, extent) = (self.int(value), self.int(extent));
        if (0..extent).contains(&value) {
            return Ok(());
        }
        let name = &self.code.iters[iter as usize];
        let (block, iter) = (name.block.to_string(), name.iter.to_string());
        Err(InterpError::OutsideDomain { block, iter, value, extent })
    }

    #[inline]
    fn check_index(&self, value: Register, extent: Register, block: u32) -> Result<(), InterpError> {
        let (value, extent) = (self.int(value), self.int(extent));
        if (0..extent).contains(&value) {
            return Ok(());
        }
        Err(InterpError::IndexOutOfRange { value, extent, block: self.block(block) })
    }

    fn check_outputs(&self) -> Result<(), InterpError> {
        for (storage, memory) in self.code.memories.iter().zip(&self.memories) {
            let is_output = matches!(storage.param, Some((_, ParamAccess::Output)));
            if let (true, Some(indices)) = (is_output, memory.first_undefined()) {
                return Err(InterpError::Incomplete { buffer: storage.name.to_string(), indices });
            }
        }
        Ok(())
    }

    fn block(&self, block: u32) -> Option<String> {
        self.code.blocks[block as usize].as_ref().map(ToString::to_string)
    }

    fn indices(&self, access: u32) -> Vec<i64> {
        self.code.accesses[access as usize].indices.iter().map(|&index| self.int(index)).collect()
    }

    #[cold]
    fn out_of_bounds(&self, access: u32, action: &'static str) -> InterpError {
        let node = &self.code.accesses[access as usize];
        InterpError::OutOfBounds {
            action,
            buffer: self.code.memories[node.memory as usize].name.to_string(),
            indices: self.indices(access),
            shape: self.memories[node.memory as usize].shape.clone(),
            block: self.block(node.block),
        }
    }

    #[cold]
    fn race(&self, access: u32, action: Action, other: u32) -> InterpError {
        let node = &self.code.accesses[access as usize];
        InterpError::Race {
            action: action.text(),
            buffer: self.code.memories[node.memory as usize].name.to_string(),
            indices: self.indices(access),
            thread: self.sharing.thread.unwrap_or_default(),
            other,
        }
    }

    #[cold]
    fn undefined(&self, access: u32) -> InterpError {
        let node = &self.code.accesses[access as usize];
        InterpError::Undefined {
            buffer: self.code.memories[node.memory as usize].name.to_string(),
            indices: self.indices(access),
            block: self.block(node.block),
        }
    }
}

#[inline]
fn digit(base: i64, divisor: i64, modulus: i64) -> i64 {
    let quotient = if divisor == 1 { base } else { base.div_euclid(divisor) };
    if modulus == crate::index::NO_MODULUS { quotient } else { quotient.rem_euclid(modulus) }
}

/// The numbers below `count` in an order drawn at random (Fisher and Yates).
fn permutation(count: u64, random: &mut Random) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}
