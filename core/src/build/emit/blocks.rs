//! From assignments to a program: one block in one perfect loop nest each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::loads::replace_loads;
use super::version::{Assignment, Versioned, map_index};
use crate::accuracy::Accuracy;
use crate::build::error::DefinitionError;
use crate::build::record::recording::{Recording, Role};
use crate::build::statement::Kernel;
use crate::dtype::DType;
use crate::expr::{Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::program::{Access, Buffer, Param, Program, Scope, VariableKind};
use crate::simplify::simplify_expr;
use crate::stmt::{Annotations, Block, For, Iter, IterKind, LoopKind, Stmt};
use crate::visit::substitute_expr;

/// Builds the program. Reports outputs that cannot be returned.
pub(in crate::build) fn emit(recording: &Recording, kernel: &mut Kernel, versioned: &Versioned) -> Program {
    let mut program = Program::new(recording.name.as_str());
    program.accuracy = accuracy(recording, kernel);
    program.multiplies_padding = recording.multiplies_padding;
    for name in &recording.dims {
        let var = program.add_variable(name.as_str(), VariableKind::Dim);
        program.add_param(Param::Dim(var));
    }
    for (name, dtype) in &recording.scalars {
        let var = program.add_variable(name.as_str(), VariableKind::Scalar);
        program.add_param(Param::Scalar(var, *dtype));
    }
    check_outputs(recording, kernel, versioned);
    let mut emission =
        Emission { kernel, versioned, program, buffers: BTreeMap::new(), block_names: BTreeSet::new() };
    emission.add_params(recording);
    let assignments: Vec<&Assignment> = versioned.assignments.iter().flatten().collect();
    emission.program.body = emission.nests(&assignments, &mut Vec::new());
    emission.program
}

/// How far products may be off. Reports what no product can be.
fn accuracy(recording: &Recording, kernel: &mut Kernel) -> Option<Accuracy> {
    let relative = recording.accuracy?;
    let accuracy = Accuracy::new(relative);
    if accuracy.is_none() {
        kernel.errors.push(DefinitionError::new(
            format!("the accuracy is {relative}"),
            None,
            "give how far a product may be off, relative to itself: at least 0 and less than 1",
        ));
    }
    accuracy
}

fn check_outputs(recording: &Recording, kernel: &mut Kernel, versioned: &Versioned) {
    let mut errors = Vec::new();
    for (position, &number) in recording.outputs.iter().enumerate() {
        let target = &kernel.targets[number];
        let name = &target.name;
        let wrong = if matches!(target.role, Role::Input | Role::Constant | Role::InOut) {
            Some((
                format!("`{name}` is an argument and is returned as well"),
                format!(
                    "copy it into a tensor of its own, or take `{name}` as `&mut Tensor` and return nothing"
                ),
            ))
        } else if !target.prefix.is_empty() {
            Some((
                format!("`{name}` is declared inside a loop and cannot be returned"),
                format!("declare `{name}` before the loop"),
            ))
        } else if recording.outputs[..position].contains(&number) {
            Some((format!("`{name}` is returned twice"), "return it once".to_owned()))
        } else if !versioned.last.contains_key(&number) {
            Some((
                format!("`{name}` is returned, but nothing is ever written to it"),
                format!("write every element of `{name}`, or start from zeros"),
            ))
        } else {
            None
        };
        errors.extend(wrong.map(|(message, help)| DefinitionError::new(message, target.location, help)));
    }
    kernel.errors.extend(errors);
}

/// Whether two assignments share the loop at a depth: a recurrence keeps them together there or further inside.
fn share_loop(first: &Assignment, second: &Assignment, depth: usize) -> bool {
    let deeper = first.recurrences.iter().zip(&second.recurrences).skip(depth);
    deeper.into_iter().any(|(a, b)| a.is_some() && a == b)
}

struct Emission<'a> {
    kernel: &'a Kernel,
    versioned: &'a Versioned,
    program: Program,
    /// Buffers by the storage of versions.
    buffers: BTreeMap<usize, BufferId>,
    block_names: BTreeSet<String>,
}

