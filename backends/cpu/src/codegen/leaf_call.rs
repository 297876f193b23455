//! Statements that [SIMD code generation](crate::simd) compiles.
//!
//! The code around a leaf writes the words that it is called with (addresses, variables, run-time scalars) into its
//! own stack frame and calls it. Intermediates inside the leaf that live in memory get their addresses here.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, InstBuilder, StackSlotData, StackSlotKind, Value};
use tilewright_core::ids::BufferId;
use tilewright_core::stmt::{LoopKind, Stmt};

use super::callee::Callee;
use super::memory::storage::Placement;
use super::{Binding, Generator, Outcome, Storage, memory_flags, signature};
use crate::flat::access::for_each_access;
use crate::simd::{INPUTS, Input, Leaf, Refusal, Surroundings, compile, count};

/// The fewest lanes of a statement without loops that is worth a call.
const FEWEST_LANES: u32 = 8;

impl Generator<'_> {
    /// Compiles a statement as a leaf and calls it; false when it is no leaf.
    pub(super) fn leaf(&mut self, stmt: &Stmt) -> Outcome<bool> {
        let Some(extension) = self.unit.machine.leaves else { return Ok(false) };
        if self.active.is_some() || self.guard.is_some() || !is_worth_a_call(stmt) {
            return Ok(false);
        }
        if has_parallel(stmt) && !self.in_body {
            return Ok(false);
        }
        if let Some(refusal) =
            self.unit.eligibility.as_ref().and_then(|eligibility| eligibility.refusal(stmt))
        {
            self.refused(refusal);
            return Ok(false);
        }
        let in_registers = self
            .storage
            .iter()
            .filter(|(_, storage)| matches!(storage, Storage::Registers(_)))
            .map(|(buffer, _)| *buffer)
            .collect();
        let constants = self.variables.iter().filter_map(|(var, binding)| match binding {
            Binding::Constant(value) => Some((*var, *value)),
            Binding::Value { .. } => None,
        });
        let around = Surroundings {
            program: &self.unit.program,
            extension,
            features: self.unit.machine.features,
            constants: constants.collect(),
            ranges: self.ranges.clone(),
            facts: self.facts.clone(),
            innermost: self.innermost,
            in_registers,
        };
        match compile(stmt, &around, &mut self.unit.numbers) {
            Ok(leaf) => {
                leaf.without_tiles.into_iter().for_each(|refusal| self.refused(refusal));
                self.call_leaf(stmt, leaf)?;
                Ok(true)
            }
            Err(refusal) => {
                self.refused(refusal);
                Ok(false)
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        tracing::debug!(kernel = &*self.unit.program.name, %refusal, "a statement is no leaf");
        count(refusal);
        match self.unit.refusals.iter_mut().find(|(known, _)| *known == refusal) {
            Some((_, count)) => *count += 1,
            None => self.unit.refusals.push((refusal, 1)),
        }
    }

    fn call_leaf(&mut self, stmt: &Stmt, leaf: Leaf) -> Outcome<()> {
        let free = self.workspace;
        let mut placed = Vec::new();
        self.place_inside(stmt, &leaf.inputs, &mut placed)?;
        let words = self.leaf_words(&leaf)?;
        for buffer in placed {
            self.storage.remove(&buffer);
        }
        self.workspace = free;
        let size = INPUTS as u32 + 8 * leaf.inputs.len() as u32;
        let slot =
            self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3));
        let context = self.ins().stack_addr(I64, slot, 0);
        for (position, word) in words.into_iter().enumerate() {
            self.ins().store(memory_flags(), word, context, INPUTS + 8 * position as i32);
        }
        let result = self.call(context);
        if leaf.can_fail {
            let value = self.ins().load(I64, memory_flags(), context, 0);
            let extent = self.ins().load(I64, memory_flags(), context, 8);
            let succeeded = self.ins().icmp_imm_s(IntCC::Equal, result, 0);
            self.leave_unless(succeeded, value, extent);
        }
        self.unit.leaves.push(leaf);
        for_each_access(stmt, &mut |access| {
            if access.is_store {
                self.forget_loads(access.buffer);
            }
        });
        Ok(())
    }

    /// Calls the leaf that is added next.
    fn call(&mut self, context: Value) -> Value {
        let mut signature = signature(self.unit.machine.call_conv, 1);
        signature.returns = vec![AbiParam::new(I64)];
        let function = self.import(Callee::Leaf(self.unit.leaves.len()), signature);
        let call = self.ins().call(function, &[context]);
        self.builder.inst_results(call)[0]
    }

    /// Gives memory to the intermediates inside a leaf whose addresses are among its inputs.
    fn place_inside(&mut self, stmt: &Stmt, inputs: &[Input], placed: &mut Vec<BufferId>) -> Outcome<()> {
        if let Stmt::Alloc(node) = stmt {
            let buffer = node.buffer;
            let storage = match self.unit.plan.placement(buffer).cloned() {
                // The plan counts its part of the workspace, whether or not the leaf needs it.
                Some(Placement::Workspace) => Some(self.workspace_memory(buffer)?),
                _ if !inputs.contains(&Input::Buffer(buffer)) => None,
                Some(Placement::Stack(bytes)) => Some(self.stack_memory(buffer, bytes)?),
                _ => {
                    let own = self.unit.program.buffer(buffer);
                    let bytes = own.constant_len().unwrap_or(1).max(1) as usize * own.dtype.bytes();
                    Some(self.stack_memory(buffer, bytes.max(64) as u32)?)
                }
            };
            if let Some(storage) = storage {
                self.storage.insert(buffer, storage);
                placed.push(buffer);
            }
        }
        let free = self.workspace;
        for child in stmt.children() {
            self.place_inside(child, inputs, placed)?;
            // The next statement of a sequence takes the same part again.
            self.workspace = free;
        }
        Ok(())
    }

    fn leaf_words(&mut self, leaf: &Leaf) -> Outcome<Vec<Value>> {
        let mut words = Vec::new();
        for input in &leaf.inputs {
            words.push(match input {
                Input::Var(var) => self.variable(*var)?,
                Input::Scalar(var) => match self.unit.frame.scalar(*var) {
                    Some(offset) => self.frame_word(offset, I64)?,
                    None => return Err(self.broken(format!("scalar {var:?} is no parameter"))),
                },
                Input::Buffer(buffer) => {
                    let address = self.address(*buffer, &0.into())?;
                    match address.offset {
                        0 => address.base,
                        offset => self.ins().iadd_imm_s(address.base, i64::from(offset)),
                    }
                }
            });
        }
        Ok(words)
    }
}

/// Whether a statement has a loop, or enough lanes.
fn is_worth_a_call(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::For(_) => true,
        Stmt::Store(store) => store.indices.iter().any(|index| index.lanes() >= FEWEST_LANES),
        _ => stmt.children().into_iter().any(is_worth_a_call),
    }
}

fn has_parallel(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if node.kind == LoopKind::Parallel)
        || stmt.children().into_iter().any(has_parallel)
}
