//! Parallel loops.
//!
//! The body of a parallel loop becomes a function of a context, a first and a last iteration. The context is an
//! array of words on the stack of the thread that meets the loop: the kernel's frame, then the loop
//! variables around the loop, then the addresses of the intermediates around it. With one thread, the
//! function is called directly. The iterations of a [nest](For::parallel_nest) are counted together. Parallel loops inside are serial.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, InstBuilder, StackSlotData, StackSlotKind, Value};
use cranelift_frontend::FunctionBuilderContext;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Index, Ranges};
use tilewright_core::stmt::For;

use super::callee::Callee;
use super::{
    Binding, FreeWorkspace, Generator, Outcome, ParallelBody, Storage, Unit, build_function, memory_flags,
    signature,
};
use crate::runtime::{RuntimeFunction, frame};

/// The values that the body of a parallel loop uses from around it.
pub(super) struct Captures {
    constants: Vec<(VarId, i64)>,
    variables: Vec<VarId>,
    buffers: Vec<BufferId>,
    ranges: Ranges,
}

impl Generator<'_> {
    /// A parallel loop that is in no other.
    pub(super) fn parallel(&mut self, node: &Arc<For>) -> Outcome<()> {
        if self.active.is_some() {
            return Err(self.unsupported("a parallel loop inside a condition on lanes"));
        }
        let extents =
            For::parallel_nest(node).into_iter().map(|node| self.index_value(&self.resolve(&node.extent)));
        let extents = extents.collect::<Outcome<Vec<_>>>()?;
        let extent = self.product_of_extents(&extents);
        let captures = self.captures();
        let context = self.fill_context(&captures)?;
        self.unit.bodies.push(ParallelBody { node: Arc::clone(node), captures });

        let body_signature = signature(self.unit.machine.call_conv, 3);
        let body = self.import(Callee::Body(self.unit.bodies.len() - 1), body_signature);
        let threads = self.frame_word(frame::THREADS, I64)?;
        let is_alone = self.ins().icmp_imm_s(IntCC::Equal, threads, 1);
        let (alone, together, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(is_alone, alone, &[], together, &[]);

        self.switch_to(alone);
        self.builder.seal_block(alone);
        let zero = self.iconst(I64, 0);
        self.ins().call(body, &[context, zero, extent]);
        self.builder.ins().jump(after, &[]);

        self.switch_to(together);
        self.builder.seal_block(together);
        let address = self.ins().func_addr(I64, body);
        self.call_runtime(RuntimeFunction::ParallelFor, &[threads, extent, address, context]);
        self.builder.ins().jump(after, &[]);

        self.switch_to(after);
        self.builder.seal_block(after);
        self.forget_all_loads();
        Ok(())
    }

    /// How many iterations a nest has: none where one of its loops has none, whose extent may be negative.
    fn product_of_extents(&mut self, extents: &[Value]) -> Value {
        if let [single] = extents {
            return *single;
        }
        let (zero, one) = (self.iconst(I64, 0), self.iconst(I64, 1));
        extents.iter().fold(one, |product, extent| {
            let extent = self.ins().smax(*extent, zero);
            self.ins().imul(product, extent)
        })
    }

    fn captures(&self) -> Captures {
        let mut captures = Captures {
            constants: Vec::new(),
            variables: Vec::new(),
            buffers: Vec::new(),
            ranges: self.ranges.clone(),
        };
        for (var, binding) in &self.variables {
            match binding {
                Binding::Constant(value) => captures.constants.push((*var, *value)),
                Binding::Value { .. } => captures.variables.push(*var),
            }
        }
        captures.buffers.extend(self.storage.iter().filter_map(|(buffer, storage)| match storage {
            Storage::Memory { .. } if self.unit.program.access(*buffer).is_none() => Some(*buffer),
            _ => None,
        }));
        // The order in a hash map is not to decide what code is made.
        captures.constants.sort_unstable();
        captures.variables.sort_unstable();
        captures.buffers.sort_unstable();
        captures
    }

    /// Writes the context and gives its address.
    fn fill_context(&mut self, captures: &Captures) -> Outcome<Value> {
        let words = 1 + captures.variables.len() + captures.buffers.len();
        let slot = self.builder.create_sized_stack_slot(StackSlotData::new(
            StackSlotKind::ExplicitSlot,
            8 * words as u32,
            3,
        ));
        let context = self.ins().stack_addr(I64, slot, 0);
        let mut values = vec![self.frame];
        for var in &captures.variables {
            values.push(self.variable(*var)?);
        }
        for buffer in &captures.buffers {
            let address = self.address(*buffer, &0.into())?;
            values.push(self.ins().iadd_imm_s(address.base, i64::from(address.offset)));
        }
        for (word, value) in values.into_iter().enumerate() {
            self.ins().store(memory_flags(), value, context, 8 * word as i32);
        }
        Ok(context)
    }
}