impl Emission<'_> {
    fn add_params(&mut self, recording: &Recording) {
        for (number, target) in self.kernel.targets.iter().enumerate() {
            let access = match target.role {
                Role::Input => Access::Input,
                Role::Constant => Access::Constant,
                Role::InOut => Access::InOut,
                Role::Local | Role::Accumulator => continue,
            };
            self.add_param(number, access);
        }
        for &number in &recording.outputs {
            if self.versioned.last.contains_key(&number) {
                self.add_param(number, Access::Output);
            }
        }
    }

    fn add_param(&mut self, number: usize, access: Access) {
        let last = self.versioned.last[&number];
        let buffer = self.buffer(last);
        self.program.add_param(Param::Buffer(buffer, access));
    }

    /// The buffer of a version.
    fn buffer(&mut self, version: usize) -> BufferId {
        let storage = self.versioned.versions[version].storage;
        if let Some(&known) = self.buffers.get(&storage) {
            return known;
        }
        let target = &self.kernel.targets[self.versioned.versions[version].target];
        let (dtype, shape) = (target.dtype, target.shape.clone());
        let name = self.version_name(version).as_str().into();
        let buffer = self.program.add_buffer(Buffer { name, dtype, shape, scope: Scope::Global });
        self.buffers.insert(storage, buffer);
        buffer
    }

    /// The tensor's name, with a number unless this is its last version.
    fn version_name(&self, version: usize) -> String {
        let own = &self.versioned.versions[version];
        let name = &self.kernel.targets[own.target].name;
        let last = self.versioned.last[&own.target];
        if own.storage == self.versioned.versions[last].storage {
            return name.clone();
        }
        let earlier = self.versioned.versions[..=version]
            .iter()
            .filter(|other| other.target == own.target && self.is_written(other.storage));
        format!("{name}_{}", earlier.count())
    }

    fn is_written(&self, storage: usize) -> bool {
        let mut writers = self.versioned.assignments.iter().flatten();
        writers.any(|assignment| self.versioned.versions[assignment.version].storage == storage)
    }

    fn block_name(&mut self, name: &str) -> String {
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        let free =
            std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.block_names.contains(name));
        let name = free.expect("there are enough numbers");
        self.block_names.insert(name.clone());
        name
    }

    /// The nests of assignments, in order, inside some loops. Those of one recurrence share its loop and the loops around it.
    fn nests(&mut self, assignments: &[&Assignment], around: &mut Vec<VarId>) -> Stmt {
        let depth = around.len();
        let mut nests = Vec::new();
        let mut rest = assignments;
        while let Some((first, others)) = rest.split_first() {
            let together = others.iter().take_while(|other| share_loop(first, other, depth)).count();
            let (now, later) = rest.split_at(together + 1);
            rest = later;
            nests.push(match first.loops.get(depth) {
                Some(&var) => self.for_loop(var, now, around),
                None => self.nest_block(first, around),
            });
        }
        Stmt::seq(nests)
    }

    fn for_loop(&mut self, var: VarId, assignments: &[&Assignment], around: &mut Vec<VarId>) -> Stmt {
        let form = self.kernel.loop_of(var).expect("an assignment's loops are loops");
        let (name, extent) = (form.name.as_str(), form.extent.clone());
        let loop_var = self.program.add_variable(name, VariableKind::Loop);
        around.push(loop_var);
        let body = self.nests(assignments, around);
        around.pop();
        Stmt::For(Arc::new(For {
            id: self.program.fresh_loop(),
            var: loop_var,
            extent,
            kind: LoopKind::Serial,
            annotations: Annotations::new(),
            body,
        }))
    }

    /// The block of an assignment, inside all of its loops.
    fn nest_block(&mut self, assignment: &Assignment, around: &[VarId]) -> Stmt {
        let mut iters = Vec::new();
        let mut ranges = Ranges::new();
        let mut vars: BTreeMap<VarId, Index> = BTreeMap::new();
        for (&var, &loop_var) in assignment.loops.iter().zip(around) {
            let form = self.kernel.loop_of(var).expect("an assignment's loops are loops");
            let iter_var = self.program.add_variable(format!("v{}", form.name), VariableKind::Iter);
            let kind = if assignment.is_ordered(var) {
                IterKind::Ordered
            } else if assignment.reduces(var) {
                IterKind::Reduce
            } else {
                IterKind::Spatial
            };
            let extent = form.extent.clone();
            ranges.insert(iter_var, extent.clone());
            vars.insert(var, Index::var(iter_var));
            iters.push(Iter { var: iter_var, extent, kind, binding: Index::var(loop_var) });
        }
        self.block(assignment, iters, &vars, &ranges)
    }

    fn block(
        &mut self,
        assignment: &Assignment,
        iters: Vec<Iter>,
        vars: &BTreeMap<VarId, Index>,
        ranges: &Ranges,
    ) -> Stmt {
        let replace = |var: VarId| vars.get(&var).cloned();
        let mut buffers = BTreeMap::new();
        assignment.for_each_read(&mut |version, _| {
            buffers.insert(version, None);
        });
        for (version, slot) in &mut buffers {
            *slot = Some(self.buffer(*version));
        }
        let finish = |expr: &Expr| {
            let renamed = substitute_expr(expr, &replace);
            let loaded = replace_loads(&renamed, &|dtype: DType, version: BufferId, indices: Indices| {
                let buffer = buffers[&(version.0 as usize)].expect("every version that is read has a buffer");
                Expr::load(dtype, buffer, indices)
            });
            simplify_expr(&loaded, ranges).unwrap_or(loaded)
        };
        let target = &self.kernel.targets[self.versioned.versions[assignment.version].target];
        let buffer = self.buffer(assignment.version);
        let indices: Indices =
            assignment.indices.iter().map(|index| map_index(&index.substitute(&replace), &finish)).collect();
        let old = Expr::load(target.dtype, buffer, indices.clone());
        let store = |value: Expr| Stmt::store(buffer, indices.clone(), value);
        let mut body = store(assignment.effect.map(finish).value(old));
        if let Some(condition) = assignment.condition.as_ref().map(finish)
            && condition != Expr::bool(true)
        {
            body = Stmt::when(condition, body);
        }
        let init = assignment.init.as_ref().map(|init| store(finish(init)));
        let name = self.version_name(assignment.version);
        let name = if assignment.initial { format!("{name}_init") } else { name };
        Stmt::Block(Arc::new(Block {
            id: self.program.fresh_block(),
            name: self.block_name(&name).as_str().into(),
            iters,
            guards: Vec::new(),
            init,
            body,
            annotations: Annotations::new(),
            location: assignment.location.map(Into::into),
        }))
    }
}
