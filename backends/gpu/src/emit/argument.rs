//! Arguments of kernels: only those that a kernel uses, in the order in which it first does.

use tilewright_core::dtype::DType;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::program::{Access, Scope};

use super::memory::memory_type;
use super::{Generator, Outcome, Place, Storage, Variable};
use crate::launch::LaunchArgument;
use crate::ptx::operand::{Operand, Register, Symbol};
use crate::ptx::table::{Op, Space};
use crate::ptx::types::Type;

impl Generator<'_> {
    /// The contents of an argument, loaded with a type.
    fn argument(&mut self, argument: LaunchArgument, ty: Type) -> Operand {
        if let Some((.., value)) = self.arguments.iter().find(|(known, ..)| *known == argument) {
            return *value;
        }
        let number = self.arguments.len() as u32;
        let value = self.builder.compute_at_entry(Op::LoadParameter, ty, &[Operand::Parameter(number)]);
        self.arguments.push((argument, ty, value));
        value
    }

    /// The address of global memory that an argument gives.
    pub(super) fn pointer(&mut self, argument: LaunchArgument) -> Outcome<Register> {
        if let Some(known) = self.pointers.get(&argument) {
            return Ok(*known);
        }
        let generic = self.argument(argument, Type::B64);
        let global = self.builder.compute_at_entry(Op::ToGlobal, Type::U64, &[generic]);
        let register = self.register_of(global)?;
        self.pointers.insert(argument, register);
        Ok(register)
    }

    /// A dimension of the program.
    pub(super) fn dimension(&mut self, var: VarId) -> Outcome<Register> {
        let number = self.program.dims().position(|(dim, _)| dim == var);
        let number = number.ok_or_else(|| self.broken("an index mentions a variable without a value"))?;
        let value = self.argument(LaunchArgument::Dimension(number), Type::B64);
        let register = self.register_of(value)?;
        self.variables.insert(var, Variable::Register(register));
        Ok(register)
    }

    /// A scalar argument.
    pub(super) fn scalar(&mut self, var: VarId, dtype: DType) -> Outcome<Operand> {
        let number = self.program.scalar_params().position(|(scalar, _)| scalar == var);
        let number = number.ok_or_else(|| self.broken("a scalar is no parameter"))?;
        let loaded = self.argument(LaunchArgument::Scalar(number), memory_type(dtype));
        Ok(self.unpack_one(dtype, loaded))
    }

    /// The storage of a tensor, or of an intermediate that kernels pass on.
    pub(super) fn tensor(&mut self, buffer: BufferId) -> Outcome<Storage> {
        let number = self.program.buffer_params().position(|(id, _)| id == buffer);
        let workspace = self.workspaces.iter().position(|id| *id == buffer);
        let argument = match (number, workspace) {
            (Some(number), _) => LaunchArgument::Tensor(number),
            (None, Some(number)) => LaunchArgument::Workspace(number),
            (None, None) => return Err(self.broken("a buffer has no memory")),
        };
        let base = self.pointer(argument)?;
        // A tensor that is only read is written by nothing while the kernel runs.
        let is_constant = matches!(self.program.access(buffer), Some(Access::Input | Access::Constant));
        let space = if is_constant { Space::Constant } else { Space::Global };
        let is_streamed = self.program.buffer(buffer).scope == Scope::Streamed;
        let storage = Storage::Memory(Place { base, offset: 0, space, is_streamed });
        self.storage.insert(buffer, storage.clone());
        Ok(storage)
    }

    /// The address of the memory that each thread has for itself.
    pub(super) fn local_base(&mut self) -> Outcome<Register> {
        if let Some(known) = self.local_base {
            return Ok(known);
        }
        let symbol = Operand::Symbol(Symbol::Local);
        let base = self.builder.compute_at_entry(Op::MoveSpecial, Type::U64, &[symbol]);
        let register = self.register_of(base)?;
        self.local_base = Some(register);
        Ok(register)
    }
}