/// Translates the body of a parallel loop into a function of its own.
pub(super) fn generate_body(
    unit: &mut Unit,
    context: &mut FunctionBuilderContext,
    body: &ParallelBody,
) -> Outcome<Function> {
    let signature = signature(unit.machine.call_conv, 3);
    build_function(unit, context, signature, |generator, arguments| {
        let &[context, begin, end] = arguments else {
            return Err(generator.broken("a parallel body without its arguments".to_owned()));
        };
        generator.in_body = true;
        let captures = &body.captures;
        generator.frame = generator.ins().load(I64, memory_flags(), context, 0);
        let mut offset = 8;
        for &(var, value) in &captures.constants {
            generator.variables.insert(var, Binding::Constant(value));
        }
        for &var in &captures.variables {
            let value = generator.ins().load(I64, memory_flags(), context, offset);
            generator.variables.insert(var, Binding::Value { value, level: 0 });
            offset += 8;
        }
        for &buffer in &captures.buffers {
            let base = generator.ins().load(I64, memory_flags(), context, offset);
            generator.storage.insert(buffer, Storage::Memory { base, offset: 0, level: 0 });
            offset += 8;
        }
        generator.ranges = captures.ranges.clone();
        if !generator.unit.plan.body.is_nothing() {
            generator.take_workspace()?;
        }
        generator.part_of_nest(&For::parallel_nest(&body.node), begin, end)
    })
}

impl Generator<'_> {
    /// The iterations from `begin` on and before `end` of a nest of loops, which may be a single one.
    fn part_of_nest(&mut self, nodes: &[&Arc<For>], begin: Value, end: Value) -> Outcome<()> {
        let Some(innermost) = nodes.last() else { return Ok(()) };
        let extents: Vec<Index> = nodes.iter().map(|node| self.resolve(&node.extent)).collect();
        let counts = extents.iter().map(|extent| self.index_value(extent)).collect::<Outcome<Vec<_>>>()?;
        self.counted(begin, end, &innermost.body, |this, counter| {
            let (mut left, level) = (counter, this.level());
            for (place, node) in nodes.iter().enumerate().rev() {
                let value = match place {
                    0 => left,
                    _ => {
                        let value = this.ins().urem(left, counts[place]);
                        left = this.ins().udiv(left, counts[place]);
                        value
                    }
                };
                this.variables.insert(node.var, Binding::Value { value, level });
                this.ranges.insert(node.var, extents[place].clone());
            }
            let around = this.innermost.replace(innermost.var);
            this.stmt(&innermost.body)?;
            this.innermost = around;
            for node in nodes {
                this.variables.remove(&node.var);
                this.ranges.remove(node.var);
            }
            Ok(())
        })
    }

    /// Gets the part of the running thread's workspace that is for parallel loops.
    fn take_workspace(&mut self) -> Outcome<()> {
        let bytes = self.frame_word(frame::BODY_BYTES, I64)?;
        let base = self.call_runtime(RuntimeFunction::BodyWorkspace, &[bytes])[0];
        self.workspace = Some(FreeWorkspace { base, offset: 0, level: 0 });
        Ok(())
    }
}
